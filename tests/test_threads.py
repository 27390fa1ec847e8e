"""Threads, processes and signals."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_info

from acctsne import TSNE, Affinities, Embedding, _core
from acctsne.runtime import threads
from acctsne.runtime.threads import available_cores, effective_threads, limited_libraries

Array = npt.NDArray[Any]


def data(seed: int, n: int = 700) -> Array:
    return np.random.default_rng(seed).normal(size=(n, 8))


def fit_bytes(seed: int, **parameters: Any) -> bytes:
    tsne = TSNE(perplexity=10, max_iter=250, random_state=0, n_jobs=2, **parameters)
    return bytes(tsne.fit_transform(data(seed)).tobytes())


def libraries() -> list[dict[str, Any]]:
    # One that other tests have loaded may say 0, and then has no threads to limit.
    return [pool for pool in threadpool_info() if pool["num_threads"]]


def at_once(workers: int, work: Callable[[int], None]) -> None:
    """Have so many threads begin with `work` together, and raise what one of them raises."""
    together = threading.Barrier(workers)
    raised: list[BaseException] = []

    def begin(worker: int) -> None:
        try:
            together.wait(timeout=60)
            work(worker)
        except BaseException as error:
            raised.append(error)

    started = [threading.Thread(target=begin, args=(worker,)) for worker in range(workers)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in started)
    if raised:
        raise raised[0]


def library_threads() -> list[int]:
    return [pool["num_threads"] for pool in libraries()]


def threads_around_a_limit() -> list[list[int]]:
    """How many threads libraries have before, in and after a limit of one."""
    counts = [library_threads()]
    with limited_libraries(1):
        counts.append(library_threads())
    return [*counts, library_threads()]


class TestHowMany:
    @pytest.fixture(autouse=True)
    def six_cores(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # What the machine has is joblib's to find out; what we make of it is ours.
        monkeypatch.setattr("acctsne.runtime.threads.joblib.cpu_count", lambda: 6)
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)

    @pytest.mark.parametrize(
        ("n_jobs", "threads"),
        [(None, 6), (-1, 6), (-2, 5), (-6, 1), (-7, 1), (-100, 1), (1, 1), (3, 3), (64, 64)],
    )
    def test_n_jobs(self, n_jobs: int | None, threads: int) -> None:
        assert effective_threads(n_jobs) == threads

    def test_more_than_any_machine_has(self) -> None:
        with pytest.raises(ValueError, match="n_jobs is 2147483648; at most 4096"):
            TSNE(n_jobs=2**31).fit(data(0))

    def test_n_jobs_zero(self) -> None:
        with pytest.raises(ValueError, match="n_jobs == 0"):
            effective_threads(0)

    @pytest.mark.parametrize(
        ("variable", "cores"),
        [("1", 1), ("4", 4), ("100", 6), (" 3 ", 3), ("2,4", 2), ("", 6), ("0", 6), ("many", 6)],
    )
    def test_omp_num_threads(
        self, monkeypatch: pytest.MonkeyPatch, variable: str, cores: int
    ) -> None:
        monkeypatch.setenv("OMP_NUM_THREADS", variable)
        assert available_cores() == cores
        assert effective_threads(None) == cores
        assert effective_threads(-1) == cores
        assert effective_threads(-2) == max(1, cores - 1)
        assert effective_threads(5) == 5  # an explicit count is the user's word


def test_a_fit_from_its_own_callback_is_refused() -> None:
    expected = fit_bytes(0)
    refused: list[RuntimeError] = []

    def fit_again(*_: Any) -> None:
        with pytest.raises(RuntimeError, match="this TSNE is being fitted") as caught:
            tsne.fit(data(1))
        refused.append(caught.value)

    tsne = TSNE(perplexity=10, max_iter=250, random_state=0, n_jobs=2, callback=fit_again)
    assert tsne.fit_transform(data(0)).tobytes() == expected
    assert refused
    # What a copy does is its own affair, and afterwards the estimator is free.
    copies: list[bytes] = []
    tsne.callback = lambda *_: copies.append(
        clone(tsne).set_params(callback=None).fit_transform(data(1)).tobytes()
    )
    assert tsne.fit_transform(data(0)).tobytes() == expected
    assert set(copies) == {fit_bytes(1)}


def test_one_estimator_is_fitted_by_one_thread_at_a_time() -> None:
    begun, seen = threading.Event(), threading.Event()

    def wait(*_: Any) -> None:
        begun.set()
        seen.wait(timeout=60)

    tsne = TSNE(perplexity=10, max_iter=250, random_state=0, n_jobs=1, callback=wait)
    first = threading.Thread(target=tsne.fit, args=(data(0),))
    first.start()
    assert begun.wait(timeout=60)
    with pytest.raises(RuntimeError, match=r"by another thread.*sklearn.base.clone"):
        tsne.fit(data(1))
    seen.set()
    first.join(timeout=60)
    assert tsne.embedding_.tobytes() == fit_bytes(0)


def test_libraries_are_limited_and_released() -> None:
    before = library_threads()
    assert before  # NumPy's BLAS at least
    with limited_libraries(1):
        assert set(library_threads()) == {1}
    assert library_threads() == before


def test_limits_of_libraries_are_lifted_in_any_order() -> None:
    # As two fits side by side do: the one that began first ends first.
    before = library_threads()
    first, second = limited_libraries(2), limited_libraries(1)
    first.__enter__()
    second.__enter__()
    assert set(library_threads()) == {1}
    first.__exit__(None, None, None)
    assert set(library_threads()) == {1}
    second.__exit__(None, None, None)
    assert library_threads() == before


def test_limits_of_libraries_are_set_and_lifted_by_any_thread() -> None:
    # As in a pool of threads, which stay: the one that began first ends first.
    before = library_threads()
    seen: dict[str, list[int]] = {}
    began, ended = threading.Event(), threading.Event()
    looked = threading.Barrier(3)

    def work(name: str, begin: threading.Event, end: threading.Event) -> None:
        begin.wait(timeout=60)
        with limited_libraries(1):
            seen[f"in {name}"] = library_threads()
            (began if name == "first" else ended).set()
            end.wait(timeout=60)
        seen[f"after {name}"] = library_threads()
        looked.wait(timeout=60)

    with limited_libraries(2):  # this thread is the first to set any, and lives on
        pass
    now = threading.Event()
    now.set()
    first_ended = threading.Event()
    workers = [
        threading.Thread(target=work, args=("first", now, ended)),
        threading.Thread(target=work, args=("second", began, first_ended)),
    ]
    for worker in workers:
        worker.start()
    while "after first" not in seen and all(worker.is_alive() for worker in workers):
        ended.wait(timeout=0.05)
    first_ended.set()
    looked.wait(timeout=60)
    for worker in workers:
        worker.join(timeout=60)
    assert seen["in first"] == seen["in second"] == [1] * len(before)
    assert seen["after second"] == before
    # OpenMP's limit of the first thread is its own, and is lifted with it.
    openmp = [pool["user_api"] == "openmp" for pool in libraries()]
    assert [n for n, own in zip(seen["after first"], openmp, strict=True) if own] == [
        n for n, own in zip(before, openmp, strict=True) if own
    ]
    assert library_threads() == before


def test_the_simd_level_stays_during_a_call(X: Array) -> None:
    def change(*_: Any) -> None:
        _core.use_simd_level("baseline")

    before = _core.build_info()["simd_level"]
    with pytest.raises(RuntimeError, match="while a call is under way"):
        TSNE(perplexity=10, callback=change).fit(X)
    assert _core.build_info()["simd_level"] == before


@pytest.mark.parametrize("level", _core.build_info()["simd_levels_usable"])
def test_an_embedding_stays_at_its_simd_level(P: Affinities, level: str) -> None:
    before = _core.build_info()["simd_level"]
    embedding = Embedding(P, "random", random_state=0)
    _core.use_simd_level(level)
    try:
        if level == before:
            embedding.optimize(5)
        else:
            with pytest.raises(RuntimeError, match=f"made at the SIMD level {before}"):
                embedding.optimize(5)
            with pytest.raises(RuntimeError, match=f"the level is {level} now"):
                embedding.kl()
    finally:
        _core.use_simd_level(before)
    embedding.optimize(5)


def test_the_simd_level_changes_between_calls_only(P: Affinities) -> None:
    before = _core.build_info()["simd_level"]
    levels = _core.build_info()["simd_levels_usable"]
    found: set[bytes] = set()
    ends = threading.Event()

    def positions() -> bytes:
        embedding = Embedding(P, "random", random_state=0, n_jobs=1)
        return embedding.optimize(3).positions.tobytes()

    def change() -> None:
        while not ends.is_set():
            for level in levels:
                with contextlib.suppress(RuntimeError):  # a call was under way
                    _core.use_simd_level(level)

    def work(worker: int) -> None:
        if worker == 0:
            change()
            return
        try:
            for _ in range(200):
                with contextlib.suppress(RuntimeError):  # made at one level, optimised at another
                    found.add(positions())
        finally:
            ends.set()

    try:
        at_once(2, work)
        expected = set()
        for level in levels:
            _core.use_simd_level(level)
            expected.add(positions())
    finally:
        _core.use_simd_level(before)
    assert found
    assert found <= expected


def test_affinities_are_shared(X: Array) -> None:
    # The matrix is made by whoever asks first, and several may.
    expected = Affinities.from_data(X, perplexity=10)
    layout = Embedding(expected, "random", random_state=0).optimize(20).positions.tobytes()
    matrix = [array.tobytes() for array in (expected.offsets, expected.columns, expected.values)]
    for _ in range(5):
        shared = Affinities.from_data(X, perplexity=10)
        found: list[list[bytes]] = [[] for _ in range(4)]

        def work(worker: int, shared: Affinities = shared, found: Any = found) -> None:
            if worker % 2:
                arrays = (shared.offsets, shared.columns, shared.values)
                found[worker] = [array.tobytes() for array in arrays]
            else:
                embedding = Embedding(shared, "random", random_state=0, n_jobs=1)
                found[worker] = [embedding.optimize(20).positions.tobytes()]

        at_once(4, work)
        assert found == [[layout], matrix, [layout], matrix]


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a lock of its own"
)
def test_the_interpreter_lock_stays_off() -> None:
    program = "import sys; from acctsne import TSNE, _core; print(sys._is_gil_enabled())"
    environment = {name: os.environ[name] for name in os.environ if name != "PYTHON_GIL"}
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (ended.stdout, ended.stderr) == ("False\n", "")


class TestOneEmbeddingInSeveralThreads:
    def test_each_is_let_in_alone(self, P: Affinities) -> None:
        embedding = Embedding(P, "random", random_state=0, n_jobs=1)
        undisturbed = embedding.copy()
        refused: list[str] = []

        def work(worker: int) -> None:
            acts: list[Callable[[], object]] = [
                lambda: embedding.optimize(2),
                embedding.kl,
                lambda: embedding.timings,
                lambda: embedding.positions,
            ]
            for round_ in range(100):
                try:
                    acts[(worker + round_) % len(acts)]()
                except RuntimeError as error:
                    refused.append(str(error))

        at_once(4, work)
        assert all("is being optimised by another thread" in text for text in refused)
        assert embedding.n_iter > 0
        undisturbed.optimize(embedding.n_iter)
        assert embedding.positions.tobytes() == undisturbed.positions.tobytes()

    def test_the_second_caller_is_told(self, P: Affinities) -> None:
        embedding = Embedding(P, "random", random_state=0, n_jobs=2)
        under_way, looked = threading.Event(), threading.Event()
        said: list[str] = []

        def pause(*_: Any) -> bool:
            under_way.set()
            return looked.wait(timeout=60)

        def intrude() -> None:
            assert under_way.wait(timeout=60)
            for act in (lambda: embedding.optimize(5), embedding.kl, embedding.copy):
                try:
                    act()
                except RuntimeError as error:
                    said.append(str(error))
            looked.set()

        other = threading.Thread(target=intrude)
        other.start()
        embedding.optimize(50, callbacks=pause, callback_every=1)
        other.join(timeout=60)
        assert len(said) == 3
        assert all("is being optimised by another thread" in text for text in said)
        # And when the first is done, whoever likes may go on.
        assert embedding.optimize(5).n_iter == 6

    def test_a_callback_may_look_but_not_go_on(self, P: Affinities) -> None:
        embedding = Embedding(P, "random", random_state=0)
        seen: list[float] = []

        def look(_iteration: int, kl: float, _positions: Array) -> None:
            seen.append(embedding.kl() - kl)
            embedding.optimize(1)

        with pytest.raises(RuntimeError, match="a callback cannot do so too"):
            embedding.optimize(20, callbacks=look, callback_every=10)
        assert seen == [0.0]
        assert embedding.n_iter == 10

    @pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers")
    @pytest.mark.parametrize("n_jobs", [1, 3])
    def test_a_signal_may_come_in_the_middle_of_an_iteration(
        self, P: Affinities, n_jobs: int
    ) -> None:
        embedding = Embedding(P, "random", random_state=0, n_jobs=n_jobs)
        undisturbed = embedding.copy()
        said: list[str] = []

        def look(*_: Any) -> None:
            try:
                embedding.kl()
            except RuntimeError as error:
                said.append(str(error))

        before = signal.signal(signal.SIGALRM, look)
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        try:
            for _ in range(50):
                embedding.optimize(5000)  # long enough to be asked in between
                if said:
                    break
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert said
        assert "in the middle of an iteration; ask in a callback" in said[0]
        undisturbed.optimize(embedding.n_iter)
        assert embedding.positions.tobytes() == undisturbed.positions.tobytes()


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="the system has no /proc")
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_native_threads_end_with_the_call(n_jobs: int) -> None:
    def native_threads() -> int:
        return len(os.listdir("/proc/self/task"))

    TSNE(perplexity=10, max_iter=250, n_jobs=n_jobs).fit(data(0))  # starts BLAS's own, which stay
    before = native_threads()
    TSNE(perplexity=10, max_iter=250, n_jobs=n_jobs).fit(data(0))
    assert native_threads() == before


# A child forked while other threads exist is what is tested here; Python warns of it.
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
class TestFork:
    def test_child_can_fit_after_its_parent(self) -> None:
        expected = fit_bytes(1)
        context = multiprocessing.get_context("fork")
        with context.Pool(2) as pool:
            found = pool.map_async(fit_bytes, [1, 1, 2]).get(timeout=60)
        assert found == [expected, expected, fit_bytes(2)]

    def test_child_forked_while_another_thread_fits(self) -> None:
        expected = fit_bytes(1)
        under_way = threading.Event()
        may_end = threading.Event()

        def callback(*_: Any) -> bool:
            under_way.set()
            return may_end.is_set()

        def fit_long() -> None:
            TSNE(max_iter=1_000_000, n_jobs=2, callback=callback, callback_every=5).fit(data(3))

        worker = threading.Thread(target=fit_long)
        worker.start()
        try:
            assert under_way.wait(timeout=60)
            with multiprocessing.get_context("fork").Pool(1) as pool:
                assert pool.apply_async(fit_bytes, (1,)).get(timeout=60) == expected
        finally:
            may_end.set()
            worker.join(timeout=60)
        assert not worker.is_alive()

    def test_child_forked_while_libraries_are_limited(self) -> None:
        before = library_threads()
        under_way, may_end = threading.Event(), threading.Event()

        def limit() -> None:
            with limited_libraries(1):
                under_way.set()
                may_end.wait(timeout=60)

        worker = threading.Thread(target=limit)
        worker.start()
        try:
            assert under_way.wait(timeout=60)
            limited = library_threads()
            assert 1 in limited  # OpenMP's limit is the thread's own
            with multiprocessing.get_context("fork").Pool(1) as pool:
                found = pool.apply_async(threads_around_a_limit).get(timeout=60)
            assert found == [before, [1] * len(before), before]
            assert library_threads() == limited
        finally:
            may_end.set()
            worker.join(timeout=60)
        assert library_threads() == before

    def test_child_forked_inside_a_limit_leaves_it(self) -> None:
        before = library_threads()
        with limited_libraries(1):
            child = os.fork()
        if child == 0:  # has come out of the limit without an error
            os._exit(0 if library_threads() == before else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert library_threads() == before

    def test_child_forked_while_a_limit_is_being_set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = library_threads()
        under_way, may_go_on = threading.Event(), threading.Event()
        find = threads._libraries

        def find_slowly(modules: int, user_api: str) -> Any:
            if user_api == "blas":  # whose limit is that of all threads
                under_way.set()
                may_go_on.wait(timeout=60)
            return find(modules, user_api)

        def limit() -> None:
            with limited_libraries(1):
                pass

        monkeypatch.setattr(threads, "_libraries", find_slowly)
        worker = threading.Thread(target=limit)
        worker.start()
        assert under_way.wait(timeout=60)
        # While this thread forks, the other one is in the midst of it.
        threading.Timer(0.3, may_go_on.set).start()
        try:
            with multiprocessing.get_context("fork").Pool(1) as pool:
                found = pool.apply_async(threads_around_a_limit).get(timeout=120)
        finally:
            may_go_on.set()
            worker.join(timeout=60)
        assert found == [before, [1] * len(before), before]
        assert library_threads() == before


@pytest.mark.parametrize("method", ["barnes_hut", "exact"])
def test_fits_in_two_python_threads_at_once(method: str) -> None:
    expected = [fit_bytes(seed, method=method) for seed in (1, 2)]
    found: list[bytes | None] = [None, None]

    def fit(place: int) -> None:
        found[place] = fit_bytes(place + 1, method=method)

    at_once(2, fit)
    assert found == expected


def test_other_python_threads_run_during_a_fit() -> None:
    # The interpreter lock is released: a thread that needs it makes progress meanwhile.
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        # Not done.wait(0.001), which a free-threaded Python 3.13 comes back from late.
        while not done.is_set():
            time.sleep(0.001)
            counted += 1

    worker = threading.Thread(target=count)
    worker.start()
    TSNE(max_iter=500, n_jobs=1).fit(data(0, 1500))
    during = counted
    done.set()
    worker.join(timeout=60)
    assert during > 10


# The main thread ends while another is in native code, in the Python code of a callback, or on its
# way between the two.
DAEMON = """
import threading, time
import numpy as np
from acctsne import TSNE, Affinities, Embedding, nearest_neighbors

X = np.random.default_rng(0).normal(size=(500, 5))
under_way = threading.Event()

def callback(*_):
    under_way.set()
    for _ in range({work}):
        pass

def fit():
    TSNE(max_iter=10**6, tol=0, n_iter_without_progress=10**6, min_grad_norm=0, init="random",
         callback=callback, callback_every={every}).fit(X)

def search():
    while True:
        nearest_neighbors(X[:20], 3)
        under_way.set()

def look():
    n = 100_000
    after = (np.arange(n)[:, None] + [1, 2]) % n
    P = Affinities.from_neighbors(after, np.tile([1.0, 2.0], (n, 1)), perplexity=1.5)
    embedding = Embedding(P, init="random")
    while True:
        embedding.positions
        under_way.set()

threading.Thread(target={target}, daemon=True).start()
assert under_way.wait(60)
time.sleep(0.5)
"""


@pytest.mark.parametrize(
    ("target", "work", "every"),
    [("fit", 0, 5), ("fit", 10_000_000, 1), ("search", 0, 1), ("look", 0, 1)],
)
def test_the_interpreter_ends_while_a_daemon_thread_works(
    target: str, work: int, every: int
) -> None:
    code = DAEMON.format(target=target, work=work, every=every)
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert process.returncode == 0, process.stderr
    assert not process.stderr


# The child starts a thread when the stage begins in which the signal is to meet it. No Python code
# runs in the stage itself that could notice it, and the stage would take far longer than the test
# waits. How soon it ends is measured by benchmarks/interrupt.py.
CHILD = """
import os, signal, sys, threading, time
import numpy as np
from acctsne import TSNE, _core

def interrupt_in(seconds):
    def send():
        time.sleep(seconds)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=send, daemon=True).start()

def report(tsne):
    finite = bool(np.isfinite(tsne.embedding_).all()) if hasattr(tsne, "embedding_") else None
    print(finite, getattr(tsne, "n_iter_", None), flush=True)

def announce(owner, name, seconds):
    original = getattr(owner, name)
    def announced(*arguments):
        interrupt_in(seconds)
        return original(*arguments)
    setattr(owner, name, announced)

X = np.random.default_rng(0).normal(size=({n}, {features}))
tsne = TSNE({parameters})
{prepare}
try:
    tsne.fit(X)
except KeyboardInterrupt:
    report(tsne)
else:
    print("not interrupted")
"""


def interrupted(prepare: str, parameters: str, n: int, features: int) -> tuple[str, str]:
    """Fit and interrupt; return whether the layout is finite, and n_iter_."""
    code = CHILD.format(prepare=prepare, parameters=parameters, n=n, features=features)
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout != "not interrupted\n"
    finite, n_iter = process.stdout.split()
    return finite, n_iter


class TestInterrupt:
    @pytest.mark.parametrize(("method", "n"), [("exact", 4000), ("barnes_hut", 20_000)])
    def test_in_the_loop(self, method: str, n: int) -> None:
        parameters = f"max_iter=100_000, tol=0, method={method!r}, init='random', perplexity=5"
        finite, n_iter = interrupted("announce(TSNE, '_optimize', 1.0)", parameters, n, 5)
        assert finite == "True"
        assert 0 <= int(n_iter) < 100_000

    def test_in_the_neighbor_search(self) -> None:
        prepare = "announce(_core, 'nearest_neighbors', 0.5)"
        finite, _ = interrupted(prepare, "init='random'", 60_000, 400)
        assert finite == "None"  # there is no layout yet

    def test_in_the_perplexity_search(self) -> None:
        # One thread over all pairs: seconds of Gaussians.
        prepare = "announce(_core, 'search_perplexity', 0.2)"
        finite, _ = interrupted(prepare, "init='random', method='exact', n_jobs=1", 6000, 3)
        assert finite == "None"

    def test_handler_of_the_user_is_respected(self) -> None:
        # A handler that does not raise lets the fit go on.
        seen: list[int] = []
        before = signal.signal(signal.SIGINT, lambda number, _frame: seen.append(number))
        try:
            fired: list[bool] = []

            def callback(*_: Any) -> None:
                if not fired:
                    fired.append(True)
                    os.kill(os.getpid(), signal.SIGINT)

            tsne = TSNE(max_iter=250, tol=0, callback=callback).fit(data(0))
        finally:
            signal.signal(signal.SIGINT, before)
        assert seen == [signal.SIGINT]
        assert tsne.n_iter_ == 249
