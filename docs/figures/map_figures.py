"""Figures of pictures.md and the README: maps as acctsne.plot draws them."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from acctsne import TSNE, plot
from drawing import IMAGES

# Fashion-MNIST's classes in order.
GARMENTS = ["T-shirt", "Trouser", "Pullover", "Dress", "Coat"]
GARMENTS += ["Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]


def digits() -> None:
    """Draw the picture at the top of the README, as `make demo` does."""
    X, y = load_digits(return_X_y=True)
    Y = TSNE(random_state=0).fit_transform(X)
    plot.save(Y, IMAGES / "digits.png", y, title="Handwritten digits, embedded by acctsne")


def values() -> None:
    """Colour a map by numbers."""
    X, _ = load_digits(return_X_y=True)
    Y = TSNE(random_state=0).fit_transform(X)
    plot.save(Y, IMAGES / "values.png", values=X.mean(axis=1), title="Mean ink of a digit")


def three_dimensions() -> None:
    """Draw a map of three columns."""
    X, y = load_digits(return_X_y=True)
    Y = TSNE(n_components=3, random_state=0).fit_transform(X)
    plot.save(Y, IMAGES / "three_dimensions.png", y)


def growth() -> None:
    """Draw a fit at six moments."""
    X, y = load_digits(return_X_y=True)
    moments: dict[int, npt.NDArray[Any]] = {}
    TSNE(
        random_state=0, callback_every=10, callback=lambda i, _, Y: moments.update({i + 1: Y})
    ).fit(X)
    figure = Figure(figsize=(9, 6), layout="constrained")
    for ax, moment in zip(figure.subplots(2, 3).flat, (10, 20, 30, 50, 80, 150), strict=True):
        plot.scatter(
            moments[moment], y, ax=ax, names=False, legend=False, title=f"iteration {moment}"
        )
    figure.savefig(IMAGES / "growth.png", dpi=120)


def mnist(data: Path) -> None:
    """Draw MNIST."""
    with np.load(data / "mnist70k.npz") as file:
        Y = TSNE(random_state=0).fit_transform(file["X"])
        plot.save(Y, IMAGES / "mnist.png", file["y"], title="MNIST, 70000 digits")


def fashion(data: Path) -> None:
    """Draw Fashion-MNIST."""
    with np.load(data / "fashion_mnist70k.npz") as file:
        Y = TSNE(random_state=0).fit_transform(file["X"])
        garments = np.array(GARMENTS)[file["y"]]
        plot.save(Y, IMAGES / "fashion.png", garments, title="Fashion-MNIST, 70000 garments")


FIGURES = [digits, values, three_dimensions, growth]
FIGURES_OF_DATA = [mnist, fashion]
