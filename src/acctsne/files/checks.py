"""What a file may hold: a table of finite numbers, a map, and labels that every format can hold."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

from acctsne.files.columns import as_labels, label_text
from acctsne.files.errors import DataError, one_line
from acctsne.files.records import Array, Data, PathLike, Written
from acctsne.runtime.labels import label_array
from acctsne.runtime.tables import check_representable

# Rows looked at in one go when searching a memory-mapped array for values that are not finite.
ROWS_AT_ONCE = 65536


def check_data(path: Path, data: Data) -> Data:
    """Check that the data is a matrix of finite numbers with a label for each row."""
    X = csr_matrix(data.X) if issparse(data.X) else np.asanyarray(data.X)
    check_table(path, X.shape, X.dtype)
    _check_finite(path, X)
    if data.labels is not None and data.labels.shape != (X.shape[0],):
        raise DataError(
            f"{path}: labels {data.label_name!r} of shape {data.labels.shape} for "
            f"{X.shape[0]} samples"
        )
    if data.labels is not None:
        check_labels(path, data.labels)
    return replace(data, X=X)


def check_table(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuse what is no table of numbers."""
    if len(shape) != 2:
        raise DataError(
            f"{path}: an array of shape {shape}; a two-dimensional one is needed, samples in rows"
        )
    if dtype.kind not in "biuf":
        raise DataError(f"{path}: values of type {dtype}; numbers are needed")
    if 0 in shape:
        raise DataError(f"{path}: an empty array of shape {shape}")


def _check_finite(path: Path, X: Any) -> None:
    values = X.data if issparse(X) else X
    for start in range(0, len(values), ROWS_AT_ONCE):
        bad = np.argwhere(~np.isfinite(values[start : start + ROWS_AT_ONCE]))
        if len(bad) == 0:
            continue
        first = start + int(bad[0, 0])
        if issparse(X):
            row = int(np.searchsorted(X.indptr, first, side="right")) - 1
            column, value = int(X.indices[first]), values[first]
        else:
            row, column = first, int(bad[0, 1])
            value = values[row, column]
        what = "missing value" if np.isnan(value) else f"{value} is not a finite number"
        raise DataError(f"{path}: row {row + 1}, column {column + 1}: {what}")


def check_labels(path: Path, cells: Array) -> None:
    """Refuse labels that no format can hold, before a map is made that is to be written with them.

    Text with NUL, or with halves of characters as damaged UTF-16 has them.
    """
    _check_label_type(path, cells)
    if cells.dtype.kind not in "OU":
        return
    for row, label in enumerate(cells.tolist()):
        if isinstance(label, str) and ("\0" in label or not _is_unicode(label)):
            raise DataError(f"{path}: label {row + 1}, {label!r:.50}, is not text of Unicode")


def _check_label_type(path: Path, cells: Array) -> None:
    if cells.dtype.kind == "V":
        raise DataError(f"{path}: labels of type {cells.dtype}; a number or a text is needed")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_written(
    path: Path, Y: Any, labels: Any, source: PathLike | None, neighbors: Any
) -> Written:
    """Check that there are numbers to write, and for each row of them what goes with it."""
    Y = _array_of(path, Y, "Y")
    if Y.ndim != 2 or Y.dtype.kind not in "biuf" or 0 in Y.shape:
        raise ValueError(
            f"{path}: Y must be a two-dimensional array of numbers, not empty; got {Y.dtype} of "
            f"shape {Y.shape}"
        )
    n_rows = len(Y)
    if labels is not None:
        labels = _labels_to_write(path, labels, n_rows)
    if neighbors is not None:
        neighbors = _neighbors_to_write(path, neighbors, n_rows)
    return Written(Y, labels, source, neighbors)


def _array_of(path: Path, given: Any, name: str) -> Array:
    """Give an array in the machine's byte order and a type that files have."""
    check_representable(given, f"{path}: {name}")
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise ValueError(f"{path}: {name} is no array: {one_line(error)}") from error
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        return array.astype(np.float64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _labels_to_write(path: Path, given: Any, n_rows: int) -> Array:
    """Give labels that every format can hold: numbers, times or text, and None."""
    try:
        labels = label_array(given)
    except ValueError as error:
        raise ValueError(f"{path}: labels are no array: {one_line(error)}") from error
    if labels.shape != (n_rows,):
        raise ValueError(
            f"{path}: labels must have one entry for each of the {n_rows} rows of Y; got shape "
            f"{labels.shape}"
        )
    _check_label_type(path, labels)
    try:
        labels = as_labels(labels)
        label_text(labels)
    except Exception as error:  # whatever an object does when it is asked for its text
        raise ValueError(
            f"{path}: column 'label' cannot be made text: {one_line(error)}"
        ) from error
    check_labels(path, labels)
    return labels


def check_cells(path: Path, labels: Array) -> None:
    """Refuse labels that are too long for a cell of a csv or tsv, of which readers want an end."""
    cells = label_text(labels)
    longest = csv.field_size_limit()
    if np.char.str_len(cells).max(initial=0) > longest:
        row = int(np.char.str_len(cells).argmax()) + 1
        raise ValueError(
            f"{path}: label {row}, {str(cells[row - 1])!r:.50}, is longer than the {longest} "
            "characters that a cell may have"
        )


def _neighbors_to_write(path: Path, given: Any, n_rows: int) -> tuple[Array, Array]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ValueError(
            f"{path}: neighbors must be indices and distances, both of shape "
            f"({n_rows}, n_neighbors); got no pair of arrays"
        )
    indices, distances = (_array_of(path, rows, "neighbors") for rows in given)
    shapes = (indices.shape, distances.shape)
    if shapes[0] != shapes[1] or len(shapes[0]) != 2 or shapes[0][0] != n_rows or 0 in shapes[0]:
        raise ValueError(
            f"{path}: neighbors must be indices and distances, both of shape "
            f"({n_rows}, n_neighbors); got {', '.join(map(str, shapes))}"
        )
    if indices.dtype.kind not in "iu" or distances.dtype.kind not in "iuf":
        raise ValueError(
            f"{path}: neighbors must be integers and real numbers; got {indices.dtype} and "
            f"{distances.dtype}"
        )
    for wrong, values, limit in (
        ((indices < 0) | (indices >= n_rows), indices, f"indices go from 0 to {n_rows - 1}"),
        (~(np.isfinite(distances) & (distances >= 0)), distances, "distances are 0 or positive"),
    ):
        if wrong.any():
            row, column = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            raise ValueError(f"{path}: row {row} of neighbors has {values[row, column]}; {limit}")
    return indices, distances
