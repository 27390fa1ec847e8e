"""Files from strangers: what leads to other files, what cannot be written, what asks for much."""

import re
from collections.abc import Callable
from pathlib import Path
from tokenize import TokenError
from typing import Any

import anndata
import h5py
import numpy as np
import numpy.typing as npt
import pytest

from acctsne import io
from acctsne.cli import main

Array = npt.NDArray[Any]
N = 60
HOW = ["--perplexity", "3", "--max-iter", "250", "--quiet", "--threads", "1"]


def data() -> Array:
    return np.random.default_rng(0).normal(size=(N, 5)).astype(np.float32)


def write_h5ad(path: Path, change: Callable[[Any], None]) -> Path:
    """An h5ad file with X, a map and a column of labels, and what a stranger made of it."""
    made = anndata.AnnData(data(), obsm={"X_pca": data()})
    made.obs["k"] = ["a", "b"] * (N // 2)
    made.write_h5ad(path)
    with h5py.File(path, "r+") as file:
        change(file)
    return path


@pytest.fixture(name="secret")
def other_file(tmp_path: Path) -> Path:
    """A file of somebody else's, whose numbers are nobody's business."""
    path = tmp_path / "secret.h5"
    with h5py.File(path, "w") as file:
        file["numbers"] = data()
        file["indptr"] = np.arange(N + 1)
        file["few"] = np.zeros(N, dtype=np.int32)
        file.create_group("group")["X_pca"] = data()
    (tmp_path / "secret.raw").write_bytes(data().tobytes())
    return path


def replace(file: Any, name: str, value: Any) -> None:
    del file[name]
    file[name] = value


def external(file: Any, name: str, folder: Path) -> None:
    del file[name]
    place = str(folder / "secret.raw")
    file.create_dataset(name, (N, 5), "f4", external=[(place, 0, N * 5 * 4)])


def virtual(file: Any, name: str, secret: Path) -> None:
    del file[name]
    layout = h5py.VirtualLayout((N, 5), "f4")
    layout[:] = h5py.VirtualSource(secret, "numbers", (N, 5))
    file.create_virtual_dataset(name, layout)


def sparse_with_links(file: Any, secret: Path) -> None:
    del file["X"]
    group = file.create_group("X")
    group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0"})
    group.attrs["shape"] = [N, 5]
    group["data"], group["indices"] = np.ones(N, "f4"), np.zeros(N, "i4")
    group["indptr"] = h5py.ExternalLink(secret, "/indptr")


def categories_elsewhere(file: Any, secret: Path) -> None:
    del file["obs/k/codes"]
    file["obs/k/codes"] = h5py.ExternalLink(secret, "/few")


def linked(file: Any, name: str, secret: Path, there: str) -> None:
    replace(file, name, h5py.ExternalLink(secret, there))


def by_two_links(file: Any, secret: Path) -> None:
    file["way"] = h5py.ExternalLink(secret, "/")
    replace(file, "X", h5py.SoftLink("/way/numbers"))


LEADS: dict[str, Callable[[Any, Path], None]] = {
    "stored elsewhere": lambda file, secret: external(file, "X", secret.parent),
    "a map stored elsewhere": lambda file, secret: external(file, "obsm/X_pca", secret.parent),
    "virtual": lambda file, secret: virtual(file, "X", secret),
    "a link": lambda file, secret: linked(file, "X", secret, "/numbers"),
    "a link by a link": by_two_links,
    "a map that is a link": lambda file, secret: linked(file, "obsm/X_pca", secret, "/numbers"),
    "all maps by a link": lambda file, secret: linked(file, "obsm", secret, "/group"),
    "a part of a sparse matrix": sparse_with_links,
    "labels": lambda file, secret: linked(file, "obs/k", secret, "/few"),
    "codes of labels": categories_elsewhere,
}


@pytest.mark.parametrize("lead", LEADS)
def test_other_files_are_not_read(tmp_path: Path, secret: Path, lead: str) -> None:
    path = write_h5ad(tmp_path / "strange.h5ad", lambda file: LEADS[lead](file, secret))
    key = "X_pca" if "map" in lead else None
    labels = "k" if "labels" in lead else None
    with pytest.raises(io.DataError, match=r"strange\.h5ad: .*(another file)"):
        io.read(path, key=key, labels=labels)
    if labels is None:
        with pytest.raises(io.DataError, match=r"strange\.h5ad: .*(another file)"):
            io.open_rows(path, key=key)


def test_nor_written_to(tmp_path: Path, secret: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = secret.read_bytes()
    path = write_h5ad(
        tmp_path / "strange.h5ad", lambda file: linked(file, "obsm", secret, "/group")
    )
    assert main(["embed", str(path), "-o", str(tmp_path / "map.h5ad"), *HOW]) == 1
    assert "strange.h5ad: 'obsm' in / is a link to another file" in capsys.readouterr().err
    assert secret.read_bytes() == before


def test_links_within_a_file_are_followed(tmp_path: Path) -> None:
    def move(file: Any) -> None:
        file["elsewhere"] = file["X"][...]
        replace(file, "X", h5py.SoftLink("/elsewhere"))

    path = write_h5ad(tmp_path / "moved.h5ad", move)
    assert np.array_equal(io.read(path).X, data())


DAMAGED: dict[str, tuple[Callable[[Any], None], list[str], str]] = {
    "obsm is a dataset": (lambda f: replace(f, "obsm", np.ones(3)), [], "obsm is a dataset"),
    "obs is a dataset": (
        lambda f: replace(f, "obs", np.ones(3)),
        ["--labels", "k"],
        "obs is a dataset",
    ),
    "a map that is not there": (
        lambda f: replace(f, "obsm/X_pca", h5py.SoftLink("/nowhere")),
        ["--key", "X_pca"],
        "no 'nowhere' in /",
    ),
    "a link to itself": (
        lambda f: replace(f, "X", h5py.SoftLink("/X")),
        [],
        "a link that leads nowhere",
    ),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_h5ad(tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str) -> None:
    change, options, said = DAMAGED[damage]
    path = write_h5ad(tmp_path / "strange.h5ad", change)
    assert main(["embed", str(path), "-o", str(tmp_path / "map.h5ad"), *options, *HOW]) == 1
    message = capsys.readouterr().err
    assert "strange.h5ad: " in message
    assert said in message
    assert not (tmp_path / "map.h5ad").exists()


@pytest.mark.parametrize("signature", [b"TREE", b"HEAP", b"SNOD"])
def test_groups_of_an_h5ad_that_hdf5_cannot_read(tmp_path: Path, signature: bytes) -> None:
    # HDF5 tells by these where the members of a group are listed; h5py raises several kinds of
    # errors without them, by what is asked of the group.
    whole = write_h5ad(tmp_path / "whole.h5ad", lambda _: None).read_bytes()
    path = tmp_path / "strange.h5ad"
    said = []
    for found in re.finditer(signature, whole):
        path.write_bytes(whole[: found.start()] + bytes(4) + whole[found.end() :])
        try:
            io.read(path)
        except io.DataError as error:
            said.append(str(error))
    assert len(said) >= 2  # of the whole file's group, and of obsm
    assert all("strange.h5ad: not a readable h5ad file" in message for message in said)


def test_a_header_that_python_cannot_parse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # numpy hands such a header to Python's tokenizer, whose error is no ValueError.
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (60, 5, }".ljust(117) + b"\n"
    contents = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    path = tmp_path / "strange.npy"
    path.write_bytes(contents + data().tobytes())
    with pytest.raises(TokenError):
        np.load(path)
    assert main(["embed", str(path), "-o", str(tmp_path / "map.npy"), *HOW]) == 1
    message = capsys.readouterr().err
    assert "strange.npy: " in message
    assert "Traceback" not in message
    assert not (tmp_path / "map.npy").exists()


def test_an_h5ad_without_maps_gets_one(tmp_path: Path) -> None:
    path = write_h5ad(tmp_path / "plain.h5ad", lambda file: file.__delitem__("obsm"))
    assert main(["embed", str(path), "-o", str(tmp_path / "map.h5ad"), *HOW]) == 0
    assert anndata.read_h5ad(tmp_path / "map.h5ad").obsm["X_tsne"].shape == (N, 2)


ODD_LABELS: dict[str, Array] = {
    "complex": np.arange(N) * 1j,
    "long": np.arange(N).astype(np.longdouble),
    "times without a unit": np.full(N, np.datetime64("NaT")),
    "bytes": np.array([b"\xff\xfe"] * N),
    "half": np.arange(N).astype(np.float16),
}


@pytest.mark.parametrize("kind", ODD_LABELS)
@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv", ".npz", ".h5ad"])
def test_labels_of_any_type_are_written(tmp_path: Path, suffix: str, kind: str) -> None:
    np.savez(tmp_path / "data.npz", X=data(), label=ODD_LABELS[kind])
    output = tmp_path / f"map{suffix}"
    assert main(["embed", str(tmp_path / "data.npz"), "-o", str(output), *HOW]) == 0
    found = io.read(output, key="X_tsne" if suffix == ".h5ad" else None)
    assert found.X.shape == (N, 2)


NO_LABELS: dict[str, tuple[Array, str]] = {
    "records": (np.zeros(N, [("a", "i4"), ("b", "f4")]), "labels of type"),
    "half a character": (np.array(["a", "\ud800"] * (N // 2)), "label 2, '\\ud800', is not text"),
    "NUL": (np.array(["a\0b", "c"] * (N // 2)), "label 1, 'a\\x00b', is not text"),
}


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("kind", NO_LABELS)
def test_labels_that_no_format_holds_are_refused_before_the_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, apart: bool
) -> None:
    labels, said = NO_LABELS[kind]
    if apart:
        np.save(tmp_path / "data.npy", data())
        np.save(tmp_path / "labels.npy", labels)
        given = [str(tmp_path / "data.npy"), "--labels", str(tmp_path / "labels.npy")]
    else:
        np.savez(tmp_path / "data.npz", X=data(), label=labels)
        given = [str(tmp_path / "data.npz")]
    output = tmp_path / "map.csv"
    assert main(["embed", *given, "-o", str(output), *HOW]) == 1
    message = capsys.readouterr().err
    assert ("labels.npy: " if apart else "data.npz: ") in message
    assert said in message
    assert not output.exists()


def test_only_the_array_asked_for_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "many.npz"
    np.savez(path, X=data(), other=np.ones((N, 9)), y=np.arange(N))
    read = []
    take = np.lib.npyio.NpzFile.__getitem__

    def noted(archive: Any, name: str) -> Any:
        read.append(name)
        return take(archive, name)

    monkeypatch.setattr(np.lib.npyio.NpzFile, "__getitem__", noted)
    found = io.read(path, key="X")
    assert np.array_equal(found.X, data())
    assert found.labels is not None
    assert sorted(read) == ["X", "y"]


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ("coordinate real general\n2147483646 3 1\n1 1 1", "the matrix has 2147483646 samples"),
        ("array real general\n1000000000 1000000000\n1", "needs at least 8000000000.0 GB"),
    ],
)
def test_a_header_that_asks_for_more_than_there_is(tmp_path: Path, sizes: str, said: str) -> None:
    path = tmp_path / "huge.mtx"
    path.write_text(f"%%MatrixMarket matrix {sizes}\n")
    with pytest.raises((io.DataError, MemoryError), match=rf"huge\.mtx: .*{said}"):
        io.read(path)


def test_memory_that_runs_out_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError

    path = tmp_path / "numbers.npy"
    np.save(path, data())
    monkeypatch.setattr(np, "load", fail)
    with pytest.raises(MemoryError, match=r"numbers\.npy: cannot be read: memory ran out"):
        io.read(path)
