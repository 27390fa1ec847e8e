"""Step 1 of own rows: their neighbours among all, and their principal components.

In an exact search the rows of each process pass by those of all (native/neighbors/ring.cpp), so
that none holds more than its own and those of one other. In an approximate one, which large data
needs, every process searches for the points of its own cells (native/neighbors/found_rows.hpp), and
has all projections for a while, and the rows that it looks at.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne import _core
from acctsne.distributed.processes import Processes
from acctsne.distributed.rows import SharedRows
from acctsne.neighbors.euclidean import chosen_mode, sample_rows, search_in
from acctsne.neighbors.frame import Frame, frame_of_sample, sampled_rows
from acctsne.neighbors.given import squared
from acctsne.neighbors.libraries import BAD_METRIC
from acctsne.neighbors.metrics import EuclideanForm, by_metric, euclidean_form, native_metric
from acctsne.neighbors.nearest import log_recall
from acctsne.neighbors.records import Neighbors, SearchSettings
from acctsne.runtime.progress import Progress, progress_bar


def find_neighbors(rows: SharedRows, settings: SearchSettings, processes: Processes) -> Neighbors:
    """Find the neighbours of own rows, with the bits that one process finds."""
    metric = native_metric(settings.metric, settings.metric_params)
    assert metric is not None
    first = processes.own_rows(rows.n_samples).start
    with processes.agreeing():
        form = euclidean_form(rows.own, metric, "X of all processes", first)
    asked = settings if metric == "euclidean" else replace(settings, n_components=0)
    with progress_bar("neighbors", rows.n_samples, "pt", settings.verbose) as move_to:
        found = _search(rows, form, asked, processes, move_to)
    log_recall(found)
    if metric == "euclidean":
        return found
    with processes.agreeing():
        result = by_metric(found, form, among_themselves=True, first_row=first)
    largest = max(processes.allgather(float(result.distances.max(initial=0.0))))
    with processes.agreeing():
        squares = squared(result, settings.dtype, BAD_METRIC, largest)
    return replace(squares, among=rows.n_samples)


def _search(
    rows: SharedRows,
    form: EuclideanForm,
    settings: SearchSettings,
    processes: Processes,
    progress: Progress,
) -> Neighbors:
    own, n_samples = form.data, rows.n_samples
    mode = chosen_mode(settings.mode, n_samples, own.shape[1])
    frame = shared_frame(own, n_samples, settings, mode, processes)
    sample = None
    if mode == "approximate":
        first = processes.rank == 0
        sample = processes.bcast(sample_rows(n_samples, settings.random) if first else None)
    return search_in(frame, own, settings, sample, progress, n_samples, processes)


def shared_frame(
    own: npt.NDArray[Any], n_samples: int, settings: SearchSettings, mode: str, processes: Processes
) -> Frame:
    """Find the frame of all rows: the first process does, from rows of all."""
    n_axes = None if mode == "exact" else _core.APPROXIMATE_AXES
    sample = _every(own, n_samples, sampled_rows(n_samples, n_axes), processes)
    largest = max(processes.allgather(_extent(own)))
    frame = None
    if processes.rank == 0:
        frame = frame_of_sample(
            sample, n_samples, largest, settings.n_neighbors, settings.threads, n_axes
        )
    found: Frame = processes.bcast(frame)
    return found


def _extent(own: npt.NDArray[Any]) -> float:
    return max(float(own.max()), -float(own.min())) if own.size else 0.0


def _every(
    own: npt.NDArray[Any], n_samples: int, wanted: slice, processes: Processes
) -> npt.NDArray[Any]:
    """Gather some rows of all processes."""
    names = range(n_samples)[wanted]
    here = processes.own_rows(n_samples)
    mine = [row - here.start for row in names if here.start <= row < here.stop]
    ends = np.cumsum(processes.allgather(len(mine)))
    return processes.joined(np.ascontiguousarray(own[mine]), [int(end) for end in ends])
