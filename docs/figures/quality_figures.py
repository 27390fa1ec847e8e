"""Figures of quality.md and of automatic perplexity: which points of a map to trust."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from acctsne import TSNE, plot, quality
from acctsne.affinities.similarity import perplexities_for
from drawing import IMAGES, save

Array = npt.NDArray[Any]

# Columns of a report, and what they are shown as.
SHOWN = {
    "kept_10": "neighbours kept (10)",
    "trustworthiness_10": "trustworthiness (10)",
    "continuity_10": "continuity (10)",
    "kl": "share of the KL divergence",
    "stretch": "stretch, in octaves",
}


def shown_values(found: quality.Report, name: str) -> Array:
    """Return a column as it is coloured: stretch by its logarithm."""
    values: Array = found.columns()[name]
    return np.log2(values) if name == "stretch" else values


def quality_points() -> None:
    """Draw the digits' map by label and by five columns of its report."""
    X, y = load_digits(return_X_y=True)
    Y = TSNE(random_state=0).fit_transform(X)
    found = quality.report(X, Y)
    figure = Figure(figsize=(10, 6.6), layout="constrained")
    first, *others = figure.subplots(2, 3).flat
    plot.scatter(Y, y, ax=first, title="digits")
    for ax, (name, title) in zip(others, SHOWN.items(), strict=True):
        plot.scatter(Y, values=shown_values(found, name), ax=ax, title=title)
    save(figure, "quality_points")


def torn(Y: Array, y: Array) -> Array:
    """Move the left half of the map's cluster of zeros to the other side of the map."""
    moved = Y.copy()
    zeros = np.flatnonzero(y == 0)
    left = zeros[Y[zeros, 0] < np.median(Y[zeros, 0])]
    moved[left] = 2 * Y.mean(axis=0) - Y[left]
    return moved


def glued(Y: Array, y: Array) -> Array:
    """Lay the ones onto the zeros."""
    moved = Y.copy()
    moved[y == 1] += np.median(Y[y == 0], axis=0) - np.median(Y[y == 1], axis=0)
    return moved


def quality_counterexamples() -> None:
    """Draw maps that are wrong, by trustworthiness and continuity."""
    X, y = load_digits(return_X_y=True)
    Y = TSNE(random_state=0).fit_transform(X)
    maps = {
        "a random layout": np.random.default_rng(0).permutation(Y),
        "zeros torn apart": torn(Y, y),
        "ones laid onto zeros": glued(Y, y),
    }
    figure = Figure(figsize=(10, 7), layout="constrained")
    columns = figure.subplots(2, 3).T
    for axes, (title, layout) in zip(columns, maps.items(), strict=True):
        found = quality.report(X, layout)
        for ax, name in zip(axes, ("trustworthiness_10", "continuity_10"), strict=True):
            mean = f"{SHOWN[name]}, mean {found.means[name]:.3f}"
            plot.scatter(layout, values=found.columns()[name], ax=ax, title=f"{title}\n{mean}")
    save(figure, "quality_counterexamples")


def quality_mnist(data: Path) -> None:
    """Draw MNIST by the neighbours that each digit keeps."""
    with np.load(data / "mnist70k.npz") as file:
        X = file["X"].astype(np.float32)
    Y = TSNE(random_state=0).fit_transform(X)
    found = quality.report(X, Y)
    plot.save(Y, IMAGES / "quality_mnist.png", values=found.continuity[:, 0])
    print(found)


def perplexity_auto(data: Path) -> None:
    """Draw what perplexities keep, for samples of several sizes, and where "auto" is."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    axes = figure.subplots(1, 2)
    files = {"MNIST": "mnist70k.npz", "Fashion-MNIST": "fashion_mnist70k.npz"}
    for ax, (title, name) in zip(axes, files.items(), strict=True):
        with np.load(data / name) as file:
            X = file["X"].astype(np.float32)
        for n_samples in (60, 150, 500, 1500, 5000):
            auto = perplexities_for("auto", n_samples)[0]
            some = np.random.default_rng(n_samples).choice(len(X), n_samples, replace=False)
            choices = sorted({3, 5, 8, 12, 20, 30, 50, 100, auto})
            choices = [choice for choice in choices if 3 * choice < n_samples]
            kept = [kept_of(X[some], perplexity) for perplexity in choices]
            (line,) = ax.plot(choices, kept, label=f"{n_samples} samples")
            ax.plot([auto], [kept[choices.index(auto)]], "o", color=line.get_color())
        ax.set(xscale="log", title=title, xlabel="perplexity", ylabel="5-NN and 25-NN kept, mean")
        ax.legend(fontsize=8)
    save(figure, "perplexity_auto")


def kept_of(X: Array, perplexity: float) -> float:
    """Compute the mean part of 5 and of 25 neighbours that a map of this perplexity keeps."""
    Y = TSNE(perplexity=perplexity, random_state=0).fit_transform(X)
    sizes = [5, min(25, len(X) // 3)]
    return float(np.mean([quality.neighbor_preservation(X, Y, k) for k in sizes]))


FIGURES = [quality_points, quality_counterexamples]
FIGURES_OF_DATA = [quality_mnist, perplexity_auto]
