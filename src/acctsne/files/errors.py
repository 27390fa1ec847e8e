"""What is wrong with a file, in one line that names it."""

import csv
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from acctsne.files.replacing import suffix_of

# What gzip, zlib, text decoding, csv and pyarrow raise for files that are cut short, or are none of
# theirs.
DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    OverflowError,
    KeyError,
    zlib.error,
    csv.Error,
)


class DataError(ValueError):
    """A file cannot be used; the message is one line that says which, where and why."""


@contextmanager
def unreadable(path: Path) -> Iterator[None]:
    """Name the file, in one line, in whatever a library raises for one that it cannot read.

    Around calls of libraries alone: nothing of ours may fail unseen in here.
    """
    try:
        yield
    except (ModuleNotFoundError, DataError):
        raise
    except MemoryError as error:
        raise _out_of_memory(path, error) from error
    except Exception as error:
        raise _not_readable(path, error) from error


@contextmanager
def damaged(path: Path) -> Iterator[None]:
    """Name the file in what a damaged one leads to where we read it ourselves.

    Errors that only a mistake in the program leads to pass.
    """
    try:
        yield
    except DataError:
        raise
    except MemoryError as error:
        raise _out_of_memory(path, error) from error
    except DAMAGE as error:
        raise _not_readable(path, error) from error


def _out_of_memory(path: Path, error: MemoryError) -> MemoryError:
    why = one_line(error) if str(error) else "memory ran out"
    return MemoryError(f"{path}: cannot be read: {why}")


def _not_readable(path: Path, error: Exception) -> DataError:
    """Make the error of a file that is damaged, or something else than its suffix says."""
    kind = suffix_of(path.with_suffix("") if suffix_of(path) == ".gz" else path)
    known = "text" if kind == ".txt" else kind[1:]
    return DataError(f"{path}: not a readable {known} file: {one_line(error)}")


def one_line(error: Exception) -> str:
    """Return the first line of an error's message, or the name of its type."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
