"""The frame of the neighbour search and principal components, against NumPy's products.

    python benchmarks/frame.py --datasets mnist,fashion_mnist,cifar10 --rounds 5

Milliseconds of each part, medians of rounds: the frame, the projection of all rows on its axes,
principal components within them; and, alternating, the same projection by NumPy's BLAS.
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

import numpy as np

from acctsne._core import principal_components
from acctsne.neighbors.frame import find_frame
from acctsne.runtime.threads import available_cores, limited_libraries
from datasets import load


@contextmanager
def clock(milliseconds: list[float]) -> Iterator[None]:
    """Append how long the block took."""
    start = time.perf_counter()
    yield
    milliseconds.append(1000 * (time.perf_counter() - start))


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
        rounds: list[list[float]] = []
        for _ in range(options.rounds):
            rounds.append([])
            with clock(rounds[-1]):
                frame = find_frame(X, options.neighbors, options.threads)
            with clock(rounds[-1]):
                projection = frame.project(X, options.threads)
            with clock(rounds[-1]):
                principal_components(projection.coordinates, 2, options.threads, frame.axes)
            axes = np.eye(X.shape[1], dtype=np.float32) if frame.axes is None else frame.axes
            with limited_libraries(options.threads), clock(rounds[-1]):
                (X - frame.centre.astype(np.float32)) @ axes
        frame_ms, projection_ms, components_ms, blas_ms = (
            median(column) for column in zip(*rounds, strict=True)
        )
        print(
            f"{name} {X.shape}: frame {frame_ms:.1f} ms, projection {projection_ms:.1f} ms "
            f"(by NumPy {blas_ms:.1f} ms), principal components {components_ms:.1f} ms"
        )


if __name__ == "__main__":
    main()
