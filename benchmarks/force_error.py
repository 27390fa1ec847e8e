"""How exact the repulsion is: its error on layouts of several kinds, by method and setting.

    python benchmarks/force_error.py

Errors are those of `quality.force_error`, root mean square over root mean square of the force;
printed is the largest over the layouts. Constants that depend on them: `grid_step_for_error`
(native/forces/repulsive_fft.cpp) and `theta_for_angle` (native/forces/repulsive_tree.cpp).
"""

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne import quality
from common import table

Array = npt.NDArray[np.float64]

AIMS = (0.005, 0.01, 0.02, 0.05)
ANGLES = (0.2, 0.5, 0.8)
DOFS = (0.5, 1.0, 2.0, 10.0)


def layouts(points: int, dims: int) -> Iterator[tuple[str, Array]]:
    """Maps of the kinds that fits lead to, and harder ones."""
    random = np.random.default_rng(0)
    width = 100.0 if dims < 3 else 40.0
    yield "uniform", random.uniform(0, width, (points, dims))
    yield "gaussian", random.normal(0, width / 4, (points, dims))
    centers = random.uniform(0, width, (20, dims))
    yield "clustered", centers[np.arange(points) % 20] + random.normal(0, 2, (points, dims))
    side = round(points ** (1 / dims))
    lattice = np.stack(np.meshgrid(*[np.linspace(0, width, side)] * dims), axis=-1)
    yield "lattice", lattice.reshape(-1, dims)


def worst(points: int, dims: int, method: str, **settings: Any) -> str:
    """The largest error, and the layout that has it."""
    errors = {name: quality.force_error(Y, method, **settings) for name, Y in layouts(points, dims)}
    name = max(errors, key=lambda name: errors[name])
    return f"{100 * errors[name]:.2f} % ({name})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=5000)
    points = parser.parse_args().points
    rows = [
        [f"{aim:g}", *(worst(points, dims, "fft", force_error=aim) for dims in (1, 2))]
        for aim in AIMS
    ]
    print(table(["aim", "1-D", "2-D"], rows))
    print()
    rows = [
        [f"{angle:g}", *(worst(points, dims, "barnes_hut", angle=angle) for dims in (1, 2, 3))]
        for angle in ANGLES
    ]
    print(table(["angle", "1-D", "2-D", "3-D"], rows))
    print()
    rows = [
        [
            f"{dof:g}",
            worst(points, 2, "fft", dof=dof),
            worst(points, 2, "barnes_hut", dof=dof),
        ]
        for dof in DOFS
    ]
    print(table(["dof", "grid at an aim of 0.02", "tree at angle 0.5"], rows))


if __name__ == "__main__":
    main()
