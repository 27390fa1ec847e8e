"""How well a map shows each of its points."""

import csv
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_consistent_length

from acctsne import _core
from acctsne.affinities.affinities import csr_arrays, joint_probabilities
from acctsne.affinities.similarity import Similarity
from acctsne.files.backed import in_reach
from acctsne.files.replacing import replacing
from acctsne.forces.output_kernel import Dof, check_dof
from acctsne.neighbors.euclidean import exact_neighbors
from acctsne.neighbors.metrics import NATIVE_METRICS, dense_if_small, euclidean_form
from acctsne.neighbors.records import Neighbors, SearchSettings
from acctsne.quality.figures import check_data, check_embedding
from acctsne.runtime.threads import effective_threads

# Pairs of points up to which Z is summed exactly; beyond, from as many pairs of a sample of rows.
EXACT_PAIRS = 10**10

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


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
        they are in the data's order. The mean is :func:`sklearn.manifold.trustworthiness`.

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
    n_neighbors: int | Iterable[int] = (10, 30, 100),
    perplexity: float = 30.0,
    metric: str = "euclidean",
    dof: Dof = 1.0,
    n_references: int | None = 1000,
    random_state: int | None = 0,
    n_jobs: int | None = None,
) -> Report:
    """Say of every point how well the map shows it.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The data. A sparse matrix is taken if it is not much larger when dense.
    Y : array-like of shape (n_samples, n_components)
        The embedding, whoever made it.
    n_neighbors : int or iterable of int, default=(10, 30, 100)
        Sizes of the neighbourhoods that are compared, less than half of n_samples; of the default
        ones, those that are.
    perplexity : float, default=30.0
        The perplexity of the affinities, for shares of the KL divergence.
    metric : {"euclidean", "cosine", "correlation"}, default="euclidean"
        Distance between samples.
    dof : float or "sklearn", default=1.0
        Degrees of freedom of the similarity, as in :class:`acctsne.TSNE`.
    n_references : int, default=1000
        Points that ranks beyond the nearest neighbours are estimated from, drawn at random. With as
        many as there are samples, or None, ranks are exact: it takes n_samples**2 distances.
    random_state : int, default=0
        Seed of that sample.
    n_jobs : int, default=None
        Threads; None for all cores.

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
    Y = check_embedding(Y)
    threads = effective_threads(n_jobs)
    if metric not in NATIVE_METRICS:
        raise ValueError(f"metric must be one of {', '.join(NATIVE_METRICS)}; got {metric!r}")
    X = check_data(dense_if_small(in_reach(X)))
    check_consistent_length(X, Y)
    sizes = _check_sizes(n_neighbors, len(X))
    if not 0 < perplexity < len(X):
        raise ValueError(f"perplexity must be between 0 and n_samples ({len(X)}); got {perplexity}")
    kernel = check_dof(dof, Y.shape[1], "report")
    random = np.random.default_rng(random_state)

    rows = euclidean_form(X, NATIVE_METRICS[metric]).data
    k = min(len(X) - 1, max(max(sizes), int(3.0 * perplexity + 1)))
    references = _check_references(n_references, len(X), k, random)
    settings = SearchSettings(k, dtype=np.dtype(np.float64), threads=threads)
    in_data = exact_neighbors(rows, settings)
    in_map = exact_neighbors(Y, replace(settings, n_neighbors=max(sizes)))

    ranks = _Ranks(sizes, references, threads)
    if len(references) == len(rows):
        rows = rows.astype(np.float64)
    kept, trust, trust_error, mean_trust_error = ranks.judge(rows, in_data, in_map)
    _, cont, cont_error, mean_cont_error = ranks.judge(Y, in_map, in_data)
    stretch = _stretch(in_data, Y, min(sizes))
    n_affine = min(len(X) - 1, int(3.0 * perplexity + 1))
    nearest = Neighbors(
        np.ascontiguousarray(in_data.indices[:, :n_affine]),
        np.ascontiguousarray(in_data.squared_distances[:, :n_affine]),
        in_data.scale,
    )
    P = joint_probabilities(nearest, Similarity("gaussian", (float(perplexity),)), threads)
    z, z_error = _z(Y, kernel, random, threads)
    kl = _core.kl_by_point(*csr_arrays(P.to_scipy()), Y, kernel, z, threads)

    means: dict[str, float] = {}
    for s, size in enumerate(sizes):
        means[f"kept_{size}"] = float(kept[:, s].mean())
        means[f"trustworthiness_{size}"] = float(trust[:, s].mean())
        means[f"trustworthiness_error_{size}"] = float(mean_trust_error[s])
        means[f"continuity_{size}"] = float(cont[:, s].mean())
        means[f"continuity_error_{size}"] = float(mean_cont_error[s])
    means["kl"] = float(kl.sum())
    means["kl_error"] = z_error / z
    octaves = np.abs(np.log2(stretch[stretch > 0]))
    means["stretch"] = float(octaves.mean()) if len(octaves) else 0.0
    means["perplexity"] = float(P.perplexities.mean())
    return Report(
        sizes,
        kept,
        trust,
        trust_error,
        cont,
        cont_error,
        kl,
        stretch,
        P.perplexities.copy(),
        means,
    )


@dataclass(frozen=True)
class _Ranks:
    """Neighbourhoods in one space judged by the order of nearness in another."""

    sizes: tuple[int, ...]
    references: npt.NDArray[np.int32]
    threads: int

    def judge(
        self, rows: Array, nearest: Neighbors, elsewhere: Neighbors
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Compute which neighbours are kept, the score by ranks, its errors, and that of means.

        Venna and Kaski, "Neighborhood preservation in nonlinear projection methods" (2001), define
        the score of a map; ours of a point is its part of it, so that the mean is theirs.
        """
        n, sizes = len(rows), np.array(self.sizes, dtype=np.int64)
        asked = np.ascontiguousarray(elsewhere.indices[:, : max(self.sizes)])
        kept, penalties, variances, by_reference = _core.rank_penalties(
            rows, nearest.indices, asked, sizes, self.references, self.threads
        )
        worst = sizes * (2.0 * n - 3.0 * sizes - 1.0) / 2.0
        # Points share their references, so the errors of points do not cancel in their mean: it is
        # the mean over references that has an error.
        sample = len(self.references)
        spread = np.std(by_reference / n, axis=0, ddof=1)
        beyond = n - 1 - nearest.indices.shape[1]
        left_out = max(0.0, 1.0 - sample / n)
        error = beyond * spread / np.sqrt(sample) * np.sqrt(left_out)
        return kept / sizes, 1 - penalties / worst, np.sqrt(variances) / worst, error / worst


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
    given = (n_neighbors,) if isinstance(n_neighbors, int | np.integer) else tuple(n_neighbors)
    sizes = tuple(sorted({int(size) for size in given}))
    if given == (10, 30, 100):
        sizes = tuple(size for size in sizes if size <= most) or (max(1, most),)
    if not sizes or sizes[0] < 1 or sizes[-1] > most:
        raise ValueError(
            f"n_neighbors must be between 1 and half of the other samples ({most}); got "
            f"{n_neighbors}"
        )
    return sizes


def _check_references(
    n_references: int | None, n_samples: int, n_known: int, random: np.random.Generator
) -> npt.NDArray[np.int32]:
    if n_references is None or n_references >= n_samples:
        return np.arange(n_samples, dtype=np.int32)
    least = n_known + 10
    if n_references < least:
        raise ValueError(
            f"n_references must be None or at least {least}, more than the {n_known} neighbours "
            f"whose ranks are known; got {n_references}"
        )
    return np.sort(random.choice(n_samples, n_references, replace=False)).astype(np.int32)
