"""From squared distances to joint probabilities."""

import logging
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_matrix
from sklearn.manifold._t_sne import _joint_probabilities_nn
from sklearn.neighbors import NearestNeighbors

from acctsne import _core
from acctsne.affinities.affinities import joint_probabilities
from acctsne.affinities.similarity import Similarity
from acctsne.neighbors.records import Neighbors
from helpers import row_perplexities

Array = npt.NDArray[Any]


def neighbors_of(X: Array, k: int) -> tuple[Array, Array]:
    """Neighbours by scikit-learn: indices and squared distances, without the sample itself."""
    distances, indices = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(X).kneighbors()
    return indices.astype(np.int32), np.square(distances)


@pytest.mark.parametrize("perplexity", [5.0, 30.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equals_scikit_learn(
    some_digits: tuple[Array, Array], perplexity: float, dtype: npt.DTypeLike
) -> None:
    X = some_digits[0]
    n = len(X)
    k = int(3 * perplexity + 1)
    indices, squared = neighbors_of(X, k)
    graph = csr_matrix((squared.ravel(), indices.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    expected = _joint_probabilities_nn(graph.copy(), perplexity, 0)
    neighbors = Neighbors(indices, squared.astype(dtype))
    found = joint_probabilities(neighbors, Similarity("gaussian", (perplexity,)), 2).to_scipy()

    assert found.dtype == dtype
    assert found.nnz == expected.nnz
    difference = abs(found - expected)
    assert difference.max() < 1e-6
    # Both sum to 1, so this bounds the relative error of the typical element. scikit-learn stops
    # its search when the entropy is right to 1e-5.
    assert difference.sum() < 3e-5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("perplexity", [1.5, 5.0, 30.0, 80.0])
def test_every_row_has_the_perplexity_asked_for(
    some_digits: tuple[Array, Array], perplexity: float, dtype: npt.DTypeLike
) -> None:
    # Without ties, which digits have: two nearest neighbours leave no perplexity below 2.
    X = some_digits[0] + np.random.default_rng(0).uniform(size=some_digits[0].shape)
    _, squared = neighbors_of(X, 90)
    squared = squared.astype(dtype)
    conditional, betas, perplexities, missed = _core.search_perplexity(squared, perplexity, 2)
    assert conditional.dtype == dtype
    assert missed == 0
    np.testing.assert_allclose(row_perplexities(conditional), perplexity, rtol=0, atol=1e-4)
    np.testing.assert_allclose(perplexities, perplexity, rtol=0, atol=1e-7)
    # The rows are Gaussians of the betas returned.
    given = squared.astype(np.float64)
    kernel = np.exp(-betas[:, None] * (given - given.min(axis=1, keepdims=True)))
    kernel /= kernel.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(conditional, kernel, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("factor", [1e-250, 1e-30, 1e30, 1e250])
def test_unit_of_the_distances_does_not_matter(factor: float) -> None:
    squared = np.random.default_rng(0).chisquare(5, size=(50, 30))
    expected, _, _, _ = _core.search_perplexity(squared, 8.0, 1)
    found, _, _, missed = _core.search_perplexity(squared * factor, 8.0, 1)
    assert missed == 0
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_distance_common_to_all_neighbors_does_not_matter() -> None:
    # In many dimensions neighbours are all nearly as far: exp(-beta d^2) itself would vanish.
    squared = np.random.default_rng(0).integers(0, 1000, size=(50, 30)).astype(np.float64)
    expected, _, _, _ = _core.search_perplexity(squared, 8.0, 1)
    found, _, _, missed = _core.search_perplexity(squared + 2.0**40, 8.0, 1)
    assert missed == 0
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [0.0, 1e-30, 1.0, 1e30])
def test_equal_distances_give_equal_probabilities(dtype: npt.DTypeLike, value: float) -> None:
    squared = np.full((3, 10), value, dtype=dtype)
    conditional, betas, perplexities, missed = _core.search_perplexity(squared, 4.0, 1)
    np.testing.assert_allclose(conditional, 0.1, rtol=1e-6)
    assert np.isfinite(betas).all()
    np.testing.assert_allclose(perplexities, 10.0)
    assert missed == 3  # perplexity 10 is all there is
    _, _, _, missed = _core.search_perplexity(squared, 10.0, 1)
    assert missed == 0


def test_more_duplicates_than_the_perplexity() -> None:
    # 6 neighbours in the same place, perplexity 4: the nearest possible is uniform over the 6.
    squared = np.array([[0.0] * 6 + [1.0, 2.0, 3.0, 4.0]])
    conditional, _, _, missed = _core.search_perplexity(squared, 4.0, 1)
    assert missed == 1
    np.testing.assert_allclose(conditional, [[1 / 6] * 6 + [0.0] * 4], rtol=1e-9)


def test_fewer_duplicates_than_the_perplexity() -> None:
    squared = np.array([[0.0] * 3 + [1.0, 2.0, 3.0, 4.0]])
    conditional, _, _, missed = _core.search_perplexity(squared, 4.0, 1)
    assert missed == 0
    assert row_perplexities(conditional)[0] == pytest.approx(4.0, abs=1e-4)


@pytest.mark.parametrize(
    "row",
    [
        [0.0, 0.0, 0.0, 0.0, 1e300],
        [1e-300, 1e-300, 1e-300, 1.0, 1e300],
        [1e300, 1.1e300, 1.2e300, 1.3e300, 1.7e308],
        [5e-324, 1e-323, 1.5e-323, 2e-323, 2.5e-323],  # the smallest numbers there are
        [1.0, 1.0 + 2**-52, 1.0 + 2**-51, 1.0, 1.0],
        [0.0, 1e-12, 1.0, 1e12, 1e24],
    ],
)
@pytest.mark.parametrize("perplexity", [1.0, 1.01, 2.5, 4.99, 5.0])
def test_extreme_rows_stay_distributions(row: list[float], perplexity: float) -> None:
    conditional, _, _, _ = _core.search_perplexity(np.array([row]), perplexity, 1)
    p = np.asarray(conditional)[0]
    assert np.isfinite(p).all()
    assert (p >= 0).all()
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    assert (np.diff(p[np.argsort(row, kind="stable")]) <= 0).all()  # nearer is never less probable


def test_perplexity_of_more_than_the_neighbors() -> None:
    squared = np.random.default_rng(0).chisquare(5, size=(4, 6))
    conditional, _, _, missed = _core.search_perplexity(squared, 7.0, 1)
    assert missed == 4
    np.testing.assert_allclose(conditional, 1 / 6)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_symmetrize(threads: int, dtype: npt.DTypeLike) -> None:
    # One-sided neighbours, mutual ones, and a point that nobody else names.
    rng = np.random.default_rng(1)
    n, k = 301, 7
    indices = np.array(
        [rng.choice(np.delete(np.arange(n - 1), i) if i < n - 1 else n - 1, k, replace=False)
         for i in range(n)]
    ).astype(np.int32)  # fmt: skip
    conditional = rng.dirichlet(np.ones(k), size=n).astype(dtype)
    dense = np.zeros((n, n))
    np.put_along_axis(dense, indices.astype(np.intp), conditional.astype(np.float64), axis=1)
    expected = (dense + dense.T) / (2 * n)

    _core.sort_rows(indices, conditional, n, threads)
    offsets, columns, values = _core.symmetrize(indices, conditional, False, threads)
    found = csr_matrix((values, columns, offsets), shape=(n, n))
    np.testing.assert_allclose(
        found.toarray(), expected, rtol=2e-6 if dtype == np.float32 else 1e-14
    )
    assert found.has_sorted_indices
    assert found.nnz == np.count_nonzero(expected)
    assert abs(found - found.T).max() == 0
    assert found.astype(np.float64).sum() == pytest.approx(1.0, abs=1e-6)
    assert not found.diagonal().any()


def test_some_rows_short_of_the_perplexity_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    # A few duplicates are ordinary: no warning, but a line for who wants to know.
    rng = np.random.default_rng(0)
    X = np.concatenate([np.zeros((8, 3)), rng.normal(size=(40, 3)) + 10])
    indices, squared = neighbors_of(X, 12)
    squared[:8, :7] = 0.0
    with caplog.at_level(logging.INFO, logger="acctsne"):
        joint_probabilities(Neighbors(indices, squared), Similarity("gaussian", (4.0,)), 1)
    assert "8 of 48 rows cannot reach perplexity 4 with their 12 neighbours" in caplog.text


def test_no_row_reaching_the_perplexity_is_a_warning() -> None:
    indices, squared = neighbors_of(np.zeros((20, 2)), 10)
    with pytest.warns(
        RuntimeWarning, match="perplexity 3 with 10 neighbours: too many samples are"
    ):
        joint_probabilities(Neighbors(indices, squared), Similarity("gaussian", (3.0,)), 1)


def test_a_perplexity_below_one_is_no_fault_of_the_data() -> None:
    indices, squared = neighbors_of(np.random.default_rng(0).normal(size=(20, 2)), 4)
    said = "no row can reach perplexity 0.5: the smallest is 1, of a single neighbour"
    with pytest.warns(RuntimeWarning, match=said):
        joint_probabilities(Neighbors(indices, squared), Similarity("gaussian", (0.5,)), 1)
