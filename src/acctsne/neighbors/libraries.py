"""Neighbours through scikit-learn and pynndescent: other metrics, and large sparse matrices."""

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import PAIRWISE_BOOLEAN_FUNCTIONS
from sklearn.neighbors import NearestNeighbors

from acctsne.compat.scikit_learn import compares_all_pairs
from acctsne.neighbors.euclidean import sample_rows
from acctsne.neighbors.records import PARAMETERS_ADVICE, NearestNeighborsResult, SearchSettings
from acctsne.runtime.progress import logger
from acctsne.runtime.threads import limited_libraries

# Up to here "auto" compares all pairs; beyond, it prefers pynndescent if that is installed.
MODERATE_SAMPLES = 50_000

# Up to so many samples, comparing all pairs takes less time than compiling pynndescent's loops,
# which is done once a process (docs/tuning.md).
FEW_SAMPLES = 2000

# Numbers that are looked at in a block of rows, between which Ctrl-C is heard
# (benchmarks/interrupt.py, docs/tuning.md).
BLOCK_WORK = 2**23

# A tree looks at a part of all pairs: few of many samples, most of some thousands.
TREE_PART = 8

# scikit-learn's words.
NOT_CORRECT = "All distances should be positive, the metric given is not correct"
BAD_METRIC = f"{NOT_CORRECT}: it gave a distance that is negative or not finite"

# Metrics that pynndescent has under the same name, with the same value.
SHARED_METRICS = {
    "braycurtis",
    "canberra",
    "chebyshev",
    "cityblock",
    "correlation",
    "cosine",
    "euclidean",
    "hamming",
    "l1",
    "l2",
    "manhattan",
    "minkowski",
}


def library_neighbors(X: Any, settings: SearchSettings) -> NearestNeighborsResult:
    """Find neighbours through scikit-learn, exactly, or through pynndescent."""
    mode, metric = settings.mode, settings.metric
    if mode == "auto":
        large = X.shape[0] > MODERATE_SAMPLES
        shared = metric in SHARED_METRICS if isinstance(metric, str) else _is_compiled(metric)
        mode = "approximate" if large and shared and find_spec("pynndescent") else "exact"
        if large and mode == "exact":
            logger.info(
                "comparing all pairs of %d samples; pynndescent would be faster%s",
                X.shape[0],
                ": pip install 'acctsne[pynndescent]'" if shared else ", but not for this metric",
            )
    if mode == "approximate":
        _check_approximate(metric)
        mode = "exact" if X.shape[0] <= FEW_SAMPLES else mode
    with limited_libraries(settings.threads), _blaming_parameters(settings), _checked_data():
        exact = _ScikitLearn(X, settings)
        if mode == "approximate":
            return _by_pynndescent(X, settings, exact)
        found = exact.neighbors()
        _check_distances(found.distances)
        return found


@contextmanager
def _blaming_parameters(settings: SearchSettings) -> Iterator[None]:
    """Say of which metric and parameters it is that libraries complain, in words of their own."""
    try:
        yield
    except (TypeError, ValueError, AttributeError) as error:
        # A function's errors are its own, and so are ours about the distances.
        ours = callable(settings.metric) or str(error).startswith(NOT_CORRECT)
        blamed = settings.metric_params or isinstance(error, TypeError)
        if ours or not blamed:
            raise
        raise ValueError(f"{settings.named_metric()}: {error}; {PARAMETERS_ADVICE}") from error


def _checked_data() -> AbstractContextManager[None]:
    """Spare this thread scikit-learn's check for NaN and infinity, whose sum may overflow."""
    checked: AbstractContextManager[None] = config_context(assume_finite=True)
    return checked


def _check_distances(distances: npt.NDArray[Any]) -> None:
    """Refuse what a metric gives for rows that it is not defined for."""
    # scikit-learn's search begins with the largest number, and keeps it where all are infinite.
    wrong = ~((distances >= 0) & (distances < np.finfo(distances.dtype).max)).all(axis=1)
    if wrong.any():
        rows = np.flatnonzero(wrong)
        named = ", ".join(map(str, rows[:3])) + (", ..." if len(rows) > 3 else "")
        raise ValueError(
            f"{BAD_METRIC}, for {len(rows)} of {len(distances)} rows: {named}. Remove them, use "
            "another metric, or scale X down if its values are huge"
        )


def _check_approximate(metric: Any) -> None:
    """Check that pynndescent is there and serves the metric."""
    if isinstance(metric, str) and metric not in SHARED_METRICS:
        raise ValueError(
            f"mode='approximate' does not serve metric={metric!r}; it does serve "
            f"{', '.join(sorted(SHARED_METRICS))}. Use mode='exact'"
        )
    if callable(metric) and not _is_compiled(metric):
        raise ValueError(
            "mode='approximate' needs a metric compiled with numba.njit; use mode='exact' for "
            f"{metric!r}"
        )


class CheckedMetric:
    """A user's function, each of whose values is looked at.

    scikit-learn's trees take NaN for far away, and stumble over negative numbers much later.
    """

    def __init__(self, metric: Callable[..., Any], X: Any) -> None:
        self._metric = metric
        self._X = X

    def __call__(self, a: Any, b: Any, **parameters: Any) -> float:
        """Return the distance of two samples, or say which ones have none."""
        value = self._metric(a, b, **parameters)
        try:
            distance = np.nan if isinstance(value, str | bytes) else float(value)
        except (OverflowError, TypeError, ValueError):
            distance = np.nan
        if not 0 <= distance < np.inf:
            raise ValueError(
                f"{NOT_CORRECT}: it gave {value!r}{self._named(a, b)} instead of a finite number "
                "that is not negative"
            )
        return distance

    def _named(self, a: Any, b: Any) -> str:
        """Say which rows of X these are, if they are: trees also ask for their cells' centres."""
        if issparse(self._X):
            return ""
        places = [np.flatnonzero((sample == self._X).all(axis=1)) for sample in (a, b)]
        if not all(map(len, places)):
            return ""
        return f" for rows {places[0][0]} and {places[1][0]}"


class _ScikitLearn:
    """All pairs, or a tree where scikit-learn has one for the metric."""

    def __init__(self, X: Any, settings: SearchSettings) -> None:
        metric = settings.metric
        params = dict(settings.metric_params or {})
        # Minkowski's is not where scikit-learn wants the parameters of others.
        power = params.pop("p", 2) if metric == "minkowski" else None
        self._is_function = callable(metric)
        # A function holds the interpreter's lock, and scikit-learn's ball tree gives other
        # distances from run to run if threads share a Mahalanobis metric.
        alone = self._is_function or metric == "mahalanobis"
        self._threads = 1 if alone else settings.threads
        self._n_neighbors = settings.n_neighbors
        search = NearestNeighbors(
            n_neighbors=settings.n_neighbors,
            metric=CheckedMetric(metric, X) if callable(metric) else metric,
            p=power,
            metric_params=params or None,
            n_jobs=1,
        ).fit(X)
        if compares_all_pairs(search):
            truths = as_truths(X, metric)
            search, X = (search, X) if truths is X else (search.fit(truths), truths)
            self._work = row_work(X)
        else:
            self._work = row_work(X) // TREE_PART + 1
        self._search, self._X = search, X

    def neighbors(self) -> NearestNeighborsResult:
        """Find the neighbours of every sample, itself not among them."""
        if self._is_function:
            # Python interrupts its own functions, so blocks are not needed; and without queries
            # scikit-learn calls a metric for one of two symmetric pairs only.
            distances, indices = self._search.kneighbors()
            return NearestNeighborsResult(indices.astype(np.int32), distances)
        found = self.query(self._X, self._n_neighbors + 1)
        # At infinite distances scikit-learn names samples twice, or none.
        _check_distances(found.distances)
        count = len(found.indices)
        others = found.indices != np.arange(count, dtype=np.int32)[:, None]
        # Duplicates may hide the sample itself: one of them goes in its place.
        others[others.all(axis=1), 0] = False
        shape = (count, self._n_neighbors)
        return NearestNeighborsResult(
            found.indices[others].reshape(shape), found.distances[others].reshape(shape)
        )

    def query(self, rows: Any, k: int) -> NearestNeighborsResult:
        """Find the neighbours of other rows."""
        if self._is_function:
            distances, indices = self._search.kneighbors(rows, n_neighbors=k)
            return NearestNeighborsResult(indices.astype(np.int32), distances)
        indices = np.empty((rows.shape[0], k), dtype=np.int32)
        # Double precision holds distances of whatever type the search has them.
        distances = np.empty((rows.shape[0], k), dtype=np.float64)

        def find(block: slice) -> None:
            distances[block], indices[block] = self._search.kneighbors(rows[block], n_neighbors=k)

        for_blocks_of_rows(rows.shape[0], self._work, self._threads, find)
        return NearestNeighborsResult(indices, distances)


def metric_parameters(X: Any, settings: SearchSettings) -> dict[str, Any]:
    """Return the metric's parameters with those that are the data's, which blocks do not tell.

    As scikit-learn finds them where it is given all pairs at once; its search refuses to.
    """
    params = dict(settings.metric_params or {})
    if issparse(X):
        return params
    if settings.metric == "seuclidean" and "V" not in params:
        params["V"] = np.var(X, axis=0, ddof=1, dtype=np.float64)
    if settings.metric == "mahalanobis" and not {"V", "VI"} & set(params):
        params["VI"] = np.linalg.inv(np.cov(X.T)).T
    return params


def as_truths(X: Any, metric: Any) -> Any:
    """Turn data into true and false where the metric is one of these; leave all else as it is.

    With scikit-learn's own warning, which would be given for every block.
    """
    if callable(metric) or metric not in PAIRWISE_BOOLEAN_FUNCTIONS or X.dtype == bool:
        return X
    warnings.warn(
        f"Data was converted to boolean for metric {metric}", DataConversionWarning, stacklevel=2
    )
    return X.astype(bool)


def row_work(X: Any) -> int:
    """Count the numbers that are looked at for a row's distances from all others."""
    return int(X.nnz if issparse(X) else X.size) + int(X.shape[0])


def for_blocks_of_rows(n_rows: int, work: int, threads: int, do: Callable[[slice], None]) -> None:
    """Do something for all rows in blocks of as many as take a tenth of a second by most metrics.

    Ctrl-C is looked for between them, as scikit-learn does not. Each block is one thread's, whose
    results do not depend on how many threads there are, and by how much work is fixed, so that they
    do not depend on the machine.
    """
    height = max(1, BLOCK_WORK // work)
    blocks = [slice(start, min(start + height, n_rows)) for start in range(0, n_rows, height)]

    def do_alone(block: slice) -> None:
        with limited_libraries(1), _checked_data():
            do(block)

    if threads == 1:
        for block in blocks:
            do_alone(block)
        return
    with ThreadPoolExecutor(min(threads, len(blocks))) as pool:
        futures = [pool.submit(do_alone, block) for block in blocks]
        try:
            for future in futures:
                future.result()
        except BaseException:
            for future in futures:
                future.cancel()
            raise


def all_distances(X: Any, settings: SearchSettings) -> npt.NDArray[Any]:
    """Compute the distances of all pairs through scikit-learn."""
    with _blaming_parameters(settings):
        return _all_distances(X, settings)


def _all_distances(X: Any, settings: SearchSettings) -> npt.NDArray[Any]:
    metric = settings.metric
    params = metric_parameters(X, settings)
    if callable(metric):
        distances = pairwise_distances(X, metric=CheckedMetric(metric, X), **params)
        return np.asarray(distances)
    X = as_truths(X, metric)
    n = X.shape[0]
    distances = np.zeros((n, n))

    def compute(block: slice) -> None:
        # Without n_jobs: with it, float32 data gives float32 distances instead of float64 ones.
        found = pairwise_distances(X[block], X[block.start :], metric=metric, **params)
        distances[block, block.start :] = found
        distances[block.start :, block] = found.T

    for_blocks_of_rows(n, row_work(X), settings.threads, compute)
    np.fill_diagonal(distances, 0)
    return distances


def library_query(X: Any, queries: Any, settings: SearchSettings) -> NearestNeighborsResult:
    """Find the exact neighbours of each query among the rows of X through scikit-learn.

    What a metric takes from the data is that of X, as where all its pairs are computed.
    """
    settings = replace(settings, metric_params=metric_parameters(X, settings))
    with limited_libraries(settings.threads), _blaming_parameters(settings), _checked_data():
        found = _ScikitLearn(X, settings).query(queries, settings.n_neighbors)
        _check_distances(found.distances)
        return found


def _is_compiled(metric: Any) -> bool:
    return hasattr(metric, "py_func")  # as numba's functions have


def _by_pynndescent(
    X: Any, settings: SearchSettings, exact: _ScikitLearn
) -> NearestNeighborsResult:
    """Find neighbours approximately, and estimate which part of the true ones they are."""
    k, metric = settings.n_neighbors, settings.metric
    try:
        from pynndescent import NNDescent
    except ImportError as error:
        raise ImportError(
            f"mode='approximate' with metric={metric!r} needs pynndescent: "
            "pip install 'acctsne[pynndescent]'"
        ) from error
    index = NNDescent(
        X,
        metric=metric,
        metric_kwds=settings.metric_params,
        n_neighbors=min(k + 1, X.shape[0] - 1),  # the sample itself is one of them
        random_state=settings.random,
        n_jobs=settings.threads,
    )
    indices, distances = index.neighbor_graph
    own = indices == np.arange(len(indices))[:, None]
    # Behind all others, and so are the places that it left empty.
    order = np.argsort(own | (indices < 0), axis=1, kind="stable")[:, :k]
    indices = np.take_along_axis(indices, order, axis=1).astype(np.int32)
    distances = np.take_along_axis(distances, order, axis=1)
    rows = np.arange(len(indices))[:, None]
    short = np.flatnonzero(((indices < 0) | (indices == rows)).any(axis=1))
    if len(short):
        found = exact.query(X[short], k + 1)
        # The sample is left out, or the last one where duplicates hide the sample.
        order = np.argsort(found.indices == short[:, None], axis=1, kind="stable")[:, :k]
        indices[short] = np.take_along_axis(found.indices, order, axis=1)
        distances[short] = np.take_along_axis(found.distances, order, axis=1)
    _check_distances(distances)
    sample = sample_rows(X.shape[0], settings.random)
    # The sample itself is one of the first k + 1, or as near as they are.
    limits = exact.query(X[sample], k + 1).distances[:, -1:]
    recall = float((distances[sample] <= limits * (1 + 1e-6)).mean())
    return NearestNeighborsResult(indices, distances, "approximate", recall)
