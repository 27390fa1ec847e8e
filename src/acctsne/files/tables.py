"""Tables of named columns: csv, tsv, parquet, arrow and feather.

A column is one of three: a feature, the label, or left out. Text cannot be a feature, so a single
column of text is taken for the label; so is a column of numbers with the name of one. Whatever is
decided here and could be meant otherwise is a `Guess`, for the user to see.
"""

import csv
import gzip
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
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

# Names, in lower case, of columns that number the rows: the first by its name alone, the others if
# they count up by one.
ID_NAME = "id"
COUNTER_NAMES = ("index", "idx", "row", "rowid", "row_id", "row_number", "number", "no", "nr", "#")

# Cells without a value, as pandas and R write them. Not "Na", which is sodium.
MISSING_CELLS = ("", "NA", "N/A", "NaN", "nan")

# Rows, and of wide tables cells, that tell columns of text from columns of numbers; more are looked
# at if a column is blank in all of these.
SAMPLE_ROWS = 1000
SAMPLE_CELLS = 1_000_000

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
    delimiter: str | None = None


class Guess(NamedTuple):
    """What was decided without being told, and the argument by which the user decides it."""

    argument: str
    what: str


class Columns(NamedTuple):
    """Positions of the columns in use."""

    features: list[int]
    label: int | None
    counters: list[int]  # of the features, those that are none if they count the rows
    guesses: tuple[Guess, ...]


class ReadTable(NamedTuple):
    """Samples in rows, cells of their labels, and the name of the column that these come from."""

    X: npt.NDArray[Any]
    labels: npt.NDArray[Any] | None
    label_name: str | None
    guesses: tuple[Guess, ...]


def choose_columns(
    path: Path, names: Sequence[str], is_text: Sequence[bool], choice: Choice
) -> Columns:
    """Decide which columns are features and which one is the label."""
    guesses = []
    for name in (choice.labels, *(choice.columns or ()), *choice.drop):
        if name is not None and name not in names:
            raise DataError(f"{path}: no column {name!r}; there are {_listed(names)}")
    dropped = {names.index(name) for name in choice.drop}
    free = choice.columns is None
    if names[0] in INDEX_NAMES and len(names) > 1 and 0 not in dropped:
        dropped.add(0)
        if free and choice.labels != names[0]:
            guesses.append(Guess("columns", "the first column, which has no name, is left out"))
    candidates = [i for i in range(len(names)) if i not in dropped]

    text = [i for i in candidates if is_text[i]]
    label: int | None = None
    others: list[int] = []  # that have the name of a label, and are none
    if choice.labels is not None:
        label = names.index(choice.labels)
    else:
        named = [i for i in candidates if names[i].lower() in LABEL_NAMES]
        if named:
            # Text is what cannot be a feature in any case.
            label = next((i for i in named if is_text[i]), named[0])
            others = [i for i in named if i != label]
        elif len(text) == 1 and len(candidates) > 1:
            label = text[0]
    if others:
        left = " and left out" if free else ""
        guesses.append(
            Guess(
                "labels",
                f"column {_listed([names[i] for i in others])} has the name of labels, too, and "
                f"is not taken for them{left}",
            )
        )

    counters: list[int] = []
    if choice.columns is not None:
        features = [names.index(name) for name in choice.columns]
    else:
        features = [i for i in candidates if i != label and i not in others]
        ids = [i for i in features if names[i].lower() == ID_NAME and not is_text[i]]
        if ids and len(ids) < len(features):
            features = [i for i in features if i not in ids]
            guesses.append(_left_out(names[i] for i in ids))
        counters = [i for i in features if names[i].lower() in COUNTER_NAMES and not is_text[i]]
    not_numbers = [names[i] for i in features if is_text[i]]
    if not_numbers:
        raise DataError(
            f"{path}: column {_listed(not_numbers)} holds text; name the column of labels "
            "(labels), or leave out what is no feature (drop)"
        )
    if not features:
        raise DataError(f"{path}: no column of numbers left to use as features")
    return Columns(features, label, counters, tuple(guesses))


def _left_out(names: Iterable[str]) -> Guess:
    return Guess("columns", f"column {_listed(list(names))} numbers the rows and is left out")


def counts_rows(values: npt.NDArray[Any]) -> bool:
    """Tell a column that goes up by one from row to row.

    Examples
    --------
    >>> counts_rows(np.array([3.0, 4.0, 5.0])), counts_rows(np.array([3.0, 5.0, 6.0]))
    (True, False)
    """
    return len(values) > 1 and bool((np.diff(values) == 1).all())


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
        # Integers beyond 64 bits stay what they are as text only.
        exact = all(-(2**63) <= value < 2**63 for value in listed if isinstance(value, int))
        values = np.array(listed) if plain and exact else label_text(values)
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
    missing = missing_labels(cells)
    if cells.dtype.kind in "OS":
        # Bytes that are no text are shown as what they are.
        texts = (c.decode(errors="backslashreplace") if isinstance(c, bytes) else c for c in cells)
        cells = np.fromiter(texts, object, len(cells))
    return np.where(missing, "", cells.astype(object)).astype(str)


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


class Dialect(NamedTuple):
    """How a text file writes its cells."""

    delimiter: str
    decimal_comma: bool = False

    def is_number(self, cell: str) -> bool:
        """Tell a number by whether it can be read as one."""
        try:
            self.number(cell)
        except ValueError:
            return False
        return True

    def number(self, cell: str) -> float:
        """Read a number."""
        if not self.decimal_comma:
            return float(cell)
        if "." in cell:
            raise ValueError(f"{cell!r} has a decimal point among decimal commas")
        return float(cell.replace(",", "."))


class Sampled(NamedTuple):
    """The first rows of a text file, without its header, and what they tell."""

    dialect: Dialect
    names: list[str]
    is_text: list[bool]
    has_header: bool
    rows_above: int  # lines of the file before the first row of data
    guesses: list[Guess]


def read_delimited(path: Path, choice: Choice) -> ReadTable:
    """Read a csv or tsv file, plain or gzip."""
    sampled = _sample(path, choice)
    dialect, names = sampled.dialect, sampled.names
    width = len(names)
    chosen = choose_columns(path, names, sampled.is_text, choice)

    # All columns in one pass, so that a row of another length is noticed: labels as the order of
    # their first appearance, columns that are left out as zeros.
    orders: dict[str, int] = {}

    def order(cell: str) -> int:
        return orders.setdefault("" if _is_missing(cell) else cell.strip(), len(orders))

    converters: dict[int | str, Callable[[str], float]] = {
        i: _nothing for i in range(width) if i not in chosen.features
    }
    if chosen.label is not None:
        converters[chosen.label] = order
    if dialect.decimal_comma:
        converters |= dict.fromkeys(chosen.features, dialect.number)
    loaded = None
    with _open(path) as file, suppress(ValueError):
        loaded = np.loadtxt(
            file,
            delimiter=dialect.delimiter,
            skiprows=sampled.rows_above,
            converters=converters,
            quotechar='"',
            comments=None,
            encoding="utf-8",
            ndmin=2,
        )
    if loaded is None or loaded.shape[1] != width or not np.isfinite(loaded).all():
        _fail_at_first_bad_cell(path, sampled, chosen.features)
    counters = [i for i in chosen.counters if counts_rows(loaded[:, i])]
    features = [i for i in chosen.features if i not in counters] or chosen.features
    guesses = [*sampled.guesses, *chosen.guesses]
    if len(features) < len(chosen.features):
        guesses.append(_left_out(names[i] for i in counters))
    X = loaded if features == list(range(width)) else loaded[:, features]
    if chosen.label is None:
        return ReadTable(X, None, None, tuple(guesses))
    labels = np.array(list(orders))[loaded[:, chosen.label].astype(np.intp)]
    return ReadTable(X, labels, names[chosen.label], tuple(guesses))


def _sample(path: Path, choice: Choice) -> Sampled:
    """Look at the first rows: how cells are written, what columns are called, which hold text."""
    guesses = []
    delimiter = choice.delimiter
    if delimiter is None:
        delimiter = _delimiter(path)
        if delimiter == ";":
            guesses.append(Guess("delimiter", "cells are separated by semicolons"))
    rows = _rows(path, delimiter)
    first = next(rows, None)
    if first is None:
        raise DataError(f"{path}: the file is empty")
    width = len(first[1])
    below = _sample_rows(rows, width)
    decimal_comma = delimiter != "," and _has_decimal_commas(path, [first[1], *below])
    dialect = Dialect(delimiter, decimal_comma)
    if decimal_comma:
        guesses.append(Guess("delimiter", "numbers have a decimal comma"))
    has_header = choice.header
    if has_header is None:
        has_header = _looks_like_header(first[1], below, dialect)
        what = "names the columns" if has_header else "is a sample and names no columns"
        guesses.append(Guess("header", f"the first row {what}"))
    if has_header and not below:
        raise DataError(f"{path}: a header and no rows")
    if has_header:
        names = [cell.strip().removeprefix("# ") for cell in first[1]]
    else:
        names = [f"column {i + 1}" for i in range(width)]
        below = [first[1], *below]
    above = first[0] if has_header else 0
    is_text = [_is_text([row[i] for row in below if i < len(row)], dialect) for i in range(width)]
    sampled = Sampled(dialect, names, is_text, has_header, above, guesses)
    if any(len(row) != width for row in below):
        _fail_at_first_bad_cell(path, sampled, [])
    return sampled


def _sample_rows(rows: Iterator[tuple[int, list[str]]], width: int) -> list[list[str]]:
    """Take rows until enough are there and every column has had a cell with something in it."""
    sample = []
    enough = min(SAMPLE_ROWS, SAMPLE_CELLS // width + 1)
    blank = set(range(width))
    for _, row in rows:
        sample.append(row)
        blank -= {i for i in blank if i < len(row) and not _is_missing(row[i])}
        if len(row) != width or (len(sample) >= enough and not blank):
            break
    return sample


def _is_text(cells: Sequence[str], dialect: Dialect) -> bool:
    """Tell a column of text by most of its cells; a single word among numbers is a mistake."""
    present = [cell for cell in cells if not _is_missing(cell)]
    numbers = sum(dialect.is_number(cell) for cell in present)
    return numbers < len(present) / 2


def _has_decimal_commas(path: Path, rows: Sequence[Sequence[str]]) -> bool:
    cells = [cell.strip() for row in rows for cell in row]
    commas = next((cell for cell in cells if _DECIMAL_COMMA.fullmatch(cell)), None)
    points = next((cell for cell in cells if _DECIMAL_POINT.fullmatch(cell)), None)
    if commas is not None and points is not None:
        raise DataError(
            f"{path}: numbers with a decimal comma, {commas!r}, and with a decimal point, "
            f"{points!r}; write all of them with a point"
        )
    return commas is not None


_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")


def read_arrow(path: Path, choice: Choice) -> ReadTable:
    """Read a parquet, arrow or feather file."""
    table = _read_arrow_table(path)
    columns = _arrow_columns(path, table.schema, table.num_rows, choice)
    columns = columns.without_counters(table)
    X = _numbers(path, table, columns, 0)
    if columns.label is None:
        return ReadTable(X, None, None, columns.guesses)
    labels = table.column(columns.label)
    # NumPy has no missing integers: all would become floats.
    listed = labels.null_count > 0
    cells = np.array(labels.to_pylist(), dtype=object) if listed else labels.to_numpy()
    return ReadTable(X, cells, columns.label, columns.guesses)


def delimited_columns(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read every column of a csv or tsv file with a header, numbers or not."""
    sampled = _sample(path, Choice(header=True))
    rows = [row for _, row in _rows(path, sampled.dialect.delimiter)][1:]
    if any(len(row) != len(sampled.names) for row in rows):
        _fail_at_first_bad_cell(path, sampled, [])
    columns: dict[str, npt.NDArray[Any]] = {}
    for i, name in enumerate(sampled.names):
        cells = [None if _is_missing(row[i]) else row[i].strip() for row in rows]
        try:
            numbers = [np.nan if cell is None else sampled.dialect.number(cell) for cell in cells]
            columns[_unused(name, columns)] = np.array(numbers)
        except ValueError:
            columns[_unused(name, columns)] = np.array(cells, dtype=object)
    return columns


def arrow_columns(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read every column of a parquet, arrow or feather file, numbers or not."""
    table = _read_arrow_table(path)
    columns: dict[str, npt.NDArray[Any]] = {}
    for name in table.column_names:
        column = table.column(name)
        columns[name] = (
            column.to_numpy()
            if _is_numeric(column.type)
            else np.array(column.to_pylist(), dtype=object)
        )
    return columns


def _unused(name: str, taken: Container[str]) -> str:
    """Make a name that no other column has."""
    names = (name if i == 1 else f"{name} ({i})" for i in count(1))
    return next(each for each in names if each not in taken)


def open_parquet(path: Path, choice: Choice) -> StoredRows:
    """Open a parquet file, of whose row groups those are read that hold the rows asked for."""
    parquet = require("pyarrow.parquet", "parquet")
    with open(path, "rb") as opened, parquet.ParquetFile(opened) as file:
        metadata = file.metadata
        columns = _arrow_columns(path, file.schema_arrow, metadata.num_rows, choice)
        columns = columns.without_counters(file.read(columns=columns.counters))
        groups = [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)]
    begins = np.concatenate([[0], np.cumsum(groups)]).tolist()

    def read(begin: int, end: int) -> npt.NDArray[Any]:
        rows = np.empty((end - begin, len(columns.features)), columns.dtype)
        with open(path, "rb") as opened, parquet.ParquetFile(opened) as file:
            for group, first in enumerate(begins[:-1]):
                start, stop = max(begin, first), min(end, begins[group + 1])
                if start < stop:
                    table = file.read_row_group(group, columns=columns.features)
                    part = table.slice(start - first, stop - start)
                    rows[start - begin : stop - begin] = _numbers(path, part, columns, start)
        return rows

    shape = metadata.num_rows, len(columns.features)
    return StoredRows(path, shape, columns.dtype, read, guesses=columns.guesses)


def _read_arrow_table(path: Path) -> Any:
    # From an open file: pyarrow takes only names that are UTF-8.
    with open(path, "rb") as file:
        if suffix_of(path) == ".parquet":
            return require("pyarrow.parquet", "parquet").read_table(file)
        return require("pyarrow.feather", "parquet").read_table(file, memory_map=False)


def _is_numeric(kind: Any) -> bool:
    types = require("pyarrow", "parquet").types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


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
            if not table.column(name).null_count and counts_rows(table.column(name).to_numpy())
        ]
        features = [name for name in self.features if name not in counting]
        if not counting or not features:
            return self
        return self._replace(features=features, guesses=(*self.guesses, _left_out(counting)))


def _arrow_columns(path: Path, schema: Any, n_rows: int, choice: Choice) -> ArrowColumns:
    types = require("pyarrow", "parquet").types
    # pandas keeps an unnamed index in columns of this name.
    names = [name for name in schema.names if not name.startswith("__index_level_")]
    if NEIGHBORS in names and types.is_struct(schema.field(NEIGHBORS).type):
        names.remove(NEIGHBORS)  # beside a map that we wrote: no part of it
    if not names or n_rows == 0:
        raise DataError(f"{path}: the table has no rows or no columns")
    kinds = [schema.field(name).type for name in names]
    is_text = [not _is_numeric(kind) for kind in kinds]
    chosen = choose_columns(path, names, is_text, choice)
    single = all(types.is_float32(kinds[i]) for i in chosen.features)
    label = None if chosen.label is None else names[chosen.label]
    dtype = np.dtype(np.float32 if single else np.float64)
    features, counters = ([names[i] for i in some] for some in (chosen.features, chosen.counters))
    return ArrowColumns(features, label, dtype, counters, chosen.guesses)


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
    # The module quotes the character that ends its lines, and not the other one.
    returns = labels is not None and any("\r" in cell for cell in map(str, cells[-1]))
    writer = csv.writer(
        file,
        delimiter=delimiter,
        lineterminator="\n",
        quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL,
    )
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
    if labels is not None:
        columns["label"] = _arrow_labels(arrow, labels)
    table = arrow.table(columns)
    # Into an open file: pyarrow takes only names that are UTF-8.
    with open(path, "wb") as file:
        if suffix_of(path) == ".parquet":
            require("pyarrow.parquet", "parquet").write_table(table, file)
        else:
            require("pyarrow.feather", "parquet").write_feather(table, file)


def _arrow_labels(arrow: Any, labels: npt.NDArray[Any]) -> Any:
    """Give labels as a column; as text if their type, such as complex numbers, has none."""
    try:
        return arrow.array(labels)
    except (arrow.ArrowException, TypeError, ValueError, OverflowError):
        return arrow.array([text or None for text in label_text(labels).tolist()])


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


def _nothing(cell: str) -> float:
    return 0


def _open(path: Path) -> TextIO:
    if suffix_of(path) == ".gz":
        return cast(TextIO, gzip.open(path, "rt", encoding="utf-8-sig", newline=""))
    return open(path, encoding="utf-8-sig", newline="")


def _delimiter(path: Path) -> str:
    if ".tsv" in path.name.lower():
        return "\t"
    with _open(path) as file:
        first = next(csv.reader([file.readline()], delimiter=";"), [])
    # Where the comma is the decimal sign, spreadsheets separate by semicolons.
    commas = [cell for cell in first if "," in cell]
    decimal = all(_DECIMAL_COMMA.fullmatch(cell.strip()) for cell in commas)
    return ";" if len(first) > 1 and decimal else ","


def _rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Give the rows that are not blank, with their line numbers."""
    with _open(path) as file:
        reader = csv.reader(file, delimiter=delimiter)
        for row in reader:
            if row:
                yield reader.line_num, row


def _looks_like_header(first: list[str], below: list[list[str]], dialect: Dialect) -> bool:
    if not below:
        return False
    missing = [_is_missing(cell) for cell in first]
    named = [
        not gone and not dialect.is_number(cell) for gone, cell in zip(missing, first, strict=True)
    ]
    if any(named) and all(gone or name for gone, name in zip(missing, named, strict=True)):
        return True
    # pandas names the columns of an array 0, 1, 2, ... A short row may well hold these by chance,
    # unless the column of the rows' names, which has none, comes first.
    if len(first) >= 5 and first == [str(i) for i in range(len(first))]:
        return True
    if first[0] in INDEX_NAMES and len(first) > 1:
        return (
            not any(missing[1:])
            and len(set(first)) == len(first)
            and all(
                name or cell.isdecimal() for name, cell in zip(named[1:], first[1:], strict=True)
            )
        )
    return any(
        name
        and (
            cell.strip().lower() in LABEL_NAMES
            or not _is_text([row[i] for row in below if i < len(row)], dialect)
        )
        for i, (name, cell) in enumerate(zip(named, first, strict=True))
    )


def _is_missing(cell: str) -> bool:
    return cell.strip() in MISSING_CELLS


def _is_number(cell: str) -> bool:
    return Dialect(",").is_number(cell)


def _fail_at_first_bad_cell(path: Path, sampled: Sampled, features: list[int]) -> NoReturn:
    """Find what the fast reader did not like, and say where it is."""
    dialect, names = sampled.dialect, sampled.names
    rows = _rows(path, dialect.delimiter)
    if sampled.has_header:
        next(rows)
    for line, row in rows:
        if len(row) != len(names):
            raise DataError(f"{path}: row {line} has {len(row)} columns instead of {len(names)}")
        for i in features:
            where = f"{path}: row {line}, column {names[i]!r}"
            if _is_missing(row[i]):
                written = f", written {row[i].strip()}" if row[i].strip() else ""
                raise DataError(f"{where}: missing value{written}")
            if not dialect.is_number(row[i]):
                raise DataError(f"{where}: {row[i]!r} is not a number")
            if not isfinite(dialect.number(row[i])):
                raise DataError(f"{where}: {row[i].strip()} is not a finite number")
    raise DataError(f"{path}: not a table of numbers")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
