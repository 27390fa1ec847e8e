"""How many threads a call may use."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import RLock, local
from typing import Any

import joblib
import numpy as np
from threadpoolctl import ThreadpoolController

from acctsne.runtime.memory import threads_that_fit

# More than any machine has; beyond, threads cost memory and bring nothing.
MAX_THREADS = 4096


def available_cores() -> int:
    """Count the cores that affinity mask, cgroup quota and OMP_NUM_THREADS leave to us."""
    # joblib reads the affinity mask and the cgroup's CPU quota.
    cores = max(1, int(joblib.cpu_count()))
    # OMP_NUM_THREADS may be a list for nested regions; the first number is the outer one.
    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if limit.isdigit() and int(limit) > 0:
        cores = min(cores, int(limit))
    return cores


def bound_cores() -> int | None:
    """Count the cores that the affinity mask leaves to us; None if it leaves all of the machine."""
    if not hasattr(os, "sched_getaffinity"):  # as on macOS and Windows
        return None
    cores = len(os.sched_getaffinity(0))
    return cores if cores < (os.cpu_count() or 1) else None


def effective_threads(n_jobs: int | None) -> int:
    """Turn scikit-learn's n_jobs into a number of threads.

    None and -1 mean every available core, -2 all but one, and so on; a positive number is taken
    as it is, unless the address space is limited and holds neither so many nor as many as cores.
    """
    if n_jobs is None:
        return available_cores()
    if not isinstance(n_jobs, int | np.integer):
        raise TypeError(f"n_jobs must be an integer or None; got {n_jobs!r}")
    if n_jobs == 0:
        raise ValueError("n_jobs == 0 has no meaning; use None or -1 for all cores, or a count")
    if n_jobs < 0:
        return max(1, available_cores() + 1 + n_jobs)
    if n_jobs > MAX_THREADS:
        raise ValueError(
            f"n_jobs is {n_jobs}; at most {MAX_THREADS} threads are started. Use None or -1 for "
            "all cores"
        )
    fit = threads_that_fit()
    return int(n_jobs if fit is None else min(n_jobs, max(fit, available_cores())))


class _Limits:
    """The limits in force of some libraries, of all that have set one.

    The smallest one holds, and what was there before comes back when the last one is lifted, in
    whatever order that happens. A child that is forked meanwhile has none of the threads that would
    lift them: it begins without.
    """

    def __init__(self, user_api: str) -> None:
        self._user_api = user_api
        # May be taken twice: a signal handler that forks can interrupt whoever holds it.
        self._lock = RLock()
        self._wanted: dict[object, int] = {}
        self._before: Any = None

    def add(self, threads: int) -> object:
        """Set a limit; returns what it is to be lifted by."""
        key = object()
        with self._lock:
            self._wanted[key] = threads
            limiter = self._limit()
            if self._before is None:
                self._before = limiter
        return key

    def remove(self, key: object) -> None:
        """Lift a limit, unless a fork has done so."""
        with self._lock:
            if self._wanted.pop(key, None) is None:
                return
            if self._wanted:
                self._limit()
            else:
                self._restore()

    def watch_forks(self) -> None:
        """Have forks wait until limits are as they are noted, and children begin without any."""
        os.register_at_fork(
            before=lambda: self._lock.acquire(),
            after_in_parent=lambda: self._lock.release(),
            after_in_child=self._begin_anew,
        )

    def _begin_anew(self) -> None:
        self._lock = RLock()
        self._wanted = {}
        self._restore()

    def _limit(self) -> Any:
        libraries = _libraries(len(sys.modules), self._user_api)
        with _in_control(libraries):
            return libraries.limit(limits=min(self._wanted.values()))

    def _restore(self) -> None:
        if self._before is not None:
            with _in_control(_libraries(len(sys.modules), self._user_api)):
                self._before.restore_original_limits()
            self._before = None


class _OfThread(local):
    """Limits that OpenMP keeps for every thread by itself."""

    def __init__(self) -> None:
        self.limits = _Limits("openmp")


# BLAS libraries have one limit a process.
_OF_PROCESS = _Limits("blas")
_OF_THREAD = _OfThread()
if hasattr(os, "register_at_fork"):  # Windows does not fork
    _OF_PROCESS.watch_forks()
    os.register_at_fork(after_in_child=lambda: _OF_THREAD.limits._begin_anew())


@contextmanager
def limited_libraries(threads: int) -> Iterator[None]:
    """Hold BLAS and OpenMP libraries to the same number of threads as our own stages."""
    # OpenMP last to be restored: a BLAS library that is built on it has its limit there, too.
    of_thread = _OF_THREAD.limits
    limits = [(each, each.add(threads)) for each in (of_thread, _OF_PROCESS)]
    try:
        yield
    finally:
        for each, limit in reversed(limits):
            each.remove(limit)


@contextmanager
def _in_control(libraries: ThreadpoolController) -> Iterator[None]:
    """Have a limit take effect whichever thread sets it.

    threadpoolctl 3.8 and later do nothing, without a word, in another thread than the one that was
    first to set a limit of OpenBLAS, until that one has ended.
    """
    _release_control(libraries)
    try:
        yield
    finally:
        _release_control(libraries)


def _release_control(libraries: ThreadpoolController) -> None:
    for library in libraries.lib_controllers:
        release = getattr(library, "clear_controlling_thread", None)
        if release is not None:
            release(force=True)


@lru_cache(maxsize=2)
def _libraries(_modules: int, user_api: str) -> ThreadpoolController:
    """Find the libraries, which takes 2 ms, and again when a module may have loaded another."""
    return ThreadpoolController().select(user_api=user_api)
