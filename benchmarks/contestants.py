"""The packages that are compared, each behind one function of the same form."""

import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from common import memory_peak, start_memory_peak

Floats = npt.NDArray[Any]

EARLY_ITERATIONS = 250  # of early exaggeration, in all packages
# From so many points on, openTSNE takes the grid by default, below the tree.
OPENTSNE_GRID_POINTS = 10_000


class Outcome(NamedTuple):
    embedding: Floats
    seconds: float
    knn_seconds: float | None  # the part of `seconds` spent in finding neighbours
    reported_kl: float | None
    iterations: int | None = None  # where the package tells; less than asked if it stopped early
    timings: dict[str, float] | None = None  # seconds by step and more, where the package tells


class Task(NamedTuple):
    X: Floats  # of the precision in which the package shall compute, if it lets us choose
    init: Floats
    threads: int
    seed: int
    max_iter: int
    perplexity: float


@dataclass(frozen=True)
class Contestant:
    title: str
    module: str  # whose absence means that the package is not installed
    run: Callable[[Task], Outcome]
    # The error of its repulsive forces on an embedding, judged at a number of points with a number
    # of threads; None if the package does not let us at them.
    force_error: Callable[[Floats, int, int], float] | None = None


@contextmanager
def timed_calls(*functions: tuple[type, str]) -> Iterator[list[float]]:
    """Collect the seconds of every call of some methods.

    Time measured inside the very fit is what a fit without it would have saved; a second search
    outside would only estimate that.
    """
    seconds: list[float] = []

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            start = perf_counter()
            result = method(*args, **kwargs)
            seconds.append(perf_counter() - start)
            return result

        return call

    with ExitStack() as stack:
        for owner, name in functions:
            stack.enter_context(patch.object(owner, name, timed(getattr(owner, name))))
        yield seconds


# acctsne


def _acctsne(task: Task, **options: Any) -> Outcome:
    from acctsne import TSNE

    model = TSNE(
        perplexity=task.perplexity,
        init=task.init,
        max_iter=task.max_iter,
        n_jobs=task.threads,
        random_state=task.seed,
        **options,
    )
    start = perf_counter()
    model.fit(task.X)
    seconds = perf_counter() - start
    return Outcome(
        model.embedding_,
        seconds,
        model.timings_["knn"],
        model.kl_divergence_,
        model.n_iter_ + 1,
        dict(model.timings_),
    )


def _acctsne_force_error(
    Y: Floats, n_samples: int, threads: int, method: str = "auto", dtype: Any = np.float32
) -> float:
    from acctsne import quality

    return quality.force_error(Y, method, dtype=dtype, n_samples=n_samples, n_jobs=threads)


# scikit-learn and scikit-learn-intelex


def _sklearn_model(kind: Any, task: Task) -> Any:
    return kind(
        perplexity=task.perplexity,
        # scikit-learn-intelex writes into the array it is given.
        init=task.init.copy(),
        max_iter=task.max_iter,
        n_jobs=task.threads,
        random_state=task.seed,
        verbose=0,  # scikit-learn-intelex hands over to scikit-learn if it is to be verbose
    )


def _sklearn(task: Task) -> Outcome:
    from sklearn.manifold import TSNE
    from sklearn.neighbors import NearestNeighbors

    model = _sklearn_model(TSNE, task)
    with timed_calls((NearestNeighbors, "fit"), (NearestNeighbors, "kneighbors_graph")) as knn:
        start = perf_counter()
        model.fit(task.X)
        seconds = perf_counter() - start
    return Outcome(model.embedding_, seconds, sum(knn), model.kl_divergence_, model.n_iter_ + 1)


def _sklearnex(task: Task) -> Outcome:
    TSNE = importlib.import_module("sklearnex.manifold").TSNE
    daal4py = importlib.import_module("daal4py")
    # The class that its TSNE uses, which is not that of sklearnex.neighbors.
    search = importlib.import_module("daal4py.sklearn.neighbors").NearestNeighbors

    daal4py.daalinit(task.threads)
    model = _sklearn_model(TSNE, task)
    with (
        timed_calls((search, "fit"), (search, "kneighbors_graph")) as knn,
        timed_calls((TSNE, "_daal_tsne")) as descent,
    ):
        start = perf_counter()
        # Not fit_transform, in which n_jobs has no effect.
        model.fit(task.X)
        seconds = perf_counter() - start
    if not descent:
        raise RuntimeError("scikit-learn-intelex handed over to scikit-learn")
    return Outcome(
        model.embedding_, seconds, sum(knn), float(model.kl_divergence_), model.n_iter_ + 1
    )


def _sklearn_force_error(Y: Floats, n_samples: int, threads: int) -> float:
    from sklearn.manifold._barnes_hut_tsne import gradient

    n, dims = Y.shape
    Y32 = np.ascontiguousarray(Y, dtype=np.float32)
    forces = np.zeros((n, dims), dtype=np.float32)
    # The function gives forces divided by its sum Z, and Z only inside a KL divergence. With a P of
    # the single pair (0, 1) that divergence is log(Z / q_01), and all points but 0 feel repulsion
    # only.
    offsets = np.ones(n + 1, dtype=np.int64)
    offsets[0] = 0
    divergence = gradient(
        np.ones(1, dtype=np.float32),
        Y32,
        np.ones(1, dtype=np.int64),
        offsets,
        forces,
        0.5,  # the default angle
        dims,
        0,  # not verbose
        dof=1,
        compute_error=True,
        num_threads=threads,
    )
    q = 1 / (1 + np.square(Y32[0].astype(np.float64) - Y32[1]).sum())
    z = q * np.exp(divergence)
    return relative_error(Y32, -z * forces.astype(np.float64), n_samples)


# openTSNE


def _opentsne(task: Task) -> Outcome:
    openTSNE = importlib.import_module("openTSNE")
    neighbors = importlib.import_module("openTSNE.nearest_neighbors")
    indexes = [(kind, "build") for kind in neighbors.KNNIndex.__subclasses__()]
    model = openTSNE.TSNE(
        perplexity=task.perplexity,
        initialization=task.init.astype(np.float64),  # which its own initial layouts are
        early_exaggeration_iter=EARLY_ITERATIONS,
        n_iter=task.max_iter - EARLY_ITERATIONS,
        n_jobs=task.threads,
        random_state=task.seed,
    )
    with timed_calls(*indexes) as knn:
        start = perf_counter()
        embedding = model.fit(task.X)
        seconds = perf_counter() - start
    return Outcome(
        np.array(embedding), seconds, sum(knn), float(embedding.kl_divergence), task.max_iter
    )


def _opentsne_force_error(Y: Floats, n_samples: int, threads: int) -> float:
    native = importlib.import_module("openTSNE._tsne")
    Y = np.ascontiguousarray(Y, dtype=np.float64)
    forces = np.zeros_like(Y)
    # The settings are its defaults.
    if len(Y) >= OPENTSNE_GRID_POINTS:
        z = native.estimate_negative_gradient_fft_2d(Y, forces, 3, 50, 1, dof=1)
    else:
        tree = importlib.import_module("openTSNE.quad_tree").QuadTree(Y)
        z = native.estimate_negative_gradient_bh(
            tree,
            Y,
            forces,
            theta=0.5,
            dof=1,
            num_threads=threads,
            pairwise_normalization=True,
        )
    return relative_error(Y, -z * forces, n_samples)


# MulticoreTSNE and FIt-SNE


def _multicoretsne(task: Task) -> Outcome:
    model = importlib.import_module("MulticoreTSNE").MulticoreTSNE(
        perplexity=task.perplexity,
        init=task.init.astype(np.float64),
        n_iter=task.max_iter,
        n_jobs=task.threads,
        random_state=task.seed,
    )
    start = perf_counter()
    embedding = model.fit_transform(task.X.astype(np.float64))
    seconds = perf_counter() - start
    return Outcome(embedding, seconds, None, float(model.kl_divergence_))


def _fitsne(task: Task) -> Outcome:
    fast_tsne = importlib.import_module("fast_tsne").fast_tsne
    start = perf_counter()
    embedding, losses = fast_tsne(
        task.X.astype(np.float64),
        perplexity=task.perplexity,
        initialization=task.init.astype(np.float64),
        max_iter=task.max_iter,
        nthreads=task.threads,
        seed=task.seed,
        return_loss=True,
    )
    seconds = perf_counter() - start
    return Outcome(embedding, seconds, None, float(losses[-1]))


# Judging forces


def relative_error(Y: Floats, forces: Floats, n_samples: int) -> float:
    """Compare repulsive forces, not divided by Z, to exact sums, as acctsne.quality does.

    The sample leaves out point 0, which `_sklearn_force_error` needs for itself.
    """
    n = len(Y)
    Y = Y.astype(np.float64)
    rng = np.random.default_rng(0)
    rows = 1 + rng.choice(n - 1, size=min(n_samples, n - 1), replace=False)
    exact = np.empty((len(rows), Y.shape[1]))
    block = max(1, 2_000_000 // n)  # rows at a time, to bound memory
    for start in range(0, len(rows), block):
        some = rows[start : start + block]
        difference = Y[some, None, :] - Y[None, :, :]
        q = 1 / (1 + np.square(difference).sum(axis=2))
        exact[start : start + block] = (np.square(q)[:, :, None] * difference).sum(axis=1)
    error = np.square(forces[rows] - exact).mean() / np.square(exact).mean()
    return float(np.sqrt(error))


def _acctsne_with(title: str, of_forces: dict[str, Any], **more: Any) -> Contestant:
    """Make a contestant of the options that its force error depends on too, and of others."""
    return Contestant(
        title,
        "acctsne",
        partial(_acctsne, **of_forces, **more),
        partial(_acctsne_force_error, **of_forces),
    )


CONTESTANTS: dict[str, Contestant] = {
    "acctsne": _acctsne_with("acctsne", {}),
    "acctsne-float64": _acctsne_with("acctsne, float64", {"dtype": np.float64}),
    "acctsne-bh": _acctsne_with("acctsne, tree only", {"method": "barnes_hut"}),
    "acctsne-paper": _acctsne_with(
        "acctsne, tree only, float64, to the last iteration",
        {"method": "barnes_hut", "dtype": np.float64},
        tol=0,
    ),
    "acctsne-fft": _acctsne_with("acctsne, grid only", {"method": "fft"}),
    "acctsne-schedule": _acctsne_with("acctsne, scikit-learn's schedule", {}, schedule="sklearn"),
    "sklearn": Contestant("scikit-learn", "sklearn.manifold", _sklearn, _sklearn_force_error),
    "sklearnex": Contestant("scikit-learn-intelex", "sklearnex.manifold", _sklearnex),
    "opentsne": Contestant("openTSNE", "openTSNE", _opentsne, _opentsne_force_error),
    "multicoretsne": Contestant("MulticoreTSNE", "MulticoreTSNE", _multicoretsne),
    "fitsne": Contestant("FIt-SNE", "fast_tsne", _fitsne),
}


def run_job(job: dict[str, Any]) -> dict[str, Any]:
    """Run the job's contestant in a process of its own, save its embedding, and report figures."""
    contestant = CONTESTANTS[job["contestant"]]
    try:
        importlib.import_module(contestant.module)
    except ImportError as error:
        return {"status": "not installed", "reason": str(error)}
    task = Task(
        X=np.load(job["X"]).astype(job["dtype"], copy=False),
        init=np.load(job["init"]).astype(job["dtype"], copy=False),
        threads=job["threads"],
        seed=job["seed"],
        max_iter=job["max_iter"],
        perplexity=job["perplexity"],
    )
    before = start_memory_peak()  # with the package and the data already in memory
    outcome = contestant.run(task)
    peak = memory_peak() - before
    np.save(job["embedding"], np.asarray(outcome.embedding))
    return {
        "status": "ok",
        "seconds": outcome.seconds,
        "knn_seconds": outcome.knn_seconds,
        "reported_kl": outcome.reported_kl,
        "iterations": outcome.iterations,
        "peak_bytes": max(0, peak),
        "timings": outcome.timings,
    }
