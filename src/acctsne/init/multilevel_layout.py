"""A start for very many points: embed a sample, then place every point by its neighbours there.

1. Draw a tenth of the points.
2. Join two of them as much as a random walk leads from one to the other in two steps: a tenth of
   each point's neighbours alone would be too few to hold the sample together.
3. Embed them, from the spectral layout of their graph.
4. Place each other point at the mean of its placed neighbours, weighted by affinity; those that
   have none wait for the next round.

The map's large structure is then there before the first iteration.
"""

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags, vstack

from acctsne.affinities.affinities import csr_arrays
from acctsne.affinities.forms import Matrix
from acctsne.forces.repulsion import RepulsionOptions
from acctsne.init.spectral_layout import spectral_coordinates
from acctsne.optimize.descent import Descent
from acctsne.optimize.optimizer import Optimizer
from acctsne.optimize.schedule import Schedule
from acctsne.runtime.progress import logger

SAMPLED_PART = 0.1

# Fewer points than this are cheap to embed, and hardly have a large structure.
FEWEST_SAMPLED = 1000

# Sampled points whose joint neighbours are found at a time: Ctrl-C waits for one such product.
BLOCK_ROWS = 1024

# Iterations of the sample's own embedding, by the default schedule.
ITERATIONS = 160

# Small enough that attraction orders the sample before repulsion spreads it.
SAMPLE_STD = 1e-4


def multilevel_coordinates(
    P: csr_matrix, n_components: int, threads: int
) -> npt.NDArray[np.float64]:
    """Compute a layout of the points that P joins, up to a common factor."""
    n_samples = P.shape[0]
    count = max(int(SAMPLED_PART * n_samples), min(FEWEST_SAMPLED, n_samples))
    sample = np.sort(np.random.default_rng(0).choice(n_samples, count, replace=False))
    logger.info("multilevel start: embedding %d of %d points first", count, n_samples)
    return _placed(P, sample, _embedded(_two_steps(P, sample), n_components, threads))


def _two_steps(P: csr_matrix, sample: npt.NDArray[np.intp]) -> csr_matrix:
    """Compute affinities between sampled points by way of any point."""
    rows = P[sample]
    degrees = np.asarray(P.sum(axis=1, dtype=np.float64)).ravel()
    # P D^-1 P is symmetric; a point without neighbours leads nowhere.
    inverse = np.divide(1.0, degrees, where=degrees > 0, out=np.zeros_like(degrees))
    weighted, columns = csr_matrix(rows @ diags(inverse)), csr_matrix(rows.T)
    blocks = range(0, len(sample), BLOCK_ROWS)
    joint = vstack([weighted[i : i + BLOCK_ROWS] @ columns for i in blocks], format="csr")
    joint.setdiag(0.0)
    joint.eliminate_zeros()
    total = float(joint.sum())
    return joint / total if total > 0 else joint


def _embedded(P: csr_matrix, n_components: int, threads: int) -> npt.NDArray[np.float64]:
    start = spectral_coordinates(P, n_components)
    descent = Descent(
        Optimizer(
            Matrix(*csr_arrays(P.astype(np.float32))),
            np.ascontiguousarray(SAMPLE_STD * start, dtype=np.float32),
            RepulsionOptions(),
            threads,
        )
    )
    descent.run(Schedule(max_iter=ITERATIONS).phases(P.shape[0]))
    return np.asarray(descent.optimizer.positions, dtype=np.float64)


def _placed(
    P: csr_matrix, sample: npt.NDArray[np.intp], positions: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    layout = np.zeros((P.shape[0], positions.shape[1]))
    layout[sample] = positions
    placed = np.zeros(len(layout), dtype=bool)
    placed[sample] = True
    while not placed.all():
        weights = P @ placed.astype(np.float64)
        reached = ~placed & (weights > 0)
        if not reached.any():
            # Parts without a sampled point: no place is better than another.
            rest = np.random.default_rng(0).standard_normal(((~placed).sum(), layout.shape[1]))
            layout[~placed] = positions.std() * rest
            break
        layout[reached] = (P @ layout)[reached] / weights[reached, None]
        placed |= reached
    return layout
