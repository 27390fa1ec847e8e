"""The report of every point, against scikit-learn and plain NumPy."""

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist
from sklearn.manifold import trustworthiness

from acctsne import quality
from acctsne.quality.report import Report
from helpers import plain_kl

Array = npt.NDArray[Any]


@pytest.fixture(scope="module")
def data() -> Array:
    """Points without ties, which scikit-learn breaks as its sort happens to."""
    rng = np.random.default_rng(1)
    X: Array = rng.normal(size=(300, 6))
    X[:150] += 3
    return X


@pytest.fixture(scope="module")
def layout(data: Array) -> Array:
    Y: Array = data[:, :2] + 0.4 * np.random.default_rng(2).normal(size=(300, 2))
    return Y


@pytest.fixture(scope="module")
def found(data: Array, layout: Array) -> Report:
    return quality.report(data, layout, n_neighbors=[5, 20, 80], perplexity=10)


def ranks(X: Array) -> Array:
    """Ranks of all others, 1 for the nearest; 0 for the point itself."""
    distances = cdist(X, X)
    np.fill_diagonal(distances, -1)
    order: Array = distances.argsort(axis=1).argsort(axis=1)
    return order


@pytest.mark.parametrize("k", [5, 20, 80])
def test_means_are_scikit_learns(data: Array, layout: Array, found: Report, k: int) -> None:
    trust = trustworthiness(data, layout, n_neighbors=k)
    assert found.means[f"trustworthiness_{k}"] == pytest.approx(trust, abs=1e-9)
    continuity = trustworthiness(layout, data, n_neighbors=k)
    assert found.means[f"continuity_{k}"] == pytest.approx(continuity, abs=1e-9)
    assert 0.5 < trust < 1
    assert found.means[f"trustworthiness_error_{k}"] == 0


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_other_metrics(data: Array, layout: Array, metric: str) -> None:
    trust = trustworthiness(data, layout, n_neighbors=12, metric=metric)
    mean = quality.report(data, layout, n_neighbors=12, metric=metric).means["trustworthiness_12"]
    assert mean == pytest.approx(trust, abs=1e-9)


def test_points_are_their_definition(data: Array, layout: Array, found: Report) -> None:
    in_data, in_map = ranks(data), ranks(layout)
    for s, k in enumerate(found.sizes):
        near = (in_map >= 1) & (in_map <= k)
        kept = (near & (in_data <= k)).sum(axis=1) / k
        np.testing.assert_allclose(found.kept[:, s], kept, rtol=1e-12)
        penalty = (np.maximum(in_data - k, 0) * near).sum(axis=1)
        worst = k * (2 * 300 - 3 * k - 1) / 2
        np.testing.assert_allclose(found.trustworthiness[:, s], 1 - penalty / worst, rtol=1e-12)


def test_shares_sum_to_the_divergence(data: Array, layout: Array, found: Report) -> None:
    P = quality.affinities(data, 10).toarray()
    assert found.kl.sum() == pytest.approx(plain_kl(P, layout), rel=1e-10)
    w = 1 / (1 + cdist(layout, layout, "sqeuclidean"))
    Q = w / (w.sum() - len(w))
    rows = np.where(P > 0, P * np.log(np.where(P > 0, P, 1) / Q), 0).sum(axis=1)
    np.testing.assert_allclose(found.kl, rows, atol=1e-12)


def test_means_and_a_sampled_normaliser(
    data: Array, layout: Array, found: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found.means["kl"] == pytest.approx(found.kl.sum())
    assert found.means["stretch"] == pytest.approx(np.abs(np.log2(found.stretch)).mean())
    assert found.means["kl_error"] == 0
    monkeypatch.setattr(sys.modules[Report.__module__], "EXACT_PAIRS", 300 * 100)
    some = quality.report(data, layout, n_neighbors=5, perplexity=10)
    assert 0 < abs(some.means["kl"] - found.means["kl"]) < 4 * some.means["kl_error"] < 0.4


def test_stretch(data: Array) -> None:
    assert np.allclose(quality.report(data, 7 * data, n_neighbors=5).stretch, 1)
    # One point moved far away: only it, and those that it is a neighbour of, are stretched.
    moved = data.copy()
    moved[0] += 100
    found = quality.report(data, moved, n_neighbors=5)
    assert found.stretch.argmax() == 0
    assert found.stretch[0] > 10 > np.median(found.stretch) == pytest.approx(1, rel=1e-6)


def test_perplexity_reached(data: Array, layout: Array) -> None:
    X = data.copy()
    X[:60] = X[0]  # more duplicates than the perplexity: these cannot reach it
    found = quality.report(X, layout, n_neighbors=5, perplexity=10)
    # Nor can the few whose neighbours are all among them.
    assert (np.abs(found.perplexity[60:] - 10) < 0.01).mean() > 0.95
    assert found.perplexity[:60].min() > 20


def test_sampled_ranks_come_with_their_error(data: Array, layout: Array, found: Report) -> None:
    z, of_points = [], []
    for seed in range(20):
        some = quality.report(
            data, layout, n_neighbors=[5, 20], perplexity=5, n_references=100, random_state=seed
        )
        np.testing.assert_array_equal(some.kept, found.kept[:, :2])
        for name in ("trustworthiness", "continuity"):
            error = some.means[f"{name}_20"] - found.means[f"{name}_20"]
            z.append(error / some.means[f"{name}_error_20"])
            points = getattr(some, name) - getattr(found, name)[:, :2]
            estimated = getattr(some, f"{name}_error")
            known = estimated == 0
            of_points.append(np.square(points[~known] / estimated[~known]).mean())
    # Errors in units of what was said: forty of means, and those of points.
    assert 0.6 < np.sqrt(np.mean(np.square(z))) < 1.6
    assert 0.6 < np.sqrt(np.mean(of_points)) < 1.6


def test_a_random_layout_is_seen_through(data: Array, layout: Array, found: Report) -> None:
    shuffled = np.random.default_rng(0).permutation(layout)
    wrong = quality.report(data, shuffled, n_neighbors=[5, 20, 80], perplexity=10)
    assert wrong.means["kept_5"] < 0.1 < found.means["kept_5"]
    assert wrong.means["trustworthiness_20"] == pytest.approx(0.5, abs=0.05)
    assert wrong.means["kl"] > found.means["kl"]


def test_a_torn_map_shows_where(data: Array) -> None:
    torn = np.where(data[:, :1] > 1.5, data + 50.0, data)
    found = quality.report(data, torn, n_neighbors=10)
    seam = np.abs(data[:, 0] - 1.5) < 0.3
    far = np.abs(data[:, 0] - 1.5) > 2
    assert found.continuity[seam].mean() < found.continuity[far].mean() - 0.02
    assert found.kl[seam].mean() > 2 * found.kl[far].mean()


def test_threads_change_no_bits(data: Array, layout: Array) -> None:
    for dtype in (np.float32, np.float64):
        columns = [
            quality.report(
                data.astype(dtype), layout, perplexity=10, n_references=150, n_jobs=jobs
            ).columns()
            for jobs in (1, 2, 3, 8)
        ]
        for other in columns[1:]:
            for name, values in columns[0].items():
                assert values.tobytes() == other[name].tobytes()


def test_sparse_data_and_any_array(data: Array, layout: Array, found: Report) -> None:
    sparse = quality.report(
        csr_matrix(data), layout.tolist(), n_neighbors=[5, 20, 80], perplexity=10
    )
    np.testing.assert_array_equal(sparse.trustworthiness, found.trustworthiness)


def test_tables(found: Report, tmp_path: Path) -> None:
    frame = found.to_frame()
    assert frame.shape == (300, 5 * 3 + 3)
    assert {"kept_5", "continuity_error_80", "kl", "stretch", "perplexity"} <= set(frame.columns)
    found.to_csv(tmp_path / "points.csv")
    with (tmp_path / "points.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 300
    assert float(rows[7]["trustworthiness_20"]) == pytest.approx(found.trustworthiness[7, 1])
    assert "kl=" in repr(found)


def test_small_data_has_small_neighbourhoods() -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    assert quality.report(X, X[:, :2], perplexity=5).sizes == (10,)
    assert quality.report(X[:4], X[:4, :2], perplexity=1).sizes == (1,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_neighbors": 150}, r"half of the other samples \(149\); got 150"),
        ({"n_neighbors": [0, 5]}, r"between 1 and .*got \[0, 5\]"),
        ({"n_neighbors": []}, r"between 1 and .*got \[\]"),
        ({"perplexity": 300}, r"n_samples \(300\); got 300"),
        ({"metric": "cityblock"}, "metric must be one of .*cityblock"),
        ({"n_references": 50}, "n_references must be None or at least 110.*got 50"),
        ({"n_jobs": 0}, "n_jobs == 0"),
    ],
)
def test_refused(data: Array, layout: Array, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quality.report(data, layout, **arguments)


def test_rows_must_fit(data: Array, layout: Array) -> None:
    with pytest.raises(ValueError, match=r"inconsistent .*\[300, 299\]"):
        quality.report(data, layout[:299])
    with pytest.raises(ValueError, match="NaN"):
        quality.report(data, np.where(np.arange(300)[:, None] == 3, np.nan, layout))
