"""The nearest rows of a reference to each of other rows."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from acctsne.neighbors.frame import Frame, find_frame
from acctsne.neighbors.nearest import query_neighbors
from acctsne.neighbors.records import SearchSettings

Array = npt.NDArray[Any]

METRICS = pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine", "correlation"])


def reference_and_queries(features: int, dtype: npt.DTypeLike = np.float64) -> tuple[Array, Array]:
    rng = np.random.default_rng(features)
    spread = np.linspace(3, 0.05, features)
    reference = rng.normal(size=(1500, features)) * spread
    return reference.astype(dtype), (rng.normal(size=(300, features)) * spread).astype(dtype)


@METRICS
@pytest.mark.parametrize("features", [3, 200])
def test_equals_brute_force(metric: str, features: int) -> None:
    reference, queries = reference_and_queries(features)
    indices, distances, *_ = query_neighbors(reference, queries, SearchSettings(25, metric))
    assert indices.dtype == np.int32
    assert indices.shape == distances.shape == (300, 25)
    all_pairs = cdist(queries, reference, metric)
    expected = np.argsort(all_pairs, axis=1, kind="stable")[:, :25]
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_allclose(distances, np.sort(all_pairs, axis=1)[:, :25], rtol=1e-9, atol=1e-15)


def test_equals_scikit_learn_on_float32() -> None:
    reference, queries = reference_and_queries(40, np.float32)
    indices, distances, *_ = query_neighbors(reference, queries, SearchSettings(25))
    search = NearestNeighbors(n_neighbors=25, algorithm="brute").fit(reference.astype(np.float64))
    expected = search.kneighbors(queries.astype(np.float64))
    np.testing.assert_array_equal(indices, expected[1])
    np.testing.assert_allclose(distances, expected[0], rtol=1e-5)
    assert distances.dtype == np.float32


@METRICS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("features", [3, 200])
def test_others_in_the_batch_do_not_matter(
    metric: str, features: int, dtype: npt.DTypeLike
) -> None:
    reference, queries = reference_and_queries(features, dtype)
    queries[7] *= 1e4  # far away, so that its cell is wide
    together = query_neighbors(reference, queries, SearchSettings(10, metric))[:2]
    order = np.random.default_rng(0).permutation(len(queries))
    shuffled = query_neighbors(reference, queries[order], SearchSettings(10, metric, threads=3))
    some = [0, 7, 8, 299]
    for found, again in zip(together, shuffled[:2], strict=True):
        assert found[order].tobytes() == again.tobytes()
    for query in some:
        alone = query_neighbors(reference, queries[query : query + 1], SearchSettings(10, metric))
        for found, again in zip(together, alone[:2], strict=True):
            assert found[query].tobytes() == again.tobytes()


def test_others_in_the_batch_do_not_matter_for_bytes() -> None:
    # So many features that sums in float are rounded, which whole numbers are not.
    rng = np.random.default_rng(0)
    reference = rng.integers(0, 256, size=(100, 16_000)).astype(np.float32)
    queries = rng.integers(0, 256, size=(6, 16_000)).astype(np.float32)
    squares = np.array(
        [np.square(query.astype(float) - reference).sum(axis=1) for query in queries]
    )
    order = squares.argsort(axis=1, kind="stable")[:, :10]
    expected = np.take_along_axis(squares, order, axis=1).astype(np.float32)

    def search(asked: Array) -> tuple[Array, Array]:
        return query_neighbors(reference, asked, SearchSettings(10, "sqeuclidean"))[:2]

    together = search(queries)
    with_another = search(np.vstack([queries, queries[:1] + 0.5]))
    alone = [search(queries[i : i + 1]) for i in range(3)]
    found = [together, with_another, tuple(map(np.vstack, zip(*alone, strict=True)))]
    for indices, distances in found:
        n = min(len(indices), len(queries))
        np.testing.assert_array_equal(indices[:n], order[:n])
        assert distances[:n].tobytes() == expected[:n].tobytes()


def test_ties_go_to_the_lower_index() -> None:
    rng = np.random.default_rng(0)
    reference = rng.integers(0, 4, size=(700, 3)).astype(float)
    queries = rng.integers(0, 4, size=(50, 3)).astype(float)
    indices, distances, *_ = query_neighbors(reference, queries, SearchSettings(30))
    all_pairs = cdist(queries, reference)
    expected = np.argsort(all_pairs, axis=1, kind="stable")[:, :30]
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(distances, np.take_along_axis(all_pairs, expected, axis=1))


def test_a_query_finds_itself() -> None:
    reference, _ = reference_and_queries(5)
    indices, distances, *_ = query_neighbors(reference, reference[100:110], SearchSettings(1))
    np.testing.assert_array_equal(indices[:, 0], np.arange(100, 110))
    assert not distances.any()


def test_all_of_the_reference() -> None:
    reference, queries = reference_and_queries(3)
    indices, *_ = query_neighbors(reference[:20], queries, SearchSettings(20))
    np.testing.assert_array_equal(np.sort(indices, axis=1), np.tile(np.arange(20), (300, 1)))


def test_zero_query_by_cosine() -> None:
    reference, _ = reference_and_queries(3)
    indices, distances, *_ = query_neighbors(
        reference, np.zeros((1, 3)), SearchSettings(4, "cosine")
    )
    assert indices.tolist() == [[0, 1, 2, 3]]
    assert distances.tolist() == [[1.0] * 4]


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_unit_of_the_data_does_not_matter(scale: float) -> None:
    reference, queries = reference_and_queries(3)
    expected = query_neighbors(reference, queries, SearchSettings(10))
    found = query_neighbors(reference * scale, queries * scale, SearchSettings(10))
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1] * scale, rtol=1e-12)


@pytest.mark.parametrize("features", [3, 200])
def test_the_frame_does_not_matter(features: int) -> None:
    reference, queries = reference_and_queries(features)
    expected = query_neighbors(reference, queries, SearchSettings(10))
    # One that was found for more neighbours, and a poor one: no axes, far off the centre.
    for frame in (find_frame(reference, 500, 2), Frame(1.0, np.full(features, 7.0), None)):
        found = query_neighbors(reference, queries, SearchSettings(10), frame)
        for array, again in zip(expected[:2], found[:2], strict=True):
            assert array.tobytes() == again.tobytes()


def test_mixed_precision_and_sparse() -> None:
    reference, queries = reference_and_queries(3)
    expected = query_neighbors(
        reference, queries.astype(np.float32).astype(np.float64), SearchSettings(10)
    )
    for X, Q in [
        (reference, queries.astype(np.float32)),
        (csr_matrix(reference), csr_matrix(queries.astype(np.float32))),
    ]:
        indices, distances, *_ = query_neighbors(X, Q, SearchSettings(10))
        np.testing.assert_array_equal(indices, expected[0])
        np.testing.assert_allclose(distances, expected[1])


def test_other_metrics() -> None:
    reference, queries = reference_and_queries(3)
    indices, distances, *_ = query_neighbors(
        reference, queries, SearchSettings(10, "minkowski", metric_params={"p": 3})
    )
    all_pairs = cdist(queries, reference, "minkowski", p=3)
    np.testing.assert_array_equal(indices, np.argsort(all_pairs, axis=1)[:, :10])
    np.testing.assert_allclose(distances, np.sort(all_pairs, axis=1)[:, :10])


class TestRefused:
    def test_features_that_differ(self) -> None:
        with pytest.raises(ValueError, match="queries have 4 features, and the reference has 3"):
            query_neighbors(np.zeros((5, 3)), np.zeros((5, 4)), SearchSettings(2))

    def test_too_many(self) -> None:
        with pytest.raises(ValueError, match=r"the reference's rows \(5\); got 6"):
            query_neighbors(np.zeros((5, 3)), np.zeros((5, 3)), SearchSettings(6))

    def test_precomputed(self) -> None:
        with pytest.raises(ValueError, match="precomputed"):
            query_neighbors(np.zeros((5, 5)), np.zeros((5, 5)), SearchSettings(2, "precomputed"))

    def test_query_beyond_all_measure(self) -> None:
        with pytest.raises(ValueError, match=r"size 1e\+20; .* within 1e\+15"):
            query_neighbors(np.eye(5), np.full((1, 5), 1e20), SearchSettings(2))

    def test_not_finite(self) -> None:
        with pytest.raises(ValueError, match="Input queries contains NaN"):
            query_neighbors(np.eye(5), np.full((1, 5), np.nan), SearchSettings(2))
