"""New points into a finished map."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from acctsne import _core
from acctsne.forces.repulsion import RepulsionOptions
from acctsne.neighbors.frame import Frame
from acctsne.neighbors.given import check_indices_and_distances, is_precomputed
from acctsne.neighbors.nearest import query_neighbors
from acctsne.neighbors.records import NearestNeighborsResult, SearchSettings
from acctsne.optimize.schedule import Phase, Ramp
from acctsne.runtime.progress import Progress, progress_bar
from acctsne.runtime.rows import check_finite

# A new point looks at few neighbours and goes among them, as openTSNE's does: with the perplexity
# of the map it is drawn to the middle of its cluster. The learning rate hardly matters
# (docs/tuning.md).
PERPLEXITY = 5.0
N_NEIGHBORS = 15
PLACEMENT = Phase(
    name="placement",
    end=250,
    exaggeration=Ramp.constant(1.5),
    learning_rate=Ramp.constant(0.1),
    momentum=0.8,
    max_step=0.25,
)

# An equal row is at distance zero, or, after normalisation, at one that rounding explains: this
# part of the farthest neighbour's at most.
NEAR = 1e-5


@dataclass(frozen=True)
class FittedMap:
    """A finished map, and the data that it is of."""

    X: Any
    positions: npt.NDArray[Any]
    metric: Any
    metric_params: dict[str, Any] | None
    repulsion: RepulsionOptions
    frame: Frame | None  # of the neighbour search by the same metric; None where it is not known

    def place(self, X_new: Any, threads: int, verbose: int) -> npt.NDArray[Any]:
        """Place checked samples."""
        found, known = self._search(X_new, threads, verbose)
        placed = np.empty((len(known), self.positions.shape[1]), self.positions.dtype)
        placed[known >= 0] = self.positions[known[known >= 0]]
        unknown = np.flatnonzero(known < 0)
        with progress_bar("new points", len(unknown), "pt", verbose) as move_to:
            placed[unknown] = place_new_points(
                self.positions,
                NearestNeighborsResult(found.indices[unknown], found.distances[unknown]),
                self.repulsion,
                threads,
                move_to,
            )
        return placed

    def _search(
        self, X_new: Any, threads: int, verbose: int
    ) -> tuple[NearestNeighborsResult, npt.NDArray[np.int64]]:
        """Find the nearest samples of the map, and which one a new row equals."""
        found = self._neighbors(X_new, threads, verbose)
        return found, known_rows(self.X, X_new, found, self.metric)

    def _n_neighbors(self) -> int:
        return min(N_NEIGHBORS, len(self.positions))

    def _neighbors(self, X_new: Any, threads: int, verbose: int) -> NearestNeighborsResult:
        """Find the nearest samples of the map; X_new are distances if precomputed."""
        n_neighbors = self._n_neighbors()
        if is_precomputed(self.metric):
            order = np.argsort(X_new, axis=1, kind="stable")[:, :n_neighbors]
            nearest = np.take_along_axis(X_new, order, axis=1)
            return NearestNeighborsResult(order.astype(np.int32), nearest)
        settings = SearchSettings(
            n_neighbors,
            self.metric,
            metric_params=self.metric_params,
            threads=threads,
            verbose=verbose,
        )
        try:
            return query_neighbors(self.X, X_new, settings, self.frame)
        except ValueError:
            check_unchanged(self.X)
            raise


def place_new_points(
    positions: npt.NDArray[Any],
    found: NearestNeighborsResult,
    repulsion: RepulsionOptions,
    threads: int,
    progress: Progress = None,
) -> npt.NDArray[Any]:
    """Place points, given their nearest neighbours in the map, without moving the map."""
    indices, distances = found.indices, found.distances
    # Each row in units of its own: squares can then neither overflow nor all vanish.
    farthest = distances[:, -1:].astype(np.float64)
    with np.errstate(under="ignore"):
        scaled = np.divide(distances, farthest, where=farthest > 0, out=np.zeros(distances.shape))
        squared = np.ascontiguousarray(np.square(scaled), dtype=positions.dtype)
    # Few neighbours allow no more perplexity than a third of their number.
    perplexity = min(PERPLEXITY, max(1.0, squared.shape[1] / 3))
    weights: npt.NDArray[Any] = _core.search_perplexity(squared, perplexity, threads)[0]
    kind = _core.Map64 if positions.dtype == np.float64 else _core.Map32
    return kind(positions, repulsion.native(positions.shape[1])).place(
        np.ascontiguousarray(indices, dtype=np.int32),
        weights,
        weighted_medians(positions[indices], weights),
        PLACEMENT.native(PLACEMENT.end, 0),
        threads=threads,
        progress=progress,
    )


def check_unchanged(X: Any) -> None:
    """Refuse fitted data that is not finite any more: it is the user's own, not a copy."""
    try:
        check_finite(X, "X")
    except ValueError as error:
        held = "NaN" if "NaN" in str(error) else "infinity"
        raise ValueError(
            f"the data that this map was fitted on has changed since, and now holds {held}; new "
            "samples are compared with it. Undo the change and call again, or, where data changes "
            "in place, fit a copy of it: X.copy()"
        ) from error


def check_map(positions: Any, n_samples: int) -> npt.NDArray[Any]:
    """Return a map that may have been turned, or written to, as native code takes it."""
    kind = getattr(positions, "dtype", None)
    shape: tuple[int, ...] = getattr(positions, "shape", ())
    if kind not in (np.float32, np.float64) or len(shape) != 2 or shape[0] != n_samples:
        raise ValueError(
            f"embedding_ must be an array of float32 or float64 with a row for each of the "
            f"{n_samples} samples that were fitted; got {type(positions).__name__} of shape "
            f"{shape} and type {kind}"
        )
    whole: npt.NDArray[Any] = np.ascontiguousarray(positions)
    finite = np.isfinite(whole).all(axis=1)
    if not finite.all():
        row = int(finite.argmin())
        raise ValueError(
            f"the map has a position that is not finite, {whole[row]} in row {row}; new points "
            "are placed in whole maps only. To hide points, leave them out of a copy"
        )
    return whole


def weighted_medians(values: npt.NDArray[Any], weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Compute the median of each row's neighbours, coordinate by coordinate.

    Unlike the mean it lies in one of the clusters if the neighbours are in several.
    """
    medians = np.empty((values.shape[0], values.shape[2]), dtype=values.dtype)
    for axis in range(values.shape[2]):
        order = np.argsort(values[:, :, axis], axis=1, kind="stable")
        reached = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
        middle = (reached >= 0.5 * reached[:, -1:]).argmax(axis=1)
        chosen = np.take_along_axis(order, middle[:, None], axis=1)
        medians[:, axis] = np.take_along_axis(values[:, :, axis], chosen, axis=1)[:, 0]
    return medians


def check_neighbors_in_map(indices: Any, distances: Any, n_samples: int) -> NearestNeighborsResult:
    """Check neighbours that the user gives, and put the nearest first."""
    given = check_indices_and_distances(indices, distances, n_samples)
    order = np.argsort(given.distances, axis=1, kind="stable")
    return NearestNeighborsResult(
        np.take_along_axis(given.indices, order, axis=1),
        np.take_along_axis(given.distances, order, axis=1),
    )


def known_rows(
    X_fit: Any, X_new: Any, found: NearestNeighborsResult, metric: Any
) -> npt.NDArray[np.int64]:
    """Find which new rows were there when the map was made: the first equal row, or -1."""
    indices, distances = found.indices, found.distances
    if is_precomputed(metric):
        return np.where(distances[:, 0] == 0, indices[:, 0].astype(np.int64), -1)
    known = np.full(X_new.shape[0], -1, dtype=np.int64)
    with np.errstate(under="ignore"):
        near = distances <= NEAR * distances[:, -1:]
    for column in range(indices.shape[1]):
        rows = np.flatnonzero(near[:, column])
        if not len(rows):
            continue
        candidates = indices[rows, column].astype(np.int64)
        if issparse(X_new):
            differences = (X_new[rows] != X_fit[candidates]).sum(axis=1)
            equal = np.asarray(differences).ravel() == 0
        else:
            equal = (X_new[rows] == X_fit[candidates]).all(axis=1)
        rows, candidates = rows[equal], candidates[equal]
        earlier = (known[rows] < 0) | (candidates < known[rows])
        known[rows[earlier]] = candidates[earlier]
    return known
