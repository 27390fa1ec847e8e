"""A sample of a map's points, small enough to be kept with the results and drawn from them."""

from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

POINTS = 4000
SCALE = 65535  # 16 bits a coordinate: finer than any picture


def run_job(job: dict[str, Any]) -> dict[str, Any]:
    """Take the same points of every map, in random order."""
    Y = np.load(job["embedding"])
    shown = np.random.default_rng(0).permutation(len(Y))[:POINTS]
    points = Y[shown].astype(np.float64)
    low = points.min(axis=0)
    width = float((points.max(axis=0) - low).max()) or 1.0
    labels = np.zeros(len(shown), dtype=np.int16)
    if Path(job["labels"]).exists():
        labels = np.load(job["labels"])[shown].astype(np.int16)
    return {
        "status": "ok",
        "points": _packed(np.round((points - low) / width * SCALE).astype(np.uint16)),
        "labels": _packed(labels),
    }


def unpacked(figures: dict[str, Any]) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int16]]:
    """Return the points and their labels."""
    points = np.frombuffer(b64decode(figures["points"]), dtype="<u2").reshape(-1, 2)
    return points, np.frombuffer(b64decode(figures["labels"]), dtype="<i2")


def _packed(values: npt.NDArray[Any]) -> str:
    return b64encode(values.astype(values.dtype.newbyteorder("<")).tobytes()).decode()
