"""Perplexities that are words: "auto" and "multiscale"."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from acctsne import TSNE, Affinities
from acctsne.affinities.similarity import perplexities_for

Array = npt.NDArray[Any]


def normal(n: int) -> Array:
    return np.random.default_rng(0).normal(size=(n, 4))


@pytest.mark.parametrize(
    ("n_samples", "auto", "multiscale"),
    [
        (2, (1,), (1,)),
        (3, (1,), (1,)),
        (80, (10,), (10,)),
        (240, (30,), (30,)),
        (3000, (30,), (30,)),
        (4000, (30,), (30, 40)),
        (10**6, (30,), (30, 500)),
    ],
)
def test_the_rule(n_samples: int, auto: tuple[float], multiscale: tuple[float, ...]) -> None:
    assert perplexities_for("auto", n_samples) == auto
    assert perplexities_for("multiscale", n_samples) == multiscale


@pytest.mark.parametrize(("n_samples", "perplexity"), [(80, 10), (300, 30)])
def test_auto_is_a_number(n_samples: int, perplexity: float) -> None:
    X = normal(n_samples)
    np.testing.assert_array_equal(
        TSNE(perplexity="auto", random_state=0).fit_transform(X),
        TSNE(perplexity=perplexity, random_state=0).fit_transform(X),
    )


def test_multiscale_is_that_of_affinities() -> None:
    X = normal(3300)
    P = Affinities.from_data(X, kind="multiscale", perplexity=[30, 33])
    start = 1e-4 * X[:, :2]
    tsne = TSNE(perplexity="multiscale", init=start, max_iter=250)
    expected = TSNE(init=start, max_iter=250).fit_transform(P)
    np.testing.assert_array_equal(tsne.fit_transform(X), expected)


@pytest.mark.parametrize("n_samples", [2, 3, 7, 9])
@pytest.mark.parametrize("word", ["auto", "multiscale"])
def test_few_samples(n_samples: int, word: str) -> None:
    assert np.isfinite(TSNE(perplexity=word, random_state=0).fit_transform(normal(n_samples))).all()


def test_other_words_are_refused() -> None:
    with pytest.raises(ValueError, match=r"'perplexity' parameter of TSNE.*'Auto' instead"):
        TSNE(perplexity="Auto").fit(normal(50))


def test_clone() -> None:
    assert clone(TSNE(perplexity="multiscale")).perplexity == "multiscale"


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [TSNE(perplexity="auto", max_iter=250)]
)
def test_estimator_checks(estimator: Any, check: Any) -> None:
    check(estimator)
