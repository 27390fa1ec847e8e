"""Checks that several stages share."""

from typing import Any

import numpy as np

# Point ids are 32-bit, and a tree has up to two nodes a point.
MAX_SAMPLES = 2**30


def check_n_samples(n_samples: int, name: str = "X") -> None:
    """Refuse more samples than ids can tell apart."""
    if n_samples > MAX_SAMPLES:
        raise ValueError(f"{name} has {n_samples} samples; at most {MAX_SAMPLES} are supported")


def check_layout_dtype(dtype: Any) -> np.dtype[Any]:
    """Return float32 or float64, whichever `dtype` names."""
    try:
        checked: np.dtype[Any] = np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"dtype must be numpy.float32 or numpy.float64; got {dtype!r}") from error
    if checked not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be numpy.float32 or numpy.float64; got {dtype!r}")
    return checked
