"""Figures of parameters.md: one parameter at a time on 6000 images of MNIST."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from acctsne import TSNE, plot, quality
from drawing import save

Array = npt.NDArray[Any]

SAMPLES = 6000


@cache
def images(data: Path) -> tuple[Array, Array]:
    """Return a random part of MNIST and its labels."""
    with np.load(data / "mnist70k.npz") as file:
        chosen = np.random.default_rng(0).choice(len(file["X"]), SAMPLES, replace=False)
        return file["X"][chosen].astype(np.float32), file["y"][chosen]


def row_of_maps(name: str, data: Path, fits: Iterable[tuple[str, TSNE]], *, kl: bool) -> None:
    """Draw fits beside each other, with the exact KL divergence if it may be compared.

    Otherwise with the part of each image's 10 nearest neighbours that are nearest in the map too.
    """
    X, y = images(data)
    fits = list(fits)
    figure = Figure(figsize=(10, 10 / len(fits) + 0.5), layout="constrained")
    for ax, (title, tsne) in zip(figure.subplots(1, len(fits)), fits, strict=True):
        Y = tsne.fit_transform(X)
        if kl:
            figures = f"KL divergence {quality.exact_kl(X, Y, float(tsne.perplexity)):.3f}"
        else:
            figures = f"10-NN kept {quality.neighbor_preservation(X, Y):.1%}"
        plot.scatter(Y, y, ax=ax, names=False, legend=False)
        ax.set_title(f"{title}\n{figures}", fontsize=9)
    save(figure, name)


def parameter_perplexity(data: Path) -> None:
    """From a few neighbours to many."""
    fits = ((f"perplexity={p}", TSNE(perplexity=p, random_state=0)) for p in (5, 30, 100, 500))
    row_of_maps("parameter_perplexity", data, fits, kl=False)


def parameter_early_exaggeration(data: Path) -> None:
    """From none to twice the usual, from a random start, which needs it most."""
    fits = (
        (
            f"early_exaggeration={factor}",
            TSNE(early_exaggeration=factor, init="random", random_state=0),
        )
        for factor in (1, 4, 12, 24)
    )
    row_of_maps("parameter_early_exaggeration", data, fits, kl=True)


def parameter_late_exaggeration(data: Path) -> None:
    """Kept up to the end."""
    fits = (
        (f"late_exaggeration={factor}", TSNE(late_exaggeration=factor, random_state=0))
        for factor in (1, 2, 4, 8)
    )
    row_of_maps("parameter_late_exaggeration", data, fits, kl=False)


def parameter_dof(data: Path) -> None:
    """From heavy tails to light ones."""
    fits = ((f"dof={dof}", TSNE(dof=dof, random_state=0)) for dof in (0.5, 0.8, 1, 2))
    row_of_maps("parameter_dof", data, fits, kl=False)


def parameter_init(data: Path) -> None:
    """Where the map starts."""
    starts = [("pca", 0), ("spectral", 0), ("multilevel", 0), ("random", 0), ("random", 1)]
    fits = (
        (
            f'init="{start}"' + (f", seed {seed}" if start == "random" else ""),
            TSNE(init=start, random_state=seed),
        )
        for start, seed in starts
    )
    row_of_maps("parameter_init", data, fits, kl=True)


FIGURES: list[Any] = []
FIGURES_OF_DATA = [
    parameter_perplexity,
    parameter_early_exaggeration,
    parameter_late_exaggeration,
    parameter_dof,
    parameter_init,
]
