"""Principal components, fast and the same on every run (native/neighbors)."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from acctsne import _core
from acctsne.runtime.memory import room_for_columns
from acctsne.runtime.rows import native_csr, summed_csr


def principal_components(
    X: Any, n_components: int, threads: int, axes: npt.NDArray[Any] | None = None
) -> npt.NDArray[np.float64]:
    """Compute the coordinates of the rows of X on its leading principal axes.

    Each axis points so that its largest loading is positive, as in scikit-learn. Coordinates are up
    to one common factor. Axes that X does not have are zero, and all are if X is constant. X may
    itself be coordinates, on the orthonormal columns of `axes`; loadings are then those of the
    features that these columns have.
    """
    if not issparse(X):
        return _core.principal_components(X, n_components, threads, axes)
    data = native_csr(summed_csr(X))
    with room_for_columns(X.shape[1]):
        return _core.sparse_principal_components(data, n_components, threads)
