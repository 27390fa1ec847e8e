"""What reading and writing files needs whatever the format: errors, safe replacement."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class DataError(ValueError):
    """A file cannot be used; the message is one line that says which, where and why."""


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return the suffix in lower case: X.NPY is an npy file, too."""
    return Path(path).suffix.lower()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path beside `path` to write to, and move it into place if all went well.

    Whoever reads `path` sees the old file or the whole new one, and a failure leaves the old one.
    An OSError on the way, such as a full disk, names the file.
    """
    # The suffix stays last: writers choose the format by it.
    beside = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    try:
        yield beside
        beside.replace(path)
    except OSError as error:
        raise OSError(error.errno, f"{path} cannot be written: {_reason(error)}") from error
    finally:
        beside.unlink(missing_ok=True)


def _reason(error: OSError) -> str:
    # numpy counts what it could not write, and gives no number.
    if error.errno is None and "requested and" in str(error):
        return os.strerror(errno.ENOSPC)
    return error.strerror or " ".join(str(error).split())


def reserve(path: Path, n_bytes: int) -> None:
    """Make sure that a file can grow by so much; raises OSError if the disk has no room.

    For libraries that do not survive a full disk: HDF5 crashes the process at its end.
    """
    with open(path, "ab") as file:
        before = file.tell()
        try:
            block = bytes(1 << 20)
            for start in range(0, n_bytes, len(block)):
                file.write(block[: n_bytes - start])
            file.flush()
            os.fsync(file.fileno())
        finally:
            file.truncate(before)
