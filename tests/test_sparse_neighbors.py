"""Neighbours of sparse rows that stay sparse, against scikit-learn and the dense search."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_array, csr_matrix, random_array, vstack
from sklearn.metrics import pairwise_distances

from acctsne import TSNE, Affinities, nearest_neighbors
from acctsne.neighbors import metrics, nearest
from acctsne.neighbors.nearest import query_neighbors
from acctsne.neighbors.records import SearchSettings

Array = npt.NDArray[Any]
METRICS = ("euclidean", "sqeuclidean", "cosine", "correlation")


@pytest.fixture(autouse=True)
def kept_sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be made dense or left to a library, however small."""
    monkeypatch.setattr(metrics, "DENSE_FACTOR", 0)
    monkeypatch.setattr(metrics, "DENSE_BYTES", 0)
    monkeypatch.setattr(nearest, "library_neighbors", None)
    monkeypatch.setattr(nearest, "library_query", None)


def rows(n: int, seed: int = 0, dtype: Any = np.float64) -> csr_matrix:
    rng = np.random.default_rng(seed)
    sampler = rng.normal
    return csr_matrix(
        random_array((n, 60), density=0.2, rng=rng, data_sampler=lambda size: sampler(size=size)),
        dtype=dtype,
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", METRICS)
def test_nearest(metric: str, dtype: Any) -> None:
    X = rows(250, dtype=dtype)
    found = nearest_neighbors(X, 9, metric=metric)
    D = pairwise_distances(X.toarray().astype(np.float64), metric=metric)
    np.fill_diagonal(D, np.inf)
    assert found.mode == "exact"
    assert found.distances.dtype == dtype
    np.testing.assert_array_equal(found.indices, D.argsort(axis=1)[:, :9])
    np.testing.assert_allclose(found.distances, np.sort(D, axis=1)[:, :9], rtol=1e-6, atol=1e-12)


def test_short_rows_of_many_features() -> None:
    # Hashed words: an index of all columns for each thousand rows takes far more than the rows.
    n, features, filled = 70_000, 1 << 18, 3
    rng = np.random.default_rng(0)
    columns = rng.integers(0, 300, size=(n + 5, filled)) * 800
    values = rng.integers(1, 9, size=columns.shape).astype(np.float64)
    starts = np.arange(0, columns.size + 1, filled)
    X = csr_matrix((values.ravel(), columns.ravel(), starts), shape=(n + 5, features))
    X.sum_duplicates()
    X, asked = X[:n], X[n:]
    indices, distances, *_ = query_neighbors(X, asked, SearchSettings(6))
    squares = asked.power(2).sum(axis=1) + X.power(2).sum(axis=1).T - 2 * (asked @ X.T).toarray()
    order = np.asarray(squares).argsort(axis=1, kind="stable")[:, :6]
    np.testing.assert_array_equal(indices, order)
    expected = np.sqrt(np.take_along_axis(np.asarray(squares), order, axis=1))
    np.testing.assert_allclose(distances, expected, rtol=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_queries(metric: str) -> None:
    X, asked = rows(200), rows(70, seed=1)
    indices, distances, *_ = query_neighbors(X, asked.astype(np.float32), SearchSettings(6, metric))
    dense = asked.astype(np.float32).toarray().astype(np.float64)
    D = pairwise_distances(dense, X.toarray(), metric=metric)
    np.testing.assert_array_equal(indices, D.argsort(axis=1)[:, :6])
    np.testing.assert_allclose(distances, np.sort(D, axis=1)[:, :6], rtol=1e-9)


@pytest.mark.parametrize("metric", METRICS)
def test_ties_are_resolved_as_in_the_dense_search(metric: str) -> None:
    X = rows(120)
    X.data[:] = np.sign(X.data)  # few distances, many ties
    X = csr_matrix(vstack([X, X[:40]]))
    sparse = nearest_neighbors(X, 15, metric=metric)
    dense = nearest_neighbors(X.toarray(), 15, metric=metric)
    np.testing.assert_allclose(sparse.distances, dense.distances, atol=1e-7)
    if metric.endswith("euclidean"):  # without rounding, so that ties are ties
        np.testing.assert_array_equal(sparse.indices, dense.indices)
        np.testing.assert_array_equal(sparse.distances, dense.distances)


def test_rows_of_zeros_have_cosine_distance_1() -> None:
    X = rows(30).tolil()
    X[[4, 9]] = 0
    found = nearest_neighbors(X.tocsr(), 5, metric="cosine")
    assert found.indices[4].tolist() == [0, 1, 2, 3, 5]
    assert found.indices[9].tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(found.distances[[4, 9]], 1)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation"])
@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_extreme_values(metric: str, factor: float) -> None:
    X = rows(80)
    usual = nearest_neighbors(X, 5, metric=metric)
    extreme = nearest_neighbors(X * factor, 5, metric=metric)
    np.testing.assert_array_equal(extreme.indices, usual.indices)
    expected = usual.distances * (factor if metric == "euclidean" else 1)
    np.testing.assert_allclose(extreme.distances, expected, rtol=1e-9)


def test_queries_too_large_are_refused() -> None:
    with pytest.raises(ValueError, match=r"a query has a value of size .*e\+200"):
        query_neighbors(rows(30), rows(30) * 1e200, SearchSettings(3))


def test_entries_in_any_order_and_more_than_once() -> None:
    X = rows(50)
    other = csr_matrix(
        (
            np.concatenate([X.data[::-1] * 0.25, X.data[::-1] * 0.75]),
            (np.tile(X.tocoo().row[::-1], 2), np.tile(X.tocoo().col[::-1], 2)),
        ),
        shape=X.shape,
    )
    shuffled = csr_array((X.data.copy(), X.indices.copy(), X.indptr.copy()), shape=X.shape)
    for i in range(50):
        part = slice(X.indptr[i], X.indptr[i + 1])
        shuffled.data[part] = X.data[part][::-1]
        shuffled.indices[part] = X.indices[part][::-1]
    shuffled.has_sorted_indices = False
    expected = nearest_neighbors(X, 5).indices
    np.testing.assert_array_equal(nearest_neighbors(other, 5).indices, expected)
    np.testing.assert_array_equal(nearest_neighbors(shuffled, 5).indices, expected)


def test_constant_rows_are_refused_for_correlation() -> None:
    X = rows(30).tolil()
    X[7] = 0
    with pytest.raises(ValueError, match="row 7 of X is constant"):
        nearest_neighbors(X.tocsr(), 5, metric="correlation")


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_affinities_and_maps_are_those_of_dense_data(metric: str) -> None:
    X = rows(150)
    sparse = Affinities.from_data(X, perplexity=8, metric=metric, dtype=np.float64)
    dense = Affinities.from_data(X.toarray(), perplexity=8, metric=metric, dtype=np.float64)
    np.testing.assert_array_equal(sparse.columns, dense.columns)
    np.testing.assert_allclose(sparse.values, dense.values, rtol=1e-6)
    tsne = TSNE(perplexity=8, metric=metric, random_state=0).fit(X)
    np.testing.assert_array_equal(tsne.transform(X[:20]), tsne.embedding_[:20])


def test_threads_change_no_bits() -> None:
    X = rows(5000, dtype=np.float32)
    found = [nearest_neighbors(X, 12, n_jobs=jobs) for jobs in (1, 2, 3, 8)]
    for other in found[1:]:
        assert other.indices.tobytes() == found[0].indices.tobytes()
        assert other.distances.tobytes() == found[0].distances.tobytes()
