"""What readers of files are told and give, and what writers take, whatever the format."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy.typing as npt

Array = npt.NDArray[Any]
PathLike = str | os.PathLike[str]


class Guess(NamedTuple):
    """What was decided without being told, and the argument by which the user decides it."""

    argument: str
    what: str


@dataclass(frozen=True)
class Data:
    """What a file holds."""

    X: Any
    """Samples in rows: an array, or a CSR matrix."""

    labels: npt.NDArray[Any] | None = None
    """One label a sample, if the file has labels; None or NaN for a sample without one."""

    label_name: str | None = None
    """The name of the column or array that they come from."""

    guesses: tuple[Guess, ...] = ()
    """What was decided without being told: the argument of :func:`read` that decides it, and a
    sentence."""

    feature_names: tuple[str, ...] | None = None
    """The names of the columns of X, of a table that has different ones."""


@dataclass(frozen=True)
class Wanted:
    """What is to be taken from a file; None leaves it to detection."""

    key: str | None = None
    labels: str | None = None
    # The next four are for tables alone.
    columns: Sequence[str] | None = None
    drop: Sequence[str] = ()
    header: bool | None = None
    delimiter: str | None = None


class Written(NamedTuple):
    """What is to be written into a file; a format leaves out what it has no room for."""

    Y: Array
    labels: Array | None
    source: PathLike | None
    neighbors: tuple[Array, Array] | None


def not_meant(others: Sequence[str]) -> tuple[Guess, ...]:
    """Say that X was taken, where there are arrays that could be meant instead."""
    return (Guess("key", f"X is the data, not {' or '.join(others)}"),) if others else ()
