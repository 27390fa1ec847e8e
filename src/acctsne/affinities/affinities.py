"""Step 2: the joint probabilities P."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.utils import check_random_state

from acctsne import _core
from acctsne.affinities.forms import Conditional, Matrix, ReadOnly, named_arrays
from acctsne.affinities.inputs import (
    check_data,
    check_matrix,
    check_metric,
    check_neighbors,
    neighbors_in_distances,
    wanted_neighbors,
)
from acctsne.affinities.similarity import Similarity, check_similarity
from acctsne.files.archive import Contents
from acctsne.neighbors.nearest import find_neighbors
from acctsne.neighbors.records import Neighbors, SearchSettings
from acctsne.runtime.checks import check_layout_dtype
from acctsne.runtime.memory import room_for
from acctsne.runtime.progress import busy, logger, shown_log
from acctsne.runtime.threads import effective_threads
from acctsne.runtime.timer import StageTimer


@dataclass(frozen=True, eq=False, repr=False)
class Affinities(ReadOnly):
    """How much each pair of samples belongs together: t-SNE's matrix P.

    Made by :meth:`from_data`, :meth:`from_neighbors`, :meth:`from_distances` or
    :meth:`from_matrix`, and not changed afterwards. P is symmetric, not negative, zero on the
    diagonal, and sums to 1. It is the same for any number of threads.

    Unless a matrix was given, only each sample's own distribution over its neighbours is held at
    first, which is all that an :class:`Embedding` needs. The matrix is made, and held instead, when
    `offsets`, `columns`, `values`, :meth:`to_scipy` or the printed form are asked for.

    Attributes
    ----------
    offsets : ndarray of shape (n_samples + 1,), int64
        Row i of P is `columns[offsets[i]:offsets[i + 1]]` and the `values` there.

    columns : ndarray of shape (n_edges,), int32
        Ascending within each row.

    values : ndarray of shape (n_edges,)
        Affinities, float32 or float64.

    perplexities : ndarray of shape (n_samples,)
        The perplexity that each sample's own distribution reached, before P was made symmetric; of
        a given matrix, that of its rows.

    n_neighbors : int or None
        Neighbours of each sample before P was made symmetric; None for a given matrix.

    similarity : Similarity or None
        How distances became probabilities: `kind`, `perplexities` as used, and `bandwidth`. None
        for a given matrix.

    changes : tuple of str
        What was done to a given matrix to make it a P.

    Examples
    --------
    >>> import numpy as np
    >>> from acctsne import Affinities
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> affinities = Affinities.from_data(X, perplexity=10)
    >>> affinities
    Affinities(n_samples=100, kind='gaussian', n_neighbors=31, n_edges=4180, dtype=float32)
    >>> affinities.perplexities[:3].round(3).tolist()
    [10.0, 10.0, 10.0]
    >>> affinities.to_scipy().shape
    (100, 100)
    """

    _what_to_give_for_data: ClassVar[str] = (
        "give what it was made from. An Affinities is embedded by TSNE.fit and Embedding, and "
        "judges a map by quality.exact_kl(None, Y, P=affinities)"
    )

    _P: Conditional | Matrix
    perplexities: npt.NDArray[np.float64]
    n_neighbors: int | None = None
    similarity: Similarity | None = None
    changes: tuple[str, ...] = ()
    _threads: int = 1

    @property
    def _matrix(self) -> Matrix:
        """P as a matrix, which from now on is held in place of what it is made of."""
        P = self._P
        if isinstance(P, Conditional):
            P = P.symmetrized(self._threads)
            object.__setattr__(self, "_P", P)
        return P

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Where each row begins in `columns` and `values`, and the last one ends."""
        return self._matrix.offsets

    @property
    def columns(self) -> npt.NDArray[np.int32]:
        """The columns of all rows."""
        return self._matrix.columns

    @property
    def values(self) -> npt.NDArray[Any]:
        """The affinities of all rows."""
        return self._matrix.values

    @property
    def n_samples(self) -> int:
        """The number of rows and of columns."""
        return self._P.n_samples

    @property
    def kind(self) -> str:
        """The kind of affinity, "given" for a given matrix."""
        return self.similarity.kind if self.similarity else "given"

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision of the values."""
        return self._P.values.dtype

    def to_scipy(self) -> csr_matrix:
        """Return P as a SciPy matrix that shares the arrays, so cannot be written to.

        Its `copy()` can, which some compiled packages insist on.

        Returns
        -------
        P : csr_matrix of shape (n_samples, n_samples)
            Symmetric, sums to 1.
        """
        n = self.n_samples
        return csr_matrix((self.values, self.columns, self.offsets), shape=(n, n))

    def __repr__(self) -> str:
        return (
            f"Affinities(n_samples={self.n_samples}, kind={self.kind!r}, "
            f"n_neighbors={self.n_neighbors}, n_edges={len(self.columns)}, dtype={self.dtype})"
        )

    @classmethod
    def from_data(
        cls,
        X: Any,
        *,
        perplexity: float | Sequence[float] = 30.0,
        kind: str = "gaussian",
        n_neighbors: int | None = None,
        bandwidth: float | None = None,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: dict[str, Any] | None = None,
        neighbors: str = "auto",
        dtype: npt.DTypeLike = np.float32,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> "Affinities":
        """Find the nearest neighbours of every sample and compute affinities to them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples in rows, on disk too, as :func:`acctsne.nearest_neighbors` takes them.

        perplexity : float or list of float, default=30.0
            The effective number of neighbours of each sample. A list is for the multiscale kinds.
            One larger than the number of neighbours becomes a third of that, with a warning.

        kind : str, default="gaussian"
            How a neighbour's share falls with its distance d; the Gaussians are
            exp(-d² / (2 σ²)).

            - "gaussian": a Gaussian for each sample, of the given perplexity.
            - "multiscale": the mean of Gaussians of several perplexities.
            - "multiscale_mixture": the sum of their densities exp(-d² / (2 σ²)) / σ, normalised,
              in which narrow Gaussians weigh more among near neighbours.
            - "uniform": all neighbours alike, and all pairs of which one is a neighbour of the
              other have the same affinity.
            - "fixed": Gaussians of one `bandwidth` σ for all samples.

        n_neighbors : int, default=None
            Neighbours of each sample; None takes `int(3 * perplexity + 1)`, or the perplexity
            rounded if the kind is "uniform", but at most n_samples - 1.

        bandwidth : float, default=None
            σ for `kind="fixed"`, in the unit of the distances.

        metric : str or callable, default="euclidean"
            Distance between samples. Whatever the metric, its square enters the Gaussian.

        metric_params : dict, default=None
            More arguments for the metric.

        neighbors : {"auto", "exact", "approximate"}, default="auto"
            How neighbours are searched; see :func:`acctsne.nearest_neighbors`.

        dtype : numpy.float32 or numpy.float64, default=numpy.float32
            Precision of the affinities.

        n_jobs : int, default=None
            Threads; None for all cores.

        random_state : int, RandomState instance or None, default=None
            Seed of the sample that an approximate search's recall is estimated from, and of
            pynndescent; an exact search needs none.

        verbose : int, default=0
            1 logs and draws progress on a terminal or in a notebook.

        Returns
        -------
        affinities : Affinities
            The affinities of the samples, in the order of X.

        Examples
        --------
        >>> import numpy as np
        >>> from acctsne import Affinities
        >>> X = np.random.default_rng(0).normal(size=(200, 5))
        >>> Affinities.from_data(X, perplexity=[5, 50], kind="multiscale").n_neighbors
        151
        >>> Affinities.from_data(X, kind="uniform", n_neighbors=15).perplexities[0]
        np.float64(15.0)
        """
        similarity = check_similarity(kind, perplexity, bandwidth)
        checked_dtype = check_layout_dtype(dtype)
        threads = effective_threads(n_jobs)
        X = check_data(X)
        n_samples = X.shape[0]
        k = wanted_neighbors(n_neighbors, similarity.usual_neighbors, n_samples)
        check_metric(metric, neighbors)
        similarity = similarity.reduced_to(k, n_samples)
        settings = SearchSettings(
            k,
            metric,
            metric_params=metric_params,
            mode=neighbors,
            dtype=checked_dtype,
            threads=threads,
            random=check_random_state(random_state),
            verbose=verbose,
        )
        room = room_for(settings.least_memory(n_samples), f"{k} neighbours of {n_samples} samples")
        with shown_log(verbose), room:
            found = find_neighbors(X, settings)
            with busy("affinities", verbose):
                return joint_probabilities(found, similarity, threads)

    @classmethod
    def from_neighbors(
        cls,
        indices: npt.ArrayLike,
        distances: npt.ArrayLike,
        *,
        perplexity: float | Sequence[float] = 30.0,
        kind: str = "gaussian",
        bandwidth: float | None = None,
        dtype: npt.DTypeLike = np.float32,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> "Affinities":
        """Compute affinities to neighbours that are known.

        Parameters
        ----------
        indices : array-like of shape (n_samples, n_neighbors), int
            Neighbours of each sample, without the sample itself, in any order. All are used.
        distances : array-like of shape (n_samples, n_neighbors)
            Their distances, not squared.
        perplexity : float or list of float, default=30.0
            See :meth:`from_data`.
        kind : str, default="gaussian"
            See :meth:`from_data`.
        bandwidth : float, default=None
            σ for `kind="fixed"`, in the unit of the distances.
        dtype : numpy.float32 or numpy.float64, default=numpy.float32
            Precision of the affinities.
        n_jobs : int, default=None
            Threads; None for all cores.
        verbose : int, default=0
            1 logs.

        Returns
        -------
        affinities : Affinities
            The affinities of the samples, in the order of the rows.

        Examples
        --------
        >>> import numpy as np
        >>> from acctsne import Affinities, nearest_neighbors
        >>> X = np.random.default_rng(0).normal(size=(100, 5))
        >>> found = nearest_neighbors(X, 31)
        >>> Affinities.from_neighbors(found.indices, found.distances, perplexity=10)
        Affinities(n_samples=100, kind='gaussian', n_neighbors=31, n_edges=4180, dtype=float32)
        """
        similarity = check_similarity(kind, perplexity, bandwidth)
        checked_dtype = check_layout_dtype(dtype)
        threads = effective_threads(n_jobs)
        found = check_neighbors(indices, distances, checked_dtype)
        n_samples, n_neighbors = found.indices.shape
        similarity = similarity.reduced_to(n_neighbors, n_samples)
        with shown_log(verbose), busy("affinities", verbose):
            return joint_probabilities(found, similarity, threads)

    @classmethod
    def from_distances(
        cls,
        D: Any,
        *,
        perplexity: float | Sequence[float] = 30.0,
        kind: str = "gaussian",
        n_neighbors: int | None = None,
        bandwidth: float | None = None,
        dtype: npt.DTypeLike = np.float32,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> "Affinities":
        """Compute affinities to the nearest neighbours in a matrix of distances.

        Parameters
        ----------
        D : {array-like, sparse matrix} of shape (n_samples, n_samples)
            Distances, not squared. In a sparse matrix those stored count, explicit zeros too. The
            diagonal is not looked at.
        perplexity : float or list of float, default=30.0
            See :meth:`from_data`.
        kind : str, default="gaussian"
            See :meth:`from_data`.
        n_neighbors : int, default=None
            Neighbours of each sample; None as in :meth:`from_data`, or as many as every row of a
            sparse matrix has, if that is less, with a warning.
        bandwidth : float, default=None
            σ for `kind="fixed"`, in the unit of the distances.
        dtype : numpy.float32 or numpy.float64, default=numpy.float32
            Precision of the affinities.
        n_jobs : int, default=None
            Threads; None for all cores.
        verbose : int, default=0
            1 logs.

        Returns
        -------
        affinities : Affinities
            The affinities of the samples, in the order of the rows.

        Examples
        --------
        >>> import numpy as np
        >>> from acctsne import Affinities
        >>> places = np.arange(10.0)
        >>> D = abs(places[:, None] - places[None, :])
        >>> affinities = Affinities.from_distances(D, perplexity=2)
        >>> affinities.n_neighbors
        7
        """
        similarity = check_similarity(kind, perplexity, bandwidth)
        checked_dtype = check_layout_dtype(dtype)
        threads = effective_threads(n_jobs)

        found = neighbors_in_distances(D, n_neighbors, similarity.usual_neighbors, checked_dtype)
        n_samples, k = found.indices.shape
        reduced = similarity.reduced_to(k, n_samples)
        with shown_log(verbose), busy("affinities", verbose):
            return joint_probabilities(found, reduced, threads)

    @classmethod
    def from_matrix(
        cls, P: Any, *, dtype: npt.DTypeLike = np.float32, verbose: int = 0
    ) -> "Affinities":
        """Take a matrix of affinities, made by whatever means.

        Parameters
        ----------
        P : {array-like, sparse matrix} of shape (n_samples, n_samples)
            Finite and not negative. If it is not symmetric, it is replaced by the mean of itself
            and its transpose; if it does not sum to 1, it is divided by its sum; a diagonal is
            left out. The log says so, and `changes`.
        dtype : numpy.float32 or numpy.float64, default=numpy.float32
            Precision of the affinities.
        verbose : int, default=0
            1 logs.

        Returns
        -------
        affinities : Affinities
            The affinities, of kind "given".

        Examples
        --------
        >>> from acctsne import Affinities
        >>> affinities = Affinities.from_matrix([[0, 2, 0], [2, 0, 1], [0, 1, 0]])
        >>> affinities.to_scipy().toarray().round(3).tolist()[0]
        [0.0, 0.3330000042915344, 0.0]
        >>> affinities.changes
        ('divided by the sum, 6',)
        """
        checked_dtype = check_layout_dtype(dtype)
        with shown_log(verbose):
            matrix, changes = check_matrix(P)
            for change in changes:
                logger.info("the given affinities were not those of t-SNE: %s", change)
            return cls(
                Matrix(*csr_arrays(matrix.astype(checked_dtype))),
                _row_perplexities(matrix),
                changes=tuple(changes),
            )


def check_affinities(affinities: Any) -> None:
    """Refuse what is no Affinities, and say how to make one."""
    if not isinstance(affinities, Affinities):
        raise TypeError(
            f"affinities must be an Affinities; got {type(affinities).__name__}. Make one with "
            "Affinities.from_data(X) or Affinities.from_matrix(P)"
        )


def form_of(affinities: Affinities) -> Conditional | Matrix:
    """Return the form that P is held in at present."""
    return affinities._P


def in_precision(affinities: Affinities, dtype: np.dtype[Any]) -> Affinities:
    """Return P in the given precision, itself if it has it."""
    if affinities.dtype == dtype:
        return affinities
    P = Matrix(affinities.offsets, affinities.columns, affinities.values.astype(dtype))
    return replace(affinities, _P=P)


def arrays_and_settings(
    affinities: Affinities,
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Return the arrays of affinities, and the rest as what JSON can hold."""
    settings = {
        "n_neighbors": affinities.n_neighbors,
        "similarity": asdict(affinities.similarity) if affinities.similarity else None,
        "changes": list(affinities.changes),
    }
    arrays = {**named_arrays(affinities._P), "perplexities": affinities.perplexities}
    return arrays, settings


def read_affinities(contents: Contents, threads: int) -> Affinities:
    """Put together what `arrays_and_settings` took apart; ValueError if it is damaged."""
    similarity = None
    if contents.setting("similarity", dict, type(None)) is not None:
        part = contents.part("similarity")
        given = part.setting("bandwidth", float, int, type(None))
        similarity = check_similarity(
            part.setting("kind", str),
            _one_or_several(part.numbers("perplexities")),
            None if given is None else part.number("bandwidth"),
        )
    n_neighbors = contents.setting("n_neighbors", int, type(None))
    changes = tuple(str(change) for change in contents.setting("changes", list))
    P: Conditional | Matrix
    if similarity is not None and "indices" in contents.arrays:
        P = Conditional.from_archive(contents, similarity.kind == "uniform")
    else:
        P = Matrix.from_archive(contents)
    perplexities = contents.array("perplexities", "f8", 1)
    if len(perplexities) != P.n_samples:
        raise ValueError(f"{len(perplexities)} perplexities for {P.n_samples} samples")
    return Affinities(P, perplexities, n_neighbors, similarity, changes, threads)


def joint_probabilities(
    neighbors: Neighbors,
    similarity: Similarity,
    threads: int,
    timer: StageTimer | None = None,
    tell_missed: Callable[[Similarity, int, int, int], None] = Similarity.tell_missed,
) -> Affinities:
    """Compute each row's distribution over its neighbours.

    Takes over the neighbours: sorts the rows of their indices and forgets their distances, which
    are a third of the memory in use.
    """
    timer = timer or StageTimer()
    indices = neighbors.indices
    with timer.stage("bsp"):
        conditional, perplexities, missed = similarity.conditional(
            neighbors.take_squared_distances(), neighbors.scale, threads
        )
        tell_missed(similarity, missed, *indices.shape)
    with timer.stage("symmetrize"):
        _core.sort_rows(indices, conditional, neighbors.n_points, threads)
    # For "uniform", the graph of those who are neighbours in either direction, not the mean of the
    # two.
    P = Conditional(indices, conditional, equal=similarity.kind == "uniform")
    return Affinities(P, perplexities, indices.shape[1], similarity, _threads=threads)


def _one_or_several(perplexities: list[float]) -> float | list[float]:
    return perplexities[0] if len(perplexities) == 1 else perplexities


def csr_arrays(
    P: csr_matrix,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[Any]]:
    """Return the offsets, columns and values that the native core takes."""
    P = P.tocsr()
    P.sort_indices()
    return (
        np.ascontiguousarray(P.indptr, dtype=np.int64),
        np.ascontiguousarray(P.indices, dtype=np.int32),
        np.ascontiguousarray(P.data),
    )


def _row_perplexities(P: csr_matrix) -> npt.NDArray[np.float64]:
    """Compute the perplexity of each row as a distribution; of an empty row it is 0."""
    totals = np.asarray(P.sum(axis=1)).ravel()
    terms = csr_matrix((P.data * np.log(P.data), P.indices, P.indptr), shape=P.shape)
    sums = np.asarray(terms.sum(axis=1)).ravel()
    some = totals > 0
    perplexities = np.zeros(P.shape[0])
    perplexities[some] = np.exp(np.log(totals[some]) - sums[some] / totals[some])
    return perplexities
