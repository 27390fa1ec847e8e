"""How many threads a call may use."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController

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


def effective_threads(n_jobs: int | None) -> int:
    """Turn scikit-learn's n_jobs into a number of threads.

    None and -1 mean every available core, -2 all but one, and so on; a positive number is taken
    as it is.
    """
    if n_jobs is None:
        return available_cores()
    if n_jobs == 0:
        raise ValueError("n_jobs == 0 has no meaning; use None or -1 for all cores, or a count")
    if n_jobs < 0:
        return max(1, available_cores() + 1 + n_jobs)
    if n_jobs > MAX_THREADS:
        raise ValueError(
            f"n_jobs is {n_jobs}; at most {MAX_THREADS} threads are started. Use None or -1 for "
            "all cores"
        )
    return int(n_jobs)


class _Limits:
    """The limits in force, of all threads of this process that have set one.

    The libraries have one limit a process. So the smallest one holds, and what was there before
    comes back when the last one is lifted, in whatever order that happens.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._wanted: list[int] = []
        self._before: Any = None

    def add(self, threads: int) -> None:
        with self._lock:
            self._wanted.append(threads)
            limiter = _libraries(len(sys.modules)).limit(limits=min(self._wanted))
            if len(self._wanted) == 1:
                self._before = limiter

    def remove(self, threads: int) -> None:
        with self._lock:
            self._wanted.remove(threads)
            if self._wanted:
                _libraries(len(sys.modules)).limit(limits=min(self._wanted))
            else:
                self._before.restore_original_limits()


_LIMITS = _Limits()


@contextmanager
def limited_libraries(threads: int) -> Iterator[None]:
    """Hold BLAS and OpenMP libraries to the same number of threads as our own stages."""
    _LIMITS.add(threads)
    try:
        yield
    finally:
        _LIMITS.remove(threads)


@lru_cache(maxsize=1)
def _libraries(_modules: int) -> ThreadpoolController:
    """Find the libraries, which takes 2 ms, and again when a module may have loaded another."""
    return ThreadpoolController()
