"""The leading axes of the data, on which the neighbour searches filter (native/neighbors)."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne import _core


@dataclass(frozen=True)
class Projection:
    """Rows times the frame's scale, centred, on its axes."""

    coordinates: npt.NDArray[np.float32]
    squared_norms: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Frame:
    """Scale, centre and axes of the data, in which other rows can be placed too."""

    scale: float
    centre: npt.NDArray[np.float64]
    axes: npt.NDArray[np.float32] | None  # None for the features as they are

    def project(self, X: npt.NDArray[Any], threads: int) -> Projection:
        """Place rows."""
        return Projection(*_core.project(X, self.scale, self.centre, self.axes, threads))

    def leading(self, n_axes: int) -> "Frame":
        """Return the same with so many axes at most."""
        if self.axes is None or self.axes.shape[1] <= n_axes:
            return self
        return replace(self, axes=np.ascontiguousarray(self.axes[:, :n_axes]))

    def rows(self, X: npt.NDArray[Any], projection: Projection) -> _core.DenseData:
        """Put rows and their projection together, as the native searches take them."""
        return _core.DenseData(X, projection.coordinates, projection.squared_norms, self.scale)


def find_frame(
    X: npt.NDArray[Any], n_neighbors: int, threads: int, n_axes: int | None = None
) -> Frame:
    """Find about the centre of X and its leading axes, if they help to find so many neighbours.

    Without a number of axes, as many as pay in an exact search.
    """
    return Frame(*_core.find_frame(X, n_neighbors, n_axes, threads))


def sampled_rows(n_samples: int, n_axes: int | None) -> slice:
    """Choose the rows that the axes of so many are computed from."""
    stop, step = _core.sampled_rows(n_samples, n_axes)
    return slice(0, stop, step)


def frame_of_sample(
    rows: npt.NDArray[Any],
    n_samples: int,
    largest: float,
    n_neighbors: int,
    threads: int,
    n_axes: int | None = None,
) -> Frame:
    """Find the frame of data by its `sampled_rows` and its largest size."""
    return Frame(*_core.frame_of_sample(rows, n_samples, largest, n_neighbors, n_axes, threads))
