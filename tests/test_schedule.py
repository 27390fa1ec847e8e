"""The phases of a fit: how they are laid out, and what each setting does to the map."""

from itertools import pairwise, product
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.spatial.distance import squareform
from sklearn.manifold import _t_sne as sklearn_tsne

from acctsne import TSNE, Affinities, Embedding, init, quality
from acctsne.affinities.affinities import form_of
from acctsne.forces.repulsion import RepulsionOptions
from acctsne.optimize.optimizer import Optimizer, mean_drop
from acctsne.optimize.schedule import Phase, Ramp, Schedule
from acctsne.optimize.stopping import StoppingRules, Watch

Array = npt.NDArray[Any]


@pytest.fixture(scope="module", name="P")
def affinities(some_digits: tuple[Array, Array]) -> Affinities:
    return Affinities.from_data(some_digits[0])


def fit(P: Affinities, **parameters: Any) -> TSNE:
    return TSNE(**{"init": "random", "random_state": 0, **parameters}).fit(P)


def blurred(layout: Array) -> Array:
    """Move points by a part of the layout's width."""
    noise = np.random.default_rng(0).normal(size=layout.shape)
    return np.asarray(layout + 0.9 * layout.std() * noise, dtype=layout.dtype)


def phases(
    kind: Any = "fast",
    n_samples: int = 1200,
    start: Any = "clear",
    flat: bool = False,
    **parameters: Any,
) -> list[Phase]:
    schedule = Schedule(kind, **{"early_exaggeration_iter": 250, **parameters})
    return schedule.phases(n_samples, start, flat=flat)


class TestLayout:
    def test_fast(self) -> None:
        early, main = phases()
        assert (early.name, early.end, early.exaggeration) == ("early exaggeration", 250, (12, 1))
        assert (main.name, main.end, main.exaggeration) == ("embedding", 1000, (1, 1))
        assert (early.learning_rate, main.learning_rate) == ((100, 1200), (1200, 1200))
        for phase in (early, main):
            assert (phase.rule, phase.max_step) == ("heavy_ball", 5.0)
            assert phase.momentum is None
            assert not phase.reset_momentum

    def test_sklearn(self) -> None:
        early, main = phases("sklearn", n_samples=12_000)
        assert early.exaggeration == Ramp.constant(12)
        assert early.learning_rate == main.learning_rate == Ramp.constant(250)
        assert (early.momentum, main.momentum) == (0.5, 0.8)
        assert early.max_step == main.max_step == inf
        assert early.rule == main.rule == "delta_bar_delta"
        assert main.reset_momentum
        # scikit-learn's smallest.
        assert {phase.learning_rate for phase in phases("sklearn")} == {(50, 50)}

    def test_auto_early_exaggeration(self) -> None:
        for kind, start, flat, length in (
            ("fast", "clear", False, 50),
            ("fast", "clear", True, 150),
            ("fast", "tangled", False, 100),
            ("fast", "tangled", True, 200),
            ("sklearn", "clear", True, 250),
            ("sklearn", "blurred", False, 250),
            ("sklearn", "tangled", False, 250),
        ):
            made = phases(kind, start=start, flat=flat, early_exaggeration_iter="auto")
            assert made[0].end == length
            assert made[0].spread == 0
        # What the user says stays.
        assert phases(flat=True) == phases()

    def test_a_blurred_start(self) -> None:
        held, fading, main = phases(start="blurred", early_exaggeration_iter="auto")
        assert (held.begin, held.end, fading.begin, fading.end) == (0, 15, 15, 50)
        assert held.exaggeration == Ramp.constant(12)
        assert held.learning_rate == Ramp.constant(100)
        assert (fading.exaggeration, fading.learning_rate) == ((12, 1), (100, 1200))
        assert (held.momentum, fading.momentum, main.momentum) == (0.8, 0.8, None)
        assert (held.spread, fading.spread, main.spread) == (1.3, 0, 0)
        held, fading, _ = phases(start="blurred", flat=True, early_exaggeration_iter="auto")
        assert (held.end, fading.begin, fading.end) == (45, 45, 150)
        # Nothing is widened for an exaggeration that is left out, and what the user says stays.
        assert phases(start="blurred", early_exaggeration_iter=0) == phases(
            early_exaggeration_iter=0
        )
        held, fading, main = phases(start="blurred", momentum=(0.3, 0.4), learning_rate=7)
        assert (held.end, fading.end) == (75, 250)
        assert (held.momentum, fading.momentum, main.momentum) == (0.3, 0.3, 0.4)
        assert held.learning_rate == fading.learning_rate == Ramp.constant(7)

    @pytest.mark.parametrize("kind", ["fast", "sklearn"])
    @pytest.mark.parametrize("early", [0, 100, 250, 5000, "auto"])
    @pytest.mark.parametrize("late", [1.0, 0.5, 4.0])
    @pytest.mark.parametrize(
        ("start", "max_iter"),
        [*product([None, 0, 100, 249], [250, 1000]), *product([251, 600, 999], [1000])],
    )
    def test_every_combination(
        self, kind: str, early: Any, late: float, start: int | None, max_iter: int
    ) -> None:
        fast = kind == "fast"
        found = phases(
            kind,
            early_exaggeration_iter=early,
            late_exaggeration=late,
            late_exaggeration_start=start,
            max_iter=max_iter,
        )
        length = (50 if fast else 250) if early == "auto" else min(early, max_iter)
        assert found[0].end == length
        assert found[-1].end == max_iter
        # Which exaggeration each iteration after the early one has.
        seen = np.zeros(max_iter)
        done = length
        for phase in found[1:]:
            assert phase.exaggeration.first == phase.exaggeration.last
            seen[done : phase.end] = phase.exaggeration.first
            done = max(done, phase.end)
        expected = np.ones(max_iter)
        expected[max(length, start or 0) :] = late
        np.testing.assert_array_equal(seen[length:], expected[length:])
        # The early one fades to what comes after it, or stays where scikit-learn has it.
        assert found[0].exaggeration.first == 12
        if not fast:
            assert found[0].exaggeration.last == 12
        elif length < max_iter:
            assert found[0].exaggeration.last == expected[length]
        # Momentum is forgotten once, where early exaggeration ends, and by scikit-learn only.
        assert [phase.reset_momentum for phase in found[:2]] == [False, not fast]
        assert not any(phase.reset_momentum for phase in found[2:])
        # Of phases that are exaggerated or have another one after them only scikit-learn's early
        # one is looked at.
        for phase in found:
            may_stop = (phase is found[-1] and late == 1.0) or (phase is found[0] and not fast)
            assert phase.look_every == ((20 if fast else 50) if may_stop else 0)
            rates = tuple(1200 / factor for factor in phase.exaggeration)
            assert phase.learning_rate == (rates if fast else (50, 50))

    @pytest.mark.parametrize(("dof", "step"), [(0.3, 5), (1, 5), (2, 2.5), (4, 1.5), (1000, 1.5)])
    def test_steps_are_shorter_where_points_feel_each_other_less_far(
        self, dof: float, step: float
    ) -> None:
        def steps(**parameters: Any) -> set[float]:
            schedule = Schedule.of({**TSNE().get_params(), "dof": dof, **parameters})
            return {phase.max_step for phase in schedule.phases(1000)}

        assert steps() == {step}
        assert steps(max_step=7.0) == {7.0}
        assert steps(schedule="sklearn") == {inf}
        # What scikit-learn has: a degree of freedom less than dimensions.
        assert steps(dof="sklearn", n_components=4) == {5 / 3}

    @pytest.mark.parametrize("kind", ["fast", "sklearn"])
    def test_one_value_or_a_pair(self, kind: str) -> None:
        late: dict[str, Any] = {"late_exaggeration": 2.0, "late_exaggeration_start": 500}
        for phase in phases(kind, learning_rate=7, momentum=0.3, max_step=2, **late):
            assert (phase.learning_rate, phase.momentum, phase.max_step) == ((7, 7), 0.3, 2.0)
        for pair in (tuple, list):
            found = phases(kind, learning_rate=pair([7, 8]), momentum=pair([0.3, 0]), **late)
            assert [phase.learning_rate for phase in found] == [(7, 7), (8, 8), (8, 8)]
            assert [phase.momentum for phase in found] == [0.3, 0.0, 0.0]


class TestWatch:
    """The stopping rules on KL divergences made up for them."""

    def reasons(
        self,
        kls: list[float],
        kl_of_one_place: float = np.inf,
        *,
        flat: bool = False,
        **rules: float,
    ) -> list[str]:
        watch = Watch(StoppingRules(**rules), kl_of_one_place, flat)
        return [
            watch.reason_to_end(50 * look + 49, kl, gradient_norm=kl) for look, kl in enumerate(kls)
        ]

    def test_no_rules(self) -> None:
        assert self.reasons([3.0, 3.0, 4.0, 0.0]) == ["", "", "", ""]

    def test_patience(self) -> None:
        # The best is at the second look; 100 iterations later is not yet more than 100.
        assert self.reasons([3, 2, 2, 2, 2], patience=100) == ["", "", "", "", "no progress"]
        assert self.reasons([3, 2, 2], patience=0) == ["", "", "no progress"]

    def test_gradient(self) -> None:
        assert self.reasons([3, 2, 1], min_grad_norm=1) == ["", "", "small gradient"]

    @pytest.mark.parametrize("tol", [0.0, 0.05, 0.1, 0.25, 0.9])
    def test_tol(self, tol: float) -> None:
        # Against what was gained over a map that says nothing, 5.
        kls = [4.5, 3.0, 2.5, 2.4, 2.3]
        falls = [2.0 / 2.5, 0.6 / 2.6, 0.2 / 2.7]
        expected = ["KL divergence hardly falls" if fall < tol else "" for fall in falls]
        assert self.reasons(kls, 5.0, tol=tol) == ["", "", *expected]

    def test_tol_where_little_is_left(self) -> None:
        # A fall by 0.02 is little of the 4.9 that were gained, but a fifth of the 0.1 that is left.
        hardly = "KL divergence hardly falls"
        kls = [0.14, 0.12, 0.11, 0.1, 0.098, 0.097]
        assert self.reasons(kls, 5.0, tol=0.05) == ["", "", "", "", hardly, hardly]

    def test_tol_where_flat_data_unroll(self) -> None:
        # 0.003 of 0.097 is less than three times a twentieth of it, not less than half of one.
        hardly = "KL divergence hardly falls"
        kls = [0.11, 0.1, 0.098, 0.097, 0.096, 0.0955]
        assert self.reasons(kls, 5.0, tol=0.05)[2:] == [hardly, hardly, hardly, hardly]
        assert self.reasons(kls, 5.0, flat=True, tol=0.05)[2:] == ["", "", hardly, hardly]

    def test_tol_where_nothing_has_begun(self) -> None:
        # A map that unfolds by and by: what it gained lately is most of what it gained.
        assert self.reasons([5 - 2.0**k for k in range(-20, 2)], 5.0, tol=0.5) == [""] * 22
        # Nor does one end by this rule that does not move at all.
        assert self.reasons([5.0] * 4, 5.0, tol=0.5) == [""] * 4

    def test_one_look_alone_ends_nothing(self) -> None:
        # A moment at which friction holds the map: the fall over two looks is what counts.
        assert self.reasons([4.0, 3.0, 3.0, 2.0], 5.0, tol=0.1) == [""] * 4

    def test_a_map_that_comes_back_goes_on(self) -> None:
        # Momentum has carried it past its goal: it is about to fall below where it was.
        kls = [3.0, 3.2, 3.0, 2.8, 2.75, 2.75]
        assert self.reasons(kls, 5.0, tol=0.1) == ["", "", "", "", "", "KL divergence hardly falls"]


class TestFits:
    def test_late_exaggeration_makes_clusters_denser(self, digits: tuple[Array, Array]) -> None:
        P, y = Affinities.from_data(digits[0][:800]), digits[1][:800]

        def spread(Y: Array) -> float:
            """Mean distance to the centre of the own digit, in units of the map's size."""
            centers = np.array([np.median(Y[y == digit], axis=0) for digit in range(10)])
            return float(np.linalg.norm(Y - centers[y], axis=1).mean() / Y.std())

        plain = fit(P, max_iter=600, tol=0)
        late = fit(P, max_iter=600, late_exaggeration=4)
        from_400 = fit(P, max_iter=600, late_exaggeration=4, late_exaggeration_start=400)
        assert spread(late.embedding_) < 0.9 * spread(plain.embedding_)
        assert spread(from_400.embedding_) < 0.9 * spread(plain.embedding_)
        assert late.embedding_.std() < plain.embedding_.std()
        # Up to its start all is as without it.
        before = fit(P, max_iter=400, tol=0).embedding_
        seen: dict[int, Array] = {}
        fit(
            P,
            max_iter=401,
            late_exaggeration=4,
            late_exaggeration_start=400,
            callback=lambda i, _, Y: seen.update({i: Y}),
            callback_every=1,
        )
        np.testing.assert_array_equal(seen[399], before)
        assert not np.array_equal(seen[400], fit(P, max_iter=401, tol=0).embedding_)

    def test_late_exaggeration_is_not_stopped(self, P: Affinities) -> None:
        # KL rises in it, which no rule may take for an end.
        rules: dict[str, Any] = {"tol": 0.5, "n_iter_without_progress": -1, "min_grad_norm": 1e9}
        assert fit(P, max_iter=400, late_exaggeration=4, **rules).n_iter_ == 399
        assert fit(P, max_iter=400, **rules).n_iter_ == 119

    def test_early_exaggeration_fades(self, P: Affinities) -> None:
        # As Embedding does when its exaggeration is set anew for each iteration.
        start = np.random.default_rng(0).normal(scale=1e-2, size=(P.n_samples, 2))
        tsne = TSNE(init=start, early_exaggeration=8, max_iter=250, tol=0, dtype=np.float64)
        tsne.set_params(early_exaggeration_iter=40)
        P = Affinities.from_matrix(P.to_scipy(), dtype=np.float64)
        seen: dict[int, Array] = {}
        tsne.set_params(callback=lambda i, _, Y: seen.update({i: Y}), callback_every=1).fit(P)
        embedding = Embedding(P, start)
        for iteration in range(50):
            factor = 8 ** (1 - iteration / 40) if iteration < 40 else 1.0
            embedding.optimize(1, exaggeration=factor)
            np.testing.assert_allclose(
                seen[iteration], embedding.positions, atol=1e-6 * embedding.positions.std()
            )

    def test_a_tangled_start_is_given_more_time(self, P: Affinities) -> None:
        # Whoever made it: by name, as an array, or shuffled from one that knows the data.
        ordered = init.spectral(P)
        shuffled = np.random.default_rng(0).permutation(ordered)
        for start, length in (("random", 100), ("spectral", 50), (shuffled, 100), (ordered, 50)):
            parameters: dict[str, Any] = {"init": start, "max_iter": 250, "tol": 0}
            auto = fit(P, **parameters).embedding_
            told = fit(P, early_exaggeration_iter=length, **parameters).embedding_
            np.testing.assert_array_equal(auto, told)

    def test_a_blurred_start_is_widened_and_held(self, P: Affinities) -> None:
        start = blurred(init.spectral(P)).astype(np.float64)
        P = Affinities.from_matrix(P.to_scipy(), dtype=np.float64)
        seen: dict[int, Array] = {}
        TSNE(
            init=start,
            dtype=np.float64,
            max_iter=250,
            callback=lambda i, _, Y: seen.update({i: Y}),
            callback_every=1,
        ).fit(P)
        spread = np.sqrt(((start - start.mean(axis=0)) ** 2).sum(axis=1).mean())
        embedding = Embedding(P, start * (1.3 / spread))
        for iteration in range(50):
            factor = 12 ** (1 - max(iteration - 15, 0) / 35)
            embedding.optimize(1, exaggeration=factor, momentum=0.8)
            np.testing.assert_allclose(
                seen[iteration], embedding.positions, atol=1e-6 * embedding.positions.std()
            )

    def test_what_is_not_widened(self, P: Affinities) -> None:
        start = blurred(init.spectral(P))
        wide = 1e6 * start
        assert Optimizer(form_of(P), start, RepulsionOptions(), 1).kind_of_start() == "blurred"
        for given, more, how in (
            (start, {"schedule": "sklearn"}, {}),
            (start, {}, {"fixed": [0]}),
            (wide, {}, {}),
        ):
            tsne = TSNE(init=given, callback=lambda *_: True, callback_every=1)
            Y = tsne.set_params(**more).fit_transform(P, **how)
            assert tsne.n_iter_ == 0
            assert 0.1 < Y.std() / given.std() < 10

    @pytest.mark.parametrize("dims", [1, 2, 3])
    def test_kinds_of_starts(self, dims: int) -> None:
        rng = np.random.default_rng(0)
        truth = rng.uniform(size=(2000, dims))
        P = Affinities.from_data(truth, perplexity=20, dtype=np.float64)
        p = P.to_scipy().tocoo()
        pairs_by_entropy = np.exp(-np.sum(p.data * np.log(p.data)))
        for noise, kind in ((0.0, "clear"), (0.2, "blurred"), (100.0, "tangled")):
            layout = truth + noise * rng.normal(size=truth.shape)
            layout *= 1e-4
            apart = np.sum(p.data * ((layout[p.row] - layout[p.col]) ** 2).sum(axis=1))
            disorder = apart / (2 * layout.var(axis=0).sum())
            faithful = (pairs_by_entropy / (2000 * 1999)) ** (2 / dims)
            expected = (
                "tangled" if disorder > 0.7 else "blurred" if disorder > 3 * faithful else "clear"
            )
            assert expected == kind
            assert Optimizer(form_of(P), layout, RepulsionOptions(), 1).kind_of_start() == kind

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("dims", [1, 2, 3])
    def test_flat_data(self, dims: int, dtype: Any) -> None:
        rng = np.random.default_rng(0)
        for own, flat in ((dims, True), (dims + 1, False), (dims + 5, False)):
            X = rng.uniform(size=(2000, own))
            P = Affinities.from_data(X, dtype=dtype)
            p = P.to_scipy().tocoo()
            largest = np.zeros(2000)
            np.maximum.at(largest, p.row, p.data)
            drop = np.sum(p.data * np.log(largest[p.row] / p.data))
            # Faces of a cube, where only half of the neighbours are, are a part of it all.
            assert drop == pytest.approx(mean_drop(own, 30.0), abs=0.1)
            layout = rng.normal(size=(2000, dims)).astype(dtype)
            optimizer = Optimizer(form_of(P), layout, RepulsionOptions(), 1)
            assert optimizer._native.mean_drop == pytest.approx(drop, rel=1e-4)
            assert optimizer.is_flat() == flat
        # Equal probabilities tell nothing, nor do few neighbours.
        for unknown in (
            Affinities.from_data(X[:, :dims], kind="uniform", dtype=dtype),
            Affinities.from_data(X[:, :dims], perplexity=5, dtype=dtype),
        ):
            assert not Optimizer(form_of(unknown), layout, RepulsionOptions(), 1).is_flat()

    def test_the_fall_of_log_p(self) -> None:
        """Against sums over a row of neighbours, the k-th of which is where k are expected.

        The nearest of a random sample scatters around there, hence the tolerance; one dimension
        more makes four times as much.
        """
        k = np.arange(1.0, 100_000.0)
        for dims in (1, 2, 3):
            squared = k ** (2 / dims) - 1
            low, high = 0.0, 10.0
            for _ in range(100):
                beta = (low + high) / 2
                p = np.exp(-beta * squared)
                p /= p.sum()
                entropy = -np.sum(p * np.log(p, where=p > 0, out=np.zeros_like(p)))
                low, high = (beta, high) if entropy > np.log(30.0) else (low, beta)
            assert np.sum(p * beta * squared) == pytest.approx(mean_drop(dims, 30.0), abs=0.07)

    def test_rings_stay_whole(self) -> None:
        """Two linked rings, of which a map shows both whole if it has the time."""
        turn = np.linspace(0, 2 * np.pi, 400, endpoint=False)
        x, y, nothing = np.cos(turn), np.sin(turn), np.zeros(400)
        X = np.vstack([np.c_[x, y, nothing], np.c_[1 + x, nothing, y]])
        P = Affinities.from_data(X)
        start = init.pca(X)
        Y = TSNE(init=start).fit_transform(P)
        within = np.linalg.norm(Y - np.roll(Y.reshape(2, 400, 2), 1, axis=1).reshape(-1, 2), axis=1)
        assert within.max() < 5 * np.median(within)
        theirs = TSNE(init=start, schedule="sklearn").fit_transform(P)
        assert quality.exact_kl(None, Y, P=P) < 1.05 * quality.exact_kl(None, theirs, P=P)

    def test_where_a_fit_ends(
        self, digits: tuple[Array, Array], caplog: pytest.LogCaptureFixture
    ) -> None:
        kls: dict[int, float] = {}
        tsne = TSNE(verbose=1, callback=lambda i, kl, _: kls.update({i: kl}), callback_every=10)
        tsne.fit(digits[0])
        n_iter = tsne.n_iter_ + 1
        assert f"ended after {n_iter} iterations: KL divergence hardly falls" in caplog.text
        assert 100 <= n_iter < 400
        assert n_iter % 20 == 0
        # The first look at which two more have brought less than 0.5 % of what was gained over a
        # map in one place, whose similarities are all equal.
        p = Affinities.from_data(digits[0]).values.astype(np.float64)
        nothing = float(np.sum(p * np.log(p))) + np.log(1797 * 1796)
        ends = [
            i + 1
            for i in range(99, n_iter, 20)
            if kls[i - 40] - kls[i] < 0.005 * (nothing - kls[i])
        ]
        assert ends == [n_iter]
        # A fit that is told to stop there is the same, and without tol none stops.
        told = TSNE(max_iter=max(n_iter, 250), tol=0).fit(digits[0])
        assert told.n_iter_ + 1 == max(n_iter, 250)
        assert told.kl_divergence_ < 1.001 * tsne.kl_divergence_
        assert TSNE(max_iter=1000, tol=0).fit(digits[0]).n_iter_ == 999

    @pytest.mark.parametrize("n_samples", [100, 400])
    def test_without_tol_a_fit_runs_to_the_bound(
        self, digits: tuple[Array, Array], n_samples: int
    ) -> None:
        X = digits[0][:n_samples]
        tsne = TSNE(tol=0, max_iter=1500)
        assert tsne.fit(X).n_iter_ == 1499
        # A rule that was asked for holds, one of more patience than the default too.
        assert tsne.set_params(n_iter_without_progress=301).fit(X).n_iter_ < 1499
        tsne.set_params(n_iter_without_progress=300, min_grad_norm=1e9)
        assert tsne.fit(X).n_iter_ < 1499

    @pytest.mark.parametrize(
        ("patience", "fast"), [(300, inf), (299, 299), (10**6, 10**6), (-1, 0)]
    )
    @pytest.mark.parametrize("tol", [0, 0.005])
    def test_the_default_patience_is_of_scikit_learns_steps_only(
        self, patience: int, fast: float, tol: float
    ) -> None:
        for kind, expected in (("fast", fast), ("sklearn", max(patience, 0))):
            given = {"schedule": kind, "n_iter_without_progress": patience, "min_grad_norm": 0}
            assert StoppingRules.of({"tol": tol, **given}).patience == expected

    def test_without_tol_scikit_learns_rules_stay_as_they_are(self, P: Affinities) -> None:
        # Steps too short to change a coordinate: no look is any better than the first.
        still: dict[str, Any] = {"schedule": "sklearn", "learning_rate": 1e-20, "min_grad_norm": 0}
        assert fit(P, tol=0, **still).n_iter_ == 299 + 350

    def test_tol(self, P: Affinities) -> None:
        # So large a one ends at the third look after early exaggeration, however long that is.
        for early in (60, 250, 300):
            last = fit(P, tol=0.99, early_exaggeration_iter=early, max_iter=1000).n_iter_
            assert last + 1 == early // 20 * 20 + 60

    def test_sklearn_is_not_stopped_by_default(self, P: Affinities) -> None:
        assert fit(P, schedule="sklearn", max_iter=600).n_iter_ == 599
        assert fit(P, schedule="sklearn", max_iter=600, tol=0.99).n_iter_ == 399

    def test_a_small_gradient_ends_scikit_learns_early_exaggeration(
        self, P: Affinities, caplog: pytest.LogCaptureFixture
    ) -> None:
        # Data alike in all directions: exaggeration draws them into one place, which no descent
        # leaves in time once it has gone on for all of 250 iterations.
        cube = Affinities.from_data(np.random.default_rng(0).random((800, 10)))
        caplog.set_level("INFO", "acctsne")
        tsne = fit(cube, schedule="sklearn", init="spectral")
        assert "early exaggeration ended after 50 iterations: small gradient" in caplog.text
        assert tsne.kl_divergence_ < 1.05 * fit(cube, init="spectral").kl_divergence_
        # The iterations that scikit-learn takes by the same rule; a callback ends the fit.
        large: dict[str, Any] = {"min_grad_norm": 1e9, "init": "random", "random_state": 0}
        theirs = sklearn_tsne.TSNE(**large).fit(np.random.default_rng(0).random((100, 3)))
        assert fit(P, schedule="sklearn", **large).n_iter_ == theirs.n_iter_ == 99
        stopped = fit(P, schedule="sklearn", callback=lambda *_: True, **large)
        assert stopped.n_iter_ == 49

    def test_no_rule_fires_in_early_exaggeration(self, P: Affinities) -> None:
        rules: dict[str, Any] = {"tol": 0.99, "n_iter_without_progress": -1, "min_grad_norm": 1e9}
        assert fit(P, early_exaggeration_iter=100_000, max_iter=500, **rules).n_iter_ == 499
        assert fit(P, early_exaggeration_iter=400, max_iter=1000, **rules).n_iter_ == 419

    @pytest.mark.parametrize("schedule", ["fast", "sklearn"])
    @pytest.mark.parametrize("max_step", [0.01, 0.3])
    def test_no_step_is_longer(self, P: Affinities, schedule: Any, max_step: float) -> None:
        layouts: list[Array] = []
        tsne = fit(
            P,
            max_iter=250,
            early_exaggeration_iter=100,
            learning_rate=(20.0, 2000.0),  # far too much, so that steps are cut
            max_step=max_step,
            schedule=schedule,
            tol=0,
            callback=lambda _i, _kl, Y: layouts.append(Y),
            callback_every=1,
            dtype=np.float64,
        )
        assert len(layouts) == 250
        np.testing.assert_array_equal(layouts[-1], tsne.embedding_)
        longest = 0.0
        for before, after in pairwise(layouts):
            step = after - before
            # Each iteration also moves all points alike, to where the last one's centre was.
            step += before.mean(axis=0)
            longest = max(longest, float(np.linalg.norm(step, axis=1).max()))
        assert 0.9 * max_step < longest < max_step * (1 + 1e-6)

    def test_momentum_matters(self, P: Affinities) -> None:
        maps = [
            fit(P, max_iter=250, tol=0, momentum=momentum).embedding_
            for momentum in ("auto", 0.8, (0.8, 0.8), 0.0, (0.8, 0.5), (0.5, 0.8))
        ]
        np.testing.assert_array_equal(maps[1], maps[2])
        assert len({Y.tobytes() for Y in maps}) == 5

    def test_sklearn_is_scikit_learn_step_by_step(self, some_digits: tuple[Array, Array]) -> None:
        # Through both phases; rounding grows a hundredfold in ten steps, so few steps say more.
        P = Affinities.from_data(some_digits[0], perplexity=10, dtype=np.float64)
        joint = squareform(P.to_scipy().toarray())
        init = np.random.default_rng(0).normal(scale=1e-4, size=(400, 2))

        def descend(y: Array, joint: Array, it: int, end: int, momentum: float) -> Array:
            return np.asarray(
                sklearn_tsne._gradient_descent(
                    sklearn_tsne._kl_divergence,
                    y,
                    it=it,
                    max_iter=end,
                    momentum=momentum,
                    learning_rate=50.0,
                    args=[joint, 1, 400, 2],
                )[0]
            )

        theirs = descend(init.ravel(), 12 * joint, 0, 15, momentum=0.5)
        theirs = descend(theirs, joint, 15, 30, momentum=0.8).reshape(400, 2)
        seen: dict[int, Array] = {}
        fit(
            P,
            init=init,
            early_exaggeration_iter=15,
            max_iter=250,
            method="exact",
            schedule="sklearn",
            dtype=np.float64,
            callback=lambda i, _, Y: seen.update({i: Y}),
            callback_every=30,
        )
        # Theirs is not kept in the middle.
        np.testing.assert_allclose(
            seen[29] - seen[29].mean(axis=0),
            theirs - theirs.mean(axis=0),
            atol=1e-9 * theirs.std(),
        )


class TestBadValues:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("learning_rate", np.nan),
            ("learning_rate", np.inf),
            ("momentum", 1.0),
            ("momentum", -0.1),
            ("momentum", np.nan),
            ("momentum", "high"),
            ("max_step", 0.0),
            ("max_step", np.nan),
            ("max_step", "long"),
            ("late_exaggeration", 0.0),
            ("late_exaggeration", np.nan),
            ("late_exaggeration", "auto"),
            ("late_exaggeration_start", -1),
            ("late_exaggeration_start", 1.5),
            ("early_exaggeration", np.inf),
            ("early_exaggeration_iter", "never"),
            ("early_exaggeration_iter", 2.5),
            ("tol", -0.1),
            ("tol", 1.0),
            ("tol", np.nan),
            ("tol", "small"),
            ("max_iter", 10**30),
            ("callback_every", 10**30),
        ],
    )
    def test_are_named(self, P: Affinities, name: str, value: Any) -> None:
        with pytest.raises(ValueError, match=rf"'{name}' parameter of TSNE .* Got {value!r}"):
            fit(P, **{name: value})

    @pytest.mark.parametrize("name", ["learning_rate", "momentum"])
    @pytest.mark.parametrize(
        "pair", [(), (0.5,), (0.5, 0.5, 0.5), (0.5, -1.0), (0.5, "auto"), [0.5, np.nan]]
    )
    def test_pairs(self, P: Affinities, name: str, pair: Any) -> None:
        with pytest.raises(ValueError, match=f"{name} as a pair, .* must be two numbers"):
            fit(P, **{name: pair})

    def test_limits_of_pairs_are_those_of_single_values(self, P: Affinities) -> None:
        with pytest.raises(ValueError, match="learning_rate as a pair"):
            fit(P, learning_rate=(0.0, 1.0))
        with pytest.raises(ValueError, match="momentum as a pair"):
            fit(P, momentum=(0.5, 1.0))

    def test_late_exaggeration_that_would_never_begin(self, P: Affinities) -> None:
        with pytest.raises(ValueError, match=r"late_exaggeration_start \(250\) must be less than"):
            fit(P, max_iter=250, late_exaggeration=2.0, late_exaggeration_start=250)
