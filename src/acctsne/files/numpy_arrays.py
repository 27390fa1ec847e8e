"""Arrays in npy and npz files, which are never unpickled."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import load_npz

from acctsne.files.checks import check_table
from acctsne.files.columns import LABEL_NAMES, label_text
from acctsne.files.errors import DataError, unreadable
from acctsne.files.records import Array, Data, Guess, Wanted, Written
from acctsne.files.replacing import suffix_of
from acctsne.files.stored_rows import StoredRows
from acctsne.runtime.checks import check_sparse

# What a map is called in an npz of ours: in one of a map and its labels, in a fitted estimator's.
MAP_NAME = "embedding"


def read_npy(path: Path, _: Wanted) -> Data:
    """Map an array into memory."""
    with unreadable(path):
        return Data(np.load(path, mmap_mode="r", allow_pickle=False))


def open_npy(path: Path, wanted: Wanted) -> StoredRows:
    """Map an array of which a part is to be read."""
    array = read_npy(path, wanted).X
    check_table(path, array.shape, array.dtype)
    return StoredRows.of_mapped(path, array)


def write_npy(beside: Path, written: Written) -> None:
    """Write a map."""
    # Not by np.save, whose last write of a small array is not looked at.
    contiguous = np.ascontiguousarray(written.Y)
    with open(beside, "wb") as file:
        header = np.lib.format.header_data_from_array_1_0(contiguous)
        np.lib.format.write_array_header_1_0(file, header)
        file.write(contiguous.data)


def read_npz(path: Path, wanted: Wanted) -> Data:
    """Read an array by its key, or the only matrix, and labels beside it; or a sparse matrix."""
    key, labels = wanted.key, wanted.labels
    names = _names(path)
    named = [name for name in (key, labels) if name is not None]
    if {"format", "shape", "data"} <= set(names):
        if named:
            raise DataError(
                f"{path}: no array {named[0]!r}, but one sparse matrix; its labels need a file "
                "of their own"
            )
        with unreadable(path):
            return Data(check_sparse(load_npz(path)))
    for name in named:
        if name not in names:
            raise DataError(f"{path}: no array {name!r}; there are {', '.join(names)}")
    may_be_labels = {labels} if labels is not None else {*LABEL_NAMES, "y"}
    # Only what is asked for: others may be many times as large.
    arrays = _arrays(
        path, names if key is None else [n for n in names if n in {key, *may_be_labels}]
    )
    if key is not None:
        X = arrays[key]
    else:
        key, X = _only_matrix(path, arrays)
    guesses = []
    if wanted.key is None and len(arrays) > 1:
        guesses.append(Guess("key", f"of the arrays {', '.join(arrays)}, {key} is the data"))
    if labels is None:
        detected = [name for name in (*LABEL_NAMES, "y") if name in arrays and name != key]
        labels = detected[0] if len(detected) == 1 else None
        if len(detected) > 1:
            what = f"of the arrays {', '.join(detected)}, none is taken for labels"
            guesses.append(Guess("labels", what))
    return Data(X, None if labels is None else arrays[labels], labels, tuple(guesses))


def _only_matrix(path: Path, arrays: dict[str, Array]) -> tuple[str, Array]:
    matrices = {name: array for name, array in arrays.items() if array.ndim == 2}
    if len(matrices) == 1:
        return matrices.popitem()
    if "X" in matrices:
        return "X", matrices["X"]
    raise DataError(
        f"{path}: {len(matrices)} two-dimensional arrays among {', '.join(arrays)}; choose one by "
        "key"
    )


def has_map(path: Path) -> bool:
    """Say whether an npz has an array by the name of maps, beside whatever else."""
    return MAP_NAME in _names(path)


def _names(path: Path) -> list[str]:
    """Name the arrays of an npz."""
    # Opened here: numpy leaves a file that is no archive open.
    with unreadable(path), open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        return list(archive.files)


def _arrays(path: Path, names: Sequence[str]) -> dict[str, Array]:
    """Read arrays of an npz."""
    with unreadable(path), open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        members = {name: archive[name] for name in names}
    # A member without numpy's mark is handed out as bytes.
    for name, array in members.items():
        if not isinstance(array, np.ndarray):
            raise DataError(f"{path}: not a readable npz file: {name!r} is no array")
    return members


def write_npz(beside: Path, written: Written) -> None:
    """Write a map and its labels."""
    arrays: dict[str, Any] = {MAP_NAME: written.Y}
    if written.labels is not None:
        # Objects would be pickled.
        is_plain = written.labels.dtype != object
        arrays["label"] = written.labels if is_plain else label_text(written.labels)
    with open(beside, "wb") as file:
        np.savez(file, **arrays)


def read_label_array(path: Path) -> Array:
    """Read the only one-dimensional array of an npy or npz file."""
    if suffix_of(path) == ".npz":
        arrays = list(_arrays(path, _names(path)).values())
    else:
        with unreadable(path), open(path, "rb") as file:
            arrays = [np.load(file, allow_pickle=False)]
    flat = [array for array in arrays if array.ndim == 1]
    if len(flat) != 1:
        raise DataError(f"{path}: {len(flat)} one-dimensional arrays; labels need exactly one")
    return flat[0]
