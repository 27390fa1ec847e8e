"""Step 1, KNN: the nearest neighbours of every sample, whatever the metric and the input."""

from dataclasses import replace
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from acctsne.compat.scikit_learn import VALID_METRICS
from acctsne.files.backed import in_reach
from acctsne.neighbors.euclidean import exact_query, search
from acctsne.neighbors.frame import Frame
from acctsne.neighbors.given import (
    blocks_of_rows,
    check_graph,
    graph_neighbors,
    is_precomputed,
    squared,
)
from acctsne.neighbors.libraries import (
    BAD_METRIC,
    all_distances,
    library_neighbors,
    library_query,
)
from acctsne.neighbors.metrics import by_metric, dense_if_small, euclidean_form, native_metric
from acctsne.neighbors.records import (
    NEIGHBOR_MODES,
    NearestNeighborsResult,
    Neighbors,
    SearchSettings,
    in_precision_of_data,
)
from acctsne.neighbors.sparse import exact_is_cheap, sparse_neighbors, sparse_query
from acctsne.runtime.checks import check_choice, check_integer, check_n_columns, check_sparse
from acctsne.runtime.memory import room_for
from acctsne.runtime.progress import busy, logger, progress_bar, shown_log
from acctsne.runtime.rows import (
    STORED_TYPES,
    check_finite,
    check_not_bfloat16,
    check_type_read,
    computed,
    computed_dtype,
    stored_dtype,
    with_whole_rows,
)
from acctsne.runtime.tables import turned_into_numbers
from acctsne.runtime.threads import effective_threads, limited_libraries


def nearest_neighbors(
    X: Any,
    n_neighbors: int,
    *,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    mode: Literal["auto", "exact", "approximate"] = "auto",
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: int = 0,
) -> NearestNeighborsResult:
    """Find the nearest neighbours of every sample among the others.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The data. float64, float32, float16 and uint8 are read where they are, in a file too; other
        types become float64, and up to 1 GiB of rows that do not lie in one piece are copied.
        Datasets of h5py, zarr arrays, `X` of a backed
        AnnData object and what :func:`acctsne.io.open_rows` opens are taken as well: mapped where
        they lie in one piece, otherwise read once. With `metric="precomputed"`, a
        square matrix of distances, a sparse graph of them, or a pair `(indices, distances)`.
    n_neighbors : int
        How many, at most n_samples - 1.
    metric : str or callable, default="euclidean"
        Any of scikit-learn's. "euclidean", "l2", "sqeuclidean", "cosine" and "correlation" run
        natively, on dense data and on sparse data, which stays sparse unless it is not much larger
        when dense; the others through scikit-learn or pynndescent. As in scikit-learn, a row of
        zeros has cosine distance 1 from all others. Correlation distance is refused for constant
        rows.
    metric_params : dict, default=None
        More arguments for the metric.
    mode : {"auto", "exact", "approximate"}, default="auto"
        "exact" compares, by bounds, every pair. "approximate" compares samples with those of
        nearby cells and with their neighbours' neighbours, and finds about 99 % or more of the
        neighbours, the same at any number of threads. Where the metric does not run natively it
        needs pynndescent, the extra `acctsne[pynndescent]`. "auto" is exact up to a work of
        `n_samples**1.6 * min(n_features, 128)` as that of 300,000 samples of 50 features: 530,000
        samples of 20, 160,000 of 128 or more. Sparse data it compares exactly up to 2e11 products
        of values, and beyond if pynndescent is not installed: with columns filled alike, there are
        `nnz**2 / n_features / 2`. Where the metric does not run natively, it is approximate from
        50,000 samples on if pynndescent is installed and knows the metric.
    n_jobs : int, default=None
        Threads; None for all cores.
    random_state : int, RandomState instance or None, default=None
        Seed of the sample of rows that recall is estimated from, and of pynndescent.
    verbose : int, default=0
        1 logs to the logger "acctsne" and draws progress on a terminal or in a notebook.

    Returns
    -------
    result : NearestNeighborsResult
        `indices`, of shape (n_samples, n_neighbors), without the sample itself, nearest first;
        `distances`, of the same shape, float64 if X is and float32 otherwise; `mode`, the one used;
        and `recall`, 1.0 if exact, otherwise the part of the true neighbours that was found,
        estimated by the exact neighbours of 500 random samples.

    Examples
    --------
    >>> from acctsne import nearest_neighbors
    >>> found = nearest_neighbors([[0.0], [1.0], [3.0], [7.0]], 2)
    >>> found.indices.tolist()
    [[1, 2], [0, 2], [1, 0], [2, 1]]
    >>> found.distances[3].tolist()
    [4.0, 6.0]
    """
    # Check arguments.
    _check_metric(metric)
    check_choice("mode", mode, NEIGHBOR_MODES)
    threads = effective_threads(n_jobs)
    precomputed = is_precomputed(metric)
    data = check_rows(check_graph(X) if precomputed else X, "X", 2)
    if precomputed and data.shape[0] != data.shape[1]:
        raise ValueError(f"X should be a square distance matrix; got shape {data.shape}")
    settings = SearchSettings(
        check_n_neighbors(n_neighbors, data.shape[0] - 1, "n_samples - 1"),
        metric,
        metric_params=metric_params,
        mode=mode,
        dtype=computed_dtype(data),
        threads=threads,
        random=check_random_state(random_state),
        verbose=verbose,
    )
    n_samples = data.shape[0]
    needed = settings.least_memory(n_samples)
    with shown_log(verbose), room_for(needed, f"{n_neighbors} neighbours of {n_samples} samples"):
        return _nearest_neighbors(data, settings)[0]


def query_neighbors(
    reference: Any, queries: Any, settings: SearchSettings, frame: Frame | None = None
) -> NearestNeighborsResult:
    """Find the exact nearest neighbours of each query among the reference rows.

    Of the settings, the mode plays no part, and the precision of distances is the data's. What is
    found has a row for each query, nearest first; for metrics that run natively, ties go to the
    lower index, and what a query gets does not depend on the others. A query that is also in the
    reference finds itself. `frame` is what an earlier search of the same reference by the same
    metric found; without it, it is found again.

    Examples
    --------
    >>> from acctsne.neighbors.nearest import query_neighbors
    >>> from acctsne.neighbors.records import SearchSettings
    >>> found = query_neighbors([[0.0], [1.0], [3.0]], [[2.5]], SearchSettings(2))
    >>> found.indices.tolist(), found.distances.tolist()
    ([[2, 1]], [[0.5, 1.5]])
    """
    # Check arguments.
    _check_metric(settings.metric)
    if is_precomputed(settings.metric):
        raise ValueError("metric='precomputed' has no rows to search; give the data")
    data = check_rows(reference, "reference", 1)
    asked = check_rows(queries, "queries", 1)
    if data.shape[1] != asked.shape[1]:
        raise ValueError(
            f"queries have {asked.shape[1]} features, and the reference has {data.shape[1]}"
        )
    check_n_neighbors(settings.n_neighbors, data.shape[0], "the reference's rows")

    native = native_metric(settings.metric, settings.metric_params)
    if native is None:
        data, asked = computed(data), computed(asked)
        with busy("queries", settings.verbose):
            return library_query(data, asked, settings)
    data, asked = dense_if_small(data), dense_if_small(asked)
    if issparse(data) or issparse(asked):
        with progress_bar("queries", asked.shape[0], "pt", settings.verbose) as move_to:
            return sparse_query(csr_matrix(data), csr_matrix(asked), native, settings, move_to)
    dtype = np.result_type(computed_dtype(data), computed_dtype(asked))
    if computed_dtype(data) != computed_dtype(asked):
        data, asked = data.astype(dtype, copy=False), asked.astype(dtype, copy=False)
    form = euclidean_form(data, native, "the fitted data")
    query_form = euclidean_form(asked, native)
    settings = replace(settings, dtype=dtype)
    with progress_bar("queries", len(asked), "pt", settings.verbose) as move_to:
        found = exact_query(form.data, query_form.data, settings, move_to, frame)
    return by_metric(found, query_form, among_themselves=False)


def find_neighbors(X: Any, settings: SearchSettings) -> Neighbors:
    """Find neighbours of checked data and square their distances.

    Whatever the metric and whoever computed it, it is the distance's square that enters the
    Gaussian; that of "sqeuclidean", then, is the fourth power, as in scikit-learn.
    """
    native = native_metric(settings.metric, settings.metric_params)
    if native is not None:
        X = dense_if_small(X)
    if native == "euclidean" and not issparse(X):
        # Squares as the search has them, without a root in between.
        return _search_natively(X, settings)
    result, frame = _nearest_neighbors(X, settings)
    return replace(squared(result, settings.dtype, BAD_METRIC), frame=frame)


def find_all_pairs(X: Any, settings: SearchSettings) -> Neighbors:
    """Take every other sample for a neighbour, in the order of the rows if the metric is foreign.

    The native search, where it serves the metric, is the fastest way to all distances.
    """
    if native_metric(settings.metric, settings.metric_params) is not None:
        return find_neighbors(X, settings)
    X = computed(X)
    with limited_libraries(settings.threads):
        distances = all_distances(X, settings)
        n = X.shape[0]
        others = np.arange(n - 1, dtype=np.int32)
        indices = np.empty((n, n - 1), dtype=np.int32)
        to_others = np.empty((n, n - 1))
        for rows in blocks_of_rows(n, n):
            # All columns but the diagonal.
            indices[rows] = others + (others >= np.arange(rows.start, rows.stop)[:, None])
            to_others[rows] = np.take_along_axis(distances[rows], indices[rows], axis=1)
        found = NearestNeighborsResult(indices, to_others)
        return squared(found, settings.dtype, BAD_METRIC)


def _nearest_neighbors(
    X: Any, settings: SearchSettings
) -> tuple[NearestNeighborsResult, Frame | None]:
    """Find neighbours of checked data by whichever search serves the metric, and its frame."""
    if is_precomputed(settings.metric):
        return graph_neighbors(X, settings.n_neighbors), None
    native = native_metric(settings.metric, settings.metric_params)
    if native is not None:
        X = dense_if_small(X)
    if native is not None and issparse(X) and _is_exact(X, settings.mode):
        with progress_bar("neighbors", X.shape[0], "pt", settings.verbose) as move_to:
            return sparse_neighbors(X, native, settings, move_to), None
    if native is None or issparse(X):
        X = computed(X)
        with busy("neighbors", settings.verbose):
            found = library_neighbors(X, settings)
        log_recall(found)
        distances = in_precision_of_data(found.distances, X.dtype)
        return NearestNeighborsResult(found.indices, distances, found.mode, found.recall), None
    form = euclidean_form(X, native)
    searched = _search_natively(form.data, replace(settings, n_components=0))
    return by_metric(searched, form, among_themselves=True), searched.frame


def _is_exact(X: Any, mode: str) -> bool:
    """Say whether all pairs of sparse rows are compared: "auto" does if nothing else is there."""
    return mode == "exact" or (
        mode == "auto" and (exact_is_cheap(X) or find_spec("pynndescent") is None)
    )


def _search_natively(X: npt.NDArray[Any], settings: SearchSettings) -> Neighbors:
    with progress_bar("neighbors", len(X), "pt", settings.verbose) as move_to:
        found = search(X, settings, move_to)
    log_recall(found)
    return found


def log_recall(found: NearestNeighborsResult | Neighbors) -> None:
    """Tell how good an approximate search was."""
    if found.mode == "approximate":
        logger.info("approximate neighbours: estimated recall %.4f", found.recall)


def _check_metric(metric: Any) -> None:
    if not callable(metric) and not is_precomputed(metric):
        check_choice("metric", metric, VALID_METRICS, "'precomputed', a callable, or ")


def check_n_neighbors(n_neighbors: Any, most: int, why: str) -> int:
    """Check how many neighbours are wanted; `why` says what `most` are."""
    check_integer("n_neighbors", n_neighbors)
    if not 1 <= n_neighbors <= most:
        raise ValueError(f"n_neighbors must be between 1 and {why} ({most}); got {n_neighbors}")
    return int(n_neighbors)


def readable(X: Any, name: str = "X") -> Any:
    """Bring data in reach, sparse data as CSR; refuse bits that are taken for other numbers."""
    X = check_sparse(in_reach(X, name), name)
    if issparse(X):
        check_n_columns(X.shape[1], name)
    check_not_bfloat16(X, name)
    if isinstance(X, np.ndarray) and X.dtype.kind == "f" and not X.dtype.isnative:
        # Not left to scikit-learn's check, which would make double precision of it.
        X = X.astype(stored_dtype(X.dtype))
    return X


def check_rows(X: Any, name: str, least: int) -> Any:
    """Check rows of data, which stay where and as they are if they are of a stored type."""
    X = readable(X, name)
    with turned_into_numbers(X, name):
        checked = check_array(
            X,
            accept_sparse="csr",
            dtype=STORED_TYPES[:2] if issparse(X) else STORED_TYPES,
            ensure_all_finite=False,
            ensure_min_samples=least,
            input_name=name,
        )
    check_type_read(checked, name, X)
    check_finite(checked, name)
    return with_whole_rows(checked)
