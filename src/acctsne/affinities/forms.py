"""The two forms that P is held in until the optimiser has its own."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne import _core
from acctsne.files.archive import Contents


@dataclass(frozen=True, eq=False)
class ReadOnly:
    """A dataclass whose arrays cannot be written to, copies of it included."""

    def __post_init__(self) -> None:
        for name, array in named_arrays(self).items():
            view = array.view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        # Through the constructor, which makes the arrays read-only again.
        return type(self), field_values(self)


def field_values(record: ReadOnly) -> tuple[Any, ...]:
    """Return all fields in their order."""
    return tuple(getattr(record, field.name) for field in fields(record))


def named_arrays(record: ReadOnly) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays among the fields by name."""
    named = {field.name: getattr(record, field.name) for field in fields(record)}
    return {name: value for name, value in named.items() if isinstance(value, np.ndarray)}


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

    @classmethod
    def from_archive(
        cls, contents: Contents, equal: bool, among: int | None = None
    ) -> "Conditional":
        """Take it from a file; ValueError if it cannot be one.

        The rows are of all samples, or of some among so many.
        """
        values = contents.array("values", "f4 f8", 2)
        indices = contents.array("indices", "i4", 2)
        n_samples = len(indices) if among is None else among
        if indices.shape != values.shape or not 1 <= indices.shape[1] < n_samples:
            raise ValueError(f"indices has shape {indices.shape}, values {values.shape}")
        if indices.min() < 0 or indices.max() >= n_samples or (np.diff(indices) <= 0).any():
            raise ValueError("a row of indices is not ascending, or names a sample that is not")
        if (values < 0).any():
            raise ValueError("values has a negative probability")
        return cls(indices, values, equal)

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

    @classmethod
    def from_archive(cls, contents: Contents) -> "Matrix":
        """Take it from a file; ValueError if it cannot be one."""
        columns = contents.array("columns", "i4", 1)
        offsets = contents.array("offsets", "i8", 1)
        values = contents.array("values", "f4 f8", 1)
        n_samples = len(offsets) - 1
        if n_samples < 2 or offsets[0] != 0 or (np.diff(offsets) < 0).any():
            raise ValueError("offsets do not ascend from 0")
        if not offsets[-1] == len(columns) == len(values):
            raise ValueError(f"{len(columns)} columns and {len(values)} values for {offsets[-1]}")
        if len(columns) and (columns.min() < 0 or columns.max() >= n_samples):
            raise ValueError("columns name a sample that is not")
        if (values < 0).any():
            raise ValueError("values has a negative affinity")
        return cls(offsets, columns, values)
