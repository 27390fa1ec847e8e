"""Pinned points: they stay to the bit, all others move, and the others mind them."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from acctsne import TSNE, Affinities
from helpers import assert_same_bits, start

Array = npt.NDArray[Any]


class TestPinned:
    CHOICES = pytest.mark.parametrize(
        "choice", ["mask", "indices", "negative", "repeated", "one", "all"]
    )

    @staticmethod
    def chosen(choice: str) -> tuple[Any, Array]:
        """Give `fixed` as a user would, and the mask that it means."""
        mask = np.zeros(200, dtype=bool)
        mask[::3] = True
        if choice == "mask":
            return mask.tolist(), mask
        if choice == "indices":
            return np.flatnonzero(mask).astype(np.int16), mask
        if choice == "negative":
            return np.flatnonzero(mask) - 200, mask
        if choice == "repeated":
            return [0, 5, 5, 0], np.isin(np.arange(200), [0, 5])
        if choice == "one":
            return [-1], np.arange(200) == 199
        return range(200), np.ones(200, dtype=bool)

    @CHOICES
    @pytest.mark.parametrize("dof", [1.0, 0.5])
    def test_in_optimize(self, P: Affinities, choice: str, dof: float) -> None:
        fixed, mask = self.chosen(choice)
        embedding = start(P, dof=dof).optimize(40)  # with momentum, and not centred on the origin
        before = embedding.positions
        embedding.optimize(60, fixed=fixed)
        np.testing.assert_array_equal(embedding.positions[mask], before[mask])
        assert (embedding.positions[~mask] != before[~mask]).any(axis=1).all()

    @CHOICES
    @pytest.mark.parametrize("dof", [1.0, 0.5])
    @pytest.mark.parametrize("dims", [1, 2, 3])
    def test_in_fit(self, X: Array, choice: str, dof: float, dims: int) -> None:
        fixed, mask = self.chosen(choice)
        # Far from the origin, where an ordinary map would be moved to.
        init = np.random.default_rng(0).normal(30, 5, size=(200, dims))
        tsne = TSNE(dims, perplexity=10, init=init, max_iter=250, dof=dof, dtype=np.float64)
        tsne.fit(X, fixed=fixed)
        np.testing.assert_array_equal(tsne.embedding_[mask], init[mask])
        assert (tsne.embedding_[~mask] != init[~mask]).any(axis=1).all()
        np.testing.assert_array_equal(
            tsne.set_params(dtype=np.float32).fit_transform(X, fixed=fixed)[mask],
            init[mask].astype(np.float32),
        )

    @pytest.mark.parametrize("fixed", [[], np.zeros(200, dtype=bool), None])
    def test_none_is_none(self, P: Affinities, X: Array, fixed: Any) -> None:
        assert_same_bits(start(P).optimize(20, fixed=fixed), start(P).optimize(20))
        tsne = TSNE(perplexity=10, max_iter=250)
        np.testing.assert_array_equal(tsne.fit(X, fixed=fixed).embedding_, tsne.fit(X).embedding_)

    def test_is_for_one_call(self, P: Affinities) -> None:
        embedding = start(P).optimize(30)
        before = embedding.optimize(10, fixed=[7]).positions
        assert (embedding.optimize(10).positions[7] != before[7]).all()

    def test_many_calls_are_one(self, P: Affinities) -> None:
        # Also where points are numbered anew, and through a copy.
        fixed = np.arange(0, 200, 3)
        whole = start(P).optimize(30).optimize(60, fixed=fixed)
        parts = start(P).optimize(30)
        for _ in range(3):
            parts = parts.optimize(20, fixed=fixed).copy()
        assert_same_bits(parts, whole)

    def test_others_gather_round_them(self, digits: tuple[Array, Array]) -> None:
        # Ten digits pinned in ten places: the others of their kind come to them, more often than
        # by chance.
        X, y = digits[0][:600], digits[1][:600]
        pinned = np.concatenate([np.flatnonzero(y == digit)[:10] for digit in range(10)])
        angles = 2 * np.pi * y / 10
        init = 1e-2 * np.random.default_rng(0).normal(size=(600, 2))
        places = 20 * np.column_stack([np.cos(angles), np.sin(angles)])
        init[pinned] = (places + np.random.default_rng(1).normal(size=(600, 2)))[pinned]
        Y = TSNE(init=init, max_iter=500).fit(X, fixed=pinned).embedding_
        nearest = np.square(Y[:, None, :] - places[pinned[::10]]).sum(axis=-1).argmin(axis=1)
        rest = np.setdiff1d(np.arange(600), pinned)
        assert (nearest[rest] == y[rest]).mean() > 0.7

    def test_pinned_points_may_share_a_place(self, X: Array) -> None:
        init = np.random.default_rng(0).normal(size=(200, 2))
        init[[3, 10, 20]] = init[30]
        Y = TSNE(init=init, perplexity=10, max_iter=250).fit(X, fixed=[10, 20]).embedding_
        np.testing.assert_array_equal(Y[10], init[30].astype(np.float32))
        np.testing.assert_array_equal(Y[20], Y[10])
        assert len(np.unique(Y[[3, 10, 30]], axis=0)) == 3

    def test_after_an_exception(self, X: Array) -> None:
        def callback(*_: Any) -> None:
            raise RuntimeError("stop")

        init = np.random.default_rng(0).normal(size=(200, 2))
        tsne = TSNE(init=init, perplexity=10, dof=0.5, dtype=np.float64, callback=callback)
        with pytest.raises(RuntimeError, match="stop"):
            tsne.fit(X, fixed=[4])
        np.testing.assert_array_equal(tsne.embedding_[4], init[4])

    @pytest.mark.parametrize(
        ("fixed", "said"),
        [
            ([0, 200], "fixed names sample 200; there are 200"),
            ([-201], "fixed names sample -201; there are 200"),
            ([True, False], r"fixed is a mask of shape \(2,\); expected \(200,\)"),
            ([0.5], "fixed must be a boolean mask or a list of indices; got an array of float64"),
            (
                np.arange(200) % 2,
                "one for each sample; if it is a mask, give booleans",
            ),
            ([[0, 1]], r"fixed must be .* with shape \(1, 2\)"),
            (3, r"fixed must be .* with shape \(\)"),
            ("all", "fixed must be a boolean mask or a list of indices"),
        ],
    )
    def test_errors(self, P: Affinities, X: Array, fixed: Any, said: str) -> None:
        with pytest.raises(ValueError, match=said):
            start(P).optimize(10, fixed=fixed)
        with pytest.raises(ValueError, match=said):
            TSNE(perplexity=10).fit(X, fixed=fixed)
