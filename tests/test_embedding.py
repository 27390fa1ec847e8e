"""Embedding: state kept over calls, KL, callbacks, new points, errors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from acctsne import TSNE, Affinities, Embedding
from helpers import assert_same_bits, plain_kl, start

Array = npt.NDArray[Any]

METHODS_AND_DIMENSIONS = pytest.mark.parametrize(
    ("method", "dims"),
    [
        (method, dims)
        for method in ("auto", "barnes_hut", "fft", "exact")
        for dims in (1, 2, 3)
        if (method, dims) != ("fft", 3)
    ],
)


class TestCalls:
    @METHODS_AND_DIMENSIONS
    @pytest.mark.parametrize("double", [False, True])
    def test_many_calls_are_one(
        self, P: Affinities, P64: Affinities, method: str, dims: int, double: bool
    ) -> None:
        joint = P64 if double else P
        whole = start(joint, n_components=dims, method=method, n_jobs=1).optimize(60)
        parts = start(joint, n_components=dims, method=method, n_jobs=2)
        for _ in range(6):
            parts.optimize(10)
            parts.kl()  # looks, and changes nothing
        assert_same_bits(parts, whole)
        assert np.isfinite(whole.positions).all()
        assert whole.positions.dtype == (np.float64 if double else np.float32)

    # Points are numbered anew after 50 and 200 iterations: a call may end before, at, after it.
    @pytest.mark.parametrize("first", [1, 49, 50, 51, 200])
    @pytest.mark.parametrize("look", [False, True])
    @pytest.mark.parametrize("threads", [1, 3])
    def test_where_points_are_numbered_anew(
        self, P: Affinities, first: int, look: bool, threads: int
    ) -> None:
        whole = start(P, method="barnes_hut").optimize(205)
        parts = start(P, method="barnes_hut", n_jobs=threads).optimize(first)
        if look:
            parts.kl()
        assert_same_bits(parts.optimize(205 - first), whole)

    def test_settings_of_each_call(self, P: Affinities) -> None:
        # The same as a schedule that a TSNE of the same settings goes through.
        init = start(P).positions
        tsne = TSNE(init=init, early_exaggeration_iter=100, max_iter=250, momentum=(0.5, 0.7))
        tsne.set_params(learning_rate=(20.0, 40.0), max_step=2.0, tol=0)
        tsne.set_params(early_exaggeration=3, late_exaggeration=3)  # so that it does not fade
        embedding = Embedding(P, init)
        settings: dict[str, Any] = {"exaggeration": 3, "max_step": 2}
        embedding.optimize(100, learning_rate=20, momentum=0.5, **settings)
        embedding.optimize(150, learning_rate=40, momentum=0.7, **settings)
        np.testing.assert_array_equal(embedding.positions, tsne.fit_transform(P))
        assert embedding.kl() == tsne.kl_divergence_

    def test_learning_rate_by_default(self, P: Affinities) -> None:
        auto = start(P).optimize(20, exaggeration=4)
        assert_same_bits(auto, start(P).optimize(20, exaggeration=4, learning_rate=200 / 4))
        # A larger one is lowered to it.
        assert_same_bits(auto, start(P).optimize(20, exaggeration=4, learning_rate=1e9))

    def test_returns_itself(self, P: Affinities) -> None:
        embedding = start(P)
        assert embedding.optimize(3) is embedding
        assert embedding.n_iter == 3
        assert repr(embedding) == "Embedding(n_samples=200, n_components=2, n_iter=3)"

    def test_positions_are_a_copy(self, P: Affinities) -> None:
        embedding = start(P)
        before = embedding.positions
        embedding.positions[:] = np.nan
        np.testing.assert_array_equal(embedding.positions, before)

    def test_starts_where_told(self, P: Affinities) -> None:
        init = np.random.default_rng(1).normal(size=(200, 2)).astype(np.float32)
        np.testing.assert_array_equal(Embedding(P, init).positions, init)
        for name in ("spectral", "multilevel"):
            Y = Embedding(P, name).positions
            assert Y[:, 0].std() == pytest.approx(1e-4)

    def test_timings(self, P: Affinities) -> None:
        timings = start(P, method="barnes_hut").optimize(7).timings
        assert timings["iterations_barnes_hut"] == 7
        assert {"tree_building", "repulsive", "attractive", "update"} < set(timings)


class TestKl:
    @METHODS_AND_DIMENSIONS
    @pytest.mark.parametrize("dof", [0.5, 1.0, 3.0])
    def test_against_the_definition(
        self, P64: Affinities, method: str, dims: int, dof: float
    ) -> None:
        embedding = start(P64, n_components=dims, method=method, dof=dof)
        embedding.optimize(30, exaggeration=12).optimize(10)
        expected = plain_kl(P64.to_scipy().toarray(), embedding.positions, dof)
        assert embedding.kl(exact=True) == pytest.approx(expected, rel=1e-9)
        assert embedding.kl() == pytest.approx(expected, rel=1e-9 if method == "exact" else 0.01)

    def test_never_negative(self) -> None:
        # Two points have all of P and of Q between them: KL is 0, and rounding can be either way.
        P = Affinities.from_matrix([[0, 1], [1, 0]])
        for method in ("auto", "barnes_hut", "fft", "exact"):
            embedding = start(P, method=method)
            for _ in range(5):
                embedding.optimize(3)
                assert 0 <= embedding.kl() < 0.02
                assert 0 <= embedding.kl(exact=True) < 1e-6

    def test_is_that_of_plain_affinities_during_exaggeration(self, P64: Affinities) -> None:
        seen: list[tuple[float, float]] = []
        embedding = start(P64, method="exact")
        embedding.optimize(
            20,
            exaggeration=12,
            callback_every=5,
            callbacks=lambda _, kl, Y: seen.append((kl, plain_kl(P64.to_scipy().toarray(), Y))),
        )
        assert len(seen) == 4
        for kl, expected in seen:
            assert kl == pytest.approx(expected, rel=1e-9)


class TestCallbacks:
    def test_several_and_their_arguments(self, P: Affinities) -> None:
        calls: list[tuple[str, int, float, Array]] = []

        def named(name: str) -> Callable[[int, float, Array], None]:
            return lambda iteration, kl, Y: calls.append((name, iteration, kl, Y))

        embedding = start(P).optimize(7)
        embedding.optimize(20, callbacks=[named("a"), named("b")], callback_every=10)
        # Numbers count over all calls of optimize.
        assert [call[:2] for call in calls] == [("a", 9), ("b", 9), ("a", 19), ("b", 19)]
        reached = start(P).optimize(20)
        np.testing.assert_array_equal(calls[-1][3], reached.positions)
        assert calls[-1][2] == reached.kl()

    def test_each_has_a_copy_of_its_own(self, P: Affinities) -> None:
        seen: list[Array] = []

        def scribble(_iteration: int, _kl: float, positions: Array) -> None:
            positions[:] = np.nan

        callbacks = [scribble, lambda _i, _kl, positions: seen.append(positions)]
        embedding = start(P).optimize(10, callbacks=callbacks, callback_every=5)
        np.testing.assert_array_equal(seen[-1], embedding.positions)
        assert_same_bits(embedding, start(P).optimize(10))

    def test_one_that_returns_true_stops(self, P: Affinities) -> None:
        heard: list[int] = []
        embedding = start(P).optimize(
            100,
            callbacks=(lambda i, *_: i >= 19, lambda i, *_: heard.append(i)),
            callback_every=10,
        )
        # All are called, also beside one that stops.
        assert heard == [9, 19]
        assert_same_bits(embedding, start(P).optimize(20))

    def test_an_exception_passes_through_and_leaves_the_embedding_usable(
        self, P: Affinities
    ) -> None:
        error = ZeroDivisionError("from the callback")

        def callback(iteration: int, *_: Any) -> None:
            if iteration == 14:
                raise error

        embedding = start(P)
        with pytest.raises(ZeroDivisionError) as caught:
            embedding.optimize(100, callbacks=callback, callback_every=5)
        assert caught.value is error
        assert_same_bits(embedding.optimize(85), start(P).optimize(100))

    def test_tol_ends_where_nothing_falls_any_more(self, P: Affinities) -> None:
        embedding = start(P).optimize(150, exaggeration=12)
        falling = embedding.copy().optimize(100_000, tol=1e-3)
        assert 200 <= falling.n_iter < 20_000
        assert falling.n_iter % 20 == 0
        # It ends at the first look that saw too small a change, not at one before.
        p = P.values.astype(np.float64)
        nothing = float(np.sum(p * np.log(p))) + np.log(200 * 199)
        again = embedding.copy().optimize(10)  # looks are at multiples of 20
        kls = [again.kl()]
        while again.n_iter < falling.n_iter:
            kls.append(again.optimize(20).kl())
        steps = np.abs(np.diff(kls))
        changes = (steps[:-1] + steps[1:]) / [min(nothing - kl, 3 * kl) for kl in kls[2:]]
        assert changes[-1] < 1e-3
        assert min(changes[:-1], default=1) >= 1e-3

    def test_verbose_and_odd_intervals_change_nothing(
        self, P: Affinities, caplog: pytest.LogCaptureFixture
    ) -> None:
        seen: list[int] = []
        embedding = start(P).optimize(
            110, verbose=1, tol=1e-9, callbacks=lambda i, *_: seen.append(i + 1), callback_every=7
        )
        assert seen == list(range(7, 111, 7))
        *others, restraint = [message.split(":")[0] for message in caplog.messages]
        assert others == [
            "optimization, iteration 50",
            "optimization, iteration 100",
            "ended after 110 iterations",
        ]
        assert "of 110 iterations, shorter steps" in restraint
        assert_same_bits(embedding, start(P).optimize(110))

    def test_the_log_says_why_it_ended(
        self, P: Affinities, caplog: pytest.LogCaptureFixture
    ) -> None:
        embedding = start(P).optimize(30, exaggeration=12, verbose=1)
        embedding.optimize(100_000, tol=0.9, verbose=1)
        embedding.optimize(50, callbacks=lambda *_: True, callback_every=10, verbose=1)
        ends = [message for message in caplog.messages if message.startswith("ended")]
        assert ends == [
            "ended after 30 iterations: n_iter",
            "ended after 80 iterations: KL divergence hardly falls",
            "ended after 90 iterations: callback",
        ]

    def test_exaggeration_does_not_end_before_its_time(self, P: Affinities) -> None:
        # Its KL divergence rises, which says nothing about the map.
        embedding = start(P)
        assert embedding.optimize(200, exaggeration=12, tol=0.9).n_iter == 200
        assert embedding.optimize(200, exaggeration=0.5, tol=0.9).n_iter == 400
        assert embedding.optimize(200, tol=0.9).n_iter < 600

    def test_restraint_is_told_of_the_call_that_needed_it(
        self, P: Affinities, caplog: pytest.LogCaptureFixture
    ) -> None:
        embedding = start(P).optimize(50, exaggeration=12, learning_rate=1e9, verbose=1)
        assert "learning rate lowered to n_samples / exaggeration, at most 16.67" in caplog.text
        caplog.clear()
        embedding.optimize(50, verbose=1)
        assert "lowered" not in caplog.text
        # Whatever was lowered before.
        embedding.optimize(50, exaggeration=4, learning_rate=1e9, verbose=1)
        embedding.optimize(50, exaggeration=12, learning_rate=1e9, verbose=1)
        told = [message for message in caplog.messages if "lowered" in message]
        assert [one.split("at most ")[1].split(":")[0] for one in told] == ["50", "16.67"]


class TestErrors:
    def test_affinities(self, X: Array) -> None:
        with pytest.raises(TypeError, match=r"must be an Affinities; got ndarray. Make one with"):
            Embedding(X)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("parameters", "said"),
        [
            ({"n_components": 0}, "'n_components' parameter of Embedding .* Got 0"),
            ({"n_components": 2.5}, "'n_components' parameter of Embedding .* Got 2.5"),
            (
                {"n_components": 4, "method": "barnes_hut"},
                r"inferior to 4 for .* Use method='auto'",
            ),
            ({"n_components": 3, "method": "fft"}, r"inferior to 3 for method='fft'; got .*=3"),
            ({"method": "magic"}, "'method' parameter of Embedding .* Got 'magic'"),
            ({"angle": -0.1}, "'angle' parameter of Embedding .* Got -0.1"),
            ({"angle": np.nan}, "'angle' parameter of Embedding .* Got nan"),
            ({"force_error": 0}, "'force_error' parameter of Embedding .* Got 0"),
            ({"dof": 0}, "'dof' parameter of Embedding .* Got 0"),
            ({"n_jobs": 1.5}, "'n_jobs' parameter of Embedding .* Got 1.5"),
            ({"n_jobs": 0}, "n_jobs == 0 has no meaning"),
            ({"init": "pca"}, "init must be an array or one of spectral, multilevel, random"),
            ({"init": np.zeros((3, 2))}, r"init has shape \(3, 2\); expected \(200, 2\)"),
            ({"init": np.full((200, 2), np.nan)}, "init contains NaN"),
            ({"random_state": "seed"}, "'seed' cannot be used to seed"),
        ],
    )
    def test_parameters(self, P: Affinities, parameters: dict[str, Any], said: str) -> None:
        with pytest.raises(ValueError, match=said):
            Embedding(P, **{"init": "random", **parameters})

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("n_iter", 0),
            ("n_iter", 1.5),
            ("n_iter", 10**30),
            ("exaggeration", 0),
            ("exaggeration", np.inf),
            ("learning_rate", 0),
            ("learning_rate", np.nan),
            ("learning_rate", "fast"),
            ("momentum", 1),
            ("momentum", -0.1),
            ("max_step", 0),
            ("max_step", np.nan),
            ("callbacks", 3),
            ("callback_every", 0),
            ("tol", -1e-9),
            ("tol", np.nan),
            ("verbose", "much"),
        ],
    )
    def test_optimize(self, P: Affinities, name: str, value: Any) -> None:
        embedding = start(P)
        with pytest.raises(
            ValueError, match=rf"'{name}' parameter of Embedding\.optimize .* Got {value!r}"
        ):
            embedding.optimize(**{"n_iter": 10, name: value})
        assert embedding.n_iter == 0

    def test_callbacks_that_cannot_be_called(self, P: Affinities) -> None:
        with pytest.raises(TypeError, match=r"callback must be callable, or a list .* got 3"):
            start(P).optimize(10, callbacks=[print, 3])  # type: ignore[list-item]


class TestTransform:
    def test_places_among_the_neighbors(self, P: Affinities) -> None:
        embedding = start(P).optimize(100, exaggeration=12).optimize(200)
        before = embedding.positions
        around = [np.argsort(np.square(before - before[i]).sum(axis=1))[:10] for i in range(20)]
        placed = embedding.transform(around, np.tile(np.linspace(1, 1.2, 10), (20, 1)))
        away = np.linalg.norm(placed - before[:20], axis=1)
        assert np.median(away) < 0.1 * np.ptp(before, axis=0).max()
        np.testing.assert_array_equal(embedding.positions, before)

    @pytest.mark.parametrize("dims", [1, 2, 3])
    @pytest.mark.parametrize("dof", [1.0, 0.5])
    def test_batches_orders_and_units(self, P: Affinities, dims: int, dof: float) -> None:
        embedding = start(P, n_components=dims, dof=dof).optimize(100)
        random = np.random.default_rng(0)
        indices = np.array([random.choice(200, 8, replace=False) for _ in range(30)])
        distances = random.uniform(1, 2, size=(30, 8))
        together = embedding.transform(indices, distances)
        assert together.shape == (30, dims)
        assert together.dtype == np.float32
        alone = [embedding.transform([i], [d]) for i, d in zip(indices, distances, strict=True)]
        np.testing.assert_array_equal(np.concatenate(alone), together)
        # Neighbours in any order, distances in any unit.
        shuffled = embedding.transform(indices[:, ::-1], distances[:, ::-1])
        np.testing.assert_array_equal(shuffled, together)
        for unit in (2.0**-500, 2.0**500):
            np.testing.assert_array_equal(embedding.transform(indices, unit * distances), together)

    def test_neighbors_at_no_distance(self, P: Affinities) -> None:
        embedding = start(P).optimize(100)
        placed = embedding.transform([[3, 4], [3, 1], [5, 6]], [[0, 0], [0, 0], [0, 1]])
        assert np.isfinite(placed).all()

    @pytest.mark.parametrize(
        ("indices", "distances", "said"),
        [
            ([1, 2], [[1.0, 2.0]], "indices must be a 2-dimensional array of integers"),
            ([[0.5]], [[1.0]], "indices must be a 2-dimensional array of integers.*float64"),
            ([[1, 2]], [[1.0]], r"differ in shape: \(1, 2\) and \(1, 1\)"),
            ([[200]], [[1.0]], "row 0 .* neighbour 200; there are 200 samples"),
            ([[-1]], [[1.0]], "row 0 .* neighbour -1; there are 200 samples"),
            ([[1]], [[-1.0]], "row 0 of the graph has the distance -1; distances must be"),
            ([[1]], [[np.nan]], "row 0 of the graph has a distance that is not finite: nan"),
            ([[1]], [[np.inf]], "row 0 of the graph has a distance that is not finite: inf"),
            (
                np.empty((0, 3), dtype=int),
                np.empty((0, 3)),
                r"no neighbours: indices has shape \(0, 3\)",
            ),
            ([[3, 3]], [[1.0, 2.0]], "row 0 of the graph has neighbour 3 twice"),
        ],
    )
    def test_errors(self, P: Affinities, indices: Any, distances: Any, said: str) -> None:
        with pytest.raises(ValueError, match=said):
            start(P).transform(indices, distances)
