"""Principal components, fast and the same on every run (native/neighbors)."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from acctsne import _core


def principal_components(
    X: Any, n_components: int, threads: int, frame: npt.NDArray[Any] | None = None
) -> npt.NDArray[np.float64]:
    """Compute the coordinates of the rows of X on its leading principal axes.

    Each axis points so that its largest loading is positive, as in scikit-learn. Coordinates are up
    to one common factor. Axes that X does not have are zero, and all are if X is constant. X may
    itself be coordinates, on the orthonormal columns of `frame`; loadings are then those of the
    features that these columns have.
    """
    if not issparse(X):
        return _core.principal_components(X, n_components, threads, frame)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    offsets = np.ascontiguousarray(X.indptr, dtype=np.int64)
    columns = np.ascontiguousarray(X.indices, dtype=np.int32)
    data = _core.SparseData(offsets, columns, np.ascontiguousarray(X.data), X.shape[1])
    return _core.sparse_principal_components(data, n_components, threads)
