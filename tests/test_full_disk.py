"""Files that cannot be written whole: the old one stays, the error names it, nothing crashes."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from acctsne import Affinities, Embedding
from acctsne.cli import main

# As a full disk does, the limit stops a file in the midst of a write.
CHILD = """
import contextlib, io, json, resource, signal, sys
from acctsne.cli import main
import anndata, h5py, pyarrow.parquet, matplotlib.figure
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (600, resource.RLIM_INFINITY))
results = []
for arguments in json.loads(sys.argv[1]):
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        code = main(arguments)
    results.append([code, said.getvalue()])
print(json.dumps(results))
"""
CALLS = """
import json, resource, signal
import matplotlib.figure, matplotlib.font_manager, numpy as np
from acctsne import html, movie, plot
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (600, resource.RLIM_INFINITY))
Y = np.random.default_rng(0).normal(size=(100, 2))
recorder = movie.Recorder()
for iteration in range(recorder.every - 1, 100, recorder.every):
    recorder(iteration, 1.0, Y)
calls = {
    "a.png": lambda: plot.save(Y, "a.png"),
    "a.html": lambda: html.write(Y, "a.html"),
    "b.gif": lambda: movie.write([Y, -Y], "b.gif"),
    "b.mp4": lambda: movie.write([Y, -Y], "b.mp4"),
    "c.html": lambda: recorder.write("c.html"),
    "c.mp4": lambda: recorder.write("c.mp4"),
}
said = {}
for name, call in calls.items():
    try:
        call()
        said[name] = "written"
    except OSError as error:
        said[name] = str(error)
print(json.dumps(said))
"""
PICTURES = ["a.png", "a.html", "b.gif", "b.mp4", "c.html", "c.mp4"]
OLD = b"what was there before"

OUTPUTS = [
    ("-o", "map.npy"),
    ("-o", "map.npz"),
    ("-o", "map.csv"),
    ("-o", "map.tsv"),
    ("-o", "map.parquet"),
    ("-o", "map.feather"),
    ("-o", "map.h5ad"),
    ("-o", "map.mtx"),
    ("--map", "fit.npz"),
    ("--plot", "map.png"),
    ("--html", "map.html"),
    ("--movie", "map.gif"),
    ("--movie", "map.mp4"),
    ("--checkpoint", "kept.npz"),
]


@pytest.fixture(scope="module", name="full")
def full_disk(
    tmp_path_factory: pytest.TempPathFactory, X: npt.NDArray[np.float64]
) -> tuple[Path, dict[str, tuple[int, str]]]:
    """Try to write everything where files may not grow; returns what was said, by name."""
    folder = tmp_path_factory.mktemp("full")
    np.save(folder / "data.npy", X[:100])
    commands = []
    for option, name in OUTPUTS:
        more = ["-o", "other.npy", "--checkpoint-every", "50"]
        if option != "--checkpoint":
            (folder / name).write_bytes(OLD)
            more = []
        settings = ["--perplexity", "5", "--max-iter", "250", "--quiet"]
        commands.append(["embed", "data.npy", option, name, *more, *settings])
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "MPLCONFIGDIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(commands)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    results: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return folder, {name: tuple(r) for (_, name), r in zip(OUTPUTS, results, strict=True)}


@pytest.mark.parametrize(("option", "name"), OUTPUTS)
def test_the_old_file_stays(
    full: tuple[Path, dict[str, tuple[int, str]]], option: str, name: str
) -> None:
    folder, results = full
    code, said = results[name]
    assert code == 1, said
    assert "Traceback" not in said
    last = said.strip().splitlines()[-1]
    assert name in last
    assert "cannot be written: " in last
    if option == "--checkpoint":
        assert not (folder / name).exists()
    else:
        assert (folder / name).read_bytes() == OLD
    assert not list(folder.glob(".*part*"))


def test_pictures_that_programs_write(tmp_path: Path) -> None:
    for name in PICTURES:
        (tmp_path / name).write_bytes(OLD)
    done = subprocess.run(
        [sys.executable, "-c", CALLS],
        cwd=tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "MPLCONFIGDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    said = json.loads(done.stdout.splitlines()[-1])
    assert list(said) == PICTURES
    for name, what in said.items():
        assert f"{name} cannot be written: " in what
        assert (tmp_path / name).read_bytes() == OLD
    assert not list(tmp_path.glob(".*part*"))


@pytest.mark.parametrize(("option", "name"), OUTPUTS)
def test_a_disk_that_may_only_be_read(
    tmp_path: Path,
    X: npt.NDArray[np.float64],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    option: str,
    name: str,
) -> None:
    # root may write wherever the disk lets it, so the system's refusal is acted.
    open_file = os.open

    def refuse_new_files(path: Any, flags: int, *mode: Any, **more: Any) -> int:
        if flags & os.O_CREAT and Path(os.fsdecode(path)).parent == tmp_path:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return open_file(path, flags, *mode, **more)

    np.save(tmp_path / "data.npy", X[:100])
    if option != "--checkpoint":
        (tmp_path / name).write_bytes(OLD)
    more = ["--checkpoint-every", "50", "-o", "-"] if option == "--checkpoint" else []
    settings = ["--perplexity", "5", "--max-iter", "250", "--quiet", "--threads", "1"]
    given = ["embed", str(tmp_path / "data.npy"), option, str(tmp_path / name)]
    monkeypatch.setattr(os, "open", refuse_new_files)
    assert main([*given, *more, *settings]) == 1
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert f"{name} cannot be written: Read-only file system" in said
    kept = [tmp_path / name] if option != "--checkpoint" else []
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "data.npy", *kept])
    assert all(path.read_bytes() == OLD for path in kept)


def test_a_folder_that_is_not_there(tmp_path: Path, P: Affinities) -> None:
    path = tmp_path / "absent" / "map.npz"
    with pytest.raises(OSError, match=r"map\.npz cannot be written: No such file or directory"):
        Embedding(P, "random", random_state=0).save(path)
