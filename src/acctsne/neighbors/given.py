"""Neighbours that the user brings: distance matrices, sparse graphs, (indices, distances) pairs."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse

from acctsne.neighbors.records import Neighbors
from acctsne.runtime.checks import check_sparse

# Distances that are sorted at a time.
BLOCK_ELEMENTS = 2**22


def check_graph(X: Any) -> Any:
    """Check a graph as the user gives it; a pair of arrays becomes a CSR matrix.

    Dense matrices are returned as they are. Wrong entries are refused with their row.
    """
    if isinstance(X, tuple):
        X = _from_pair(X)
    if not issparse(check_sparse(X, "the graph")):
        return X
    graph = X.tocsr()
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
    indices = np.asarray(pair[0])
    distances = np.asarray(pair[1])
    if indices.ndim != 2 or indices.shape != distances.shape:
        raise ValueError(
            "indices and distances must have the same shape (n_samples, n_neighbors); got "
            f"{indices.shape} and {distances.shape}"
        )
    if not np.issubdtype(indices.dtype, np.integer):
        raise TypeError(f"indices must be integers; got {indices.dtype}")
    if not np.issubdtype(distances.dtype, np.floating):
        distances = distances.astype(np.float64)
    n, k = indices.shape
    outside = (indices < 0) | (indices >= n)
    if outside.any():
        row = int(np.flatnonzero(outside.any(axis=1))[0])
        raise ValueError(
            f"row {row} of indices names neighbour {indices[row][outside[row]][0]}; there are "
            f"{n} samples, counted from 0"
        )
    offsets = np.arange(0, n * k + 1, k)
    return csr_matrix((distances.ravel(), indices.astype(np.int32).ravel(), offsets), shape=(n, n))


def graph_neighbors(
    graph: Any, n_neighbors: int, perplexity: float | None = None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
    """Take the nearest neighbours of every sample from a checked graph.

    Parameters
    ----------
    graph : CSR matrix or ndarray of shape (n_samples, n_samples)
        Distances. In a CSR matrix, those that are stored, zeros included; a sample's distance from
        itself may be there or not.
    n_neighbors : int
        How many to take.
    perplexity : float, default=None
        If given, fewer will do when a row has no more, with a warning: one neighbour more than the
        perplexity, since a Gaussian over as many as that could only be flat.

    Returns
    -------
    indices : ndarray of shape (n_samples, k), int32
        Without the sample itself, nearest first.
    distances : ndarray of shape (n_samples, k)
        In ascending order.
    """
    if issparse(graph):
        n_neighbors = _affordable(stored_neighbors(graph), n_neighbors, perplexity)
    return nearest_in_graph(graph, n_neighbors)


def nearest_in_graph(graph: Any, k: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
    """Take the k nearest of every sample, which must be there; ties go to the lower index."""
    n = graph.shape[0]
    indices = np.empty((n, k), dtype=np.int32)
    nearest = np.empty((n, k), dtype=graph.dtype)
    if not issparse(graph):
        height = max(1, BLOCK_ELEMENTS // n)
        for start in range(0, n, height):
            block = graph[start : start + height].copy()
            stop = start + len(block)
            block[np.arange(len(block)), np.arange(start, stop)] = np.inf
            chosen = _columns_of_smallest(block, k)
            theirs = np.take_along_axis(block, chosen, axis=1)
            order = np.argsort(theirs, axis=1, kind="stable")
            indices[start:stop] = np.take_along_axis(chosen, order, axis=1)
            nearest[start:stop] = np.take_along_axis(theirs, order, axis=1)
        return indices, nearest
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
    return indices, nearest


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


def _affordable(counts: npt.NDArray[np.intp], n_neighbors: int, perplexity: float | None) -> int:
    """Decide how many neighbours to take where rows have so many."""
    row = int(np.argmin(counts))
    fewest = int(counts[row])
    if fewest >= n_neighbors:
        return n_neighbors
    needed = n_neighbors
    if perplexity is not None:
        needed = min(n_neighbors, int(np.ceil(perplexity)) + 1)
    if fewest < needed:
        raise ValueError(
            f"{needed + 1} neighbors per samples are required, but some samples have only "
            f"{fewest + 1}, themselves counted: row {row} of the graph has {fewest} others. "
            f"Make the graph with {n_neighbors} neighbours or more"
            + ("" if perplexity is None else f", or lower the perplexity ({perplexity:g})")
        )
    warnings.warn(
        f"row {row} of the graph has {fewest} neighbours and perplexity {perplexity:g} calls for "
        f"{n_neighbors}: {fewest} are used for every sample",
        UserWarning,
        stacklevel=2,
    )
    return fewest


def squared(
    indices: npt.NDArray[Any],
    distances: npt.NDArray[Any],
    dtype: np.dtype[Any],
    wrong: str = "distances must be finite and not negative",
) -> Neighbors:
    """Square distances that a metric or the user gave, in a scale where that is safe.

    `wrong` is the error for those that are no distances: it says who is to blame.
    """
    if not np.isfinite(distances).all() or (distances < 0).any():
        raise ValueError(wrong)
    largest = float(distances.max(initial=0.0))
    # Squares can then neither overflow nor all vanish.
    scale = 1.0 / largest if np.isfinite(1.0 / largest if largest else np.inf) else 1.0
    squares = np.ascontiguousarray(np.square(distances.astype(np.float64) * scale), dtype=dtype)
    return Neighbors(np.ascontiguousarray(indices, dtype=np.int32), squares, scale)
