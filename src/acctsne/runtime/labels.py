"""Labels of points, of whatever kind the user has them, and which of them are missing."""

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def label_array(labels: Any) -> Array:
    """Give labels as an array.

    Lists become objects: NumPy would turn the NaN in ["a", nan] into the text "nan". So do integers
    of which some are missing, which other packages have and NumPy has not: they would become
    floats. What is masked is missing.
    """
    if isinstance(labels, np.ma.MaskedArray):
        objects: Array = np.array(labels.data, dtype=object)
        objects[np.ma.getmaskarray(labels)] = None
        return objects
    array = np.asarray(labels, dtype=object if isinstance(labels, list | tuple) else None)
    if array.dtype.kind == "f" and not isinstance(getattr(labels, "dtype", None), np.dtype):
        listed = labels.to_pylist() if hasattr(labels, "to_pylist") else list(labels)
        array = np.array(listed, dtype=object)
    # NumPy's text of any length, which few of its functions know.
    return array.astype(object) if array.dtype.kind == "T" else array


def missing_labels(labels: Array) -> npt.NDArray[np.bool_]:
    """Say which labels are None, NaN, NaT or NA.

    Examples
    --------
    >>> missing_labels(label_array(["a", None, float("nan")])).tolist()
    [False, True, True]
    """
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    if labels.dtype.kind in "mM":
        return np.isnat(labels)
    if labels.dtype.kind != "O":
        return np.zeros(len(labels), dtype=bool)
    pandas = sys.modules.get("pandas")
    if pandas is not None:  # knows its own kinds of missing values
        return np.asarray(pandas.isna(labels), dtype=bool)
    return np.array([label is None or label != label for label in labels], dtype=bool)
