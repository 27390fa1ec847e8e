"""Figures of aligned.md: handwritten digits in slices that overlap."""

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from acctsne import TSNE, AlignedTSNE, plot
from drawing import save

COLORS = {str(digit): f"C{digit}" for digit in range(10)}


def aligned() -> None:
    """Draw four slices, each by itself above and all aligned below."""
    X, y = load_digits(return_X_y=True)
    ids = [np.flatnonzero((y >= first) & (y < first + 4)) for first in (0, 2, 4, 6)]
    alone = [TSNE().fit_transform(X[rows]) for rows in ids]
    together = AlignedTSNE().fit_transform([X[rows] for rows in ids], ids=ids)
    figure = Figure(figsize=(10, 5.4), layout="constrained")
    grid = figure.subplots(2, 4)
    for line, name, maps in zip(grid, ("TSNE", "AlignedTSNE"), (alone, together), strict=True):
        everything = np.concatenate(maps)
        middle = (everything.max(axis=0) + everything.min(axis=0)) / 2
        reach = 1.05 * float(np.abs(everything - middle).max())
        for at, (ax, rows, Y) in enumerate(zip(line, ids, maps, strict=True)):
            plot.scatter(Y, y[rows], ax=ax, colors=COLORS, names=True, legend=False)
            ax.set_title(f"{name}, slice {at}", fontsize=9)
            ax.set_xlim(middle[0] - reach, middle[0] + reach)
            ax.set_ylim(middle[1] - reach, middle[1] + reach)
    save(figure, "aligned")


FIGURES = [aligned]
FIGURES_OF_DATA: list[Callable[..., None]] = []
