"""From what the user passes to one plain Problem whose every value has been checked."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_non_negative, validate_data

from acctsne._dof import DOF_CONSTRAINTS
from acctsne._graph import check_graph
from acctsne._threads import effective_threads

if TYPE_CHECKING:
    from acctsne._affinities import Affinities
    from acctsne._tsne import TSNE

# Point ids are 32-bit, and a tree has up to two nodes a point.
MAX_SAMPLES = 2**30

# Largest coordinate of a layout: moments of the tree's cells stay within float32 up to here.
MAX_COORDINATE = 1e12

# How repulsive forces can be computed.
METHODS = ("auto", "barnes_hut", "fft", "exact")

# How neighbours can be searched.
NEIGHBOR_MODES = ("auto", "exact", "approximate")

# Most dimensions of a map that the tree and the grid have; all pairs take any number.
MAX_COMPONENTS = {"barnes_hut": 3, "fft": 2}

# Far more than anyone waits for, and sums of such counts fit the native core's integers.
MAX_ITERATIONS = 2**31 - 1

# What an estimator and an Embedding share, in scikit-learn's form.
ENGINE_CONSTRAINTS: dict[str, Any] = {
    "n_components": [Interval(Integral, 1, None, closed="left")],
    "method": [StrOptions(set(METHODS))],
    "angle": [Interval(Real, 0, 1, closed="both")],
    "force_error": [Interval(Real, 1e-4, 0.2, closed="both")],
    "dof": DOF_CONSTRAINTS,
    "n_jobs": [None, Integral],
}


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
    neighbors: str
    threads: int
    fixed: npt.NDArray[np.uint8] | None = None  # not 0 for samples that stay where init puts them


def check_problem(estimator: "TSNE", X: Any, fixed: Any = None) -> Problem:
    """Check X against the parameters; raise ValueError or TypeError for what cannot work."""
    dtype, threads = _check_parameters(estimator)
    method = estimator.method

    # Check arguments: X. Whatever is not float32 becomes float64. The finiteness check sums, and
    # may overflow on the way.
    if estimator.metric == "precomputed":
        X = check_graph(X)
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
        neighbors=estimator.neighbors,
        threads=threads,
        fixed=check_fixed(fixed, n_samples),
    )


def _check_parameters(estimator: "TSNE") -> tuple[np.dtype[Any], int]:
    """Check what scikit-learn's constraints cannot say; returns the precision and the threads."""
    check_method(estimator.method, estimator.n_components)
    check_pair("learning_rate", estimator.learning_rate, Interval(Real, 0, None, closed="neither"))
    check_pair("momentum", estimator.momentum, Interval(Real, 0, 1, closed="left"))
    late_start = estimator.late_exaggeration_start
    if late_start is not None and late_start >= estimator.max_iter:
        raise ValueError(
            f"late_exaggeration_start ({late_start}) must be less than max_iter "
            f"({estimator.max_iter}): late exaggeration would never begin"
        )
    return check_layout_dtype(estimator.dtype), effective_threads(estimator.n_jobs)


def affinities_problem(estimator: "TSNE", P: "Affinities", fixed: Any = None) -> Problem:
    """Check the parameters for an embedding of given affinities."""
    dtype, threads = _check_parameters(estimator)
    init = estimator.init
    if isinstance(init, str) and init == "pca":
        raise ValueError(
            'The parameter init="pca" needs data, and X is an Affinities. Use init="spectral", '
            'init="random" or give an array.'
        )
    if isinstance(init, np.ndarray):
        init = check_initial_layout(init, P.n_samples, estimator.n_components, dtype)
    return Problem(
        X=P._as_type(dtype),
        n_samples=P.n_samples,
        n_components=int(estimator.n_components),
        n_neighbors=0,
        perplexity=0.0,
        dtype=dtype,
        metric=estimator.metric,
        metric_params=estimator.metric_params,
        init=init,
        method=estimator.method,
        neighbors=estimator.neighbors,
        threads=threads,
        fixed=check_fixed(fixed, P.n_samples),
    )


def check_new_data(estimator: "TSNE", X: Any) -> Any:
    """Check samples that are to be placed into a fitted map."""
    if estimator._fit_X is None:
        raise ValueError(
            "this TSNE was fitted to an Affinities, without data that new samples could be "
            "compared with; fit it to data, or use Embedding.transform with their neighbours"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        new = validate_data(
            estimator,
            X,
            reset=False,
            accept_sparse="csr",
            dtype=[estimator._fit_X.dtype],
            order="C",
        )
    if estimator.metric == "precomputed":
        if issparse(new):
            raise TypeError(
                "with metric='precomputed', transform takes a dense matrix of the distances of "
                "new samples from all samples of the map; got a sparse one"
            )
        check_non_negative(new, "TSNE.transform()")
        return new
    # As the data of the map is kept, so that rows can be compared.
    if issparse(estimator._fit_X):
        return csr_matrix(new)
    return new.toarray() if issparse(new) else new


def check_callbacks(callback: Any) -> list[Any]:
    """Return the callbacks as a list."""
    callbacks = [] if callback is None else [callback] if callable(callback) else list(callback)
    for one in callbacks:
        if not callable(one):
            raise TypeError(f"callback must be callable, or a list of callables; got {one!r}")
    return callbacks


def check_pair(name: str, value: Any, allowed: Interval) -> None:
    """Check a pair of numbers, for early exaggeration and the rest; anything else passes."""
    if not isinstance(value, tuple | list):
        return
    if len(value) != 2 or not all(allowed.is_satisfied_by(one) for one in value):
        raise ValueError(
            f"{name} as a pair, for early exaggeration and for the rest, must be two numbers, each "
            f"{allowed}; got {value!r}"
        )


def check_method(method: str, n_components: int) -> None:
    """Check that the method works in so many dimensions."""
    limit = MAX_COMPONENTS.get(method, n_components)
    if n_components > limit:
        raise ValueError(
            f"'n_components' should be inferior to {limit + 1} for method={method!r}; got "
            f"n_components={n_components}. Use method='auto', which takes what there is for so "
            "many, or method='exact', which has no limit"
        )


def check_fixed(fixed: Any, n_samples: int) -> npt.NDArray[np.uint8] | None:
    """Turn a mask or indices of points that stay in place into a mask, None if there are none."""
    if fixed is None:
        return None
    given = np.asarray(fixed)
    if given.dtype == bool:
        if given.shape != (n_samples,):
            raise ValueError(
                f"fixed is a mask of shape {given.shape}; expected ({n_samples},), one value per "
                "sample"
            )
        return given.astype(np.uint8) if given.any() else None
    if given.ndim != 1 or (given.size and not np.issubdtype(given.dtype, np.integer)):
        raise ValueError(
            "fixed must be a boolean mask or a list of indices; got an array of "
            f"{given.dtype} with shape {given.shape}"
        )
    if not given.size:
        return None
    wrong = given[(given < -n_samples) | (given >= n_samples)]
    if wrong.size:
        raise ValueError(
            f"fixed names sample {wrong[0]}; there are {n_samples}, counted from 0, or from -1 "
            "backwards"
        )
    mask = np.zeros(n_samples, dtype=np.uint8)
    mask[given.astype(np.intp)] = 1
    return mask


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
