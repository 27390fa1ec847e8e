"""Options that say what to read from a file of data or of a map, and the reading."""

import argparse
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from acctsne.cli.messages import blaming, note
from acctsne.files import formats as io
from acctsne.files.h5ad import OBSM_KEY
from acctsne.files.numpy_arrays import MAP_NAME, has_map
from acctsne.files.records import Guess
from acctsne.files.replacing import suffix_of
from acctsne.runtime.progress import busy

# What a name that is not in the file was taken for: "no column 'x'", "no 'x' in obsm".
KINDS_OF_NAME = ("column ", "array ", "")

# What decides where something is guessed: the flags of arguments of `io.read`.
DECIDED_BY = {"header": "--header or --no-header"}


class TakesOptions(Protocol):
    """A command, or a group of its options."""

    def add_argument(self, *flags: str, **how: Any) -> argparse.Action:
        """Add an option."""
        ...


def add_labels_option(command: TakesOptions) -> None:
    """Add --labels."""
    command.add_argument(
        "--labels",
        metavar="COLUMN|FILE",
        help="a column or array of the data (h5ad: of obs), or a file with a label a sample",
    )


def add_reading_options(command: argparse.ArgumentParser) -> None:
    """Add what can be said about a file of data."""
    add_labels_option(command)
    command.add_argument("--key", help="array of an npz or zarr, or key of obsm in an h5ad")
    command.add_argument(
        "--columns", type=listed, metavar="NAME,...", help="columns of a table that are features"
    )
    command.add_argument(
        "--drop", type=listed, default=[], metavar="NAME,...", help="columns to leave out"
    )
    command.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="the first row of a csv names its columns (default: detected)",
    )
    command.add_argument(
        "--delimiter",
        metavar="CHARACTER",
        help="between the cells of a csv (default: comma, or what the first row has, ; or tab)",
    )


def listed(text: str) -> list[str]:
    """Split a list of names."""
    return [name.strip() for name in text.split(",")]


def read_data(options: argparse.Namespace) -> io.Data:
    """Read DATA with its labels, from wherever these are."""
    own = is_file_of_labels(options.labels)
    quiet = getattr(options, "quiet", False)
    if options.delimiter is not None and len(options.delimiter) != 1:
        options.usage_error(f"--delimiter must be one character; got {options.delimiter!r}")
    try:
        with busy(f"reading {options.data}", not quiet):
            data = io.read(
                options.data,
                labels=None if own else options.labels,
                key=options.key,
                columns=options.columns,
                drop=options.drop,
                header=options.header,
                delimiter=options.delimiter,
            )
    except io.DataError as error:
        raise io.DataError(in_flags(str(error), options)) from error
    if not quiet:
        say_guesses(options.data, data.guesses)
    return with_labels(data, options.labels) if own else data


def say_guesses(path: Path, guesses: Iterable[Guess]) -> None:
    """Tell what was decided without being told, and how to decide it."""
    for argument, what in guesses:
        flag = DECIDED_BY.get(argument, f"--{argument}")
        note(f"{path}: {what} (guessed; {flag} decides)")


def open_data(options: argparse.Namespace) -> io.StoredRows:
    """Open DATA, of which several processes each read a part."""
    try:
        return io.open_rows(
            options.data, key=options.key, columns=options.columns, drop=options.drop
        )
    except io.DataError as error:
        raise io.DataError(in_flags(str(error), options)) from error


def in_flags(message: str, options: argparse.Namespace) -> str:
    """Say an error of reading in the words of the command line."""
    for argument in ("labels", "drop"):
        message = message.replace(f"({argument})", f"(--{argument})")
    message = message.replace("by key", "by --key").replace("delimiter says", "--delimiter says")
    said = {
        "--labels": [options.labels],
        "--key": [options.key],
        "--columns": options.columns or [],
        "--drop": options.drop,
    }
    for flag, names in said.items():
        if any(f"no {what}{name!r}" in message for name in names for what in KINDS_OF_NAME):
            return f"{flag}: {message}"
    return message


def read_embedding(path: Path, labels: str | None) -> io.Data:
    """Read a map, with its labels if it has any."""
    own = is_file_of_labels(labels)
    key = OBSM_KEY if suffix_of(path) == ".h5ad" else None
    if suffix_of(path) == ".npz" and path.is_file() and has_map(path):
        key = MAP_NAME  # a fitted estimator has its data, too
    try:
        data = io.read(path, labels=None if own else labels, key=key)
    except io.DataError as error:
        about_labels = any(f"no {what}{labels!r}" in str(error) for what in KINDS_OF_NAME)
        if labels is None or not (about_labels or "holds no labels" in str(error)):
            raise
        raise io.DataError(f"--labels: {error}") from error
    if issparse(data.X):
        raise io.DataError(f"{path}: a sparse matrix; a map is dense, with points in rows")
    return with_labels(data, str(labels)) if own else data


def read_values(given: str, n_samples: int) -> npt.NDArray[np.float64]:
    """Read FILE, or a column of it as FILE:COLUMN, as numbers; NaN where one is missing."""
    path, column = Path(given), ""
    if not path.is_file() and ":" in given:
        name, _, column = given.rpartition(":")
        path = Path(name)
    if column:
        columns = io.read_columns(path, n_samples)
        if column not in columns:
            raise io.DataError(f"{path}: no column {column!r}; there are {', '.join(columns)}")
        values = columns[column]
    else:
        values = _only_values(path, n_samples)
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        name = f"column {column!r} holds" if column else "the file holds"
        raise io.DataError(f"{path}: {name} text; numbers are needed") from None


def _only_values(path: Path, n_samples: int) -> npt.NDArray[Any]:
    try:
        return io.read_labels(path, n_samples)
    except io.DataError:
        try:
            columns = io.read_columns(path, n_samples)
        except io.DataError:
            columns = {}
        if len(columns) < 2:
            raise
    raise io.DataError(
        f"{path}: {len(columns)} columns; choose one, as {path}:{next(iter(columns))}. There are "
        f"{', '.join(columns)}"
    )


def with_labels(data: io.Data, path: str) -> io.Data:
    """Add labels from a file of their own."""
    with blaming("--labels"):
        return replace(data, labels=io.read_labels(path, data.X.shape[0]), label_name=path)


def is_file_of_labels(labels: str | None) -> bool:
    """Tell a file from the name of a column."""
    return labels is not None and Path(labels).is_file()
