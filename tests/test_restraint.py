"""What keeps the descent from swinging or flying apart, whatever the problem.

The reference is scikit-learn's schedule: small steps, little momentum, 1000 iterations.
"""

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


def islands(n: int, count: int) -> Array:
    return noise(n, 5) + 1e5 * noise(count, 5, seed=1)[np.arange(n) % count]


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
    # Arrangements differ by up to a sixth, most by a few per cent; what swings ends far above.
    assert found.kl_divergence_ < 1.2 * reference.kl_divergence_ + 1e-3
    # And stays there.
    longer = TSNE(random_state=0, **parameters, tol=0, max_iter=1000).fit(X)
    assert longer.kl_divergence_ < 1.001 * found.kl_divergence_ + 1e-3
    assert np.ptp(longer.embedding_) < 4000


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
