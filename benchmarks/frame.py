"""The frame of the neighbour search and principal components, against NumPy's products.

    python benchmarks/frame.py --datasets mnist,fashion,cifar10 --rounds 5

Milliseconds of each part, medians of rounds: the frame, the projection of all rows on its axes,
principal components within them; and, alternating, the same projection by NumPy's BLAS.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from acctsne.neighbors.frame import find_frame
from acctsne.neighbors.principal_components import principal_components
from acctsne.runtime.threads import available_cores, limited_libraries
from datasets import load


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return milliseconds and result."""
    start = time.perf_counter()
    result = call()
    return 1000 * (time.perf_counter() - start), result


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description="The frame of the neighbour search.")
    parser.add_argument("--datasets", default="mnist")
    parser.add_argument("--neighbors", type=int, default=90)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=available_cores())
    options = parser.parse_args()
    for name in options.datasets.split(","):
        X = np.ascontiguousarray(load(name).X, dtype=np.float32)
        rounds = []
        for _ in range(options.rounds):
            found, frame = timed(lambda X=X: find_frame(X, options.neighbors, options.threads))
            placed, projection = timed(lambda X=X, f=frame: f.project(X, options.threads))
            components, _ = timed(
                lambda p=projection, f=frame: principal_components(
                    p.coordinates, 2, options.threads, f.axes
                )
            )
            axes = np.eye(X.shape[1], dtype=np.float32) if frame.axes is None else frame.axes
            with limited_libraries(options.threads):
                by_blas, _ = timed(
                    lambda X=X, f=frame, axes=axes: (X - f.center.astype(np.float32)) @ axes
                )
            rounds.append((found, placed, components, by_blas))
        frame_ms, projection_ms, components_ms, blas_ms = (
            median(column) for column in zip(*rounds, strict=True)
        )
        print(
            f"{name} {X.shape}: frame {frame_ms:.1f} ms, projection {projection_ms:.1f} ms "
            f"(by NumPy {blas_ms:.1f} ms), principal components {components_ms:.1f} ms"
        )


if __name__ == "__main__":
    main()
