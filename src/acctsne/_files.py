"""What reading and writing files needs whatever the format: errors, extras, safe replacement."""

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType


class DataError(ValueError):
    """A file cannot be used; the message is one line that says which, where and why."""


def import_extra(module: str, extra: str) -> ModuleType:
    """Import an optional dependency, or say in one line what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"{package} is not installed; run: pip install 'acctsne[{extra}]'"
        ) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path beside `path` to write to, and move it into place if all went well.

    Whoever reads `path` sees the old file or the whole new one, and a failure leaves the old one.
    """
    # The suffix stays last: writers choose the format by it.
    beside = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    try:
        yield beside
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
