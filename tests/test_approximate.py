"""The approximate search: recall, its estimate, determinism, and when it is chosen."""

import logging
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from acctsne import TSNE, Affinities, _core, nearest_neighbors
from acctsne.neighbors.euclidean import chosen_mode
from acctsne.neighbors.frame import find_frame

Array = npt.NDArray[Any]


def clustered(n: int, features: int, dtype: npt.DTypeLike = np.float32) -> Array:
    """Clusters of very unequal size and width, and some points in between."""
    rng = np.random.default_rng(3)
    spread = np.arange(1, features + 1) ** -0.7
    weights = rng.lognormal(sigma=1.2, size=40)
    cluster = rng.choice(40, size=n, p=weights / weights.sum())
    centers = 8 * rng.normal(size=(40, features)) * spread
    widths = rng.lognormal(sigma=0.4, size=(40, features))
    X = centers[cluster] + rng.normal(size=(n, features)) * spread * widths[cluster]
    X[::100] = 8 * rng.normal(size=(len(X[::100]), features)) * spread
    return X.astype(dtype)


def recall_of(found: Any, X: Array) -> float:
    exact = nearest_neighbors(X, found.indices.shape[1], mode="exact")
    return float((found.distances <= exact.distances[:, -1:]).mean())


@pytest.mark.parametrize(("n", "features"), [(25_000, 20), (8_000, 200)])
def test_recall_and_its_estimate(n: int, features: int) -> None:
    X = clustered(n, features)
    found = nearest_neighbors(X, 90, mode="approximate", random_state=0)
    assert found.mode == "approximate"
    recall = recall_of(found, X)
    assert recall >= 0.99
    assert abs(found.recall - recall) < 0.005
    assert (np.diff(found.distances, axis=1) >= 0).all()
    assert (found.indices != np.arange(n)[:, None]).all()
    rows = np.arange(0, n, n // 50)
    assert all(len(set(found.indices[row].tolist())) == 90 for row in rows)
    given = np.linalg.norm(X[found.indices[rows]] - X[rows][:, None], axis=2)
    np.testing.assert_allclose(found.distances[rows], given, rtol=1e-5)


def test_projection_has_the_same_bytes_at_any_thread_count() -> None:
    # So wide that BLAS would share one block among its threads.
    X = clustered(5424, 784)
    frame = find_frame(X, 90, 2)
    assert frame.axes is not None
    projections = [frame.project(X, threads) for threads in (1, 2, 3, 8)]
    for projection in projections[1:]:
        assert projection.coordinates.tobytes() == projections[0].coordinates.tobytes()
        assert projection.squared_norms.tobytes() == projections[0].squared_norms.tobytes()


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_by_angle(metric: str) -> None:
    X = clustered(6000, 12, np.float64) + 3
    found = nearest_neighbors(X, 30, metric=metric, mode="approximate", random_state=0)
    exact = nearest_neighbors(X, 30, metric=metric, mode="exact")
    assert (found.distances <= exact.distances[:, -1:]).mean() >= 0.99


@pytest.mark.parametrize("level", _core.build_info()["simd_levels_usable"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_bytes_at_any_thread_count(level: str, dtype: npt.DTypeLike) -> None:
    X = clustered(4001, 30, dtype)
    before = _core.build_info()["simd_level"]
    try:
        _core.use_simd_level(level)
        results = [
            nearest_neighbors(X, 40, mode="approximate", n_jobs=threads, random_state=1)
            for threads in (1, 2, 3, 8)
        ]
    finally:
        _core.use_simd_level(before)
    for result in results[1:]:
        assert result.indices.tobytes() == results[0].indices.tobytes()
        assert result.distances.tobytes() == results[0].distances.tobytes()
        assert result.recall == results[0].recall


def test_bad_recall_is_not_hidden() -> None:
    # Noise without leading axes or clusters: no cell is likelier than another to hold neighbours.
    X = np.random.default_rng(0).uniform(size=(8_000, 150)).astype(np.float32)
    found = nearest_neighbors(X, 10, mode="approximate", random_state=0)
    assert abs(found.recall - recall_of(found, X)) < 0.02


@pytest.mark.parametrize(
    ("n_samples", "n_features", "mode"),
    [
        (70_000, 784, "exact"),
        (60_000, 3072, "exact"),
        (300_000, 50, "exact"),
        (400_000, 20, "exact"),
        (200_000, 128, "approximate"),
        (1_000_000, 20, "approximate"),
        (1_300_000, 50, "approximate"),
    ],
)
def test_auto(n_samples: int, n_features: int, mode: str) -> None:
    assert chosen_mode("auto", n_samples, n_features) == mode
    for forced in ("exact", "approximate"):
        assert chosen_mode(forced, n_samples, n_features) == forced


def test_fit_says_which_recall_it_had(caplog: pytest.LogCaptureFixture) -> None:
    X = clustered(800, 10)
    with caplog.at_level(logging.INFO, logger="acctsne"):
        tsne = TSNE(neighbors="approximate", max_iter=250, random_state=0, verbose=1).fit(X)
    assert 0.9 < tsne.timings_["recall"] <= 1
    assert "approximate neighbours: estimated recall" in caplog.text
    exact = TSNE(neighbors="exact", max_iter=250, random_state=0).fit(X)
    assert exact.timings_["recall"] == 1


def test_affinities_draw_their_sample_from_the_random_state() -> None:
    X = clustered(800, 10)
    given, same = np.random.RandomState(0), np.random.RandomState(0)
    Affinities.from_data(X, perplexity=10, neighbors="approximate", random_state=given)
    nearest_neighbors(X, 31, mode="approximate", random_state=same)
    drawn = given.randint(2**31, size=4)
    assert (drawn == same.randint(2**31, size=4)).all()
    assert (drawn != np.random.RandomState(0).randint(2**31, size=4)).any()


def test_neighbors_is_checked() -> None:
    with pytest.raises(ValueError, match="'neighbors' parameter of TSNE must be a str among"):
        TSNE(neighbors="some").fit(clustered(50, 3))  # type: ignore[arg-type]
