"""What keeps the descent from swinging or flying apart, whatever the problem.

The reference is scikit-learn's schedule: small steps, little momentum, 1000 iterations.

What turns red when a part of the safety net is switched off by hand in native/optimize/loop.cpp:
momentum of 0.99 whatever friction says; gains that are set back to 1 after each step; `bearable`
that returns the rate it is given; a preconditioner of 1 everywhere; `kMostMobile` without limit;
all but the last at once; and, in optimize/schedule.py, a longest step of 5 whatever the degrees of
freedom. Who changes the net does this anew.

                                 friction  gains  rate  preconditioner  cap  all  step
few hubs                         -         red    -     -               -    red  -
few hubs, huge rate              -         red    red   -               -    red  -
hubs, dof 20                     -         red    -     -               -    red  -
pairs of duplicates              -         red    -     -               -    red  -
10 points                        -         -      -     -               -    red  -
100 points                       red       -      -     -               -    red  -
islands of 4                     red       red    -     -               -    red  -
islands of 2                     -         red    -     -               -    red  -
unequal pairs                    red       -      -     red             -    red  -
unequal pairs, dof 10            -         -      -     -               -    -    red
an outlier                       red       -      -     -               -    red  -
an outlier, perplexity 1.2       red       red    -     -               -    red  -
a weak point                     -         -      -     -               red  -    -
noise, dof 20                    -         red    -     -               -    red  -
noise, huge rate                 -         -      red   -               -    red  -
heavy tails, dof 20              -         red    -     -               -    red  -
random, perplexity 1.2           -         red    -     -               -    red  -
3-D, perplexity 1.2              red       red    -     -               -    red  -
perplexity 1.5                   red       red    -     -               -    red  -
perplexity 3                     red       red    -     -               -    red  -
perplexity 100, huge rate        red       -      red   -               -    red  -
dof 0.3, huge rate               -         -      red   -               -    red  -
dof 2                            -         -      -     -               -    red  -
dof 20                           -         red    -     -               -    red  -
dof 20, perplexity 2             -         red    -     -               -    red  -
no early exaggeration            red       -      -     -               -    red  -
no exaggeration, 1.2             red       red    -     -               -    red  -
a huge learning rate             -         -      red   -               -    red  -
a huge learning rate in the end  red       -      red   -               -    red  -
late exaggeration 0.5            -         -      red   -               -    red  -
late exaggeration 4.0            red       -      red   -               -    red  -
late exaggeration 12.0           -         -      red   -               -    red  -

The other problems stay green in all columns. Of two points no map could tell: their KL divergence
is 0 wherever they are.
"""

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_matrix
from sklearn import datasets

from acctsne import TSNE, Affinities

Array = npt.NDArray[Any]


def noise(n: int, d: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=(n, d))


def hubs(n: int) -> Affinities:
    """Everybody is drawn to three points besides the next ones."""
    rows = np.repeat(np.arange(n), 5)
    columns = (rows + np.tile([1, 2, -1, -2, 0], n)) % n
    columns[4::5] = np.arange(n) % 3
    kept = rows != columns
    weights = np.ones(kept.sum())
    P = csr_matrix((weights, (rows[kept], columns[kept])), shape=(n, n))
    made = Affinities.from_matrix(P + P.T)
    assert n * np.asarray(made.to_scipy().sum(axis=1)).max() > 20
    return made


def graph(n: int, first: Array, second: Array, weights: Any = 1.0) -> Affinities:
    """Points that are drawn to each other along edges, and to nobody else."""
    P = csr_matrix((np.broadcast_to(weights, first.shape), (first, second)), shape=(n, n))
    return Affinities.from_matrix(P + P.T)


def ring_with_hubs(n: int, count: int) -> Affinities:
    """Everybody is drawn to the next one, and ten times as much to one of the hubs."""
    around, others = np.arange(n), np.arange(count, n)
    made = graph(
        n,
        np.concatenate([others, around]),
        np.concatenate([others % count, (around + 1) % n]),
        np.repeat([10.0, 1.0], [n - count, n]),
    )
    assert n * np.asarray(made.to_scipy().sum(axis=1)).max() > 10
    return made


def unequal_pairs(n: int) -> Affinities:
    """A tenth of the pairs are drawn together 50 times as much; all hang together loosely."""
    one = np.arange(n)
    weights = np.where(one[::2] < n // 10, 50.0, 1.0)
    return graph(
        n,
        np.concatenate([one[::2], one]),
        np.concatenate([one[1::2], (one + 2) % n]),
        np.concatenate([weights, 0.01 * np.repeat(weights, 2)]),
    )


def ring_with_a_weak_point(n: int) -> Affinities:
    """Hardly anything draws the last point anywhere."""
    around = np.arange(n - 1)
    return graph(
        n,
        np.concatenate([around, around, [n - 1]]),
        np.concatenate([(around + 1) % (n - 1), (around + 2) % (n - 1), [0]]),
        np.repeat([1.0, 1e-6], [2 * (n - 1), 1]),
    )


def islands(n: int, count: int) -> Array:
    return noise(n, 5) + 1e5 * noise(count, 5, seed=1)[np.arange(n) % count]


FEW_DIGITS = datasets.load_digits().data[:400]
HEAVY_TAILS = np.random.default_rng(0).standard_t(1.5, size=(400, 20))

PROBLEMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "noise": (noise(1000, 50), {}),
    "duplicates": (np.repeat(noise(40, 10), 20, axis=0), {}),
    "islands": (islands(800, 20), {"perplexity": 10}),
    "an outlier": (np.vstack([noise(300, 5), np.full((1, 5), 1e6)]), {}),
    "heavy tails": (np.random.default_rng(0).standard_t(1.5, size=(800, 20)), {}),
    "a line": (np.linspace(0, 1, 600)[:, None] * np.ones(3), {}),
    "hubs": (hubs(600), {"init": "spectral"}),
    "2 points": (noise(2, 3), {"perplexity": 1}),
    "3 points": (noise(3, 3), {"perplexity": 1}),
    "10 points": (noise(10, 3), {"perplexity": 3}),
    "100 points": (noise(100, 5), {}),
    "perplexity 1.5": ("digits", {"perplexity": 1.5}),
    "perplexity 3": ("digits", {"perplexity": 3}),
    "perplexity 300": ("digits", {"perplexity": 300}),
    "dof 0.3": ("digits", {"dof": 0.3}),
    "dof 2": ("digits", {"dof": 2.0}),
    "dof 20": ("digits", {"dof": 20.0}),
    "1-D": ("digits", {"n_components": 1}),
    "3-D": ("digits", {"n_components": 3}),
    "5-D": (noise(200, 20), {"n_components": 5}),
    "a random start": ("digits", {"init": "random"}),
    "a huge learning rate": ("digits", {"learning_rate": 1e12}),
    "a huge learning rate in the end": ("digits", {"learning_rate": (10.0, 1e30)}),
    "no early exaggeration": ("digits", {"early_exaggeration_iter": 0}),
    "huge early exaggeration": ("digits", {"early_exaggeration": 1e4}),
}

# Each needs a part of the safety net, as the table above says.
NEEDY: dict[str, tuple[Any, dict[str, Any]]] = {
    "few hubs": (ring_with_hubs(300, 3), {"init": "random"}),
    "few hubs, huge rate": (
        ring_with_hubs(300, 3),
        {"init": "random", "learning_rate": 1e12},
    ),
    "hubs, dof 20": (ring_with_hubs(600, 20), {"init": "random", "dof": 20.0}),
    "pairs of duplicates": (np.repeat(noise(200, 10), 2, axis=0), {"perplexity": 1.2}),
    "islands of 4": (islands(400, 100), {"perplexity": 1.5}),
    "islands of 2": (graph(300, np.arange(0, 300, 2), np.arange(1, 300, 2)), {"init": "random"}),
    "unequal pairs": (unequal_pairs(300), {"init": "random"}),
    "unequal pairs, dof 10": (unequal_pairs(300), {"init": "random", "dof": 10.0}),
    "an outlier, perplexity 1.2": (
        np.vstack([noise(300, 5), np.full((1, 5), 1e6)]),
        {"perplexity": 1.2},
    ),
    "a weak point": (ring_with_a_weak_point(300), {"init": "random"}),
    "noise, dof 20": (noise(400, 50), {"perplexity": 1.2, "dof": 20.0}),
    "noise, huge rate": (noise(400, 50), {"learning_rate": 1e12}),
    "heavy tails, dof 20": (HEAVY_TAILS, {"perplexity": 1.2, "dof": 20.0}),
    "10 points, dof 20": (noise(10, 3), {"perplexity": 1, "dof": 20.0}),
    "random, perplexity 1.2": (FEW_DIGITS, {"init": "random", "perplexity": 1.2}),
    "3-D, perplexity 1.2": (FEW_DIGITS, {"n_components": 3, "perplexity": 1.2}),
    "dof 0.3, huge rate": (FEW_DIGITS, {"dof": 0.3, "learning_rate": 1e12}),
    "dof 20, perplexity 2": (FEW_DIGITS, {"dof": 20.0, "perplexity": 2}),
    "no exaggeration, 1.2": (FEW_DIGITS, {"early_exaggeration_iter": 0, "perplexity": 1.2}),
    "perplexity 100, huge rate": (FEW_DIGITS, {"perplexity": 100, "learning_rate": 1e12}),
}
PROBLEMS |= NEEDY


@pytest.fixture(scope="module", name="data")
def _data(digits: tuple[Array, Array]) -> Array:
    return digits[0][:900]


@pytest.mark.filterwarnings("ignore:no row can reach:RuntimeWarning")
@pytest.mark.parametrize("name", PROBLEMS)
def test_ends_no_higher_than_a_cautious_descent(name: str, data: Array) -> None:
    X, parameters = PROBLEMS[name]
    X = data if isinstance(X, str) else X
    found = TSNE(random_state=0, **parameters).fit(X)
    assert np.isfinite(found.embedding_).all()
    cautious = {key: value for key, value in parameters.items() if key != "learning_rate"}
    reference = TSNE(random_state=0, schedule="sklearn", **cautious).fit(X)
    # Where even small steps are too large, a map with all points in one place tells what is little.
    n = len(found.embedding_)
    bearable = min(reference.kl_divergence_, np.log(n * (n - 1)))
    # Arrangements differ by up to a sixth, most by a few per cent; what swings ends far above.
    assert found.kl_divergence_ < 1.2 * bearable + 1e-3
    # And stays there.
    longer = TSNE(random_state=0, **parameters, tol=0, max_iter=1000).fit(X)
    assert longer.kl_divergence_ < 1.001 * found.kl_divergence_ + 1e-3 + 2e-3 * bearable
    assert np.ptp(longer.embedding_) < min(4000, max(100, 5 * np.ptp(reference.embedding_)))


@pytest.mark.parametrize("factor", [0.5, 4.0, 12.0])
def test_late_exaggeration_neither_swings_nor_flies_apart(data: Array, factor: float) -> None:
    # Its objective is another one, so the map's size is what tells.
    maps = [
        TSNE(late_exaggeration=factor, random_state=0, max_iter=500, **parameters).fit(data)
        for parameters in ({}, {"schedule": "sklearn"}, {"learning_rate": 1e12})
    ]
    sizes = [tsne.embedding_.std() for tsne in maps]
    assert sizes[2] == sizes[0]
    if factor > 1:
        assert 0.7 * sizes[1] < sizes[0] < 1.3 * sizes[1]
    # What exaggerated P and the map have in common: cross-entropy falls below that of the start.
    before = TSNE(late_exaggeration=factor, random_state=0, max_iter=250).fit(data)
    assert maps[0].kl_divergence_ < 1.1 * before.kl_divergence_


def test_the_log_says_so(data: Array, caplog: pytest.LogCaptureFixture) -> None:
    TSNE(verbose=1, random_state=0, learning_rate=1e9, dof=20).fit(data)
    assert "learning rate lowered to n_samples / exaggeration, at most 900" in caplog.text
    assert "steps too large: less momentum in" in caplog.text
    caplog.clear()
    TSNE(verbose=1, random_state=0).fit(data)
    assert "lowered" not in caplog.text
    assert "steps too large" not in caplog.text


def test_the_log_always_counts_what_restrained(
    data: Array, caplog: pytest.LogCaptureFixture
) -> None:
    def counts() -> list[tuple[str, ...]]:
        line = r"less momentum in (\d+) of (\d+) iterations, shorter steps (\S+) times a point"
        found = [match.groups() for match in re.finditer(line, caplog.text)]
        caplog.clear()
        return found

    tsne = TSNE(verbose=1, random_state=0).fit(data)
    ((braked, n_iter, turned),) = counts()
    assert 0 < int(braked) < int(n_iter) == tsne.n_iter_ + 1
    assert 0 < float(turned) < int(n_iter)
    # Momentum that is given stays, and scikit-learn's schedule has neither.
    TSNE(verbose=1, random_state=0, max_iter=250, momentum=0.8).fit(data)
    ((braked, _, _),) = counts()
    assert braked == "0"
    TSNE(verbose=1, random_state=0, max_iter=250, schedule="sklearn").fit(data)
    assert counts() == [("0", "250", "0")]
    TSNE(random_state=0, max_iter=250).fit(data)
    assert counts() == []


# Those whose steps are shortened more often than in any ordinary fit.
@pytest.mark.parametrize("name", ["2 points", "3 points", "dof 20"])
def test_the_log_tells_of_hostile_problems(
    name: str, data: Array, caplog: pytest.LogCaptureFixture
) -> None:
    X, parameters = PROBLEMS[name]
    TSNE(verbose=1, random_state=0, **parameters).fit(data if isinstance(X, str) else X)
    assert "steps too large: less momentum in" in caplog.text


ORDINARY: dict[str, Any] = {
    "iris": lambda: datasets.load_iris().data,
    "wine": lambda: datasets.load_wine().data,
    "breast cancer": lambda: datasets.load_breast_cancer().data,
    **{
        f"{n} digits": lambda n=n: datasets.load_digits().data[:n]
        for n in (100, 200, 300, 400, 500, 600, 700, 800, 900)
    },
    **{
        f"{n} points in blobs": lambda n=n: datasets.make_blobs(n, 10, centers=8, random_state=0)[0]
        for n in (100, 500, 2000)
    },
    **{
        f"{n} points of a swiss roll": lambda n=n: datasets.make_swiss_roll(n, random_state=0)[0]
        for n in (100, 500, 2000)
    },
}


@pytest.mark.parametrize("name", ORDINARY)
def test_the_log_of_an_ordinary_fit_is_silent(name: str, caplog: pytest.LogCaptureFixture) -> None:
    TSNE(verbose=1, random_state=0).fit(ORDINARY[name]())
    assert "KL divergence" in caplog.text
    assert "steps too large" not in caplog.text


def test_threads_do_not_change_what_restrains(data: Array) -> None:
    maps = [
        TSNE(perplexity=2, random_state=0, learning_rate=1e9, n_jobs=threads).fit(data)
        for threads in (1, 2, 3, 8)
    ]
    for tsne in maps[1:]:
        np.testing.assert_array_equal(tsne.embedding_, maps[0].embedding_)
        assert tsne.n_iter_ == maps[0].n_iter_
