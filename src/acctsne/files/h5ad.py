"""h5ad, the files of AnnData: X or an array of obsm, to which a map can be added."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from acctsne.files.backed import mapped_table
from acctsne.files.checks import check_table
from acctsne.files.columns import label_text
from acctsne.files.errors import DataError, unreadable
from acctsne.files.hdf5 import find_inside, group_inside
from acctsne.files.records import Array, Data, Guess, Wanted, Written, not_meant
from acctsne.files.replacing import reserve, suffix_of
from acctsne.files.stored_rows import StoredRows
from acctsne.runtime.checks import check_sparse
from acctsne.runtime.optional import require

# Where scanpy keeps a t-SNE, and so do we.
OBSM_KEY = "X_tsne"


def read_h5ad(path: Path, wanted: Wanted) -> Data:
    """Read X or an array of obsm, and a column of obs: an h5ad may hold many times as much."""
    key, labels = wanted.key, wanted.labels
    elements = require("anndata.io", "anndata")
    h5py = require("h5py", "anndata")
    with unreadable(path):
        file = h5py.File(path, "r")
    with file:
        element = _matrix(path, file, key)
        guesses = () if key is not None else _guesses(path, file)
        column = None if labels is None else _member(path, file, "obs", labels)
        with unreadable(path):
            X = mapped_table(path, element) if isinstance(element, h5py.Dataset) else None
            X = elements.read_elem(element) if X is None else X
            read = None if column is None else elements.read_elem(column)
    if not issparse(X) and not isinstance(X, np.ndarray):
        raise DataError(f"{path}: {key or 'X'} is a {type(X).__name__}; an array is needed")
    with unreadable(path):
        X = check_sparse(X)
    if read is None:
        return Data(X, guesses=guesses)
    return Data(X, np.asarray(read), labels, guesses)


def open_h5ad(path: Path, wanted: Wanted) -> StoredRows:
    """Open a dense array of which a part is to be read."""
    h5py = require("h5py", "anndata")
    name = wanted.key or "X"
    with unreadable(path):
        opened = h5py.File(path, "r")
    with opened as file:
        element = _matrix(path, file, wanted.key)
        guesses = () if wanted.key is not None else _guesses(path, file)
        if not isinstance(element, h5py.Dataset):
            with unreadable(path):
                kind = element.attrs.get("encoding-type", "group")
            raise DataError(
                f"{path}: {name} is stored as a {kind}, of which processes cannot each read a "
                "part; choose a dense array of obsm by key, such as principal components"
            )
        with unreadable(path):
            shape, dtype, place = element.shape, element.dtype, element.name
        check_table(path, shape, dtype)
        with unreadable(path):
            mapped = mapped_table(path, element)
    if mapped is not None:
        return replace(StoredRows.of_mapped(path, mapped), guesses=guesses)

    def read(begin: int, end: int) -> Array:
        with unreadable(path), h5py.File(path, "r") as file:
            return np.asarray(file[place][begin:end])

    return StoredRows(path, shape, np.dtype(dtype), read, guesses=guesses)


def _matrix(path: Path, file: Any, key: str | None) -> Any:
    """Find X, or an array of obsm by its name."""
    if key is not None:
        return _member(path, file, "obsm", key)
    with unreadable(path):
        return find_inside(path, file, "X")


def _member(path: Path, file: Any, group: str, name: str) -> Any:
    """Find an array of obsm or a column of obs."""
    with unreadable(path):
        members = group_inside(path, file, group)
        names = list(members)
    if name not in names:
        raise DataError(f"{path}: no {name!r} in {group}; there are {', '.join(names)}")
    with unreadable(path):
        return find_inside(path, members, name)


def _guesses(path: Path, file: Any) -> tuple[Guess, ...]:
    """Say that X was taken, where obsm has arrays that could be meant instead."""
    h5py = require("h5py", "anndata")
    with unreadable(path):
        # Only a group of this file: a link may lead to another one, which is not to be opened.
        here = isinstance(file.get("obsm", getlink=True), h5py.HardLink)
        names = list(file["obsm"]) if here and isinstance(file["obsm"], h5py.Group) else []
    return not_meant(names)


def check_source(path: Path) -> None:
    """Check, before any work is done for it, that a map can be added to a copy of an h5ad file."""
    h5py = require("h5py", "anndata")
    with unreadable(path), h5py.File(path, "r") as file:
        if "obsm" in file:
            group_inside(path, file, "obsm")


def write_h5ad(beside: Path, written: Written) -> None:
    """Write a map, beside all that the source holds if that is an h5ad file."""
    Y, labels, source, _ = written
    # Two copies of it and what HDF5 adds: a file of a few numbers takes half a megabyte.
    text = None if labels is None else label_text(labels)
    room = 2 * Y.nbytes + (0 if text is None else 2 * text.nbytes) + (1 << 20)
    if source is not None and suffix_of(source) == ".h5ad":
        shutil.copyfile(source, beside)
        reserve(beside, room)
        elements = require("anndata.io", "anndata")
        with require("h5py", "anndata").File(beside, "r+") as file:
            if "obsm" not in file:
                elements.write_elem(file, "obsm", {})
            elements.write_elem(group_inside(Path(source), file, "obsm"), OBSM_KEY, Y)
        return
    made = require("anndata", "anndata").AnnData(shape=(len(Y), 0), obsm={OBSM_KEY: Y})
    if text is not None:
        pandas = require("pandas", "anndata")
        made.obs["label"] = pandas.Categorical([cell or None for cell in text.tolist()])
    reserve(beside, room)
    made.write_h5ad(beside)
