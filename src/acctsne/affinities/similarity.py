"""Step 2, BSP: how distances to neighbours become probabilities."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne import _core
from acctsne.runtime.checks import LARGEST_FLOAT, MAX_SAMPLES, check_choice
from acctsne.runtime.progress import logger

KINDS = ("gaussian", "multiscale", "multiscale_mixture", "uniform", "fixed")

# Kinds whose Gaussians are fitted to perplexities.
FITTED_KINDS = KINDS[:3]


# What perplexity="auto" is, but no more than this part of the samples. docs/parameters.md argues.
USUAL_PERPLEXITY = 30.0
SAMPLES_PER_PERPLEXITY = 8

# The second perplexity of "multiscale" is this part of the samples, as Kobak and Berens have it in
# "The art of using t-SNE for single-cell transcriptomics" (2019), up to a number whose neighbours
# still fit memory.
SAMPLES_PER_COARSE_PERPLEXITY = 100
MAX_COARSE_PERPLEXITY = 500.0

# That of a single neighbour, below which there is none.
SMALLEST_PERPLEXITY = 1.0

# Perplexities that are words.
PERPLEXITY_WORDS = ("auto", "multiscale")


def perplexities_for(word: str, n_samples: int) -> tuple[float, ...]:
    """Choose the perplexity of "auto", or those of "multiscale", for so many samples."""
    fine = max(SMALLEST_PERPLEXITY, min(USUAL_PERPLEXITY, n_samples / SAMPLES_PER_PERPLEXITY))
    fine = min(fine, n_samples / 2)  # of two or three samples
    coarse = min(n_samples / SAMPLES_PER_COARSE_PERPLEXITY, MAX_COARSE_PERPLEXITY)
    return (fine, coarse) if word == "multiscale" and coarse > fine else (fine,)


@dataclass(frozen=True)
class Similarity:
    """A kind of affinity and its parameters.

    `perplexities` are those asked for, one unless the kind is multiscale; `bandwidth` is the
    standard deviation of the Gaussians if the kind is "fixed".
    """

    kind: str = "gaussian"
    perplexities: tuple[float, ...] = (30.0,)
    bandwidth: float | None = None

    @property
    def usual_neighbors(self) -> int:
        """The number of neighbours that is enough, if there are so many samples."""
        largest = max(self.perplexities)
        # Beyond three perplexities a Gaussian has next to nothing left; scikit-learn takes as many.
        return (
            max(1, round(largest))
            if self.kind == "uniform"
            else int(min(3.0 * largest + 1, MAX_SAMPLES))
        )

    def reduced_to(self, n_neighbors: int, n_samples: int) -> "Similarity":
        """Replace perplexities that so many neighbours cannot have, with a warning."""
        if self.kind not in FITTED_KINDS:
            return self
        # A third, as openTSNE has it: n_neighbors itself would make all neighbours equal. No row
        # has less than the perplexity of a single neighbour.
        limit = max(n_neighbors / 3, SMALLEST_PERPLEXITY)
        possible = [value for value in self.perplexities if value <= n_neighbors]
        if len(possible) < len(self.perplexities):
            too_large = [value for value in self.perplexities if value > n_neighbors]
            warnings.warn(
                f"perplexity {listed(too_large)} is too large for {n_samples} samples with "
                f"{n_neighbors} neighbours each; {limit:g} is used instead",
                UserWarning,
                stacklevel=3,
            )
            if limit not in possible:
                possible.append(limit)
        return Similarity(self.kind, tuple(possible), self.bandwidth)

    def conditional(
        self, squared_distances: npt.NDArray[Any], scale: float, threads: int
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64], int]:
        """Compute p_{j|i} for every row i of squared distances.

        Parameters
        ----------
        squared_distances : ndarray of shape (n_rows, n_neighbors)
            The squares, in float32 or float64, which the result has too.
        scale : float
            The squares are those of the distances times this; only a fixed bandwidth depends on
            it.
        threads : int
            Threads to use.

        Returns
        -------
        conditional : ndarray of shape (n_rows, n_neighbors)
            Rows sum to 1.
        perplexities : ndarray of shape (n_rows,)
            The perplexity of each row.
        missed : int
            Rows that cannot reach the perplexity asked for.
        """
        n_rows, n_neighbors = squared_distances.shape
        if self.kind == "uniform":
            conditional = np.full_like(squared_distances, 1.0 / n_neighbors)
            return conditional, np.full(n_rows, float(n_neighbors)), 0
        if self.kind == "fixed":
            assert self.bandwidth is not None
            with np.errstate(divide="ignore", over="ignore", under="ignore"):
                beta = 0.5 / np.square(np.float64(self.bandwidth) * scale)
            return *_core.fixed_bandwidth(squared_distances, float(beta), threads), 0
        if self.kind == "gaussian":
            conditional, _, perplexities, missed = _core.search_perplexity(
                squared_distances, self.perplexities[0], threads
            )
        else:
            conditional, perplexities, missed = _core.mix_perplexities(
                squared_distances,
                list(self.perplexities),
                self.kind == "multiscale_mixture",
                threads,
            )
        return conditional, perplexities, missed

    def tell_missed(self, missed: int, n_rows: int, n_neighbors: int) -> None:
        """Say how many of all rows cannot reach the perplexity asked for, if some cannot.

        As many neighbours as the perplexity, or more at distance zero, leave nothing to search, and
        no row reaches one below that of a single neighbour.
        """
        if not missed:
            return
        asked = listed(self.perplexities)
        logger.info(
            "%d of %d rows cannot reach perplexity %s with their %d neighbours",
            missed,
            n_rows,
            asked,
            n_neighbors,
        )
        if missed == n_rows:
            why = (
                f": the smallest is {SMALLEST_PERPLEXITY:g}, of a single neighbour"
                if min(self.perplexities) < SMALLEST_PERPLEXITY
                else f" with {n_neighbors} neighbours: too many samples are duplicates of each "
                "other, or n_samples is too small"
            )
            warnings.warn(
                f"no row can reach perplexity {asked}{why}. The nearest possible one is used",
                RuntimeWarning,
                stacklevel=3,
            )


def similarity_for(perplexity: float | str, n_samples: int) -> Similarity:
    """Make Gaussians of a perplexity, or of those that a word stands for with so many samples."""
    if not isinstance(perplexity, str):
        return Similarity("gaussian", (float(perplexity),))
    perplexities = perplexities_for(perplexity, n_samples)
    return Similarity("gaussian" if len(perplexities) == 1 else "multiscale", perplexities)


def check_similarity(kind: Any, perplexity: Any, bandwidth: Any) -> Similarity:
    """Make a Similarity of what the user gives; raise ValueError or TypeError for what is wrong."""
    check_choice("kind", kind, KINDS)
    several = isinstance(perplexity, Iterable) and not isinstance(perplexity, str)
    perplexities = tuple(perplexity) if several else (perplexity,)
    if not perplexities:
        raise ValueError("perplexity is an empty list; at least one is needed")
    perplexities = tuple(_check_positive(value, "perplexity") for value in perplexities)
    if several and not kind.startswith("multiscale"):
        raise ValueError(
            f"kind={kind!r} takes one perplexity; got {list(perplexities)}. "
            "Use kind='multiscale' or 'multiscale_mixture' for several"
        )
    if kind == "fixed":
        if bandwidth is None:
            raise ValueError("kind='fixed' needs a bandwidth, in the unit of the distances")
        bandwidth = _check_positive(bandwidth, "bandwidth")
    elif bandwidth is not None:
        raise ValueError(
            f"kind={kind!r} finds its own bandwidths; got bandwidth={bandwidth!r}. "
            "Use kind='fixed' to set it"
        )
    return Similarity(kind, perplexities, bandwidth)


def _check_positive(value: Any, name: str) -> float:
    # Plain numbers of Python and NumPy, not text that float() would read.
    if not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name} must be a number; got {value!r}")
    # As integers where it is one, which may be beyond floats; narrow floats compare with wide ones.
    number = value if isinstance(value, int | np.integer) else float(value)
    if not 0 < number <= LARGEST_FLOAT:
        raise ValueError(f"{name} must be positive and finite; got {value!r}")
    return float(value)


def listed(values: Iterable[float]) -> str:
    """Join numbers as one says them."""
    return " and ".join(f"{value:g}" for value in values)
