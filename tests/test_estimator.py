"""TSNE as a scikit-learn estimator: conventions, parameters, attributes, callbacks, logging."""

import inspect
import logging
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.manifold import TSNE as SklearnTSNE  # noqa: N811
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from acctsne import TSNE, Affinities, quality

Array = npt.NDArray[Any]


@pytest.fixture(scope="module", name="X")
def samples() -> Array:
    return np.random.default_rng(0).normal(size=(90, 5))


# So that early exaggeration takes the whole of short fits, and ends at a known iteration in others.
LONG_EARLY: dict[str, Any] = {"early_exaggeration_iter": 250}


def small(**parameters: Any) -> TSNE:
    """Make an estimator for the 90 samples of `X`."""
    usual = {"perplexity": 8, "max_iter": 250, "random_state": 0, "tol": 0, **LONG_EARLY}
    return TSNE(**{**usual, **parameters})


# The checks fit a few dozen samples, sometimes only a handful: hence the small perplexity. None is
# expected to fail. Warnings about the odd data that the checks make are not judged here.
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [TSNE(perplexity=2, max_iter=250), TSNE(perplexity=2, method="exact")]
)
def test_scikit_learn_estimator_checks(estimator: Any, check: Any) -> None:
    check(estimator)


class TestDropIn:
    def test_every_parameter_of_scikit_learn_with_its_default(self) -> None:
        ours = inspect.signature(TSNE).parameters
        theirs = inspect.signature(SklearnTSNE).parameters
        for name, parameter in theirs.items():
            assert name in ours
            if name == "method":
                continue  # "auto" takes the fastest of the same accuracy
            assert ours[name].default == parameter.default, name
            assert ours[name].kind == parameter.kind, name
        # Theirs first and in their order, ours after them.
        assert list(ours)[: len(theirs)] == list(theirs)

    def test_every_public_method_of_scikit_learn(self) -> None:
        for name, theirs in inspect.getmembers(SklearnTSNE, inspect.isfunction):
            if not name.startswith("_"):
                ours = list(inspect.signature(getattr(TSNE, name)).parameters)
                expected = list(inspect.signature(theirs).parameters)
                assert ours[: len(expected)] == expected, name

    def test_every_attribute_of_scikit_learn(self, X: Array) -> None:
        theirs = SklearnTSNE(perplexity=8, max_iter=250).fit(X)
        fitted = {name for name in vars(theirs) if name.endswith("_") and name[0] != "_"}
        assert fitted <= set(vars(small().fit(X)))

    def test_works_in_a_pipeline(self, X: Array) -> None:
        embedding = make_pipeline(StandardScaler(), small()).fit_transform(X)
        expected = small().fit_transform(StandardScaler().fit_transform(X))
        np.testing.assert_array_equal(embedding, expected)

    def test_takes_y_and_ignores_it(self, X: Array) -> None:
        y = np.arange(90)
        np.testing.assert_array_equal(small().fit_transform(X, y), small().fit(X).embedding_)


class OfFewParameters(TSNE):
    """What a program may have made of scikit-learn's class: it sets the others itself."""

    def __init__(self, perplexity: float = 8, metric: str = "cosine") -> None:
        super().__init__(perplexity=perplexity, metric=metric, random_state=0)


class Turned(TSNE):
    """A method that stands for one of scikit-learn's takes what that takes."""

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        self.embedding_ = super().fit_transform(X)[:, ::-1]
        return self.embedding_


class TestSubclasses:
    def test_of_fewer_parameters(self, X: Array, tmp_path: Path) -> None:
        expected = TSNE(perplexity=8, metric="cosine", random_state=0).fit(X)
        tsne = OfFewParameters()
        assert set(tsne.get_params()) == {"perplexity", "metric"}
        tsne.fit(X).save(tmp_path / "map.npz")
        for one in (tsne, clone(tsne).fit(X), OfFewParameters.load(tmp_path / "map.npz")):
            np.testing.assert_array_equal(one.embedding_, expected.embedding_)
            np.testing.assert_array_equal(one.transform(X + 1), expected.transform(X + 1))
        with pytest.raises(ValueError, match="'perplexity' parameter of OfFewParameters"):
            OfFewParameters(perplexity=0).fit(X)

    def test_with_a_method_of_its_own(self, X: Array) -> None:
        expected = TSNE(perplexity=8, random_state=0).fit_transform(X)[:, ::-1]
        turned = Turned(perplexity=8, random_state=0).fit(X)
        np.testing.assert_array_equal(turned.embedding_, expected)


class TestParameters:
    def test_get_and_set(self) -> None:
        tsne = TSNE(perplexity=5, callback_every=7)
        parameters = tsne.get_params()
        assert set(parameters) == set(inspect.signature(TSNE).parameters)
        assert parameters["perplexity"] == 5
        assert parameters["callback_every"] == 7
        assert tsne.set_params(perplexity=6) is tsne
        assert tsne.perplexity == 6
        with pytest.raises(ValueError, match="Invalid parameter 'perplexit'"):
            tsne.set_params(perplexit=6)

    def test_clone_copies_parameters_only(self, X: Array) -> None:
        tsne = small(schedule="sklearn", dtype=np.float64).fit(X)
        copy = clone(tsne)
        assert copy.get_params() == tsne.get_params()
        assert not hasattr(copy, "embedding_")
        np.testing.assert_array_equal(copy.fit_transform(X), tsne.embedding_)

    def test_fit_changes_no_parameter(self, X: Array) -> None:
        tsne = small(init="pca", learning_rate="auto")
        before = dict(tsne.get_params())
        tsne.fit(X)
        assert tsne.get_params() == before

    def test_user_data_is_not_changed(self, X: Array) -> None:
        data = X.astype(np.float32)
        init = np.random.default_rng(0).normal(size=(90, 2)).astype(np.float32)
        data_before, init_before = data.copy(), init.copy()
        small(init=init).fit(data)
        np.testing.assert_array_equal(data, data_before)
        np.testing.assert_array_equal(init, init_before)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("n_components", 0),
            ("perplexity", 0),
            ("early_exaggeration", 0.5),
            ("learning_rate", -1.0),
            ("learning_rate", "fast"),
            ("max_iter", 249),
            ("n_iter_without_progress", -2),
            ("min_grad_norm", -1e-9),
            ("metric", "nonsense"),
            ("metric_params", 3),
            ("init", "middle"),
            ("verbose", -1),
            ("method", "umap"),
            ("angle", 1.5),
            ("n_jobs", 1.5),
            ("schedule", "slow"),
            ("early_exaggeration_iter", -1),
            ("callback", 3),
            ("callback_every", 0),
        ],
    )
    def test_bad_values_are_named(self, X: Array, name: str, value: Any) -> None:
        with pytest.raises(ValueError, match=rf"'{name}' parameter of TSNE .* Got {value!r}"):
            TSNE(**{name: value}).fit(X)

    def test_n_jobs_zero(self, X: Array) -> None:
        with pytest.raises(ValueError, match="n_jobs == 0 has no meaning"):
            small(n_jobs=0).fit(X)

    @pytest.mark.parametrize("init", ["random", "pca"])
    def test_random_state(self, X: Array, init: str) -> None:
        first = small(random_state=4, init=init).fit_transform(X)
        np.testing.assert_array_equal(small(random_state=4, init=init).fit_transform(X), first)
        generator = np.random.RandomState(4)
        again = small(random_state=generator, init=init).fit_transform(X)
        np.testing.assert_array_equal(again, first)
        other = small(random_state=5, init=init).fit_transform(X)
        # A small PCA is not random.
        assert np.array_equal(other, first) == (init == "pca")

    def test_dtype(self, X: Array) -> None:
        assert small(dtype=np.float64).fit_transform(X).dtype == np.float64
        assert small(dtype="float64").fit_transform(X).dtype == np.float64
        assert small().fit_transform(X).dtype == np.float32
        assert small().fit_transform(X.astype(np.float32)).dtype == np.float32

    def test_learning_rate(self, digits: tuple[Array, Array]) -> None:
        X = digits[0]

        def rate(**parameters: Any) -> float:
            return TSNE(max_iter=250, **parameters).fit(X).learning_rate_

        for schedule, factor in (("fast", 1), ("sklearn", 4)):
            assert rate(schedule=schedule, early_exaggeration=4) == 1797 / 4 / factor
            assert rate(schedule=schedule, learning_rate=77) == 77.0
        # scikit-learn's smallest: 1797 / 12 / 4 would be less.
        assert rate(schedule="sklearn", early_exaggeration=12) == 50.0

    def test_early_exaggeration_iter(self, X: Array) -> None:
        # Without early exaggeration its factor does not matter, with it it does.
        def embed(factor: float, iterations: int) -> Array:
            tsne = small(early_exaggeration=factor, early_exaggeration_iter=iterations)
            embedding: Array = tsne.fit_transform(X)
            return embedding

        np.testing.assert_array_equal(embed(4.0, 0), embed(12.0, 0))
        assert not np.array_equal(embed(4.0, 10), embed(12.0, 10))
        # More than all iterations is all iterations.
        np.testing.assert_array_equal(embed(4.0, 250), embed(4.0, 100_000))

    def test_schedules_differ(self, X: Array) -> None:
        fast = small(schedule="fast").fit_transform(X)
        assert not np.array_equal(fast, small(schedule="sklearn").fit_transform(X))

    def test_angle_matters_to_barnes_hut_only(self, X: Array) -> None:
        tree = [small(angle=angle, method="barnes_hut").fit_transform(X) for angle in (0.1, 0.9)]
        assert not np.array_equal(*tree)
        exact = [small(angle=angle, method="exact").fit_transform(X) for angle in (0.1, 0.9)]
        np.testing.assert_array_equal(*exact)


class TestAttributes:
    @pytest.mark.parametrize("max_iter", [250, 273])
    def test_n_iter_counts_from_zero(self, X: Array, max_iter: int) -> None:
        assert small(max_iter=max_iter).fit(X).n_iter_ == max_iter - 1

    @pytest.mark.parametrize(("patience", "last"), [(-1, 279), (0, 279), (19, 279), (100, 379)])
    def test_stops_without_progress(self, X: Array, patience: int, last: int) -> None:
        # Steps too short to change a coordinate: no look after the one at 259 is any better.
        tsne = small(
            n_iter_without_progress=patience, max_iter=1000, learning_rate=1e-20, min_grad_norm=0
        )
        assert tsne.fit(X).n_iter_ == last

    def test_stops_at_a_small_gradient(self, X: Array) -> None:
        tsne = small(min_grad_norm=1e9, max_iter=1000).fit(X)
        assert tsne.n_iter_ == 259  # the first look after early exaggeration

    @pytest.mark.parametrize("method", ["exact", "barnes_hut"])
    def test_kl_divergence_is_that_of_the_embedding(self, X: Array, method: str) -> None:
        # 263 iterations: no look of the loop falls on the last one.
        tsne = small(max_iter=263, method=method, dtype=np.float64, angle=0.0).fit(X)
        # "exact" has everybody as neighbours; so has a perplexity near N / 3 for the referee.
        P = exact_affinities(X, 8.0) if method == "exact" else quality.affinities(X, 8.0)
        expected = quality.exact_kl(None, tsne.embedding_, P=P)
        assert tsne.kl_divergence_ == pytest.approx(expected, rel=1e-9)

    def test_kl_divergence_is_a_plain_float(self, X: Array) -> None:
        tsne = small().fit(X)
        assert type(tsne.kl_divergence_) is float
        assert type(tsne.n_iter_) is int

    def test_embedding_is_centered(self, X: Array) -> None:
        # Far from the origin float32 would have few digits left.
        init = 1000 + np.random.default_rng(0).normal(size=(90, 2))
        embedding = small(init=init).fit_transform(X)
        assert np.abs(embedding.mean(axis=0)).max() < embedding.std()

    def test_feature_names_out(self, X: Array) -> None:
        tsne = small(n_components=3).fit(X)
        np.testing.assert_array_equal(tsne.get_feature_names_out(), ["tsne0", "tsne1", "tsne2"])

    def test_pickle_of_a_fitted_estimator(self, X: Array) -> None:
        tsne = small().fit(X)
        copy = pickle.loads(pickle.dumps(tsne))
        np.testing.assert_array_equal(copy.embedding_, tsne.embedding_)
        assert copy.kl_divergence_ == tsne.kl_divergence_
        assert copy.timings_ == tsne.timings_
        np.testing.assert_array_equal(copy.fit_transform(X), tsne.embedding_)


def exact_affinities(X: Array, perplexity: float) -> csr_matrix:
    """Joint probabilities over all pairs, by bisection in NumPy."""
    n = len(X)
    d2 = np.square(X[:, None] - X[None, :]).sum(axis=-1)
    conditional = np.zeros((n, n))
    for i in range(n):
        others = np.delete(d2[i], i)
        low, high = -20.0, 20.0  # of log beta
        for _ in range(100):
            beta = np.exp((low + high) / 2)
            p = np.exp(-beta * (others - others.min()))
            p /= p.sum()
            entropy = -(p * np.log(np.maximum(p, 1e-300))).sum()
            low, high = ((low + high) / 2, high) if entropy > np.log(perplexity) else (
                low, (low + high) / 2
            )  # fmt: skip
        conditional[i] = np.insert(p, i, 0.0)
    return csr_matrix((conditional + conditional.T) / (2 * n))


class TestFrames:
    NAMES = ("a", "b", "c", "d", "e")

    def test_pandas_in(self, X: Array) -> None:
        frame = pd.DataFrame(X, columns=list(self.NAMES))
        tsne = small()
        np.testing.assert_array_equal(tsne.fit_transform(frame), small().fit_transform(X))
        np.testing.assert_array_equal(tsne.feature_names_in_, self.NAMES)

    def test_polars_in(self, X: Array) -> None:
        frame = pl.DataFrame(X, schema=list(self.NAMES))
        tsne = small()
        np.testing.assert_array_equal(tsne.fit_transform(frame), small().fit_transform(X))
        np.testing.assert_array_equal(tsne.feature_names_in_, self.NAMES)

    def test_names_are_of_the_last_data(self, X: Array) -> None:
        tsne = small(init="random").fit(pd.DataFrame(X, columns=list(self.NAMES)))
        tsne.fit(Affinities.from_data(X, perplexity=8))
        assert not hasattr(tsne, "n_features_in_")
        assert not hasattr(tsne, "feature_names_in_")

    def test_pandas_out(self, X: Array) -> None:
        frame = pd.DataFrame(X, columns=list(self.NAMES), index=np.arange(90) + 1000)
        tsne = small().set_output(transform="pandas")
        out = tsne.fit_transform(frame)
        assert isinstance(out, pd.DataFrame)
        assert list(out.columns) == ["tsne0", "tsne1"]
        assert out.index.equals(frame.index)
        np.testing.assert_array_equal(out.to_numpy(), tsne.embedding_)
        assert isinstance(tsne.embedding_, np.ndarray)

    def test_polars_out(self, X: Array) -> None:
        tsne = small().set_output(transform="polars")
        out = tsne.fit_transform(X)
        assert isinstance(out, pl.DataFrame)
        assert out.columns == ["tsne0", "tsne1"]
        np.testing.assert_array_equal(out.to_numpy(), tsne.embedding_)


class TestCallback:
    def test_arguments(self, X: Array) -> None:
        calls: list[tuple[int, float, Array]] = []

        def callback(iteration: int, kl: float, embedding: Array) -> None:
            calls.append((iteration, kl, embedding))

        tsne = small(callback=callback, dtype=np.float64, angle=0.0).fit(X)
        # Iterations are counted from 0, as in n_iter_; the default is every 50.
        assert [iteration for iteration, _, _ in calls] == [49, 99, 149, 199, 249]
        assert calls[-1][0] == tsne.n_iter_
        for _, kl, embedding in calls:
            assert type(kl) is float
            assert embedding.shape == (90, 2)
            assert np.isfinite(embedding).all()
        # Each call has a copy of its own.
        assert not np.array_equal(calls[0][2], calls[1][2])
        np.testing.assert_array_equal(calls[-1][2], tsne.embedding_)

    def test_kl_is_that_of_the_positions(self, X: Array) -> None:
        # Large steps, so that neighbouring iterations can be told apart.
        calls: list[tuple[float, Array]] = []
        small(
            callback=lambda _, kl, embedding: calls.append((kl, embedding)),
            callback_every=25,
            learning_rate=50.0,
            early_exaggeration_iter=20,
            dtype=np.float64,
            angle=0.0,
        ).fit(X)
        P = quality.affinities(X, 8.0)
        for kl, embedding in calls:
            assert kl == pytest.approx(quality.exact_kl(None, embedding, P=P), rel=1e-6)

    @pytest.mark.parametrize("every", [1, 7, 100, 1000])
    def test_callback_every(self, X: Array, every: int) -> None:
        iterations: list[int] = []
        small(callback=lambda i, *_: iterations.append(i), callback_every=every).fit(X)
        assert iterations == list(range(every - 1, 250, every))

    def test_callback_every_is_kept_beside_the_log(
        self, X: Array, caplog: pytest.LogCaptureFixture
    ) -> None:
        iterations: list[int] = []
        tsne = small(callback=lambda i, *_: iterations.append(i), callback_every=30, verbose=1)
        with caplog.at_level(logging.INFO, logger="acctsne"):
            tsne.fit(X)
        assert iterations == list(range(29, 250, 30))
        assert caplog.text.count("gradient norm") == 5

    def test_callback_changes_nothing(self, X: Array) -> None:
        def scribble(_iteration: int, _kl: float, embedding: Array) -> None:
            embedding[:] = np.nan

        with_callback = small(callback=scribble, callback_every=10).fit_transform(X)
        np.testing.assert_array_equal(with_callback, small().fit_transform(X))

    @pytest.mark.parametrize("true", [True, np.True_, 1])
    @pytest.mark.parametrize("stop_at", [99, 274])  # in either phase
    def test_true_stops(self, X: Array, stop_at: int, true: Any) -> None:
        seen: list[Array] = []

        def callback(iteration: int, _kl: float, embedding: Array) -> Any:
            seen.append(embedding)
            return true if iteration == stop_at else False

        tsne = small(max_iter=400, callback=callback, callback_every=25).fit(X)
        assert tsne.n_iter_ == stop_at
        np.testing.assert_array_equal(tsne.embedding_, seen[-1])
        assert np.isfinite(tsne.kl_divergence_)

    def test_exception_propagates_and_leaves_the_layout(self, X: Array) -> None:
        error = ZeroDivisionError("from the callback")

        def callback(iteration: int, _kl: float, _embedding: Array) -> None:
            if iteration == 119:
                raise error

        tsne = small(callback=callback, callback_every=20)
        with pytest.raises(ZeroDivisionError) as caught:
            tsne.fit(X)
        assert caught.value is error
        assert np.isfinite(tsne.embedding_).all()
        assert tsne.n_iter_ == 119
        # The estimator is none the worse.
        tsne.set_params(callback=None).fit(X)
        assert tsne.n_iter_ == 249

    def test_an_earlier_map_is_not_taken_for_the_one_being_made(
        self, X: Array, tmp_path: Path
    ) -> None:
        tsne = small().fit(X)

        def save(*_: Any) -> None:
            with pytest.raises(NotFittedError):
                tsne.save(tmp_path / "map.npz")

        tsne.set_params(callback=save).fit(X + 1)
        assert not list(tmp_path.iterdir())
        np.testing.assert_array_equal(tsne.transform(X[:3] + 1), tsne.embedding_[:3])

    def test_exception_in_the_callback_does_not_leave_an_old_kl(self, X: Array) -> None:
        def callback(*_: Any) -> None:
            raise RuntimeError("stop")

        tsne = small().fit(X)
        tsne.set_params(callback=callback)
        with pytest.raises(RuntimeError, match="stop"):
            tsne.fit(X[::-1] * [5, 4, 3, 2, 1])
        assert not hasattr(tsne, "kl_divergence_")


class TestLog:
    def test_verbose_logs(self, X: Array, caplog: pytest.LogCaptureFixture) -> None:
        small(verbose=1).fit(X)
        records = [record for record in caplog.records if record.name == "acctsne"]
        assert all(record.levelno == logging.INFO for record in records)
        messages = [record.getMessage() for record in records]
        assert any("90 samples" in message for message in messages)
        assert any("affinities" in message for message in messages)
        assert sum("early exaggeration, iteration" in message for message in messages) == 5
        assert any(message.startswith("KL divergence") for message in messages)

    def test_quiet_by_default(
        self, X: Array, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
    ) -> None:
        small().fit(X)
        assert caplog.records == []
        assert capfd.readouterr() == ("", "")

    def test_the_reason_of_a_stop_is_logged(
        self, X: Array, caplog: pytest.LogCaptureFixture
    ) -> None:
        small(verbose=1, min_grad_norm=1e9, max_iter=400).fit(X)
        assert "ended after 260 iterations: small gradient" in caplog.text

    def test_the_bound_is_a_reason_too(self, X: Array, caplog: pytest.LogCaptureFixture) -> None:
        small(verbose=1, max_iter=270).fit(X)
        assert [m for m in caplog.messages if "ended" in m] == [
            "ended after 270 iterations: max_iter"
        ]

    def test_level_of_the_logger_is_restored(self, X: Array) -> None:
        logger = logging.getLogger("acctsne")
        before = logger.level, list(logger.handlers)
        small(verbose=1).fit(X)
        assert (logger.level, list(logger.handlers)) == before

    def test_verbose_changes_nothing(self, X: Array) -> None:
        loud = small(verbose=1).fit_transform(X)
        np.testing.assert_array_equal(loud, small().fit_transform(X))
