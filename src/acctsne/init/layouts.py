"""Initial layouts by name, or as given: scaled, and with no two points in the same place."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_array

from acctsne import _core
from acctsne.affinities.affinities import Affinities
from acctsne.init.multilevel_layout import multilevel_coordinates
from acctsne.init.spectral_layout import spectral_coordinates
from acctsne.runtime.tables import turned_into_numbers

# Standard deviation of the first axis. Points so close feel hardly any repulsion, so that
# attraction orders the map first; scikit-learn and openTSNE start from the same value.
INITIAL_STD = 1e-4

# Size of what is added where a layout says nothing, as part of the first axis' standard deviation.
JITTER = 0.01

# Largest coordinate of a layout: moments of the tree's cells stay within float32 up to here.
MAX_COORDINATE = 1e12

# Layouts by name: those that need the affinities alone, and all.
AFFINITY_INITS = ("spectral", "multilevel", "random")
INITS = ("pca", *AFFINITY_INITS)


def layout_from_affinities(
    init: Any,
    P: Affinities,
    n_components: int,
    random_state: np.random.RandomState,
    threads: int,
) -> npt.NDArray[Any]:
    """Make a layout that needs no data but P, or check one that is given."""
    if not isinstance(init, str):
        with turned_into_numbers(init, "init"):
            array = np.asarray(init)
        given = check_initial_layout(array, P.n_samples, n_components, P.dtype)
        return separate_coincident(given, threads=threads)
    if init == "random":
        return random_layout((P.n_samples, n_components), random_state, P.dtype, threads)
    if init == "spectral":
        return finished(spectral_coordinates(P.to_scipy(), n_components), P.dtype, threads)
    if init == "multilevel":
        coordinates = multilevel_coordinates(P.to_scipy(), n_components, threads)
        return finished(coordinates, P.dtype, threads)
    raise ValueError(f"init must be an array or one of {', '.join(AFFINITY_INITS)}; got {init!r}")


def random_layout(
    shape: tuple[int, int], random: np.random.RandomState, dtype: np.dtype[Any], threads: int = 1
) -> npt.NDArray[Any]:
    """Draw a layout of so many points and axes from a normal distribution."""
    normal = random.standard_normal(shape)
    return separate_coincident((INITIAL_STD * normal).astype(dtype), threads=threads)


def finished(
    coordinates: npt.NDArray[np.float64], dtype: np.dtype[Any], threads: int = 1
) -> npt.NDArray[Any]:
    """Scale coordinates to the usual standard deviation, with no two points in the same place."""
    std = float(coordinates[:, 0].std())
    layout = np.empty(coordinates.shape, dtype=dtype)
    np.multiply(coordinates, INITIAL_STD / std if std > 0 else 0.0, out=layout, casting="unsafe")
    # No force ever leads out of a plane that all points lie in: some noise on the axes that it
    # lacks lets the descent use them.
    empty = [axis for axis in range(layout.shape[1]) if not coordinates[:, axis].any()]
    if std > 0 and empty:
        noise = np.random.default_rng(0).standard_normal((len(layout), len(empty)))
        layout[:, empty] = JITTER * INITIAL_STD * noise
    return separate_coincident(layout, threads=threads)


def separate_coincident(
    layout: npt.NDArray[Any], fixed: npt.NDArray[np.uint8] | None = None, threads: int = 1
) -> npt.NDArray[Any]:
    """Move points that share a place a little apart.

    Points in one place feel the same forces and, if their neighbours agree too, never part. The
    moves are deterministic and touch no other point. Fixed points stay, and the first of each place
    where none is fixed.
    """
    # Few layouts have such points, and to sort codes is faster than to compare them all.
    if not _core.some_share_a_code(np.ascontiguousarray(layout[:, :3]), threads):
        return layout
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


def check_initial_layout(
    init: npt.NDArray[Any], n_samples: int, n_components: int, dtype: np.dtype[Any]
) -> npt.NDArray[Any]:
    """Check a layout that the user gives; returns a C-contiguous copy of the right precision."""
    expected = (n_samples, n_components)
    if init.shape != expected:
        raise ValueError(
            f"init has shape {init.shape}; expected {expected}, one row per sample and one column "
            "per component"
        )
    with turned_into_numbers(init, "init"):
        layout: npt.NDArray[Any] = check_array(
            init, dtype=np.float64, order="C", ensure_min_samples=2, input_name="init"
        )
    limit = MAX_COORDINATE
    largest = float(np.abs(layout).max())
    if largest > limit:
        raise ValueError(
            f"init has a coordinate of size {largest:g}; layouts must stay within {limit:g}. "
            "Scale it down: a standard deviation of 1e-4 is usual"
        )
    return layout.astype(dtype)
