"""How many threads a call may use."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import joblib
from threadpoolctl import ThreadpoolController


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
    return int(n_jobs)


@contextmanager
def limited_libraries(threads: int) -> Iterator[None]:
    """Hold BLAS and OpenMP libraries to the same number of threads as our own stages."""
    with _libraries(len(sys.modules)).limit(limits=threads):
        yield


@lru_cache(maxsize=1)
def _libraries(_modules: int) -> ThreadpoolController:
    """Find the libraries, which takes 2 ms, and again when a module may have loaded another."""
    return ThreadpoolController()
