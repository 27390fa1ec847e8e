"""What one evaluation of the repulsion costs by each method: constants of the automatic choice.

    python benchmarks/methods.py

Uniform maps in two dimensions, one thread, float32, iterations that hardly move a point. The cost
of a method is a sum of terms, as `cost` in native/forces/repulsive_*.cpp has them; their constants
are fitted to the measured nanoseconds, relative errors weighing the same.
"""

import argparse

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from acctsne import Affinities, Embedding

SIZES = (300, 1000, 3000, 10_000, 30_000, 100_000)
WIDTHS = (10.0, 50.0, 150.0, 450.0)
MOST_EXACT = 10_000
STEP = 0.405  # of the grid at the default force error
WIDE = 4 * 12.0  # where the near part of the kernel goes to a grid of its own
REPULSION = ("tree_building", "summarization", "repulsive")


def ring(points: int) -> Affinities:
    """Every point drawn to the next: next to no attraction to wait for."""
    here = np.arange(points)
    there = np.roll(here, -1)
    rows, columns = np.r_[here, there], np.r_[there, here]
    P = sp.csr_matrix((np.full(2 * points, 0.5 / points), (rows, columns)), (points, points))
    return Affinities.from_matrix(P)


def nanoseconds(P: Affinities, Y: npt.NDArray[np.float32], method: str, dof: float) -> float:
    """The fastest of several short runs, per iteration."""
    embedding = Embedding(P, Y, method=method, dof=dof, n_jobs=1)
    iterations = int(np.clip(200_000 / len(Y), 3, 50))
    embedding.optimize(2, learning_rate=1e-9)
    best = np.inf
    for _ in range(5):
        before = sum(embedding.timings[step] for step in REPULSION)
        embedding.optimize(iterations, learning_rate=1e-9)
        spent = sum(embedding.timings[step] for step in REPULSION) - before
        best = min(best, 1e9 * spent / iterations)
    return float(best)


def terms(method: str, points: int, width: float) -> list[float]:
    """What the constants of the method multiply."""
    if method == "exact":
        return [float(points) ** 2]
    if method == "barnes_hut":
        return [1.0, points * np.log2(points + 2)]
    nodes = 0.75 * (2 * (width / STEP + 5)) ** 2
    if width > WIDE:
        nodes = (width / STEP + 5 + 12 / STEP) ** 2 + 0.75 * (2 * (width / (4 * STEP) + 4)) ** 2
    return [1.0, float(points), nodes * np.log2(nodes)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dof", type=float, default=1.0, help="another one than 1 costs more")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    arguments = parser.parse_args()
    random = np.random.default_rng(0)
    found: dict[str, list[tuple[list[float], float]]] = {"exact": [], "barnes_hut": [], "fft": []}
    print(f"{'points':>8} {'units':>6} " + " ".join(f"{method:>12}" for method in found))
    for points in (int(size) for size in arguments.sizes.split(",")):
        P = ring(points)
        for width in WIDTHS:
            Y = random.uniform(0, width, (points, 2)).astype(np.float32)
            row = []
            for method, measured in found.items():
                taken = np.nan
                if method != "exact" or points <= MOST_EXACT:
                    taken = nanoseconds(P, Y, method, arguments.dof)
                    measured.append((terms(method, points, width), taken))
                row.append(taken)
            print(f"{points:8} {width:6.0f} " + " ".join(f"{value:12.0f}" for value in row))
    for method, measured in found.items():
        A = np.array([values for values, _ in measured])
        costs = np.array([value for _, value in measured])
        constants, *_ = np.linalg.lstsq(A / costs[:, None], np.ones(len(costs)), rcond=None)
        off = np.median(np.abs(A @ constants / costs - 1))
        values = ", ".join(f"{value:.3g}" for value in constants)
        print(f"{method}: {values} nanoseconds; off by {off:.0%} (median)")


if __name__ == "__main__":
    main()
