"""How well a map shows each of its points."""

import csv
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.utils.validation import check_consistent_length

from acctsne import _core
from acctsne.affinities.affinities import Affinities, csr_arrays, joint_probabilities
from acctsne.affinities.similarity import Similarity
from acctsne.files.replacing import replacing
from acctsne.forces.output_kernel import Dof, check_dof
from acctsne.neighbors.euclidean import exact_neighbors
from acctsne.neighbors.metrics import NATIVE_METRICS, dense_if_small, euclidean_form
from acctsne.neighbors.nearest import find_neighbors
from acctsne.neighbors.records import Neighbors, SearchSettings
from acctsne.quality.figures import (
    Perplexity,
    check_data,
    check_embedding,
    check_metric,
    check_perplexity,
    seeded,
)
from acctsne.quality.sparse_ranks import SparseRows, nearby_order
from acctsne.runtime.checks import check_integer
from acctsne.runtime.progress import Progress, busy, progress_bar, shown_log
from acctsne.runtime.threads import effective_threads

# Pairs of points up to which Z is summed exactly; beyond, from as many pairs of a sample of rows.
EXACT_PAIRS = 10**10

# References that ranks are estimated from, unless more neighbours than these are known.
USUAL_REFERENCES = 1000

# Sizes of neighbourhoods, as far as there are enough samples.
USUAL_SIZES = (10, 30, 100)

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

NO_ROWS: npt.NDArray[np.intp] = np.empty(0, dtype=np.intp)


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """What :func:`report` finds: arrays with a value for each point, and their means.

    Arrays of shape (n_samples, n_sizes) have a column for each of `sizes`.

    Attributes
    ----------
    sizes : tuple of int
        Sizes k of the neighbourhoods that were compared.

    kept : ndarray of shape (n_samples, n_sizes)
        Part of the point's k nearest neighbours in the data that are among its k nearest in the
        map, from 0 to 1.

    trustworthiness : ndarray of shape (n_samples, n_sizes)
        1 if the point's k nearest in the map are its k nearest in the data; less, the farther down
        they are in the data's order. The mean is :func:`sklearn.manifold.trustworthiness`, unless
        distances are equal: these are in the order of their indices here.

    trustworthiness_error : ndarray of shape (n_samples, n_sizes)
        Standard error of it by the sample of points that ranks are estimated from; 0 if exact.

    continuity : ndarray of shape (n_samples, n_sizes)
        The same the other way round: how far down in the map's order are the k nearest of the data.

    continuity_error : ndarray of shape (n_samples, n_sizes)
        Standard error of it.

    kl : ndarray of shape (n_samples,)
        The point's share of the KL divergence, its row of the sum. Shares add up to the divergence.

    stretch : ndarray of shape (n_samples,)
        Mean distance in the map of the point's nearest neighbours in the data, divided by their
        mean distance in the data, in units of the map's median; at the smallest size. 1 is usual,
        less is squeezed, more is spread out or torn apart. NaN where the data's distances are 0.

    perplexity : ndarray of shape (n_samples,)
        The perplexity that the point's affinities reached.

    means : dict of str to float
        Of the whole map: the mean of each column, but for "kl" the sum, which is the divergence,
        and for "stretch" the mean size of its logarithm to the base 2, which is 0 if distances are
        in proportion everywhere. The standard errors of means are there under the names of errors.

    Examples
    --------
    >>> import numpy as np
    >>> from acctsne import quality
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> found = quality.report(X, X[:, :2], n_neighbors=[5, 10], perplexity=10)
    >>> list(found.columns())[:2], found.kept.shape
    (['kept_5', 'kept_10'], (100, 2))
    """

    sizes: tuple[int, ...]
    kept: Floats
    trustworthiness: Floats
    trustworthiness_error: Floats
    continuity: Floats
    continuity_error: Floats
    kl: Floats
    stretch: Floats
    perplexity: Floats
    means: dict[str, float]

    def columns(self) -> dict[str, Floats]:
        """Return every column by its name; those of sizes end in `_k`, as "kept_10"."""
        columns: dict[str, Floats] = {}
        for name in SIZED:
            values = getattr(self, name)
            columns |= {f"{name}_{k}": values[:, s] for s, k in enumerate(self.sizes)}
        return columns | {name: getattr(self, name) for name in ("kl", "stretch", "perplexity")}

    def to_frame(self) -> Any:
        """Return the columns as a pandas DataFrame, a row for each point."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the columns as a table with a header, a row for each point.

        Parameters
        ----------
        path : path-like
            The file, which is replaced whole or not at all.
        """
        columns = self.columns()
        with replacing(Path(path)) as beside, beside.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            cells = [[f"{value:.9g}" for value in values.tolist()] for values in columns.values()]
            writer.writerows(zip(*cells, strict=True))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value:.4g}" for name, value in self.means.items())
        return f"Report(n_samples={len(self.kl)}, {shown})"


# Columns that there are for each size of neighbourhoods.
SIZED = (
    "kept",
    "trustworthiness",
    "trustworthiness_error",
    "continuity",
    "continuity_error",
)


def report(
    X: Any,
    Y: npt.ArrayLike,
    *,
    n_neighbors: int | Iterable[int] = USUAL_SIZES,
    perplexity: Perplexity = 30.0,
    metric: str = "euclidean",
    dof: Dof = 1.0,
    n_references: int | str | None = "auto",
    random_state: int | None = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Report:
    """Say of every point how well the map shows it.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The data. Sparse rows stay sparse, unless they are not much larger when dense.
    Y : array-like of shape (n_samples, n_components)
        The embedding, whoever made it.
    n_neighbors : int or iterable of int, default=(10, 30, 100)
        Sizes of the neighbourhoods that are compared, less than half of n_samples; of the default
        ones, those that are.
    perplexity : float, "auto" or "multiscale", default=30.0
        The perplexity of the affinities, for shares of the KL divergence, as in
        :class:`acctsne.TSNE`.
    metric : {"euclidean", "l2", "sqeuclidean", "cosine", "correlation"}, default="euclidean"
        Distance between samples. Its square enters the affinities, as in :class:`acctsne.TSNE`.
    dof : float or "sklearn", default=1.0
        Degrees of freedom of the similarity, as in :class:`acctsne.TSNE`.
    n_references : int, "auto" or None, default="auto"
        Points that ranks beyond the nearest neighbours are estimated from, drawn at random. With as
        many as there are samples, or None, ranks are exact: it takes n_samples**2 distances. "auto"
        is 1000, or 10 more than the neighbours that a large `perplexity` or `n_neighbors` asks for.
    random_state : int, default=0
        Seed of that sample.
    n_jobs : int, default=None
        Threads; None for all cores.
    verbose : int, default=0
        1 logs to the logger "acctsne" and draws progress on a terminal or in a notebook.

    Returns
    -------
    report : Report
        Arrays, means, `to_frame` and `to_csv`.

    Notes
    -----
    Neighbours are exact. So is the normaliser Z of the KL divergence up to 100000 samples; beyond,
    it is estimated from the rows of a sample, and `means["kl_error"]` is its standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from acctsne import quality
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> found = quality.report(X, 5 * X, n_neighbors=10)
    >>> found.means["kept_10"], found.means["trustworthiness_10"]
    (1.0, 1.0)
    >>> torn = quality.report(X, np.where(X[:, :1] > 0, X + 10, X), n_neighbors=10)
    >>> bool(torn.kept[np.abs(X[:, 0]) < 0.05].mean() < 0.9)
    True
    """
    wanted = ReportSettings(n_neighbors, perplexity, metric, dof, n_references, random_state)
    checked = check_inputs(X, Y, wanted)
    X, Y, sizes, random = checked.X, checked.Y, checked.sizes, checked.random
    threads = effective_threads(n_jobs)
    double = np.dtype(np.float64)
    settings = SearchSettings(
        checked.n_known, metric, mode="exact", dtype=double, threads=threads, verbose=verbose
    )
    with shown_log(verbose):
        in_data = find_neighbors(X, settings)
        with progress_bar("neighbors in the map", len(Y), "pt", verbose) as move_to:
            in_map = exact_neighbors(Y, replace(settings, n_neighbors=max(sizes)), move_to)
        ranks = _Ranks(sizes, checked.references, threads)
        rows, equidistant = _rows_to_rank(checked, NATIVE_METRICS[metric])
        with progress_bar("ranks in the data", len(Y), "pt", verbose) as move_to:
            trust = ranks.judge(rows, in_data, in_map, equidistant, move_to)
        with progress_bar("ranks in the map", len(Y), "pt", verbose) as move_to:
            continuity = ranks.judge(Y, in_map, in_data, progress=move_to)
        stretch = _stretch(in_data, Y, min(sizes))
        with busy("shares of the KL divergence", verbose):
            P = _affinities(in_data, checked.similarity, threads)
            kl, kl_error = _shares(P, Y, checked.kernel, random, threads)
    return Report(
        sizes,
        trust.kept,
        trust.score,
        trust.error,
        continuity.score,
        continuity.error,
        kl,
        stretch,
        P.perplexities.copy(),
        {
            **_sized_means(sizes, trust, continuity),
            "kl": float(kl.sum()),
            "kl_error": kl_error,
            "stretch": _octaves(stretch),
            "perplexity": float(P.perplexities.mean()),
        },
    )


@dataclass(frozen=True)
class ReportSettings:
    """How points are judged, as the parameters of `report` tell it."""

    n_neighbors: int | Iterable[int] = USUAL_SIZES
    perplexity: Perplexity = 30.0
    metric: str = "euclidean"
    dof: Dof = 1.0
    n_references: int | str | None = "auto"
    random_state: int | None = 0


@dataclass(frozen=True)
class Inputs:
    """What a report is to be made of, checked."""

    X: Any  # a dense array, or a CSR matrix
    Y: Floats
    sizes: tuple[int, ...]
    similarity: Similarity
    kernel: _core.OutputKernel
    n_known: int  # nearest neighbours that are searched
    references: npt.NDArray[np.int32]
    random: np.random.Generator


def check_inputs(X: Any, Y: npt.ArrayLike, settings: ReportSettings) -> Inputs:
    """Check what `report` takes, which is done before anything long."""
    Y = check_embedding(Y)
    check_metric(settings.metric)
    X = dense_if_small(check_data(X))
    check_consistent_length(X, Y)
    n_samples = len(Y)
    sizes = _check_sizes(settings.n_neighbors, n_samples)
    similarity = check_perplexity(settings.perplexity, n_samples)
    kernel = check_dof(settings.dof, Y.shape[1], "report")
    random = seeded(settings.random_state)
    n_known = max(*sizes, min(n_samples - 1, similarity.usual_neighbors))
    references = _check_references(settings.n_references, n_samples, n_known, random)
    return Inputs(X, Y, sizes, similarity, kernel, n_known, references, random)


def _rows_to_rank(checked: Inputs, metric: str) -> tuple[Any, npt.NDArray[np.intp]]:
    """Return rows whose Euclidean ranks are the metric's, and which are as far from all others."""
    if issparse(checked.X):
        rows = SparseRows(checked.X, metric, nearby_order(checked.Y))
        return rows, rows.zero_rows
    form = euclidean_form(checked.X, metric)
    exact = len(checked.references) == len(checked.X)
    dense = form.data.astype(np.float64, order="C", copy=False) if exact else form.data
    return dense, form.zero_rows


@dataclass(frozen=True)
class _Judgement:
    """How well neighbourhoods agree with the order of nearness elsewhere, a row for each point."""

    kept: Floats
    score: Floats
    error: Floats
    mean_error: Floats  # of the scores' mean over all points


@dataclass(frozen=True)
class _Ranks:
    """Neighbourhoods in one space judged by the order of nearness in another."""

    sizes: tuple[int, ...]
    references: npt.NDArray[np.int32]
    threads: int

    def judge(
        self,
        rows: Array | SparseRows,
        nearest: Neighbors,
        elsewhere: Neighbors,
        equidistant: npt.NDArray[np.intp] = NO_ROWS,
        progress: Progress = None,
    ) -> _Judgement:
        """Compute which neighbours are kept, the score by ranks, its errors, and that of means.

        Venna and Kaski, "Neighborhood preservation in nonlinear projection methods" (2001), define
        the score of a map; ours of a point is its part of it, so that the mean is theirs.
        `equidistant` rows are as far from all others, whatever `rows` says.
        """
        n, sizes = rows.shape[0], np.array(self.sizes, dtype=np.int64)
        asked = elsewhere.indices[:, : max(self.sizes)].copy()
        theirs = asked[equidistant]
        # Ranks of points that are known take no counting: rows whose order is computed below ask
        # for those only.
        asked[equidistant] = nearest.indices[equidistant, : asked.shape[1]]
        if isinstance(rows, SparseRows):
            kept, penalties, variances, by_reference = rows.rank_penalties(
                nearest.indices, asked, sizes, self.references, progress
            )
        else:
            kept, penalties, variances, by_reference = _core.rank_penalties(
                rows, nearest.indices, asked, sizes, self.references, self.threads, progress
            )
        # Ties go to the lower index: all others are in the order of their indices.
        order = theirs + 1 - (theirs > equidistant[:, None])
        for s, k in enumerate(self.sizes):
            kept[equidistant, s] = (order[:, :k] <= k).sum(axis=1)
            penalties[equidistant, s] = np.maximum(order[:, :k] - k, 0).sum(axis=1)
        worst = sizes * (2.0 * n - 3.0 * sizes - 1.0) / 2.0
        # Points share their references, so the errors of points do not cancel in their mean: it is
        # the mean over references that has an error. It stands for all other points: those that are
        # known count as nothing in it.
        sample = len(self.references)
        spread = np.std(by_reference / n, axis=0, ddof=1)
        left_out = max(0.0, 1.0 - sample / n)
        error = (n - 1) * spread / np.sqrt(sample) * np.sqrt(left_out)
        return _Judgement(
            kept / sizes, 1 - penalties / worst, np.sqrt(variances) / worst, error / worst
        )


def _sized_means(
    sizes: tuple[int, ...], trust: _Judgement, continuity: _Judgement
) -> dict[str, float]:
    """Average what there is for each size of neighbourhoods."""
    means: dict[str, float] = {}
    for s, size in enumerate(sizes):
        means[f"kept_{size}"] = float(trust.kept[:, s].mean())
        for name, judged in (("trustworthiness", trust), ("continuity", continuity)):
            means[f"{name}_{size}"] = float(judged.score[:, s].mean())
            means[f"{name}_error_{size}"] = float(judged.mean_error[s])
    return means


def _affinities(in_data: Neighbors, similarity: Similarity, threads: int) -> Affinities:
    """Compute P from the first of the neighbours that are known."""
    n_neighbors = similarity.usual_neighbors
    nearest = Neighbors(
        np.ascontiguousarray(in_data.indices[:, :n_neighbors]),
        np.ascontiguousarray(in_data.squared_distances[:, :n_neighbors]),
        scale=in_data.scale,
    )
    return joint_probabilities(nearest, similarity, threads)


def _shares(
    P: Affinities,
    Y: Floats,
    kernel: _core.OutputKernel,
    random: np.random.Generator,
    threads: int,
) -> tuple[Floats, float]:
    """Compute the points' shares of the KL divergence, and the error of their sum."""
    z, z_error = _z(Y, kernel, random, threads)
    shares = _core.kl_by_point(*csr_arrays(P.to_scipy()), Y, kernel, z, threads)
    return shares, z_error / z


@np.errstate(under="ignore")
def _stretch(in_data: Neighbors, Y: Floats, k: int) -> Floats:
    """Compare distances of the data's k nearest neighbours in the map with those in the data."""
    of_data = np.sqrt(in_data.squared_distances[:, :k]).mean(axis=1) / in_data.scale
    of_map = np.zeros(len(Y))
    for rank in range(k):
        of_map += np.linalg.norm(Y - Y[in_data.indices[:, rank]], axis=1) / k
    ratio = np.full(len(Y), np.nan)
    np.divide(of_map, of_data, out=ratio, where=of_data > 0)
    usual = np.median(ratio[ratio > 0]) if (ratio > 0).any() else 1.0
    return ratio / usual


def _octaves(stretch: Floats) -> float:
    """Average how many times the stretch doubles or halves, of points that have one."""
    octaves = np.abs(np.log2(stretch[stretch > 0]))
    return float(octaves.mean()) if len(octaves) else 0.0


def _z(
    Y: Floats, kernel: _core.OutputKernel, random: np.random.Generator, threads: int
) -> tuple[float, float]:
    """Sum the similarities of all pairs, or estimate the sum; return it and its error."""
    n = len(Y)
    sample = min(n, max(2, EXACT_PAIRS // n))
    rows = np.sort(random.choice(n, sample, replace=False)).astype(np.int32)
    z = _core.exact_repulsion(Y, rows, threads, kernel)[1]
    error = n * float(z.std()) / np.sqrt(sample) * np.sqrt(1 - sample / n)
    return float(z.sum()) * (n / sample), float(error)


def _check_sizes(n_neighbors: int | Iterable[int], n_samples: int) -> tuple[int, ...]:
    # The score by ranks is defined for less than half of the others.
    most = (n_samples - 1) // 2
    several = isinstance(n_neighbors, Iterable) and not isinstance(n_neighbors, str)
    given: tuple[Any, ...] = tuple(n_neighbors) if several else (n_neighbors,)  # type: ignore[arg-type]
    for size in given:
        check_integer("n_neighbors", size)
    sizes = tuple(sorted({int(size) for size in given}))
    if given == USUAL_SIZES:
        sizes = tuple(size for size in sizes if size <= most) or (max(1, most),)
    if not sizes or sizes[0] < 1 or sizes[-1] > most:
        raise ValueError(
            f"n_neighbors must be between 1 and half of the other samples ({most}); got "
            f"{n_neighbors}"
        )
    return sizes


def _check_references(
    n_references: int | str | None, n_samples: int, n_known: int, random: np.random.Generator
) -> npt.NDArray[np.int32]:
    least = n_known + 10
    count = max(USUAL_REFERENCES, least) if n_references == "auto" else n_references
    if count is not None and not isinstance(count, str):
        check_integer("n_references", count)
    if count is None or (not isinstance(count, str) and count >= n_samples):
        return np.arange(n_samples, dtype=np.int32)
    if isinstance(count, str) or count < least:
        raise ValueError(
            f"n_references must be 'auto', None or at least {least}, more than the {n_known} "
            f"neighbours whose ranks are known; got {n_references!r}"
        )
    return np.sort(random.choice(n_samples, count, replace=False)).astype(np.int32)
