"""Rows of data as they are stored: read in blocks, copied whole only where that is faster.

Dense data may be float64, float32, float16 or uint8, of any strides, read-only, mapped from a file.
float64 is computed with as it is; everything else as float32, which holds it exactly.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.utils import assert_all_finite

from acctsne import _core
from acctsne.runtime.checks import check_n_samples

# Types that data is kept in. Others become the first.
STORED_TYPES = (np.float64, np.float32, np.float16, np.uint8)

# Rows looked at in one go.
BLOCK_ROWS = 4096

# Numbers that take longer to look at than threads to start.
LARGE = 2**20

# High bytes, without the sign, of numbers from 3e-5 to 2000 in bfloat16; which part of all must be
# of these, and which part of the rarer sign, to be taken for such; and rows that are looked at.
BFLOAT16_BYTES = (0x38, 0x44)
BFLOAT16_COMMON = 0.99
BFLOAT16_RARER_SIGN = 0.05
BFLOAT16_ROWS = 1000

# Up to here, an array whose rows do not lie in one piece, as in Fortran order, is copied: each of
# its numbers would be fetched by itself, many times.
SCATTERED_BYTES = 2**30


def stored_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type that numbers of some type are kept in, in this machine's byte order."""
    native = dtype.newbyteorder("=")
    return native if native in STORED_TYPES else np.dtype(STORED_TYPES[0])


def computed_dtype(X: Any) -> np.dtype[Any]:
    """Return the precision that stored numbers are computed with."""
    return np.dtype(np.float64 if X.dtype == np.float64 else np.float32)


def computed(rows: Any) -> Any:
    """Return rows as numbers to compute with, a copy unless they are.

    Always one row after the other: sums of libraries depend on it in their last bits. Columns of
    sparse ones are in order and none is there twice: what libraries make of others is wrong.
    """
    if issparse(rows):
        return summed_csr(rows)
    return np.ascontiguousarray(rows, dtype=computed_dtype(rows))


def summed_csr(X: Any) -> Any:
    """Return a CSR matrix with columns in order and none twice, a copy unless it is so."""
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def native_csr(X: Any, values: npt.NDArray[Any] | None = None) -> _core.SparseData:
    """Return a CSR matrix as the native core takes it, with other values if they are given."""
    return _core.SparseData(
        np.ascontiguousarray(X.indptr, dtype=np.int64),
        np.ascontiguousarray(X.indices, dtype=np.int32),
        np.ascontiguousarray(X.data if values is None else values, dtype=X.dtype),
        X.shape[1],
    )


def with_whole_rows(X: Any) -> Any:
    """Return rows that lie in one piece each, or as they are if there are too many to copy.

    Numbers that begin at odd bytes, such as a field of packed records, are copied in any case.
    """
    if not issparse(X) and not X.flags.aligned:
        return np.require(X, requirements=["C", "A"])
    scattered = not issparse(X) and X.shape[1] > 1 and X.strides[1] != X.itemsize
    return np.ascontiguousarray(X) if scattered and X.nbytes <= SCATTERED_BYTES else X


def check_type_read(X: Any, name: str, declared: Any) -> None:
    """Refuse rows that were read as another type than their object says that they have."""
    if X.dtype not in STORED_TYPES:
        raise TypeError(
            f"{name} is a {type(declared).__name__} whose dtype is {declared.dtype}, and whose "
            f"rows are of type {X.dtype}; give an array of numbers: "
            f"numpy.array(list({name}), dtype=float)"
        )


def check_finite(X: Any, name: str, estimator: str | None = None, threads: int = 1) -> None:
    """Refuse NaN and infinity, in scikit-learn's words."""
    check_n_samples(X.shape[0], name)
    dense = not issparse(X)
    if dense and X.dtype == np.uint8:
        return
    # The native core takes halves for finite, and numbers to begin where they should.
    native = dense and X.dtype != np.float16 and X.flags.aligned
    if native and _core.all_finite(X, threads if X.size > LARGE else 1):
        return
    names = {"input_name": name, "estimator_name": estimator}
    # The check sums, and may overflow on the way.
    with np.errstate(over="ignore", invalid="ignore"):
        if issparse(X):
            assert_all_finite(X.data, **names)
        else:
            for start in range(0, len(X), BLOCK_ROWS):
                assert_all_finite(computed(X[start : start + BLOCK_ROWS]), **names)


def check_not_bfloat16(X: Any, name: str) -> None:
    """Refuse bfloat16, which NumPy knows only by name, and its bits in an array of uint16.

    Bits are told by their signs: numbers of either sign lie in two narrow bands far apart, which
    counts and images do not fill alone. Bits of positive numbers alone cannot be told from whole
    numbers, and are taken for them.
    """
    if str(getattr(X, "dtype", "")).removeprefix("torch.") == "bfloat16":
        raise TypeError(
            f"{name} is bfloat16, which NumPy cannot compute with; convert it to float16, if its "
            "values are within 65504, or to float32: X.astype(numpy.float32), in torch X.float()"
        )
    is_uint16 = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype == np.uint16
    if is_uint16 and _looks_like_bfloat16(X):
        raise ValueError(
            f"{name} is of type uint16, and its values look like the bits of bfloat16: of either "
            "sign, with common exponents. Convert them by X.view(ml_dtypes.bfloat16).astype("
            "numpy.float32). If they are whole numbers after all, X.astype(numpy.float32) says so"
        )


def _looks_like_bfloat16(X: np.ndarray[Any, Any]) -> bool:
    step = max(1, len(X) // BFLOAT16_ROWS)
    values = X[::step][: 2 * BFLOAT16_ROWS].ravel()
    values = values[(values & 0x7FFF) != 0]  # zeros have no size
    least, most = BFLOAT16_BYTES
    common = (values & 0x7FFF) >> 8
    common = values[(common >= least) & (common <= most)]
    negative = np.count_nonzero(common & 0x8000)
    rarer = min(negative, len(common) - negative)
    return bool(
        len(values) > 0
        and len(common) >= BFLOAT16_COMMON * len(values)
        and rarer >= BFLOAT16_RARER_SIGN * len(values)
    )
