"""Step 1, KNN: the nearest neighbours of every sample and their squared distances."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_array

from acctsne import _core
from acctsne._progress import progress_bar
from acctsne._projection import project
from acctsne._threads import effective_threads, limited_libraries
from acctsne._validate import Problem

Neighbors = tuple[npt.NDArray[np.int32], npt.NDArray[Any]]


class NearestNeighborsResult(NamedTuple):
    """What `nearest_neighbors` finds."""

    indices: npt.NDArray[np.int32]
    distances: npt.NDArray[Any]
    mode: str
    recall: float


def nearest_neighbors(
    X: npt.ArrayLike,
    n_neighbors: int,
    *,
    mode: Literal["auto", "exact"] = "auto",
    n_jobs: int | None = None,
    verbose: int = 0,
) -> NearestNeighborsResult:
    """Find the nearest neighbours of every sample among the others, by Euclidean distance.

    The search is exact at every size: bounds on the leading axes of the data rule out most pairs.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The data, float32 or float64; anything else becomes float64.
    n_neighbors : int
        How many, at most n_samples - 1.
    mode : {"auto", "exact"}, default="auto"
        Both search exactly.
    n_jobs : int, default=None
        Threads; None for all cores.
    verbose : int, default=0
        1 draws a progress bar on a terminal.

    Returns
    -------
    result : NearestNeighborsResult
        `indices`, of shape (n_samples, n_neighbors), without the sample itself, nearest first;
        `distances`, of the same shape and of the precision of X; `mode`, the one used; and
        `recall`, 1.0.

    Examples
    --------
    >>> from acctsne import nearest_neighbors
    >>> found = nearest_neighbors([[0.0], [1.0], [3.0], [7.0]], 2)
    >>> found.indices.tolist()
    [[1, 2], [0, 2], [1, 0], [2, 1]]
    >>> found.distances[3].tolist()
    [4.0, 6.0]
    """
    if mode not in ("auto", "exact"):
        raise ValueError(f"mode must be 'auto' or 'exact'; got {mode!r}")
    with np.errstate(over="ignore", invalid="ignore"):
        data: npt.NDArray[Any] = check_array(
            X, dtype=[np.float64, np.float32], order="C", ensure_min_samples=2, input_name="X"
        )
    if not 1 <= n_neighbors < len(data):
        raise ValueError(
            f"n_neighbors must be between 1 and n_samples - 1 ({len(data) - 1}); got {n_neighbors}"
        )
    in_double = data.dtype == np.float64
    threads = effective_threads(n_jobs)
    with progress_bar("neighbors", len(data), "pt", verbose) as move_to:
        indices, squared, scale = exact_neighbors(data, n_neighbors, in_double, threads, move_to)
    distances = np.sqrt(squared, out=squared)
    if scale != 1:
        distances = (distances / scale).astype(data.dtype)
    return NearestNeighborsResult(indices, distances, "exact", 1.0)


def find_neighbors(problem: Problem, verbose: int = 0) -> Neighbors:
    """Find the neighbours that the problem asks for.

    Returns
    -------
    indices : ndarray of shape (n_samples, n_neighbors), int32
        Without the sample itself.
    squared_distances : ndarray of the same shape, of the problem's dtype
        Up to one common factor, which the perplexity search does not see. Whatever the metric,
        it is the distance's square that enters the Gaussian.
    """
    if problem.metric == "euclidean" and not problem.metric_params and not issparse(problem.X):
        in_double = problem.dtype == np.float64
        with progress_bar("neighbors", problem.n_samples, "pt", verbose) as move_to:
            return exact_neighbors(
                problem.X, problem.n_neighbors, in_double, problem.threads, move_to
            )[:2]
    with limited_libraries(problem.threads):
        if problem.method == "exact":
            return _from_all_pairs(problem)
        return _from_scikit_learn(problem)


def exact_neighbors(
    X: npt.NDArray[Any],
    n_neighbors: int,
    in_double: bool,
    threads: int,
    progress: Callable[[int], None] | None = None,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any], float]:
    """Find the exact Euclidean neighbours of every row of a dense C-contiguous array.

    Returns indices, squared distances, and the scale: squared distances are those of X times it, 1
    unless they would overflow or vanish.
    """
    with limited_libraries(threads):
        projection = project(X, n_neighbors)
    indices, squared = _core.nearest_neighbors(
        X,
        projection.coordinates,
        projection.squared_norms,
        projection.scale,
        n_neighbors,
        in_double,
        0,
        threads,
        progress,
    )
    return indices, squared, projection.scale


def _from_scikit_learn(problem: Problem) -> Neighbors:
    search = NearestNeighbors(
        n_neighbors=problem.n_neighbors,
        metric=problem.metric,
        metric_params=problem.metric_params,
        # scikit-learn's ball tree gives other distances from run to run if threads share a
        # Mahalanobis metric.
        n_jobs=1 if problem.metric == "mahalanobis" else problem.threads,
    )
    graph = search.fit(problem.X).kneighbors_graph(mode="distance")
    shape = (problem.n_samples, problem.n_neighbors)
    return graph.indices.astype(np.int32).reshape(shape), _squared(
        graph.data.reshape(shape), problem
    )


def _from_all_pairs(problem: Problem) -> Neighbors:
    if problem.metric == "precomputed":
        distances = problem.X
    else:
        # Without n_jobs: with it, float32 data gives float32 distances instead of float64 ones.
        distances = pairwise_distances(
            problem.X, metric=problem.metric, **(problem.metric_params or {})
        )
    n = problem.n_samples
    # Every column but the diagonal, row by row.
    others = ~np.eye(n, dtype=bool)
    indices = np.broadcast_to(np.arange(n, dtype=np.int32), (n, n))[others].reshape(n, n - 1)
    return indices, _squared(np.asarray(distances)[others].reshape(n, n - 1), problem)


def _squared(distances: npt.NDArray[Any], problem: Problem) -> npt.NDArray[Any]:
    if not np.isfinite(distances).all():
        raise ValueError("the metric gave a distance that is not finite")
    if (distances < 0).any():
        raise ValueError("All distances should be positive, the metric given is not correct")
    distances = distances.astype(np.float64)
    largest = distances.max(initial=0.0)
    if largest > 0:
        distances /= largest  # squares can then neither overflow nor all vanish
    return np.ascontiguousarray(np.square(distances), dtype=problem.dtype)


def query_neighbors(
    reference: Any,
    queries: Any,
    n_neighbors: int,
    *,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Neighbors:
    """Find the nearest neighbours of each query among the reference rows."""
    search = NearestNeighbors(
        n_neighbors=n_neighbors, metric=metric, metric_params=metric_params, algorithm="brute"
    )
    distances, indices = search.fit(reference).kneighbors(queries)
    return indices.astype(np.int32), distances
