"""Checks of what both a fit and an Embedding are told about single points and callbacks."""

from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne.runtime.tables import turned_into_numbers


def check_callbacks(callback: Any) -> list[Any]:
    """Return the callbacks as a list."""
    callbacks = [] if callback is None else [callback] if callable(callback) else list(callback)
    for one in callbacks:
        if not callable(one):
            raise TypeError(f"callback must be callable, or a list of callables; got {one!r}")
    return callbacks


def check_fixed(fixed: Any, n_samples: int) -> npt.NDArray[np.uint8] | None:
    """Turn a mask or indices of points that stay in place into a mask, None if there are none."""
    if fixed is None:
        return None
    with turned_into_numbers(fixed, "fixed"):
        given = np.asarray(fixed)
    if given.dtype == bool:
        if given.shape != (n_samples,):
            raise ValueError(
                f"fixed is a mask of shape {given.shape}; expected ({n_samples},), one value per "
                "sample"
            )
        return given.astype(np.uint8) if given.any() else None
    if given.ndim != 1 or (given.size and not np.issubdtype(given.dtype, np.integer)):
        raise ValueError(
            "fixed must be a boolean mask or a list of indices; got an array of "
            f"{given.dtype} with shape {given.shape}"
        )
    if not given.size:
        return None
    wrong = given[(given < -n_samples) | (given >= n_samples)]
    if wrong.size:
        raise ValueError(
            f"fixed names sample {wrong[0]}; there are {n_samples}, counted from 0, or from -1 "
            "backwards"
        )
    if len(given) == n_samples > 2 and ((given == 0) | (given == 1)).all():
        raise ValueError(
            "fixed has 0 and 1 alone, one for each sample; if it is a mask, give booleans: "
            "fixed.astype(bool)"
        )
    mask = np.zeros(n_samples, dtype=np.uint8)
    mask[given.astype(np.intp)] = 1
    return mask
