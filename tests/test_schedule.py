"""The phases of a fit: how they are laid out, and what each setting does to the map."""

from itertools import pairwise, product
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.spatial.distance import squareform
from sklearn.manifold import _t_sne as sklearn_tsne

from acctsne import TSNE, Affinities, quality
from acctsne._schedule import Phase, make_schedule
from acctsne._stopping import Watch

Array = npt.NDArray[Any]


@pytest.fixture(scope="module", name="P")
def affinities(some_digits: tuple[Array, Array]) -> Affinities:
    return Affinities.from_data(some_digits[0])


def fit(P: Affinities, **parameters: Any) -> TSNE:
    return TSNE(**{"init": "random", "random_state": 0, **parameters}).fit(P)


def phases(kind: Any = "fast", **parameters: Any) -> list[Phase]:
    usual: dict[str, Any] = {
        "n_samples": 1200,
        "max_iter": 1000,
        "early_exaggeration": 12.0,
        "early_exaggeration_iter": 250,
    }
    return make_schedule(kind, **{**usual, **parameters})


class TestLayout:
    def test_fast(self) -> None:
        early, main = phases()
        assert (early.name, early.end, early.exaggeration) == ("early exaggeration", 250, 12.0)
        assert (main.name, main.end, main.exaggeration) == ("embedding", 1000, 1.0)
        assert (early.learning_rate, main.learning_rate) == (25.0, 300.0)
        assert early.momentum == main.momentum == 0.8
        assert early.max_step == main.max_step == 5.0
        assert not early.restart
        assert not main.restart

    def test_sklearn(self) -> None:
        early, main = phases("sklearn", n_samples=12_000)
        assert early.learning_rate == main.learning_rate == 250.0
        assert (early.momentum, main.momentum) == (0.5, 0.8)
        assert early.max_step == main.max_step == inf
        assert main.restart
        # scikit-learn's smallest.
        assert {phase.learning_rate for phase in phases("sklearn")} == {50.0}

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
        found = phases(
            kind,
            early_exaggeration_iter=early,
            late_exaggeration=late,
            late_exaggeration_start=start,
            max_iter=max_iter,
        )
        seek = kind == "fast" and early == "auto"
        if early == "auto":
            limit = min(500, max_iter // 2) if seek else 250
        else:
            limit = min(early, max_iter)
        assert found[0].end == limit
        assert found[-1].end == max_iter
        for ended in {limit, 10} if seek else {limit}:
            # Which exaggeration each iteration has, if early exaggeration ended there.
            seen = np.zeros(max_iter)
            seen[:ended] = 12
            done = ended
            for phase in found[1:]:
                seen[done : phase.end] = phase.exaggeration
                done = max(done, phase.end)
            expected = np.where(np.arange(max_iter) < ended, 12.0, 1.0)
            expected[max(ended, start or 0) :] = late
            np.testing.assert_array_equal(seen, expected)
        # Momentum is forgotten once, where early exaggeration ends, and by scikit-learn only.
        assert [phase.restart for phase in found[:2]] == [False, kind == "sklearn"]
        assert not any(phase.restart for phase in found[2:])
        # Nothing stops a phase that is exaggerated or has another one after it.
        for phase in found:
            assert phase.seek_end == (phase is found[0] and seek)
            assert phase.may_stop == (phase is found[-1] and late == 1.0)
            rate = 1200 / (phase.exaggeration if kind == "fast" else 12) / 4
            assert phase.learning_rate == (rate if kind == "fast" else 50.0)

    @pytest.mark.parametrize("kind", ["fast", "sklearn"])
    def test_one_value_or_a_pair(self, kind: str) -> None:
        late: dict[str, Any] = {"late_exaggeration": 2.0, "late_exaggeration_start": 500}
        for phase in phases(kind, learning_rate=7, momentum=0.3, max_step=2, **late):
            assert (phase.learning_rate, phase.momentum, phase.max_step) == (7.0, 0.3, 2.0)
        for pair in (tuple, list):
            found = phases(kind, learning_rate=pair([7, 8]), momentum=pair([0.3, 0]), **late)
            assert [phase.learning_rate for phase in found] == [7.0, 8.0, 8.0]
            assert [phase.momentum for phase in found] == [0.3, 0.0, 0.0]


def test_looks_are_frequent_where_an_end_is_sought() -> None:
    # As the documentation says: every 10 iterations there, every 50 where a rule may stop.
    assert [phase.look_every for phase in phases(early_exaggeration_iter="auto")] == [10, 50]
    assert [phase.look_every for phase in phases(early_exaggeration_iter=250)] == [0, 50]
    assert [phase.look_every for phase in phases("sklearn", late_exaggeration=2.0)] == [0, 0]


class TestWatch:
    """The stopping rules on KL divergences made up for them."""

    PHASE = Phase("embedding", 1000, 1.0, 1.0, 0.8, 5.0, may_stop=True)
    EARLY = Phase("early exaggeration", 1000, 12.0, 1.0, 0.8, 5.0, seek_end=True)

    def reasons(self, watch: Watch, kls: list[float], phase: Phase = PHASE) -> list[str]:
        return [
            watch.reason_to_end(phase, 50 * look + 49, kl, gradient_norm=kl)
            for look, kl in enumerate(kls)
        ]

    def test_no_rules(self) -> None:
        assert self.reasons(Watch(), [3.0, 3.0, 4.0, 0.0]) == ["", "", "", ""]

    def test_patience(self) -> None:
        # The best is at the second look; 100 iterations later is not yet more than 100.
        assert self.reasons(Watch(patience=100), [3, 2, 2, 2, 2]) == ["", "", "", "", "no_progress"]
        assert self.reasons(Watch(patience=0), [3, 2, 2]) == ["", "", "no_progress"]

    def test_gradient(self) -> None:
        assert self.reasons(Watch(min_grad_norm=1), [3, 2, 1]) == ["", "", "small_gradient"]

    def test_tol(self) -> None:
        # Falls of 50 %, 10 % and 9 % of what remains.
        assert self.reasons(Watch(tol=0.095), [3.0, 2.0, 1.8182, 1.668]) == ["", "", "", "tol"]
        assert self.reasons(Watch(tol=0.01), [2.0, 2.1]) == ["", "tol"]

    def test_slowing(self) -> None:
        # Creeping, then falling by 10 %, 20 %, 10 %, 5 % and 2 %.
        kls = [4, 3.999, 3.998, 3.6, 2.88, 2.59, 2.46, 2.41]
        reasons = self.reasons(Watch(), kls, self.EARLY)
        assert reasons == [""] * 7 + ["slowing"]
        # A faster fall in between begins anew.
        assert set(self.reasons(Watch(), [4, 3.6, 3.4, 3.3, 2.5, 2.4], self.EARLY)) == {""}
        # Less in absolute terms every time, but by 20, 22, 24, 26 and 29 %.
        assert set(self.reasons(Watch(), [4, 3.2, 2.5, 1.9, 1.4, 1.0], self.EARLY)) == {""}
        # Creeping alone is no fall that could slow down.
        creeping = [4 + 1e-3 * 0.9**i for i in range(50)]
        assert set(self.reasons(Watch(), creeping, self.EARLY)) == {""}


class TestFits:
    def test_late_exaggeration_makes_clusters_denser(self, digits: tuple[Array, Array]) -> None:
        P, y = Affinities.from_data(digits[0][:800]), digits[1][:800]

        def spread(Y: Array) -> float:
            """Mean distance to the centre of the own digit, in units of the map's size."""
            centers = np.array([np.median(Y[y == digit], axis=0) for digit in range(10)])
            return float(np.linalg.norm(Y - centers[y], axis=1).mean() / Y.std())

        plain = fit(P, max_iter=600)
        late = fit(P, max_iter=600, late_exaggeration=4)
        from_400 = fit(P, max_iter=600, late_exaggeration=4, late_exaggeration_start=400)
        assert spread(late.embedding_) < 0.9 * spread(plain.embedding_)
        assert spread(from_400.embedding_) < 0.9 * spread(plain.embedding_)
        assert late.embedding_.std() < plain.embedding_.std()
        # Up to its start all is as without it.
        before = fit(P, max_iter=400).embedding_
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
        assert not np.array_equal(seen[400], fit(P, max_iter=401).embedding_)

    def test_late_exaggeration_is_not_stopped(self, P: Affinities) -> None:
        # KL rises in it, which no rule may take for an end.
        rules: dict[str, Any] = {"tol": 0.5, "n_iter_without_progress": -1, "min_grad_norm": 1e9}
        rules["early_exaggeration_iter"] = 250
        assert fit(P, max_iter=400, late_exaggeration=4, **rules).n_iter_ == 399
        assert fit(P, max_iter=400, **rules).n_iter_ == 299

    def test_auto_early_exaggeration(self, digits: tuple[Array, Array]) -> None:
        X = digits[0]
        tsne = TSNE(random_state=0).fit(X)
        usual = TSNE(early_exaggeration_iter=250, random_state=0).fit(X)
        P = quality.affinities(X)
        found = quality.exact_kl(None, tsne.embedding_, P=P)
        assert found < 1.01 * quality.exact_kl(None, usual.embedding_, P=P)

    def test_where_auto_early_exaggeration_ends(
        self, digits: tuple[Array, Array], caplog: pytest.LogCaptureFixture
    ) -> None:
        tsne = TSNE(early_exaggeration_iter="auto", random_state=0, verbose=1).fit(digits[0])
        said = [m for m in caplog.messages if m.startswith("early exaggeration stopped after")]
        assert len(said) == 1
        assert said[0].endswith(": slowing")
        end = int(said[0].split()[4])
        assert 10 < end < 500
        assert end % 10 == 0
        # The same as a fit that is told so, and the whole of max_iter is used.
        told = TSNE(early_exaggeration_iter=end, random_state=0).fit(digits[0])
        np.testing.assert_array_equal(tsne.embedding_, told.embedding_)
        assert tsne.n_iter_ == 999

    def test_auto_with_a_later_exaggeration(
        self, P: Affinities, caplog: pytest.LogCaptureFixture
    ) -> None:
        # Its start is where the user says, not where early exaggeration would have ended at most.
        parameters: dict[str, Any] = {
            "late_exaggeration": 2.0,
            "late_exaggeration_start": 350,
            "max_iter": 800,
        }
        auto = fit(P, early_exaggeration_iter="auto", verbose=1, **parameters)
        end = int(next(m for m in caplog.messages if m.endswith(": slowing")).split()[4])
        assert end < 350
        told = fit(P, early_exaggeration_iter=end, **parameters)
        np.testing.assert_array_equal(auto.embedding_, told.embedding_)

    def test_tol(self, P: Affinities) -> None:
        # So large a one ends at the second look after early exaggeration, however long that is.
        for early in (0, 60, 250, 300):
            last = fit(P, tol=0.9, early_exaggeration_iter=early, max_iter=1000).n_iter_
            assert last + 1 == early // 50 * 50 + 100
        kls: dict[int, float] = {}
        last = fit(
            P,
            tol=1e-2,
            max_iter=3000,
            early_exaggeration_iter=250,
            callback=lambda i, kl, _: kls.update({i: kl}),
        ).n_iter_
        assert 349 <= last < 2999
        assert kls[last - 50] - kls[last] < 1e-2 * kls[last]
        for at in range(349, last, 50):
            assert kls[at - 50] - kls[at] >= 1e-2 * kls[at]

    def test_no_rule_fires_in_early_exaggeration(self, P: Affinities) -> None:
        rules: dict[str, Any] = {"tol": 0.99, "n_iter_without_progress": -1, "min_grad_norm": 1e9}
        assert fit(P, early_exaggeration_iter=100_000, max_iter=500, **rules).n_iter_ == 499
        assert fit(P, early_exaggeration_iter=400, max_iter=1000, **rules).n_iter_ == 449

    @pytest.mark.parametrize("max_step", [0.01, 0.3, "auto"])
    def test_no_step_is_longer(self, P: Affinities, max_step: Any) -> None:
        limit = 5.0 if max_step == "auto" else max_step
        layouts: list[Array] = []
        tsne = fit(
            P,
            max_iter=250,
            early_exaggeration_iter=100,
            learning_rate=(20.0, 2000.0),  # far too much, so that steps are cut
            max_step=max_step,
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
        assert 0.9 * limit < longest < limit * (1 + 1e-6)

    def test_momentum_matters(self, P: Affinities) -> None:
        maps = [
            fit(P, max_iter=250, early_exaggeration_iter=100, momentum=momentum).embedding_
            for momentum in ("auto", 0.8, (0.8, 0.8), 0.0, (0.8, 0.5), (0.5, 0.8))
        ]
        np.testing.assert_array_equal(maps[0], maps[1])
        np.testing.assert_array_equal(maps[0], maps[2])
        assert len({Y.tobytes() for Y in maps}) == 4

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
