"""Affinities: every kind against openTSNE and a dense reference, every input, every error."""

import logging
import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from openTSNE import affinity as peer
from openTSNE.nearest_neighbors import PrecomputedDistanceMatrix, PrecomputedNeighbors
from scipy.sparse import csr_array, csr_matrix, eye, random_array
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import kneighbors_graph

from acctsne import Affinities, nearest_neighbors, quality
from helpers import row_perplexities

Array = npt.NDArray[Any]

# For each kind, ours and openTSNE's arguments.
KINDS: dict[str, tuple[dict[str, Any], Any, dict[str, Any]]] = {
    "gaussian": ({"perplexity": 20}, peer.PerplexityBasedNN, {"perplexity": 20}),
    "multiscale": ({"perplexity": [5, 20]}, peer.Multiscale, {"perplexities": [5, 20]}),
    "multiscale_mixture": (
        {"perplexity": [5, 20]},
        peer.MultiscaleMixture,
        {"perplexities": [5, 20]},
    ),
    "uniform": ({}, peer.Uniform, {"symmetrize": "max"}),
    "fixed": ({"bandwidth": 0.15}, peer.FixedSigmaNN, {"sigma": 0.15, "k": 60}),
}


@pytest.fixture(scope="module")
def data(some_digits: tuple[Array, Array]) -> Array:
    # Distances below 1: openTSNE's mixture search starts its second scale in the bracket where the
    # first one ended, which is right only if all bandwidths are below 1.
    return some_digits[0] / 100.0


@pytest.fixture(scope="module")
def found(data: Array) -> tuple[Array, Array]:
    result = nearest_neighbors(data, 60)
    return result.indices, result.distances


def reference(indices: Array, distances: Array, kind: str, settings: dict[str, Any]) -> Array:
    """P by the definitions, dense, with bandwidths by bisection."""
    squared = np.square(distances.astype(np.float64))
    if kind == "uniform":
        p = np.ones_like(squared)
    elif kind == "fixed":
        p = np.exp(-squared / (2 * settings["bandwidth"] ** 2))
    else:
        scales = [bisected(squared, u) for u in np.atleast_1d(settings["perplexity"])]
        densities = [np.sqrt(beta) * np.exp(-beta * squared) for beta in scales]
        if kind == "multiscale":
            densities = [density / density.sum(axis=1, keepdims=True) for density in densities]
        p = np.sum(densities, axis=0)
    conditional = np.zeros((len(indices), len(indices)))
    np.put_along_axis(conditional, indices.astype(np.intp), p / p.sum(axis=1, keepdims=True), 1)
    joint: Array = conditional + conditional.T
    if kind == "uniform":
        joint = (joint > 0).astype(np.float64)
    return np.asarray(joint / joint.sum())


def bisected(squared: Array, perplexity: float) -> Array:
    """Find beta = 1 / (2 sigma^2) of each row."""
    low, high = np.full((2, len(squared), 1), [[[-30.0]], [[30.0]]])
    for _ in range(100):
        middle = (low + high) / 2
        w = np.exp(-np.exp(middle) * (squared - squared.min(axis=1, keepdims=True)))
        too_wide = row_perplexities(w / w.sum(axis=1, keepdims=True))[:, None] > perplexity
        low, high = np.where(too_wide, middle, low), np.where(too_wide, high, middle)
    return np.asarray(np.exp(low))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
class TestKinds:
    def test_equals_the_definition(
        self, found: tuple[Array, Array], kind: str, dtype: npt.DTypeLike
    ) -> None:
        settings = KINDS[kind][0]
        P = Affinities.from_neighbors(*found, kind=kind, dtype=dtype, **settings)
        assert P.dtype == dtype
        expected = reference(*found, kind, settings)
        scale = 1 if dtype == np.float64 else 1000
        np.testing.assert_allclose(
            P.to_scipy().toarray(), expected, rtol=0, atol=scale * 1e-9 * expected.max()
        )

    def test_equals_opentsne(
        self, found: tuple[Array, Array], kind: str, dtype: npt.DTypeLike
    ) -> None:
        settings, peer_kind, peer_settings = KINDS[kind]
        P = Affinities.from_neighbors(*found, kind=kind, dtype=dtype, **settings).to_scipy()
        theirs = peer_kind(knn_index=PrecomputedNeighbors(*found), **peer_settings).P
        assert abs(P - theirs).max() < 1e-6
        # Both sum to 1: this bounds the typical relative error.
        assert abs(P - theirs).sum() < (1e-6 if dtype == np.float64 else 1e-5)

    def test_is_a_joint_distribution(
        self, found: tuple[Array, Array], kind: str, dtype: npt.DTypeLike
    ) -> None:
        P = Affinities.from_neighbors(*found, kind=kind, dtype=dtype, **KINDS[kind][0])
        matrix = P.to_scipy()
        assert matrix.astype(np.float64).sum() == pytest.approx(1.0, abs=1e-6)
        assert abs(matrix - matrix.T).max() == 0
        assert not matrix.diagonal().any()
        assert matrix.has_sorted_indices
        assert P.kind == kind
        assert (P.n_samples, P.n_neighbors) == found[0].shape

    @pytest.mark.parametrize("threads", [2, 3, 8])
    def test_threads_do_not_change_a_bit(
        self, found: tuple[Array, Array], kind: str, dtype: npt.DTypeLike, threads: int
    ) -> None:
        one, more = (
            Affinities.from_neighbors(*found, kind=kind, dtype=dtype, n_jobs=n, **KINDS[kind][0])
            for n in (1, threads)
        )
        for name in ("offsets", "columns", "values", "perplexities"):
            assert getattr(one, name).tobytes() == getattr(more, name).tobytes()


def test_from_distances_equals_opentsne(data: Array) -> None:
    D = pairwise_distances(data)
    for kind, (settings, peer_kind, peer_settings) in KINDS.items():
        P = Affinities.from_distances(D, kind=kind, n_neighbors=60, **settings).to_scipy()
        theirs = peer_kind(knn_index=PrecomputedDistanceMatrix(D, 60), **peer_settings).P
        # Digits have ties, in which either may choose: a few edges differ.
        assert abs(P - theirs).sum() < 1e-3, kind


def test_mixture_prefers_the_narrow_gaussian_nearby(found: tuple[Array, Array]) -> None:
    settings: dict[str, Any] = {"perplexity": [5, 20], "dtype": np.float64}
    mean = Affinities.from_neighbors(*found, kind="multiscale", **settings)
    mixture = Affinities.from_neighbors(*found, kind="multiscale_mixture", **settings)
    assert abs(mean.to_scipy() - mixture.to_scipy()).sum() > 0.01
    for P in (mean, mixture):
        assert ((P.perplexities > 5) & (P.perplexities < 20.5)).all()


class TestPerplexities:
    """What is reported is what the rows have."""

    def test_gaussian(self, found: tuple[Array, Array]) -> None:
        P = Affinities.from_neighbors(*found, perplexity=12)
        np.testing.assert_allclose(P.perplexities, 12.0, rtol=1e-8)

    def test_fixed(self, found: tuple[Array, Array]) -> None:
        P = Affinities.from_neighbors(*found, kind="fixed", bandwidth=0.1)
        w = np.exp(-np.square(found[1].astype(np.float64)) / 0.02)
        expected = row_perplexities(w / w.sum(axis=1, keepdims=True))
        np.testing.assert_allclose(P.perplexities, expected, rtol=1e-5)

    @pytest.mark.parametrize("bandwidth", [1e-160, 1e-300])
    def test_fixed_and_next_to_nothing(self, bandwidth: float) -> None:
        # The bandwidth's square vanishes: of neighbours at different distances the nearest is left.
        indices = [[1, 2], [0, 2], [0, 1]]
        distances = [[1.0, 1.0], [1.0, 2.0], [1.0, 2.0]]
        P = Affinities.from_neighbors(
            indices, distances, kind="fixed", bandwidth=bandwidth, dtype=np.float64
        )
        np.testing.assert_allclose(P.perplexities, [2, 1, 1])

    def test_uniform(self, found: tuple[Array, Array]) -> None:
        P = Affinities.from_neighbors(*found, kind="uniform")
        np.testing.assert_array_equal(P.perplexities, 60.0)

    def test_given(self) -> None:
        P = Affinities.from_matrix([[0, 3, 1, 0], [3, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]])
        expected = np.exp(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))
        np.testing.assert_allclose(P.perplexities, [expected, 1, 1, 0])


class TestFromData:
    def test_equals_from_its_neighbors(self, data: Array) -> None:
        for kind, (settings, _, _) in KINDS.items():
            settings = {"kind": kind, "dtype": np.float64, **settings}
            from_data = Affinities.from_data(data, n_neighbors=40, **settings)
            result = nearest_neighbors(data, 40)
            expected = Affinities.from_neighbors(result.indices, result.distances, **settings)
            assert abs(from_data.to_scipy() - expected.to_scipy()).sum() < 1e-12, kind

    def test_equals_the_referee(self, data: Array) -> None:
        P = Affinities.from_data(data, dtype=np.float64)
        assert abs(P.to_scipy() - quality.affinities(data)).max() == 0

    @pytest.mark.parametrize("factor", [1e-200, 1e200])
    def test_bandwidth_is_in_the_unit_of_the_data(self, factor: float) -> None:
        X = np.random.default_rng(0).normal(size=(60, 3))
        settings: dict[str, Any] = {"kind": "fixed", "n_neighbors": 20, "dtype": np.float64}
        expected = Affinities.from_data(X, bandwidth=0.5, **settings)
        found = Affinities.from_data(X * factor, bandwidth=0.5 * factor, **settings)
        assert abs(found.to_scipy() - expected.to_scipy()).max() < 1e-12
        D = pairwise_distances(X)
        found = Affinities.from_distances(D * factor, bandwidth=0.5 * factor, **settings)
        assert abs(found.to_scipy() - expected.to_scipy()).max() < 1e-12

    @pytest.mark.parametrize(
        ("metric", "params"),
        [("cosine", None), ("mahalanobis", {"VI": np.eye(64)}), ("manhattan", None)],
    )
    def test_metrics(self, data: Array, metric: str, params: dict[str, Any] | None) -> None:
        P = Affinities.from_data(data, metric=metric, metric_params=params, dtype=np.float64)
        D = pairwise_distances(data, metric=metric, **(params or {}))
        expected = Affinities.from_distances(D, dtype=np.float64)
        assert abs(P.to_scipy() - expected.to_scipy()).sum() < 1e-3  # ties

    def test_sparse_data_equals_dense(self, data: Array) -> None:
        sparse = Affinities.from_data(csr_matrix(data), dtype=np.float64)
        dense = Affinities.from_data(data, dtype=np.float64)
        assert abs(sparse.to_scipy() - dense.to_scipy()).sum() < 1e-3  # ties

    def test_usual_neighbors(self, data: Array) -> None:
        assert Affinities.from_data(data).n_neighbors == 91
        assert Affinities.from_data(data, perplexity=[5, 7], kind="multiscale").n_neighbors == 22
        assert Affinities.from_data(data, kind="uniform", perplexity=14.6).n_neighbors == 15
        assert Affinities.from_data(data, kind="fixed", bandwidth=1).n_neighbors == 91
        assert Affinities.from_data(data[:50]).n_neighbors == 49

    def test_input_is_left_alone(self, data: Array) -> None:
        before = data.copy()
        Affinities.from_data(data)
        np.testing.assert_array_equal(data, before)


class TestFromNeighbors:
    def test_order_does_not_matter_and_input_is_left_alone(
        self, found: tuple[Array, Array]
    ) -> None:
        order = np.random.default_rng(0).permutation(found[0].shape[1])
        indices, distances = found[0][:, order].astype(np.int64), found[1][:, order].copy()
        before = indices.copy(), distances.copy()
        P = Affinities.from_neighbors(indices, distances, dtype=np.float64)
        expected = Affinities.from_neighbors(*found, dtype=np.float64)
        assert abs(P.to_scipy() - expected.to_scipy()).max() < 1e-15
        np.testing.assert_array_equal(indices, before[0])
        np.testing.assert_array_equal(distances, before[1])

    def test_lists(self) -> None:
        P = Affinities.from_neighbors([[1], [0], [1]], [[1.0], [1.0], [2.0]], perplexity=1)
        np.testing.assert_allclose(
            P.to_scipy().toarray(), np.array([[0, 2, 0], [2, 0, 1], [0, 1, 0]]) / 6, rtol=1e-6
        )

    @pytest.mark.parametrize(
        ("indices", "distances", "message"),
        [
            ([1, 0], [1.0, 1.0], "2-dimensional array of integers.*got 1 dimensions of int64"),
            ([[1.0], [0.0]], [[1.0], [1.0]], "2-dimensional array of integers.*float64"),
            ([[1], [0]], [[1.0, 2.0], [1.0, 2.0]], r"differ in shape: \(2, 1\) and \(2, 2\)"),
            (np.empty((2, 0), int), np.empty((2, 0)), r"no neighbours: indices has shape \(2, 0\)"),
            ([[1], [2]], np.ones((2, 1)), "row 1 .* neighbour 2; there are 2 samples"),
            ([[-1], [0]], np.ones((2, 1)), "row 0 .* neighbour -1; there are 2 samples"),
            ([[1], [1]], np.ones((2, 1)), r"row 1 of indices names the sample itself.*\[:, 1:\]"),
            ([[1, 2], [0, 2], [1, 1]], np.ones((3, 2)), "row 2 of the graph has neighbour 1 twice"),
            ([[1], [0]], [[1.0], [-2.0]], "row 1 of the graph has the distance -2; distances must"),
            (
                [[1], [0]],
                [[1.0], [np.nan]],
                "row 1 of the graph has a distance that is not finite: nan",
            ),
        ],
    )
    def test_errors(self, indices: Any, distances: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            Affinities.from_neighbors(indices, distances, perplexity=1)


class TestFromDistances:
    def test_dense_and_sparse_agree(self, data: Array) -> None:
        X = data + np.random.default_rng(0).uniform(size=data.shape) / 1000  # no ties
        dense = Affinities.from_distances(pairwise_distances(X), dtype=np.float64)
        graph = kneighbors_graph(X, 100, mode="distance")
        sparse = Affinities.from_distances(graph, dtype=np.float64)
        assert dense.n_neighbors == sparse.n_neighbors == 91
        assert abs(dense.to_scipy() - sparse.to_scipy()).sum() < 1e-10
        from_data = Affinities.from_data(X, dtype=np.float64)
        assert abs(dense.to_scipy() - from_data.to_scipy()).sum() < 1e-10

    def test_of_equal_distances_the_first_count(self) -> None:
        D = np.ones((6, 6))
        P = Affinities.from_distances(D, kind="uniform", n_neighbors=2)
        graph = Affinities.from_distances(csr_matrix(D), kind="uniform", n_neighbors=2)
        expected = np.zeros((6, 6))
        for i, first in enumerate([(1, 2), (0, 2), (0, 1), (0, 1), (0, 1), (0, 1)]):
            expected[i, first] = expected[first, i] = 1
        np.testing.assert_array_equal(P.to_scipy().toarray() > 0, expected > 0)
        np.testing.assert_array_equal(graph.to_scipy().toarray() > 0, expected > 0)

    def test_explicit_zeros_are_distances_and_the_diagonal_is_not(self) -> None:
        graph = csr_matrix(([0.0, 0.0, 1.0, 0.0, 1.0], [0, 1, 2, 0, 0], [0, 3, 4, 5]), shape=(3, 3))
        P = Affinities.from_distances(graph, kind="uniform", perplexity=1)
        assert P.n_neighbors == 1
        np.testing.assert_allclose(
            P.to_scipy().toarray(), np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]]) / 4
        )

    def test_a_graph_of_few_neighbors(self, data: Array) -> None:
        graph = kneighbors_graph(data, 40, mode="distance")
        fewer = "has 40 neighbours where .* are called for: 40 are used"
        with pytest.warns(UserWarning, match=fewer):
            assert Affinities.from_distances(graph, perplexity=30).n_neighbors == 40
        too_large = "perplexity 50 is too large for 400 samples with 40"
        with pytest.warns(UserWarning, match=fewer), pytest.warns(UserWarning, match=too_large):
            P = Affinities.from_distances(graph, perplexity=50)
        np.testing.assert_allclose(P.perplexities, 40 / 3, rtol=1e-6)

    @pytest.mark.parametrize(
        ("D", "settings", "message"),
        [
            (np.ones((3, 4)), {}, r"must be a square matrix of distances; got shape \(3, 4\)"),
            (-np.ones((3, 3)), {}, "D must not be negative; the smallest value is -1"),
            (np.full((3, 3), np.inf), {}, "D contains infinity"),
            (csr_matrix(-np.ones((3, 3))), {}, "row 0 of the graph has the distance -1"),
            (csr_matrix(np.diag([1.0, 2.0], 1)), {}, "row 2 of the graph has 0 others"),
            (np.ones((3, 3)), {"n_neighbors": 3}, r"between 1 and n_samples - 1 \(2\); got 3"),
            (
                csr_matrix(np.ones((3, 3)) - np.diag([1.0, 1.0], 1)),
                {"n_neighbors": 2},
                "row 0 of the graph has 1 others.*ask for fewer",
            ),
        ],
    )
    def test_errors(self, D: Any, settings: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            Affinities.from_distances(D, perplexity=1, **settings)


class TestFromMatrix:
    @pytest.mark.parametrize("make", [csr_matrix, csr_array, np.asarray, "coo", "csc"])
    def test_a_proper_one_is_kept(self, some_digits_P: csr_matrix, make: Any) -> None:
        given = some_digits_P.asformat(make) if isinstance(make, str) else None
        if given is None:
            given = some_digits_P.toarray() if make is np.asarray else make(some_digits_P)
        P = Affinities.from_matrix(given, dtype=np.float64)
        assert P.changes == ()
        assert P.kind == "given"
        assert P.n_neighbors is None
        assert abs(P.to_scipy() - some_digits_P).max() == 0

    def test_float32_affinities_count_as_normalized(self, some_digits_P: csr_matrix) -> None:
        assert Affinities.from_matrix(some_digits_P.astype(np.float32)).changes == ()

    def test_any_other_is_made_proper(self, caplog: pytest.LogCaptureFixture) -> None:
        given = random_array((50, 50), density=0.2, random_state=0).tocsr() + eye(50)
        before = given.copy()
        with caplog.at_level(logging.INFO, logger="acctsne"):
            P = Affinities.from_matrix(given, dtype=np.float64)
        assert abs(given - before).max() == 0
        expected = given.toarray()
        np.fill_diagonal(expected, 0)
        expected = expected + expected.T
        np.testing.assert_allclose(P.to_scipy().toarray(), expected / expected.sum(), rtol=1e-12)
        assert P.changes[:2] == ("emptied the diagonal", "symmetrised")
        assert P.changes[2].startswith("divided by the sum, ")
        for change in P.changes:
            assert f"the given affinities were not those of t-SNE: {change}" in caplog.text

    @pytest.mark.parametrize("factor", [1e-300, 1e300])
    def test_scale_does_not_matter(self, some_digits_P: csr_matrix, factor: float) -> None:
        P = Affinities.from_matrix(some_digits_P * factor, dtype=np.float64)
        assert abs(P.to_scipy() - some_digits_P).max() < 1e-12

    def test_duplicate_entries_are_added(self) -> None:
        given = csr_matrix(([0.25, 0.25, 0.5], [1, 1, 0], [0, 2, 3]), shape=(2, 2))
        np.testing.assert_allclose(
            Affinities.from_matrix(given).to_scipy().toarray(), [[0, 0.5], [0.5, 0]]
        )

    @pytest.mark.parametrize(
        ("P", "message"),
        [
            (np.ones((3, 4)), r"P must be square; got shape \(3, 4\)"),
            ([[0, -1], [1, 0]], "P must not be negative; the smallest value is -1"),
            ([[0, np.nan], [1, 0]], "P contains NaN"),
            (csr_matrix([[0, np.inf], [1, 0]]), "P contains infinity"),
            (np.eye(3), "P has no affinity between different samples"),
            ([[1.0]], "minimum of 2 is required"),
        ],
    )
    def test_errors(self, P: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            Affinities.from_matrix(P)


class TestTooLargePerplexity:
    def test_is_reduced_with_a_warning_of_both_figures(self) -> None:
        X = np.random.default_rng(0).normal(size=(20, 3))
        message = "perplexity 50 is too large for 20 samples with 19 neighbours each; 6.33333 is us"
        with pytest.warns(UserWarning, match=message) as caught:
            P = Affinities.from_data(X, perplexity=50)
        assert caught[0].filename == __file__
        assert P.similarity is not None
        assert P.similarity.perplexities == (19 / 3,)
        np.testing.assert_allclose(P.perplexities, 19 / 3, rtol=1e-6)

    def test_each_of_several(self) -> None:
        X = np.random.default_rng(0).normal(size=(20, 3))
        message = "perplexity 50 and 100 is too large for 20 samples"
        with pytest.warns(UserWarning, match=message):
            P = Affinities.from_data(X, perplexity=[3, 50, 100], kind="multiscale")
        assert P.similarity is not None
        assert P.similarity.perplexities == (3, 19 / 3)

    def test_what_takes_its_place_counts_once(self, data: Array) -> None:
        settings: dict[str, Any] = {"kind": "multiscale", "n_neighbors": 30}
        with pytest.warns(UserWarning, match="perplexity 50 is too large"):
            P = Affinities.from_data(data, perplexity=[5, 10, 50], **settings)  # a third is 10
        expected = Affinities.from_data(data, perplexity=[5, 10], **settings)
        assert (P.to_scipy() != expected.to_scipy()).nnz == 0

    @pytest.mark.parametrize("n_neighbors", [1, 2])
    def test_is_reduced_to_one_at_least(self, n_neighbors: int) -> None:
        X = np.random.default_rng(0).normal(size=(20, 3))
        with pytest.warns(UserWarning, match="; 1 is used instead"):
            P = Affinities.from_data(X, n_neighbors=n_neighbors)
        np.testing.assert_allclose(P.perplexities, 1, rtol=1e-2)

    def test_the_largest_possible_stays(self) -> None:
        X = np.random.default_rng(0).normal(size=(20, 3))
        P = Affinities.from_data(X, perplexity=19)
        np.testing.assert_allclose(P.perplexities, 19, rtol=1e-6)

    def test_does_not_concern_a_fixed_bandwidth(self) -> None:
        X = np.random.default_rng(0).normal(size=(20, 3))
        assert Affinities.from_data(X, kind="fixed", bandwidth=1).n_neighbors == 19


def test_a_row_of_vanishing_weights_goes_to_the_nearest() -> None:
    # exp(-d^2 / (2 sigma^2)) is zero for all neighbours of every sample.
    X = np.array([[0.0], [100.0], [201.0], [303.0]])
    P = Affinities.from_data(X, kind="fixed", bandwidth=0.1, n_neighbors=2)
    expected = np.array([[0, 2, 0, 0], [2, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]]) / 8
    np.testing.assert_allclose(P.to_scipy().toarray(), expected)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"kind": "cauchy"}, ValueError, "kind must be one of gaussian, .*; got 'cauchy'"),
        ({"perplexity": 0}, ValueError, "perplexity must be positive and finite; got 0"),
        ({"perplexity": np.inf}, ValueError, "perplexity must be positive and finite; got inf"),
        ({"perplexity": np.nan}, ValueError, "perplexity must be positive and finite; got nan"),
        ({"perplexity": "30"}, TypeError, "perplexity must be a number; got '30'"),
        (
            {"perplexity": [5, 20]},
            ValueError,
            r"one perplexity; got \[5.0, 20.0\]. Use kind='multi",
        ),
        ({"perplexity": [], "kind": "multiscale"}, ValueError, "perplexity is an empty list"),
        ({"kind": "fixed"}, ValueError, "kind='fixed' needs a bandwidth"),
        ({"kind": "fixed", "bandwidth": "wide"}, TypeError, "must be a number; got 'wide'"),
        ({"kind": "fixed", "bandwidth": -1}, ValueError, "must be positive and finite; got -1"),
        ({"bandwidth": 1.0}, ValueError, "kind='gaussian' finds its own .*bandwidth=1.0"),
        ({"n_neighbors": 2.5}, TypeError, "n_neighbors must be an integer; got 2.5"),
        ({"n_neighbors": 30}, ValueError, r"between 1 and n_samples - 1 \(29\); got 30"),
        ({"n_neighbors": 0}, ValueError, r"between 1 and n_samples - 1 \(29\); got 0"),
        ({"metric": "precomputed"}, ValueError, "use Affinities.from_distances"),
        ({"metric": "nonsense"}, ValueError, "metric must be a callable or one of .*'nonsense'"),
        ({"neighbors": "some"}, ValueError, "neighbors must be .*got 'some'"),
        ({"dtype": np.int32}, ValueError, "dtype must be numpy.float32 or numpy.float64"),
        ({"n_jobs": 0}, ValueError, "n_jobs == 0 has no meaning"),
        ({"metric": lambda x, y: -1.0}, ValueError, "metric given is not correct: it gave -1.0"),
    ],
)
def test_errors_of_from_data(settings: dict[str, Any], error: type, message: str) -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(error, match=message):
        Affinities.from_data(X, **{"perplexity": 5, **settings})


def test_bad_data() -> None:
    with pytest.raises(ValueError, match="X contains NaN"):
        Affinities.from_data([[1.0], [np.nan], [2.0]])
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        Affinities.from_data([[1.0]])


class TestObject:
    @pytest.fixture(name="P")
    def gaussian(self, found: tuple[Array, Array]) -> Affinities:
        return Affinities.from_neighbors(*found, perplexity=20)

    def test_says_what_it_is(self, P: Affinities) -> None:
        assert repr(P) == (
            f"Affinities(n_samples=400, kind='gaussian', n_neighbors=60, n_edges={P.offsets[-1]}, "
            "dtype=float32)"
        )

    def test_is_immutable(self, P: Affinities) -> None:
        with pytest.raises(FrozenInstanceError):
            P.n_neighbors = 3  # type: ignore[misc]
        for array in (P.offsets, P.columns, P.values, P.perplexities, P.to_scipy().data):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0

    def test_scipy_matrix_shares_memory(self, P: Affinities) -> None:
        assert np.shares_memory(P.to_scipy().data, P.values)
        assert np.shares_memory(P.to_scipy().indices, P.columns)

    def test_pickles(self, P: Affinities) -> None:
        copy = pickle.loads(pickle.dumps(P))
        for name in ("offsets", "columns", "values", "perplexities"):
            np.testing.assert_array_equal(getattr(copy, name), getattr(P, name))
            assert not getattr(copy, name).flags.writeable
        assert copy.similarity == P.similarity
        assert repr(copy) == repr(P)

    def test_referee_takes_it(self, P: Affinities, some_digits: tuple[Array, Array]) -> None:
        Y = some_digits[0][:, 10:12]
        assert quality.exact_kl(None, Y, P=P) == quality.exact_kl(None, Y, P=P.to_scipy())

    def test_verbose_shows_the_log(self, caplog: pytest.LogCaptureFixture) -> None:
        Affinities.from_matrix(np.ones((3, 3)), verbose=1)
        assert "the given affinities were not those of t-SNE: emptied the diagonal" in caplog.text
