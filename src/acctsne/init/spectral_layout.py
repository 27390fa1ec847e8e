"""The slowest modes of a random walk along the affinities (Laplacian eigenmaps, diffusion maps).

Parts of the graph that no affinity connects know nothing of each other: each gets its own map, of a
volume in proportion to its points, and the maps are laid out around the largest.
"""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, eigsh, lobpcg

from acctsne.runtime.progress import logger
from acctsne.runtime.threads import limited_libraries

# Up to so many points a full decomposition is as fast as an iteration, and surer.
FEW_POINTS = 300

# Relative error of the eigenvalues: openTSNE asks for the same.
TOLERANCE = 1e-4

# Vectors that the iteration keeps: eigenvalues crowd near 1, where few make slow progress. Data
# with clusters takes few restarts; points of a line would take thousands (docs/tuning.md).
KRYLOV_VECTORS = 40
MAX_RESTARTS = 20

# Where that is not enough, steps of an iteration that can be stopped at any time, and vectors
# beyond those wanted that speed it up.
APPROXIMATE_STEPS = 30
SPARE_MODES = 4


def spectral_coordinates(P: csr_matrix, n_components: int) -> npt.NDArray[np.float64]:
    """Compute a layout of the points that P joins, up to a common factor."""
    # One thread: with more, BLAS would change last bits, and gain nothing on a few vectors.
    with limited_libraries(1):
        return _coordinates(P, n_components)


def _coordinates(matrix: csr_matrix, n_components: int) -> npt.NDArray[np.float64]:
    n_samples = matrix.shape[0]
    if not matrix.data.all():  # affinities that have underflowed join nothing
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    count, labels = connected_components(matrix, directed=False)
    if count == 1:
        return _coordinates_of_part(matrix, n_components)
    sizes = np.bincount(labels)
    centers = _centers(sizes / sizes.sum(), n_components)
    order = np.argsort(labels, kind="stable")
    layout = np.empty((n_samples, n_components))
    for part, members in enumerate(np.split(order, np.cumsum(sizes)[:-1])):
        own = _coordinates_of_part(matrix[members][:, members], n_components)
        # A ball of the part's share of the volume holds nearly all of a layout of half its radius.
        radius = (sizes[part] / n_samples) ** (1 / n_components)
        layout[members] = centers[part] + 0.5 * radius * own
    return layout


def _centers(shares: npt.NDArray[np.float64], n_components: int) -> npt.NDArray[np.float64]:
    """Place the largest part at the origin and each next one where the volume so far ends."""
    order = np.argsort(-shares, kind="stable")
    volume_inside = np.cumsum(shares[order]) - shares[order] / 2
    distances = volume_inside ** (1 / n_components) + shares[order] ** (1 / n_components) / 2
    distances[0] = 0.0
    directions = np.random.default_rng(0).standard_normal((len(shares), n_components))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    centers = np.empty((len(shares), n_components))
    centers[order] = distances[:, None] * directions
    return centers


def _coordinates_of_part(matrix: csr_matrix, n_components: int) -> npt.NDArray[np.float64]:
    """Lay out a connected part, the first axis with standard deviation 1."""
    n = matrix.shape[0]
    layout = np.zeros((n, n_components))
    wanted = min(n_components, n - 1)
    if wanted == 0:
        return layout
    # W = D^-1/2 P D^-1/2 is symmetric and has the random walk's eigenvalues; of its eigenvectors v,
    # D^-1/2 v are the walk's, and that of the largest eigenvalue, 1, is constant.
    degrees = np.asarray(matrix.sum(axis=1, dtype=np.float64)).ravel()
    roots = np.sqrt(degrees)
    scaling = diags(1.0 / roots)
    walk = (scaling @ matrix @ scaling).astype(np.float64)
    if n <= max(FEW_POINTS, 2 * wanted + 2):
        vectors = np.linalg.eigh(walk.toarray())[1][:, -wanted - 1 : -1]
    else:
        vectors = _slowest_modes(walk, roots, wanted)
    modes = vectors[:, ::-1] / roots[:, None]
    # Each mode to the same spread; its sign so that its longer tail is positive.
    modes -= modes.mean(axis=0)
    spreads = modes.std(axis=0)
    modes /= np.where(spreads > 0, spreads, 1.0)
    modes *= np.where((modes**3).sum(axis=0) < 0, -1.0, 1.0)
    layout[:, :wanted] = modes
    return layout


def _slowest_modes(walk: Any, roots: npt.NDArray[np.float64], wanted: int) -> npt.NDArray[Any]:
    """Compute eigenvectors of the largest eigenvalues after the first, ascending."""
    random = np.random.default_rng(0)
    try:
        # From the known first eigenvector and a little of all others.
        start = roots * (1.0 + 0.5 * random.uniform(-1, 1, len(roots)))
        vectors: npt.NDArray[Any] = eigsh(
            walk,
            k=wanted + 1,
            which="LA",
            ncv=min(KRYLOV_VECTORS, len(roots)),
            maxiter=MAX_RESTARTS,
            tol=TOLERANCE,
            v0=start,
        )[1]
        return vectors[:, :-1]
    except ArpackNoConvergence:
        logger.info("spectral layout: long and thin data; modes are approximate")
    # Smooth vectors, if not the smoothest there are: neighbours are still neighbours.
    starts = random.standard_normal((len(roots), wanted + SPARE_MODES))
    first = (roots / np.linalg.norm(roots))[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that it stops before the tolerance
        vectors = lobpcg(walk, starts, Y=first, tol=TOLERANCE, maxiter=APPROXIMATE_STEPS)[1]
    return vectors[:, wanted - 1 :: -1]
