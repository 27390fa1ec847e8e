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
    order = np.argsort(y, kind="stable")
    half = len(order) // 5
    ids = [order[at * half : (at + 2) * half] for at in range(4)]
    alone = [TSNE().fit_transform(X[rows]) for rows in ids]
    together = AlignedTSNE().fit_transform([X[rows] for rows in ids], ids=ids)
    figure = Figure(figsize=(10, 5.4), layout="constrained")
    grid = figure.subplots(2, 4)
    for line, name, maps in zip(grid, ("TSNE", "AlignedTSNE"), (alone, together), strict=True):
        reach = 1.05 * max(float(np.abs(Y).max()) for Y in maps)
        for at, (ax, rows, Y) in enumerate(zip(line, ids, maps, strict=True)):
            plot.scatter(Y, y[rows], ax=ax, colors=COLORS, names=True, legend=False)
            ax.set_title(f"{name}, slice {at}", fontsize=9)
            ax.set(xlim=(-reach, reach), ylim=(-reach, reach))
    save(figure, "aligned")


FIGURES = [aligned]
FIGURES_OF_DATA: list[Callable[..., None]] = []
