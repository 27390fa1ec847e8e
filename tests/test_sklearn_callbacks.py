"""scikit-learn's callbacks, set by set_callbacks, in versions that have them."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from acctsne import TSNE

pytest.importorskip("sklearn.callback")

Array = npt.NDArray[Any]


@pytest.fixture(scope="module", name="X")
def samples() -> Array:
    return np.random.default_rng(0).normal(size=(90, 5))


def small(**parameters: Any) -> TSNE:
    return TSNE(**{"perplexity": 8, "max_iter": 250, "random_state": 0, "tol": 0, **parameters})


class Recorder:
    """Notes what it is told; can stop a fit, or fail."""

    def __init__(self, stop_at: int = -1, fail_at: int = -1) -> None:
        self.stop_at = stop_at
        self.fail_at = fail_at
        self.told: list[str] = []
        self.fitted: list[TSNE] = []

    def _note(self, what: str, estimator: Any, context: Any) -> None:
        self.told.append(f"{what} {type(estimator).__name__} {context.task_name} {context.task_id}")

    def setup(self, estimator: Any, context: Any) -> None:
        self._note("setup", estimator, context)

    def teardown(self, estimator: Any, context: Any) -> None:
        self._note("teardown", estimator, context)

    def on_fit_task_begin(self, estimator: Any, context: Any, *, X: Any = None) -> None:
        assert X is not None
        self._note("begin", estimator, context)

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, X: Any = None, fitted_estimator: Any = None
    ) -> bool:
        self._note("end", estimator, context)
        if isinstance(estimator, TSNE):
            self.fitted.append(fitted_estimator)
        if context.task_name == "iterations" and context.task_id == self.fail_at:
            raise ZeroDivisionError("from the callback")
        return bool(context.task_name == "iterations" and context.task_id == self.stop_at)


class Everywhere(Recorder):
    """One that a pipeline hands on to its steps."""

    @property
    def max_propagation_depth(self) -> None:
        return None


def iterations(*numbers: int) -> list[str]:
    return [f"{what} TSNE iterations {i}" for i in numbers for what in ("begin", "end")]


def fit_of(*inner: str) -> list[str]:
    return ["setup TSNE fit 0", "begin TSNE fit 0", *inner, "end TSNE fit 0", "teardown TSNE fit 0"]


def test_tasks(X: Array) -> None:
    recorder = Recorder()
    tsne = small().set_callbacks(recorder)
    assert tsne.fit(X) is tsne
    assert recorder.told == fit_of(*iterations(0, 1, 2, 3, 4))
    # No other map for that.
    np.testing.assert_array_equal(tsne.embedding_, small().fit_transform(X))


@pytest.mark.parametrize("kind", [int, np.int8])
def test_iterations_after_the_last_whole_task_are_one_too(X: Array, kind: Any) -> None:
    recorder = Recorder()
    small(max_iter=270, callback_every=kind(100)).set_callbacks(recorder).fit_transform(X)
    assert recorder.told == fit_of(*iterations(0, 1, 2))


def test_fitted_estimators_are_of_their_moment(X: Array) -> None:
    recorder = Recorder()
    seen: list[Array] = []
    tsne = small(callback=lambda _i, _kl, Y: seen.append(Y)).set_callbacks(recorder).fit(X)
    assert [fitted.n_iter_ for fitted in recorder.fitted] == [49, 99, 149, 199, 249, 249]
    for fitted, Y in zip(recorder.fitted, seen, strict=False):
        # Ready for use: it knows its data.
        np.testing.assert_array_equal(fitted.transform(X), Y)
    np.testing.assert_array_equal(recorder.fitted[-1].embedding_, tsne.embedding_)


def test_stops_the_fit(X: Array) -> None:
    # With another one that would not.
    recorder, other = Recorder(stop_at=1), Recorder()
    tsne = small(max_iter=1000).set_callbacks(recorder, other).fit(X)
    assert tsne.n_iter_ == 99
    assert recorder.told == other.told == fit_of(*iterations(0, 1))
    assert np.isfinite(tsne.kl_divergence_)


def test_ends_what_is_under_way_if_something_else_stops(X: Array) -> None:
    recorder = Recorder()
    tsne = (
        small(min_grad_norm=1e9, max_iter=1000, early_exaggeration_iter=250)
        .set_callbacks(recorder)
        .fit(X)
    )
    assert tsne.n_iter_ == 259
    assert recorder.told == fit_of(*iterations(0, 1, 2, 3, 4, 5))


def test_exceptions_propagate(X: Array) -> None:
    recorder = Recorder(fail_at=1)
    tsne = small().set_callbacks(recorder)
    with pytest.raises(ZeroDivisionError, match="from the callback"):
        tsne.fit(X)
    assert recorder.told[-2:] == ["end TSNE iterations 1", "teardown TSNE fit 0"]
    assert tsne.n_iter_ == 99
    assert np.isfinite(tsne.embedding_).all()
    # Without it the estimator is as good as new.
    np.testing.assert_array_equal(tsne.set_callbacks().fit_transform(X), small().fit_transform(X))


def test_torn_down_if_the_fit_fails(X: Array) -> None:
    recorder = Recorder()
    tsne = small(init=np.zeros((3, 2))).set_callbacks(recorder)
    with pytest.raises(ValueError, match="init has shape"):
        tsne.fit(X)
    # Refused before it began.
    assert recorder.told == []


def test_in_a_pipeline(X: Array) -> None:
    recorder = Everywhere()
    pipeline = make_pipeline(StandardScaler(), small())
    embedding = pipeline.set_callbacks(recorder).fit_transform(X)
    of_ours = [line for line in recorder.told if "TSNE" in line]
    # The task of the fit is the pipeline's second.
    assert of_ours == ["begin TSNE fit 1", *iterations(0, 1, 2, 3, 4), "end TSNE fit 1"]
    assert sum(line.startswith(("setup", "teardown")) for line in recorder.told) == 2
    np.testing.assert_array_equal(
        embedding, make_pipeline(StandardScaler(), small()).fit_transform(X)
    )


def test_on_a_step_of_a_pipeline(X: Array) -> None:
    recorder = Recorder(stop_at=0)
    pipeline = make_pipeline(StandardScaler(), small().set_callbacks(recorder)).fit(X)
    assert pipeline[-1].n_iter_ == 49
    assert "end TSNE iterations 0" in recorder.told


def test_nothing_is_called_without(X: Array) -> None:
    recorder = Recorder()
    tsne = small().set_callbacks(recorder).set_callbacks()
    tsne.fit(X)
    clone(small().set_callbacks(recorder)).set_callbacks().fit(X)
    assert recorder.told == []
    assert not hasattr(tsne, "_callback_fit_ctx")


def test_what_is_no_callback(X: Array) -> None:
    with pytest.raises(TypeError, match="FitCallback protocol"):
        small().set_callbacks(print)
