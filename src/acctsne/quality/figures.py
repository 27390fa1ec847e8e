"""Figures of a whole embedding."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse
from sklearn.utils.validation import check_array, check_consistent_length

from acctsne import _core
from acctsne.affinities.affinities import Affinities, csr_arrays, joint_probabilities
from acctsne.affinities.inputs import NO_AFFINITY, check_not_negative, sums_to_one
from acctsne.affinities.similarity import PERPLEXITY_WORDS, Similarity, similarity_for
from acctsne.compat.scikit_learn import validate_parameter_constraints
from acctsne.forces.output_kernel import Dof, check_dof, output_kernel
from acctsne.forces.repulsion import REPULSION_CONSTRAINTS, RepulsionOptions, check_method
from acctsne.neighbors.given import is_precomputed
from acctsne.neighbors.metrics import NATIVE_METRICS
from acctsne.neighbors.nearest import check_n_neighbors, check_rows, find_neighbors
from acctsne.neighbors.records import SearchSettings
from acctsne.runtime.checks import check_integer, check_layout_dtype, check_sparse
from acctsne.runtime.labels import label_array, missing_labels
from acctsne.runtime.tables import turned_into_numbers
from acctsne.runtime.threads import effective_threads

# A perplexity, or a word for one that suits the number of samples.
Perplexity = float | str

# The largest that a map may have: squares of distances in many dimensions then stay far from the
# end of double precision.
LARGEST_COORDINATE = 1e150


def affinities(
    X: Any,
    perplexity: Perplexity = 30.0,
    *,
    metric: str = "euclidean",
    n_jobs: int | None = None,
) -> csr_matrix:
    """Compute the joint probabilities P of exact neighbours in double precision.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The data.
    perplexity : float, "auto" or "multiscale", default=30.0
        The perplexity, as in :class:`acctsne.TSNE`; `int(3 * perplexity + 1)` neighbours are used.
    metric : {"euclidean", "l2", "sqeuclidean", "cosine", "correlation"}, default="euclidean"
        Distance between samples. Its square enters the affinities, as in :class:`acctsne.TSNE`.
    n_jobs : int, default=None
        Threads; None for all cores.

    Returns
    -------
    P : csr_matrix of shape (n_samples, n_samples)
        Symmetric, sums to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from acctsne import quality
    >>> P = quality.affinities(np.arange(20.0).reshape(10, 2), perplexity=2)
    >>> round(float(P.sum()), 6)
    1.0
    """
    check_metric(metric, "Affinities.from_data(X, metric=...) takes all others")
    P = _exact_affinities(check_data(X), perplexity, metric, n_jobs)
    return P.to_scipy().copy()  # which the caller may change


def exact_z(Y: npt.ArrayLike, *, dof: Dof = 1.0, n_jobs: int | None = None) -> float:
    """Sum the similarities 1 / (1 + d^2) of all ordered pairs of different points of an embedding.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_components)
        The embedding.
    dof : float or "sklearn", default=1.0
        Degrees of freedom of the similarity, as in :class:`acctsne.TSNE`.
    n_jobs : int, default=None
        Threads; None for all cores.

    Returns
    -------
    z : float
        The normaliser of t-SNE's Q.

    Examples
    --------
    >>> from acctsne import quality
    >>> quality.exact_z([[0.0, 0.0], [1.0, 0.0]])
    1.0
    """
    Y = check_embedding(Y)
    kernel = check_dof(dof, Y.shape[1], "exact_z")
    rows = np.arange(len(Y), dtype=np.int32)
    return float(_core.exact_repulsion(Y, rows, effective_threads(n_jobs), kernel)[1].sum())


def exact_kl(
    X: Any,
    Y: npt.ArrayLike,
    perplexity: Perplexity = 30.0,
    *,
    P: Any = None,
    metric: str = "euclidean",
    dof: Dof = 1.0,
    n_jobs: int | None = None,
) -> float:
    """Compute the KL divergence of an embedding from its data, exactly.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The data; not looked at if P is given.
    Y : array-like of shape (n_samples, n_components)
        The embedding.
    perplexity : float, "auto" or "multiscale", default=30.0
        The perplexity of the affinities, as in :class:`acctsne.TSNE`.
    P : {array-like, sparse matrix} or Affinities, default=None
        The affinities, if they have been computed before: finite, not negative, of sum 1.
    metric : {"euclidean", "l2", "sqeuclidean", "cosine", "correlation"}, default="euclidean"
        Distance between samples. Its square enters the affinities, as in :class:`acctsne.TSNE`.
        With any other metric, a function too, give the affinities:
        `exact_kl(None, Y, P=Affinities.from_data(X, metric=...))`; of distances,
        `P=Affinities.from_distances(D)`.
    dof : float or "sklearn", default=1.0
        Degrees of freedom of the similarity, as in :class:`acctsne.TSNE`. Divergences at different
        degrees of freedom are not comparable.
    n_jobs : int, default=None
        Threads; None for all cores.

    Returns
    -------
    kl : float
        Sum of p log(p / q) over the pairs with p > 0, with Z over all pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from acctsne import quality
    >>> X = np.random.default_rng(0).normal(size=(50, 5))
    >>> bool(quality.exact_kl(X, X[:, :2], perplexity=5) > 0)
    True
    """
    Y = check_embedding(Y)
    kernel = check_dof(dof, Y.shape[1], "exact_kl")
    if P is None:
        check_metric(metric, f"with any other, give the affinities: {_kl_by_affinities(metric)}")
        X = check_data(X)
        check_consistent_length(X, Y)
        P = _exact_affinities(X, perplexity, metric, n_jobs)
    matrix = P.to_scipy() if isinstance(P, Affinities) else _given_affinities(P)
    if matrix.shape != (len(Y), len(Y)):
        raise ValueError(f"P has shape {matrix.shape}, but Y has {len(Y)} rows")
    arrays = csr_arrays(matrix.astype(np.float64))
    return _core.exact_kl(*arrays, Y, kernel, effective_threads(n_jobs))


def force_error(
    Y: npt.ArrayLike,
    method: str = "barnes_hut",
    *,
    angle: float = 0.5,
    force_error: float = 0.02,
    dof: Dof = 1.0,
    dtype: npt.DTypeLike = np.float32,
    n_samples: int = 1000,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> float:
    """Measure how far a method's repulsive forces are from the exact ones on an embedding.

    Parameters
    ----------
    Y : array-like of shape (n_points, n_components)
        The embedding.
    method : {"auto", "barnes_hut", "fft", "exact"}, default="barnes_hut"
        The method to judge.
    angle : float, default=0.5
        The opening angle, for "barnes_hut".
    force_error : float, default=0.02
        The error aimed at, for "fft".
    dof : float or "sklearn", default=1.0
        Degrees of freedom of the similarity, as in :class:`acctsne.TSNE`.
    dtype : numpy.float32 or numpy.float64, default=numpy.float32
        Its precision.
    n_samples : int, default=1000
        Points at which the forces are compared; the method computes all.
    random_state : int, default=0
        Seed of the sample.
    n_jobs : int, default=None
        Threads; None for all cores.

    Returns
    -------
    error : float
        Root mean square of the error divided by that of the force.

    Examples
    --------
    >>> import numpy as np
    >>> from acctsne import quality
    >>> Y = np.random.default_rng(0).normal(size=(500, 2)) * 10
    >>> quality.force_error(Y, "exact") < 1e-5
    True
    """
    Y = check_embedding(Y)
    threads = effective_threads(n_jobs)
    layout = np.ascontiguousarray(Y, dtype=check_layout_dtype(dtype))
    check_integer("n_samples", n_samples)
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1; got {n_samples}")
    given = {"method": method, "angle": angle, "force_error": force_error, "dof": dof}
    validate_parameter_constraints(REPULSION_CONSTRAINTS, given, caller_name="force_error")
    check_method(method, Y.shape[1])
    repulsion = RepulsionOptions.of(given)
    approximate, _ = _core.repulsion(layout, repulsion.native(Y.shape[1]), threads)
    kernel = output_kernel(repulsion.dof, Y.shape[1])
    n = len(Y)
    rng = seeded(random_state)
    rows = np.sort(rng.choice(n, size=min(n_samples, n), replace=False)).astype(np.int32)
    exact, _ = _core.exact_repulsion(layout.astype(np.float64), rows, threads, kernel)
    error = approximate[rows].astype(np.float64) - exact
    size = float(np.sqrt(np.square(exact).mean()))
    return float(np.sqrt(np.square(error).mean())) / size if size > 0 else 0.0


def neighbor_preservation(
    X: Any,
    Y: npt.ArrayLike,
    n_neighbors: int = 10,
    *,
    metric: str = "euclidean",
    n_jobs: int | None = None,
) -> float:
    """Measure which part of each point's nearest neighbours in X are its nearest in Y too.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The data.
    Y : array-like of shape (n_samples, n_components)
        The embedding.
    n_neighbors : int, default=10
        How many neighbours are compared.
    metric : {"euclidean", "l2", "sqeuclidean", "cosine", "correlation"}, default="euclidean"
        Distance between samples.
    n_jobs : int, default=None
        Threads; None for all cores.

    Returns
    -------
    preservation : float
        Between 0 and 1, the mean over all points.

    Examples
    --------
    >>> import numpy as np
    >>> from acctsne import quality
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> quality.neighbor_preservation(X, 3 * X, n_neighbors=5)
    1.0
    """
    X = check_data(X)
    Y = check_embedding(Y)
    check_consistent_length(X, Y)
    check_metric(metric)
    in_data = _neighbor_indices(X, n_neighbors, n_jobs, metric)
    in_map = _neighbor_indices(Y, n_neighbors, n_jobs)
    return _shared_fraction(in_data, in_map)


def label_agreement(
    Y: npt.ArrayLike, labels: Any, n_neighbors: int = 10, *, n_jobs: int | None = None
) -> float:
    """Measure which part of the points have the label of most of their nearest neighbours.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_components)
        The embedding.
    labels : array-like of shape (n_samples,)
        The label of each point. Points without one, None or NaN, are left out, as if they were not
        in the map: they are neither judged nor anybody's neighbours. Numbers and text may be mixed.
    n_neighbors : int, default=10
        How many neighbours vote; of labels with as many votes the smallest wins.
    n_jobs : int, default=None
        Threads; None for all cores.

    Returns
    -------
    agreement : float
        Between 0 and 1.

    Examples
    --------
    >>> from acctsne import quality
    >>> quality.label_agreement([[0.0], [1.0], [8.0], [9.0]], ["a", "a", "b", "b"], n_neighbors=1)
    1.0
    """
    Y = check_embedding(Y)
    given = label_array(labels)
    if given.ndim != 1:
        raise ValueError(
            f"labels must have one entry for each of the {len(Y)} points; got shape {given.shape}"
        )
    check_consistent_length(Y, given)
    labelled = ~missing_labels(given)
    check_integer("n_neighbors", n_neighbors)
    if not labelled.all():
        if labelled.sum() <= n_neighbors:
            raise ValueError(
                f"only {labelled.sum()} of {len(Y)} points have a label; n_neighbors must be less; "
                f"got {n_neighbors}"
            )
        Y, given = Y[labelled], given[labelled]
    names, coded = _coded(given)
    neighbors = _neighbor_indices(Y, n_neighbors, n_jobs)
    votes = np.zeros((len(Y), len(names)), dtype=np.int32)
    np.add.at(votes, (np.arange(len(Y))[:, None], coded[neighbors]), 1)
    return float((votes.argmax(axis=1) == coded).mean())


def _coded(labels: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Give labels numbers in their order, or in that of type and text if they have none."""
    try:
        return np.unique(labels, return_inverse=True)
    except TypeError:
        keys = [f"{type(label).__name__} {label!r}" for label in labels.tolist()]
        return np.unique(keys, return_inverse=True)


def _exact_affinities(
    X: Any, perplexity: Perplexity, metric: str, n_jobs: int | None
) -> Affinities:
    """Compute P of the exact neighbours in checked data."""
    n_samples = X.shape[0]
    similarity = check_perplexity(perplexity, n_samples)
    threads = effective_threads(n_jobs)
    k = min(n_samples - 1, similarity.usual_neighbors)
    settings = SearchSettings(k, metric, mode="exact", dtype=np.dtype(np.float64), threads=threads)
    return joint_probabilities(find_neighbors(X, settings), similarity, threads)


def _given_affinities(P: Any) -> csr_matrix:
    """Check affinities whose logarithms are to be taken; they need not be those of t-SNE."""
    P = check_sparse(P, "P")
    with turned_into_numbers(P, "P"):
        checked = check_array(P, accept_sparse="csr", dtype=np.float64, input_name="P")
    matrix = csr_matrix(checked)
    check_not_negative(matrix.data, "P")
    if matrix.count_nonzero() == np.count_nonzero(matrix.diagonal()):
        raise ValueError(NO_AFFINITY)
    total = float(matrix.sum() - matrix.diagonal().sum())
    if not sums_to_one(total):
        raise ValueError(
            f"P sums to {total:g} over pairs of different samples, and probabilities sum to 1; "
            "Affinities.from_matrix(P) makes some of it"
        )
    return matrix


def check_data(X: Any) -> Any:
    """Check rows of data: a dense array of a stored type, or a CSR matrix in double precision.

    The search of dense rows computes in double precision whatever they are, that of sparse ones in
    theirs.
    """
    rows = check_rows(X, "X", 2)
    return rows.astype(np.float64, copy=False) if issparse(rows) else rows


def check_embedding(Y: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Check the points of a map."""
    with turned_into_numbers(Y, "Y"):
        checked: npt.NDArray[np.float64] = check_array(
            Y, dtype=np.float64, order="C", ensure_min_samples=2, input_name="Y"
        )
    largest = np.abs(checked).max()
    if largest > LARGEST_COORDINATE:
        raise ValueError(
            f"Y has a coordinate of size {largest:g}; squares of distances are finite for maps "
            f"within {LARGEST_COORDINATE:g} only"
        )
    return checked


def _kl_by_affinities(metric: Any) -> str:
    """Say how a divergence is computed with a metric that the figures do not have."""
    made = "from_distances(X)" if is_precomputed(metric) else "from_data(X, metric=...)"
    return f"exact_kl(None, Y, P=Affinities.{made})"


def check_metric(metric: Any, otherwise: str = "") -> None:
    """Refuse a metric that is not computed natively; `otherwise` says what to do with others."""
    if not isinstance(metric, str) or metric not in NATIVE_METRICS:
        advice = f"; {otherwise}" if otherwise else ""
        raise ValueError(
            f"metric must be one of {', '.join(NATIVE_METRICS)}; got {metric!r}{advice}"
        )


def check_perplexity(perplexity: Any, n_samples: int) -> Similarity:
    """Refuse a perplexity that samples cannot have; return the similarity of one they can."""
    if isinstance(perplexity, str) and perplexity in PERPLEXITY_WORDS:
        return similarity_for(perplexity, n_samples)
    if not isinstance(perplexity, int | float | np.integer | np.floating):
        words = " or ".join(map(repr, PERPLEXITY_WORDS))
        raise TypeError(f"perplexity must be a number, {words}; got {perplexity!r}")
    if not 0 < perplexity < n_samples:
        raise ValueError(
            f"perplexity must be between 0 and n_samples ({n_samples}); got {perplexity}"
        )
    return similarity_for(float(perplexity), n_samples)


def seeded(random_state: Any) -> np.random.Generator:
    """Return the generator of a seed."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state must be an integer, not negative, or None; got {random_state!r:.100}"
        ) from None


def _neighbor_indices(
    X: Any, n_neighbors: int, n_jobs: int | None, metric: str = "euclidean"
) -> npt.NDArray[np.int32]:
    k = check_n_neighbors(n_neighbors, X.shape[0] - 1, "n_samples - 1")
    settings = SearchSettings(k, metric, mode="exact", threads=effective_threads(n_jobs))
    return find_neighbors(X, settings).indices


def _shared_fraction(a: npt.NDArray[np.int32], b: npt.NDArray[np.int32]) -> float:
    # Rows of both are free of repeats, so an element shared is one that occurs twice in the joined
    # row.
    joined = np.sort(np.concatenate([a, b], axis=1), axis=1)
    return float((joined[:, 1:] == joined[:, :-1]).sum() / a.size)
