"""Neighbours that the user brings: distance matrices, sparse graphs, pairs of arrays."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import coo_matrix, csr_array, csr_matrix, dia_matrix, lil_matrix
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsTransformer, NearestNeighbors, kneighbors_graph

from acctsne import TSNE, nearest_neighbors
from acctsne.neighbors.given import squared
from acctsne.neighbors.records import NearestNeighborsResult
from helpers import affinities_by, neighbors_by

Array = npt.NDArray[Any]

N = 90
K = 22  # int(3 * 7 + 1)


def given(**parameters: Any) -> TSNE:
    settings = {"metric": "precomputed", "init": "random", "perplexity": 7, "dtype": np.float64}
    return TSNE(**{**settings, **parameters})


@pytest.fixture(name="X")
def data() -> Array:
    return np.random.default_rng(0).normal(size=(N, 4))


@pytest.fixture(name="pair")
def indices_and_distances(X: Array) -> tuple[Array, Array]:
    """One neighbour more than is needed, without the sample itself."""
    distances, indices = NearestNeighbors(n_neighbors=K + 1, algorithm="brute").fit(X).kneighbors()
    return indices, distances


def shuffled_rows(graph: csr_matrix) -> csr_matrix:
    """The same graph, each row's entries in another order."""
    rng = np.random.default_rng(1)
    indices, values = graph.indices.copy(), graph.data.copy()
    for start, stop in zip(graph.indptr[:-1], graph.indptr[1:], strict=True):
        order = start + rng.permutation(stop - start)
        indices[start:stop], values[start:stop] = graph.indices[order], graph.data[order]
    return csr_matrix((values, indices, graph.indptr), shape=graph.shape)


class TestEqualsDirect:
    """Whoever found the neighbours, the affinities are those that we find."""

    @pytest.fixture(name="expected")
    def direct(self, X: Array) -> Array:
        return affinities_by(TSNE(perplexity=7, dtype=np.float64), X)

    @pytest.mark.parametrize("method", ["barnes_hut", "exact"])
    def test_dense(self, X: Array, method: str) -> None:
        distances = cdist(X, X)
        distances[5, 5] = 3.0  # whatever the diagonal says
        expected = affinities_by(TSNE(perplexity=7, dtype=np.float64, method=method), X)
        P = affinities_by(given(method=method), distances)
        np.testing.assert_allclose(P, expected, atol=1e-15, rtol=1e-7)

    def test_transformer_with_itself(self, X: Array, expected: Array) -> None:
        graph = KNeighborsTransformer(n_neighbors=K, mode="distance").fit_transform(X)
        assert (graph.diagonal() == 0).all()
        assert graph.nnz == N * (K + 1)  # the zeros are stored
        np.testing.assert_allclose(affinities_by(given(), graph), expected, rtol=1e-7, atol=1e-15)

    @pytest.mark.parametrize(
        "kind", [csr_matrix, csr_array, coo_matrix, dia_matrix, lil_matrix, shuffled_rows]
    )
    @pytest.mark.filterwarnings("ignore:Constructing a DIA matrix")
    def test_graph_without_itself(self, X: Array, expected: Array, kind: Any) -> None:
        graph = kind(kneighbors_graph(X, K, mode="distance"))
        np.testing.assert_allclose(affinities_by(given(), graph), expected, rtol=1e-7, atol=1e-15)

    def test_rows_of_different_lengths(self, X: Array, expected: Array) -> None:
        distances = cdist(X, X)
        nearest = np.sort(distances, axis=1)
        # 22 others in most rows, 40 in some, and all in one.
        limits = np.where(np.arange(N) % 3 == 0, nearest[:, 40], nearest[:, K])
        limits[4] = np.inf
        graph = csr_matrix(np.where(distances <= limits[:, None], distances, 0))
        assert len(set(np.diff(graph.indptr))) == 3
        np.testing.assert_allclose(affinities_by(given(), graph), expected, rtol=1e-7, atol=1e-15)

    def test_pair(self, pair: tuple[Array, Array], expected: Array) -> None:
        np.testing.assert_allclose(affinities_by(given(), pair), expected, rtol=1e-7, atol=1e-15)

    def test_pair_with_itself_unsorted_and_of_other_types(
        self, pair: tuple[Array, Array], expected: Array
    ) -> None:
        own = np.arange(N)[:, None]
        indices = np.column_stack([pair[0], own])[:, ::-1].astype(np.uint16)
        distances = np.column_stack([pair[1], 0 * own])[:, ::-1].astype(np.float32)
        P = affinities_by(given(), (indices.tolist(), distances))
        np.testing.assert_allclose(P, expected, rtol=1e-5, atol=1e-8)

    def test_whole_fit(self, X: Array, pair: tuple[Array, Array]) -> None:
        tsne = given(random_state=0, max_iter=250)
        embedding = tsne.fit_transform(pair)
        direct = TSNE(
            init="random", random_state=0, max_iter=250, perplexity=7, dtype=np.float64
        ).fit_transform(X)
        np.testing.assert_allclose(embedding, direct, atol=1e-6 * np.abs(direct).max())
        assert tsne.timings_["recall"] == 1.0
        assert tsne.n_features_in_ == N

    def test_public_function(self, X: Array, pair: tuple[Array, Array]) -> None:
        expected = nearest_neighbors(X, 5)
        for graph in (pair, kneighbors_graph(X, 9, mode="distance"), cdist(X, X)):
            found = nearest_neighbors(graph, 5, metric="precomputed")
            np.testing.assert_array_equal(found.indices, expected.indices)
            np.testing.assert_allclose(found.distances, expected.distances, rtol=1e-6)
            assert (found.mode, found.recall) == ("exact", 1.0)


def test_zero_distances_are_neighbors() -> None:
    # Duplicates are stored zeros in the graph; they are neighbours, not missing entries.
    X = np.repeat(np.random.default_rng(0).normal(size=(30, 3)), 2, axis=0)
    graph = kneighbors_graph(X, 17, mode="distance", include_self=True)
    found = neighbors_by(given(perplexity=5), graph)
    np.testing.assert_array_equal(found.indices[:, 0], np.arange(60) ^ 1)
    assert not found.squared_distances[:, 0].any()


def test_diagonals_of_a_line_of_points() -> None:
    offsets = np.arange(-3, 4)  # the zeros of the main one are stored
    graph = dia_matrix((np.abs(offsets)[:, None] * np.ones(N), offsets), shape=(N, N))
    found = nearest_neighbors(graph, 3, metric="precomputed")
    assert found.indices[[0, 45]].tolist() == [[1, 2, 3], [44, 46, 43]]
    assert found.distances[[0, 45]].tolist() == [[1, 2, 3], [1, 1, 2]]


def test_many_blocks_of_rows(monkeypatch: pytest.MonkeyPatch, X: Array) -> None:
    graph = shuffled_rows(kneighbors_graph(X, K, mode="distance", include_self=True))
    expected = nearest_neighbors(graph, 9, metric="precomputed")
    dense = nearest_neighbors(cdist(X, X), 9, metric="precomputed")
    monkeypatch.setattr("acctsne.neighbors.given.BLOCK_ELEMENTS", 50)
    found = nearest_neighbors(graph, 9, metric="precomputed")
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.distances, expected.distances)
    found = nearest_neighbors(cdist(X, X), 9, metric="precomputed")
    np.testing.assert_array_equal(found.indices, dense.indices)


def test_squares_of_many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acctsne.neighbors.given.BLOCK_ELEMENTS", 50)
    distances = np.random.default_rng(0).random((23, 9))
    distances[21, 4] = 8  # the largest, in the last block
    indices = np.zeros(distances.shape, dtype=np.int32)
    found = squared(NearestNeighborsResult(indices, distances), np.dtype(np.float64))
    assert found.scale == 1 / 8
    np.testing.assert_array_equal(found.squared_distances, (distances / 8) ** 2)
    for wrong in (np.nan, -1.0):
        distances[22, 8] = wrong
        with pytest.raises(ValueError, match="finite and not negative"):
            squared(NearestNeighborsResult(indices, distances), np.dtype(np.float64))


@pytest.mark.parametrize("dtype", [np.uint8, np.float16])
def test_small_types_of_dense_distances(X: Array, dtype: Any) -> None:
    distances = (20 * cdist(X, X)).astype(dtype)
    found = nearest_neighbors(distances, 5, metric="precomputed")
    expected = nearest_neighbors(distances.astype(np.float32), 5, metric="precomputed")
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.distances, np.sort(distances, axis=1)[:, 1:6])
    assert found.distances.dtype == np.float32


class TestTooFew:
    def test_fewer_than_wanted_but_enough(self, X: Array) -> None:
        graph = kneighbors_graph(X, 12, mode="distance")
        with pytest.warns(UserWarning, match=r"12 neighbours where 22 are called for: 12"):
            indices = neighbors_by(given(), graph).indices
        assert indices.shape == (N, 12)

    def test_the_smallest_row_decides(self, X: Array) -> None:
        graph = kneighbors_graph(X, 20, mode="distance").tolil()
        graph[31, graph.rows[31][:9]] = 0
        with pytest.warns(UserWarning, match=r"row 31 .* has 11 neighbours.* 22 .*: 11 are used"):
            indices = neighbors_by(given(), graph.tocsr()).indices
        assert indices.shape == (N, 11)

    def test_fewer_than_the_perplexity_needs(self, X: Array) -> None:
        graph = kneighbors_graph(X, 20, mode="distance").tolil()
        graph[31, graph.rows[31][:13]] = 0
        message = r"9 neighbors per samples .* only 8.*row 31 .* has 7 others.*22.*perplexity"
        with pytest.raises(ValueError, match=message):
            given().fit(graph.tocsr())

    def test_public_function(self, X: Array) -> None:
        graph = kneighbors_graph(X, 12, mode="distance")
        with pytest.raises(ValueError, match=r"row 0 of the graph has 12 others\. .* 13"):
            nearest_neighbors(graph, 13, metric="precomputed")

    def test_empty_rows(self) -> None:
        with pytest.raises(ValueError, match="row 0 of the graph has 0 others"):
            given().fit(csr_matrix((N, N)))


class TestRefused:
    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (np.nan, "row 8 of the graph has a distance that is not finite: nan"),
            (np.inf, "row 8 of the graph has a distance that is not finite: inf"),
            (-2.5, r"row 8 of the graph has the distance -2\.5.* positive"),
        ],
    )
    def test_wrong_distance(
        self, pair: tuple[Array, Array], X: Array, value: float, message: str
    ) -> None:
        pair[1][8, 3] = value
        with pytest.raises(ValueError, match=message):
            given().fit(pair)
        graph = kneighbors_graph(X, K, mode="distance")
        graph.data[graph.indptr[8] + 3] = value
        with pytest.raises(ValueError, match=message):
            given().fit(graph)

    @pytest.mark.parametrize("index", [-1, N])
    def test_index_out_of_range(self, pair: tuple[Array, Array], index: int) -> None:
        pair[0][8, 3] = index
        with pytest.raises(ValueError, match=rf"row 8 .* neighbour {index}; .* {N} samples"):
            given().fit(pair)

    def test_duplicated_in_pair(self, pair: tuple[Array, Array]) -> None:
        pair[0][8, 3] = pair[0][8, 17]
        with pytest.raises(ValueError, match=f"row 8 .* neighbour {pair[0][8, 3]} twice"):
            given().fit(pair)

    def test_duplicated_in_coo(self, X: Array) -> None:
        graph = kneighbors_graph(X, K, mode="distance").tocoo()
        graph.col[8 * K + 3] = graph.col[8 * K + 17]
        with pytest.raises(ValueError, match="row 8 of the graph names a neighbour twice"):
            given().fit(graph)

    def test_indices_that_are_not_integers(self, pair: tuple[Array, Array]) -> None:
        with pytest.raises(ValueError, match=r"array of integers.*float64"):
            given().fit((pair[0].astype(float), pair[1]))

    def test_shapes_that_differ(self, pair: tuple[Array, Array]) -> None:
        with pytest.raises(ValueError, match=r"\(90, 23\) and \(90, 22\)"):
            given().fit((pair[0], pair[1][:, :-1]))

    def test_not_two_arrays(self, pair: tuple[Array, Array]) -> None:
        with pytest.raises(ValueError, match=r"\(indices, distances\); got 3 arrays"):
            given().fit((*pair, pair[1]))

    def test_one_dimension(self, pair: tuple[Array, Array]) -> None:
        with pytest.raises(ValueError, match="got 1 dimensions"):
            given().fit((pair[0][:, 0], pair[1][:, 0]))

    def test_not_square(self, X: Array) -> None:
        with pytest.raises(ValueError, match="square distance matrix"):
            nearest_neighbors(cdist(X, X)[:-1], 5, metric="precomputed")

    def test_negative_among_dense_distances(
        self, X: Array, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        distances = cdist(X, X)
        distances[41, 7] = -0.5
        monkeypatch.setattr("acctsne.neighbors.given.BLOCK_ELEMENTS", 10 * N)
        with pytest.raises(ValueError, match=r"row 41 of the graph has the distance -0\.5"):
            nearest_neighbors(distances, 5, metric="precomputed")

    def test_pair_without_precomputed(self, pair: tuple[Array, Array]) -> None:
        with pytest.raises(ValueError, match="dim 3"):
            TSNE().fit(pair)
