"""What reading and writing files needs whatever the format: errors, safe replacement."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class DataError(ValueError):
    """A file cannot be used; the message is one line that says which, where and why."""


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
