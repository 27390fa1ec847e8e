"""The referee's figures, against plain NumPy and scikit-learn."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy.sparse import coo_array, csr_matrix, lil_matrix
from scipy.spatial.distance import cdist
from scipy.stats import mode
from sklearn.neighbors import NearestNeighbors

from acctsne import Affinities, quality
from helpers import plain_kl

Array = npt.NDArray[Any]


@pytest.fixture
def layout() -> Array:
    return 8 * np.random.default_rng(5).normal(size=(400, 2))


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("spread", [1e-4, 1.0, 1e3])
def test_exact_kl(some_digits_P: csr_matrix, dims: int, spread: float) -> None:
    Y = spread * np.random.default_rng(dims).normal(size=(400, dims))
    expected = plain_kl(some_digits_P.toarray(), Y)
    assert quality.exact_kl(None, Y, P=some_digits_P) == pytest.approx(expected, rel=1e-10)


def test_exact_kl_from_the_data(
    some_digits: tuple[Array, Array], some_digits_P: csr_matrix, layout: Array
) -> None:
    from_data = quality.exact_kl(some_digits[0], layout, perplexity=30.0, n_jobs=1)
    assert from_data == quality.exact_kl(None, layout, P=some_digits_P, n_jobs=2)


def test_exact_kl_takes_a_float32_embedding(some_digits_P: csr_matrix, layout: Array) -> None:
    single = layout.astype(np.float32)
    expected = quality.exact_kl(None, single.astype(np.float64), P=some_digits_P)
    assert quality.exact_kl(None, single, P=some_digits_P) == expected


def test_exact_kl_of_what_p_describes_is_zero() -> None:
    # Three points, equally far in the layout and in P.
    P = csr_matrix((np.ones((3, 3)) - np.eye(3)) / 6)
    Y = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
    assert quality.exact_kl(None, Y, P=P) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_exact_z(dims: int) -> None:
    Y = 5 * np.random.default_rng(dims).normal(size=(333, dims))
    w = 1 / (1 + cdist(Y, Y, "sqeuclidean"))
    assert quality.exact_z(Y) == pytest.approx(w.sum() - 333, rel=1e-12)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_force_error_of_exact_is_rounding(dims: int) -> None:
    Y = 10 * np.random.default_rng(0).normal(size=(700, dims))
    assert quality.force_error(Y, "exact", dtype=np.float32) < 1e-5
    assert quality.force_error(Y, "exact", dtype=np.float64) < 1e-12


def test_force_error_grows_with_the_angle(layouts: dict[str, Array]) -> None:
    errors = [quality.force_error(layouts["digits"], angle=a) for a in (0.0, 0.2, 0.5, 0.8)]
    assert errors == sorted(errors)
    assert errors[0] < 2e-6 < errors[1]


def test_affinities(some_digits: tuple[Array, Array], some_digits_P: csr_matrix) -> None:
    P = some_digits_P
    assert P.dtype == np.float64
    assert P.shape == (400, 400)
    assert P.sum() == pytest.approx(1.0, abs=1e-12)
    assert abs(P - P.T).max() == 0
    # Each row names its int(3 * 30 + 1) neighbours at least.
    assert np.diff(P.indptr).min() >= 91


def test_affinities_of_an_integer_perplexity(some_digits: tuple[Array, Array]) -> None:
    as_int = quality.affinities(some_digits[0], perplexity=30)
    as_float = quality.affinities(some_digits[0], perplexity=30.0)
    assert as_int.dtype == as_float.dtype == np.float64
    np.testing.assert_array_equal(as_int.data, as_float.data)


@pytest.mark.parametrize("n_neighbors", [1, 10, 50])
def test_neighbor_preservation(layout: Array, n_neighbors: int) -> None:
    # Continuous data: no ties for the two searches to break differently.
    X = np.random.default_rng(0).normal(size=(400, 6))
    X[:, :2] += layout

    def neighbors(of: Array) -> list[set[int]]:
        search = NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute").fit(of)
        return [set(row.tolist()) for row in search.kneighbors(return_distance=False)]

    pairs = zip(neighbors(X), neighbors(layout), strict=True)
    expected = np.mean([len(a & b) / n_neighbors for a, b in pairs])
    found = quality.neighbor_preservation(X, layout, n_neighbors)
    assert found == pytest.approx(expected, abs=1e-12)
    assert 0 < found < 1


@pytest.mark.parametrize("n_neighbors", [1, 5, 10])
def test_label_agreement(n_neighbors: int) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=300)
    Y = np.stack([np.cos(labels), np.sin(labels)], axis=1) + 0.5 * rng.normal(size=(300, 2))
    # Without an argument, kneighbors() leaves the point itself out; mode() takes the smallest of
    # labels with as many votes.
    search = NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute").fit(Y)
    voted = mode(labels[search.kneighbors(return_distance=False)], axis=1).mode
    found = quality.label_agreement(Y, labels, n_neighbors)
    assert found == pytest.approx((voted == labels).mean(), abs=1e-12)
    assert 0.3 < found < 1
    names = np.array(["a", "b", "c", "d"])[labels]
    assert quality.label_agreement(Y, names, n_neighbors) == found


@pytest.mark.parametrize("kind", ["series", "categorical", "list", "numbers"])
def test_points_without_a_label_are_left_out(kind: str) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=300)
    Y = np.stack([np.cos(labels), np.sin(labels)], axis=1) + 0.5 * rng.normal(size=(300, 2))
    some = rng.random(300) < 0.8
    names = np.array(["a", "b", "c", "d"], dtype=object)[labels]
    names[~some] = None
    given: dict[str, Any] = {
        "series": pd.Series(names),
        "categorical": pd.Series(names, dtype="category"),
        "list": [name if has else np.nan for name, has in zip(names, some, strict=True)],
        "numbers": np.where(some, labels, np.nan),
    }
    expected = quality.label_agreement(Y[some], labels[some])
    assert quality.label_agreement(Y, given[kind]) == expected < 1
    with pytest.raises(ValueError, match=r"only 2 of 300 points have a label.*less; got 10"):
        quality.label_agreement(Y, ["a", "b"] + 298 * [None])


def test_sparse_rows_are_those_of_a_dense_table(
    layout: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acctsne.neighbors.metrics.DENSE_FACTOR", 0)
    monkeypatch.setattr("acctsne.neighbors.metrics.DENSE_BYTES", 0)
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(400, 30)) * (rng.random((400, 30)) < 0.3)).astype(np.float32)
    for kind in (csr_matrix, coo_array, lil_matrix):
        sparse = kind(X)
        assert quality.exact_kl(sparse, layout) == pytest.approx(
            quality.exact_kl(X, layout), rel=1e-9
        )
        assert quality.neighbor_preservation(sparse, layout) == pytest.approx(
            quality.neighbor_preservation(X, layout), abs=1e-12
        )


class TestBadInput:
    Y = np.random.default_rng(0).normal(size=(30, 2))

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_not_finite(self, value: float) -> None:
        Y = self.Y.copy()
        Y[3, 1] = value
        for figure in (
            lambda: quality.exact_z(Y),
            lambda: quality.force_error(Y),
            lambda: quality.exact_kl(self.Y, Y, perplexity=5),
            lambda: quality.exact_kl(Y, self.Y, perplexity=5),
            lambda: quality.label_agreement(Y, np.zeros(30)),
            lambda: quality.neighbor_preservation(self.Y, Y),
            lambda: quality.affinities(Y, perplexity=5),
        ):
            with pytest.raises(ValueError, match=r"NaN|infinity"):
                figure()

    def test_not_a_table(self) -> None:
        with pytest.raises(ValueError, match="2D array"):
            quality.exact_z(np.zeros(5))

    def test_single_point(self) -> None:
        with pytest.raises(ValueError, match="minimum of 2"):
            quality.exact_z([[0.0, 0.0]])

    def test_rows_differ(self, some_digits_P: csr_matrix) -> None:
        with pytest.raises(ValueError, match=r"\(400, 400\).* 30 rows"):
            quality.exact_kl(None, self.Y, P=some_digits_P)
        with pytest.raises(ValueError, match=r"inconsistent .*\[30, 29\]"):
            quality.neighbor_preservation(self.Y, self.Y[:29])
        with pytest.raises(ValueError, match=r"inconsistent .*\[30, 29\]"):
            quality.label_agreement(self.Y, np.zeros(29))

    @pytest.mark.parametrize("n_neighbors", [0, 30])
    def test_number_of_neighbors(self, n_neighbors: int) -> None:
        with pytest.raises(ValueError, match=rf"n_samples - 1 \(29\); got {n_neighbors}"):
            quality.label_agreement(self.Y, np.zeros(30), n_neighbors)

    @pytest.mark.parametrize("perplexity", [-1.0, 0.0, 30.0, np.nan])
    def test_perplexity(self, perplexity: float) -> None:
        with pytest.raises(ValueError, match=rf"n_samples \(30\); got {perplexity}"):
            quality.affinities(self.Y, perplexity)

    def test_unknown_method(self) -> None:
        with pytest.raises(ValueError, match="umap"):
            quality.force_error(self.Y, "umap")

    def test_dtype(self) -> None:
        with pytest.raises((TypeError, ValueError), match=r"float32 or numpy\.float64.*int"):
            quality.force_error(self.Y, dtype=np.int32)

    def test_n_jobs(self) -> None:
        with pytest.raises(ValueError, match="n_jobs == 0"):
            quality.exact_z(self.Y, n_jobs=0)


def test_other_metrics_than_the_euclidean() -> None:
    X = np.random.default_rng(3).normal(size=(200, 5))
    unit = X / np.linalg.norm(X, axis=1)[:, None]
    for judge in (quality.neighbor_preservation, quality.exact_kl):
        with pytest.raises(ValueError, match=r"metric must be one of .*; got 'cityblock'"):
            judge(X, X[:, :2], 10, metric="cityblock")
    kept = quality.neighbor_preservation(X, X[:, :2], 10, metric="cosine")
    assert kept == quality.neighbor_preservation(unit, X[:, :2], 10)
    distances = cdist(X, X, "cosine")
    order = distances.argsort(axis=1)[:, 1:32]
    near = np.take_along_axis(distances, order, axis=1)
    P = Affinities.from_neighbors(order, near, perplexity=10, dtype=np.float64)
    exact = quality.exact_kl(None, X[:, :2], P=P)
    found = quality.exact_kl(X, X[:, :2], 10, metric="cosine")
    assert found == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("count", [5.5, "10", None, True])
def test_numbers_of_neighbours_are_whole(count: Any) -> None:
    X = np.random.default_rng(3).normal(size=(50, 2))
    with pytest.raises(TypeError, match=f"n_neighbors must be an integer; got {count!r}"):
        quality.neighbor_preservation(X, X, count)
    with pytest.raises(TypeError, match=f"n_neighbors must be an integer; got {count!r}"):
        quality.label_agreement(X, np.array([None, *([1] * 49)]), count)


@pytest.mark.parametrize("perplexity", ["10", "few", None, [5, 10]])
def test_perplexities_that_are_none(perplexity: Any) -> None:
    X = np.random.default_rng(3).normal(size=(50, 2))
    with pytest.raises(TypeError, match="perplexity must be a number, 'auto' or 'multiscale'; got"):
        quality.exact_kl(X, X, perplexity)


class TestGivenAffinities:
    """Those that exact_kl is given and takes the logarithms of."""

    Y = np.random.default_rng(3).normal(size=(50, 2))

    @pytest.mark.parametrize(("value", "said"), [(np.nan, "contains NaN"), (-1, "not be negative")])
    @pytest.mark.parametrize("form", [np.asarray, csr_matrix])
    def test_what_is_no_probability(self, form: Any, value: float, said: str) -> None:
        P = np.full((50, 50), 1 / 2500)
        P[3, 4] = value
        with pytest.raises(ValueError, match=f"P .*{said}"):
            quality.exact_kl(None, self.Y, P=form(P))

    @pytest.mark.parametrize("P", [np.zeros((50, 50)), np.eye(50)])
    @pytest.mark.parametrize("form", [np.asarray, csr_matrix])
    def test_no_affinity(self, form: Any, P: Array) -> None:
        with pytest.raises(ValueError, match="P has no affinity between different samples"):
            quality.exact_kl(None, self.Y, P=form(P))

    @pytest.mark.parametrize("factor", [2.0, 0.5, 2500.0])
    @pytest.mark.parametrize("form", [np.asarray, csr_matrix])
    def test_what_does_not_sum_to_one(self, form: Any, factor: float) -> None:
        P = factor * (1 - np.eye(50)) / 2450
        said = f"P sums to {factor:g} over pairs .* Affinities.from_matrix"
        with pytest.raises(ValueError, match=said):
            quality.exact_kl(None, self.Y, P=form(P))
        found = quality.exact_kl(None, self.Y, P=form(P / factor))
        made = Affinities.from_matrix(form(P), dtype=np.float64)
        assert quality.exact_kl(None, self.Y, P=made) == pytest.approx(found, rel=1e-9)

    def test_data_of_another_length_than_the_map(self) -> None:
        with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[40, 50\]"):
            quality.exact_kl(np.zeros((40, 3)), self.Y, 5)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"n_samples": 0}, "n_samples must be at least 1; got 0"),
        ({"angle": -1}, r"'angle' parameter of force_error must be .*\[0.0, 1.0\]"),
        ({"angle": "wide"}, r"'angle' parameter of force_error must be .*\[0.0, 1.0\]"),
        ({"method": "fft", "force_error": 0}, "'force_error' parameter of force_error must be"),
        ({"method": "tree"}, "'method' parameter of force_error must be a str among"),
    ],
)
def test_forces_by_no_method(wrong: dict[str, Any], said: str, layout: Array) -> None:
    with pytest.raises(ValueError, match=said):
        quality.force_error(layout, **wrong)


@pytest.mark.parametrize("metric", ["manhattan", "precomputed", len])
def test_metrics_for_which_affinities_are_given(metric: Any) -> None:
    X = np.random.default_rng(0).normal(size=(40, 4))
    made = "from_distances" if metric == "precomputed" else "from_data"
    with pytest.raises(ValueError, match=rf"exact_kl\(None, Y, P=Affinities\.{made}"):
        quality.exact_kl(X, X[:, :2], perplexity=5, metric=metric)


def test_the_divergence_of_a_metric_that_the_figures_do_not_have() -> None:
    X = np.random.default_rng(0).normal(size=(40, 4))
    D = np.abs(X[:, None] - X).sum(axis=2)
    given, known = (
        quality.exact_kl(None, X[:, :2], P=P)
        for P in (
            Affinities.from_data(X, metric="manhattan", perplexity=5),
            Affinities.from_distances(D, perplexity=5),
        )
    )
    assert given == pytest.approx(known, rel=1e-5)


def test_labels_of_several_types() -> None:
    labels = [7, "b", None, 2.5] * 20
    Y = np.random.default_rng(0).normal(size=(80, 2))
    named = ["x7" if one == 7 else one and f"y{one}" for one in labels]
    votes = [quality.label_agreement(Y, each, n_neighbors=1) for each in (labels, named)]
    assert votes[0] == votes[1]
    assert quality.label_agreement(Y[:2], [1, "1"], n_neighbors=1) == 0
    with pytest.raises(ValueError, match=r"labels must have one entry .* got shape \(80, 2\)"):
        quality.label_agreement(Y, Y)
