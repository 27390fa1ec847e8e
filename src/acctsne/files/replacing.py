"""A file is replaced whole or not at all, whatever its format."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return the suffix in lower case: X.NPY is an npy file, too."""
    return Path(path).suffix.lower()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path beside `path` to write to, and move it into place if all went well.

    Whoever reads `path` sees the old file or the whole new one, after a power cut too, and a
    failure leaves the old one. Of several that write at once, the last to end remains. The new file
    has the old one's permissions, and where `path` is a link it is what the link leads to that is
    replaced. Folders, devices and pipes are not. An OSError on the way, such as a full disk, names
    the file.
    """
    with _naming(path):
        target = Path(os.path.realpath(path))
        beside, mode = _place_beside(target)
        try:
            _make_file(beside, mode)
            yield beside
            _flush(beside)
            if mode is not None:
                beside.chmod(mode)
            beside.replace(target)
            _flush_folder(target.parent)
        finally:
            _remove(beside)


def check_replaceable(path: Path) -> None:
    """Raise the OSError that replacing a file would end with, as far as it can be foreseen."""
    with _naming(path):
        beside, mode = _place_beside(Path(os.path.realpath(path)))
        try:
            _make_file(beside, mode)
        finally:
            _remove(beside)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in an OSError, whatever it was about on the way."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, f"{path} cannot be written: {_reason(error)}") from error


def _place_beside(target: Path) -> tuple[Path, int | None]:
    """Choose a name that nobody else writes to; returns also the mode of the file it replaces."""
    # The suffix stays last: writers choose the format by it. The rest is short, as the name itself
    # may be as long as the system allows.
    name = f".{target.stem[:20]}.{secrets.token_hex(6)}.part{target.suffix}"
    beside = target.with_name(name)
    try:
        found = target.stat().st_mode
    except FileNotFoundError:
        return beside, None
    if stat.S_ISDIR(found):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(found):
        # Moving a file there would take /dev/null, or the pipe that somebody reads from, away.
        raise OSError(errno.EINVAL, "it is a device, a pipe or a socket, no file")
    return beside, stat.S_IMODE(found)


def _make_file(beside: Path, mode: int | None) -> None:
    """Make an empty file in the place of one of some mode.

    Nobody may read what is written who may not read the old file, from the beginning on.
    """
    os.close(
        os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if mode is None else 0o600)
    )


def _remove(beside: Path) -> None:
    """Remove what is still there, also if Ctrl-C is pressed once more, out of impatience.

    Why it could not be made or moved is the error that counts.
    """
    with suppress(OSError):
        try:
            beside.unlink(missing_ok=True)
        except KeyboardInterrupt:
            beside.unlink(missing_ok=True)
            raise


def _flush(path: Path) -> None:
    """Wait until a file is on the disk, and not only on its way there."""
    with open(path, "r+b") as file:
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system has a way to ask for it.

    The file is in its place by now; some network drives refuse.
    """
    if os.name == "nt":
        return
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


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
