"""If you run only one file, run this one: does the package import, fit and tell what it did?"""

from typing import Any

import numpy as np
import numpy.typing as npt

import acctsne
from acctsne import TSNE, build_info

Digits = tuple[npt.NDArray[Any], npt.NDArray[Any]]


def test_public_names() -> None:
    assert set(acctsne.__all__) == {
        "TSNE",
        "Affinities",
        "AlignedTSNE",
        "Embedding",
        "__version__",
        "build_info",
        "init",
        "nearest_neighbors",
        "patch_sklearn",
        "quality",
        "unpatch_sklearn",
    }
    for name in acctsne.__all__:
        assert hasattr(acctsne, name)


def test_fit_digits(some_digits: Digits) -> None:
    X, y = some_digits
    tsne = TSNE(random_state=0)
    embedding = tsne.fit_transform(X)

    assert embedding.shape == (400, 2)
    assert embedding.dtype == np.float32
    assert np.isfinite(embedding).all()
    assert embedding.std() > 1  # it has left the initial layout, whose deviation is 1e-4
    np.testing.assert_array_equal(tsne.embedding_, embedding)

    assert 0 < tsne.kl_divergence_ < 2
    assert 100 < tsne.n_iter_ < 500  # it ends when the map is done
    assert tsne.learning_rate_ > 0
    assert tsne.n_features_in_ == 64
    assert acctsne.quality.label_agreement(embedding, y) > 0.9


def test_fit_returns_the_estimator(some_digits: Digits) -> None:
    tsne = TSNE(max_iter=250)
    assert tsne.fit(some_digits[0]) is tsne
    assert tsne.embedding_.shape == (400, 2)


def test_timings_name_every_step(some_digits: Digits) -> None:
    timings = TSNE(max_iter=250, tol=0, method="barnes_hut").fit(some_digits[0]).timings_
    steps = {
        "knn",
        "bsp",
        "symmetrize",
        "init",
        "tree_building",
        "summarization",
        "attractive",
        "repulsive",
        "update",
        "kl_divergence",
        "relabel",
    }
    assert set(timings) == steps | {"total", "iterations_barnes_hut", "recall"}
    assert timings["iterations_barnes_hut"] == 250
    assert all(seconds > 0 for seconds in timings.values())
    # Steps do not overlap, so together they cannot take longer than the whole.
    assert sum(timings[step] for step in steps) <= timings["total"]


def test_build_info() -> None:
    info = build_info()
    assert set(info) == {"compiler", "simd_levels_built", "simd_levels_usable", "simd_level"}
    assert info["compiler"].split()[0] in {"gcc", "clang"}
    assert info["simd_level"] in info["simd_levels_usable"]
    assert "baseline" in info["simd_levels_usable"]
    assert set(info["simd_levels_usable"]) <= set(info["simd_levels_built"])
