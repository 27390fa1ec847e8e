"""What the program says: notes on stderr, figures on stdout."""

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from acctsne.runtime.errors import error_of


def note(message: str) -> None:
    """Say something that is no result."""
    print(f"acctsne: {message}", file=sys.stderr)


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


def report(figures: dict[str, Any], as_json: bool) -> None:
    """Print named figures for a person or a program."""
    if as_json:
        print(json.dumps(figures))
        return
    width = max(map(len, figures)) + 2
    for name, figure in figures.items():
        print(f"{name:<{width}}{figure}")
