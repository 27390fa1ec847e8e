"""Checks that several stages share."""

import sys
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from itertools import chain
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy.sparse import (
    bsr_matrix,
    coo_matrix,
    csr_array,
    csr_matrix,
    dia_matrix,
    issparse,
    lil_matrix,
    sparray,
)

# Point ids are 32-bit, and a tree has up to two nodes a point.
MAX_SAMPLES = 2**30

# Columns of sparse matrices are signed 32-bit numbers.
MAX_COLUMNS = 2**31 - 1

LARGEST_FLOAT = sys.float_info.max


def check_n_samples(n_samples: int, name: str = "X") -> None:
    """Refuse more samples than ids can tell apart."""
    if n_samples > MAX_SAMPLES:
        raise ValueError(f"{name} has {n_samples} samples; at most {MAX_SAMPLES} are supported")


def check_n_columns(n_columns: int, name: str) -> None:
    """Refuse more columns of a sparse matrix than can be told apart."""
    if n_columns > MAX_COLUMNS:
        raise ValueError(
            f"{name} has {n_columns} columns; at most {MAX_COLUMNS} are supported. Leave out those "
            "without values"
        )


def check_integer(name: str, value: Any) -> None:
    """Refuse what is no whole number."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer; got {value!r}")


def check_choice(name: str, value: Any, choices: Collection[str], others: str = "") -> None:
    """Refuse what is none of some words; `others` says what else was possible."""
    # Only words are looked for: some values of other types cannot be compared with words at all.
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be {others}one of {', '.join(choices)}; got {value!r}")


def check_parameter_sizes(parameters: Mapping[str, Any]) -> None:
    """Refuse whole numbers, alone or in a pair, that are too large to be computed with."""
    for name, given in parameters.items():
        for value in given if isinstance(given, list | tuple) else (given,):
            if isinstance(value, int) and abs(value) > LARGEST_FLOAT:
                raise ValueError(
                    f"{name} is an integer beyond {LARGEST_FLOAT:.1e}, the largest float64; give a "
                    "smaller one"
                )


def check_sparse(X: Any, name: str = "X") -> Any:
    """Give a sparse matrix as CSR, refused if its parts do not fit each other; all else as it is.

    Compiled code, SciPy's own too, reads and writes wherever the indices point. So they are looked
    at before the conversion, and once more in what comes out of it, which is what to work on: a
    matrix may say of itself that its indices are sorted when they are not.
    """
    if not issparse(X):
        return X
    if X.ndim != 2:
        raise ValueError(
            f"{name} is a sparse array of shape {X.shape}; expected 2 dimensions, rows and columns"
        )
    try:
        return _checked_csr(X)
    except (AttributeError, IndexError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{name} is a damaged sparse matrix: {error}") from error


def _checked_csr(X: Any) -> Any:
    rows, columns = X.shape
    if X.format == "lil":
        X = _csr_of_lists(X)
    elif X.format == "csc":
        _check_compressed(X, columns, rows, "row")
    elif X.format == "bsr":
        _check_blocks(X)
    elif X.format == "coo":
        _check_coordinates(X)
    elif X.format == "dia":
        _check_diagonals(X)
    if X.format != "csr":
        X = X.tocsr()
    _check_compressed(X, rows, columns, "column")
    stored = int(X.indptr[-1])
    kind = csr_array if isinstance(X, sparray) else csr_matrix
    # Unsigned ones are other numbers to compiled code that takes differences.
    parts = (_signed(part) for part in (X.indices[:stored], X.indptr))
    return kind((X.data[:stored], *parts), shape=(rows, columns))


def _check_compressed(X: Any, majors: int, minors: int, minor: str) -> None:
    """Check rows of CSR and BSR or columns of CSC: offsets, and which minor ones they name."""
    indptr, indices = _integers(X.indptr, "indptr"), _integers(X.indices, "indices")
    _check_array(X.data, "data", 3 if X.format == "bsr" else 1)
    if len(indices) != len(X.data):
        raise ValueError(f"{len(indices)} indices are given for {len(X.data)} values")
    if len(indptr) != majors + 1:
        raise ValueError(f"indptr has {len(indptr)} offsets; {majors + 1} are needed")
    # Offsets are compared, not subtracted: differences of unsigned numbers could wrap around.
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise ValueError("indptr must begin with 0 and never descend")
    if indptr[-1] > len(indices):
        raise ValueError(f"indptr ends with {indptr[-1]}; there are {len(indices)} indices")
    _check_range(indices[: int(indptr[-1])], minors, minor)


def _check_blocks(X: bsr_matrix) -> None:
    _check_array(X.data, "data", 3)
    height, width = X.data.shape[1:]
    rows, columns = X.shape
    if not height or not width or rows % height or columns % width:
        raise ValueError(f"blocks of shape ({height}, {width}) in a matrix of shape {X.shape}")
    _check_compressed(X, rows // height, columns // width, "block")


def _check_coordinates(X: coo_matrix) -> None:
    row, column = _integers(X.row, "row"), _integers(X.col, "col")
    _check_array(X.data, "data", 1)
    if not len(row) == len(column) == len(X.data):
        raise ValueError(
            f"{len(row)} rows, {len(column)} columns and {len(X.data)} values are given"
        )
    _check_range(row, X.shape[0], "row")
    _check_range(column, X.shape[1], "column")


def _check_diagonals(X: dia_matrix) -> None:
    offsets = _integers(X.offsets, "offsets")
    _check_array(X.data, "data", 2)
    if len(offsets) != len(X.data):
        raise ValueError(f"{len(offsets)} offsets are given for {len(X.data)} diagonals")
    if len(np.unique(offsets)) != len(offsets):
        raise ValueError("offsets name a diagonal twice")


def _csr_of_lists(X: lil_matrix) -> Any:
    """Join lists of columns and of values, which SciPy would do without counting either."""
    kind = csr_array if isinstance(X, sparray) else csr_matrix
    if not len(X.rows) == len(X.data) == X.shape[0]:
        raise ValueError(
            f"{len(X.rows)} lists of columns and {len(X.data)} of values for {X.shape[0]} rows"
        )
    counts = [len(row) for row in X.rows]
    for row, (count, values) in enumerate(zip(counts, X.data, strict=True)):
        if len(values) != count:
            raise ValueError(f"row {row} has {count} columns and {len(values)} values")
    indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    indices = np.fromiter(chain.from_iterable(X.rows), np.int64, indptr[-1])
    # Before SciPy's constructor, which may make smaller integers of them.
    _check_range(indices, X.shape[1], "column")
    values = np.fromiter(chain.from_iterable(X.data), X.dtype, indptr[-1])
    return kind((values, indices, indptr), shape=X.shape)


def _check_array(part: Any, name: str, ndim: int) -> None:
    if not isinstance(part, np.ndarray):
        raise ValueError(f"its {name} is a {type(part).__name__} instead of an array")
    if part.ndim != ndim:
        raise ValueError(f"its {name} has {part.ndim} dimensions instead of {ndim}")


def _integers(part: Any, name: str) -> npt.NDArray[np.integer[Any]]:
    _check_array(part, name, 1)
    if part.dtype.kind not in "iu":
        raise ValueError(f"its {name} is of type {part.dtype}; integers are needed")
    return cast(npt.NDArray[np.integer[Any]], part)


def _check_range(named: npt.NDArray[np.integer[Any]], limit: int, what: str) -> None:
    if len(named) and not 0 <= int(named.min()) <= int(named.max()) < limit:
        wrong = named[(named < 0) | (named >= limit)][0]
        raise ValueError(f"{what} {wrong} is named; there are {limit}, counted from 0")


def _signed(part: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.signedinteger[Any]]:
    """Give checked indices in a type that SciPy's own have."""
    return part.astype(part.dtype if part.dtype.str[1:] in ("i4", "i8") else np.int64, copy=False)


def check_unique(ids: Sequence[Any], name: str) -> None:
    """Refuse an id that stands for several points of one map, or that no other can be equal to."""
    for row, one in enumerate(ids):
        if not isinstance(one, Hashable):
            raise TypeError(
                f"{name} has {one!r:.100} for row {row}, which is no id: of a {type(one).__name__} "
                "it is not certain what it equals. Use numbers or text"
            )
    for twice, times in Counter(ids).most_common(1):
        if times > 1:
            raise ValueError(f"{name} has {twice!r} {times} times; an id names one point")


def check_layout_dtype(dtype: Any) -> np.dtype[Any]:
    """Return float32 or float64, whichever `dtype` names."""
    try:
        checked: np.dtype[Any] = np.dtype(dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"dtype must be numpy.float32 or numpy.float64; got {dtype!r}") from error
    if checked not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be numpy.float32 or numpy.float64; got {dtype!r}")
    return checked
