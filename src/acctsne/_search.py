"""The native Euclidean neighbour searches, on dense arrays (native/neighbors)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne import _core
from acctsne._pca import FEW_FEATURES, principal_components
from acctsne._projection import APPROXIMATE_AXES, Frame, Projection, find_frame

Progress = Callable[[int], None] | None

# Exact up to here: as much work as 300,000 samples of 50 features. Its time grows with N^1.6 where
# the data has clusters, measured from 50,000 to 1,000,000 synthetic samples of 20 features, and
# with the axes, up to a number that few pairs go beyond.
EXACT_WORK = 300_000**1.6 * 50

# Rows whose exact neighbours say how good an approximate search was.
RECALL_SAMPLE = 500

# Queries may be larger than the data, in its scale, by so much that squares still fit float32.
MAX_QUERY = 1e15


@dataclass
class Found:
    """What a search found; squared distances are those of the data times scale."""

    indices: npt.NDArray[np.int32]
    squared_distances: npt.NDArray[Any]
    frame: Frame  # in which other rows can be searched for too
    mode: str = "exact"
    recall: float = 1.0
    components: npt.NDArray[np.float64] | None = None  # principal ones, if they cost little

    @property
    def scale(self) -> float:
        """By what the data was multiplied: 1 unless squares would overflow or vanish."""
        return self.frame.scale


def chosen_mode(mode: str, n_samples: int, n_features: int) -> str:
    """Decide what "auto" means for data of this size."""
    if mode != "auto":
        return mode
    work = n_samples**1.6 * min(n_features, APPROXIMATE_AXES)
    return "exact" if work <= EXACT_WORK else "approximate"


def search(
    X: npt.NDArray[Any],
    n_neighbors: int,
    *,
    mode: str,
    in_double: bool,
    threads: int,
    random: np.random.RandomState,
    progress: Progress = None,
    n_components: int = 0,
) -> Found:
    """Find the neighbours of every row of a dense C-contiguous array among the others.

    With `n_components`, also the rows' principal components, if the search's own axes give them.
    """
    if chosen_mode(mode, *X.shape) == "exact":
        return exact_neighbors(X, n_neighbors, in_double, threads, progress, n_components)
    frame = find_frame(X, n_neighbors, threads, APPROXIMATE_AXES)
    projection = frame.project(X, threads)
    components = _components(frame, projection, n_components, threads)
    sample = sample_rows(len(X), random)
    indices, squared, recall = _core.approximate_neighbors(
        X,
        projection.coordinates,
        projection.squared_norms,
        frame.scale,
        n_neighbors,
        in_double,
        sample,
        threads,
        progress,
    )
    return Found(indices, squared, frame, "approximate", recall, components)


def exact_neighbors(
    X: npt.NDArray[Any],
    n_neighbors: int,
    in_double: bool,
    threads: int,
    progress: Progress = None,
    n_components: int = 0,
) -> Found:
    """Find the exact neighbours of every row of a dense C-contiguous array."""
    frame = find_frame(X, n_neighbors, threads)
    projection = frame.project(X, threads)
    components = _components(frame, projection, n_components, threads)
    indices, squared = _core.nearest_neighbors(
        X,
        projection.coordinates,
        projection.squared_norms,
        frame.scale,
        n_neighbors,
        in_double,
        threads,
        progress,
    )
    return Found(indices, squared, frame, components=components)


def _components(
    frame: Frame, projection: Projection, n_components: int, threads: int
) -> npt.NDArray[np.float64] | None:
    """Compute principal components within the frame's axes, where those of X would take longer.

    They take a tenth of the time for MNIST-70k, Fashion-MNIST and CIFAR-10, and turn by less than
    0.001 against those of all features.
    """
    if frame.axes is None or len(frame.axes) <= FEW_FEATURES:
        return None
    if not 0 < n_components <= frame.axes.shape[1]:
        return None
    return principal_components(projection.coordinates, n_components, threads, frame.axes)


def exact_query(
    X: npt.NDArray[Any],
    queries: npt.NDArray[Any],
    n_neighbors: int,
    in_double: bool,
    threads: int,
    progress: Progress = None,
    frame: Frame | None = None,
) -> Found:
    """Find the exact neighbours of each query among the rows of X; both of one dtype.

    A frame that is known need not be found again. Which one it is has no influence on the result.
    """
    frame = frame or find_frame(X, n_neighbors, threads)
    largest = float(np.abs(queries).max()) * frame.scale
    if largest > MAX_QUERY:
        raise ValueError(
            f"a query has a value of size {largest / frame.scale:g}; with this reference they "
            f"must stay within {MAX_QUERY / frame.scale:g}"
        )
    projection = frame.project(X, threads)
    asked = frame.project(queries, threads)
    indices, squared = _core.query_neighbors(
        X,
        projection.coordinates,
        projection.squared_norms,
        frame.scale,
        queries,
        asked.coordinates,
        asked.squared_norms,
        n_neighbors,
        in_double,
        threads,
        progress,
    )
    return Found(indices, squared, frame)


def sample_rows(n_samples: int, random: np.random.RandomState) -> npt.NDArray[np.int32]:
    """Draw the rows from which recall is estimated."""
    size = min(RECALL_SAMPLE, n_samples)
    return np.sort(random.choice(n_samples, size, replace=False)).astype(np.int32)
