"""Aligned maps: tethers against finite differences, ties, bits, errors before any work."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.spatial import procrustes
from sklearn.base import clone

from acctsne import TSNE, AlignedTSNE, _core, aligned_estimator, quality
from acctsne.embedding.ties import ties_of_ids, ties_of_relations
from acctsne.optimize.optimizer import Optimizer
from acctsne.runtime.timer import StageTimer
from acctsne.stages import affinities_and_layout
from helpers import derivatives, optimizer_at, plain_kl, relative_error

Array = npt.NDArray[Any]

QUICK: dict[str, Any] = {"perplexity": 15.0, "max_iter": 250, "tol": 0}
OVERLAP = [np.arange(250), np.arange(150, 400)]


def slices_of(X: Array, rows: list[Array] | None = None) -> list[Array]:
    return [X[chosen] for chosen in rows or OVERLAP]


# Tethers


def one_step(exaggeration: float, learning_rate: float) -> _core.Phase:
    """Make a phase of plain gradient descent, but for delta-bar-delta's first gain of 0.8."""
    return _core.Phase(
        iterations=1,
        done=0,
        exaggeration=(exaggeration, exaggeration),
        learning_rate=(learning_rate, learning_rate),
        rule="delta_bar_delta",
        momentum=0.0,
        max_step=np.inf,
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("dims", "dof"), [(1, 1.0), (2, 0.5), (2, 1.0), (3, "sklearn")])
def test_a_tether_is_the_derivative_of_its_energy(
    some_digits: tuple[Array, Array], dims: int, dof: Any, dtype: Any
) -> None:
    P = quality.affinities(some_digits[0][:40], perplexity=8.0)
    rng = np.random.default_rng(dims)
    Y = rng.normal(size=(40, dims))
    Y -= Y.mean(axis=0)
    targets = rng.normal(size=(40, dims))
    weights = np.where(rng.random(40) < 0.5, 10 * rng.random(40), 0.0)

    def energy(positions: Array) -> float:
        squares = np.square(positions - targets).sum(axis=1)
        return plain_kl(P.toarray(), positions, dof) + float(2 / 40 * (weights * squares).sum())

    expected = derivatives(energy, Y)
    optimizer = optimizer_at(P, Y.astype(dtype), "exact", dof=dof)
    optimizer.tether(targets.astype(dtype), weights.astype(dtype))
    optimizer.run(one_step(1.0, 1.0), None, None, 2)
    found = (Y - optimizer.points) / 0.8
    assert relative_error(found, expected) < (1e-6 if dtype == np.float64 else 1e-4)


def test_exaggeration_does_not_stretch_tethers(some_digits: tuple[Array, Array]) -> None:
    P = quality.affinities(some_digits[0][:40], perplexity=8.0)
    Y = np.random.default_rng(0).normal(size=(40, 2))
    Y -= Y.mean(axis=0)
    pulls = []
    for exaggeration in (1.0, 12.0):
        ends = []
        for weight in (0.0, 5.0):
            optimizer = optimizer_at(P, Y, "exact")
            optimizer.tether(np.zeros_like(Y), np.full(40, weight))
            optimizer.run(one_step(exaggeration, 1.0), None, None, 2)
            ends.append(optimizer.points)
        pulls.append(ends[0] - ends[1])
    np.testing.assert_allclose(pulls[0], 0.8 * 4 * 5 / 40 * Y, atol=1e-12)
    np.testing.assert_allclose(pulls[1], pulls[0], atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tethers_are_the_same_at_any_number_of_threads(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    n = 9000  # three chunks
    columns = (np.arange(n)[:, None] + np.array([1, 2, 5])) % n
    indices = np.sort(columns, axis=1).astype(np.int32)
    probabilities = rng.random((n, 3)).astype(dtype)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    Y, targets = rng.normal(size=(2, n, 2)).astype(dtype)
    weights = rng.random(n).astype(dtype)
    ends = []
    for threads in (1, 2, 3, 8):
        kind = _core.Optimizer64 if dtype == np.float64 else _core.Optimizer32
        options = TSNE(method="fft")._problem(np.eye(40)).repulsion.native(2)
        optimizer = kind(indices, probabilities, False, Y, options, threads)
        optimizer.tether(targets, weights)
        optimizer.run(one_step(1.0, 100.0), None, None, threads)
        ends.append(optimizer.points.tobytes())
    assert len(set(ends)) == 1


@pytest.mark.parametrize(
    ("targets", "weights"),
    [
        (np.zeros((39, 2)), np.zeros(40)),
        (np.zeros((40, 2)), np.zeros(39)),
        (np.zeros((40, 2)), np.full(40, -1.0)),
        (np.full((40, 2), np.nan), np.zeros(40)),
        (np.zeros((40, 2)), np.full(40, np.inf)),
    ],
)
def test_the_core_refuses_tethers_that_do_not_fit(
    some_digits: tuple[Array, Array], targets: Array, weights: Array
) -> None:
    P = quality.affinities(some_digits[0][:40], perplexity=8.0)
    with pytest.raises(ValueError, match="tethers"):
        optimizer_at(P, np.zeros((40, 2)), "exact").tether(targets, weights)


# Ties


def test_targets_are_means_of_partners_whatever_lies_between_the_maps() -> None:
    rng = np.random.default_rng(0)
    layouts = [rng.normal(size=(size, 2)) for size in (6, 5, 4)]
    ids = [[0, 1, 2, 3, 4, 5], [3, 4, 5, 6, 7], [0, 4, 7, 9]]
    ties = ties_of_ids(ids, [6, 5, 4])
    targets = ties.targets(layouts)
    offsets = ties.offsets(layouts)
    # Id 4 is in all three: the middle one has two partners. Id 0 skips a slice.
    middle = (layouts[0][4] + offsets[0] + layouts[2][1] + offsets[2]) / 2 - offsets[1]
    np.testing.assert_allclose(targets[1][1], middle)
    np.testing.assert_allclose(targets[2][0], layouts[0][0] + offsets[0] - offsets[2])
    np.testing.assert_array_equal(targets[0][1], layouts[0][1])
    # No map is pushed as a whole, and a map that is moved is moved back.
    for layout, target, count in zip(layouts, targets, ties.partners, strict=True):
        np.testing.assert_allclose(count @ (layout - target), 0, atol=1e-12)
    moved = [layout + 10 * at for at, layout in enumerate(layouts)]
    np.testing.assert_allclose(ties.targets(moved)[1], targets[1] + 10)


def test_pairs_and_dictionaries_say_the_same_as_ids() -> None:
    pairs = np.array([[150 + i, i] for i in range(100)])
    by_ids = ties_of_ids(OVERLAP, [250, 250]).ties[0]
    for relation in (pairs, dict(pairs.tolist()), pairs[::-1], np.vstack([pairs, pairs])):
        tie = ties_of_relations([relation], [250, 250]).ties[0]
        np.testing.assert_array_equal(tie.first_rows, by_ids.first_rows)
        np.testing.assert_array_equal(tie.second_rows, by_ids.second_rows)


def test_starts_are_turned_and_mirrored_onto_each_other() -> None:
    layout = np.random.default_rng(0).normal(size=(30, 3))
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    turn[:, 0] *= -np.sign(np.linalg.det(turn))  # a mirror image
    ties = ties_of_ids([range(30), range(10, 40)], [30, 30])
    other = np.vstack([layout[10:], np.ones((10, 3))]) @ turn
    turned = ties.turned([layout, other])
    np.testing.assert_allclose(turned[1][:20], layout[10:], atol=1e-12)


# Maps


def test_without_strength_every_map_is_tsne_alone(some_digits: tuple[Array, Array]) -> None:
    Xs = slices_of(some_digits[0])
    aligned = AlignedTSNE(strength=0, **QUICK)
    maps = aligned.fit_transform(Xs, ids=OVERLAP)
    problems = aligned._problems(Xs)
    layouts = [affinities_and_layout(problem, StageTimer())[1] for problem in problems]
    starts = ties_of_ids(OVERLAP, [250, 250]).turned(layouts)
    for X, Y, start, kl in zip(Xs, maps, starts, aligned.kl_divergences_, strict=True):
        alone = TSNE(init=start, n_iter_without_progress=1000, **QUICK).fit(X)
        np.testing.assert_array_equal(Y, alone.embedding_)
        assert kl == alone.kl_divergence_
        assert aligned.n_iter_ == alone.n_iter_ == 249


def test_tethers_bring_shared_points_together(some_digits: tuple[Array, Array]) -> None:
    Xs = slices_of(some_digits[0])
    ends = []
    for strength in (0.0, 0.1, 10.0):
        fit = AlignedTSNE(strength, **QUICK).fit(Xs, ids=OVERLAP)
        first, second = fit.embeddings_[0][150:], fit.embeddings_[1][:100]
        if strength == 0:  # aligned afterwards as well as can be
            ends.append((procrustes(first, second)[2], fit.kl_divergences_))
        else:
            apart = np.square(first - second).sum()
            ends.append((apart / np.square(first - first.mean(axis=0)).sum(), fit.kl_divergences_))
            np.testing.assert_allclose(first.mean(axis=0), second.mean(axis=0), atol=1e-3)
            np.testing.assert_allclose(
                fit.displacements_[0][150:], np.linalg.norm(first - second, axis=1), atol=1e-3
            )
            assert np.isnan(fit.displacements_[0][:150]).all()
    (alone, kl_alone), (some, kl_some), (rigid, _) = ends
    assert rigid < 0.01
    assert rigid < some < alone
    # A tether costs less than what a bad start does.
    assert max(np.array(kl_some) - kl_alone) < 0.1


def test_maps_are_the_same_at_any_number_of_threads(
    some_digits: tuple[Array, Array],
) -> None:
    Xs = slices_of(some_digits[0])
    once = AlignedTSNE(n_jobs=1, **QUICK).fit_transform(Xs, ids=OVERLAP)
    again = AlignedTSNE(n_jobs=3, **QUICK).fit_transform(Xs, ids=OVERLAP)
    for one, other in zip(once, again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_ctrl_c_keeps_the_maps(
    some_digits: tuple[Array, Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    X = some_digits[0]
    slices, ids = [X[:200], X[100:300]], [range(200), range(100, 300)]
    whole = AlignedTSNE(max_iter=250).fit(slices, ids=ids)
    interrupted = AlignedTSNE(max_iter=250, verbose=0).fit(slices, ids=ids)

    step = Optimizer.step

    def interrupt(self: Optimizer, phase: Any) -> None:
        if self.n_iter == 30:
            raise KeyboardInterrupt
        step(self, phase)

    monkeypatch.setattr(Optimizer, "step", interrupt)
    with pytest.raises(KeyboardInterrupt):
        interrupted.fit(slices, ids=ids)
    assert interrupted.n_iter_ == 29
    assert not hasattr(interrupted, "kl_divergences_")
    for kept, end, displaced in zip(
        interrupted.embeddings_, whole.embeddings_, interrupted.displacements_, strict=True
    ):
        assert kept.shape == end.shape
        assert not np.array_equal(kept, end)
        assert np.isfinite(kept).all()
        assert np.isfinite(displaced).sum() == 100


def test_a_sweep_of_perplexity_ends_by_itself(some_digits: tuple[Array, Array]) -> None:
    X = some_digits[0]
    aligned = AlignedTSNE(perplexity=[10, 30, "auto"], dtype=np.float64)
    maps = clone(aligned).fit_transform([X] * 3, ids=[range(400)] * 3)
    assert [Y.shape for Y in maps] == [(400, 2)] * 3
    assert maps[0].dtype == np.float64
    fitted = aligned.fit([X] * 3, [{i: i for i in range(400)}] * 2)
    # The index of the last iteration, as TSNE has it; looks are at multiples of 20.
    assert 60 < fitted.n_iter_ < 999
    assert (fitted.n_iter_ + 1) % 20 == 0
    np.testing.assert_array_equal(fitted.embeddings_[1], maps[1])
    for Y, perplexity, kl in zip(maps, (10, 30), fitted.kl_divergences_, strict=False):
        assert abs(quality.exact_kl(X, Y, perplexity) - kl) < 0.01


# Errors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Xs": np.zeros((2, 40, 3))}, "must be a list of slices"),
        ({"Xs": [np.eye(40)]}, "at least 2"),
        ({"Xs": [np.eye(40), np.eye(10)]}, r"slice 1: perplexity \(15"),
        ({"Xs": [np.eye(40), np.full((40, 2), np.nan)]}, "slice 1: .*NaN"),
        ({"ids": None}, "neither"),
        ({"relations": [[[0, 0]]]}, "both"),
        ({"ids": [range(40)]}, "1 entries for 2 slices"),
        ({"ids": [range(40), range(39)]}, r"ids\[1\] has shape \(39,\)"),
        ({"ids": [range(40), [7, 7, *range(38)]]}, r"ids\[1\] has 7 3 times"),
        ({"ids": [range(40), range(40, 80)]}, "slice 1 shares no id"),
        ({"ids": 5}, "ids must be a list"),
        ({"ids": [range(40), [7, np.nan, *range(38)]]}, r"ids\[1\] has no id for row 1, but nan"),
        ({"ids": [range(40), np.append(np.arange(39), np.nan)]}, r"no id for row 39, but nan"),
        ({"ids": [[*range(39), None]] * 2}, r"ids\[0\] has no id for row 39, but None"),
        ({"ids": [[*range(39), {}]] * 2}, r"ids\[0\] has \{\} for row 39, which is no id"),
        ({"ids": None, "relations": {0: 0}}, "relations must be a list"),
        ({"ids": None, "relations": [[[0, 1], [2]]]}, r"relations\[0\] has rows that are no pairs"),
        ({"ids": None, "relations": []}, "0 entries for 2 slices"),
        ({"ids": None, "relations": [[]]}, "share no point"),
        ({"ids": None, "relations": [[[0, 40]]]}, "row 40 of slice 1, which has 40"),
        ({"ids": None, "relations": [{-1: 0}]}, "row -1 of slice 0"),
        ({"ids": None, "relations": [[[0.5, 1.0]]]}, "integer array"),
        ({"ids": None, "relations": [[0, 1]]}, "integer array"),
        ({"strength": -1}, "strength"),
        ({"strength": 1e9}, "strength"),
        ({"perplexity": [5]}, "1 for 2 slices"),
        ({"perplexity": [5, -1]}, "slice 1: .*perplexity"),
        ({"init": np.zeros((40, 2))}, "init"),
    ],
)
def test_errors_come_before_any_work(
    change: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_late(*_: Any) -> None:
        raise AssertionError("the work began")

    monkeypatch.setattr(aligned_estimator, "affinities_and_layout", too_late)
    given: dict[str, Any] = {
        "Xs": [np.eye(40), np.eye(40)],
        "relations": None,
        "ids": [range(40)] * 2,
        "strength": 0.1,
        "perplexity": 15.0,
        "init": "pca",
    } | change
    Xs, relations, ids = given.pop("Xs"), given.pop("relations"), given.pop("ids")
    with pytest.raises((ValueError, TypeError), match=message):
        AlignedTSNE(**given).fit(Xs, relations, ids=ids)
