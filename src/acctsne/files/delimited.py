"""Tables as text, csv and tsv, plain or gzip: how cells are written is told from the first rows."""

import csv
import gzip
import re
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from math import isfinite
from pathlib import Path
from typing import NamedTuple, NoReturn, TextIO, cast

import numpy as np
import numpy.typing as npt

from acctsne.files.columns import (
    INDEX_NAMES,
    LABEL_NAMES,
    MISSING_CELLS,
    choose_columns,
    counts_rows,
    embedding_columns,
    left_out,
)
from acctsne.files.errors import DataError, damaged
from acctsne.files.records import Array, Data, Guess, Wanted, Written
from acctsne.files.replacing import suffix_of
from acctsne.runtime.labels import missing_labels

# Rows, and of wide tables cells, that tell columns of text from columns of numbers; more are looked
# at if a column is blank in all of these.
SAMPLE_ROWS = 1000
SAMPLE_CELLS = 1_000_000

# What a csv may have in the place of commas: where these are the decimal sign, spreadsheets write
# semicolons.
SEPARATORS = {";": "semicolons", "\t": "tabs"}

_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")


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
        """Read a number, as NumPy does: Python takes 1_000, and digits of other scripts, too."""
        if "_" in cell or not cell.strip().isascii():
            raise ValueError(f"{cell!r} is not a number")
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


def read_delimited(path: Path, wanted: Wanted) -> Data:
    """Read a csv or tsv file, plain or gzip."""
    with damaged(path):
        return _read(path, wanted)


def _read(path: Path, wanted: Wanted) -> Data:
    sampled = _sample(path, wanted)
    dialect, names = sampled.dialect, sampled.names
    width = len(names)
    if sampled.is_text == [True]:
        raise DataError(
            f"{path}: column {names[0]!r:.50} holds text, and is the only one; cells are taken to "
            f"be separated by {dialect.delimiter!r}; delimiter says otherwise"
        )
    chosen = choose_columns(path, names, sampled.is_text, wanted)

    # All columns in one pass, so that a row of another length is noticed: labels as the order of
    # their first appearance, columns that are left out as zeros.
    orders: dict[str, int] = {}
    several_lines = False

    def nothing(cell: str) -> int:
        nonlocal several_lines
        several_lines |= _has_several_lines(cell)
        return 0

    def order(cell: str) -> int:
        nothing(cell)
        return orders.setdefault("" if _is_missing(cell) else cell.strip(), len(orders))

    converters: dict[int | str, Callable[[str], float]] = {
        i: nothing for i in range(width) if i not in chosen.features
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
    if several_lines:
        _refuse_open_quotes(path, dialect)
    counters = [i for i in chosen.counters if counts_rows(loaded[:, i])]
    features = [i for i in chosen.features if i not in counters] or chosen.features
    guesses = [*sampled.guesses, *chosen.guesses]
    if len(features) < len(chosen.features):
        guesses.append(left_out(names[i] for i in counters))
    X = loaded if features == list(range(width)) else loaded[:, features]
    named = sampled.has_header and len(set(names)) == width
    feature_names = tuple(names[i] for i in features) if named else None
    data = Data(X, guesses=tuple(guesses), feature_names=feature_names)
    if chosen.label is None:
        return data
    labels = np.array(list(orders))[loaded[:, chosen.label].astype(np.intp)]
    return replace(data, labels=labels, label_name=names[chosen.label])


def _sample(path: Path, wanted: Wanted) -> Sampled:
    """Look at the first rows: how cells are written, what columns are called, which hold text."""
    guesses = []
    delimiter = wanted.delimiter
    if delimiter is None:
        delimiter = _delimiter(path)
        if delimiter in SEPARATORS and not _is_tsv(path):
            guesses.append(Guess("delimiter", f"cells are separated by {SEPARATORS[delimiter]}"))
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
    has_header = wanted.header
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


def delimited_columns(path: Path) -> dict[str, Array]:
    """Read every column of a csv or tsv file with a header, numbers or not."""
    with damaged(path):
        sampled = _sample(path, Wanted(header=True))
        rows = [row for _, row in _rows(path, sampled.dialect.delimiter)][1:]
    if any(len(row) != len(sampled.names) for row in rows):
        _fail_at_first_bad_cell(path, sampled, [])
    columns: dict[str, Array] = {}
    for i, name in enumerate(sampled.names):
        cells = [None if _is_missing(row[i]) else row[i].strip() for row in rows]
        try:
            numbers = [np.nan if cell is None else sampled.dialect.number(cell) for cell in cells]
            columns[_unused(name, columns)] = np.array(numbers)
        except ValueError:
            columns[_unused(name, columns)] = np.array(cells, dtype=object)
    return columns


def _unused(name: str, taken: Container[str]) -> str:
    """Make a name that no other column has."""
    names = (name if i == 1 else f"{name} ({i})" for i in count(1))
    return next(each for each in names if each not in taken)


def read_column(path: Path, n_rows: int) -> npt.NDArray[np.str_]:
    """Read a text file with a label a line, with or without a header; a blank line has none.

    Blank lines at the end are labels if so many rows are there, and nothing otherwise.
    """
    with damaged(path), open(path, encoding="utf-8-sig") as file:
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


def write_delimited_file(beside: Path, written: Written) -> None:
    """Write a map and its labels."""
    delimiter = "\t" if suffix_of(beside) == ".tsv" else ","
    with open(beside, "w", encoding="utf-8", newline="") as text:
        write_delimited(text, written.Y, written.labels, delimiter)


def write_delimited(file: TextIO, Y: Array, labels: Array | None, delimiter: str = ",") -> None:
    """Write an embedding as a table with a header, with all bits of its precision."""
    digits = 9 if Y.dtype == np.float32 else 17
    columns = embedding_columns(Y, labels)
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


def _open(path: Path) -> TextIO:
    if suffix_of(path) == ".gz":
        return cast(TextIO, gzip.open(path, "rt", encoding="utf-8-sig", newline=""))
    return open(path, encoding="utf-8-sig", newline="")


def _is_tsv(path: Path) -> bool:
    return ".tsv" in path.name.lower()


def _delimiter(path: Path) -> str:
    if _is_tsv(path):
        return "\t"
    with _open(path) as file:
        line = file.readline()
    for delimiter in SEPARATORS:
        first: list[str] = []
        # A wide row of another delimiter is a single cell here, which may be too long to be one.
        with suppress(csv.Error):
            first = next(csv.reader([line], delimiter=delimiter), [])
        commas = [cell for cell in first if "," in cell]
        if len(first) > 1 and all(_DECIMAL_COMMA.fullmatch(cell.strip()) for cell in commas):
            return delimiter
    return ","


def _rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Give the rows that are not blank, with their line numbers."""
    with _open(path) as file:
        reader = csv.reader(file, delimiter=delimiter)
        try:
            for row in reader:
                if row:
                    yield reader.line_num, row
        except csv.Error as error:
            raise DataError(
                f"{path}: row {reader.line_num}: {error}. Cells are taken to be separated by "
                f"{delimiter!r}, and to end where a quote does; delimiter says otherwise"
            ) from error


def _looks_like_header(first: list[str], below: list[list[str]], dialect: Dialect) -> bool:
    missing = [_is_missing(cell) for cell in first]
    named = [
        not gone and not dialect.is_number(cell) for gone, cell in zip(missing, first, strict=True)
    ]
    if any(named) and all(gone or name for gone, name in zip(missing, named, strict=True)):
        return True
    if not below:
        return False
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


def _has_several_lines(cell: str) -> bool:
    return "\n" in cell or "\r" in cell


def _refuse_open_quotes(path: Path, dialect: Dialect) -> None:
    """Refuse quotes that do not close where they should: their cell has taken the rows below.

    Of files with a cell of several lines, which few have. Others may have quotes anywhere.
    """
    begin = 1
    with _open(path) as file:
        reader = csv.reader(file, delimiter=dialect.delimiter, strict=True)
        try:
            for _ in reader:
                begin = reader.line_num + 1
        except csv.Error as error:
            raise DataError(
                f"{path}: row {begin}: a cell begins with a quote and does not end with one "
                f"({error}); close it, or write a quote of the text twice between quotes"
            ) from error


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
                if _has_several_lines(row[i]):
                    _refuse_open_quotes(path, dialect)
                raise DataError(f"{where}: {row[i]!r:.50} is not a number")
            if not isfinite(dialect.number(row[i])):
                raise DataError(f"{where}: {row[i].strip()} is not a finite number")
    raise DataError(f"{path}: not a table of numbers")
