"""What a neighbour search is told, and what it finds."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne.neighbors.frame import Frame

# How neighbours can be searched.
NEIGHBOR_MODES = ("auto", "exact", "approximate")


_FLOAT32: np.dtype[Any] = np.dtype(np.float32)


@dataclass(frozen=True)
class SearchSettings:
    """How the nearest neighbours of every sample are searched."""

    n_neighbors: int
    metric: Any = "euclidean"
    metric_params: dict[str, Any] | None = None
    mode: str = "auto"  # one of NEIGHBOR_MODES
    dtype: np.dtype[Any] = _FLOAT32  # precision of distances
    threads: int = 1
    # Draws the sample that recall is estimated from, and seeds pynndescent.
    random: np.random.RandomState = field(default_factory=lambda: np.random.RandomState(0))
    verbose: int = 0
    n_components: int = 0  # principal components wanted, if the search has them at hand

    @property
    def in_double(self) -> bool:
        """Whether distances are computed in double precision."""
        return self.dtype == np.float64

    def least_memory(self, n_samples: int) -> int:
        """Return the bytes of indices and distances, or of the probabilities in their place."""
        return n_samples * self.n_neighbors * (4 + self.dtype.itemsize)


@dataclass
class Neighbors:
    """The nearest neighbours of every sample, itself not among them."""

    indices: npt.NDArray[np.int32]
    squared_distances: npt.NDArray[Any]
    scale: float = 1.0  # the squares are those of the distances times this
    mode: str = "exact"
    recall: float = 1.0  # the part of the true neighbours that was found
    frame: Frame | None = None  # of the native search, in which other rows can be searched for too
    components: npt.NDArray[np.float64] | None = None  # principal ones, if asked for and at hand
    among: int | None = None  # samples that were searched, if these are only some of them

    @property
    def n_points(self) -> int:
        """How many samples the indices may name."""
        return len(self.indices) if self.among is None else self.among

    def take_squared_distances(self) -> npt.NDArray[Any]:
        """Return the squared distances and forget them: they are as large as what comes of them."""
        squared, self.squared_distances = self.squared_distances, np.empty((0, 0))
        return squared
