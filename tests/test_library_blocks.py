"""Searches through scikit-learn: in blocks of rows, between which Ctrl-C is looked for."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

from acctsne import TSNE, nearest_neighbors
from acctsne.neighbors import libraries
from acctsne.neighbors.nearest import query_neighbors
from acctsne.neighbors.records import SearchSettings

Array = npt.NDArray[Any]
N = 400


def data(features: int = 30) -> Array:
    return np.random.default_rng(0).normal(size=(N, features))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows in each block, so that there are many."""
    monkeypatch.setattr(libraries, "BLOCK_WORK", 7 * N * 31, raising=False)


@pytest.fixture(autouse=True)
def usual_ctrl_c() -> Iterator[None]:
    """As in a program that was started by hand: in the background, shells have it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Interrupting:
    """Something that presses Ctrl-C at a certain call, and counts all calls."""

    def __init__(self, do: Callable[..., Any], at: int) -> None:
        self.calls = 0
        self._do = do
        self._at = at

    def __call__(self, *given: Any, **named: Any) -> Any:
        self.calls += 1
        if self.calls == self._at:
            os.kill(os.getpid(), signal.SIGINT)
        elif self.calls > self._at:
            time.sleep(0.05)  # so that the main thread comes to notice
        return self._do(*given, **named)


METHODS: dict[str, Callable[..., Any]] = {
    "neighbours": lambda X, metric, threads: nearest_neighbors(X, 5, metric=metric, n_jobs=threads),
    "queries": lambda X, metric, threads: query_neighbors(
        X, X + 0.5, SearchSettings(5, metric, threads=threads)
    ),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("features", [4, 30])  # a tree, and all pairs
@pytest.mark.parametrize("method", METHODS)
def test_a_search_ends_after_the_block(
    monkeypatch: pytest.MonkeyPatch, method: str, features: int, threads: int
) -> None:
    search = Interrupting(NearestNeighbors.kneighbors, at=3)
    monkeypatch.setattr(
        NearestNeighbors, "kneighbors", lambda *given, **named: search(*given, **named)
    )
    # Rows of a tree count for less.
    monkeypatch.setattr(libraries, "TREE_PART", 1, raising=False)
    monkeypatch.setattr(libraries, "BLOCK_WORK", 7 * N * (features + 1), raising=False)
    with pytest.raises(KeyboardInterrupt):
        METHODS[method](data(features), "manhattan", threads)
    if threads == 1:
        assert search.calls == 3
    else:  # others may have been under way; of all blocks there are more than this
        assert search.calls < N // 7


@pytest.mark.parametrize("threads", [1, 2])
def test_distances_of_all_pairs_end_after_the_block(
    monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    compute = Interrupting(pairwise_distances, at=3)
    monkeypatch.setattr(libraries, "pairwise_distances", compute, raising=False)
    monkeypatch.setattr("acctsne.neighbors.nearest.pairwise_distances", compute, raising=False)
    with pytest.raises(KeyboardInterrupt):
        TSNE(metric="manhattan", method="exact", init="random", n_jobs=threads).fit(data())
    if threads == 1:
        assert compute.calls == 3
    else:
        assert compute.calls < N // 7


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("features", [4, 30])
@pytest.mark.parametrize("method", METHODS)
def test_a_function_is_not_called_again(method: str, features: int, threads: int) -> None:
    metric = Interrupting(lambda a, b: np.abs(a - b).max(), at=5000)
    with pytest.raises(KeyboardInterrupt):
        METHODS[method](data(features), metric, threads)
    assert metric.calls == 5000


@pytest.mark.parametrize("metric", ["manhattan", "canberra", "chebyshev", "braycurtis"])
@pytest.mark.parametrize("features", [4, 30])
def test_blocks_find_what_one_call_finds(metric: str, features: int) -> None:
    X = data(features)
    expected = NearestNeighbors(n_neighbors=6, metric=metric).fit(X)
    for threads in (1, 2, 3):
        found = nearest_neighbors(X, 6, metric=metric, n_jobs=threads)
        distances, indices = expected.kneighbors()
        assert np.array_equal(found.distances, distances)
        assert np.array_equal(found.indices, indices)
        settings = SearchSettings(6, metric, threads=threads)
        there, away, *_ = query_neighbors(X, X[:50] + 0.5, settings)
        away_expected, there_expected = expected.kneighbors(X[:50] + 0.5, 6)
        assert np.array_equal(away, away_expected)
        assert np.array_equal(there, there_expected)


@pytest.mark.parametrize("features", [4, 30])
def test_equal_distances_are_taken_alike_by_any_number_of_threads(features: int) -> None:
    X = np.round(data(features) / 2)
    X[10:20] = X[30:40]
    one = nearest_neighbors(X, 6, metric="manhattan", n_jobs=1)
    expected = np.sort(pairwise_distances(X, metric="manhattan"), axis=1)[:, 1:7]
    assert np.array_equal(one.distances, expected)
    assert (one.indices != np.arange(N)[:, None]).all()
    for threads in (2, 3):
        more = nearest_neighbors(X, 6, metric="manhattan", n_jobs=threads)
        assert np.array_equal(one.indices, more.indices)


@pytest.mark.parametrize("metric", ["manhattan", "seuclidean", "mahalanobis", "yule"])
@pytest.mark.filterwarnings("ignore:Data was converted to boolean")
def test_blocks_of_all_pairs(metric: str) -> None:
    X = data()
    settings = SearchSettings(5, metric, dtype=np.dtype(np.float64), threads=2)
    np.testing.assert_allclose(
        libraries.all_distances(X, settings), pairwise_distances(X, metric=metric), atol=1e-12
    )


def test_truths_are_told_of_once() -> None:
    with pytest.warns(UserWarning, match="converted to boolean for metric yule") as told:
        nearest_neighbors(np.round(data()) ** 2, 5, metric="yule", n_jobs=1)
    assert len(told) == 1
