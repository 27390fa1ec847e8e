"""What one evaluation of the repulsion costs by each method, and the constants that the automatic choice uses.

    python benchmarks/methods.py

Uniform maps in two dimensions, one thread, float32. Each method's cost is a sum of terms (the formulas stand in
native/forces/repulsive_*.cpp as `cost`); their constants are fitted to the measured nanoseconds, relative errors
weighing the same. Prints the measurements, the fitted constants, and how far the fit is off.
"""

import argparse
import time

import numpy as np

from acctsne import _core

SIZES = (300, 1000, 3000, 10_000, 30_000, 100_000)
WIDTHS = (10.0, 50.0, 150.0, 450.0)
STEP = 0.415  # of the grid at the default force error


def seconds(Y: np.ndarray, method: str, exponent: float, least: float) -> float:
    """The fastest of several evaluations."""
    options = _core.RepulsionOptions(
        method=method,
        angle=0.5,
        force_error=0.02,
        output_kernel=_core.OutputKernel(exponent=exponent, scale=1.0),
    )
    best, spent = np.inf, 0.0
    while spent < least:
        start = time.perf_counter()
        _core.repulsion(Y, options, 1)
        taken = time.perf_counter() - start
        best, spent = min(best, taken), spent + taken
    return best


def transformed(width: float) -> float:
    """Nodes that are transformed for a square map, padding included."""
    whole = 2 * (width / STEP + 5)
    return 0.75 * whole * whole


def terms(method: str, points: int, width: float) -> list[float]:
    """What the method's constants multiply."""
    if method == "exact":
        return [points * points]
    if method == "barnes_hut":
        return [1.0, points * np.log2(points + 2)]
    nodes = transformed(width)
    return [1.0, points, nodes * np.log2(nodes)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--least", type=float, default=0.2, help="seconds to spend on each measurement"
    )
    parser.add_argument("--exponent", type=float, default=1.0)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",")]
    random = np.random.default_rng(0)
    print(f"{'points':>8} {'units':>6} {'exact':>12} {'barnes_hut':>12} {'fft':>12}   nanoseconds")
    found: dict[str, list[tuple[list[float], float]]] = {"exact": [], "barnes_hut": [], "fft": []}
    for points in sizes:
        for width in WIDTHS:
            Y = random.uniform(0, width, (points, 2)).astype(np.float32)
            row = []
            for method, measured in found.items():
                if method == "exact" and points > 30_000:
                    row.append(np.nan)
                    continue
                taken = 1e9 * seconds(Y, method, arguments.exponent, arguments.least)
                measured.append((terms(method, points, width), taken))
                row.append(taken)
            print(f"{points:8} {width:6.0f} " + " ".join(f"{value:12.0f}" for value in row))
    for method, measured in found.items():
        A = np.array([values for values, _ in measured])
        taken = np.array([value for _, value in measured])
        constants, *_ = np.linalg.lstsq(A / taken[:, None], np.ones(len(taken)), rcond=None)
        off = np.abs(A @ constants / taken - 1)
        print(
            f"{method}: {', '.join(f'{value:.3g}' for value in constants)}; off by {np.median(off):.0%} (median)"
        )


if __name__ == "__main__":
    main()
