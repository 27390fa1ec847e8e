"""New points into a map whose data several processes hold.

Every process looks for the neighbours of all new rows among its own rows of the data; those that it
finds go to the process that was given the new row, which keeps the nearest.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne.distributed.neighbors import shared_frame
from acctsne.distributed.processes import Processes
from acctsne.embedding.transform import NEAR, FittedMap, check_unchanged
from acctsne.neighbors.euclidean import exact_query
from acctsne.neighbors.frame import Frame
from acctsne.neighbors.metrics import EuclideanForm, by_metric, euclidean_form, native_metric
from acctsne.neighbors.records import NearestNeighborsResult, Neighbors, SearchSettings
from acctsne.runtime.rows import computed_dtype

# New rows of all processes that are searched for at a time.
ROUND_ROWS = 2**16

# A row of the data that may be among the nearest of a new one.
CANDIDATE = np.dtype([("squared", np.float64), ("index", np.int32), ("equal", np.bool_)])
NO_INDEX = np.iinfo(np.int32).max
NO_CANDIDATE = np.array((np.inf, NO_INDEX, False), dtype=CANDIDATE)


@dataclass(frozen=True)
class OwnSearch:
    """What new rows are searched among: own rows of the data, on axes that all processes have."""

    reference: EuclideanForm
    settings: SearchSettings
    frame: Frame


@dataclass(frozen=True)
class SharedMap(FittedMap):
    """A map with all positions, and of its data own rows."""

    processes: Processes

    def _search(
        self, X_new: Any, threads: int, verbose: int
    ) -> tuple[NearestNeighborsResult, npt.NDArray[np.int64]]:
        """Find the nearest samples of the map, and which one a new row equals."""
        metric = native_metric(self.metric, self.metric_params)
        assert metric is not None
        settings = SearchSettings(
            self._n_neighbors(), dtype=computed_dtype(self.X), threads=threads
        )
        with self.processes.agreeing():
            check_unchanged(self.X.own)
            reference = euclidean_form(self.X.own, metric, "the fitted data")
            asked = euclidean_form(X_new, metric)
        frame = self.frame or shared_frame(
            reference.data, self.X.n_samples, settings, "exact", self.processes
        )
        found = np.empty((len(X_new), settings.n_neighbors), dtype=CANDIDATE)
        each = max(ROUND_ROWS // self.processes.size, 1)
        most = max(self.processes.allgather(len(X_new)))
        for begin in range(0, most, each):
            rows = slice(begin, min(begin + each, len(X_new)))
            found[rows] = self._nearest(X_new[rows], OwnSearch(reference, settings, frame))
        squared = found["squared"].astype(settings.dtype)
        squares = Neighbors(np.ascontiguousarray(found["index"]), squared, scale=frame.scale)
        with self.processes.agreeing():
            nearest = by_metric(squares, asked, among_themselves=False)
        equal = found["equal"] & (nearest.distances <= NEAR * nearest.distances[:, -1:])
        first = np.where(equal, nearest.indices, NO_INDEX).min(axis=1, initial=NO_INDEX)
        known = np.where(first < NO_INDEX, first, -1).astype(np.int64)
        return nearest, known

    def _nearest(self, mine: npt.NDArray[Any], search: OwnSearch) -> npt.NDArray[Any]:
        """Find the nearest of some new rows of each process; returns those of this one's."""
        counts = self.processes.allgather(len(mine))
        ends = [int(end) for end in np.cumsum(counts)]
        rows = self.processes.joined(np.ascontiguousarray(mine), ends)
        with self.processes.agreeing():
            candidates = self._among_own(rows, search)
        k = search.settings.n_neighbors
        arrived = np.empty((self.processes.size, len(mine), k), dtype=CANDIDATE)
        row_bytes = k * CANDIDATE.itemsize
        self.processes.exchange(
            candidates.reshape(-1).view(np.uint8),
            [end * row_bytes for end in ends],
            arrived.reshape(-1).view(np.uint8),
            [(rank + 1) * len(mine) * row_bytes for rank in range(self.processes.size)],
        )
        all_of_row = arrived.transpose(1, 0, 2).reshape(len(mine), self.processes.size * k)
        # Ties go to the lower index, as in the search itself.
        order = np.lexsort((all_of_row["index"], all_of_row["squared"]), axis=-1)
        return np.take_along_axis(all_of_row, order[:, :k], axis=1)

    def _among_own(self, rows: npt.NDArray[Any], search: OwnSearch) -> npt.NDArray[Any]:
        wanted = search.settings.n_neighbors
        candidates = np.full((len(rows), wanted), NO_CANDIDATE)
        own = self.X.own
        if not len(own) or not len(rows):
            return candidates
        nearest = self._queried(rows, search)
        indices, squared = nearest.indices, nearest.squared_distances
        k = indices.shape[1]
        # Wider than what counts as near in any metric, and against neighbours that are no nearer
        # than those of all rows.
        farthest = squared.max(axis=1, keepdims=True) if k == wanted else np.inf
        near = squared <= 10 * NEAR * farthest
        for column in range(k):
            asked = np.flatnonzero(near[:, column])
            same = (rows[asked] == own[indices[asked, column]]).all(axis=1)
            candidates["equal"][asked, column] = same
        candidates["squared"][:, :k] = squared
        candidates["index"][:, :k] = indices + self.processes.own_rows(self.X.n_samples).start
        return candidates

    def _queried(self, rows: npt.NDArray[Any], search: OwnSearch) -> Neighbors:
        """Find the nearest of own rows, all of them if they are few."""
        settings = search.settings
        data = search.reference.data
        few = len(data) <= settings.n_neighbors and len(data) < self.X.n_samples
        if few:
            # The search compares all rows in double precision where all are wanted, other than it
            # does among the many rows of one process. Of two copies of each not all are.
            data = np.concatenate([data, data])
        k = len(data) - 1 if few else settings.n_neighbors
        queries = euclidean_form(rows, search.reference.metric, "queries").data
        here = SearchSettings(k, dtype=settings.dtype, threads=settings.threads)
        found = exact_query(data, queries, here, None, search.frame)
        if not few:
            return found
        count = len(search.reference.data)
        squared = np.empty((len(rows), count), dtype=found.squared_distances.dtype)
        np.put_along_axis(squared, found.indices % count, found.squared_distances, axis=1)
        every = np.tile(np.arange(count, dtype=np.int32), (len(rows), 1))
        return replace(found, indices=every, squared_distances=squared)
