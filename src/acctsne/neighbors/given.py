"""Neighbours that the user brings: distance matrices, sparse graphs, (indices, distances) pairs."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse

from acctsne.files.backed import in_reach
from acctsne.neighbors.records import NearestNeighborsResult, Neighbors
from acctsne.runtime.checks import check_sparse
from acctsne.runtime.rows import computed_dtype
from acctsne.runtime.tables import turned_into_numbers

# Distances that are sorted, squared or converted at a time.
BLOCK_ELEMENTS = 2**22


def is_precomputed(metric: Any) -> bool:
    """Say whether a metric stands for distances or neighbours in the place of features."""
    return isinstance(metric, str) and metric == "precomputed"


def check_graph(X: Any) -> Any:
    """Check a graph as the user gives it; a pair of arrays becomes a CSR matrix.

    Dense matrices are returned as they are. Wrong entries are refused with their row.
    """
    X = _from_pair(X) if isinstance(X, tuple) else in_reach(X, "the graph")
    graph = check_sparse(X, "the graph")
    if not issparse(graph):
        return graph
    if X.format == "coo" and graph.nnz < X.nnz:
        # The conversion adds up what it finds twice.
        row = int(np.argmax(np.bincount(X.row, minlength=X.shape[0]) != np.diff(graph.indptr)))
        raise ValueError(f"row {row} of the graph names a neighbour twice")
    if not np.issubdtype(graph.dtype, np.floating):
        graph = graph.astype(np.float64)
    if not graph.has_sorted_indices:
        graph = graph.sorted_indices()
    _refuse(graph, ~np.isfinite(graph.data), "a distance that is not finite: {distance:g}")
    _refuse(graph, graph.data < 0, "the distance {distance:g}; distances must be positive or zero")
    repeated = np.zeros(graph.nnz, dtype=bool)
    repeated[1:] = graph.indices[1:] == graph.indices[:-1]
    repeated[graph.indptr[:-1][np.diff(graph.indptr) > 0]] = False  # the first of a row
    _refuse(graph, repeated, "neighbour {column} twice")
    return graph


def _refuse(graph: csr_matrix, wrong: npt.NDArray[np.bool_], what: str) -> None:
    if wrong.any():
        first = int(np.argmax(wrong))
        row = int(np.searchsorted(graph.indptr, first, side="right")) - 1
        text = what.format(distance=graph.data[first], column=graph.indices[first])
        raise ValueError(f"row {row} of the graph has {text}")


def _from_pair(pair: tuple[Any, ...]) -> csr_matrix:
    if len(pair) != 2:
        raise ValueError(f"neighbours are given as (indices, distances); got {len(pair)} arrays")
    found = check_indices_and_distances(*pair)
    n, k = found.indices.shape
    offsets = np.arange(0, n * k + 1, k)
    return csr_matrix((found.distances.ravel(), found.indices.ravel(), offsets), shape=(n, n))


def check_indices_and_distances(
    indices: Any, distances: Any, n_samples: int | None = None
) -> NearestNeighborsResult:
    """Check neighbours and their distances as two arrays, a row for each point; returns copies.

    Neighbours are rows of so many samples; without a number, of the points themselves.
    """
    with turned_into_numbers(indices, "indices"):
        indices = np.asarray(indices)
    with turned_into_numbers(distances, "distances"):
        distances = np.asarray(distances)
        if distances.dtype.kind == "c":
            raise ValueError(f"distances must be real numbers; got {distances.dtype}")
        if distances.dtype.kind != "f" or distances.dtype.itemsize < 4:
            distances = distances.astype(np.float64)
    if indices.ndim != 2 or not np.issubdtype(indices.dtype, np.integer):
        raise ValueError(
            "indices must be a 2-dimensional array of integers, one row per sample; got "
            f"{indices.ndim} dimensions of {indices.dtype}"
        )
    if indices.shape != distances.shape:
        raise ValueError(
            f"indices and distances differ in shape: {indices.shape} and {distances.shape}"
        )
    if not indices.size:
        raise ValueError(f"there are no neighbours: indices has shape {indices.shape}")
    n = len(indices) if n_samples is None else n_samples
    _refuse_in_table(
        (indices < 0) | (indices >= n),
        lambda at: f"neighbour {indices[at]}; there are {n} samples, counted from 0",
    )
    _refuse_in_table(
        ~np.isfinite(distances), lambda at: f"a distance that is not finite: {distances[at]:g}"
    )
    _refuse_negative(distances)
    ordered = np.sort(indices, axis=1)
    _refuse_in_table(ordered[:, 1:] == ordered[:, :-1], lambda at: f"neighbour {ordered[at]} twice")
    return NearestNeighborsResult(indices.astype(np.int32), distances.copy())


def _refuse_negative(distances: npt.NDArray[Any], first_row: int = 0) -> None:
    _refuse_in_table(
        distances < 0,
        lambda at: f"the distance {distances[at]:g}; distances must be positive or zero",
        first_row,
    )


def _refuse_in_table(
    wrong: npt.NDArray[np.bool_], what: Callable[[tuple[int, int]], str], first_row: int = 0
) -> None:
    if wrong.any():
        row, column = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        raise ValueError(f"row {first_row + row} of the graph has {what((int(row), int(column)))}")


def graph_neighbors(
    graph: Any, n_neighbors: int, least: int | None = None
) -> NearestNeighborsResult:
    """Take the nearest neighbours of every sample from a checked graph.

    Parameters
    ----------
    graph : CSR matrix or ndarray of shape (n_samples, n_samples)
        Distances. In a CSR matrix, those that are stored, zeros included; a sample's distance from
        itself may be there or not.
    n_neighbors : int
        How many to take.
    least : int, default=None
        How many will do where a row has no more: as many as the row with the fewest has are then
        taken for every sample, with a warning. None if nothing less than `n_neighbors` will do.

    Returns
    -------
    found : NearestNeighborsResult
        Without the sample itself, nearest first.
    """
    if issparse(graph):
        n_neighbors = _affordable(stored_neighbors(graph), n_neighbors, least or n_neighbors)
    return nearest_in_graph(graph, n_neighbors)


def nearest_in_graph(graph: Any, k: int) -> NearestNeighborsResult:
    """Take the k nearest of every sample, which must be there; ties go to the lower index."""
    n = graph.shape[0]
    indices = np.empty((n, k), dtype=np.int32)
    nearest = np.empty((n, k), dtype=computed_dtype(graph))
    if not issparse(graph):
        for some in blocks_of_rows(n, n):
            block = graph[some].astype(nearest.dtype, order="C")
            _refuse_negative(block, some.start)
            block[np.arange(len(block)), np.arange(some.start, some.stop)] = np.inf
            chosen = _columns_of_smallest(block, k)
            theirs = np.take_along_axis(block, chosen, axis=1)
            order = np.argsort(theirs, axis=1, kind="stable")
            indices[some] = np.take_along_axis(chosen, order, axis=1)
            nearest[some] = np.take_along_axis(theirs, order, axis=1)
        return NearestNeighborsResult(indices, nearest)
    counts = stored_neighbors(graph)
    for start, stop in _row_blocks(graph):
        rows, columns, distances = _entries(graph, start, stop)
        others = np.flatnonzero(rows != columns)
        # By row, then distance; columns ascend already.
        order = others[np.lexsort((distances[others], rows[others]))]
        firsts = np.cumsum(counts[start:stop]) - counts[start:stop]
        chosen = order[firsts[:, None] + np.arange(k)]
        indices[start:stop] = columns[chosen]
        nearest[start:stop] = distances[chosen]
    return NearestNeighborsResult(indices, nearest)


def stored_neighbors(graph: csr_matrix) -> npt.NDArray[np.int64]:
    """Count the neighbours of each sample that a sparse graph stores, itself not among them."""
    counts: npt.NDArray[np.int64] = np.diff(graph.indptr).astype(np.int64)
    for start, stop in _row_blocks(graph):
        rows, columns, _ = _entries(graph, start, stop)
        counts[rows[rows == columns]] -= 1
    return counts


def _columns_of_smallest(rows: npt.NDArray[Any], count: int) -> npt.NDArray[np.intp]:
    """Name the columns of the smallest values of each row; of equal ones the first."""
    limit = np.partition(rows, count - 1, axis=1)[:, count - 1 : count]
    below = rows < limit
    at_limit = rows == limit
    room = count - below.sum(axis=1, keepdims=True)
    chosen = below | (at_limit & (np.cumsum(at_limit, axis=1) <= room))
    return np.nonzero(chosen)[1].reshape(len(rows), count)


def _row_blocks(graph: csr_matrix) -> Iterator[tuple[int, int]]:
    """Cut the rows so that blocks have few enough entries, or one row."""
    n = graph.shape[0]
    start = 0
    while start < n:
        limit = int(graph.indptr[start]) + BLOCK_ELEMENTS
        stop = int(np.searchsorted(graph.indptr, limit, side="right")) - 1
        stop = min(max(stop, start + 1), n)
        yield start, stop
        start = stop


def _entries(
    graph: csr_matrix, start: int, stop: int
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Row, column and distance of each entry of the rows."""
    first, last = graph.indptr[start], graph.indptr[stop]
    rows = np.repeat(np.arange(start, stop), np.diff(graph.indptr[start : stop + 1]))
    return rows, graph.indices[first:last], graph.data[first:last]


def _affordable(counts: npt.NDArray[np.intp], n_neighbors: int, least: int) -> int:
    """Decide how many neighbours to take where rows have so many."""
    row = int(np.argmin(counts))
    fewest = int(counts[row])
    if fewest >= n_neighbors:
        return n_neighbors
    if fewest < least:
        raise ValueError(
            f"{least + 1} neighbors per samples are required, but some samples have only "
            f"{fewest + 1}, themselves counted: row {row} of the graph has {fewest} others. "
            f"Make the graph with {n_neighbors} neighbours or more, or ask for fewer or a lower "
            "perplexity"
        )
    warnings.warn(
        f"row {row} of the graph has {fewest} neighbours where {n_neighbors} are called for: "
        f"{fewest} are used for every sample",
        UserWarning,
        stacklevel=2,
    )
    return fewest


def blocks_of_rows(n_rows: int, n_columns: int) -> list[slice]:
    """Cut a table, which may have all pairs, into blocks between which Ctrl-C is noticed."""
    height = max(1, BLOCK_ELEMENTS // max(n_columns, 1))
    return [slice(begin, min(begin + height, n_rows)) for begin in range(0, n_rows, height)]


def squared(
    found: NearestNeighborsResult,
    dtype: np.dtype[Any],
    wrong: str = "distances must be finite and not negative",
    largest: float | None = None,
) -> Neighbors:
    """Square distances that a metric or the user gave, in a scale where that is safe.

    `wrong` is the error for those that are no distances: it says who is to blame. `largest` is the
    largest distance, if there are more than these.
    """
    distances = found.distances
    blocks = blocks_of_rows(*distances.shape)
    farthest = 0.0
    for rows in blocks:
        block = distances[rows]
        if not np.isfinite(block).all() or (block < 0).any():
            raise ValueError(wrong)
        farthest = max(farthest, float(block.max(initial=0.0)))
    largest = farthest if largest is None else largest
    # Squares can then neither overflow nor all vanish.
    scale = 1.0 / largest if np.isfinite(1.0 / largest if largest else np.inf) else 1.0
    squares = np.empty(distances.shape, dtype=dtype)
    with np.errstate(under="ignore"):
        for rows in blocks:
            squares[rows] = np.square(distances[rows].astype(np.float64) * scale)
    indices = np.ascontiguousarray(found.indices, dtype=np.int32)
    return Neighbors(indices, squares, scale=scale, mode=found.mode, recall=found.recall)
