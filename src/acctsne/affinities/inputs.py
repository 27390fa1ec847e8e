"""What affinities can be made from, checked: data, neighbours, distances, a matrix."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse
from sklearn.utils.validation import check_array

from acctsne.compat.scikit_learn import VALID_METRICS
from acctsne.neighbors.given import (
    check_graph,
    check_indices_and_distances,
    graph_neighbors,
    is_precomputed,
    squared,
)
from acctsne.neighbors.nearest import check_n_neighbors, check_rows
from acctsne.neighbors.records import NEIGHBOR_MODES, Neighbors
from acctsne.runtime.checks import check_choice, check_n_samples, check_sparse
from acctsne.runtime.tables import turned_into_numbers

# What is said of a P without any probability.
NO_AFFINITY = "P has no affinity between different samples"


def wanted_neighbors(n_neighbors: Any, usual: int, n_samples: int) -> int:
    """Return how many neighbours each sample gets: those asked for, or what is usual if None."""
    most = n_samples - 1
    if n_neighbors is None:
        return min(usual, most)
    return check_n_neighbors(n_neighbors, most, "n_samples - 1")


def check_data(X: Any) -> Any:
    """Check samples in rows: a dense array of a stored type, or a CSR matrix."""
    X = check_rows(X, "X", 2)
    check_n_samples(X.shape[0])
    return X


def check_metric(metric: Any, neighbors: str) -> None:
    """Check how neighbours in data are to be searched."""
    check_choice("neighbors", neighbors, NEIGHBOR_MODES)
    if is_precomputed(metric):
        raise ValueError("metric='precomputed' is not data; use Affinities.from_distances")
    if not callable(metric):
        check_choice("metric", metric, VALID_METRICS, "a callable or ")


def check_neighbors(indices: Any, distances: Any, dtype: np.dtype[Any]) -> Neighbors:
    """Check neighbours that the user gives, each sample itself not among them."""
    found = check_indices_and_distances(indices, distances)
    n_samples = len(found.indices)
    check_n_samples(n_samples, "indices")
    itself = (found.indices == np.arange(n_samples)[:, None]).any(axis=1)
    if itself.any():
        raise ValueError(
            f"row {itself.argmax()} of indices names the sample itself; leave it out of both "
            "arrays, with [:, 1:] if it comes first everywhere"
        )
    return squared(found, dtype)


def neighbors_in_distances(
    D: Any, n_neighbors: int | None, usual: int, dtype: np.dtype[Any]
) -> Neighbors:
    """Find the nearest neighbours in a square matrix of distances, dense or sparse.

    In a sparse one only stored distances count, explicit zeros among them. Without a number of
    neighbours the usual one, or as many as there are.
    """
    with turned_into_numbers(D, "D"):
        D = check_array(
            check_graph(D),
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_min_samples=2,
            input_name="D",
        )
    if D.shape[0] != D.shape[1]:
        raise ValueError(f"D must be a square matrix of distances; got shape {D.shape}")
    check_n_samples(D.shape[0], "D")
    if not issparse(D):
        check_not_negative(D, "D")
    k = wanted_neighbors(n_neighbors, usual, D.shape[0])
    return squared(graph_neighbors(D, k, least=1 if n_neighbors is None else k), dtype)


def check_matrix(P: Any) -> tuple[csr_matrix, list[str]]:
    """Check a matrix of affinities; returns a proper P and what had to be done to make it one."""
    P = check_sparse(P, "P")
    with turned_into_numbers(P, "P"):
        P = check_array(
            P, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2, input_name="P"
        )
    if P.shape[0] != P.shape[1]:
        raise ValueError(f"P must be square; got shape {P.shape}")
    check_n_samples(P.shape[0], "P")
    matrix = csr_matrix(P, copy=True)
    check_not_negative(matrix.data, "P")
    matrix.sum_duplicates()
    changes = []
    if matrix.diagonal().any():
        matrix.setdiag(0.0)
        changes.append("emptied the diagonal")
    matrix.eliminate_zeros()
    if not matrix.nnz:
        raise ValueError(NO_AFFINITY)
    if (matrix != matrix.T).nnz:
        matrix = (matrix + matrix.T).tocsr() / 2
        changes.append("symmetrised")
    largest = float(matrix.data.max())
    total = float((matrix.data / largest).sum()) * largest
    if not sums_to_one(total):
        matrix.data /= largest
        matrix.data /= matrix.data.sum()
        changes.append(f"divided by the sum, {total:g}")
    matrix.sort_indices()
    return matrix, changes


def sums_to_one(total: float) -> bool:
    """Tell probabilities by their sum; float32, normalised in float32, stays well within this."""
    return abs(total - 1.0) < 1e-4


def check_not_negative(values: npt.NDArray[Any], name: str) -> None:
    """Refuse negative values, by the name of what they are in."""
    smallest = values.min(initial=0.0)
    if smallest < 0:
        raise ValueError(f"{name} must not be negative; the smallest value is {smallest:g}")
