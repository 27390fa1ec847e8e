"""New points into a finished map."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.utils.validation import check_non_negative

from acctsne import _core
from acctsne._affinity_inputs import check_arrays, check_range
from acctsne._dof import output_kernel
from acctsne._neighbors import query_neighbors
from acctsne._progress import progress_bar
from acctsne._projection import Frame
from acctsne._threads import effective_threads

if TYPE_CHECKING:
    from acctsne._tsne import TSNE

# A new point looks at few neighbours and goes among them, as openTSNE's does: with the perplexity
# of the map it is drawn to the middle of its cluster. Its own settings: 797 digits into a map of
# 1000 end in the same places, to 1 % of the distance moved, with learning rates from 0.025 to 1.
PERPLEXITY = 5.0
N_NEIGHBORS = 15
N_ITER = 250
EXAGGERATION = 1.5
LEARNING_RATE = 0.1
MOMENTUM = 0.8
MAX_STEP = 0.25


def place_samples(tsne: "TSNE", X: Any) -> npt.NDArray[Any]:
    """Place checked samples into the map of a fitted estimator."""
    threads = effective_threads(tsne.n_jobs)
    positions = tsne.embedding_
    indices, distances = neighbors_in_map(
        tsne._fit_X,
        X,
        min(N_NEIGHBORS, len(positions)),
        tsne.metric,
        tsne.metric_params,
        threads,
        tsne.verbose,
        frame_of_fit(tsne),
    )
    known = known_rows(tsne._fit_X, X, indices, distances, tsne.metric)
    placed = np.empty((len(indices), positions.shape[1]), positions.dtype)
    placed[known >= 0] = positions[known[known >= 0]]
    unknown = np.flatnonzero(known < 0)
    with progress_bar("new points", len(unknown), "pt", tsne.verbose) as move_to:
        placed[unknown] = place_new_points(
            positions,
            indices[unknown],
            distances[unknown],
            method=tsne.method,
            angle=tsne.angle,
            force_error=tsne.force_error,
            dof=output_kernel(tsne.dof, positions.shape[1]),
            threads=threads,
            progress=move_to,
        )
    return placed


def frame_of_fit(tsne: "TSNE") -> Frame | None:
    """Return the frame that fit found, unless it is of another metric than the present one."""
    metric, frame = tsne._fit_frame or (None, None)
    return frame if metric == tsne.metric else None


def place_new_points(
    positions: npt.NDArray[Any],
    indices: npt.NDArray[np.int32],
    distances: npt.NDArray[Any],
    *,
    method: str,
    angle: float,
    force_error: float,
    dof: tuple[float, float],
    threads: int,
    progress: Callable[[int], None] | None = None,
) -> npt.NDArray[Any]:
    """Place points, given their nearest neighbours in the map, without moving the map."""
    # Each row in units of its own: squares can then neither overflow nor all vanish.
    farthest = distances[:, -1:].astype(np.float64)
    scaled = np.divide(distances, farthest, where=farthest > 0, out=np.zeros(distances.shape))
    squared = np.ascontiguousarray(np.square(scaled), dtype=positions.dtype)
    # As much as the neighbours allow.
    perplexity = min(PERPLEXITY, max(1.0, squared.shape[1] / 3))
    weights, *_ = _core.search_perplexity(squared, perplexity, threads)
    return _core.place(
        positions,
        np.ascontiguousarray(indices, dtype=np.int32),
        weights,
        _weighted_medians(positions[indices], weights),
        method,
        angle,
        force_error,
        *dof,
        iterations=N_ITER,
        exaggeration=EXAGGERATION,
        learning_rate=LEARNING_RATE,
        momentum=MOMENTUM,
        max_step=MAX_STEP,
        threads=threads,
        progress=progress,
    )


def _weighted_medians(values: npt.NDArray[Any], weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Compute the median of each row's neighbours, coordinate by coordinate.

    Unlike the mean it lies in one of the clusters if the neighbours are in several.
    """
    medians = np.empty((values.shape[0], values.shape[2]), dtype=values.dtype)
    for axis in range(values.shape[2]):
        order = np.argsort(values[:, :, axis], axis=1, kind="stable")
        reached = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
        middle = (reached >= 0.5 * reached[:, -1:]).argmax(axis=1)
        chosen = np.take_along_axis(order, middle[:, None], axis=1)
        medians[:, axis] = np.take_along_axis(values[:, :, axis], chosen, axis=1)[:, 0]
    return medians


def neighbors_in_map(
    X_fit: Any,
    X_new: Any,
    n_neighbors: int,
    metric: Any,
    metric_params: dict[str, Any] | None,
    threads: int,
    verbose: int = 0,
    frame: Frame | None = None,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
    """Find the nearest samples of the map, nearest first; X_new are distances if precomputed."""
    if metric == "precomputed":
        order = np.argsort(X_new, axis=1, kind="stable")[:, :n_neighbors]
        return order.astype(np.int32), np.take_along_axis(X_new, order, axis=1)
    return query_neighbors(
        X_fit,
        X_new,
        n_neighbors,
        metric=metric,
        metric_params=metric_params,
        n_jobs=threads,
        verbose=verbose,
        frame=frame,
    )


def check_neighbors_in_map(
    indices: Any, distances: Any, n_samples: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
    """Check neighbours that the user gives, and put the nearest first."""
    given, far = check_arrays(indices, distances, 1)
    check_range(given, n_samples)
    check_non_negative(far, "Embedding.transform()")
    order = np.argsort(far, axis=1, kind="stable")
    return (
        np.take_along_axis(given, order, axis=1).astype(np.int32),
        np.take_along_axis(far, order, axis=1),
    )


def known_rows(
    X_fit: Any,
    X_new: Any,
    indices: npt.NDArray[np.int32],
    distances: npt.NDArray[Any],
    metric: Any,
) -> npt.NDArray[np.int64]:
    """Find which new rows were there when the map was made: the first equal row, or -1."""
    if metric == "precomputed":
        return np.where(distances[:, 0] == 0, indices[:, 0].astype(np.int64), -1)
    known = np.full(X_new.shape[0], -1, dtype=np.int64)
    # An equal row is at distance zero, or, after normalisation, at one that rounding explains.
    near = distances <= 1e-5 * distances[:, -1:]
    for column in range(indices.shape[1]):
        rows = np.flatnonzero(near[:, column])
        if not len(rows):
            continue
        candidates = indices[rows, column].astype(np.int64)
        if issparse(X_new):
            differences = (X_new[rows] != X_fit[candidates]).sum(axis=1)
            equal = np.asarray(differences).ravel() == 0
        else:
            equal = (X_new[rows] == X_fit[candidates]).all(axis=1)
        rows, candidates = rows[equal], candidates[equal]
        earlier = (known[rows] < 0) | (candidates < known[rows])
        known[rows[earlier]] = candidates[earlier]
    return known
