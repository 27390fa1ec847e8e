"""The state of an optimisation as plain arrays and numbers, and whether it can be gone on from."""

from typing import Any, TypedDict, cast

import numpy as np
import numpy.typing as npt

from acctsne.files.archive import Contents


class OptimizerState(TypedDict):
    """What the native optimiser goes on from; each of several has the rows that it owns."""

    points: npt.NDArray[Any]
    updates: npt.NDArray[Any]  # the last step of each point
    gains: npt.NDArray[Any]
    kept: npt.NDArray[Any]  # positions that repulsion still depends on; empty if none
    mean: npt.NDArray[Any]
    order: npt.NDArray[np.int32]  # of own numbers, which rows have them at present
    iterations: int
    relabelled_at: int
    friction: float
    work: float


# What the native optimiser's state has besides arrays.
SCALARS = ("iterations", "relabelled_at", "friction", "work")

# Its arrays that have a value or more for each row; "kept" may have none.
ROW_ARRAYS = ("points", "updates", "gains", "kept", "order")


def split_state(state: OptimizerState) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Separate the numbers of a native state from its arrays."""
    numbers: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    for name, value in state.items():
        (numbers if name in SCALARS else arrays)[name] = value
    return numbers, arrays


def read_state(contents: Contents, n_rows: int, dtype: np.dtype[Any]) -> OptimizerState:
    """Check a state from a file against own rows of its affinities; ValueError if it is wrong.

    That its numbers are in range, and its order is one of all rows, the native optimiser checks.
    """
    kind = dtype.str[1:]
    points = contents.array("points", kind, 2)
    dims = points.shape[1]
    if len(points) != n_rows or not dims:
        raise ValueError(f"points has shape {points.shape}, for {n_rows} samples")
    state: dict[str, Any] = {"points": points}
    for name in ("updates", "gains"):
        state[name] = contents.array(name, kind, 2)
        if state[name].shape != points.shape:
            raise ValueError(f"{name} has shape {state[name].shape}; points has {points.shape}")
    state["kept"] = contents.array("kept", kind, 2)
    if state["kept"].size and state["kept"].shape != points.shape:
        raise ValueError(f"kept has shape {state['kept'].shape}; points has {points.shape}")
    state["mean"] = contents.array("mean", kind, 1)
    if state["mean"].shape != (dims,):
        raise ValueError(f"mean has shape {state['mean'].shape}, for {dims} dimensions")
    state["order"] = contents.array("order", "i4", 1)
    if len(state["order"]) != n_rows:
        raise ValueError(f"order has shape {state['order'].shape}, for {n_rows} samples")
    for name, least in (("iterations", 0), ("relabelled_at", -1)):
        state[name] = contents.setting(name, int)
        if not least <= state[name] < 2**62:
            raise ValueError(f"{name} is {state[name]}")
    for name in ("friction", "work"):
        state[name] = contents.number(name)
    return cast(OptimizerState, state)
