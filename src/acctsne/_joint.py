"""The two forms that P is held in before the optimiser has its own."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne import _core


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a view that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, eq=False)
class Conditional:
    """Each sample's own distribution over its neighbours.

    P is the mean of it and its transpose, divided by the number of samples; if `equal`, P has the
    same value wherever that is not zero.
    """

    indices: npt.NDArray[np.int32]  # ascending within each row
    values: npt.NDArray[Any]
    equal: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "indices", read_only(self.indices))
        object.__setattr__(self, "values", read_only(self.values))

    @property
    def n_samples(self) -> int:
        """The number of rows."""
        return len(self.indices)

    def symmetrized(self, threads: int) -> "Matrix":
        """Make P."""
        return Matrix(*_core.symmetrize(self.indices, self.values, self.equal, threads))

    def optimizer_input(self) -> tuple[Any, ...]:
        """Return what the native optimiser takes in place of P."""
        return self.indices, self.values, self.equal

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what a file keeps."""
        return {"indices": self.indices, "values": self.values}


@dataclass(frozen=True, eq=False)
class Matrix:
    """P itself: row i is `columns[offsets[i]:offsets[i + 1]]` and the `values` there."""

    offsets: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]
    values: npt.NDArray[Any]

    def __post_init__(self) -> None:
        for name in ("offsets", "columns", "values"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def n_samples(self) -> int:
        """The number of rows."""
        return len(self.offsets) - 1

    def optimizer_input(self) -> tuple[Any, ...]:
        """Return what the native optimiser takes."""
        return self.offsets, self.columns, self.values

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what a file keeps."""
        return {"offsets": self.offsets, "columns": self.columns, "values": self.values}
