"""Principal components, fast and the same on every run (native/neighbors)."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse

from acctsne import _core
from acctsne.runtime.memory import room_for_columns
from acctsne.runtime.rows import native_csr, summed_csr


def principal_components(X: Any, n_components: int, threads: int) -> npt.NDArray[np.float64]:
    """Compute the coordinates of the rows of X on its leading principal axes.

    Each axis points so that its largest loading is positive, as in scikit-learn. Coordinates are up
    to one common factor. Axes that X does not have are zero, and all are if X is constant.
    """
    if not issparse(X):
        return _core.principal_components(X, n_components, threads)
    X = summed_csr(X)
    if X.nnz < X.shape[1]:
        X = without_empty_columns(X)
    with room_for_columns(X.shape[1]):
        return _core.sparse_principal_components(native_csr(X), n_components, threads)


def without_empty_columns(X: csr_matrix) -> csr_matrix:
    """Leave out columns that have no value: every axis would have a number for each of them."""
    used, columns = np.unique(X.indices, return_inverse=True)
    return csr_matrix((X.data, columns, X.indptr), shape=(X.shape[0], max(len(used), 1)))
