"""Options that say what to read from a file of data or of a map, and the reading."""

import argparse
from pathlib import Path

from acctsne.cli.messages import blaming
from acctsne.files import formats as io
from acctsne.files.replacing import suffix_of

# What a name that is not in the file was taken for: "no column 'x'", "no 'x' in obsm".
KINDS_OF_NAME = ("column ", "array ", "")


def add_labels_option(command: argparse._ActionsContainer) -> None:
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


def listed(text: str) -> list[str]:
    """Split a list of names."""
    return [name.strip() for name in text.split(",")]


def read_data(options: argparse.Namespace) -> io.Data:
    """Read DATA with its labels, from wherever these are."""
    own = is_file_of_labels(options.labels)
    try:
        data = io.read(
            options.data,
            labels=None if own else options.labels,
            key=options.key,
            columns=options.columns,
            drop=options.drop,
            header=options.header,
        )
    except io.DataError as error:
        raise io.DataError(in_flags(str(error), options)) from error
    return with_labels(data, options.labels) if own else data


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
    message = message.replace("by key", "by --key")
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
    key = io.OBSM_KEY if suffix_of(path) == ".h5ad" else None
    data = io.read(path, labels=None if own else labels, key=key)
    return with_labels(data, str(labels)) if own else data


def with_labels(data: io.Data, path: str) -> io.Data:
    """Add labels from a file of their own."""
    with blaming("--labels"):
        return io.Data(data.X, io.read_labels(path, data.X.shape[0]), path)


def is_file_of_labels(labels: str | None) -> bool:
    """Tell a file from the name of a column."""
    return labels is not None and Path(labels).is_file()
