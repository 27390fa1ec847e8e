"""Ranks of asked points in sparse data, whose rows are never made dense.

The same counts as those of `native/quality/ranks.cpp`, of distances by products of rows:
|a - b|^2 = |a|^2 + |b|^2 - 2 a.b. SciPy adds up a product in the order of the first row's columns,
whatever the other rows of the call are, so that a distance is the same number wherever it is
computed, and rows that are the same are as far from any other.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne.neighbors.metrics import CENTRES_ROWS
from acctsne.neighbors.sparse import scale_of
from acctsne.runtime.progress import Progress

# Points whose distances are computed together, and asked points of all of these: with points that
# are near each other in the map, many are asked for by several.
BLOCK_POINTS = 256
BLOCK_ASKED = 50_000

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[Any]
Penalties = tuple[npt.NDArray[np.int32], Floats, Floats, npt.NDArray[np.int64]]


class SparseRows:
    """Rows of a CSR matrix whose Euclidean distances determine those of a metric."""

    def __init__(self, X: Any, metric: str, order: Rows) -> None:
        self.shape = X.shape
        self.zero_rows = np.empty(0, dtype=np.intp)  # of cosine, where every distance is 1
        self._order = order
        self._means: Floats | None = None
        X = X.astype(np.float64, copy=not X.has_canonical_format)
        X.sum_duplicates()
        if metric in ("euclidean", "sqeuclidean"):
            self._rows = X * scale_of(X.data)
            self._squares = np.asarray(self._rows.multiply(self._rows).sum(axis=1)).ravel()
            return
        # By the largest value first: squares can then neither overflow nor all vanish.
        X = _scaled(X, np.asarray(abs(X).max(axis=1).todense()).ravel())
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        if CENTRES_ROWS[metric]:
            means = np.asarray(X.mean(axis=1)).ravel()
            lengths = np.sqrt(squares - X.shape[1] * means**2)
            self._means = means / lengths * np.sqrt(X.shape[1])
        else:
            lengths = np.sqrt(squares)
            self.zero_rows = np.flatnonzero(lengths == 0)
        self._rows = _scaled(X, lengths)
        self._squares = np.ones(X.shape[0])

    def squared_distances(self, points: Rows, others: Rows, transposed: Any = None) -> Floats:
        """Compute the squared distance of every point from every other."""
        transposed = self.transposed(others) if transposed is None else transposed
        products: Floats = (self._rows[points] @ transposed).toarray()
        if self._means is not None:
            products -= np.outer(self._means[points], self._means[others])
        squared: Floats = self._squares[points][:, None] + self._squares[others] - 2 * products
        return squared

    def transposed(self, others: Rows) -> Any:
        """Return rows as what others are multiplied by."""
        return self._rows[others].T.tocsr()

    def rank_penalties(
        self,
        nearest: npt.NDArray[np.int32],
        asked: npt.NDArray[np.int32],
        sizes: npt.NDArray[np.int64],
        references: npt.NDArray[np.int32],
        progress: Progress = None,
    ) -> Penalties:
        """Count what `_core.rank_penalties` counts."""
        n = self.shape[0]
        counter = _Counter(n, nearest, asked, sizes, references)
        of_references = self.transposed(references)
        block = max(1, min(BLOCK_POINTS, BLOCK_ASKED // asked.shape[1]))
        for begin in range(0, n, block):
            points = self._order[begin : begin + block]
            from_references = self.squared_distances(points, references, of_references)
            others, places = np.unique(asked[points], return_inverse=True)
            from_others = self.squared_distances(points, others)
            limits = np.take_along_axis(from_others, places.reshape(len(points), -1), axis=1)
            for i, distances, own in zip(points, from_references, limits, strict=True):
                counter.judge(int(i), distances, own)
            if progress is not None:
                progress(begin + len(points))
        return counter.kept, counter.penalties, counter.variances, counter.by_reference


def nearby_order(Y: Floats) -> Rows:
    """Order points by squares of the map, so that those that follow each other are close.

    Examples
    --------
    >>> nearby_order(np.array([[0.0, 0], [9, 9], [0, 1], [9, 8]])).tolist()
    [0, 2, 1, 3]
    """
    across = max(2, int(np.sqrt(len(Y) / BLOCK_POINTS)))
    low = Y.min(axis=0)
    side = float((Y.max(axis=0) - low).max()) / across or 1.0
    squares = np.minimum((Y - low) / side, across - 1).astype(np.int64)
    return np.lexsort(squares.T)


def _scaled(X: Any, lengths: Floats) -> Any:
    """Divide each row, unless by zero."""
    scaled = X.copy()
    scaled.data /= np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(X.indptr))
    return scaled


class _Counter:
    """Adds up the ranks of one point after the other."""

    def __init__(
        self, n: int, nearest: Rows, asked: Rows, sizes: npt.NDArray[np.int64], references: Rows
    ) -> None:
        self.kept = np.zeros((n, len(sizes)), dtype=np.int32)
        self.penalties = np.zeros((n, len(sizes)))
        self.variances = np.zeros((n, len(sizes)))
        self.by_reference = np.zeros((len(references), len(sizes)), dtype=np.int64)
        self._nearest, self._asked = nearest, asked
        self._sizes, self._references = sizes, references
        self._rank_of = np.zeros(n, dtype=np.int64)  # for the point at hand; 0 if not known

    def judge(self, i: int, distances: Floats, asked_distances: Floats) -> None:
        """Take the distances of a point from all references, and from those that are asked."""
        n, known = len(self._rank_of), self._nearest.shape[1]
        self._rank_of[self._nearest[i]] = np.arange(1, known + 1)
        asked = self._asked[i]
        ranks = self._rank_of[asked]
        counts = (self._rank_of[self._references] == 0) & (self._references != i)
        self._rank_of[self._nearest[i]] = 0

        # The asked points beyond the known ones, nearest first; ties go to the lower index.
        places = np.flatnonzero(ranks == 0)
        places = places[np.lexsort((asked[places], asked_distances[places]))]
        limits, ids = asked_distances[places], asked[places]
        bins = _bins(distances[counts], self._references[counts], limits, ids)
        counted, beyond = int(counts.sum()), n - 1 - known
        for s, k in enumerate(self._sizes.tolist()):
            # Limits from each bin on, within this size.
            farther = np.append(np.cumsum((places < k)[::-1])[::-1], 0)
            values = farther[bins]
            self.by_reference[counts, s] += values
            rank = ranks[:k]
            self.kept[i, s] = ((rank > 0) & (rank <= k)).sum()
            # All known ones are nearer than one that is not known.
            penalty = np.where(rank > 0, np.maximum(rank - k, 0), known + 1 - k).sum()
            total = float(values.sum())
            scale = beyond / counted if 0 < counted < beyond else 1.0
            self.penalties[i, s] = penalty + total * scale
            if 1 < counted < beyond:
                squares = float((values * values).sum())
                spread = max(0.0, (squares - total * total / counted) / (counted - 1))
                left_out = 1 - counted / beyond
                self.variances[i, s] = beyond * beyond * spread / counted * left_out


def _bins(distances: Floats, ids: Rows, limits: Floats, limit_ids: Rows) -> Rows:
    """Find the first limit that each distance is below; of equal ones, the ids are compared."""
    bins = np.searchsorted(limits, distances, side="left")
    while True:
        inside = np.flatnonzero(bins < len(limits))
        at = bins[inside]
        passed = (limits[at] == distances[inside]) & (limit_ids[at] <= ids[inside])
        if not passed.any():
            return bins
        bins[inside[passed]] += 1
