"""Metrics that the native Euclidean search serves, and what makes them Euclidean."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from acctsne.neighbors.given import blocks_of_rows
from acctsne.neighbors.records import NearestNeighborsResult, Neighbors, in_precision_of_data
from acctsne.runtime.rows import BLOCK_ROWS, computed_dtype

# A sparse matrix is made dense if that takes no more than so many times its memory, or so little.
DENSE_FACTOR = 4
DENSE_BYTES = 64 * 2**20

NATIVE_METRICS = {
    "euclidean": "euclidean",
    "l2": "euclidean",
    "sqeuclidean": "sqeuclidean",
    "cosine": "cosine",
    "correlation": "correlation",
}
# Metrics whose distance is half the squared Euclidean one of rows with length 1, and whether the
# rows are centred first.
CENTRES_ROWS = {"cosine": False, "correlation": True}


def native_metric(metric: Any, metric_params: dict[str, Any] | None) -> str | None:
    """Name the metric as the native search knows it; None for those that it does not serve."""
    params = metric_params or {}
    if metric == "minkowski" and (not params or (params.keys() == {"p"} and _is_two(params["p"]))):
        return "euclidean"
    if not isinstance(metric, str) or metric_params:
        return None
    return NATIVE_METRICS.get(metric)


def _is_two(p: Any) -> bool:
    return isinstance(p, Real) and bool(p == 2)


def dense_if_small(X: Any) -> Any:
    """Make a sparse matrix dense where that costs little; return anything else as it is."""
    if not issparse(X):
        return X
    dense_bytes = X.shape[0] * X.shape[1] * X.dtype.itemsize
    sparse_bytes = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return X.toarray() if dense_bytes <= max(DENSE_FACTOR * sparse_bytes, DENSE_BYTES) else X


@dataclass
class EuclideanForm:
    """Rows whose Euclidean distances determine those of another metric."""

    data: npt.NDArray[Any]
    metric: str
    zero_rows: npt.NDArray[np.intp]  # of cosine, where every distance is 1


def euclidean_form(
    X: npt.NDArray[Any], metric: str, name: str = "X", first_row: int = 0
) -> EuclideanForm:
    """Prepare a dense array for the Euclidean search.

    For cosine and correlation distance the rows, centred for the latter, get length 1. Then their
    distance is |a - b|^2 / 2, without the cancellation of 1 - a.b. A row of zeros has cosine
    distance 1 from every other row, as in scikit-learn: a column of its own puts it there.

    Errors speak of X by `name`, and of its first row by the number `first_row`.
    """
    none = np.empty(0, dtype=np.intp)
    if metric in ("euclidean", "sqeuclidean"):
        return EuclideanForm(X, metric, none)
    centred = CENTRES_ROWS[metric]
    unit = np.zeros((len(X), X.shape[1] + (not centred)), dtype=computed_dtype(X))
    for start in range(0, len(X), BLOCK_ROWS):
        block = X[start : start + BLOCK_ROWS].astype(np.float64)
        # By the largest value first: squares can then neither overflow nor all vanish.
        block /= _nonzero(np.abs(block).max(axis=1))
        if centred:
            constant = np.flatnonzero(block.max(axis=1) == block.min(axis=1))
            refuse_constant_rows(first_row + start + constant, name)
            block -= block.mean(axis=1)[:, None]
        block /= _nonzero(np.linalg.norm(block, axis=1))
        unit[start : start + len(block), : X.shape[1]] = block
    if centred:
        return EuclideanForm(unit, metric, none)
    zero = np.flatnonzero(~X.any(axis=1))
    unit[zero, -1] = 1
    return EuclideanForm(unit, metric, zero)


def refuse_constant_rows(rows: npt.NDArray[np.intp], name: str) -> None:
    """Refuse data for correlation distance if it has such rows: it is not defined for them."""
    if len(rows):
        raise ValueError(
            f"row {rows[0]} of {name} is constant: correlation distance is not defined for it. "
            "Remove such rows or use another metric"
        )


def _nonzero(lengths: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.where(lengths > 0, lengths, 1.0)[:, None]


def by_metric(
    found: Neighbors, form: EuclideanForm, among_themselves: bool, first_row: int = 0
) -> NearestNeighborsResult:
    """Turn squared Euclidean distances into those of the form's metric, in the data's dtype.

    Changes the arrays of `found`. `among_themselves` says whether the rows were searched among each
    other, so that none is its own neighbour; `first_row` is then the number of the first of these.
    """
    distances = _distances(found, form)
    k = distances.shape[1]
    for row in form.zero_rows:
        # All are equally far: ties go to the lower index.
        others = np.arange(k + 1, dtype=np.int32)
        if among_themselves:
            others = others[others != first_row + row]
        found.indices[row] = others[:k]
        distances[row] = 1
    return NearestNeighborsResult(found.indices, distances, found.mode, found.recall)


def _divided(values: npt.NDArray[Any], scale: float) -> npt.NDArray[np.float64]:
    """Divide by a power of two, in double precision; what goes beyond it becomes infinite."""
    with np.errstate(over="ignore", under="ignore"):
        quotients: npt.NDArray[np.float64] = np.divide(values, scale, dtype=np.float64)
    return quotients


def _distances(found: Neighbors, form: EuclideanForm) -> npt.NDArray[Any]:
    """Take the squares as room for the distances if these are of the same type."""
    dtype = computed_dtype(form.data)
    squared = found.squared_distances
    distances = squared if squared.dtype == dtype else np.empty(squared.shape, dtype)
    for rows in blocks_of_rows(*squared.shape):
        distances[rows] = _distances_of_rows(squared[rows], found.scale, form.metric, dtype)
    return distances


def _distances_of_rows(
    squared: npt.NDArray[Any], scale: float, metric: str, dtype: np.dtype[Any]
) -> npt.NDArray[Any]:
    if metric == "euclidean":
        roots: npt.NDArray[Any] = np.sqrt(squared, out=squared)
        return roots if scale == 1 else in_precision_of_data(_divided(roots, scale), dtype)
    if metric == "sqeuclidean":
        if scale == 1:
            return squared
        return in_precision_of_data(_divided(_divided(squared, scale), scale), dtype)
    assert metric in CENTRES_ROWS, metric
    halves: npt.NDArray[Any] = np.minimum(squared / 2, 2)
    return halves
