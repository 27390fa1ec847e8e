"""P in its two forms: the matrix is made only when it is asked for, and changes no bit."""

import gc
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_matrix

from acctsne import TSNE, Affinities, Embedding, _core
from acctsne.affinities.forms import Conditional, Matrix
from acctsne.forces.repulsion import RepulsionOptions
from acctsne.optimize.schedule import Phase, Ramp
from helpers import optimizer_at, start

Array = npt.NDArray[Any]

KINDS: list[dict[str, Any]] = [
    {},
    {"dtype": np.float64},
    {"kind": "multiscale", "perplexity": [5, 20]},
    {"kind": "uniform", "n_neighbors": 12},
    {"kind": "fixed", "bandwidth": 8.0, "n_neighbors": 20},
]


@pytest.fixture(name="X", scope="module")
def data(some_digits: tuple[Array, Array]) -> Array:
    return some_digits[0]


def make(X: Array, **parameters: Any) -> Affinities:
    return Affinities.from_data(X, **{"perplexity": 10.0, **parameters})


def with_matrix(P: Affinities) -> Affinities:
    """Ask for the matrix."""
    assert P.to_scipy().nnz == len(P.values)
    assert isinstance(P._P, Matrix)
    return P


class TestLaziness:
    def test_what_needs_no_matrix(self, X: Array) -> None:
        P = make(X)
        embedding = start(P).optimize(20)
        embedding.kl()
        embedding.copy()
        assert P.n_samples == len(X)
        assert P.dtype == np.float32
        assert P.kind == "gaussian"
        assert len(P.perplexities) == len(X)
        assert isinstance(P._P, Conditional)

    @pytest.mark.parametrize("name", ["offsets", "columns", "values"])
    def test_arrays_make_it_once(self, X: Array, name: str) -> None:
        P = make(X)
        first = getattr(P, name)
        assert isinstance(P._P, Matrix)
        assert getattr(P, name) is first
        assert not first.flags.writeable

    @pytest.mark.parametrize("parameters", KINDS)
    def test_a_copy_makes_the_same(self, X: Array, parameters: dict[str, Any]) -> None:
        P = make(X, **parameters)
        copy = pickle.loads(pickle.dumps(P))
        assert isinstance(copy._P, Conditional)
        assert not copy._P.indices.flags.writeable
        for name in ("offsets", "columns", "values"):
            np.testing.assert_array_equal(getattr(copy, name), getattr(P, name))

    @pytest.mark.parametrize("threads", [1, 2, 3, 8])
    def test_threads(self, X: Array, threads: int) -> None:
        expected, found = make(X, n_jobs=1), make(X, n_jobs=threads)
        for name in ("offsets", "columns", "values"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))

    def test_uniform_is_one_value(self, X: Array) -> None:
        P = make(X, kind="uniform", n_neighbors=12)
        assert (P.values == np.float32(1 / len(P.values))).all()


class TestSameBits:
    @pytest.mark.parametrize("threads", [1, 3])
    @pytest.mark.parametrize("parameters", KINDS)
    def test_of_an_embedding(self, X: Array, parameters: dict[str, Any], threads: int) -> None:
        lazy = start(make(X, **parameters), n_jobs=threads)
        given = start(with_matrix(make(X, **parameters)), n_jobs=1)
        assert lazy.kl() == given.kl()
        # Points are relabelled after 50 iterations.
        np.testing.assert_array_equal(lazy.optimize(60).positions, given.optimize(60).positions)
        assert lazy.kl() == given.kl()
        assert isinstance(lazy.affinities._P, Conditional)

    @pytest.mark.parametrize("method", ["exact", "barnes_hut", "fft"])
    def test_of_every_method(self, X: Array, method: str) -> None:
        lazy = start(make(X), method=method).optimize(10)
        given = start(with_matrix(make(X)), method=method).optimize(10)
        np.testing.assert_array_equal(lazy.positions, given.positions)

    @pytest.mark.parametrize("how", ["file", "pickle", "copy"])
    @pytest.mark.parametrize("at", [0, 30, 50, 55])
    def test_after_a_pause(self, X: Array, at: int, how: str, tmp_path: Path) -> None:
        expected = start(with_matrix(make(X))).optimize(160)
        paused = start(make(X))
        if at:
            paused.optimize(at)
        if how == "file":
            paused.save(tmp_path / "map.npz")
            paused = Embedding.load(tmp_path / "map.npz")
        elif how == "pickle":
            paused = pickle.loads(pickle.dumps(paused))
        else:
            paused = paused.copy()
        assert isinstance(paused.affinities._P, Conditional)
        paused.optimize(160 - at)
        np.testing.assert_array_equal(paused.positions, expected.positions)
        assert paused.kl() == expected.kl()
        assert repr(paused.affinities) == repr(expected.affinities)

    def test_of_an_estimator(self, X: Array) -> None:
        layout = np.random.default_rng(0).normal(size=(len(X), 2), scale=1e-4)
        tsne = TSNE(perplexity=10, init=layout.astype(np.float32), max_iter=250)
        of_data = tsne.fit_transform(X)
        np.testing.assert_array_equal(tsne.fit_transform(with_matrix(make(X))), of_data)

    def test_in_another_precision(self, X: Array) -> None:
        tsne = TSNE(init="random", max_iter=250, dtype=np.float64, random_state=0)
        lazy = tsne.fit_transform(make(X))
        np.testing.assert_array_equal(tsne.fit_transform(with_matrix(make(X))), lazy)


class TestRelease:
    @staticmethod
    def held_by_a_fit(X: Array, **parameters: Any) -> list[Any]:
        """Return the forms of P that exist during the descent, less those of other tests."""
        held: list[Any] = []

        def forms() -> list[Any]:
            return [one for one in gc.get_objects() if isinstance(one, Conditional | Matrix)]

        def look(*_: Any) -> None:
            held.extend(one for one in forms() if id(one) not in before)

        gc.collect()
        before = {id(one) for one in forms()} - {id(getattr(X, "_P", None))}
        TSNE(perplexity=10, max_iter=250, callback=look, **parameters).fit(X)
        return held

    @pytest.mark.parametrize("init", ["pca", "spectral"])
    def test_a_fit_lets_go_before_the_descent(self, X: Array, init: str) -> None:
        assert self.held_by_a_fit(X, init=init) == []

    def test_a_fit_leaves_given_affinities_alone(self, X: Array) -> None:
        P = make(X)
        assert P._P in self.held_by_a_fit(P, init="random")  # type: ignore[arg-type]
        assert start(P).optimize(5).kl(exact=True) > 0

    def test_an_embedding_keeps_them(self, X: Array) -> None:
        P = make(X)
        assert start(P).affinities is P


class TestBadArrays:
    @pytest.mark.parametrize(
        "indices",
        [[[1, 2], [2, 0], [0, 1]], [[1, 3], [0, 2], [0, 1]], [[-1, 1], [0, 2], [0, 1]]],
        ids=["not sorted", "too large", "negative"],
    )
    def test_rows(self, indices: list[list[int]]) -> None:
        bad = np.array(indices, dtype=np.int32)
        values = np.full((3, 2), 0.5, dtype=np.float32)
        said = "out of range, or a row is not sorted"
        with pytest.raises(ValueError, match=said):
            _core.symmetrize(bad, values, False, 1)
        with pytest.raises(ValueError, match=said):
            _core.Optimizer32(bad, values, False, values, RepulsionOptions("exact").native(2))

    def test_sum_that_overflows(self) -> None:
        # Each is finite, and their sum is not.
        indices = np.array([[1], [0], [1]], dtype=np.int32)
        values = np.full((3, 1), 2e38, dtype=np.float32)
        Y = np.arange(6, dtype=np.float32).reshape(3, 2)
        with pytest.raises(ValueError, match="P is not finite"):
            _core.Optimizer32(indices, values, False, Y, RepulsionOptions("exact").native(2))

    def test_values_next_to_nothing(self) -> None:
        P = csr_matrix(np.full((3, 3), 1e-44, dtype=np.float32) * (1 - np.eye(3, dtype="f4")))
        Y = np.arange(6, dtype=np.float32).reshape(3, 2)
        attractive, *_ = optimizer_at(P, Y, "exact").forces(threads=1)
        assert np.isfinite(attractive).all()

    def test_numbers_of_points(self) -> None:
        indices = np.array([[1, 2], [0, 2], [0, 1]], dtype=np.int32)
        values = np.full((3, 2), 0.5, dtype=np.float32)
        for points in (-1, 2**30 + 1, 2**32):
            with pytest.raises(ValueError, match="no such number of points"):
                _core.sort_rows(indices, values, points, 1)

    def test_restored_points_are_not_held(self) -> None:
        P = csr_matrix(np.ones((5, 5)) - np.eye(5)) / 20
        Y = np.random.default_rng(0).normal(size=(5, 2))
        optimizer = optimizer_at(P, Y, "exact")
        state = optimizer.state()
        optimizer.hold(np.ones(5, dtype=np.uint8))
        optimizer.restore(state)
        phase = Phase("any", 5, Ramp.constant(1.0), Ramp.constant(10.0), 0.5, 5.0)
        optimizer.run(phase.native(5, 0), None, None, 1)
        assert (optimizer.points != Y).all()

    def test_states_of_others(self) -> None:
        P = csr_matrix(np.ones((5, 5)) - np.eye(5)) / 20
        optimizer = optimizer_at(P, np.random.default_rng(0).normal(size=(5, 2)), "exact")
        state = optimizer.state()
        with pytest.raises(TypeError, match="gains of the state has another type"):
            optimizer.restore({**state, "gains": state["gains"].astype(np.float32)})
        with pytest.raises(ValueError, match="does not fit"):
            optimizer.restore({**state, "points": state["points"][:4].copy()})
        with pytest.raises(KeyError, match="order"):
            optimizer.restore({name: state[name] for name in state if name != "order"})
        assert (optimizer.points == state["points"]).all()

    def test_shapes(self) -> None:
        indices = np.array([[1, 2], [0, 2], [0, 1]], dtype=np.int32)
        values = np.full((3, 2), 0.5, dtype=np.float32)
        with pytest.raises(ValueError, match="differ in shape"):
            _core.symmetrize(indices, values[:, :1].copy(), False, 1)
        with pytest.raises(ValueError, match="differ in shape"):
            _core.sort_rows(indices, values[:2].copy(), 3, 1)
        with pytest.raises(ValueError, match="differ in rows"):
            _core.Optimizer32(
                indices, values, False, values[:2].copy(), RepulsionOptions("exact").native(2)
            )
