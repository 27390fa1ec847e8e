"""What the program says: notes on stderr, figures on stdout."""

import errno
import json
import re
import warnings
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from io import TextIOBase
from typing import Any

from acctsne.runtime.errors import error_of
from acctsne.runtime.stderr import say


class ClosedStdout(TextIOBase):
    """In the place of a stdout that is not there, `>&-`: fails when there is something to write."""

    def write(self, _text: str) -> int:
        """Fail as a file would."""
        raise OSError(errno.EBADF, "stdout is closed")


def note(message: str) -> None:
    """Say something that is no result."""
    say(f"acctsne: {message}")


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Show warnings as lines for users, without places in the code."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_args, **_named: note(f"warning: {message}")
        yield


@contextmanager
def blaming(*flags: str) -> Iterator[None]:
    """Begin whatever goes wrong inside with the flags that it comes from."""
    try:
        yield
    except (ValueError, ModuleNotFoundError) as error:
        raise error_of(type(error), f"{' and '.join(flags)}: {error}") from error


@contextmanager
def blaming_arguments(flags: Mapping[str, str], given: Container[str]) -> Iterator[None]:
    """Begin an error with the flags of those arguments of a function that it speaks of."""
    try:
        yield
    except (ValueError, TypeError) as error:
        message = str(error)
        blamed = [
            flag
            for name, flag in flags.items()
            # An argument that was not given is only meant where it is spoken of as one: "metric"
            # and "angle" are words, too.
            if re.search(rf"\b{name}\b" if name in given else rf"\b{name}(=| \(| must )", message)
        ]
        if not blamed:
            raise
        raise error_of(type(error), f"{' and '.join(blamed)}: {message}") from error


def report(figures: dict[str, Any], as_json: bool) -> None:
    """Print named figures for a person or a program."""
    if as_json:
        print(json.dumps(figures))
        return
    width = max(map(len, figures)) + 2
    for name, figure in figures.items():
        print(f"{name:<{width}}{figure}")
