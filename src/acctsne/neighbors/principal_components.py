"""Principal components, fast and the same on every run.

The covariance itself is decomposed where features are few. Otherwise a few axes are iterated: a
subspace is multiplied by the covariance and made orthonormal until its leading variances stand
still. It starts from the axes of a sample, so that few passes over the data are needed.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from acctsne.runtime.rows import computed
from acctsne.runtime.threads import Map, workers

# Up to so many features the covariance takes less work than the iteration: n d^2 against about ten
# passes over the data, each of which multiplies twice by a dozen axes.
FEW_FEATURES = 256

# Axes iterated beyond those wanted: they let the wanted ones converge by the gap to the last.
SPARE_AXES = 10

# Leading variances that change by less, relatively, between two passes have converged; axes are
# then right to about the root of it, which is plenty for where t-SNE starts.
VARIANCE_TOLERANCE = 1e-6
MAX_PASSES = 40

# Rows that the iteration starts from.
SAMPLE_ROWS = 4096

# Rows that are centred at a time.
BLOCK_ROWS = 4096


def principal_components(
    X: Any, n_components: int, threads: int, frame: npt.NDArray[Any] | None = None
) -> npt.NDArray[np.float64]:
    """Compute the coordinates of the rows of X on its leading principal axes.

    Each axis points so that its largest loading is positive, as in scikit-learn. Coordinates are up
    to one common factor. Axes that X does not have are zero, and all are if X is constant. X may
    itself be coordinates, on the orthonormal columns of `frame`; loadings are then those of the
    features that these columns have.
    """
    with workers(threads, X.shape[0] * X.shape[1]) as run:
        return components_of(CentredRows(X, run), n_components, frame)


def components_of(
    rows: "CentredRows", n_components: int, frame: npt.NDArray[Any] | None = None
) -> npt.NDArray[np.float64]:
    """Compute the principal components of the rows that are here."""
    wanted = min(n_components, rows.n_samples, rows.n_features)
    find_axes = _by_covariance if rows.n_features <= FEW_FEATURES else _by_iteration
    axes = find_axes(rows, wanted)
    loadings = axes if frame is None else frame @ axes
    largest = np.abs(loadings).argmax(axis=0)
    axes *= np.where(loadings[largest, np.arange(wanted)] < 0, -1.0, 1.0)
    found = rows.times(axes)
    components = np.zeros((len(found), n_components))
    components[:, :wanted] = found
    return components


class CentredRows:
    """X less its mean, in blocks of rows that threads share.

    Scaled to 1 where squares would overflow or vanish. Rows of a sparse matrix stay sparse; the
    centre is taken off their products.
    """

    def __init__(self, X: Any, run: Map) -> None:
        self._X = X
        self._run = run
        self.n_samples, self.n_features = self._shape()
        largest = self._largest()
        self._divisor = 1.0 if largest == 0 or 1e-12 < largest < 1e12 else largest
        self._center = np.zeros(self.n_features)

        def mean(block: Any) -> npt.NDArray[np.float64]:
            total = np.asarray(block.sum(axis=0, dtype=np.float64)).ravel()
            return np.asarray(total / self.n_samples)

        self._center = self._sum_of_blocks(mean, np.zeros(self.n_features))

    def _shape(self) -> tuple[int, int]:
        n_samples, n_features = self._X.shape
        return int(n_samples), int(n_features)

    def _largest(self) -> float:
        return max(float(self._X.max()), -float(self._X.min()))

    def times(self, axes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Multiply by axes."""
        return np.concatenate(list(self._for_blocks(lambda block: self._times(block, axes))))

    def covariance(self) -> npt.NDArray[np.float64]:
        """Compute the covariance, up to a factor."""

        def part(block: Any) -> npt.NDArray[Any]:
            rows = block.toarray() if issparse(block) else block
            centred = rows - self._center.astype(rows.dtype)
            return np.asarray(centred.T @ centred)

        return self._sum_of_blocks(part, np.zeros((self.n_features, self.n_features)))

    def covariance_times(
        self, axes: npt.NDArray[np.float64], step: int = 1
    ) -> npt.NDArray[np.float64]:
        """Multiply axes by the covariance of every `step`-th row, up to a factor."""

        def part(block: Any) -> npt.NDArray[Any]:
            if not issparse(block):
                block = block - self._center.astype(block.dtype)
                return np.asarray(block.T @ (block @ axes.astype(block.dtype)))
            product = self._times(block, axes)
            return np.asarray(block.T @ product - np.outer(self._center, product.sum(axis=0)))

        return self._sum_of_blocks(part, np.zeros_like(axes), step)

    def sample_step(self) -> int:
        """Say which step leaves about SAMPLE_ROWS rows."""
        return max(1, self.n_samples // SAMPLE_ROWS)

    def _times(self, block: Any, axes: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        if issparse(block):
            return np.asarray(block @ axes - self._center @ axes)
        return np.asarray((block - self._center.astype(block.dtype)) @ axes.astype(block.dtype))

    def _scaled(self, block: Any) -> Any:
        # Divided, not multiplied by an inverse, which overflows where the data is subnormal.
        scaled = block.astype(np.float64)
        values = scaled.data if issparse(scaled) else scaled
        np.divide(values, self._divisor, out=values)
        return scaled

    def _sum_of_blocks(
        self, function: Callable[[Any], Any], total: npt.NDArray[np.float64], step: int = 1
    ) -> npt.NDArray[np.float64]:
        """Add a function's results for all blocks of every `step`-th row, in their order."""
        for partial in self._for_blocks(function, step):
            total += partial
        return total

    def _for_blocks(self, function: Callable[[Any], Any], step: int = 1) -> Iterator[Any]:
        """Apply a function to blocks of every `step`-th row; results come in their order."""
        X = self._every(step)

        def at(start: int) -> Any:
            block = computed(X[start : start + BLOCK_ROWS])
            return function(block if self._divisor == 1.0 else self._scaled(block))

        return self._run(at, range(0, X.shape[0], BLOCK_ROWS))

    def _every(self, step: int) -> Any:
        return self._X[::step] if step > 1 else self._X


def _by_covariance(rows: CentredRows, wanted: int) -> npt.NDArray[np.float64]:
    axes = np.linalg.eigh(rows.covariance())[1]
    return np.ascontiguousarray(axes[:, : -wanted - 1 : -1])


def _by_iteration(rows: CentredRows, wanted: int) -> npt.NDArray[np.float64]:
    width = min(wanted + SPARE_AXES, rows.n_features)
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((rows.n_features, width)))[0]
    for step in sorted({rows.sample_step(), 1}, reverse=True):
        basis = _iterated(rows, basis, wanted, step)
    return np.ascontiguousarray(basis[:, :wanted])


def _iterated(
    rows: CentredRows, basis: npt.NDArray[np.float64], wanted: int, step: int
) -> npt.NDArray[np.float64]:
    """Iterate an orthonormal basis; axes come out by falling variance."""
    before = np.zeros(wanted)
    for _ in range(MAX_PASSES):
        product = rows.covariance_times(basis, step)
        variances, rotation = np.linalg.eigh(basis.T @ product)
        basis = np.linalg.qr(product @ rotation[:, ::-1])[0]
        leading = variances[: -wanted - 1 : -1]
        if np.abs(leading - before).max() <= VARIANCE_TOLERANCE * np.abs(leading).max():
            break
        before = leading
    return basis
