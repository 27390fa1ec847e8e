"""Rows of data as they are stored: read in blocks, copied whole only where that is faster.

Dense data may be float64, float32, float16 or uint8, of any strides, read-only, mapped from a file.
float64 is computed with as it is; everything else as float32, which holds it exactly.
"""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import assert_all_finite

# Types that data is kept in. Others become the first.
STORED_TYPES = (np.float64, np.float32, np.float16, np.uint8)

# Rows looked at in one go.
BLOCK_ROWS = 4096

# Up to here, an array whose rows do not lie in one piece, as in Fortran order, is copied: each of
# its numbers would be fetched by itself, many times.
SCATTERED_BYTES = 2**30


def computed_dtype(X: Any) -> np.dtype[Any]:
    """Return the precision that stored numbers are computed with."""
    return np.dtype(np.float64 if X.dtype == np.float64 else np.float32)


def computed(rows: Any) -> Any:
    """Return rows as numbers to compute with, a copy unless they are; sparse ones as they are.

    Always one row after the other: sums of libraries depend on it in their last bits.
    """
    return rows if issparse(rows) else np.ascontiguousarray(rows, dtype=computed_dtype(rows))


def with_whole_rows(X: Any) -> Any:
    """Return rows that lie in one piece each, or as they are if there are too many to copy.

    Numbers that begin at odd bytes, such as a field of packed records, are copied in any case.
    """
    if not issparse(X) and not X.flags.aligned:
        return np.require(X, requirements=["C", "A"])
    scattered = not issparse(X) and X.shape[1] > 1 and X.strides[1] != X.itemsize
    return np.ascontiguousarray(X) if scattered and X.nbytes <= SCATTERED_BYTES else X


def check_finite(X: Any, name: str, estimator: str | None = None) -> None:
    """Refuse NaN and infinity, in scikit-learn's words."""
    names = {"input_name": name, "estimator_name": estimator}
    # The check sums, and may overflow on the way.
    with np.errstate(over="ignore", invalid="ignore"):
        if issparse(X):
            assert_all_finite(X.data, **names)
        elif X.dtype != np.uint8:
            for start in range(0, len(X), BLOCK_ROWS):
                assert_all_finite(computed(X[start : start + BLOCK_ROWS]), **names)


def check_not_bfloat16(X: Any, name: str) -> None:
    """Refuse bfloat16, which NumPy knows only by name.

    The bits of bfloat16 in an array of uint16 cannot be told from whole numbers, and are taken for
    them.
    """
    if str(getattr(X, "dtype", "")).removeprefix("torch.") == "bfloat16":
        raise TypeError(
            f"{name} is bfloat16, which NumPy cannot compute with; convert it to float16, if its "
            "values are within 65504, or to float32: X.astype(numpy.float32), in torch X.float()"
        )
