"""From what the user passes to one plain Problem whose every value has been checked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_non_negative

from acctsne.affinities.affinities import Affinities, in_precision
from acctsne.affinities.similarity import Similarity, listed, similarity_for
from acctsne.compat.scikit_learn import Interval
from acctsne.embedding.arguments import check_fixed
from acctsne.forces.repulsion import RepulsionOptions, check_method
from acctsne.init.layouts import check_initial_layout
from acctsne.neighbors.given import check_graph, is_precomputed
from acctsne.neighbors.nearest import readable
from acctsne.neighbors.records import SearchSettings
from acctsne.optimize.optimizer import layout_memory
from acctsne.optimize.schedule import Schedule, check_pair
from acctsne.optimize.stopping import StoppingRules
from acctsne.runtime.checks import check_layout_dtype, check_n_samples, check_parameter_sizes
from acctsne.runtime.progress import logger
from acctsne.runtime.rows import STORED_TYPES, check_finite, check_type_read, with_whole_rows
from acctsne.runtime.tables import turned_into_numbers
from acctsne.runtime.threads import effective_threads


@dataclass(frozen=True)
class Samples:
    """Data whose neighbours and affinities are still to be found."""

    X: Any  # dense array of a stored type, CSR matrix, or square distances if precomputed
    similarity: Similarity
    search: SearchSettings

    @property
    def precomputed(self) -> bool:
        """Whether X are distances or neighbours instead of features."""
        return is_precomputed(self.search.metric)


@dataclass(frozen=True)
class Problem:
    """A t-SNE problem ready for the native core."""

    given: Samples | Affinities
    n_samples: int
    n_components: int
    dtype: np.dtype[Any]
    init: str | npt.NDArray[Any]
    repulsion: RepulsionOptions
    schedule: Schedule
    stopping: StoppingRules  # by which the descent ends before its time
    threads: int
    random_state: Any
    verbose: int
    fixed: npt.NDArray[np.uint8] | None = None  # not 0 for samples that stay where init puts them

    def least_memory(self) -> int:
        """Estimate the bytes that a fit takes beside its data, from below.

        What the search finds; P as edges, of which there are at least as many, each a column of 16
        bits and a value, of 16 bits too in single precision; the layout.
        """
        real = self.dtype.itemsize
        layout = layout_memory(self.n_samples, self.n_components, self.dtype)
        if isinstance(self.given, Affinities) or self.given.precomputed:
            return layout
        search = self.given.search
        edge = 4 if real == 4 else 2 + real
        edges = self.n_samples * search.n_neighbors * edge
        return search.least_memory(self.n_samples) + edges + layout


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Check those parameters of an estimator that scikit-learn's constraints cannot."""
    check_parameter_sizes(parameters)
    check_method(parameters["method"], parameters["n_components"])
    check_pair(
        "learning_rate", parameters["learning_rate"], Interval(Real, 0, None, closed="neither")
    )
    check_pair("momentum", parameters["momentum"], Interval(Real, 0, 1, closed="left"))
    late_start, max_iter = parameters["late_exaggeration_start"], parameters["max_iter"]
    if late_start is not None and late_start >= max_iter:
        raise ValueError(
            f"late_exaggeration_start ({late_start}) must be less than max_iter "
            f"({max_iter}): late exaggeration would never begin"
        )
    check_layout_dtype(parameters["dtype"])
    effective_threads(parameters["n_jobs"])


def problem_of(
    parameters: Mapping[str, Any],
    X: Any,
    fixed: Any = None,
    *,
    check: Callable[..., Any],
    caller: str,
) -> Problem:
    """Check the parameters of an estimator, and whatever a fit takes against them.

    `check` does what scikit-learn's check_array does, for the estimator that is called so.
    """
    check_parameters(parameters)
    if isinstance(X, Affinities):
        return problem_of_affinities(parameters, X, fixed)
    precomputed = is_precomputed(parameters["metric"])
    X = readable(check_graph(X) if precomputed else X)
    # Distances and sparse matrices are of those types that scikit-learn takes.
    stays = not issparse(X) and not precomputed
    with turned_into_numbers(X):
        checked = check(
            X,
            accept_sparse="csr",
            ensure_min_samples=2,
            ensure_all_finite=False,
            dtype=STORED_TYPES if stays else STORED_TYPES[:2],
            order=None if stays else "C",
        )
    check_type_read(checked, "X", X)
    check_finite(checked, "X", caller, effective_threads(parameters["n_jobs"]))
    return problem_of_data(parameters, with_whole_rows(checked), fixed)


def problem_of_data(parameters: Mapping[str, Any], X: Any, fixed: Any = None) -> Problem:
    """Check rows of finite numbers against the parameters of an estimator.

    Raises ValueError or TypeError for what cannot work.
    """
    n_samples = X.shape[0]
    check_n_samples(n_samples)
    metric, method, init = parameters["metric"], parameters["method"], parameters["init"]
    if is_precomputed(metric):
        _check_distances(X, init, method)
    similarity = _similarity(parameters["perplexity"], n_samples)
    all_pairs = method == "exact"
    from_components = isinstance(init, str) and init == "pca"
    search = SearchSettings(
        n_neighbors=n_samples - 1 if all_pairs else min(n_samples - 1, similarity.usual_neighbors),
        metric=metric,
        metric_params=parameters["metric_params"],
        mode="exact" if all_pairs else parameters["neighbors"],
        dtype=check_layout_dtype(parameters["dtype"]),
        threads=effective_threads(parameters["n_jobs"]),
        random=check_random_state(parameters["random_state"]),
        verbose=parameters["verbose"],
        n_components=int(parameters["n_components"]) if from_components else 0,
    )
    return _problem(parameters, Samples(X, similarity, search), n_samples, fixed)


def _similarity(perplexity: Any, n_samples: int) -> Similarity:
    word = isinstance(perplexity, str)
    if not word and perplexity >= n_samples:
        raise ValueError(f"perplexity ({perplexity}) must be less than n_samples ({n_samples})")
    similarity = similarity_for(perplexity, n_samples)
    if word:
        logger.info("perplexity %s", listed(similarity.perplexities))
    return similarity


def problem_of_affinities(
    parameters: Mapping[str, Any], P: Affinities, fixed: Any = None
) -> Problem:
    """Check the parameters of an estimator for an embedding of given affinities."""
    init = parameters["init"]
    if isinstance(init, str) and init == "pca":
        raise ValueError(
            'The parameter init="pca" needs data, and X is an Affinities. Use init="spectral", '
            'init="random" or give an array.'
        )
    given = in_precision(P, check_layout_dtype(parameters["dtype"]))
    return _problem(parameters, given, P.n_samples, fixed)


def _problem(
    parameters: Mapping[str, Any], given: Samples | Affinities, n_samples: int, fixed: Any
) -> Problem:
    dtype = check_layout_dtype(parameters["dtype"])
    n_components = int(parameters["n_components"])
    init = parameters["init"]
    if isinstance(init, np.ndarray):
        init = check_initial_layout(init, n_samples, n_components, dtype)
    return Problem(
        given=given,
        n_samples=n_samples,
        n_components=n_components,
        dtype=dtype,
        init=init,
        repulsion=RepulsionOptions.of(parameters),
        schedule=Schedule.of(parameters),
        stopping=StoppingRules.of(parameters),
        threads=effective_threads(parameters["n_jobs"]),
        random_state=parameters["random_state"],
        verbose=parameters["verbose"],
        fixed=check_fixed(fixed, n_samples),
    )


def check_new_samples(X: Any, like: Any, metric: Any) -> Any:
    """Check samples that are to be placed into a map of data `like` this."""
    if is_precomputed(metric):
        if issparse(X):
            raise TypeError(
                "with metric='precomputed', transform takes a dense matrix of the distances of "
                "new samples from all samples of the map; got a sparse one"
            )
        check_non_negative(X, "TSNE.transform()")
        return X
    # New rows are sparse if the map's data is, so that rows of both can be compared.
    if issparse(like):
        return csr_matrix(X)
    return X.toarray() if issparse(X) else X


def _check_distances(X: Any, init: Any, method: str) -> None:
    if isinstance(init, str) and init == "pca":
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
    if method == "exact" and issparse(X):
        raise TypeError(
            'TSNE with method="exact" does not accept sparse precomputed distance matrix. '
            'Use method="barnes_hut" or provide the dense distance matrix.'
        )
