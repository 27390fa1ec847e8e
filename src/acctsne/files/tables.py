"""Tables of named columns: csv, tsv, parquet, arrow and feather.

A column is one of three: a feature, the label, or left out. Text cannot be a feature, so a single
column of text is taken for the label; so is a column of numbers with the name of one.
"""

import csv
import gzip
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TextIO, cast

import numpy as np
import numpy.typing as npt

from acctsne.files.replacing import DataError, suffix_of
from acctsne.files.stored_rows import StoredRows
from acctsne.runtime.labels import missing_labels
from acctsne.runtime.optional import require

# Names of columns that nobody means as features, in lower case.
LABEL_NAMES = ("label", "labels", "class", "target")

# Names of the first column under which pandas and R write the names of rows.
INDEX_NAMES = ("", "Unnamed: 0")

# Names of the coordinates of an embedding.
AXES = ("x", "y", "z")

# The column of the data's nearest neighbours, under the name and in the form that embedding-atlas
# documents: {"ids": [...], "distances": [...]}, with row numbers from 0.
NEIGHBORS = "neighbors"


@dataclass(frozen=True)
class Choice:
    """What the user says about a table's columns; None leaves it to detection."""

    labels: str | None = None
    columns: Sequence[str] | None = None
    drop: Sequence[str] = ()
    header: bool | None = None


class Columns(NamedTuple):
    """Positions of the columns in use."""

    features: list[int]
    label: int | None


class ReadTable(NamedTuple):
    """Samples in rows, cells of their labels, and the name of the column that these come from."""

    X: npt.NDArray[Any]
    labels: npt.NDArray[Any] | None
    label_name: str | None


def choose_columns(
    path: Path, names: Sequence[str], is_text: Sequence[bool], choice: Choice
) -> Columns:
    """Decide which columns are features and which one is the label."""
    for name in (choice.labels, *(choice.columns or ()), *choice.drop):
        if name is not None and name not in names:
            raise DataError(f"{path}: no column {name!r}; there are {_listed(names)}")
    dropped = {names.index(name) for name in choice.drop}
    if names[0] in INDEX_NAMES and len(names) > 1:
        dropped.add(0)
    candidates = [i for i in range(len(names)) if i not in dropped]

    text = [i for i in candidates if is_text[i]]
    label: int | None = None
    if choice.labels is not None:
        label = names.index(choice.labels)
    else:
        named = [i for i in candidates if names[i].lower() in LABEL_NAMES]
        if len(named) == 1:
            label = named[0]
        elif len(text) == 1 and len(candidates) > 1:
            label = text[0]

    if choice.columns is not None:
        features = [names.index(name) for name in choice.columns]
    else:
        features = [i for i in candidates if i != label]
    not_numbers = [names[i] for i in features if is_text[i]]
    if not_numbers:
        raise DataError(
            f"{path}: column {_listed(not_numbers)} holds text; name the column of labels "
            "(labels), or leave out what is no feature (drop)"
        )
    if not features:
        raise DataError(f"{path}: no column of numbers left to use as features")
    return Columns(features, label)


def as_labels(cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Make labels of cells: None for empty and missing ones, integers if all others are.

    As integers 10 sorts after 9. Text that an integer would not give back stays text: 01 is another
    label than 1.

    Examples
    --------
    >>> as_labels(np.array(["9", "10", ""])).tolist()
    [9, 10, None]
    >>> as_labels(np.array(["01", "1"])).tolist()
    ['01', '1']
    """
    if cells.dtype.kind not in "OU":
        return cells
    present = label_text(cells) != ""
    values: npt.NDArray[Any] = cells[present]
    if values.dtype == object:
        listed = values.tolist()
        plain = {type(value) for value in listed} <= {int, float}
        values = np.array(listed) if plain else values.astype(str)
    if values.dtype.kind == "U":
        with suppress(ValueError, OverflowError):
            numbers = values.astype(np.int64)
            values = numbers if (numbers.astype(str) == values).all() else values
    if present.all():
        return values
    labels = np.full(len(cells), None)
    labels[present] = values.astype(object)
    return labels


def label_text(cells: npt.NDArray[Any]) -> npt.NDArray[np.str_]:
    """Give labels as text, which is empty for those that are missing."""
    return np.where(missing_labels(cells), "", cells.astype(object)).astype(str)


def read_column(path: Path, n_rows: int) -> npt.NDArray[np.str_]:
    """Read a text file with a label a line, with or without a header; a blank line has none.

    Blank lines at the end are labels if so many rows are there, and nothing otherwise.
    """
    with open(path, encoding="utf-8-sig") as file:
        cells = [line.strip().strip('"') for line in file]
    has_header = _column_has_header(cells)
    begins = [
        begin
        for begin in (0, 1)
        if has_header in (None, bool(begin))
        and len(cells) >= begin + n_rows
        and not any(cells[begin + n_rows :])
    ]
    if len(begins) == 1:
        return np.array(cells[begins[0] :][:n_rows])
    if begins:
        raise DataError(
            f"{path}: is {cells[0]!r} a header and the blank line at the end a missing label, or "
            "is neither? Remove one of the two"
        )
    while cells and not cells[-1]:
        cells.pop()
    if not cells:
        raise DataError(f"{path}: the file is empty")
    taken = "a header" if has_header else "a label"
    blank = cells.count("")
    raise DataError(
        f"{path}: {len(cells) - bool(has_header)} labels for {n_rows} samples; the first line, "
        f"{cells[0]!r}, was taken for {taken}"
        + (f", and blank lines, {blank} of them, for missing labels" if blank else "")
    )


def _column_has_header(cells: list[str]) -> bool | None:
    """Tell whether the first cell of a column is its name; None if it may be."""
    first, *below = cells or [""]
    numbers = [_is_number(cell) for cell in below if cell]
    if first in below:
        return False
    if _is_number(first):
        # pandas calls a column without a name 0.
        return False if any(numbers) else None
    if first.lower() in LABEL_NAMES or (first and numbers and all(numbers)):
        return True
    return None


def read_delimited(path: Path, choice: Choice) -> ReadTable:
    """Read a csv or tsv file, plain or gzip."""
    delimiter = _delimiter(path)
    rows = _rows(path, delimiter)
    first = next(rows, None)
    if first is None:
        raise DataError(f"{path}: the file is empty")
    second = next(rows, None)
    has_header = choice.header
    if has_header is None:
        has_header = _looks_like_header(first[1], second[1] if second else None)
    sample = second if has_header else first
    if sample is None:
        raise DataError(f"{path}: a header and no rows")
    width = len(first[1])
    if has_header:
        names = [cell.strip().removeprefix("# ") for cell in first[1]]
    else:
        names = [f"column {i + 1}" for i in range(width)]
    if len(sample[1]) != width:
        _fail_at_first_bad_cell(path, delimiter, has_header, names, list(range(width)))
    is_text = [bool(cell.strip()) and not _is_number(cell) for cell in sample[1]]
    chosen = choose_columns(path, names, is_text, choice)

    # All columns in one pass, so that a row of another length is noticed: labels as the order of
    # their first appearance, columns that are left out as zeros.
    orders: dict[str, int] = {}

    def order(cell: str) -> int:
        return orders.setdefault(cell.strip(), len(orders))

    converters: dict[int | str, Callable[[str], int]] = {
        i: _nothing for i in range(width) if i not in chosen.features
    }
    if chosen.label is not None:
        converters[chosen.label] = order
    loaded = None
    with _open(path) as file, suppress(ValueError):
        loaded = np.loadtxt(
            file,
            delimiter=delimiter,
            skiprows=first[0] if has_header else 0,
            converters=converters,
            quotechar='"',
            comments=None,
            encoding="utf-8",
            ndmin=2,
        )
    if loaded is None or loaded.shape[1] != width or not np.isfinite(loaded).all():
        _fail_at_first_bad_cell(path, delimiter, has_header, names, chosen.features)
    X = loaded if not converters else loaded[:, chosen.features]
    if chosen.label is None:
        return ReadTable(X, None, None)
    labels = np.array(list(orders))[loaded[:, chosen.label].astype(np.intp)]
    return ReadTable(X, labels, names[chosen.label])


def read_arrow(path: Path, choice: Choice) -> ReadTable:
    """Read a parquet, arrow or feather file."""
    if suffix_of(path) == ".parquet":
        table = require("pyarrow.parquet", "parquet").read_table(path)
    else:
        table = require("pyarrow.feather", "parquet").read_table(path)
    columns = _arrow_columns(path, table.schema, table.num_rows, choice)
    X = _numbers(path, table, columns, 0)
    if columns.label is None:
        return ReadTable(X, None, None)
    labels = table.column(columns.label)
    # NumPy has no missing integers: all would become floats.
    listed = labels.null_count > 0
    cells = np.array(labels.to_pylist(), dtype=object) if listed else labels.to_numpy()
    return ReadTable(X, cells, columns.label)


def open_parquet(path: Path, choice: Choice) -> StoredRows:
    """Open a parquet file, of whose row groups those are read that hold the rows asked for."""
    parquet = require("pyarrow.parquet", "parquet")
    with parquet.ParquetFile(path) as file:
        metadata = file.metadata
        columns = _arrow_columns(path, file.schema_arrow, metadata.num_rows, choice)
        groups = [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)]
    begins = np.concatenate([[0], np.cumsum(groups)]).tolist()

    def read(begin: int, end: int) -> npt.NDArray[Any]:
        rows = np.empty((end - begin, len(columns.features)), columns.dtype)
        with parquet.ParquetFile(path) as file:
            for group, first in enumerate(begins[:-1]):
                start, stop = max(begin, first), min(end, begins[group + 1])
                if start < stop:
                    table = file.read_row_group(group, columns=columns.features)
                    part = table.slice(start - first, stop - start)
                    rows[start - begin : stop - begin] = _numbers(path, part, columns, start)
        return rows

    return StoredRows(path, (metadata.num_rows, len(columns.features)), columns.dtype, read)


class ArrowColumns(NamedTuple):
    """Names of the columns in use, and what their numbers become."""

    features: list[str]
    label: str | None
    dtype: np.dtype[Any]


def _arrow_columns(path: Path, schema: Any, n_rows: int, choice: Choice) -> ArrowColumns:
    types = require("pyarrow", "parquet").types
    # pandas keeps an unnamed index in columns of this name.
    names = [name for name in schema.names if not name.startswith("__index_level_")]
    if NEIGHBORS in names and types.is_struct(schema.field(NEIGHBORS).type):
        names.remove(NEIGHBORS)  # beside a map that we wrote: no part of it
    if not names or n_rows == 0:
        raise DataError(f"{path}: the table has no rows or no columns")
    kinds = [schema.field(name).type for name in names]
    is_text = [
        not (types.is_integer(t) or types.is_floating(t) or types.is_boolean(t)) for t in kinds
    ]
    chosen = choose_columns(path, names, is_text, choice)
    single = all(types.is_float32(kinds[i]) for i in chosen.features)
    label = None if chosen.label is None else names[chosen.label]
    dtype = np.dtype(np.float32 if single else np.float64)
    return ArrowColumns([names[i] for i in chosen.features], label, dtype)


def _numbers(path: Path, table: Any, columns: ArrowColumns, first_row: int) -> npt.NDArray[Any]:
    """Put columns beside each other; `first_row` is where the table begins in the file."""
    for name in columns.features:
        if table.column(name).null_count:
            row = first_row + table.column(name).is_null().to_pylist().index(True)
            raise DataError(f"{path}: row {row + 1}, column {name!r}: missing value")
    stacked = np.column_stack([table.column(name).to_numpy() for name in columns.features])
    return stacked.astype(columns.dtype, copy=False)


def write_delimited(
    file: TextIO, Y: npt.NDArray[Any], labels: npt.NDArray[Any] | None, delimiter: str = ","
) -> None:
    """Write an embedding as a table with a header, with all bits of its precision."""
    digits = 9 if Y.dtype == np.float32 else 17
    columns = _embedding_columns(Y, labels)
    cells = [
        np.where(missing_labels(values), "", values.astype(object)).tolist()
        if name == "label"
        else [f"{value:.{digits}g}" for value in values.tolist()]
        for name, values in columns.items()
    ]
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*cells, strict=True))


def write_arrow(
    path: Path,
    Y: npt.NDArray[Any],
    labels: npt.NDArray[Any] | None,
    neighbors: tuple[npt.NDArray[Any], npt.NDArray[Any]] | None = None,
) -> None:
    """Write an embedding as a parquet, arrow or feather file."""
    arrow = require("pyarrow", "parquet")
    columns: dict[str, Any] = _embedding_columns(Y, labels)
    if neighbors is not None:
        columns[NEIGHBORS] = arrow.StructArray.from_arrays(
            [_lists(rows) for rows in neighbors], ["ids", "distances"]
        )
    table = arrow.table(columns)
    if suffix_of(path) == ".parquet":
        require("pyarrow.parquet", "parquet").write_table(table, path)
    else:
        require("pyarrow.feather", "parquet").write_feather(table, path)


def _lists(rows: npt.NDArray[Any]) -> Any:
    """Give a two-dimensional array as a column of lists."""
    arrow = require("pyarrow", "parquet")
    ends = np.arange(0, rows.size + 1, rows.shape[1])
    return arrow.LargeListArray.from_arrays(ends, rows.ravel())


def _embedding_columns(
    Y: npt.NDArray[Any], labels: npt.NDArray[Any] | None
) -> dict[str, npt.NDArray[Any]]:
    dimensions = Y.shape[1]
    names = AXES[:dimensions] if dimensions <= len(AXES) else [f"y{i}" for i in range(dimensions)]
    columns = dict(zip(names, Y.T, strict=True))
    return columns if labels is None else {**columns, "label": labels}


def _nothing(cell: str) -> int:
    return 0


def _open(path: Path) -> TextIO:
    if suffix_of(path) == ".gz":
        return cast(TextIO, gzip.open(path, "rt", encoding="utf-8-sig", newline=""))
    return open(path, encoding="utf-8-sig", newline="")


def _delimiter(path: Path) -> str:
    if ".tsv" in path.name.lower():
        return "\t"
    with _open(path) as file:
        first = file.readline()
    # Where the comma is the decimal sign, spreadsheets separate by semicolons.
    return ";" if ";" in first and "," not in first else ","


def _rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Give the rows that are not blank, with their line numbers."""
    with _open(path) as file:
        reader = csv.reader(file, delimiter=delimiter)
        for row in reader:
            if row:
                yield reader.line_num, row


def _looks_like_header(first: list[str], second: list[str] | None) -> bool:
    if second is None:
        return False
    numbers = [_is_number(cell) for cell in first]
    if not any(numbers):
        return True
    # pandas names the columns of an array 0, 1, 2, ... A short row may well hold these by chance.
    if len(first) >= 5 and first == [str(i) for i in range(len(first))]:
        return True
    return any(
        not number and (name.lower() in (*LABEL_NAMES, *INDEX_NAMES) or _is_number(below))
        for number, name, below in zip(numbers, first, second, strict=False)
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _fail_at_first_bad_cell(
    path: Path, delimiter: str, has_header: bool, names: list[str], features: list[int]
) -> NoReturn:
    """Find what the fast reader did not like, and say where it is."""
    rows = _rows(path, delimiter)
    if has_header:
        next(rows)
    for line, row in rows:
        if len(row) != len(names):
            raise DataError(f"{path}: row {line} has {len(row)} columns instead of {len(names)}")
        for i in features:
            where = f"{path}: row {line}, column {names[i]!r}"
            if not row[i].strip():
                raise DataError(f"{where}: missing value")
            if not _is_number(row[i]):
                raise DataError(f"{where}: {row[i]!r} is not a number")
            if not isfinite(float(row[i])):
                raise DataError(f"{where}: {row[i].strip()} is not a finite number")
    raise DataError(f"{path}: not a table of numbers")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
