"""The data of the benchmarks: real sets where they can be had, a generator where they cannot."""

import os
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import fetch_openml, load_digits

# Our names of the image sets and their names at OpenML.
OPENML_NAMES = {
    "mnist": "mnist_784",
    "fashion_mnist": "Fashion-MNIST",
    "cifar10": "CIFAR_10",
    "svhn": "SVHN",
}
NAMES_HELP = (
    "digits, mnist, fashion_mnist, cifar10, svhn, a .npy or .npz file (arrays X and, optionally, "
    "y), or synthetic:N or synthetic:NxD"
)

BLOCK = 1 << 17  # points the generator makes at a time, so that memory is that of the result
BACKGROUND = 0.01  # fraction of points that belong to no cluster
BACKGROUND_LABEL = -1
SUBSET_SEED = 0


class DatasetError(Exception):
    """A data set that cannot be had; the message is one line for the user."""


@dataclass(frozen=True)
class Dataset:
    name: str
    X: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int32] | None
    synthetic: bool
    note: str

    @property
    def slug(self) -> str:
        """The name as a part of a file name."""
        name = Path(self.name).stem if self.is_file else self.name
        slug = re.sub(r"[^A-Za-z0-9.]+", "-", name)
        size = str(len(self.X))
        return slug if size in re.findall(r"\d+", slug) else f"{slug}-{size}"

    @property
    def is_file(self) -> bool:
        return self.name.endswith((".npy", ".npz"))

    @property
    def title(self) -> str:
        n, d = self.X.shape
        name = Path(self.name).name if self.is_file else self.name.partition(":")[0]
        return f"{name} data, {n} x {d}" if self.synthetic else f"{name}, {n} x {d}"


def load(name: str, limit: int | None = None, folder: Path | None = None) -> Dataset:
    """Load or generate a data set, or a random sample of `limit` of its points.

    `folder` is where the image sets are looked for as <name>*.npz before OpenML is asked; without
    it, the environment variable ACCTSNE_DATA says where.
    """
    if limit is not None and limit < 2:
        raise DatasetError(f"a data set needs at least 2 points; the limit is {limit}")
    if name.startswith("synthetic"):
        return _synthetic(name, limit)
    note = ""
    if name == "digits":
        X, labels = load_digits(return_X_y=True)
    elif name in OPENML_NAMES:
        X, labels, note = _load_images(name, folder)
    elif name.endswith((".npy", ".npz")):
        X, labels = _load_file(Path(name))
    else:
        raise DatasetError(f"there is no data set {name!r}; known are {NAMES_HELP}")
    return _prepared(name, X, labels, limit, note)


def _prepared(name: str, X: Any, labels: Any, limit: int | None, note: str) -> Dataset:
    X = np.asarray(X)
    X = X.reshape(len(X), -1)  # images become rows
    if labels is not None:
        labels = np.unique(np.asarray(labels).ravel(), return_inverse=True)[1].astype(np.int32)
    if limit is not None and limit < len(X):
        # A random sample: some sets are sorted by class.
        rng = np.random.default_rng(SUBSET_SEED)
        rows = np.sort(rng.choice(len(X), size=limit, replace=False))
        X = X[rows]
        labels = None if labels is None else labels[rows]
    return Dataset(name, np.ascontiguousarray(X, dtype=np.float32), labels, False, note)


def _load_file(path: Path) -> tuple[Any, Any]:
    try:
        content = np.load(path)
    except (OSError, ValueError) as error:
        raise DatasetError(f"cannot read {path}: {error}") from error
    if isinstance(content, np.ndarray):
        return content, None
    with content:
        if "X" not in content:
            raise DatasetError(f"{path} has no array X, only {', '.join(content.files)}")
        return content["X"], content.get("y")


def _load_images(name: str, folder: Path | None) -> tuple[Any, Any, str]:
    if folder is None and "ACCTSNE_DATA" in os.environ:
        folder = Path(os.environ["ACCTSNE_DATA"])
    if folder is not None:
        files = sorted(folder.glob(f"{name}*.npz"))
        if files:
            X, labels = _load_file(files[0])
            return X, labels, f"from {files[0].name}"
    published = OPENML_NAMES[name]
    try:
        with warnings.catch_warnings(action="ignore"):  # of the retry; the error below says it all
            X, labels = fetch_openml(
                published, version=1, return_X_y=True, as_frame=False, n_retries=1, delay=0.1
            )
    except (OSError, ValueError) as error:
        where = f"in {folder}" if folder else "(set ACCTSNE_DATA or --data to a folder)"
        raise DatasetError(
            f"{name}: no {name}*.npz {where}, and OpenML did not give {published}: {error}"
        ) from error
    return X, labels, f"OpenML {published}, version 1"


def _synthetic(name: str, limit: int | None) -> Dataset:
    match = re.fullmatch(r"synthetic:(\d+)(?:x(\d+))?", name)
    if match is None:
        raise DatasetError(f"{name!r} is not of the form synthetic:N or synthetic:NxD")
    n = int(match[1]) if limit is None else min(int(match[1]), limit)
    d = int(match[2] or 20)
    if n < 2 or d < 2:
        raise DatasetError(f"{name!r} is too small: at least 2 points and 2 dimensions are needed")
    X, labels = single_cell_like(n, d)
    note = (
        "synthetic: generated to resemble principal components of single-cell data, "
        f"{int((np.unique(labels) >= 0).sum())} clusters of very unequal size"
    )
    return Dataset(name, X, labels, True, note)


def single_cell_like(
    n: int, d: int, seed: int = 0
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]:
    """Generate n points that resemble d principal components of single-cell data.

    Cell types, each of several subtypes: clusters at two levels, of log-normal size, with random
    covariances, some stretched along a path as differentiating cells are, and a few points in
    between. The variance decays from the first component to the last. The clusters depend on the
    seed and d only, and points come in random order, so that fewer points are a sample of more.
    """
    rng = np.random.default_rng([seed, d])
    spectrum = np.arange(1, d + 1, dtype=np.float64) ** -0.7
    draw_leaf, weights = _make_clusters(rng, spectrum)

    X = np.empty((n, d), dtype=np.float32)
    labels = np.empty(n, dtype=np.int32)
    for block, start in enumerate(range(0, n, BLOCK)):
        stop = min(n, start + BLOCK)
        # A generator of its own for each block, always of full size: a point is the same whatever n
        # is.
        block_rng = np.random.default_rng([seed, d, block])
        leaves = block_rng.choice(len(weights), size=BLOCK, p=weights).astype(np.int32)
        leaves[block_rng.random(BLOCK) < BACKGROUND] = BACKGROUND_LABEL
        points = block_rng.standard_normal((BLOCK, d), dtype=np.float32)
        along = block_rng.random(BLOCK, dtype=np.float32) - np.float32(0.5)
        order = np.argsort(leaves, kind="stable")
        bounds = np.flatnonzero(np.diff(leaves[order], prepend=-2, append=len(weights)))
        for first, last in pairwise(bounds):
            rows = order[first:last]
            points[rows] = draw_leaf(int(leaves[rows[0]]), points[rows], along[rows])
        X[start:stop] = points[: stop - start]
        labels[start:stop] = leaves[: stop - start]
    return X, labels


DrawLeaf = Callable[
    [int, npt.NDArray[np.float32], npt.NDArray[np.float32]], npt.NDArray[np.float32]
]


def _make_clusters(
    rng: np.random.Generator, spectrum: npt.NDArray[np.float64]
) -> tuple[DrawLeaf, npt.NDArray[np.float64]]:
    """Lay out the clusters; return how to draw from one and how large each is."""
    d = len(spectrum)
    n_types = 16
    subtypes = rng.integers(1, 10, size=n_types)
    types = np.repeat(np.arange(n_types), subtypes)
    n_leaves = len(types)
    type_weights = rng.lognormal(sigma=1.0, size=n_types)
    weights = type_weights[types] * rng.lognormal(sigma=1.2, size=n_leaves)
    weights /= weights.sum()

    type_centers = 10.0 * rng.standard_normal((n_types, d)) * spectrum
    centers = type_centers[types] + 4.0 * rng.standard_normal((n_leaves, d)) * spectrum
    centers = centers.astype(np.float32)
    # A third of the clusters are paths, longer than they are wide.
    lengths = np.where(rng.random(n_leaves) < 1 / 3, rng.uniform(6, 16, n_leaves), 0.0)
    mixing, paths = [], []
    for _ in range(n_leaves):
        rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
        deviations = rng.uniform(0.5, 1.5) * spectrum * rng.lognormal(sigma=0.3, size=d)
        # A mild rotation keeps most of each component's variance where it was.
        mixing.append((deviations * (np.eye(d) + 0.3 * rotation)).astype(np.float32))
        direction = rng.standard_normal(d) * spectrum
        bend = rng.standard_normal(d) * spectrum
        paths.append(
            np.stack([direction / np.linalg.norm(direction), 0.5 * bend / np.linalg.norm(bend)])
        )

    def draw(
        leaf: int, normal: npt.NDArray[np.float32], along: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.float32]:
        if leaf == BACKGROUND_LABEL:
            background: npt.NDArray[np.float32] = normal * (10 * spectrum).astype(np.float32)
            return background
        direction, bend = (lengths[leaf] * paths[leaf]).astype(np.float32)
        path = along[:, None] * direction + 4 * np.square(along)[:, None] * bend
        drawn: npt.NDArray[np.float32] = centers[leaf] + normal @ mixing[leaf] + path
        return drawn

    return draw, weights
