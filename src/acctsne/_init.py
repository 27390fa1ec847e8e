"""The initial layout that a problem asks for."""

from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne._affinities import Affinities
from acctsne._multilevel import multilevel_coordinates
from acctsne._pca import principal_components
from acctsne._spectral import spectral_coordinates
from acctsne._validate import Problem, check_initial_layout

# Standard deviation of the first axis. Points so close feel hardly any repulsion, so that
# attraction orders the map first; scikit-learn and openTSNE start from the same value.
INITIAL_STD = 1e-4

# Size of what is added where a layout says nothing, as part of the first axis' standard deviation.
JITTER = 0.01

# Layouts that need the affinities alone.
AFFINITY_INITS = ("spectral", "multilevel", "random")


def initial_layout(
    problem: Problem,
    random_state: np.random.RandomState,
    P: Affinities,
    components: npt.NDArray[np.float64] | None,
) -> npt.NDArray[Any]:
    """Make the layout that the problem asks for, with no two points in the same place.

    `components` are the principal ones, if the neighbour search came across them.
    """
    if isinstance(problem.init, str) and problem.init == "pca":
        if components is None:
            components = principal_components(problem.X, problem.n_components, problem.threads)
        return finished(components, problem.dtype)
    if isinstance(problem.init, np.ndarray):
        return separate_coincident(problem.init, problem.fixed)
    return layout_from_affinities(
        problem.init, P, problem.n_components, random_state, problem.threads
    )


def layout_from_affinities(
    init: Any,
    P: Affinities,
    n_components: int,
    random_state: np.random.RandomState,
    threads: int,
) -> npt.NDArray[Any]:
    """Make a layout that needs no data but P, or check one that is given."""
    if not isinstance(init, str):
        given = check_initial_layout(np.asarray(init), P.n_samples, n_components, P.dtype)
        return separate_coincident(given)
    if init == "random":
        normal = random_state.standard_normal(size=(P.n_samples, n_components))
        return separate_coincident((INITIAL_STD * normal).astype(P.dtype))
    if init == "spectral":
        return finished(spectral_coordinates(P.to_scipy(), n_components), P.dtype)
    if init == "multilevel":
        return finished(multilevel_coordinates(P.to_scipy(), n_components, threads), P.dtype)
    raise ValueError(f"init must be an array or one of {', '.join(AFFINITY_INITS)}; got {init!r}")


def finished(coordinates: npt.NDArray[np.float64], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Scale coordinates to the usual standard deviation, with no two points in the same place."""
    std = float(coordinates[:, 0].std())
    layout = coordinates * (INITIAL_STD / std) if std > 0 else np.zeros_like(coordinates)
    # No force ever leads out of a plane that all points lie in: some noise on the axes that it
    # lacks lets the descent use them.
    empty = np.flatnonzero(~layout.any(axis=0))
    if std > 0 and len(empty):
        noise = np.random.default_rng(0).standard_normal((len(layout), len(empty)))
        layout[:, empty] = JITTER * INITIAL_STD * noise
    return separate_coincident(np.ascontiguousarray(layout, dtype=dtype))


def separate_coincident(
    layout: npt.NDArray[Any], fixed: npt.NDArray[np.uint8] | None = None
) -> npt.NDArray[Any]:
    """Move points that share a place a little apart.

    Points in one place feel the same forces and, if their neighbours agree too, never part. The
    moves are deterministic and touch no other point. Fixed points stay, and the first of each place
    where none is fixed.
    """
    keys = layout.T if fixed is None else [fixed == 0, *layout.T]  # fixed ones first in each place
    order = np.lexsort(keys)
    ordered = layout[order]
    repeats = np.zeros(len(layout), dtype=bool)
    repeats[order[1:]] = (ordered[1:] == ordered[:-1]).all(axis=1)
    if fixed is not None:
        repeats[fixed != 0] = False
    count = int(repeats.sum())
    if count:
        std = float(layout[:, 0].std())
        scale = JITTER * std if std > 0 else INITIAL_STD
        jitter = np.random.default_rng(0).standard_normal((count, layout.shape[1]))
        layout = layout.copy()
        layout[repeats] += (scale * jitter).astype(layout.dtype)
    return layout
