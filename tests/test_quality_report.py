"""The report of every point, against scikit-learn and plain NumPy."""

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import coo_array, csr_matrix, dok_array, lil_matrix
from scipy.spatial.distance import cdist
from sklearn.manifold import trustworthiness

from acctsne import Affinities, quality
from acctsne.quality.report import Report
from helpers import on_a_terminal, plain_kl

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


def ranks(X: Array, metric: str = "euclidean") -> Array:
    """Ranks of all others, 1 for the nearest; 0 for the point itself."""
    distances = cdist(X, X, metric)
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


@pytest.mark.parametrize("metric", ["cosine", "correlation", "sqeuclidean"])
def test_other_metrics(data: Array, layout: Array, metric: str) -> None:
    found = quality.report(data, layout, n_neighbors=12, perplexity=10, metric=metric)
    trust = trustworthiness(data, layout, n_neighbors=12, metric=metric)
    assert found.means["trustworthiness_12"] == pytest.approx(trust, abs=1e-9)
    P = Affinities.from_data(data, perplexity=10, metric=metric, dtype=np.float64)
    assert found.kl.sum() == pytest.approx(quality.exact_kl(None, layout, P=P), rel=1e-9)
    np.testing.assert_allclose(found.perplexity, 10, rtol=1e-4)
    distances = cdist(data, data, metric)
    nearest = ranks(data, metric).argsort(axis=1)[:, 1:13]
    in_map = np.linalg.norm(layout[:, None] - layout[nearest], axis=2).mean(axis=1)
    ratio = in_map / np.take_along_axis(distances, nearest, axis=1).mean(axis=1)
    np.testing.assert_allclose(found.stretch, ratio / np.median(ratio), rtol=1e-9)


def test_rows_of_zeros_are_as_far_from_everybody(data: Array, layout: Array) -> None:
    X = data.copy()
    zero = [3, 50, 200]
    X[zero] = 0
    how: dict[str, Any] = {"n_neighbors": 12, "perplexity": 10, "metric": "cosine"}
    found = quality.report(X, layout, **how)
    # Everybody has the same distance, so it is the index that orders them.
    in_map = ranks(layout).argsort(axis=1)[:, 1:13]
    for i in zero:
        order = np.delete(np.arange(300), i)
        rank = np.searchsorted(order, in_map[i]) + 1
        assert found.kept[i, 0] == pytest.approx((rank <= 12).mean())
        penalty = np.maximum(rank - 12, 0).sum() / (12 * (600 - 36 - 1) / 2)
        assert found.trustworthiness[i, 0] == pytest.approx(1 - penalty, rel=1e-12)
    P = Affinities.from_data(X, perplexity=10, metric="cosine", dtype=np.float64)
    assert found.kl.sum() == pytest.approx(quality.exact_kl(None, layout, P=P), rel=1e-9)
    # No sample is needed to know that.
    some = quality.report(X, layout, n_references=60, **how)
    np.testing.assert_array_equal(some.trustworthiness[zero], found.trustworthiness[zero])
    assert not some.trustworthiness_error[zero].any()


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


@pytest.mark.parametrize("stored", ["uint8", "float16", "float32"])
@pytest.mark.parametrize("n_references", [None, 120])
def test_data_as_it_is_stored(layout: Array, stored: str, n_references: int | None) -> None:
    """Whole numbers, which every type holds, and so many features that squares differ."""
    X = np.random.default_rng(5).integers(0, 256, size=(300, 40))
    sizes: dict[str, Any] = {"n_neighbors": [5, 20], "perplexity": 10}
    one, other = (
        quality.report(data, layout, n_references=n_references, **sizes)
        for data in (X.astype(np.float64), np.asfortranarray(X.astype(stored)))
    )
    for name, values in one.columns().items():
        np.testing.assert_allclose(values, other.columns()[name], rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("kind", [csr_matrix, coo_array, lil_matrix, dok_array])
def test_sparse_data_and_any_array(data: Array, layout: Array, found: Report, kind: Any) -> None:
    sparse = quality.report(kind(data), layout.tolist(), n_neighbors=[5, 20, 80], perplexity=10)
    np.testing.assert_array_equal(sparse.trustworthiness, found.trustworthiness)


@pytest.mark.parametrize(
    ("metric", "counts"),
    [
        ("euclidean", True),  # whole numbers, of which many distances are equal
        ("euclidean", False),
        ("sqeuclidean", False),
        ("cosine", False),
        ("correlation", False),
    ],
)
@pytest.mark.parametrize("n_references", [None, 120])
def test_sparse_rows_are_judged_as_dense_ones(
    metric: str, counts: bool, n_references: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(8)
    # Not so sparse that rows have no column in common: their cosine is 0 in sparse rows, and
    # differs from pair to pair by rounding in dense ones.
    X = rng.poisson(0.4 if counts else 2, (400, 30)).astype(np.float64)
    if not counts:
        X *= rng.normal(size=X.shape)
    X[50:60] = X[40:50]
    if metric == "cosine":
        X[[3, 70]] = 0
    Y = X[:, :2] + rng.normal(size=(400, 2))
    how: dict[str, Any] = {"n_neighbors": [5, 20], "perplexity": 10, "metric": metric}
    dense = quality.report(X, Y, n_references=n_references, **how)
    monkeypatch.setattr("acctsne.neighbors.metrics.DENSE_FACTOR", 0)
    monkeypatch.setattr("acctsne.neighbors.metrics.DENSE_BYTES", 0)
    monkeypatch.setattr("acctsne.quality.sparse_ranks.BLOCK_POINTS", 64)
    sparse = quality.report(coo_array(X), Y, n_references=n_references, **how)
    for name, values in dense.columns().items():
        found = sparse.columns()[name]
        np.testing.assert_allclose(values, found, rtol=1e-8, atol=1e-8, err_msg=name)
    assert sparse.means == pytest.approx(dense.means, rel=1e-8, abs=1e-8)


def test_many_neighbours_call_for_more_references() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(1100, 3)), rng.normal(size=(1100, 2))
    some = quality.report(X, Y, n_neighbors=10, perplexity=350)
    every = quality.report(X, Y, n_neighbors=10, perplexity=350, n_references=None)
    assert every.means["trustworthiness_error_10"] == 0 < some.means["trustworthiness_error_10"]
    error = some.means["trustworthiness_10"] - every.means["trustworthiness_10"]
    assert abs(error) < 5 * some.means["trustworthiness_error_10"]


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
        ({"n_neighbors": 5.5}, r"n_neighbors must be an integer; got 5\.5"),
        ({"n_neighbors": [5.5, 7]}, r"n_neighbors must be an integer; got 5\.5"),
        ({"n_neighbors": "10"}, "n_neighbors must be an integer; got '10'"),
        ({"n_references": 1200.5}, r"n_references must be an integer; got 1200\.5"),
        ({"perplexity": "few"}, "perplexity must be a number, 'auto' or 'multiscale'; got 'few'"),
        ({"n_references": 50}, "n_references must be .auto., None or at least 110.*got 50"),
        ({"n_references": "all"}, "n_references must be .auto.*got .all."),
        ({"n_jobs": 0}, "n_jobs == 0"),
    ],
)
def test_refused(data: Array, layout: Array, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        quality.report(data, layout, **arguments)


@pytest.mark.parametrize(
    ("word", "kind", "perplexity"),
    [("auto", "gaussian", 30), ("multiscale", "multiscale", [30, 64])],  # docs/parameters.md
)
def test_perplexities_that_are_words(word: Any, kind: str, perplexity: Any) -> None:
    X = np.random.default_rng(0).normal(size=(6400, 3))
    found = quality.report(X, X[:, :2], perplexity=word, n_neighbors=10)
    P = Affinities.from_data(X, perplexity=perplexity, kind=kind, dtype=np.float64)
    assert found.means["kl"] == pytest.approx(quality.exact_kl(None, X[:, :2], P=P), rel=1e-9)
    assert quality.exact_kl(X, X[:, :2], word) == pytest.approx(found.means["kl"], rel=1e-9)


def test_progress_of_every_stage() -> None:
    program = """
import numpy as np
from acctsne import quality
X = np.random.default_rng(0).normal(size=(400, 5))
quality.report(X, X[:, :2], verbose={verbose})
"""
    written = on_a_terminal(program.format(verbose=1))
    stages = ["neighbors", "neighbors in the map", "ranks in the data", "ranks in the map"]
    places = [written.index(f"{stage}: ") for stage in [*stages, "shares of the KL divergence"]]
    assert places == sorted(places)
    assert on_a_terminal(program.format(verbose=0)) == ""


def test_rows_must_fit(data: Array, layout: Array) -> None:
    with pytest.raises(ValueError, match=r"inconsistent .*\[300, 299\]"):
        quality.report(data, layout[:299])
    with pytest.raises(ValueError, match="NaN"):
        quality.report(data, np.where(np.arange(300)[:, None] == 3, np.nan, layout))


def test_maps_whose_distances_overflow(data: Array, layout: Array) -> None:
    large = layout / np.abs(layout).max()
    assert np.isfinite(quality.report(data, large * 1e150, n_neighbors=10).kl).all()
    with pytest.raises(ValueError, match=r"Y has a coordinate of size 1e\+160; .* within 1e\+150"):
        quality.report(data, large * 1e160, n_neighbors=10)
