"""Make the gallery: ten data sets that can be had offline, a map of each, and the page.

    python docs/figures/gallery.py --data FOLDER [--untimed] [NAME ...]

FOLDER holds mnist70k.npz, fashion_mnist70k.npz and cifar10_60k.npz, each with arrays X and y; the
other data sets come with scikit-learn. Seconds mean something on an idle machine only: --untimed
leaves them out. NAME limits what is made; the page is written when all of them are.
"""

import argparse
import os
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import sklearn.datasets
from matplotlib.figure import Figure
from sklearn.feature_extraction.image import extract_patches_2d
from sklearn.preprocessing import scale

from acctsne import TSNE, plot, quality
from drawing import IMAGES, shrink

Array = npt.NDArray[Any]

PAGE = Path(__file__).parent.parent / "gallery.md"
GARMENTS = ["T-shirt", "Trouser", "Pullover", "Dress", "Coat"]
GARMENTS += ["Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]
THINGS = ["airplane", "automobile", "bird", "cat", "deer"]
THINGS += ["dog", "frog", "horse", "ship", "truck"]

OPENING = """# Gallery

Ten data sets that can be had without a network: those that come with scikit-learn or are made by
it, and three that you may have in a file. Each line makes `X`, and `y` to colour by; then

```text
Y = TSNE(random_state=0).fit_transform(X)
plot.save(Y, "map.png", y)  # values=y where y is a number
```

with nothing tuned. Seconds are those of the fit on two cores (machine A of
[Performance](performance.md)), one after the other, single runs. The KL divergence is that of
`quality.exact_kl`, the rest that of `quality.report(X, Y, n_neighbors=10)`: on the right, the
darker a point, the less its neighbours on the map are its neighbours in the data. [Which points to
trust](quality.md) says more. Comparisons with other packages start all of them from one layout,
another than that of a fit here: the divergence of the same data then differs in the third digit.
"""
ENDING = """
This page and its maps are made by `python docs/figures/gallery.py --data FOLDER`.
"""


@dataclass(frozen=True)
class DataSet:
    """What to load, how, and what to say about it."""

    name: str
    title: str
    line: str  # makes X and y, numbers on a scale if y is of floats
    remark: str
    classes: tuple[str, ...] | None = None  # names of y's integers
    in_file: bool = False


DATA_SETS = (
    DataSet(
        "iris",
        "Iris",
        "X, y = load_iris(return_X_y=True)",
        "Setosa stands apart; the other two species touch.",
        ("setosa", "versicolor", "virginica"),
    ),
    DataSet(
        "wine",
        "Wine",
        "X, y = load_wine(return_X_y=True); X = scale(X)",
        "Features of different units are scaled first: otherwise the largest decides alone.",
        ("cultivar 1", "cultivar 2", "cultivar 3"),
    ),
    DataSet(
        "breast_cancer",
        "Breast cancer",
        "X, y = load_breast_cancer(return_X_y=True); X = scale(X)",
        "Two classes of one continuum, not two islands.",
        ("malignant", "benign"),
    ),
    DataSet(
        "digits",
        "Handwritten digits",
        "X, y = load_digits(return_X_y=True)",
        "Ten islands; some ones look like other digits, and lie there.",
    ),
    DataSet(
        "swiss_roll",
        "Swiss roll",
        "X, y = make_swiss_roll(5000, random_state=0)",
        "Coloured along the roll. t-SNE keeps neighbours, and tears the sheet to do so.",
    ),
    DataSet(
        "blobs",
        "Gaussian blobs",
        "X, y = make_blobs(20000, 50, centers=25, cluster_std=4.0, random_state=0)",
        "As many islands as there are blobs. Their distances on the map mean little.",
    ),
    DataSet(
        "patches",
        "Patches of a photograph",
        'X = extract_patches_2d(load_sample_image("china.jpg"), (8, 8), max_patches=10000, '
        "random_state=0).reshape(10000, -1); y = X.mean(axis=1)",
        "Coloured by brightness: dark patches are one body, bright ones thin strands.",
    ),
    DataSet(
        "mnist",
        "MNIST",
        'X, y = (np.load("mnist70k.npz")[name] for name in ("X", "y"))',
        "70000 digits. Fours and nines, threes, fives and eights are neighbours.",
        in_file=True,
    ),
    DataSet(
        "fashion",
        "Fashion-MNIST",
        'X, y = (np.load("fashion_mnist70k.npz")[name] for name in ("X", "y"))',
        "Trousers and bags stand apart; what covers the upper body does not.",
        tuple(GARMENTS),
        in_file=True,
    ),
    DataSet(
        "cifar",
        "CIFAR-10",
        'X, y = (np.load("cifar10_60k.npz")[name] for name in ("X", "y"))',
        "Raw pixels of photographs know little of what is in them, and the map says so.",
        tuple(THINGS),
        in_file=True,
    ),
)

NAMESPACE = {
    **{name: getattr(sklearn.datasets, name) for name in sklearn.datasets.__all__},
    "extract_patches_2d": extract_patches_2d,
    "np": np,
    "scale": scale,
}


def load(data_set: DataSet) -> tuple[Array, Array]:
    """Run its line; files are in the working folder."""
    made: dict[str, Any] = dict(NAMESPACE)
    exec(data_set.line, made)
    return made["X"], made["y"]


def measures(X: Array, Y: Array, found: quality.Report, seconds: float | None) -> dict[str, str]:
    """Give what is said below a map."""
    said = {} if seconds is None else {"seconds": f"{seconds:.2g}"}
    return {
        **said,
        "exact KL divergence": f"{quality.exact_kl(X, Y):.3f}",
        "trustworthiness": f"{found.means['trustworthiness_10']:.3f}",
        "of 10 neighbours kept": f"{found.means['kept_10']:.0%}",
    }


def draw(data_set: DataSet, Y: Array, y: Array, trust: Array, path: Path) -> None:
    """Draw a map by classes or on a scale, and by how far a point's neighbours can be trusted."""
    figure = Figure(figsize=(11, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    if y.dtype.kind == "f":
        plot.scatter(Y, values=y, ax=left)
    else:
        classes = y if data_set.classes is None else np.array(data_set.classes)[y]
        plot.scatter(Y, classes, ax=left)
    plot.scatter(Y, values=trust, ax=right, title="trustworthiness by point")
    figure.savefig(path, dpi=100, bbox_inches="tight")
    shrink(path)


def section(data_set: DataSet, X: Array, said: dict[str, str]) -> str:
    """Write a data set's part of the page."""
    figures = ", ".join(f"{name} {figure}" for name, figure in said.items())
    return f"""
## {data_set.title}

`{data_set.line}`

{X.shape[0]} x {X.shape[1]}; {figures}. {data_set.remark}

![{data_set.title}](images/gallery/{data_set.name}.png)
"""


def make(data_set: DataSet, folder: Path, clock: Callable[[], float] | None) -> str:
    """Embed and draw one data set; return its part of the page."""
    X, y = load(data_set)
    begin = clock() if clock else 0.0
    Y = TSNE(random_state=0).fit_transform(X)
    seconds = clock() - begin if clock else None
    found = quality.report(X, Y, n_neighbors=10)
    draw(data_set, Y, y, found.trustworthiness[:, 0], folder / f"{data_set.name}.png")
    said = measures(X, Y, found, seconds)
    print(f"{data_set.name}: {said}", flush=True)
    return section(data_set, X, said)


def main(arguments: list[str] | None = None) -> None:
    """Make all that was asked for."""
    names = [data_set.name for data_set in DATA_SETS]
    parser = argparse.ArgumentParser(description="Make the gallery again.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="data sets; none for all")
    parser.add_argument("--data", type=Path, default=Path(), help="folder of the three files")
    parser.add_argument("--untimed", action="store_true", help="leave the seconds out")
    parser.add_argument("--output", type=Path, default=IMAGES / "gallery", help="for the pictures")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - set(names)
    if unknown:
        parser.error(f"no data set {min(unknown)!r}; there are {', '.join(names)}")
    output = options.output.resolve()
    os.makedirs(output, exist_ok=True)
    with chdir(options.data):
        sections = [
            make(data_set, output, None if options.untimed else perf_counter)
            for data_set in DATA_SETS
            if not options.names or data_set.name in options.names
        ]
    if not options.names:
        PAGE.write_text(OPENING + "".join(sections) + ENDING, encoding="utf-8")


if __name__ == "__main__":
    main()
