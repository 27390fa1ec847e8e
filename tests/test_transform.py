"""New points into a finished map: TSNE.transform, and the estimator in a file."""

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import openTSNE
import pandas as pd
import pytest
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from acctsne import TSNE, Affinities, _core
from acctsne.embedding.transform import PLACEMENT, weighted_medians
from acctsne.forces.repulsion import RepulsionOptions
from acctsne.neighbors.frame import Frame, find_frame

Array = npt.NDArray[Any]


@pytest.fixture(scope="module", name="X")
def samples(digits: tuple[Array, Array]) -> Array:
    return digits[0][:300]


@pytest.fixture(scope="module", name="new")
def new_samples(digits: tuple[Array, Array]) -> Array:
    return digits[0][300:340]


def small(**parameters: Any) -> TSNE:
    return TSNE(**{"perplexity": 10, "max_iter": 250, "random_state": 0, **parameters})


@pytest.mark.parametrize("method", ["barnes_hut", "fft", "exact"])
def test_map_with_a_hole(X: Array, new: Array, method: str) -> None:
    tsne = small(method=method).fit(X)
    tsne.embedding_[5] = np.nan
    with pytest.raises(ValueError, match=r"not finite, \[nan nan\] in row 5"):
        tsne.transform(new)
    # Nor does native code take it, whoever calls.
    indices = np.zeros((1, 1), dtype=np.int32)
    one = np.ones((1, 1), dtype=np.float32)
    options, phase = RepulsionOptions(method).native(2), PLACEMENT.native(1, 0)
    with pytest.raises(ValueError, match="a position that is not finite"):
        _core.Map32(tsne.embedding_, options)
    whole = np.zeros((3, 2), dtype=np.float32)
    with pytest.raises(ValueError, match="index is out of range"):
        _core.Map32(whole, options).place(indices - 1, one, whole[:1], phase, threads=1)


def test_map_that_was_turned(X: Array, new: Array) -> None:
    # A reflection leaves all distances as they are, and the columns in the other memory order.
    tsne = small(dtype=np.float64, method="exact").fit(X)
    expected = tsne.transform(new)[:, ::-1]
    tsne.embedding_ = tsne.embedding_[:, ::-1]
    np.testing.assert_allclose(tsne.transform(new), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "other", [np.zeros((5, 2)), np.zeros(300), np.zeros((300, 2), dtype=int), "map", None]
)
def test_map_that_is_none_of_the_data(X: Array, new: Array, other: Any) -> None:
    tsne = small().fit(X)
    tsne.embedding_ = other
    with pytest.raises(ValueError, match=r"embedding_ must be .* each of the 300 samples .* got"):
        tsne.transform(new)


@pytest.mark.parametrize("metric", ["euclidean", "correlation", "manhattan"])
@pytest.mark.parametrize("kind", [np.array, csr_matrix])
@pytest.mark.parametrize(("value", "held"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_data_that_has_changed_since(
    X: Array, new: Array, metric: str, kind: Callable[[Array], Any], value: float, held: str
) -> None:
    given = kind(X[:100].astype(np.float64))
    tsne = small(metric=metric, init="random").fit(given)
    before = tsne.transform(new[:3])
    stored = given.data if kind is csr_matrix else given.reshape(-1)
    kept = stored[70]
    stored[70] = value
    said = f"data that this map was fitted on has changed since, and now holds {held}.* fit a copy"
    with pytest.raises(ValueError, match=said):
        tsne.transform(new[:3])
    stored[70] = kept
    np.testing.assert_array_equal(tsne.transform(new[:3]), before)


def test_fitted_data_that_a_metric_is_not_defined_for(X: Array, new: Array) -> None:
    given = X[:100].copy()
    given[7] = 3.0
    for data in (given, csr_matrix(given)):
        tsne = small(init="random").fit(data).set_params(metric="correlation")
        with pytest.raises(ValueError, match="row 7 of the fitted data is constant"):
            tsne.transform(new[:3])
    tsne.fit(X[:100])
    with pytest.raises(ValueError, match="row 0 of X is constant"):
        tsne.transform(given[7:8])


@pytest.fixture(scope="module", name="fitted")
def fitted_estimator(X: Array) -> TSNE:
    return small().fit(X)


def assert_each_alone_as_in_a_batch(tsne: TSNE, new: Any) -> Array:
    """Check batches and threads; returns the places."""
    together: Array = tsne.transform(new)
    alone = [tsne.transform(new[i : i + 1]) for i in range(0, new.shape[0], 5)]
    np.testing.assert_array_equal(np.concatenate(alone), together[::5])
    threads = tsne.n_jobs
    for n_jobs in (1, 3):
        np.testing.assert_array_equal(tsne.set_params(n_jobs=n_jobs).transform(new), together)
    tsne.set_params(n_jobs=threads)
    return together


class TestSamplesOfTheMap:
    @pytest.mark.parametrize("parameters", [
        {},
        {"dtype": np.float64},
        {"n_components": 1},
        {"n_components": 3},
        {"dof": 0.5},
        {"method": "exact"},
        {"method": "barnes_hut"},
        {"method": "fft"},
        {"metric": "cosine"},
        {"metric": "manhattan"},
        pytest.param({"metric": lambda a, b: np.abs(a - b).max()}, id="function"),
    ], ids=str)  # fmt: skip
    def test_go_where_they_are(self, X: Array, parameters: dict[str, Any]) -> None:
        X = X[:150]
        tsne = small(**parameters).fit(X)
        np.testing.assert_array_equal(tsne.transform(X), tsne.embedding_)
        np.testing.assert_array_equal(tsne.transform(X[[7, 3, 7]]), tsne.embedding_[[7, 3, 7]])

    @pytest.mark.parametrize(
        "make",
        [np.asfortranarray, np.float32, csr_matrix, csr_array, pd.DataFrame, np.ndarray.tolist],
    )
    @pytest.mark.parametrize("metric", ["euclidean", "cosine"])
    def test_in_any_form(self, X: Array, make: Callable[[Array], Any], metric: str) -> None:
        data = make(X)
        tsne = small(metric=metric).fit(data)
        np.testing.assert_array_equal(tsne.transform(data), tsne.embedding_)

    def test_dense_and_sparse_are_the_same_data(self, X: Array, new: Array) -> None:
        # Pixels are small integers: distances are the same however they are computed.
        dense, sparse = small().fit(X), small().fit(csr_matrix(X))
        np.testing.assert_array_equal(dense.transform(csr_matrix(X)), dense.embedding_)
        np.testing.assert_array_equal(sparse.transform(X), sparse.embedding_)
        for tsne in (dense, sparse):
            np.testing.assert_array_equal(tsne.transform(new), tsne.transform(csr_matrix(new)))

    def test_precomputed(self, X: Array, new: Array) -> None:
        D = pairwise_distances(X)
        tsne = small(metric="precomputed", init="random").fit(D)
        np.testing.assert_array_equal(tsne.transform(D), tsne.embedding_)
        placed = assert_each_alone_as_in_a_batch(tsne, pairwise_distances(new, X))
        # The same as from the data, into the same map.
        from_data = small(init="random").fit(X)
        from_data.embedding_ = tsne.embedding_
        np.testing.assert_allclose(placed, from_data.transform(new), atol=1e-3)

    # Searches by scikit-learn, as the last one is, have no order among equals.
    @pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
    def test_the_first_of_several_that_are_equal(self, X: Array, metric: str) -> None:
        data = np.concatenate([X[:50]] * 4)
        tsne = small(metric=metric).fit(data)
        np.testing.assert_array_equal(tsne.transform(data), tsne.embedding_[np.arange(200) % 50])

    @pytest.mark.parametrize("metric", ["euclidean", "cosine"])
    def test_sparse_rows_that_stay_sparse(
        self, X: Array, metric: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # As rows too many to be made dense do. By scikit-learn's formula a row is not quite at
        # distance zero from itself.
        monkeypatch.setattr("acctsne.neighbors.metrics.DENSE_FACTOR", 0)
        monkeypatch.setattr("acctsne.neighbors.metrics.DENSE_BYTES", 0)
        data = csr_matrix(X * np.random.default_rng(0).uniform(1, 2, size=64))
        tsne = small(metric=metric).fit(data)
        np.testing.assert_array_equal(tsne.transform(data), tsne.embedding_)

    @pytest.mark.parametrize("make", [np.asarray, csr_matrix])
    def test_one_that_is_nearly_equal_is_new(
        self, X: Array, fitted: TSNE, make: Callable[[Array], Any]
    ) -> None:
        placed = fitted.transform(make(X[:20] * (1 + 1e-9)))
        assert (placed != fitted.embedding_[:20]).any(axis=1).all()

    def test_far_from_the_origin_and_tiny(self, X: Array) -> None:
        # Distances of 1e-3 of the norm: the row itself is nearest all the same.
        data = 1000 * np.abs(X).max() + X
        tsne = small().fit(data)
        np.testing.assert_array_equal(tsne.transform(data), tsne.embedding_)
        tsne = small().fit(1e-30 * X)
        np.testing.assert_array_equal(tsne.transform(1e-30 * X), tsne.embedding_)

    def test_where_rounding_is_as_large_as_distances(self, X: Array) -> None:
        # Cosine distances of 1e-5, from float32 data.
        data = (1000 + X).astype(np.float32)
        tsne = small(metric="cosine").fit(data)
        np.testing.assert_array_equal(tsne.transform(data), tsne.embedding_)

    def test_some_old_some_new(self, X: Array, new: Array, fitted: TSNE) -> None:
        mixed = np.concatenate([new[:3], X[5:8], new[3:6]])
        placed = fitted.transform(mixed)
        np.testing.assert_array_equal(placed[3:6], fitted.embedding_[5:8])
        np.testing.assert_array_equal(placed[[0, 1, 2, 6, 7, 8]], fitted.transform(new[:6]))


class TestNewSamples:
    @pytest.mark.parametrize("parameters", [
        {"n_components": 1},
        {"n_components": 2},
        {"n_components": 3},
        {"n_components": 2, "method": "barnes_hut", "dtype": np.float64},
        {"n_components": 1, "method": "fft", "dof": 0.5},
        {"n_components": 2, "method": "exact", "dof": 0.5},
        {"n_components": 3, "method": "barnes_hut", "dof": "sklearn"},
        {"n_components": 2, "method": "fft", "dof": 1000.0},
        {"metric": "cosine"},
    ], ids=str)  # fmt: skip
    def test_batches_and_threads(self, X: Array, new: Array, parameters: dict[str, Any]) -> None:
        tsne = small(**parameters).fit(X)
        before = tsne.embedding_.copy()
        placed = assert_each_alone_as_in_a_batch(tsne, new)
        assert placed.dtype == tsne.embedding_.dtype
        # Inside the map, and each in a place of its own.
        low, high = before.min(axis=0), before.max(axis=0)
        assert ((placed > low - 0.1 * (high - low)) & (placed < high + 0.1 * (high - low))).all()
        assert len(np.unique(placed, axis=0)) == len(new)
        np.testing.assert_array_equal(tsne.embedding_, before)

    def test_sparse_batches(self, X: Array, new: Array) -> None:
        assert_each_alone_as_in_a_batch(small().fit(csr_matrix(X)), csr_matrix(new))

    def test_equal_ones_go_to_the_same_place(self, new: Array, fitted: TSNE) -> None:
        placed = fitted.transform(new[[0, 1, 0, 0]])
        np.testing.assert_array_equal(placed[[2, 3]], placed[[0, 0]])
        assert (placed[1] != placed[0]).any()

    @pytest.mark.parametrize("method", ["auto", "barnes_hut", "exact"])
    def test_methods_agree(self, X: Array, new: Array, fitted: TSNE, method: str) -> None:
        other = small(method=method).fit(X)
        other.embedding_ = fitted.embedding_
        away = np.linalg.norm(other.transform(new) - fitted.transform(new), axis=1)
        assert np.median(away) < 1e-3 * np.ptp(fitted.embedding_, axis=0).max()

    # Few samples have fewer neighbours than 15, and a perplexity of a third of them.
    @pytest.mark.parametrize(("n", "k", "perplexity"), [(300, 15, 5.0), (6, 6, 2.0)])
    def test_the_place_is_where_its_own_objective_is_low(
        self, X: Array, new: Array, n: int, k: int, perplexity: float
    ) -> None:
        # KL of a new point's distribution over its neighbours from that over the whole map: a plain
        # implementation finds nothing much lower round about.
        X = X[:n]
        tsne = small(dtype=np.float64, method="exact", perplexity=min(10, n / 3)).fit(X)
        placed = tsne.transform(new[:10])
        Y = tsne.embedding_
        for sample, place in zip(new[:10], placed, strict=True):
            weights = row_of_perplexity(np.square(X - sample).sum(axis=1), k, perplexity)

            def objective(y: Array, weights: Array = weights) -> float:
                q = 1 / (1 + np.square(Y - y).sum(axis=1))
                # Attraction counts 1.5 times, as the documentation of the placement says.
                return float(-1.5 * (weights * np.log(q)).sum() + np.log(q.sum()))

            around = place + 0.5 * np.random.default_rng(0).normal(size=(200, 2))
            lowest = min(objective(y) for y in around)
            assert objective(place) < lowest + 1e-2

    def test_quality_on_held_out_digits(self, digits: tuple[Array, Array]) -> None:
        X, y = digits
        order = np.random.default_rng(0).permutation(len(X))
        train, test = order[:1200], order[1200:]

        def accuracy(Y: Array, Y_new: Array) -> float:
            return float(KNeighborsClassifier(10).fit(Y, y[train]).score(Y_new, y[test]))

        tsne = TSNE(random_state=0, max_iter=500).fit(X[train])
        ours = accuracy(tsne.embedding_, tsne.transform(X[test]))
        # The training points' own: each by the others.
        around = KNeighborsClassifier(10).fit(tsne.embedding_, y[train])
        others = y[train][around.kneighbors(return_distance=False)]
        own = np.mean([np.bincount(row).argmax() for row in others] == y[train])
        assert ours > own - 0.01

        # As many iterations, and the methods that are fastest at this size.
        peer = openTSNE.TSNE(
            n_iter=250, random_state=0, neighbors="exact", negative_gradient_method="bh"
        )
        theirs = peer.fit(X[train])
        assert ours >= accuracy(np.asarray(theirs), np.asarray(theirs.transform(X[test])))

    @pytest.mark.parametrize("n", [2, 3, 14, 15, 16])
    def test_few_samples(self, X: Array, new: Array, n: int) -> None:
        tsne = small(perplexity=1).fit(X[:n])
        np.testing.assert_array_equal(tsne.transform(X[:n]), tsne.embedding_)
        assert np.isfinite(assert_each_alone_as_in_a_batch(tsne, new)).all()

    def test_what_a_metric_takes_from_the_data(self) -> None:
        X = np.random.default_rng(0).normal(size=(60, 4)) * [1, 2, 3, 4]
        for metric, params in (
            ("seuclidean", {"V": X.var(axis=0, ddof=1)}),
            ("mahalanobis", {"VI": np.linalg.inv(np.cov(X.T)).T}),
        ):
            found = small(metric=metric, method="exact").fit(X)
            given = small(metric=metric, method="exact", metric_params=params).fit(X)
            np.testing.assert_array_equal(found.embedding_, given.embedding_)
            np.testing.assert_array_equal(found.transform(X[:9] + 1), given.transform(X[:9] + 1))

    def test_far_away_ones(self, fitted: TSNE) -> None:
        placed = fitted.transform(np.full((2, 64), 1e9) * [[1], [-1]])
        spread = np.ptp(fitted.embedding_, axis=0)
        assert (np.abs(placed - fitted.embedding_.mean(axis=0)) < 2 * spread).all()


def test_weighted_medians() -> None:
    rng = np.random.default_rng(0)
    values, weights = rng.normal(size=(50, 7, 2)), rng.uniform(size=(50, 7))
    medians = weighted_medians(values, weights)
    for row, axis in np.ndindex(medians.shape):
        there, half = values[row, :, axis], weights[row].sum() / 2
        assert medians[row, axis] in there
        assert weights[row][there < medians[row, axis]].sum() < half
        assert weights[row][there <= medians[row, axis]].sum() >= half


def row_of_perplexity(d2: Array, k: int, perplexity: float) -> Array:
    """Weights over the k nearest, by bisection, zero elsewhere."""
    nearest = np.argsort(d2)[:k]
    low, high = 1e-9, 1e9
    for _ in range(200):
        beta = np.sqrt(low * high)
        p = np.exp(-beta * (d2[nearest] - d2[nearest[0]]))
        p /= p.sum()
        entropy = -(p * np.log(np.maximum(p, 1e-300))).sum()
        low, high = (beta, high) if entropy > np.log(perplexity) else (low, beta)
    weights = np.zeros(len(d2))
    weights[nearest] = p
    return weights


class TestFrameOfTheFit:
    """Transform goes on with the axes that the fit's search found, and ends in the same bits."""

    @pytest.mark.parametrize("metric", ["euclidean", "cosine", "minkowski", "manhattan"])
    def test_same_places_without_it(self, X: Array, new: Array, metric: str) -> None:
        tsne = small(metric=metric).fit(X)
        with_frame = tsne.transform(new)
        assert (tsne._fit_frame is None) == (metric == "manhattan")
        tsne._fit_frame = None
        np.testing.assert_array_equal(tsne.transform(new), with_frame)

    def test_is_not_found_again(
        self, new: Array, fitted: TSNE, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        searches: list[int] = []

        def counted(X: Array, *others: Any) -> Frame:
            searches.append(len(X))
            return find_frame(X, *others)

        monkeypatch.setattr("acctsne.neighbors.euclidean.find_frame", counted)
        pickled = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(pickled.transform(new), fitted.transform(new))
        assert searches == []
        assert clone(fitted).fit(new)._fit_frame is not None
        assert searches == [len(new)]

    def test_is_left_when_the_metric_changes(self, X: Array, new: Array) -> None:
        # By cosine the search has one more column.
        tsne = small().fit(X).set_params(metric="cosine")
        changed = tsne.transform(new)
        tsne._fit_frame = None
        np.testing.assert_array_equal(tsne.transform(new), changed)

    def test_a_fit_without_one_forgets_it(self, X: Array) -> None:
        tsne = small(init="random").fit(X)
        tsne.fit(Affinities.from_data(X, perplexity=10))
        assert tsne._fit_frame is None


class TestInScikitLearn:
    def test_pandas_out(self, X: Array, new: Array) -> None:
        names = [f"pixel{i}" for i in range(64)]
        tsne = small().set_output(transform="pandas").fit(pd.DataFrame(X, columns=names))
        frame = pd.DataFrame(new, columns=names, index=np.arange(40) + 7)
        placed = tsne.transform(frame)
        assert isinstance(placed, pd.DataFrame)
        assert list(placed.columns) == ["tsne0", "tsne1"]
        assert placed.index.equals(frame.index)
        np.testing.assert_array_equal(placed.to_numpy(), small().fit(X).transform(new))
        with pytest.raises(ValueError, match="feature names should match"):
            tsne.transform(frame.rename(columns={"pixel0": "other"}))

    def test_pipeline(self, X: Array, new: Array) -> None:
        pipeline = make_pipeline(StandardScaler(), small()).fit(X)
        scaler = StandardScaler().fit(X)
        tsne = small().fit(scaler.transform(X))
        np.testing.assert_array_equal(pipeline.transform(X), tsne.embedding_)
        np.testing.assert_array_equal(
            pipeline.transform(new), tsne.transform(scaler.transform(new))
        )

    def test_errors(self, X: Array, new: Array, fitted: TSNE) -> None:
        with pytest.raises(NotFittedError):
            TSNE().transform(X)
        with pytest.raises(ValueError, match="63 features, but TSNE is expecting 64 features"):
            fitted.transform(new[:, 1:])
        with pytest.raises(ValueError, match="contains NaN"):
            fitted.transform(np.full((2, 64), np.nan))
        with pytest.raises(ValueError, match="0 sample"):
            fitted.transform(new[:0])

    def test_fitted_to_affinities(self, X: Array, tmp_path: Path) -> None:
        tsne = small(init="random").fit(Affinities.from_data(X, perplexity=10))
        said = "fitted to an Affinities, .* use Embedding.transform"
        with pytest.raises(ValueError, match=said):
            tsne.transform(X)
        tsne.save(tmp_path / "tsne.npz")
        loaded = TSNE.load(tmp_path / "tsne.npz")
        np.testing.assert_array_equal(loaded.embedding_, tsne.embedding_)
        with pytest.raises(ValueError, match=said):
            loaded.transform(X)

    def test_precomputed_errors(self, X: Array, new: Array) -> None:
        D = pairwise_distances(X)
        tsne = small(metric="precomputed", init="random").fit(D)
        with pytest.raises(ValueError, match="40 features, but TSNE is expecting 300"):
            tsne.transform(pairwise_distances(new))
        with pytest.raises(ValueError, match=r"Negative values in data passed to TSNE\.transform"):
            tsne.transform(-D)
        with pytest.raises(TypeError, match="takes a dense matrix of the distances"):
            tsne.transform(csr_matrix(D))


class TestFiles:
    @pytest.mark.parametrize("make", [np.asarray, np.float32, csr_matrix])
    def test_goes_on_with_the_same_bits(
        self, X: Array, new: Array, tmp_path: Path, make: Callable[[Array], Any]
    ) -> None:
        tsne = small(metric="cosine", learning_rate=(20.0, 50.0), dtype="float64").fit(make(X))
        path = tmp_path / "fitted"
        tsne.save(path)
        loaded = TSNE.load(path)
        np.testing.assert_array_equal(loaded.embedding_, tsne.embedding_)
        np.testing.assert_array_equal(loaded.transform(make(new)), tsne.transform(make(new)))
        for name in ("kl_divergence_", "n_iter_", "learning_rate_", "timings_", "n_features_in_"):
            assert getattr(loaded, name) == getattr(tsne, name), name
        assert issparse(loaded._fit_X) == issparse(tsne._fit_X)
        # The parameters are those of an equal fit.
        np.testing.assert_array_equal(loaded.fit_transform(make(X)), tsne.embedding_)

    def test_column_names(self, X: Array, new: Array, tmp_path: Path) -> None:
        names = [f"pixel{i}" for i in range(64)]
        tsne = small().fit(pd.DataFrame(X, columns=names))
        tsne.save(tmp_path / "fitted.npz")
        loaded = TSNE.load(tmp_path / "fitted.npz")
        np.testing.assert_array_equal(loaded.feature_names_in_, names)
        frame = pd.DataFrame(new, columns=names)
        np.testing.assert_array_equal(loaded.transform(frame), tsne.transform(frame))

    def test_parameters_of_any_kind(self, X: Array, tmp_path: Path) -> None:
        parameters: dict[str, Any] = {
            "perplexity": np.float32(10),
            "init": np.random.default_rng(0).normal(size=(300, 2)),
            "random_state": np.random.RandomState(3),
            "callback": print,
            "callback_every": 1000,
            "max_iter": np.int64(250),
            "momentum": [0.5, 0.8],
            "late_exaggeration": 2.0,
            "late_exaggeration_start": 200,
        }
        tsne = TSNE(**parameters).fit(X)
        tsne.save(tmp_path / "fitted.npz")
        loaded = TSNE.load(tmp_path / "fitted.npz")
        kept = loaded.get_params()
        # What serves one fit alone is not kept.
        assert kept["callback"] is None
        assert kept["random_state"] is None
        for name in parameters.keys() - {"callback", "random_state"}:
            np.testing.assert_array_equal(kept[name], parameters[name], err_msg=name)
        np.testing.assert_array_equal(loaded.fit_transform(X), tsne.embedding_)

    def test_a_function_cannot_be_kept(self, X: Array, tmp_path: Path) -> None:
        path = tmp_path / "fitted.npz"
        tsne = small(metric=lambda a, b: np.abs(a - b).max()).fit(X[:50])
        with pytest.raises(ValueError, match=rf"{re.escape(str(path))} cannot be written, .* name"):
            tsne.save(path)
        tsne = small(metric="mahalanobis", metric_params={"VI": np.eye(64)}).fit(X[:50])
        with pytest.raises(ValueError, match=r"metric_params plain numbers"):
            tsne.save(path)
        assert list(tmp_path.iterdir()) == []

    def test_files_that_are_none(self, X: Array, fitted: TSNE, tmp_path: Path) -> None:
        path = tmp_path / "fitted.npz"

        def refused() -> str:
            with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
                TSNE.load(path)
            return str(caught.value)

        fitted.save(path)
        whole = path.read_bytes()
        for size in (0, 10, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:size])
            assert "cut off" in refused()
        np.savez(path, X=X)
        assert "no header" in refused()
        path.write_bytes(whole)
        with np.load(path) as archive:
            arrays = dict(archive)
        np.savez(path, **{**arrays, "X": arrays["X"][:-1]})
        assert "299 samples for 300 points" in refused()
        np.savez(path, **{name: array for name, array in arrays.items() if name != "embedding"})
        assert "embedding" in refused()
        with pytest.raises(FileNotFoundError):
            TSNE.load(tmp_path / "absent.npz")

    def test_unfitted(self, tmp_path: Path) -> None:
        with pytest.raises(NotFittedError):
            TSNE().save(tmp_path / "fitted.npz")
