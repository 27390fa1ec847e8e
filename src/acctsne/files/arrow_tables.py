"""Tables of typed columns: parquet, arrow and feather files, through pyarrow."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from acctsne.files.columns import (
    choose_columns,
    counts_rows,
    embedding_columns,
    label_text,
    left_out,
)
from acctsne.files.errors import DataError, damaged, unreadable
from acctsne.files.records import Array, Data, Guess, Wanted, Written
from acctsne.files.replacing import suffix_of
from acctsne.files.stored_rows import StoredRows
from acctsne.runtime.optional import require

# The column of the data's nearest neighbours, under the name and in the form that embedding-atlas
# documents: {"ids": [...], "distances": [...]}, with row numbers from 0.
NEIGHBORS = "neighbors"

# How an arrow file begins that is a stream of batches, without a list of them at its end.
STREAM = b"\xff\xff\xff\xff"

# pyarrow's threads abort a program that ends while they start, as one in five does that only reads
# a file on a busy machine. It is told to do without.
ALONE = {"use_threads": False}


def read_arrow(path: Path, wanted: Wanted) -> Data:
    """Read a parquet, arrow or feather file."""
    with damaged(path):
        return _read(path, wanted)


def _read(path: Path, wanted: Wanted) -> Data:
    table = _read_arrow_table(path)
    columns = _arrow_columns(path, table.schema, table.num_rows, wanted)
    columns = columns.without_counters(table)
    X = _numbers(path, table, columns, 0)
    data = Data(X, guesses=columns.guesses, feature_names=tuple(columns.features))
    if columns.label is None:
        return data
    labels = table.column(columns.label)
    # NumPy has no missing integers: all would become floats.
    listed = labels.null_count > 0
    cells = np.array(labels.to_pylist(), dtype=object) if listed else labels.to_numpy()
    return replace(data, labels=cells, label_name=columns.label)


def arrow_columns(path: Path) -> dict[str, Array]:
    """Read every column of a parquet, arrow or feather file, numbers or not."""
    with unreadable(path):
        table = _read_arrow_table(path)
        return {name: _values(table.column(name)) for name in table.column_names}


def _values(column: Any) -> Array:
    if _is_numeric(column.type):
        return _array(column)
    return np.array(column.to_pylist(), dtype=object)


def open_parquet(path: Path, wanted: Wanted) -> StoredRows:
    """Open a parquet file, of whose row groups those are read that hold the rows asked for."""
    with unreadable(path), _opened_parquet(path) as file:
        metadata = file.metadata
        columns = _arrow_columns(path, file.schema_arrow, metadata.num_rows, wanted)
        columns = columns.without_counters(file.read(columns=columns.counters, **ALONE))
        groups = [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)]
    begins = np.concatenate([[0], np.cumsum(groups)]).tolist()

    def read(begin: int, end: int) -> Array:
        rows = np.empty((end - begin, len(columns.features)), columns.dtype)
        with unreadable(path), _opened_parquet(path) as file:
            for group, first in enumerate(begins[:-1]):
                start, stop = max(begin, first), min(end, begins[group + 1])
                if start < stop:
                    table = file.read_row_group(group, columns=columns.features, **ALONE)
                    part = table.slice(start - first, stop - start)
                    rows[start - begin : stop - begin] = _numbers(path, part, columns, start)
        return rows

    shape = metadata.num_rows, len(columns.features)
    return StoredRows(path, shape, columns.dtype, read, guesses=columns.guesses)


@contextmanager
def _opened_parquet(path: Path) -> Iterator[Any]:
    parquet = require("pyarrow.parquet", "parquet")
    # From an open file: pyarrow takes only names that are UTF-8. Buffers are filled by threads.
    with open(path, "rb") as file, parquet.ParquetFile(file, pre_buffer=False) as opened:
        _check_names(path, opened.schema_arrow.names)
        yield opened


def _read_arrow_table(path: Path) -> Any:
    if suffix_of(path) == ".parquet":
        with _opened_parquet(path) as file:
            return file.read(**ALONE)
    arrow = require("pyarrow", "parquet")
    held = path.read_bytes()
    # What is in memory is read by no other thread, an open file is.
    file = arrow.BufferReader(held)
    if held.startswith(STREAM):
        table = arrow.ipc.open_stream(file).read_all()
    else:
        table = require("pyarrow.feather", "parquet").read_table(file, **ALONE)
    _check_names(path, table.column_names)
    return table


def _check_names(path: Path, names: list[str]) -> None:
    """Refuse names that several columns have, by which they are found."""
    for name, times in Counter(names).most_common(1):
        if times > 1:
            raise DataError(
                f"{path}: several columns are called {name!r}; give them different names"
            )


def _is_numeric(kind: Any) -> bool:
    types = require("pyarrow", "parquet").types
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(test(kind) for test in tests)


def _array(column: Any) -> Array:
    """Give a column of numbers as an array; decimals as double precision, which NumPy has."""
    arrow = require("pyarrow", "parquet")
    decimal = arrow.types.is_decimal(column.type)
    return np.asarray((column.cast(arrow.float64()) if decimal else column).to_numpy())


class ArrowColumns(NamedTuple):
    """Names of the columns in use, and what their numbers become."""

    features: list[str]
    label: str | None
    dtype: np.dtype[Any]
    counters: list[str]
    guesses: tuple[Guess, ...]

    def without_counters(self, table: Any) -> "ArrowColumns":
        """Leave out those that count the rows."""
        counting = [
            name
            for name in self.counters
            if not table.column(name).null_count and counts_rows(_array(table.column(name)))
        ]
        features = [name for name in self.features if name not in counting]
        if not counting or not features:
            return self
        return self._replace(features=features, guesses=(*self.guesses, left_out(counting)))


def _arrow_columns(path: Path, schema: Any, n_rows: int, wanted: Wanted) -> ArrowColumns:
    types = require("pyarrow", "parquet").types
    # pandas keeps an unnamed index in columns of this name.
    names = [name for name in schema.names if not name.startswith("__index_level_")]
    if NEIGHBORS in names and types.is_struct(schema.field(NEIGHBORS).type):
        names.remove(NEIGHBORS)  # beside a map that we wrote: no part of it
    if not names or n_rows == 0:
        raise DataError(f"{path}: the table has no rows or no columns")
    kinds = [schema.field(name).type for name in names]
    is_time = [types.is_temporal(kind) for kind in kinds]
    is_nested = [types.is_nested(kind) for kind in kinds]
    is_text = [
        not (_is_numeric(kind) or time or nested)
        for kind, time, nested in zip(kinds, is_time, is_nested, strict=True)
    ]
    unfit = {"times": is_time, "several values in each row": is_nested}
    chosen = choose_columns(path, names, is_text, wanted, unfit)
    if chosen.label is not None and is_nested[chosen.label]:
        raise DataError(
            f"{path}: column {names[chosen.label]!r} holds several values in each row "
            f"({kinds[chosen.label]}), which is no label; name another (labels)"
        )
    single = all(types.is_float32(kinds[i]) for i in chosen.features)
    label = None if chosen.label is None else names[chosen.label]
    dtype = np.dtype(np.float32 if single else np.float64)
    features, counters = ([names[i] for i in some] for some in (chosen.features, chosen.counters))
    return ArrowColumns(features, label, dtype, counters, chosen.guesses)


def _numbers(path: Path, table: Any, columns: ArrowColumns, first_row: int) -> Array:
    """Put columns beside each other; `first_row` is where the table begins in the file."""
    for name in columns.features:
        if table.column(name).null_count:
            row = first_row + table.column(name).is_null().to_pylist().index(True)
            raise DataError(f"{path}: row {row + 1}, column {name!r}: missing value")
    stacked = np.column_stack([_array(table.column(name)) for name in columns.features])
    return stacked.astype(columns.dtype, copy=False)


def write_arrow(path: Path, written: Written) -> None:
    """Write a map, its labels and its neighbours as a parquet, arrow or feather file."""
    Y, labels, _, neighbors = written
    arrow = require("pyarrow", "parquet")
    columns: dict[str, Any] = embedding_columns(Y, labels)
    if neighbors is not None:
        columns[NEIGHBORS] = arrow.StructArray.from_arrays(
            [_lists(rows) for rows in neighbors], ["ids", "distances"]
        )
    if labels is not None:
        columns["label"] = _arrow_labels(arrow, labels)
    table = arrow.table(columns)
    # Into an open file: pyarrow takes only names that are UTF-8.
    with open(path, "wb") as file:
        if suffix_of(path) == ".parquet":
            require("pyarrow.parquet", "parquet").write_table(table, file)
        else:
            require("pyarrow.feather", "parquet").write_feather(table, file)


def _arrow_labels(arrow: Any, labels: Array) -> Any:
    """Give labels as a column; as text if their type, such as complex numbers, has none."""
    try:
        return arrow.array(labels)
    except (arrow.ArrowException, TypeError, ValueError, OverflowError):
        return arrow.array([text or None for text in label_text(labels).tolist()])


def _lists(rows: Array) -> Any:
    """Give a two-dimensional array as a column of lists."""
    arrow = require("pyarrow", "parquet")
    ends = np.arange(0, rows.size + 1, rows.shape[1])
    return arrow.LargeListArray.from_arrays(ends, rows.ravel())
