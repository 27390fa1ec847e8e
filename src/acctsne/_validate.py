"""From what the user passes to one plain Problem whose every value has been checked."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.utils.validation import check_array, check_non_negative, validate_data

from acctsne._threads import effective_threads

if TYPE_CHECKING:
    from acctsne._tsne import TSNE

# Point ids are 32-bit, and a tree has up to two nodes a point.
MAX_SAMPLES = 2**30

# Largest coordinate of a layout: moments of the tree's cells stay within float32 up to here.
MAX_COORDINATE = 1e12

# How repulsive forces can be computed.
METHODS = ("auto", "barnes_hut", "fft", "exact")

# Dimensions that the tree and the force kernels are compiled for.
MAX_COMPONENTS = 3


@dataclass(frozen=True)
class Problem:
    """A t-SNE problem ready for the native core."""

    X: Any  # dense C-contiguous array, CSR matrix, or square distances if metric == "precomputed"
    n_samples: int
    n_components: int
    n_neighbors: int
    perplexity: float
    dtype: np.dtype[Any]
    metric: Any
    metric_params: dict[str, Any] | None
    init: str | npt.NDArray[Any]
    method: str
    threads: int


def check_problem(estimator: "TSNE", X: Any) -> Problem:
    """Check X against the parameters; raise ValueError or TypeError for what cannot work."""
    # Check arguments: those that need no data.
    dtype = check_layout_dtype(estimator.dtype)
    threads = effective_threads(estimator.n_jobs)
    method = estimator.method
    limit = 2 if method == "fft" else MAX_COMPONENTS
    if estimator.n_components > limit:
        raise ValueError(
            f"'n_components' should be inferior to {limit + 1} for method={method!r}; got "
            f"n_components={estimator.n_components}"
        )

    # Check arguments: X. Whatever is not float32 becomes float64. The finiteness check sums, and
    # may overflow on the way.
    with np.errstate(over="ignore", invalid="ignore"):
        X = validate_data(
            estimator,
            X,
            accept_sparse="csr",
            ensure_min_samples=2,
            dtype=[np.float64, np.float32],
            order="C",
        )
    n_samples = X.shape[0]
    if n_samples > MAX_SAMPLES:
        raise ValueError(f"X has {n_samples} samples; at most {MAX_SAMPLES} are supported")
    if estimator.metric == "precomputed":
        _check_distances(estimator, X)
    if estimator.perplexity >= n_samples:
        raise ValueError(
            f"perplexity ({estimator.perplexity}) must be less than n_samples ({n_samples})"
        )

    # Check arguments: init.
    init = estimator.init
    if isinstance(init, np.ndarray):
        init = check_initial_layout(init, n_samples, estimator.n_components, dtype)

    if method == "exact":
        n_neighbors = n_samples - 1
    else:
        n_neighbors = min(n_samples - 1, int(3.0 * estimator.perplexity + 1))
    return Problem(
        X=X,
        n_samples=n_samples,
        n_components=int(estimator.n_components),
        n_neighbors=n_neighbors,
        perplexity=float(estimator.perplexity),
        dtype=dtype,
        metric=estimator.metric,
        metric_params=estimator.metric_params,
        init=init,
        method=method,
        threads=threads,
    )


def check_layout_dtype(dtype: Any) -> np.dtype[Any]:
    """Return float32 or float64, whichever `dtype` names."""
    try:
        checked: np.dtype[Any] = np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"dtype must be numpy.float32 or numpy.float64; got {dtype!r}") from error
    if checked not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be numpy.float32 or numpy.float64; got {dtype!r}")
    return checked


def check_initial_layout(
    init: npt.NDArray[Any], n_samples: int, n_components: int, dtype: np.dtype[Any]
) -> npt.NDArray[Any]:
    """Check a layout that the user gives; returns a C-contiguous copy of the right precision."""
    expected = (n_samples, n_components)
    if init.shape != expected:
        raise ValueError(
            f"init has shape {init.shape}; expected {expected}, one row per sample and one column "
            "per component"
        )
    layout: npt.NDArray[Any] = check_array(
        init, dtype=np.float64, order="C", ensure_min_samples=2, input_name="init"
    )
    limit = MAX_COORDINATE
    largest = float(np.abs(layout).max())
    if largest > limit:
        raise ValueError(
            f"init has a coordinate of size {largest:g}; layouts must stay within {limit:g}. "
            "Scale it down: a standard deviation of 1e-4 is usual"
        )
    return layout.astype(dtype)


def _check_distances(estimator: "TSNE", X: Any) -> None:
    if isinstance(estimator.init, str) and estimator.init == "pca":
        raise ValueError(
            'The parameter init="pca" cannot be used with metric="precomputed". '
            'Use init="random" or give an array.'
        )
    if X.shape[0] != X.shape[1]:
        raise ValueError(f"X should be a square distance matrix; got shape {X.shape}")
    check_non_negative(
        X,
        "TSNE.fit(). With metric='precomputed', X should contain positive distances.",
    )
    if estimator.method == "exact" and issparse(X):
        raise TypeError(
            'TSNE with method="exact" does not accept sparse precomputed distance matrix. '
            'Use method="barnes_hut" or provide the dense distance matrix.'
        )
