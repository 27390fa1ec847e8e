"""Step 2, BSP: from neighbours to the joint probabilities P."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from acctsne import _core
from acctsne._progress import StageTimer, logger


@dataclass(frozen=True)
class JointProbabilities:
    """P in CSR form: symmetric, non-negative, sums to 1, columns ascending within rows."""

    offsets: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]
    values: npt.NDArray[Any]

    @property
    def n_samples(self) -> int:
        """The number of rows and of columns."""
        return len(self.offsets) - 1

    def to_scipy(self) -> csr_matrix:
        """Return P as a SciPy matrix that shares the arrays."""
        n = self.n_samples
        return csr_matrix((self.values, self.columns, self.offsets), shape=(n, n))

    @classmethod
    def from_scipy(cls, P: csr_matrix) -> "JointProbabilities":
        """Take P from a SciPy matrix of float32 or float64."""
        P = P.tocsr()
        P.sort_indices()
        return cls(
            np.ascontiguousarray(P.indptr, dtype=np.int64),
            np.ascontiguousarray(P.indices, dtype=np.int32),
            np.ascontiguousarray(P.data),
        )


def joint_probabilities(
    indices: npt.NDArray[np.int32],
    squared_distances: npt.NDArray[Any],
    perplexity: float,
    threads: int,
    timer: StageTimer | None = None,
) -> JointProbabilities:
    """Fit a Gaussian of the given perplexity to every row's distances, and symmetrise.

    Sorts the rows of `indices` on the way.
    """
    timer = timer or StageTimer()
    rows, k = squared_distances.shape
    with timer.stage("bsp"):
        conditional, _, missed = _core.search_perplexity(
            squared_distances, float(perplexity), threads
        )
    del squared_distances  # where the caller keeps none, this frees a third of the memory in use
    if missed:
        # As many neighbours as the perplexity, or more at distance zero, leave nothing to search.
        logger.info(
            "%d of %d rows cannot reach perplexity %g with their %d neighbours",
            missed,
            rows,
            perplexity,
            k,
        )
        if missed == rows:
            warnings.warn(
                f"no row can reach perplexity {perplexity:g} with {k} neighbours: too many samples "
                "are duplicates of each other, or n_samples is too small. The nearest "
                "perplexity possible is used",
                RuntimeWarning,
                stacklevel=4,
            )
    with timer.stage("symmetrize"):
        offsets, columns, values = _core.symmetrize(indices, conditional, threads)
    return JointProbabilities(offsets, columns, values)
