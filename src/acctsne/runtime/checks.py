"""Checks that several stages share."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import coo_matrix, issparse

# Point ids are 32-bit, and a tree has up to two nodes a point.
MAX_SAMPLES = 2**30


def check_n_samples(n_samples: int, name: str = "X") -> None:
    """Refuse more samples than ids can tell apart."""
    if n_samples > MAX_SAMPLES:
        raise ValueError(f"{name} has {n_samples} samples; at most {MAX_SAMPLES} are supported")


def check_sparse(X: Any, name: str = "X") -> Any:
    """Refuse a sparse matrix whose parts do not fit each other; return anything as it is.

    Compiled code, SciPy's own too, reads and writes wherever the indices point.
    """
    if not issparse(X):
        return X
    if X.ndim != 2:
        raise ValueError(
            f"{name} is a sparse array of shape {X.shape}; expected 2 dimensions, rows and columns"
        )
    try:
        if X.format in ("csr", "csc", "bsr"):
            X.check_format(full_check=True)
        elif X.format == "coo":
            _check_coordinates(X)
    except (ValueError, IndexError) as error:
        raise ValueError(f"{name} is a damaged sparse matrix: {error}") from error
    return X


def _check_coordinates(X: coo_matrix) -> None:
    if not len(X.row) == len(X.col) == len(X.data):
        raise ValueError(
            f"{len(X.row)} rows, {len(X.col)} columns and {len(X.data)} values are given"
        )
    for coordinate, limit, what in ((X.row, X.shape[0], "row"), (X.col, X.shape[1], "column")):
        if len(coordinate) and not 0 <= int(coordinate.min()) <= int(coordinate.max()) < limit:
            wrong = coordinate[(coordinate < 0) | (coordinate >= limit)][0]
            raise ValueError(f"{what} {wrong} is named; there are {limit}, counted from 0")


def check_unique(ids: Sequence[Any], name: str) -> None:
    """Refuse an id that stands for several points of one map."""
    for twice, times in Counter(ids).most_common(1):
        if times > 1:
            raise ValueError(f"{name} has {twice!r} {times} times; an id names one point")


def check_layout_dtype(dtype: Any) -> np.dtype[Any]:
    """Return float32 or float64, whichever `dtype` names."""
    try:
        checked: np.dtype[Any] = np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"dtype must be numpy.float32 or numpy.float64; got {dtype!r}") from error
    if checked not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be numpy.float32 or numpy.float64; got {dtype!r}")
    return checked
