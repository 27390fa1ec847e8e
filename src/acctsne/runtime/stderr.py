"""Lines on stderr."""

import os
import sys
from contextlib import suppress


def say(line: str) -> None:
    """Write a line to stderr without tearing a progress bar.

    One that cannot be written, as the disk is full, the terminal gone or stderr closed, is lost:
    the work does not end for it.
    """
    # Where nobody has loaded it there is no bar, and to load it takes longer than to say a line.
    tqdm = sys.modules.get("tqdm")
    with suppress(OSError, ValueError):
        if sys.stderr is None:
            return
        if tqdm is None:
            print(line, file=sys.stderr)
        else:
            tqdm.tqdm.write(line, file=sys.stderr)


def drop_unwritten() -> None:
    """Let go of lines that stderr did not take, which Python would fail to write when it ends."""
    with suppress(ValueError):  # it is closed
        if sys.stderr is None:
            return
        try:
            sys.stderr.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
