"""How the time of a late iteration scales with threads and with the number of points."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from acctsne.affinities.forms import Matrix
from common import (
    Disturbance,
    disturbance_note,
    load_or_exit,
    make_parser,
    median,
    number,
    output_folder,
    pca_layout,
    positive,
    pyplot,
    some_of,
    table,
    write_results,
)
from datasets import Dataset
from steps import (
    METHODS,
    find_neighbors,
    late_layout,
    make_affinities,
    time_iterations,
)

SMALLEST = 10_000  # of the default sizes


def main() -> int:
    args = parse_arguments()
    dataset = load_or_exit(args)
    sizes = args.sizes or default_sizes(len(dataset.X))
    least = int(3 * args.perplexity + 2)
    if sizes[0] < least or sizes[-1] > len(dataset.X):
        sys.exit(f"error: sizes must be between {least} and {len(dataset.X)}, the size of the data")
    folder = output_folder(args, "scaling", dataset)
    thread_counts = list(range(1, args.threads + 1))

    by_size = []
    by_threads = []
    steps = (len(sizes) - 1 + len(thread_counts)) * len(args.methods)
    with Disturbance() as others, tqdm(total=steps, unit="run") as bar:
        for size in sizes:
            bar.set_postfix_str(f"layout of {size} points")
            P, layout = make_late(dataset, size, args)
            # All thread counts for all points, the largest one for less.
            for threads in thread_counts if size == sizes[-1] else [args.threads]:
                for method in args.methods:
                    bar.set_postfix_str(f"{size} points, {method}, {threads} threads")
                    result = measure(P, layout, method, threads, args)
                    if threads == args.threads:
                        by_size.append(result)
                    if size == sizes[-1]:
                        by_threads.append(result)
                    bar.update()

    exponents = {
        method: fitted_exponent([r for r in by_size if r["method"] == method])
        for method in args.methods
    }
    results = {
        "by_size": by_size,
        "by_threads": by_threads,
        "exponents": exponents,
        "disturbance_cores": others.cores,
    }
    settings = {
        "threads": args.threads,
        "dtype": args.dtype,
        "iterations": args.iterations,
        "repeats": args.repeats,
        "layout_iterations": args.layout_iterations,
        "perplexity": args.perplexity,
        "seed": args.seed,
    }
    figure = None if args.no_figure else draw(dataset, folder, results)
    tables = markdown(results, args.methods)
    write_results(folder, "scaling", dataset, settings, results, tables, figure)
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = make_parser(__doc__, "synthetic:100000x20")
    parser.add_argument(
        "--sizes",
        type=lambda text: sorted({int(size) for size in text.split(",")}),
        help=f"comma-separated numbers of points; by default from {SMALLEST} to all in steps of "
        "half a power of ten",
    )
    parser.add_argument(
        "--methods", type=some_of(METHODS), default="barnes_hut,fft", help=", ".join(METHODS)
    )
    parser.add_argument(
        "--dtype", choices=("float32", "float64"), default="float32", help="precision"
    )
    parser.add_argument("--iterations", type=positive, default=20, help="iterations to time")
    parser.add_argument("--repeats", type=positive, default=3, help="times to time them")
    parser.add_argument(
        "--layout-iterations", type=positive, default=750, help="iterations of a layout before that"
    )
    parser.add_argument("--no-figure", action="store_true", help="do not draw")
    return parser.parse_args()


def default_sizes(points: int) -> list[int]:
    if points <= SMALLEST:
        return sorted({min(points, max(points // part, 200)) for part in (8, 4, 2, 1)})
    steps = np.arange(4, np.log10(points), 0.5)
    sizes = [round(10**step, -2) for step in steps]
    return sorted({int(size) for size in sizes if size < 0.9 * points} | {points})


def make_late(
    dataset: Dataset, size: int, args: argparse.Namespace
) -> tuple[Matrix, npt.NDArray[Any]]:
    """Return P and a late layout of a random sample of the data."""
    X = dataset.X
    if size < len(X):
        rows = np.random.default_rng(args.seed).choice(len(X), size=size, replace=False)
        X = np.ascontiguousarray(X[np.sort(rows)])
    neighbors = find_neighbors(X, args.perplexity, args.threads)
    P, _ = make_affinities(neighbors, args.perplexity, args.dtype, args.threads)
    return P, late_layout(P, pca_layout(X, args.seed), args.layout_iterations, args.threads)


def measure(
    P: Matrix, layout: npt.NDArray[Any], method: str, threads: int, args: argparse.Namespace
) -> dict[str, Any]:
    runs = [
        time_iterations(P, layout, method, args.iterations, threads) for _ in range(args.repeats)
    ]
    steps = runs[0]["milliseconds"]
    return {
        "points": len(layout),
        "method": method,
        "threads": threads,
        "milliseconds": {
            step: median([run["milliseconds"][step] for run in runs]) for step in steps
        },
        "iterations_by_method": runs[-1]["iterations_by_method"],
    }


def fitted_exponent(results: Sequence[dict[str, Any]]) -> float | None:
    """Fit time = c N^exponent by least squares in logarithms."""
    if len(results) < 2:
        return None
    points = np.log([r["points"] for r in results])
    times = np.log([r["milliseconds"]["total"] for r in results])
    return float(np.polyfit(points, times, 1)[0])


def markdown(results: dict[str, Any], methods: Sequence[str]) -> str:
    by_size, by_threads = results["by_size"], results["by_threads"]
    sizes = list(dict.fromkeys(r["points"] for r in by_size))
    header = ["points", *(f"{method}, ms" for method in methods)]
    rows = [
        [str(size), *(number(total(by_size, method, points=size), ".3f") for method in methods)]
        for size in sizes
    ]
    rows.append(
        ["fitted exponent", *(number(results["exponents"][method], ".2f") for method in methods)]
    )
    parts = [f"## One iteration by number of points\n\n{table(header, rows)}"]

    header = ["threads"]
    for method in methods:
        header += [f"{method}, ms", "speedup", "efficiency"]
    rows = []
    for threads in dict.fromkeys(r["threads"] for r in by_threads):
        row = [str(threads)]
        for method in methods:
            time = total(by_threads, method, threads=threads)
            speedup = total(by_threads, method, threads=1) / time
            row += [number(time, ".3f"), number(speedup, ".2f"), number(speedup / threads, ".0%")]
        rows.append(row)
    parts.append(f"## One iteration of {sizes[-1]} points by threads\n\n{table(header, rows)}")
    for method in methods:
        others = {
            name
            for r in by_size + by_threads
            if r["method"] == method
            for name in r["iterations_by_method"]
        } - {method}
        if others and method != "auto":
            parts.append(f"Some iterations asked of {method} were done by {', '.join(others)}.")
    parts.append(disturbance_note([results["disturbance_cores"]]))
    return "\n\n".join(parts)


def total(results: Sequence[dict[str, Any]], method: str, **where: int) -> float:
    """Milliseconds of the one result of a method with the given points or threads."""
    chosen = next(
        r for r in results if r["method"] == method and all(r[k] == v for k, v in where.items())
    )
    return float(chosen["milliseconds"]["total"])


def draw(dataset: Dataset, folder: Path, results: dict[str, Any]) -> str | None:
    plt = pyplot()
    if plt is None:
        return None
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), dpi=150)
    for method, exponent in results["exponents"].items():
        for axes, key, kind in ((left, "points", "by_size"), (right, "threads", "by_threads")):
            chosen = [r for r in results[kind] if r["method"] == method]
            fit = f", N^{exponent:.2f}" if exponent is not None and axes is left else ""
            x = [r[key] for r in chosen]
            axes.loglog(
                x, [r["milliseconds"]["total"] for r in chosen], "o-", label=f"{method}{fit}"
            )
    left.set_xlabel("points")
    right.set_xlabel("threads")
    counts = sorted({r["threads"] for r in results["by_threads"]})
    right.set_xticks(counts, labels=[str(count) for count in counts])
    right.xaxis.set_minor_locator(plt.NullLocator())
    for axes in (left, right):
        axes.set_ylabel("ms per iteration")
        axes.grid(True, which="both", alpha=0.3)
        axes.legend(fontsize=8, frameon=False)
    figure.suptitle(dataset.title, fontsize=10)
    figure.tight_layout()
    figure.savefig(folder / "scaling.png")
    plt.close(figure)
    return "scaling.png"


if __name__ == "__main__":
    sys.exit(main())
