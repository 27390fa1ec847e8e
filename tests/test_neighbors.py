"""The nearest neighbours that a fit uses: native Euclidean search, other metrics, sparse input."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from acctsne import TSNE, init, quality
from acctsne.neighbors.euclidean import exact_neighbors, search
from acctsne.neighbors.records import SearchSettings
from helpers import affinities_by, neighbors_by

Array = npt.NDArray[Any]


def native(X: Array, k: int, threads: int = 2) -> tuple[Array, Array]:
    found = exact_neighbors(X, SearchSettings(k, dtype=np.dtype(np.float64), threads=threads))
    unscaled: Array = np.asarray(found.squared_distances, dtype=np.float64) / found.scale**2
    return np.asarray(found.indices), unscaled


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("rows", "features", "k"),
    [
        (2, 1, 1),
        (50, 3, 49),  # everybody is a neighbour: no filter
        (517, 5, 91),
        (1003, 1, 10),  # one feature
        (700, 300, 20),  # many features: blocks of few queries
    ],
)
def test_equals_brute_force(rows: int, features: int, k: int, dtype: npt.DTypeLike) -> None:
    X = np.random.default_rng(rows).normal(size=(rows, features)).astype(dtype)
    indices, squared = native(X, k)
    assert indices.dtype == np.int32
    # The reference in double precision, whatever X is: so do we.
    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(X.astype(np.float64))
    distances, expected = search.kneighbors()
    np.testing.assert_allclose(np.sqrt(squared), distances, rtol=1e-7, atol=1e-7)
    # Where the indices differ, the distances are equal to the last bit.
    all_pairs = cdist(X.astype(np.float64), X.astype(np.float64))
    query, place = np.nonzero(indices != expected)
    np.testing.assert_array_equal(
        all_pairs[query, indices[query, place]], all_pairs[query, expected[query, place]]
    )
    assert len(query) < 0.001 * indices.size


def test_digits_with_their_ties(digits: tuple[Array, Array]) -> None:
    # Integers: distances are exact, and many are equal. The order among equals is by index.
    X = np.ascontiguousarray(digits[0])
    indices, squared = native(X, 91)
    all_pairs = cdist(X, X, "sqeuclidean")
    np.fill_diagonal(all_pairs, np.inf)
    expected = np.argsort(all_pairs, axis=1, kind="stable")[:, :91]
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(squared, np.take_along_axis(all_pairs, expected, axis=1))


def test_duplicates_are_neighbors_of_each_other() -> None:
    X = np.repeat(np.random.default_rng(0).normal(size=(20, 3)), 30, axis=0)
    indices, squared = native(X, 29)
    assert not squared.any()
    np.testing.assert_array_equal(
        indices // 30, np.repeat(np.arange(20), 30)[:, None].repeat(29, 1)
    )
    assert (indices != np.arange(600)[:, None]).all()


@pytest.mark.parametrize("factor", [1e-200, 1e-20, 1e20, 1e200])
def test_unit_of_the_data_does_not_matter(factor: float) -> None:
    X = np.random.default_rng(0).normal(size=(300, 4))
    expected, expected_squared = native(X, 15)
    found = exact_neighbors(X * factor, SearchSettings(15, dtype=np.dtype(np.float64)))
    np.testing.assert_array_equal(found.indices, expected)
    ratio = np.asarray(found.squared_distances) / expected_squared
    np.testing.assert_allclose(ratio, (factor * found.scale) ** 2, rtol=1e-9)


class TestOffset:
    """Float64 data far from the origin: |x|^2 - 2 x.y + |y|^2 would cancel to nothing."""

    OFFSET = 1e9

    def test_neighbors_exactly_where_the_offset_rounds_nothing(self) -> None:
        # Multiples of the spacing of doubles at 1e9: adding the offset is exact.
        spacing = 2.0**-23
        X = np.round(np.random.default_rng(0).normal(size=(600, 6)) / spacing) * spacing
        shifted = X + self.OFFSET
        np.testing.assert_array_equal(shifted - self.OFFSET, X)
        for found, expected in zip(native(shifted, 30), native(X, 30), strict=True):
            np.testing.assert_array_equal(found, expected)

    def test_distances_to_the_rounding_of_the_offset(self) -> None:
        X = np.random.default_rng(1).normal(size=(600, 6))
        _, squared = native(X + self.OFFSET, 30)
        _, expected = native(X, 30)
        # Each coordinate moves by up to 2^-24, twice in a difference, over 6 features.
        np.testing.assert_allclose(
            np.sqrt(squared), np.sqrt(expected), rtol=0, atol=2 * 2.0**-24 * np.sqrt(6)
        )

    def test_initial_layout(self, digits: tuple[Array, Array]) -> None:
        # Principal axes do not depend on where the origin is.
        X = digits[0]
        near = init.pca(X)
        far = init.pca(X + self.OFFSET)
        for axis in range(2):
            assert np.corrcoef(near[:, axis], far[:, axis])[0, 1] > 0.999

    def test_embedding_is_as_good(self, some_digits: tuple[Array, Array]) -> None:
        X, y = some_digits
        P = quality.affinities(X)
        near = TSNE(random_state=0, max_iter=500).fit_transform(X)
        far = TSNE(random_state=0, max_iter=500).fit_transform(X + self.OFFSET)
        assert quality.exact_kl(None, far, P=P) < 1.1 * quality.exact_kl(None, near, P=P)
        assert quality.label_agreement(far, y) > quality.label_agreement(near, y) - 0.02


def by_callable(x: Array, y: Array) -> float:
    return float(np.abs(x - y).max())


@pytest.mark.parametrize("method", ["barnes_hut", "exact"])
@pytest.mark.parametrize(
    ("metric", "params", "reference"),
    [
        ("manhattan", None, {"metric": "cityblock"}),
        ("cosine", None, {"metric": "cosine"}),
        ("chebyshev", None, {"metric": "chebyshev"}),
        (by_callable, None, {"metric": "chebyshev"}),
        ("mahalanobis", {"VI": np.diag([3.0, 2.0, 1.0])},
         {"metric": "mahalanobis", "VI": np.diag([3.0, 2.0, 1.0])}),
        ("seuclidean", {"V": np.array([1.0, 4.0, 9.0])},
         {"metric": "seuclidean", "V": np.array([1.0, 4.0, 9.0])}),
    ],
)  # fmt: skip
def test_other_metrics(
    metric: str | Callable[..., float],
    params: dict[str, Any] | None,
    reference: dict[str, Any],
    method: str,
) -> None:
    X = np.random.default_rng(0).normal(size=(80, 3)) * [1.0, 2.0, 3.0]
    tsne = TSNE(
        metric=metric, metric_params=params, method=method, perplexity=6, dtype=np.float64, n_jobs=2
    )
    found = neighbors_by(tsne, X)
    indices, squared = found.indices, found.squared_distances
    distances = cdist(X, X, **reference)
    k = 19 if method == "barnes_hut" else 79
    assert indices.shape == (80, k)
    assert (indices != np.arange(80)[:, None]).all()
    # It is the square that enters, in a unit that is common to all.
    of_found = np.square(np.take_along_axis(distances, indices.astype(np.intp), axis=1))
    np.testing.assert_allclose(squared / squared.max(), of_found / of_found.max(), atol=1e-9)
    np.fill_diagonal(distances, np.inf)
    nearest = np.square(np.sort(distances, axis=1)[:, :k])
    np.testing.assert_allclose(np.sort(of_found, axis=1), nearest, atol=1e-9)


@pytest.mark.parametrize("method", ["barnes_hut", "exact"])
def test_sparse_equals_dense(method: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 12)) * (rng.random((90, 12)) < 0.4)
    tsne = TSNE(method=method, perplexity=7, dtype=np.float64, init="random", random_state=0)
    P = affinities_by(tsne, csr_matrix(X))
    np.testing.assert_allclose(P, affinities_by(tsne, X), atol=1e-12, rtol=1e-7)
    assert np.isfinite(tsne.set_params(max_iter=250).fit_transform(csr_matrix(X))).all()


@pytest.mark.parametrize("mode", ["exact", "approximate"])
def test_principal_components_come_with_the_search(mode: str) -> None:
    # 300 features of falling variance: more than the search has axes.
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 300)) * 0.98 ** np.arange(300) @ rng.normal(size=(300, 300))
    X = np.ascontiguousarray(X, dtype=np.float32)
    found = search(X, SearchSettings(20, mode=mode, threads=2, n_components=3)).components
    assert found is not None
    expected = PCA(3, svd_solver="full").fit_transform(X.astype(np.float64))
    for axis in range(3):
        assert np.corrcoef(found[:, axis], expected[:, axis])[0, 1] > 0.9999
    assert np.abs(found.mean(axis=0)).max() < 1e-3 * found.std()
