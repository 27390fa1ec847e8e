"""Runs a case in a child process with limits on time and memory, and judges how it ended."""

import contextlib
import os
import pickle
import re
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import NamedTuple

# What a user may be told. Anything else is a mistake of ours.
DOCUMENTED = (ValueError, TypeError, OSError, MemoryError, ImportError)
# Words of the binding, which no user should ever see.
INTERNAL = ("incompatible function arguments", "nanobind")
# Words of Python's and of libraries' own about our code or our arrays, which say to no user what to
# change.
FOREIGN = (
    "all the input array",
    "can't multiply sequence",
    "cannot be interpreted as an integer",
    "cannot reshape",
    "could not be broadcast",
    "could not broadcast",
    "division by zero",
    "has no attribute",
    "has no len()",
    "inhomogeneous",
    "is ambiguous",
    "invalid literal for int",
    "is not callable",
    "is not iterable",
    "is not subscriptable",
    "list index out of range",
    "must be real number, not",
    "not supported between instances",
    "object is not",
    "only length-1 arrays",
    "out of bounds for axis",
    "positional argument",
    "setting an array element with a sequence",
    "shape mismatch",
    "too many indices",
    "ufunc '",
    "unexpected keyword argument",
    "unhashable type",
    "unsupported operand",
)
# After these stands what a library says of a damaged file, in its own words.
QUOTED = re.compile("(not a readable|is not a complete acctsne file).*")

SECONDS = 60
MEMORY = 4 << 30


class Outcome(NamedTuple):
    good: bool
    what: str


def run_case(case: Callable[[], None]) -> Outcome:
    """Run a case in a fork of this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        outcome = Outcome(False, "no answer")
        try:
            outcome = _attempt(case)
        finally:
            with open(writing, "wb") as pipe:
                pickle.dump(tuple(outcome), pipe)
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        content = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return Outcome(False, f"killed by {signal.Signals(os.WTERMSIG(status)).name}")
    if not content:
        return Outcome(False, "ended without a word")
    return Outcome(*pickle.loads(content))


def _attempt(case: Callable[[], None]) -> Outcome:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(SECONDS)
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.dup2(devnull, 2)
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case()
    except DOCUMENTED as error:
        said = f"{type(error).__name__}: {error}"
        if foreign_words(said) or not str(error):
            return Outcome(False, _shown(error))
        return Outcome(True, said)
    except BaseException as error:
        return Outcome(False, _shown(error))
    return Outcome(True, "done")


def foreign_words(said: str) -> list[str]:
    """Find in what a user is told the words that are not for users."""
    ours = "\n".join(QUOTED.sub("", line) for line in said.splitlines())
    return [word for word in (*INTERNAL, *FOREIGN) if word in ours]


def _shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)[-3:])
