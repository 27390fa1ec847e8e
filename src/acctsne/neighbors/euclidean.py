"""The native Euclidean neighbour searches, on dense arrays (native/neighbors)."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.random import sample_without_replacement

from acctsne import _core
from acctsne.neighbors.frame import Frame, find_frame
from acctsne.neighbors.records import Neighbors, SearchSettings
from acctsne.runtime.communicator import Communicator
from acctsne.runtime.progress import Progress

# Exact up to here: as much work as 300,000 samples of 50 features. Its time grows with N^1.6 where
# the data has clusters (benchmarks/neighbors.py, docs/tuning.md), and with the axes, up to a number
# that few pairs go beyond.
EXACT_WORK = 300_000**1.6 * 50

# Rows whose exact neighbours say how good an approximate search was.
RECALL_SAMPLE = 500

# Axes on which queries are filtered. All samples are projected for them, which as many as serve a
# search among all would make the longer part: docs/tuning.md.
QUERY_AXES = 64

# Queries may be larger than the data, in its scale, by so much that squares still fit float32.
MAX_QUERY = 1e15


def chosen_mode(mode: str, n_samples: int, n_features: int) -> str:
    """Decide what "auto" means for data of this size."""
    if mode != "auto":
        return mode
    work = n_samples**1.6 * min(n_features, _core.APPROXIMATE_AXES)
    return "exact" if work <= EXACT_WORK else "approximate"


def search(X: npt.NDArray[Any], settings: SearchSettings, progress: Progress = None) -> Neighbors:
    """Find the neighbours of every row of a dense array among the others."""
    mode = chosen_mode(settings.mode, *X.shape)
    n_axes = None if mode == "exact" else _core.APPROXIMATE_AXES
    frame = find_frame(X, settings.n_neighbors, settings.threads, n_axes)
    sample = None if mode == "exact" else sample_rows(len(X), settings.random)
    return search_in(frame, X, settings, sample, progress)


def search_in(
    frame: Frame,
    X: npt.NDArray[Any],
    settings: SearchSettings,
    sample: npt.NDArray[np.int32] | None,
    progress: Progress,
    n_samples: int | None = None,
    processes: Communicator | None = None,
) -> Neighbors:
    """Find the neighbours of rows of X among each other, in a frame; with a sample, approximately.

    Of several processes each has its own of `n_samples` rows, and the sample of all.
    """
    projection = frame.project(X, settings.threads)
    components = None
    if _has_components(frame, settings.n_components):
        # Within the frame's axes, where those of X would take longer: they hardly turn against
        # those of all features (docs/tuning.md).
        components = _core.principal_components(
            projection.coordinates,
            settings.n_components,
            settings.threads,
            frame.axes,
            n_samples,
            processes,
        )
    asked = (frame.rows(X, projection), settings.n_neighbors, settings.in_double)
    how = (settings.threads, progress, processes)
    if sample is None:
        mode, recall = "exact", 1.0
        indices, squared = _core.nearest_neighbors(*asked, *how)
    else:
        mode = "approximate"
        indices, squared, recall = _core.approximate_neighbors(*asked, sample, *how)
    return Neighbors(
        indices,
        squared,
        scale=frame.scale,
        mode=mode,
        recall=recall,
        frame=frame,
        components=components,
        among=n_samples,
    )


def exact_neighbors(
    X: npt.NDArray[Any], settings: SearchSettings, progress: Progress = None
) -> Neighbors:
    """Find the exact neighbours of every row of a dense array."""
    return search(X, replace(settings, mode="exact"), progress)


def _has_components(frame: Frame, n_components: int) -> bool:
    """Say whether principal components are to be computed within the frame's axes."""
    if frame.axes is None or len(frame.axes) <= _core.FEW_FEATURES:
        return False
    return bool(0 < n_components <= frame.axes.shape[1])


def exact_query(
    X: npt.NDArray[Any],
    queries: npt.NDArray[Any],
    settings: SearchSettings,
    progress: Progress = None,
    frame: Frame | None = None,
) -> Neighbors:
    """Find the exact neighbours of each query among the rows of X; both of one dtype.

    A frame that is known need not be found again. Which one it is has no influence on the result.
    """
    frame = frame or find_frame(X, settings.n_neighbors, settings.threads)
    frame = frame.leading(QUERY_AXES)
    largest = float(np.abs(queries).max()) * frame.scale
    if largest > MAX_QUERY:
        raise ValueError(
            f"a query has a value of size {largest / frame.scale:g}; with the fitted data they "
            f"must stay within {MAX_QUERY / frame.scale:g}"
        )
    indices, squared = _core.query_neighbors(
        frame.rows(X, frame.project(X, settings.threads)),
        frame.rows(queries, frame.project(queries, settings.threads)),
        settings.n_neighbors,
        settings.in_double,
        settings.threads,
        progress,
    )
    return Neighbors(indices, squared, scale=frame.scale, frame=frame)


def sample_rows(n_samples: int, random: np.random.RandomState) -> npt.NDArray[np.int32]:
    """Draw the rows from which recall is estimated."""
    size = min(RECALL_SAMPLE, n_samples)
    drawn = sample_without_replacement(n_samples, size, random_state=random)
    return np.sort(drawn).astype(np.int32)
