"""The leading axes of the data, on which the neighbour searches filter (native/neighbors).

Any centre and orthonormal axes give true lower bounds of distances; those of largest variance give
tight ones. So a sample and a few rounds of subspace iteration are enough.
"""

import functools
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics.pairwise import euclidean_distances

from acctsne.runtime.rows import computed
from acctsne.runtime.threads import Map, workers

# Axes kept for exact searches. The search alone on MNIST-70k, Fashion-MNIST and CIFAR-10, k = 90,
# AVX-512, 2 threads, means of two runs: 2.5, 2.5 and 5.1 s with 128, 2.4, 2.3 and 4.5 s with 160,
# 2.4, 2.2 and 4.2 s with 192.
EXACT_AXES = 192

# And for approximate ones, which look at fewer pairs: MNIST-70k 5.3 s, and 6.2 s with 192.
APPROXIMATE_AXES = 128

# With so few features there is nothing to gain from leaving some out.
FEW_FEATURES = 24

# If more than this part of the pairs survives the filter, as in noise without leading axes, tiles
# over all features are cheaper than a distance for each. An estimate from operation counts.
MAX_SURVIVORS = 0.15

# Up to here. Beyond, features as they are would be another copy of data that may fill memory.
FEATURES_BYTES = 2 * 2**30

# Rows that the axes are computed from, and rounds of subspace iteration.
SAMPLE_ROWS = 4096
ROUNDS = 4

# The axes cost the same for any number of rows, the search by its square: up to so many rows,
# poorer axes are made up for by the time that they save. Neighbours of 2000, 5000, 10000 and 20000
# images of Fashion-MNIST, 2 threads, medians of 5: 0.17, 0.26, 0.32 and 0.62 s with the axes of
# larger data, 0.09, 0.13, 0.23 and 0.51 s with these; 64 axes are as good up to 10000 and worse
# beyond.
FEW_ROWS = 30_000
AXES_OF_FEW = 96
SAMPLE_OF_FEW = 2048
ROUNDS_OF_FEW = 2

# Rows that one thread handles at a time. They and their copy fit its cache.
BLOCK_ROWS = 1024


@dataclass(frozen=True)
class Projection:
    """Rows times the frame's scale, centred, on its axes."""

    coordinates: npt.NDArray[np.float32]
    squared_norms: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Frame:
    """Scale, centre and axes of the data, in which other rows can be placed too."""

    scale: float
    center: npt.NDArray[np.float64]
    axes: npt.NDArray[np.float32] | None  # None for the features as they are

    def project(self, X: npt.NDArray[Any], threads: int) -> Projection:
        """Place rows, in blocks that threads share."""
        n_axes = X.shape[1] if self.axes is None else self.axes.shape[1]
        coordinates = np.empty((len(X), n_axes), dtype=np.float32)
        squared_norms = np.empty(len(X))

        def place(start: int) -> None:
            block = computed(X[start : start + BLOCK_ROWS])
            if self.scale != 1:
                block = block.astype(np.float64) * self.scale
            moved = (block - self.center.astype(block.dtype)).astype(np.float32, copy=False)
            stop = start + len(block)
            coordinates[start:stop] = moved if self.axes is None else moved @ self.axes
            squared_norms[start:stop] = np.einsum("ij,ij->i", moved, moved, dtype=np.float64)

        with workers(threads, X.size) as run:
            deque(run(place, range(0, len(X), BLOCK_ROWS)), maxlen=0)
        return Projection(coordinates, squared_norms)


def find_frame(
    X: npt.NDArray[Any], n_neighbors: int, threads: int, n_axes: int | None = None
) -> Frame:
    """Find about the centre of X and its leading axes, if they help to find so many neighbours.

    Without a number of axes, as many as pay in an exact search.
    """

    def extent(start: int) -> float:
        block = X[start : start + BLOCK_ROWS]
        return max(float(block.max()), -float(block.min()))

    with workers(threads, X.size) as run:
        largest = max(run(extent, range(0, len(X), BLOCK_ROWS)))
    rows = X[sampled_rows(len(X), n_axes)]
    return frame_of_sample(rows, len(X), largest, n_neighbors, threads, n_axes)


def sampled_rows(n_samples: int, n_axes: int | None) -> slice:
    """Choose the rows that the axes of so many are computed from."""
    n_rows = SAMPLE_OF_FEW if _few(n_samples, n_axes) else SAMPLE_ROWS
    step = max(1, n_samples // n_rows)
    return slice(0, min(n_samples, n_rows * step), step)


def frame_of_sample(
    rows: npt.NDArray[Any],
    n_samples: int,
    largest: float,
    n_neighbors: int,
    threads: int,
    n_axes: int | None = None,
) -> Frame:
    """Find the frame of data by its `sampled_rows` and its largest size."""
    few = _few(n_samples, n_axes)
    if n_axes is None:
        n_axes = AXES_OF_FEW if few else EXACT_AXES
    rows = computed(rows)
    scale = _power_of_two_scale(largest, rows.dtype)
    if scale != 1:
        rows = rows.astype(np.float64) * scale
    center = rows.mean(axis=0, dtype=np.float64)
    sample = (rows - center.astype(rows.dtype)).astype(np.float32, copy=False)
    in_memory = 4 * n_samples * rows.shape[1] <= FEATURES_BYTES
    nearest = n_neighbors / n_samples if in_memory else None
    with workers(threads, n_samples * rows.shape[1]) as run:
        axes = _leading_axes(sample, nearest, n_axes, ROUNDS_OF_FEW if few else ROUNDS, run)
    return Frame(scale, center, axes)


def _few(n_samples: int, n_axes: int | None) -> bool:
    return n_axes is None and n_samples <= FEW_ROWS


def _power_of_two_scale(largest: float, dtype: np.dtype[Any]) -> float:
    """Find a factor that brings squares of the data into float32's range, 1 if they are there."""
    if largest == 0 or 1e-12 <= largest <= 1e12:
        return 1.0
    # Subnormal data may need more than a number of its own precision can say.
    most = np.finfo(dtype).maxexp - 2
    return float(2.0 ** min(-np.floor(np.log2(largest)), most))


def _leading_axes(
    sample: npt.NDArray[np.float32],
    nearest: float | None,
    most: int,
    rounds: int,
    run: Map,
) -> npt.NDArray[np.float32] | None:
    """Compute orthonormal axes of large variance, or None to keep the features as they are.

    They are kept if too many pairs pass a filter on axes for the `nearest` part of all pairs; not
    if that is None, where there is no memory for them.
    """
    n_features = sample.shape[1]
    if n_features <= FEW_FEATURES:
        return None
    if len(sample) <= 2 * most:
        return None  # too few rows to be worth the trouble
    if n_features <= most:
        covariance = sample.T.astype(np.float64) @ sample
        return np.ascontiguousarray(np.linalg.eigh(covariance)[1][:, ::-1], dtype=np.float32)
    axes = _subspace_iteration(sample, most, rounds, run)
    if nearest is not None and _survivors(sample, axes, nearest) > MAX_SURVIVORS:
        return None
    return np.ascontiguousarray(axes)


def _subspace_iteration(
    sample: npt.NDArray[np.float32], n_axes: int, rounds: int, run: Map
) -> npt.NDArray[np.float32]:
    """Compute so many axes, by falling variance."""
    blocks = [sample[i : i + BLOCK_ROWS] for i in range(0, len(sample), BLOCK_ROWS)]

    def times_covariance(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        products = run(lambda rows: rows.T @ (rows @ vectors), blocks)
        return functools.reduce(np.add, products)

    shape = sample.shape[1], n_axes + 16
    basis = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    for _ in range(rounds):
        basis = np.linalg.qr(times_covariance(basis))[0]
    # Tiles are given up after the leading few.
    reduced = np.concatenate(list(run(lambda rows: rows @ basis, blocks))).astype(np.float64)
    rotation = np.linalg.eigh(reduced.T @ reduced)[1][:, ::-1][:, :n_axes]
    axes: npt.NDArray[np.float64] = np.linalg.qr(basis.astype(np.float64) @ rotation)[0]
    return axes.astype(np.float32)


def _survivors(
    sample: npt.NDArray[np.float32], axes: npt.NDArray[np.float32], nearest: float
) -> float:
    """Estimate which part of all pairs has a bound below the distance of the `nearest` part."""
    few = sample[:: max(1, len(sample) // 256)].astype(np.float64)
    leading = few @ axes
    rest = np.sqrt(np.maximum(np.square(few).sum(axis=1) - np.square(leading).sum(axis=1), 0))
    distances = euclidean_distances(few, squared=True)
    bounds = euclidean_distances(np.column_stack([leading, rest]), squared=True)
    np.fill_diagonal(distances, np.inf)
    np.fill_diagonal(bounds, np.inf)
    limits = np.partition(distances, rank := min(int(nearest * len(few)), len(few) - 2), axis=1)
    return float((bounds < limits[:, rank][:, None]).mean())
