"""Rows in a file, of which a part is read at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from acctsne.files.records import Array, Guess


@dataclass(frozen=True)
class StoredRows:
    """A table of numbers in a file that has not been read yet.

    :func:`acctsne.io.open_rows` makes it.
    """

    path: Path
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    _read: Callable[[int, int], Array]
    mapped: Array | None = None
    """All of it, where the file can be mapped into memory, which reads nothing yet."""

    guesses: tuple[Guess, ...] = ()
    """What was decided without being told: the argument that decides it, and a sentence."""

    def read(self, begin: int = 0, end: int | None = None) -> Array:
        """Read the rows from `begin` to `end`, and as little else as the format allows.

        Parameters
        ----------
        begin : int, default=0
            The first row.
        end : int, default=None
            The one after the last; None for all rows that follow.

        Returns
        -------
        rows : ndarray of shape (end - begin, n_features)
            The rows, of type `dtype`.
        """
        begin, end, _ = slice(begin, end).indices(self.shape[0])
        return self._read(begin, max(begin, end))

    @classmethod
    def of_mapped(cls, path: Path, array: Array) -> "StoredRows":
        """Take an array that is mapped from a file."""

        def read(begin: int, end: int) -> Array:
            return array[begin:end]

        return cls(path, (array.shape[0], array.shape[1]), array.dtype, read, array)
