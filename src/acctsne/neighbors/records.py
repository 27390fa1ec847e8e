"""What a neighbour search is told, and what it finds."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from inspect import signature
from numbers import Real
from reprlib import repr as shortened  # matrices are not shown whole
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from acctsne.neighbors.frame import Frame

# How neighbours can be searched.
NEIGHBOR_MODES = ("auto", "exact", "approximate")

# Metrics whose parameters are known here, and these.
FEW_PARAMETERS: dict[str, tuple[str, ...]] = {
    "euclidean": (),
    "sqeuclidean": (),
    "minkowski": ("p", "w"),
}

# What to do about parameters that do not suit their metric.
PARAMETERS_ADVICE = "give what the metric takes, and leave out all else"

_FLOAT32: np.dtype[Any] = np.dtype(np.float32)


@dataclass(frozen=True)
class SearchSettings:
    """How the nearest neighbours of every sample are searched."""

    n_neighbors: int
    metric: Any = "euclidean"
    _: KW_ONLY
    metric_params: dict[str, Any] | None = None
    mode: str = "auto"  # one of NEIGHBOR_MODES
    dtype: np.dtype[Any] = _FLOAT32  # precision of distances
    threads: int = 1
    # Draws the sample that recall is estimated from, and seeds pynndescent.
    random: np.random.RandomState = field(default_factory=lambda: np.random.RandomState(0))
    verbose: int = 0
    n_components: int = 0  # principal components wanted, if the search has them at hand

    def __post_init__(self) -> None:
        """Refuse parameters that no metric could be called with."""
        params = self.metric_params
        if params is None:
            return
        if not isinstance(params, dict):
            raise TypeError(
                "metric_params must be a dictionary with arguments of the metric by their names; "
                f"got {shortened(params)}"
            )
        if not all(isinstance(name, str) for name in params):
            raise ValueError(
                "metric_params must hold arguments of the metric by their names; got "
                f"{shortened(params)}"
            )
        taken = FEW_PARAMETERS.get(self.metric) if isinstance(self.metric, str) else None
        others = [] if taken is None else [name for name in params if name not in taken]
        if others:
            # scikit-learn drops them in silence where it compares all pairs.
            raise ValueError(
                f"{self.named_metric()}: it does not take {others[0]!r}; {PARAMETERS_ADVICE}"
            )
        if callable(self.metric):
            self._check_call(self.metric, params)
        elif self.metric == "minkowski" and not _is_power(params.get("p", 2)):
            # scikit-learn takes some of these for numbers where it compares all pairs.
            raise ValueError(f"{self.named_metric()}: p must be a number greater than 0")

    def _check_call(self, metric: Callable[..., Any], params: dict[str, Any]) -> None:
        """Refuse what a function does not take, before it is called: what it raises is its own."""
        try:
            arguments = signature(metric)
        except (TypeError, ValueError):
            return  # one that was compiled, and does not tell
        try:
            arguments.bind(None, None, **params)
        except TypeError as error:
            raise ValueError(f"{self.named_metric()}: {error}; {PARAMETERS_ADVICE}") from error

    def named_metric(self) -> str:
        """Begin a message about a metric that cannot be computed with its parameters."""
        if not self.metric_params:
            return f"metric={self.metric!r} cannot be computed without metric_params"
        with_them = f"metric_params={shortened(self.metric_params)}"
        return f"metric={self.metric!r} cannot be computed with {with_them}"

    @property
    def in_double(self) -> bool:
        """Whether distances are computed in double precision."""
        return self.dtype == np.float64

    def least_memory(self, n_samples: int) -> int:
        """Return the bytes of indices and distances, or of the probabilities in their place."""
        return n_samples * self.n_neighbors * (4 + self.dtype.itemsize)


def _is_power(p: Any) -> bool:
    return isinstance(p, Real) and float(p) > 0


def in_precision_of_data(
    distances: npt.NDArray[np.float64], dtype: np.dtype[Any]
) -> npt.NDArray[Any]:
    """Give distances the data's type; refuse those that it cannot hold."""
    limit = np.finfo(dtype).max
    if distances.max(initial=0.0) > limit:
        advice = "scale X down" if dtype == np.float64 else "scale X down, or give it as float64"
        raise ValueError(
            f"a distance between two samples is beyond {limit:.1e}, the largest {dtype}; {advice}"
        )
    with np.errstate(under="ignore"):
        return distances.astype(dtype, copy=False)


class NearestNeighborsResult(NamedTuple):
    """The nearest neighbours of rows, with their distances by the metric."""

    indices: npt.NDArray[np.int32]
    distances: npt.NDArray[Any]
    mode: str = "exact"
    recall: float = 1.0


@dataclass
class Neighbors:
    """The nearest neighbours of samples, with the squares that affinities are made of."""

    indices: npt.NDArray[np.int32]
    squared_distances: npt.NDArray[Any]
    _: KW_ONLY
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
