"""Sound files of every kind that acctsne reads, and what disks, editors and enemies do to them."""

import contextlib
import gzip
import tempfile
import zipfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from io import BytesIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import anndata
import h5py
import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.io
import scipy.sparse as sp
import zarr
from sklearn.datasets import load_digits

from acctsne import TSNE, Affinities, Embedding
from acctsne.embedding.checkpoint import Checkpoint
from acctsne.estimator import fit_with_checkpoint

Array = npt.NDArray[Any]
SAMPLES = 60
ROWS = 40

# Tables that pandas writes, by their suffix.
TABLES: dict[str, Callable[[pd.DataFrame, Any], None]] = {
    ".parquet": lambda table, to: table.to_parquet(to),
    ".arrow": lambda table, to: table.to_feather(to),
    ".feather": lambda table, to: table.to_feather(to),
}


@cache
def digits() -> Array:
    """A few handwritten digits."""
    return np.asarray(load_digits().data[:SAMPLES], dtype=np.float64)


@cache
def whole_files() -> dict[str, bytes]:
    """Make one sound file of every format, and of our own archives; a folder is a zip here.

    Made by a process of their own: whoever calls this can be forked, for it has no threads.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as maker:
        return maker.submit(_make_files).result()


def _make_files() -> dict[str, bytes]:
    X = digits()[:ROWS, :12]
    y = np.arange(len(X)) % 3
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "x.npy", X)
        np.savez(folder / "x.npz", X=X, y=y)
        sp.save_npz(folder / "sparse.npz", sp.csr_matrix(X))
        table = pd.DataFrame(X).rename(columns=lambda i: f"f{i}").assign(label=y.astype(str))
        table.to_csv(folder / "x.csv", index=False)
        table.to_csv(folder / "x.tsv", sep="\t", index=False)
        for suffix, write in TABLES.items():
            write(table, folder / f"x{suffix}")
        scipy.io.mmwrite(folder / "x.mtx", sp.coo_matrix(X))
        scipy.io.mmwrite(folder / "dense.mtx", X)
        cells = anndata.AnnData(X.astype(np.float32), obsm={"X_pca": X})
        cells.obs["kind"] = y.astype(str)
        cells.write_h5ad(folder / "x.h5ad")
        zarr.create_array(folder / "x.zarr", data=X, chunks=(15, 12))
        zarr.open_group(folder / "two.zarr", mode="w").create_array("X", data=X)
        _write_labels(folder, X, y)
        _write_archives(folder, X)
        for path in ("x.mtx", "x.csv"):
            (folder / f"{path}.gz").write_bytes(gzip.compress((folder / path).read_bytes()))
        return {path.name: _content(path) for path in folder.iterdir()}


def _write_labels(folder: Path, X: Array, y: Array) -> None:
    """Write a map and what can be known of its points."""
    words = [f"kind {label}" for label in y]
    (folder / "labels.txt").write_text("\n".join(words) + "\n")
    pd.DataFrame({"label": words}).to_csv(folder / "labels.csv", index=False)
    np.save(folder / "labels.npy", y)
    (folder / "ids.txt").write_text("".join(f"{row:03}\n" for row in range(len(y))))
    known = pd.DataFrame({"kept": X[:, 3] / 16, "name": words, "seen": y == 1})
    known.to_csv(folder / "hover.csv", index=False)
    known.to_parquet(folder / "hover.parquet")
    np.save(folder / "map.npy", X[:, 2:4])
    pd.DataFrame(X[:, 2:4], columns=["x", "y"]).to_csv(folder / "map.csv", index=False)


def _write_archives(folder: Path, X: Array) -> None:
    P = Affinities.from_data(X, perplexity=5)
    Embedding(P, "random", random_state=0).optimize(3).save(folder / "embedding.archive.npz")
    TSNE(perplexity=5, max_iter=250).fit(X).save(folder / "tsne.archive.npz")
    with contextlib.suppress(PowerCutError):
        checkpoint = Checkpoint(folder / "checkpoint.archive.npz", 100, False)
        fit_with_checkpoint(checkpointed(callback=_cut), X, checkpoint)
    with contextlib.suppress(PowerCutError, ImportError):  # that of one process, if mpi4py is there
        from acctsne import distributed
        from acctsne.distributed.estimator import fit_with_checkpoint as fit_in_folder

        tsne = checkpointed(distributed.TSNE, callback=_cut)
        fit_in_folder(tsne, X, folder / "checkpoints", every=100, resume=False)


class PowerCutError(Exception):
    """What ends a fit that is kept."""


def _cut(iteration: int, *_: Any) -> None:
    if iteration >= 220:
        raise PowerCutError


def checkpointed(kind: Any = TSNE, **parameters: Any) -> Any:
    """Make the estimator whose fit the checkpoints keep."""
    return kind(perplexity=5, max_iter=250, random_state=0, **parameters)


def _content(path: Path) -> bytes:
    if path.is_file():
        return path.read_bytes()
    inside = sorted(file for file in path.rglob("*") if file.is_file())
    return _zipped({str(file.relative_to(path)): file.read_bytes() for file in inside})


def _zipped(members: dict[str, bytes]) -> bytes:
    made = BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return made.getvalue()


def put(folder: Path, name: str, content: bytes) -> Path:
    """Write a file, or a folder from its zip."""
    path = folder / name
    if not _is_folder(name):
        path.write_bytes(content)
        return path
    with zipfile.ZipFile(BytesIO(content)) as archive:
        archive.extractall(path)
    return path


def _is_folder(name: str) -> bool:
    return name.endswith(".zarr") or name == "checkpoints"


def damaged_somehow(name: str, content: bytes, rng: np.random.Generator) -> bytes:
    """Damage a file as bytes, or what is inside, so that the file itself is sound."""
    suffix = Path(name).suffix
    if _is_folder(name):
        return damaged_members(content, rng)
    if rng.random() < 0.6:
        if suffix == ".npz":
            return damaged_members(content, rng)
        if suffix == ".h5ad":
            return changed_dataset(content, rng)
        if suffix in TABLES:
            return changed_column(suffix, content, rng)
    return damaged(content, rng)


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Do to bytes what disks, editors and enemies do."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(data))) if data else 0
        length = int(min(len(data) - at, rng.choice([1, 2, 4, 8, 64, 1024])))
        kind = rng.integers(7)
        if kind == 0:
            del data[at:]
        elif kind == 1:
            data[at : at + length] = bytes(length)
        elif kind == 2:
            data[at : at + length] = b"\xff" * length
        elif kind == 3:
            data[at : at + length] = rng.bytes(length)
        elif kind == 4:
            del data[at : at + length]
        elif kind == 5:
            data[at:at] = data[at : at + length]
        else:
            numbers = ["-1", "99999999999999999999", "nan", "inf", "1e999", "0", "x", ""]
            data[at : at + length] = str(rng.choice(numbers)).encode()
    return bytes(data)


def damaged_members(content: bytes, rng: np.random.Generator) -> bytes:
    """Damage one member of an archive, or drop it, so that the archive itself is sound."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    chosen = str(rng.choice(sorted(members)))
    if rng.random() < 0.1:
        del members[chosen]
    else:
        members[chosen] = damaged(members[chosen], rng)
    return _zipped(members)


def changed_values(values: Array, rng: np.random.Generator) -> Array:
    """Give an array another type, another shape or another value."""
    kind = rng.integers(6)
    if kind == 0:
        types = ["f2", "i1", "u8", "c16", "S3", "?", "M8[s]"]
        with contextlib.suppress(ValueError, TypeError):
            return values.astype(str(rng.choice(types)))
    elif kind == 1:
        return values[: len(values) // 2]
    elif kind == 2:
        return values[..., None]
    elif kind == 3:
        return values.ravel()
    elif kind == 4 and values.size and values.dtype.kind in "iuf":
        values = values.copy()
        odd = [-1, 0, 100, 10**6] if values.dtype.kind in "iu" else [np.nan, np.inf, -1, 1e300]
        with np.errstate(all="ignore"):
            values.flat[rng.integers(values.size)] = np.array(rng.choice(odd)).astype(values.dtype)
        return values
    return np.zeros(values.shape, bool)


def changed_dataset(content: bytes, rng: np.random.Generator) -> bytes:
    """Change one dataset or group of an HDF5 file."""
    made = BytesIO(content)
    with h5py.File(made, "r+") as file:
        names: list[str] = []
        file.visit(names.append)
        name = str(rng.choice(sorted(names)))
        node = file[name]
        attributes = dict(node.attrs)
        if rng.random() < 0.1 or not isinstance(node, h5py.Dataset):
            del file[name]
        elif node.ndim:
            values = changed_values(node[...], rng)
            del file[name]
            if values.dtype.kind in "Mc":
                values = values.astype("c16" if values.dtype.kind == "c" else "i8")
            made_again = file.create_dataset(name, data=values)
            if rng.random() < 0.7:
                made_again.attrs.update(attributes)
        else:
            node.attrs["encoding-type"] = str(rng.choice(["", "csr_matrix", "nothing"]))
    return made.getvalue()


def changed_column(suffix: str, content: bytes, rng: np.random.Generator) -> bytes:
    """Change one column of a table of typed columns."""
    read = pd.read_parquet if suffix == ".parquet" else pd.read_feather
    table = read(BytesIO(content))
    name = str(rng.choice(sorted(table.columns)))
    n = len(table)
    columns: list[Any] = [
        [None] * n,
        pd.date_range("2020-01-01", periods=n),
        pd.Categorical([str(i % 4) for i in range(n)]),
        [b"\xff\x00"] * n,
        [[1, 2]] * n,
        [{"a": 1}] * n,
        np.arange(n) > 5,
        np.where(np.arange(n) == 3, np.nan, 1.0),
        np.full(n, 2**63, np.uint64),
        [""] * n,
    ]
    table[name] = columns[rng.integers(len(columns))]
    if rng.random() < 0.3:
        table = table.iloc[: int(rng.integers(0, 5))].reset_index(drop=True)
    if rng.random() < 0.2:
        table = table.rename(columns={name: str(rng.choice(["", "label", "x" * 1000, "ä"]))})
        table = table.loc[:, ~table.columns.duplicated()]
    made = BytesIO()
    TABLES[suffix](table, made)
    return made.getvalue()
