"""The two forms that P is held in until the optimiser has its own."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne import _core


@dataclass(frozen=True, eq=False)
class ReadOnly:
    """A dataclass whose arrays cannot be written to, copies of it included."""

    def __post_init__(self) -> None:
        for name, array in self._arrays().items():
            view = array.view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    def _fields(self) -> tuple[Any, ...]:
        """Return all fields in their order."""
        return tuple(getattr(self, field.name) for field in fields(self))

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays among the fields by name."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in named.items() if isinstance(value, np.ndarray)}

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        # Through the constructor, which makes the arrays read-only again.
        return type(self), self._fields()


@dataclass(frozen=True, eq=False)
class Conditional(ReadOnly):
    """Each sample's own distribution over its neighbours.

    P is the mean of it and its transpose, divided by the number of samples; or, if `equal`, the
    same value wherever that is stored. The native optimiser takes the fields in place of P.
    """

    indices: npt.NDArray[np.int32]  # ascending within each row
    values: npt.NDArray[Any]
    equal: bool

    @property
    def n_samples(self) -> int:
        """The number of rows."""
        return len(self.indices)

    def symmetrized(self, threads: int) -> "Matrix":
        """Make P."""
        return Matrix(*_core.symmetrize(self.indices, self.values, self.equal, threads))


@dataclass(frozen=True, eq=False)
class Matrix(ReadOnly):
    """P itself: row i is `columns[offsets[i]:offsets[i + 1]]` and the `values` there.

    The native optimiser takes the fields.
    """

    offsets: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]
    values: npt.NDArray[Any]

    @property
    def n_samples(self) -> int:
        """The number of rows."""
        return len(self.offsets) - 1
