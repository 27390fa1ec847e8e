"""The native search of sparse rows (native/neighbors/sparse.cpp)."""

from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne import _core
from acctsne.neighbors.metrics import refuse_constant_rows
from acctsne.neighbors.records import (
    NearestNeighborsResult,
    SearchSettings,
    in_precision_of_data,
)
from acctsne.runtime.memory import room_for_columns
from acctsne.runtime.progress import Progress
from acctsne.runtime.rows import native_csr, summed_csr

# Products of two values up to which "auto" is exact: minutes on two cores
# (benchmarks/sparse_rows.py, docs/tuning.md).
EXACT_TERMS = 2e11

# Squares of values within these neither overflow nor vanish in double precision.
LEAST, MOST = 1e-100, 1e100


def exact_is_cheap(X: Any) -> bool:
    """Say whether all pairs of rows have so few columns in common that "auto" compares them all."""
    with room_for_columns(X.shape[1]):
        in_column = np.bincount(X.indices, minlength=X.shape[1]).astype(np.float64)
        return float(in_column @ in_column) / 2 <= EXACT_TERMS


def sparse_neighbors(
    X: Any, metric: str, settings: SearchSettings, progress: Progress = None
) -> NearestNeighborsResult:
    """Find the exact neighbours of every row of a CSR matrix."""
    rows = _SearchedRows(X, metric, "X")
    indices, squared = _core.sparse_neighbors(
        rows.data, rows.form, settings.n_neighbors, settings.threads, progress
    )
    return NearestNeighborsResult(indices, rows.distances(squared))


def sparse_query(
    X: Any, queries: Any, metric: str, settings: SearchSettings, progress: Progress = None
) -> NearestNeighborsResult:
    """Find the exact neighbours of each row of a CSR matrix among those of another."""
    dtype = np.result_type(X, queries)
    rows = _SearchedRows(X.astype(dtype, copy=False), metric, "the fitted data")
    asked = _SearchedRows(queries.astype(dtype, copy=False), metric, "X", rows.scale)
    indices, squared = _core.sparse_query_neighbors(
        rows.data, asked.data, rows.form, settings.n_neighbors, settings.threads, progress
    )
    return NearestNeighborsResult(indices, rows.distances(squared))


class _SearchedRows:
    """A CSR matrix as the native search takes it, and what its distances stand for."""

    def __init__(self, X: Any, metric: str, name: str, scale: float | None = None) -> None:
        X = summed_csr(X)
        self.metric = metric
        self.form = "euclidean" if metric == "sqeuclidean" else metric
        self.scale = 1.0
        values = X.data
        if self.form == "euclidean":
            self.scale = scale_of(values) if scale is None else scale
            if self.scale != 1:
                values = values.astype(np.float64) * self.scale
            largest = float(np.abs(values).max(initial=0.0))
            if largest > MOST:
                raise ValueError(
                    f"a query has a value of size {largest / self.scale:g}; with the fitted data "
                    f"they must stay within {MOST / self.scale:g}"
                )
        else:
            values = _with_squares(X)
            if self.form == "correlation":
                refuse_constant_rows(_constant_rows(X), name)
        self.dtype = X.dtype
        self.data = native_csr(X, values)

    def distances(self, squared: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        """Turn squared Euclidean distances into those of the metric, in the data's precision."""
        with np.errstate(over="ignore", under="ignore"):
            if self.metric == "euclidean":
                distances = np.sqrt(squared, out=squared) / self.scale
            elif self.metric == "sqeuclidean":
                distances = squared / self.scale / self.scale
            else:
                distances = np.minimum(squared / 2, 2)
        return in_precision_of_data(distances, self.dtype)


def scale_of(values: npt.NDArray[Any]) -> float:
    """Find a power of two that brings the squares of values into range, 1 if they are there."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0 or LEAST <= largest <= MOST:
        return 1.0
    return float(2.0 ** min(-np.floor(np.log2(largest)), 1000.0))


def _with_squares(X: Any) -> npt.NDArray[Any]:
    """Scale those rows whose squares would overflow or vanish; lengths do not matter."""
    largest = np.asarray(abs(X).max(axis=1).todense()).ravel().astype(np.float64)
    extreme = (largest > 0) & ((largest < LEAST) | (largest > MOST))
    values: npt.NDArray[Any] = X.data
    if extreme.any():
        values = values / np.repeat(np.where(extreme, largest, 1.0), np.diff(X.indptr))
    return values


def _constant_rows(X: Any) -> npt.NDArray[np.intp]:
    largest = np.asarray(X.max(axis=1).todense()).ravel()
    least = np.asarray(X.min(axis=1).todense()).ravel()
    return np.flatnonzero(largest == least)
