"""What the native core asks of several processes (native/include/acctsne/communicator.hpp)."""

from typing import Protocol

import numpy as np
import numpy.typing as npt


class Communicator(Protocol):
    """A process among others, and how they exchange bytes.

    All call the same methods in the same order. Parts and messages lie one after the other in their
    arrays, in the order of ranks; "ends" say where each of them does.
    """

    @property
    def rank(self) -> int:
        """Which process this is, from 0."""
        ...

    @property
    def size(self) -> int:
        """How many there are."""
        ...

    def gather(self, array: npt.NDArray[np.uint8], ends: list[int]) -> None:
        """Complete an array of which each process has filled its part."""

    def exchange(
        self,
        sent: npt.NDArray[np.uint8],
        sent_ends: list[int],
        received: npt.NDArray[np.uint8],
        received_ends: list[int],
    ) -> None:
        """Hand a message to every process, and take one from each."""
