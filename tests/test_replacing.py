"""Files are replaced whole or not at all."""

import os
import signal
import stat
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from acctsne import Affinities, Embedding, io
from acctsne.files.replacing import replacing

needs_modes = pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")


def test_two_that_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "map.npz"
    with replacing(path) as first:
        first.write_bytes(b"first")
        with replacing(path) as second:
            assert first != second
            assert first.suffix == second.suffix == ".npz"
            second.write_bytes(b"second")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, P: Affinities
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(FileNotFoundError, match=r"map\.npz cannot be written: No such file"):
        Embedding(P, "random").save("map.npz")


def test_threads_that_save_to_one_path(tmp_path: Path, P: Affinities) -> None:
    path = tmp_path / "map.npz"
    embeddings = [Embedding(P, "random", random_state=seed) for seed in range(3)]
    together = threading.Barrier(len(embeddings))
    errors: list[Exception] = []

    def save(embedding: Embedding) -> None:
        together.wait(timeout=60)
        try:
            for _ in range(10):
                embedding.save(path)
                Embedding.load(path)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=save, args=(each,)) for each in embeddings]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not errors
    saved = Embedding.load(path).positions
    assert any(np.array_equal(saved, each.positions) for each in embeddings)
    assert list(tmp_path.iterdir()) == [path]


def press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_as_soon_as_there_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "map.npz"
    path.write_bytes(b"old")
    close = os.close

    def closed(descriptor: int) -> None:
        close(descriptor)
        press_ctrl_c()

    monkeypatch.setattr("acctsne.files.replacing.os.close", closed)
    with pytest.raises(KeyboardInterrupt), replacing(path):
        raise AssertionError("nobody may write now")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_ctrl_c_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "map.npz"
    path.write_bytes(b"old")
    unlink, pressed = Path.unlink, [press_ctrl_c]

    def unlinked(self: Path, missing_ok: bool = False) -> None:
        if pressed:
            pressed.pop()()
        unlink(self, missing_ok)

    monkeypatch.setattr(Path, "unlink", unlinked)
    with pytest.raises(KeyboardInterrupt), replacing(path):
        press_ctrl_c()
    assert not pressed
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("stem", ["a" * 248, "\u00e9" * 120])
def test_names_as_long_as_the_system_allows(tmp_path: Path, stem: str) -> None:
    path = tmp_path / f"{stem}.npy"
    io.write(path, np.eye(2))
    assert np.array_equal(np.load(path), np.eye(2))


@needs_modes
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
def test_permissions_stay(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "map.csv"
    path.write_text("old")
    path.chmod(mode)
    with replacing(path) as beside:
        # Nor may others read it in the meantime.
        assert stat.S_IMODE(beside.stat().st_mode) & 0o077 == 0
        beside.write_text("new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@needs_modes
def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    io.write(tmp_path / "map.csv", np.eye(2))
    assert (tmp_path / "map.csv").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize("there", [True, False])
def test_links_are_followed(tmp_path: Path, there: bool) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    real, link = folder / "real.npy", tmp_path / "link.npy"
    if there:
        real.write_bytes(b"old")
    try:
        link.symlink_to(Path("elsewhere") / "real.npy")
    except OSError:
        pytest.skip("this system has no links, or not for everyone")
    io.write(link, np.eye(2))
    assert link.is_symlink()
    assert np.array_equal(np.load(real), np.eye(2))
    assert list(folder.iterdir()) == [real]


def test_a_power_cut_leaves_the_old_file_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a file system may lose is what it was not told to keep, before it is told to rename.
    path = tmp_path / "map.csv"
    steps = []
    flush, rename = os.fsync, os.replace

    def noted_flush(descriptor: int) -> None:
        kept = os.fstat(descriptor)
        steps.append("folder" if stat.S_ISDIR(kept.st_mode) else f"{kept.st_size} bytes")
        flush(descriptor)

    def noted_rename(source: str, target: str) -> None:
        steps.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", noted_flush)
    monkeypatch.setattr(os, "replace", noted_rename)
    with replacing(path) as beside:
        beside.write_bytes(b"12345")
    assert steps == ["5 bytes", "rename", *(["folder"] if os.name != "nt" else [])]


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(OSError, match=r"map\.csv cannot be written: Not a directory"),
        replacing(tmp_path / "file" / "map.csv"),
    ):
        pass


@needs_modes
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("folder", "Is a directory"),
        ("pipe", "it is a device, a pipe or a socket, no file"),
        ("circle", "Too many levels of symbolic links"),
    ],
)
def test_what_is_no_file(tmp_path: Path, kind: str, reason: str) -> None:
    path = tmp_path / "map.npy"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(path.name)
    before = path.lstat()
    with (
        pytest.raises(OSError, match=rf"map\.npy cannot be written: {reason}"),
        replacing(path) as beside,
    ):
        beside.touch()
    assert path.lstat() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform != "linux", reason="names are UTF-8 on other systems")
@pytest.mark.parametrize("suffix", [".npy", ".csv", ".parquet", ".feather"])
def test_a_name_that_is_not_utf8(tmp_path: Path, suffix: str) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/map\xff" + suffix.encode()))
    io.write(path, np.eye(2))
    assert np.array_equal(io.read(path).X, np.eye(2))
