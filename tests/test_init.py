"""Initial layouts: against their definitions, on awkward data, the same on every run."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from openTSNE import initialization as peer
from scipy.linalg import eigh
from scipy.sparse import csr_matrix, random_array
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA

from acctsne import TSNE, Affinities, _core, init, quality
from acctsne.affinities.affinities import csr_arrays
from acctsne.affinities.forms import Matrix
from acctsne.init.layouts import separate_coincident

Array = npt.NDArray[Any]

THREADS = (1, 2, 3, 8)


@pytest.fixture(scope="module", name="digits_P")
def affinities_of_digits(digits: tuple[Array, Array]) -> Affinities:
    return Affinities.from_data(digits[0], dtype=np.float64)


@pytest.fixture(scope="module")
def blobs() -> tuple[Array, Array]:
    X, y = make_blobs(12_000, 10, centers=12, cluster_std=1.5, random_state=0)
    return X, y


@pytest.fixture(scope="module", name="blobs_P")
def affinities_of_blobs(blobs: tuple[Array, Array]) -> Affinities:
    return Affinities.from_data(blobs[0], perplexity=15)


def correlations(a: Array, b: Array) -> Array:
    """Compute the correlation of each column of a with the same column of b."""
    return np.array([np.corrcoef(x, y)[0, 1] for x, y in zip(a.T, b.T, strict=True)])


def check_usual(layout: Array, shape: tuple[int, int], dtype: npt.DTypeLike = np.float32) -> None:
    assert layout.shape == shape
    assert layout.dtype == dtype
    assert layout.flags.c_contiguous
    assert np.isfinite(layout).all()
    assert len(np.unique(layout, axis=0)) == len(layout)
    assert layout[:, 0].std() == pytest.approx(1e-4, rel=0.01)


class TestPca:
    @pytest.mark.parametrize("n_features", [5, 60, 400])  # both ways to compute it
    @pytest.mark.parametrize("make", [np.asarray, csr_matrix])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_equals_scikit_learn(self, n_features: int, make: Any, dtype: npt.DTypeLike) -> None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(700, n_features)) * np.geomspace(10, 0.1, n_features) + 3
        X[np.abs(X) < 1] = 0  # for the sparse one
        expected = PCA(3, svd_solver="full").fit_transform(X)
        layout = init.pca(make(X.astype(dtype)), 3, dtype=np.float64)
        expected *= 1e-4 / expected[:, 0].std()
        # Signs too. The iteration's axes are right to a thousandth.
        tolerance = 2e-3 if n_features > _core.FEW_FEATURES else 1e-4
        np.testing.assert_allclose(layout, expected, rtol=0, atol=tolerance * 1e-4 * 3)

    def test_more_features_than_samples(self) -> None:
        X = random_array((60, 3000), density=0.05, random_state=0).tocsr()
        expected = PCA(2, svd_solver="full").fit_transform(X.toarray())
        # The spectrum of noise is flat: the plane is right, its axes only nearly.
        assert (correlations(init.pca(X), expected) > 0.99).all()
        assert (correlations(init.pca(X.toarray()), expected) > 0.99).all()

    def test_sign_does_not_depend_on_the_order_of_samples(
        self, digits: tuple[Array, Array]
    ) -> None:
        X = digits[0]
        order = np.random.default_rng(0).permutation(len(X))
        assert (correlations(init.pca(X[order]), init.pca(X)[order]) > 0.9999).all()

    @pytest.mark.parametrize("n_features", [60, 400])
    @pytest.mark.parametrize("factor", [1e-310, 1e-150, 1e150, 1e300])
    def test_unit_does_not_matter(self, n_features: int, factor: float) -> None:
        X = np.random.default_rng(0).normal(size=(300, n_features)) * np.geomspace(9, 1, n_features)
        assert (correlations(init.pca(X * factor), init.pca(X)) > 0.9999).all()

    @pytest.mark.parametrize("n_features", [60, 400])
    def test_threads_do_not_change_a_bit(self, n_features: int) -> None:
        X = np.random.default_rng(0).normal(size=(9000, n_features)).astype(np.float32)
        X *= np.geomspace(9, 1, n_features, dtype=np.float32)
        assert len({init.pca(X, n_jobs=threads).tobytes() for threads in THREADS}) == 1

    @pytest.mark.parametrize("make", [np.asarray, csr_matrix])
    @pytest.mark.parametrize("value", [0.0, 7.0, 1e300])
    def test_constant_data(self, make: Any, value: float) -> None:
        layout = init.pca(make(np.full((50, 3), value)))
        assert len(np.unique(layout, axis=0)) == 50
        assert np.abs(layout).max() < 1e-3

    def test_fewer_features_than_components(self) -> None:
        X = np.arange(20.0)[:, None]
        layout = init.pca(X, 2, dtype=np.float64)
        np.testing.assert_allclose(layout[:, 0], (X[:, 0] - 9.5) * 1e-4 / X.std())
        # An axis of zeros would stay one for ever.
        assert 0.005e-4 < layout[:, 1].std() < 0.02e-4

    def test_coincident_samples_are_parted(self) -> None:
        X = np.repeat(np.random.default_rng(0).normal(size=(30, 4)), 3, axis=0)
        check_usual(init.pca(X), (90, 2))

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("dims", [1, 2, 3])
    def test_only_coincident_points_move(self, dims: int, dtype: type) -> None:
        normal = np.random.default_rng(0).normal(size=(200, dims))
        layout: npt.NDArray[Any] = normal.astype(dtype)
        np.testing.assert_array_equal(separate_coincident(layout), layout)
        layout[60], layout[70] = 0.0, -0.0  # the same place in other bits
        moved = (separate_coincident(layout) != layout).any(axis=1)
        assert np.flatnonzero(moved).tolist() == [70]
        layout[50] = layout[10]
        moved = (separate_coincident(layout) != layout).any(axis=1)
        assert np.flatnonzero(moved).tolist() == [50, 70]


class TestRandom:
    def test_is_normal(self) -> None:
        layout = init.random(20_000, 3, random_state=0)
        check_usual(layout, (20_000, 3))
        np.testing.assert_allclose(layout.std(axis=0), 1e-4, rtol=0.02)
        np.testing.assert_allclose(layout.mean(axis=0), 0, atol=3e-6)

    def test_seed(self) -> None:
        np.testing.assert_array_equal(
            init.random(9, random_state=1), init.random(9, random_state=1)
        )
        assert (init.random(9, random_state=1) != init.random(9, random_state=2)).all()


class TestSpectral:
    def test_equals_opentsne(self, digits_P: Affinities) -> None:
        layout = init.spectral(digits_P, 3, dtype=np.float64)
        check_usual(layout, (1797, 3), np.float64)
        theirs = peer.spectral(digits_P.to_scipy(), 3, tol=0, add_jitter=False, random_state=0)
        assert (np.abs(correlations(layout, theirs)) > 0.999).all()

    def test_equals_the_definition(self, some_digits_P: csr_matrix) -> None:
        # By the iteration and, on fewer points, in full.
        for P in (some_digits_P, some_digits_P[:200, :200]):
            affinities = Affinities.from_matrix(P, dtype=np.float64)
            matrix = affinities.to_scipy().toarray()
            modes = eigh(matrix, np.diag(matrix.sum(axis=1)))[1][:, [-2, -3]]
            layout = init.spectral(affinities, dtype=np.float64)
            assert (np.abs(correlations(layout, modes)) > 0.999).all()

    def test_longer_tail_is_positive(self, digits_P: Affinities) -> None:
        layout = init.spectral(digits_P, dtype=np.float64)
        assert (np.power(layout - layout.mean(axis=0), 3).sum(axis=0) > 0).all()

    @pytest.mark.parametrize("dims", [1, 2, 3])
    def test_parts_are_placed_apart(self, dims: int) -> None:
        X, y = make_blobs(
            [400, 150, 40, 8], 5, centers=1000 * np.eye(4, 5), cluster_std=1.0, random_state=0
        )
        affinities = Affinities.from_data(X, perplexity=2)
        layout = init.spectral(affinities, dims)
        check_usual(layout, (598, dims))
        for part in range(4):
            # No part is a mere point, and its own points are nearer than others.
            own = layout[y == part]
            assert (own.std(axis=0) > 1e-6).all()
        assert quality.label_agreement(layout, y, n_neighbors=5) > 0.9

    def test_points_without_affinity(self) -> None:
        P = np.zeros((8, 8))
        P[0, 1] = P[1, 2] = P[4, 5] = 1.0
        layout = init.spectral(Affinities.from_matrix(P))
        check_usual(layout, (8, 2))

    def test_underflowed_affinities_join_nothing(self) -> None:
        zeros = csr_matrix(([1.0, 1.0, 0.0, 0.0, 1.0, 1.0], [1, 0, 2, 1, 3, 2], [0, 1, 3, 5, 6]))
        affinities = Affinities(Matrix(*csr_arrays(zeros)), np.ones(4))
        assert not affinities.to_scipy().data.all()
        check_usual(init.spectral(affinities), (4, 2))

    def test_thin_data_that_do_not_converge(self) -> None:
        # A chain: its modes are so slow that the iteration gives up. Neighbours stay neighbours.
        n = 20_000
        steps = np.arange(n)
        chain = csr_matrix((np.ones(n - 1), (steps[:-1], steps[1:])), shape=(n, n))
        layout = init.spectral(Affinities.from_matrix(chain), dtype=np.float64)
        check_usual(layout, (n, 2), np.float64)
        assert np.abs(np.diff(layout, axis=0)).mean() < 0.5 * layout.std()

    def test_runs_are_equal(self, digits_P: Affinities) -> None:
        assert init.spectral(digits_P).tobytes() == init.spectral(digits_P).tobytes()


class TestMultilevel:
    def test_holds_the_structure_before_any_iteration(
        self, blobs_P: Affinities, blobs: tuple[Array, Array]
    ) -> None:
        layout = init.multilevel(blobs_P)
        check_usual(layout, (12_000, 2))
        agreement = quality.label_agreement(layout, blobs[1])
        assert agreement > quality.label_agreement(init.pca(blobs[0]), blobs[1]) + 0.02
        assert agreement > 0.97

    def test_leads_to_the_same_kl(self, digits: tuple[Array, Array]) -> None:
        # With a fifth of the early exaggeration.
        X = digits[0]
        P = Affinities.from_data(X)
        start = init.multilevel(P)
        short = TSNE(init=start, early_exaggeration_iter=50, max_iter=550).fit_transform(X)
        full = TSNE(early_exaggeration_iter=250, max_iter=750).fit_transform(X)
        assert quality.exact_kl(None, short, P=P) < 1.03 * quality.exact_kl(None, full, P=P)

    def test_threads_do_not_change_a_bit(self, blobs_P: Affinities) -> None:
        one, three = (init.multilevel(blobs_P, n_jobs=threads) for threads in (1, 3))
        assert one.tobytes() == three.tobytes()

    @pytest.mark.parametrize("dims", [1, 3])
    def test_dimensions(self, dims: int) -> None:
        X = np.random.default_rng(0).normal(size=(300, 4))
        check_usual(init.multilevel(Affinities.from_data(X, perplexity=5), dims), (300, dims))

    def test_many_hops_and_parts_without_a_sampled_point(self) -> None:
        # A long chain and 3000 pairs: most points are several hops from the sample, and most pairs
        # have no point in it.
        n, chain = 12_000, 6000
        first = np.concatenate([np.arange(chain - 1), np.arange(chain, n, 2)])
        second = np.concatenate([np.arange(1, chain), np.arange(chain + 1, n, 2)])
        P = Affinities.from_matrix(csr_matrix((np.ones(len(first)), (first, second)), shape=(n, n)))
        check_usual(init.multilevel(P), (n, 2))


@pytest.mark.parametrize("name", ["pca", "random", "spectral", "multilevel"])
def test_estimator_starts_from_it(some_digits: tuple[Array, Array], name: str) -> None:
    X = some_digits[0]
    P = Affinities.from_data(X)
    layouts: dict[str, Callable[[], Array]] = {
        "pca": lambda: init.pca(X),
        "random": lambda: init.random(len(X), random_state=0),
        "spectral": lambda: init.spectral(P),
        "multilevel": lambda: init.multilevel(P),
    }
    by_name = TSNE(init=name, random_state=0, max_iter=250).fit_transform(X)
    by_array = TSNE(init=layouts[name](), random_state=0, max_iter=250).fit_transform(X)
    np.testing.assert_array_equal(by_name, by_array)


not_ours: Any = np.eye(3)
text: Any = "2"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: init.pca([[1.0], [np.nan]]), ValueError, "X contains NaN"),
        (
            lambda: init.pca([[1.0], [2.0]], 0),
            ValueError,
            "n_components must be between 1 and 2147483647; got 0",
        ),
        (lambda: init.pca([[1.0], [2.0]], text), TypeError, "must be an integer; got '2'"),
        (lambda: init.random(5, dtype=int), ValueError, "dtype must be numpy.float32 or"),
        (lambda: init.random(0), ValueError, "n_samples must be positive; got 0"),
        (lambda: init.spectral(not_ours), TypeError, "an Affinities; got ndarray"),
    ],
)
def test_errors(call: Callable[[], Array], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e200])
def test_pca_of_sparse_data_of_any_size(size: float) -> None:
    X = csr_matrix(np.random.default_rng(0).integers(0, 3, size=(50, 6)).astype(np.float64))
    np.testing.assert_allclose(init.pca(X * size), init.pca(X), rtol=1e-3, atol=1e-8)


def test_pca_of_columns_that_are_nearly_all_empty() -> None:
    random = np.random.default_rng(0)
    columns = np.sort(random.choice(10**7, size=300, replace=False))
    values = random.normal(size=(60, 300)) * (random.random((60, 300)) < 0.1)
    rows, places = np.nonzero(values)
    wide = csr_matrix((values[rows, places], (rows, columns[places])), shape=(60, 10**7))
    np.testing.assert_allclose(init.pca(wide), init.pca(values), rtol=1e-4, atol=1e-9)
