"""Neighbours by other metrics than the Euclidean."""

import re
import sys
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

from acctsne import TSNE, Affinities, nearest_neighbors
from acctsne.neighbors.nearest import query_neighbors
from acctsne.neighbors.records import SearchSettings
from helpers import affinities_by, neighbors_by

Array = npt.NDArray[Any]

BY_ANGLE = pytest.mark.parametrize("metric", ["cosine", "correlation"])


def skewed(n: int = 600, features: int = 30) -> Array:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, features)) * np.linspace(3, 0.1, features) + 1


def all_but_itself(X: Array, metric: str) -> Array:
    distances: Array = pairwise_distances(X, metric=metric)
    np.fill_diagonal(distances, np.inf)
    return distances


class TestByAngle:
    @BY_ANGLE
    def test_equals_scikit_learn(self, metric: str) -> None:
        X = skewed()
        found = nearest_neighbors(X, 25, metric=metric)
        expected = np.sort(all_but_itself(X, metric), axis=1)[:, :25]
        np.testing.assert_allclose(found.distances, expected, rtol=1e-9)
        search = NearestNeighbors(n_neighbors=25, metric=metric, algorithm="brute").fit(X)
        np.testing.assert_array_equal(found.indices, search.kneighbors()[1])
        assert (found.mode, found.recall) == ("exact", 1.0)

    @BY_ANGLE
    def test_float32(self, metric: str) -> None:
        X = skewed().astype(np.float32)
        found = nearest_neighbors(X, 25, metric=metric)
        assert found.distances.dtype == np.float32
        expected = np.sort(all_but_itself(X.astype(np.float64), metric), axis=1)[:, :25]
        np.testing.assert_allclose(found.distances, expected, rtol=1e-5)

    @BY_ANGLE
    def test_small_distances(self, metric: str) -> None:
        # Close to one direction: 1 - a.b would keep hardly a digit.
        rng = np.random.default_rng(0)
        X = rng.normal(size=8) + 1e-7 * rng.normal(size=(300, 8))
        found = nearest_neighbors(X, 10, metric=metric)
        wide = X.astype(np.longdouble)
        if metric == "correlation":
            wide -= wide.mean(axis=1, keepdims=True)
        wide /= np.sqrt(np.square(wide).sum(axis=1, keepdims=True))
        exact = (np.square(wide[:, None] - wide).sum(axis=2) / 2).astype(np.float64)
        np.fill_diagonal(exact, np.inf)
        assert exact.min() < 1e-14
        # Rounding a row to length 1 moves it by 1e-16, against distances of 1e-7.
        np.testing.assert_allclose(found.distances, np.sort(exact, axis=1)[:, :10], rtol=1e-7)

    @BY_ANGLE
    @pytest.mark.parametrize("scale", [1e-200, 1e200])
    def test_length_of_rows_does_not_matter(self, metric: str, scale: float) -> None:
        X = skewed()
        expected = nearest_neighbors(X, 10, metric=metric)
        X[::2] *= scale
        found = nearest_neighbors(X, 10, metric=metric)
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_allclose(found.distances, expected.distances, rtol=1e-9)

    def test_opposite_directions(self) -> None:
        found = nearest_neighbors([[1.0, 0], [-2.0, 0], [0, 3.0]], 2, metric="cosine")
        assert found.indices.tolist() == [[2, 1], [2, 0], [0, 1]]
        np.testing.assert_allclose(found.distances, [[1, 2], [1, 2], [1, 1]], rtol=1e-15)

    def test_zero_rows_are_at_distance_one_from_all(self) -> None:
        X = skewed(300)
        X[[3, 50]] = 0
        X[60:] = np.abs(X[60:])
        found = nearest_neighbors(X, 299, metric="cosine")
        expected = all_but_itself(X, "cosine")  # scikit-learn's convention
        np.testing.assert_allclose(found.distances, np.sort(expected, axis=1)[:, :299], rtol=1e-9)
        assert (found.distances[[3, 50]] == 1).all()
        assert found.indices[3, :5].tolist() == [0, 1, 2, 4, 5]
        own = np.take_along_axis(expected, found.indices.astype(np.intp), axis=1)
        np.testing.assert_allclose(found.distances, own, rtol=1e-9)

    @pytest.mark.parametrize("value", [0.0, 0.1])
    def test_constant_rows_have_no_correlation(self, value: float) -> None:
        X = skewed()
        X[17] = value
        with pytest.raises(ValueError, match="row 17 of X is constant"):
            nearest_neighbors(X, 5, metric="correlation")
        with pytest.raises(ValueError, match="row 17 of X is constant"):
            TSNE(metric="correlation").fit(X)


@pytest.mark.parametrize(
    ("metric", "same", "params"),
    [
        ("l2", "euclidean", None),
        ("minkowski", "euclidean", None),
        ("minkowski", "euclidean", {"p": 2}),
        ("l1", "manhattan", None),
        ("cityblock", "manhattan", None),
    ],
)
def test_names_of_one_metric(metric: str, same: str, params: dict[str, Any] | None) -> None:
    X = skewed()
    found = nearest_neighbors(X, 10, metric=metric, metric_params=params)
    expected = nearest_neighbors(X, 10, metric=same)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.distances, expected.distances)


@pytest.mark.parametrize("unit", [1e-100, 1e100])
def test_squares_of_any_unit(unit: float) -> None:
    X = skewed(100, 4)
    expected = nearest_neighbors(X, 5, metric="sqeuclidean").distances
    found = nearest_neighbors(X * unit, 5, metric="sqeuclidean").distances
    np.testing.assert_allclose(found, expected * unit**2, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_opposite_rows_are_at_cosine_distance_two_and_not_more(dtype: npt.DTypeLike) -> None:
    rows = np.random.default_rng(0).normal(size=(200, 7)).astype(dtype)
    for row in rows:
        found = nearest_neighbors(np.stack([row, -row]), 1, metric="cosine")
        assert (found.distances <= 2).all()
        np.testing.assert_allclose(found.distances, 2, rtol=1e-6)


def test_sqeuclidean_is_the_square() -> None:
    X = skewed()
    found = nearest_neighbors(X, 10, metric="sqeuclidean")
    expected = nearest_neighbors(X, 10)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.distances, np.square(expected.distances), rtol=1e-14)


@pytest.mark.parametrize("metric", ["sqeuclidean", "cosine", "correlation", "manhattan"])
@pytest.mark.parametrize("sparse", [False, True])
def test_affinities_do_not_depend_on_who_computes(metric: str, sparse: bool) -> None:
    # Dense rows run natively, a matrix of distances through the graph: the same squares enter.
    X = np.abs(skewed(120, 8))
    given = TSNE(metric="precomputed", init="random", perplexity=8, dtype=np.float64)
    direct = TSNE(metric=metric, init="random", perplexity=8, dtype=np.float64)
    P = []
    for tsne, data in [
        (given, pairwise_distances(X, metric=metric)),
        (direct, csr_matrix(X) if sparse else X),
    ]:
        P.append(affinities_by(tsne, data))
    np.testing.assert_allclose(P[1], P[0], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
@pytest.mark.parametrize("dense_bytes", [0, 2**30])
def test_sparse_equals_dense(
    metric: str, dense_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acctsne.neighbors.metrics.DENSE_BYTES", dense_bytes)
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(200, 60))) * (rng.random((200, 60)) < 0.1)
    X[np.arange(200), np.arange(200) % 60] += 0.1  # no row of zeros
    found = nearest_neighbors(csr_matrix(X), 10, metric=metric)
    expected = nearest_neighbors(X, 10, metric=metric)
    np.testing.assert_allclose(found.distances, expected.distances, rtol=1e-7, atol=1e-12)
    own = np.take_along_axis(
        pairwise_distances(X, metric=metric), found.indices.astype(np.intp), axis=1
    )
    np.testing.assert_allclose(found.distances, own, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan", "minkowski"])
def test_sparse_rows_in_any_order_and_in_parts(
    metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acctsne.neighbors.metrics.DENSE_BYTES", 0)
    rng = np.random.default_rng(0)
    columns = rng.integers(0, 60, (100, 8))  # not in order, and some twice
    X = csr_matrix((rng.random(800) + 0.1, columns.ravel(), np.arange(0, 801, 8)), shape=(100, 60))
    dense = X.toarray()
    found = nearest_neighbors(X.copy(), 10, metric=metric)
    expected = nearest_neighbors(dense, 10, metric=metric)
    np.testing.assert_allclose(found.distances, expected.distances, rtol=1e-7, atol=1e-12)
    for method in ("exact", "barnes_hut"):
        tsne = TSNE(metric=metric, perplexity=5, method=method, init="random", random_state=0)
        given, whole = (neighbors_by(tsne, data) for data in (X.copy(), dense))
        ratio = given.scale / whole.scale
        squared = whole.squared_distances * ratio**2
        np.testing.assert_allclose(given.squared_distances, squared, rtol=1e-5)
        tsne.fit(X.copy())
        np.testing.assert_array_equal(tsne.transform(csr_matrix(dense[:9])), tsne.embedding_[:9])
    assert not X.has_sorted_indices


def taxi(a: Array, b: Array, p: float = 1.0) -> float:
    return float(p * np.abs(a - b).sum())


class TestOthers:
    def test_callable_and_params(self) -> None:
        X = skewed(100, 4)

        def weighted(a: Array, b: Array, weight: float) -> float:
            return float(weight * np.abs(a - b).max())

        found = nearest_neighbors(X, 7, metric=weighted, metric_params={"weight": 2.0})
        expected = np.sort(cdist(X, X, "chebyshev"), axis=1)[:, 1:8]
        np.testing.assert_allclose(found.distances, 2 * expected)

    @pytest.mark.parametrize(
        "value", [np.nan, np.inf, -1.0, -2.0, "far", "1.5", None, 1j, [1.0]], ids=repr
    )
    def test_metric_that_gives_no_distance(self, value: Any) -> None:
        X = skewed(100, 4)

        def metric(a: Array, b: Array) -> Any:
            pair = {float(a[0]), float(b[0])} == {float(X[7, 0]), float(X[9, 0])}
            return value if pair else np.abs(a - b).sum()

        said = rf"metric given is not correct: it gave {re.escape(repr(value))} for rows [79] and "
        # All pairs, and a tree of scikit-learn's.
        for method in ("exact", "barnes_hut"):
            with pytest.raises(ValueError, match=said):
                TSNE(metric=metric, method=method, perplexity=3).fit(X)
        with pytest.raises(ValueError, match=said):
            nearest_neighbors(X, 99, metric=metric)
        with pytest.raises(ValueError, match=said):
            query_neighbors(X, X[:10], SearchSettings(100, metric))

    def test_metric_that_never_gives_a_distance(self) -> None:
        with pytest.raises(ValueError, match=r"it gave nan( for rows \d+ and \d+)? instead"):
            nearest_neighbors(skewed(100, 4), 5, metric=lambda _a, _b: np.nan)
        with pytest.raises(ValueError, match="it gave -3 instead"):
            nearest_neighbors(csr_matrix(skewed(100, 4)), 5, metric=lambda _a, _b: -3)

    def test_named_metric_that_gives_no_distance(self) -> None:
        # An inverse covariance that is none: all squared distances are negative.
        tsne = TSNE(metric="mahalanobis", metric_params={"VI": -np.eye(4)}, method="exact")
        with pytest.raises(ValueError, match="it gave a distance that is negative or not finite"):
            tsne.fit(skewed(100, 4))

    def test_what_a_metric_raises_passes_through(self) -> None:
        def metric(_a: Array, _b: Array) -> float:
            raise ZeroDivisionError("of its own")

        for method in ("exact", "barnes_hut"):
            with pytest.raises(ZeroDivisionError, match="of its own"):
                TSNE(metric=metric, method=method, perplexity=3).fit(skewed(100, 4))

    @pytest.mark.parametrize(
        ("metric", "params", "said"),
        [
            ("euclidean", {"foo": 1}, r"metric='euclidean' .* metric_params=\{'foo': 1\}: .*'foo'"),
            ("manhattan", {"p": 3}, r"metric='manhattan' .* metric_params=\{'p': 3\}: .*'p'"),
            ("cosine", {"metric": "l1"}, r"metric='cosine' .* metric_params=\{'metric': 'l1'\}: "),
            ("minkowski", {"p": -1}, r"metric='minkowski' .* metric_params=\{'p': -1\}: "),
            ("minkowski", {"w": [1, 2]}, r"metric='minkowski' .*\{'w': \[1, 2\]\}: "),
            ("mahalanobis", {"VI": "x"}, r"metric='mahalanobis' .*\{'VI': 'x'\}: "),
            ("euclidean", {1: 2}, r"metric_params must .* by their names; got \{1: 2\}"),
            (taxi, {"foo": 1}, r"metric=<function taxi.* metric_params=\{'foo': 1\}: .*'foo'"),
        ],
    )
    def test_parameters_that_a_metric_does_not_take(
        self, metric: Any, params: Any, said: str
    ) -> None:
        X = skewed(40, 4)
        fitted = TSNE(perplexity=3, max_iter=250).fit(X)
        fitted.set_params(metric=metric, metric_params=params)
        for call in (
            lambda: nearest_neighbors(X, 3, metric=metric, metric_params=params),
            lambda: TSNE(metric=metric, metric_params=params, perplexity=3).fit(X),
            lambda: TSNE(metric=metric, metric_params=params, perplexity=3, method="exact").fit(X),
            lambda: Affinities.from_data(X, perplexity=3, metric=metric, metric_params=params),
            lambda: fitted.transform(X[:2]),
        ):
            with pytest.raises(ValueError, match=said):
                call()

    def test_parameters_that_are_no_dictionary(self) -> None:
        for params in ("foo", [1], 3):
            with pytest.raises(TypeError, match="metric_params must be a dictionary"):
                nearest_neighbors(skewed(), 3, metric_params=cast(Any, params))

    def test_parameters_that_are_missing(self) -> None:
        with pytest.raises(ValueError, match=r"metric='seuclidean' .* without metric_params"):
            nearest_neighbors(skewed(), 3, metric="seuclidean")

    def test_a_function_gets_all_its_parameters(self) -> None:
        X = skewed(40, 4)
        found = nearest_neighbors(X, 5, metric=taxi, metric_params={"p": 3.0})
        expected = nearest_neighbors(X, 5, metric="manhattan")
        np.testing.assert_allclose(found.distances, 3 * expected.distances)

    def test_unknown_metric(self) -> None:
        with pytest.raises(ValueError, match=r"metric must be .*; got 'crow'"):
            nearest_neighbors(skewed(), 5, metric="crow")

    def test_approximate_without_pynndescent(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pynndescent", None)
        monkeypatch.setattr("acctsne.neighbors.libraries.FEW_SAMPLES", 0)
        with pytest.raises(ImportError, match=r"pip install 'acctsne\[pynndescent\]'"):
            nearest_neighbors(skewed(), 5, metric="manhattan", mode="approximate")

    def test_approximate_of_a_metric_that_nobody_approximates(self) -> None:
        with pytest.raises(ValueError, match=r"'seuclidean'; it does serve braycurtis"):
            nearest_neighbors(skewed(), 5, metric="seuclidean", mode="approximate")
        with pytest.raises(ValueError, match=r"numba\.njit"):
            nearest_neighbors(skewed(), 5, metric=lambda a, b: abs(a - b).sum(), mode="approximate")


def test_few_samples_need_no_pynndescent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynndescent", None)
    found = nearest_neighbors(skewed(), 5, metric="manhattan", mode="approximate")
    assert (found.mode, found.recall) == ("exact", 1.0)


@pytest.mark.filterwarnings("ignore:Data was converted to boolean")
def test_rows_that_a_metric_is_not_defined_for() -> None:
    X = np.random.default_rng(0).random((60, 6)) < 0.6
    X[[7, 21]] = False
    with pytest.raises(ValueError, match=r"for \d+ of 60 rows: .*use another metric"):
        nearest_neighbors(X, 59, metric="sokalsneath")
    with pytest.raises(ValueError, match=r"the metric given is not correct"):
        TSNE(metric="sokalsneath", perplexity=19.9, init="random").fit(X)


def test_pynndescent() -> None:
    pytest.importorskip("pynndescent")
    X = skewed(2100, 8)
    found = nearest_neighbors(X, 15, metric="manhattan", mode="approximate", random_state=0)
    assert found.mode == "approximate"
    assert (found.indices != np.arange(2100)[:, None]).all()
    all_pairs = cdist(X, X, "cityblock")
    own = np.take_along_axis(all_pairs, found.indices.astype(np.intp), axis=1)
    np.testing.assert_allclose(found.distances, own, rtol=1e-5)
    np.fill_diagonal(all_pairs, np.inf)
    limits = np.partition(all_pairs, 14, axis=1)[:, 14:15]
    true_recall = (own <= limits).mean()
    assert true_recall > 0.9
    assert abs(found.recall - true_recall) < 0.02
