"""Arrays in zarr stores, AnnData's among them."""

from pathlib import Path
from typing import Any

import numpy as np

from acctsne.files.checks import check_table
from acctsne.files.errors import DataError, unreadable
from acctsne.files.records import Array, Data, Wanted, not_meant
from acctsne.files.stored_rows import StoredRows
from acctsne.runtime.optional import require


def read_zarr(path: Path, wanted: Wanted) -> Data:
    """Read an array."""
    with unreadable(path):
        array, others = _find_array(path, wanted.key)
        return Data(np.asarray(array[...]), guesses=not_meant(others))


def open_zarr(path: Path, wanted: Wanted) -> StoredRows:
    """Open an array, of which those chunks are read that hold the rows asked for."""
    with unreadable(path):
        array, others = _find_array(path, wanted.key)
    check_table(path, array.shape, array.dtype)

    def read(begin: int, end: int) -> Array:
        with unreadable(path):
            return np.asarray(array[begin:end])

    guesses = not_meant(others)
    return StoredRows(path, array.shape, np.dtype(array.dtype), read, guesses=guesses)


def _find_array(path: Path, key: str | None) -> tuple[Any, list[str]]:
    """Open the array of a store: its only one, or that of a name.

    In a store of AnnData, the names are those of `obsm`, and X is the array without a name. Also
    returns the names of those that could have been meant instead.
    """
    zarr = require("zarr", "zarr")
    node = zarr.open(str(path), mode="r")
    if isinstance(node, zarr.Array):
        if key is not None:
            raise DataError(f"{path}: is one array, which has no key; got {key!r}")
        return node, []
    arrays = _arrays(node, zarr)
    others = []
    if key is None:
        key = "X" if "X" in node else _only_name(path, arrays)
        others = [name for name in arrays if name != key]
    if key not in arrays:
        if key in node:
            raise DataError(
                f"{path}: {key!r} is not a dense array; choose one of {_listed(arrays)} by key"
            )
        raise DataError(f"{path}: no array {key!r}; there are {_listed(arrays)}")
    return arrays[key], others


def _arrays(group: Any, zarr: Any) -> dict[str, Any]:
    """Return the two-dimensional arrays that a key can name."""
    arrays = {name: node for name, node in group.arrays() if node.ndim == 2}
    # AnnData keeps there what was made of its X.
    if "obsm" in group and isinstance(group["obsm"], zarr.Group):
        arrays |= {name: node for name, node in group["obsm"].arrays() if node.ndim == 2}
    return dict(sorted(arrays.items()))


def _only_name(path: Path, arrays: dict[str, Any]) -> str:
    if len(arrays) != 1:
        raise DataError(
            f"{path}: {len(arrays)} two-dimensional arrays ({_listed(arrays)}); choose one by key"
        )
    return next(iter(arrays))


def _listed(arrays: dict[str, Any]) -> str:
    return ", ".join(arrays) or "none"
