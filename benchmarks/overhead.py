"""What a fit of little data takes beyond its iterations, part by part.

    python benchmarks/overhead.py --sizes 100,500,1797

Milliseconds, medians of fits of the handwritten digits in one process: the whole call, its
iterations, the steps before them, the check of parameters and data, the log and progress bars, what
the descent takes around its iterations, and what is left. Every native call starts threads of its
own, most of them within these parts: so their number, and what starting and ending them takes, are
told beside the sum. Then, in fresh processes, what comes before: imports, and how much longer the
first fit is, with the imports that it makes itself.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.datasets import load_digits

from acctsne import TSNE, _core, estimator, stages
from acctsne.optimize import stopping
from acctsne.optimize.descent import Descent
from acctsne.runtime.threads import available_cores
from common import number, table

BEFORE = ("knn", "bsp", "symmetrize", "init")
ITERATIONS = (
    "tree_building",
    "summarization",
    "attractive",
    "repulsive",
    "update",
    "kl_divergence",
    "relabel",
)
HEADER = (
    *("points", "fit", "iterations", "beyond", *BEFORE),
    *("validation", "log, bars", "descent", "rest", "threads", "their start"),
)
STARTS = 200  # of a team of threads, to learn what one takes

FRESH = """
import builtins
from time import perf_counter
marks = [perf_counter()]
import numpy
marks.append(perf_counter())
import acctsne
marks.append(perf_counter())
from acctsne import TSNE
marks.append(perf_counter())
X = numpy.random.default_rng(0).normal(size=(100, 10))
load, depth, loading = builtins.__import__, 0, 0.0
def timed(*arguments, **options):
    global depth, loading
    depth += 1
    begin = perf_counter()
    try:
        return load(*arguments, **options)
    finally:
        depth -= 1
        if not depth:
            loading += perf_counter() - begin
builtins.__import__ = timed
for _ in range(2):
    TSNE().fit_transform(X)
    marks.append(perf_counter())
    builtins.__import__ = load
print(*[1e3 * (after - before) for before, after in zip(marks, marks[1:])], 1e3 * loading)
"""


class Watched(TSNE):
    """Tells what its checks, the log, bars and the descent take, beside what a fit tells."""

    def fit_transform(self, X: Any) -> Any:
        """Fit, and keep the seconds of parts in `parts_`."""
        self.parts_ = dict.fromkeys(("validation", "log", "descent"), 0.0)
        with ExitStack() as watched:
            for module in (estimator, stages):
                for name in ("busy", "progress_bar"):
                    if hasattr(module, name):
                        bar = self._timed_context(getattr(module, name))
                        watched.enter_context(patch.object(module, name, bar))
            for module in (estimator, stages, stopping):
                log = _Log(self, module.logger)
                watched.enter_context(patch.object(module, "logger", log))
            run = self.timed("descent", Descent.run)
            watched.enter_context(patch.object(Descent, "run", run))
            return super().fit_transform(X)

    def _validate_params(self) -> None:
        self.timed("validation", super()._validate_params)()

    def _problem(self, *arguments: Any) -> Any:
        return self.timed("validation", super()._problem)(*arguments)

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that adds its seconds to a part."""

        def call(*arguments: Any, **options: Any) -> Any:
            begin = perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                self.parts_[part] += perf_counter() - begin

        return call

    def _timed_context(self, make: Callable[..., Any]) -> Callable[..., Any]:
        """Return a context whose way in and out adds to the log's seconds."""

        @contextmanager
        def context(*arguments: Any) -> Iterator[Any]:
            around = make(*arguments)
            value = self.timed("log", around.__enter__)()
            try:
                yield value
            finally:
                self.timed("log", around.__exit__)(None, None, None)

        return context


class _Log:
    """A logger whose lines are timed."""

    def __init__(self, owner: Watched, logger: Any) -> None:
        self.info = owner.timed("log", logger.info)


def fit(n_samples: int, threads: int) -> tuple[list[float], int | None]:
    """Return the milliseconds of one fit, part by part, and how many threads were started."""
    X = load_digits().data[:n_samples]
    tsne = Watched(perplexity=min(30, n_samples // 4), n_jobs=threads, random_state=0)
    started = clones()
    begin = perf_counter()
    tsne.fit_transform(X)
    seconds = perf_counter() - begin
    ended = clones()
    iterations = sum(tsne.timings_.get(name, 0.0) for name in ITERATIONS)
    known = [tsne.timings_[name] for name in BEFORE]
    parts = tsne.parts_
    known += [parts["validation"], parts["log"], parts["descent"] - iterations]
    rest = seconds - iterations - sum(known)
    found = [1000 * part for part in (seconds, iterations, seconds - iterations, *known, rest)]
    return found, None if started is None or ended is None else ended - started


def clones() -> int | None:
    """Count the threads and processes that the system has started so far, whoever asked for them.

    None where the system does not tell.
    """
    try:
        lines = Path("/proc/stat").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("processes")), None)


def start_milliseconds(threads: int) -> float:
    """Return what starting and ending one more thread for a native call takes."""

    X = np.zeros((1, 1), dtype=np.float32)

    def team(size: int) -> float:
        begin = perf_counter()
        _core.all_finite(X, size)
        return perf_counter() - begin

    costs = [median(team(size) for _ in range(STARTS)) for size in (1, threads)]
    return 1000 * (costs[1] - costs[0]) / max(threads - 1, 1)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description="What small fits take beyond their iterations.")
    parser.add_argument("--sizes", default="100,500,1797")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--fresh", type=int, default=5, help="fresh processes")
    parser.add_argument("--threads", type=int, default=available_cores())
    options = parser.parse_args()
    start = start_milliseconds(options.threads)
    rows = []
    for n_samples in map(int, options.sizes.split(",")):
        fit(n_samples, options.threads)
        rounds = [fit(n_samples, options.threads) for _ in range(options.rounds)]
        cells = [median(column) for column in zip(*(parts for parts, _ in rounds), strict=True)]
        # Others start processes meanwhile, which count too: the fewest are ours.
        counts = [count for _, count in rounds if count is not None]
        fewest = min(counts, default=None)
        took = None if fewest is None else fewest * start
        line = [str(n_samples), *(f"{cell:.1f}" for cell in cells)]
        rows.append([*line, number(fewest, "d"), number(took, ".2f")])
    print(table(HEADER, rows))
    fresh = [
        list(
            map(
                float,
                subprocess.run(
                    [sys.executable, "-c", FRESH], check=True, capture_output=True, text=True
                ).stdout.split(),
            )
        )
        for _ in range(options.fresh)
    ]
    numpy, package, whole, first, second, loading = (
        median(column) for column in zip(*fresh, strict=True)
    )
    print(
        f"\nA fresh process: import of numpy {numpy:.0f} ms, of acctsne {package:.0f} ms more, of "
        f"TSNE, with scikit-learn's parts, {whole:.0f} ms; the first fit of 100 points "
        f"{first:.0f} ms, {loading:.0f} of them imports, the second {second:.0f} ms."
    )


if __name__ == "__main__":
    main()
