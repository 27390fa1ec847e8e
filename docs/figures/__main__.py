"""Make the documentation's pictures again.

    python docs/figures --data FOLDER [NAME ...]

FOLDER holds mnist70k.npz and fashion_mnist70k.npz, each with arrays X (70000 x 784) and y; without
it, only the pictures of scikit-learn's digits are made. NAME limits what is made.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aligned_figures
import map_figures
import parameter_figures
import quality_figures
import step_figures
from drawing import IMAGES, shrink

MODULES = (
    map_figures,
    step_figures,
    parameter_figures,
    quality_figures,
    aligned_figures,
)


def make(figure: Callable[..., None], *arguments: Any) -> None:
    """Make one picture."""
    figure(*arguments)
    path = IMAGES / f"{figure.__name__}.png"
    shrink(path)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


def main() -> None:
    """Make all pictures that were asked for, or that the data suffice for."""
    of_digits = {figure.__name__: figure for module in MODULES for figure in module.FIGURES}
    of_data = {figure.__name__: figure for module in MODULES for figure in module.FIGURES_OF_DATA}
    parser = argparse.ArgumentParser(description="Make the documentation's pictures again.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="pictures to make; none for all")
    parser.add_argument("--data", type=Path, help="folder of mnist70k.npz and fashion_mnist70k.npz")
    options = parser.parse_args()
    possible = {**of_digits, **(of_data if options.data else {})}
    for name in options.names:
        if name not in possible:
            parser.error(f"no picture {name!r}; there are {', '.join(possible)}")
    IMAGES.mkdir(exist_ok=True)
    for name in options.names or possible:
        make(possible[name], *([options.data] if name in of_data else []))


if __name__ == "__main__":
    main()
