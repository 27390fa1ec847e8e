"""The initial layout."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.decomposition import PCA

from acctsne._threads import limited_libraries
from acctsne._validate import Problem

# Standard deviation of the first axis. Points so close feel hardly any repulsion, so that
# attraction orders the map first; scikit-learn and openTSNE start from the same value.
INITIAL_STD = 1e-4


def initial_layout(problem: Problem, random_state: np.random.RandomState) -> npt.NDArray[Any]:
    """Make the layout that the problem asks for, with no two points in the same place."""
    if isinstance(problem.init, np.ndarray):
        layout = problem.init
    elif problem.init == "pca":
        layout = _principal_components(problem, random_state)
    else:
        normal = random_state.standard_normal(size=(problem.n_samples, problem.n_components))
        layout = INITIAL_STD * normal
    return separate_coincident(np.ascontiguousarray(layout, dtype=problem.dtype))


def _principal_components(
    problem: Problem, random_state: np.random.RandomState
) -> npt.NDArray[np.float64]:
    axes = min(problem.n_components, *problem.X.shape)
    pca = PCA(n_components=axes, random_state=random_state)
    pca.set_output(transform="default")
    X = problem.X if issparse(problem.X) else _centered(problem.X)
    # Constant data has no variance to explain; that is handled below.
    with limited_libraries(problem.threads), np.errstate(all="ignore"):
        components = pca.fit_transform(X).astype(np.float64)
    layout = np.zeros((problem.n_samples, problem.n_components))
    std = components[:, 0].std()
    if np.isfinite(std) and std > 0:
        layout[:, :axes] = components * (INITIAL_STD / std)
    return layout


def _centered(X: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Move X to the origin and scale it to 1, lest an offset or unit swamp its covariance."""
    largest = float(np.abs(X).max())
    if largest == 0:
        return X
    center = (X / X.dtype.type(largest)).mean(axis=0, dtype=np.float64)
    moved = (X / X.dtype.type(largest) - center).astype(X.dtype)
    spread = np.abs(moved).max()
    return np.asarray(moved / spread if spread > 0 else moved)


def separate_coincident(layout: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Move points that share a place a little apart.

    Points in one place feel the same forces and, if their neighbours agree too, never part. The
    moves are deterministic and touch no other point. The first point of each place stays.
    """
    order = np.lexsort(layout.T)
    ordered = layout[order]
    repeats = np.zeros(len(layout), dtype=bool)
    repeats[order[1:]] = (ordered[1:] == ordered[:-1]).all(axis=1)
    count = int(repeats.sum())
    if count:
        std = float(layout[:, 0].std())
        scale = 0.01 * std if std > 0 else INITIAL_STD
        jitter = np.random.default_rng(0).standard_normal((count, layout.shape[1]))
        layout = layout.copy()
        layout[repeats] += (scale * jitter).astype(layout.dtype)
    return layout
