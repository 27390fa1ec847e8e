"""What a fit of little data takes beyond its iterations, part by part.

    python benchmarks/overhead.py --sizes 100,500,1797

Milliseconds, medians of fits of the handwritten digits in one process: the whole call, its
iterations, the steps before them, and what is left, which is validation, threads that start, and
Python. Then, in fresh processes, what comes before: imports, and how much longer the first fit is.
"""

import argparse
import subprocess
import sys
from statistics import median
from time import perf_counter

from sklearn.datasets import load_digits

from acctsne import TSNE
from acctsne.runtime.threads import available_cores
from common import table

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

FRESH = """
from time import perf_counter
marks = [perf_counter()]
import numpy
marks.append(perf_counter())
import acctsne
marks.append(perf_counter())
from acctsne import TSNE
marks.append(perf_counter())
X = numpy.random.default_rng(0).normal(size=(100, 10))
for _ in range(2):
    TSNE().fit_transform(X)
    marks.append(perf_counter())
print(*[1e3 * (after - before) for before, after in zip(marks, marks[1:])])
"""


def fit(n_samples: int, threads: int) -> list[float]:
    """Return the milliseconds of one fit: all, iterations, each step before them, the rest."""
    X = load_digits().data[:n_samples]
    tsne = TSNE(perplexity=min(30, n_samples // 4), n_jobs=threads, random_state=0)
    begin = perf_counter()
    tsne.fit_transform(X)
    seconds = perf_counter() - begin
    iterations = sum(tsne.timings_.get(name, 0.0) for name in ITERATIONS)
    before = [tsne.timings_[name] for name in BEFORE]
    parts = [seconds, iterations, *before, seconds - iterations - sum(before)]
    return [1000 * part for part in parts]


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description="What small fits take beyond their iterations.")
    parser.add_argument("--sizes", default="100,500,1797")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--fresh", type=int, default=5, help="fresh processes")
    parser.add_argument("--threads", type=int, default=available_cores())
    options = parser.parse_args()
    rows = []
    for n_samples in map(int, options.sizes.split(",")):
        fit(n_samples, options.threads)
        rounds = [fit(n_samples, options.threads) for _ in range(options.rounds)]
        whole, iterations, *others = (median(column) for column in zip(*rounds, strict=True))
        cells = [whole, iterations, whole - iterations, *others]
        rows.append([str(n_samples), *(f"{cell:.1f}" for cell in cells)])
    print(table(["points", "fit", "iterations", "beyond", *BEFORE, "rest"], rows))
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
    numpy, package, estimator, first, second = (
        median(column) for column in zip(*fresh, strict=True)
    )
    print(
        f"\nA fresh process: import of numpy {numpy:.0f} ms, of acctsne {package:.0f} ms more, of "
        f"TSNE, with scikit-learn's parts, {estimator:.0f} ms; the first fit of 100 points "
        f"{first:.0f} ms, the second {second:.0f} ms."
    )


if __name__ == "__main__":
    main()
