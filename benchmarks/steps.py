"""Time every step of t-SNE: perplexity search (BSP), tree building, summarisation, forces.

The neighbours are searched once and the native steps driven directly, so that the same late layout,
in which iterations cost most, serves every thread count, precision and method. Fits through the
estimator would search the neighbours and run the early iterations again for each.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from acctsne import _core
from acctsne.affinities.forms import Matrix
from acctsne.forces.repulsion import RepulsionOptions
from acctsne.neighbors.euclidean import exact_neighbors
from acctsne.neighbors.records import Neighbors, SearchSettings
from acctsne.optimize.descent import Descent
from acctsne.optimize.optimizer import Optimizer
from acctsne.optimize.schedule import MAX_STEP, Phase, Ramp, Schedule
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
    some_of,
    table,
    write_results,
)

METHODS = ("barnes_hut", "fft", "auto")
DTYPES = ("float32", "float64")
WARM_UP = 5  # iterations in which buffers are made and pages touched
BSP_REPEATS = 3

# The paper's steps of an iteration, then ours.
STEPS = {
    "tree_building": "tree building",
    "summarization": "summarisation",
    "attractive": "attractive",
    "repulsive": "repulsive",
    "update": "update",
    "relabel": "relabelling",
    "total": "total, one iteration",
}


def find_neighbors(X: npt.NDArray[np.float32], perplexity: float, threads: int) -> Neighbors:
    k = min(len(X) - 1, int(3 * perplexity + 1))
    return exact_neighbors(X, SearchSettings(k, dtype=np.dtype(np.float64), threads=threads))


def make_affinities(
    neighbors: Neighbors, perplexity: float, dtype: str, threads: int, repeats: int = 1
) -> tuple[Matrix, float]:
    """Compute P in the given precision; returns also the seconds of the perplexity search."""
    squared = neighbors.squared_distances.astype(dtype)
    seconds = []
    for _ in range(repeats):
        start = perf_counter()
        conditional, *_ = _core.search_perplexity(squared, perplexity, threads)
        seconds.append(perf_counter() - start)
    indices = neighbors.indices.copy()
    _core.sort_rows(indices, conditional, len(indices), threads)
    return Matrix(*_core.symmetrize(indices, conditional, False, threads)), median(seconds)


def make_optimizer(P: Matrix, layout: npt.NDArray[Any], method: str, threads: int) -> Optimizer:
    start = np.ascontiguousarray(layout, dtype=P.values.dtype)
    return Optimizer(P, start, RepulsionOptions(method), threads)


def run(optimizer: Optimizer, iterations: int) -> None:
    """Run iterations as the default schedule does after early exaggeration."""
    phase = Phase(
        name="timed",
        end=optimizer.n_iter + iterations,
        exaggeration=Ramp.constant(1.0),
        learning_rate=Ramp.constant(len(optimizer.positions)),
        momentum=None,
        max_step=MAX_STEP,
    )
    optimizer.run(phase)


def late_layout(
    P: Matrix, initial: npt.NDArray[Any], iterations: int, threads: int
) -> npt.NDArray[Any]:
    """Run t-SNE to a layout as it is late in a fit."""
    optimizer = make_optimizer(P, initial, "auto", threads)
    Descent(optimizer).run(Schedule(max_iter=iterations).phases(len(initial)))
    return optimizer.positions


def time_iterations(
    P: Matrix, layout: npt.NDArray[Any], method: str, iterations: int, threads: int
) -> dict[str, Any]:
    """Return milliseconds per iteration by step, from the layout on, and the methods used."""
    optimizer = make_optimizer(P, layout, method, threads)
    run(optimizer, WARM_UP)
    before = optimizer.timings
    start = perf_counter()
    run(optimizer, iterations)
    total = perf_counter() - start
    after = optimizer.timings
    by_step = {step: after[step] - before[step] for step in STEPS if step != "total"}
    return {
        "milliseconds": {
            step: 1e3 * seconds / iterations
            for step, seconds in {**by_step, "total": total}.items()
        },
        "iterations_by_method": {
            name.removeprefix("iterations_"): int(n - before.get(name, 0))
            for name, n in after.items()
            if name.startswith("iterations_")
        },
    }


def main() -> int:
    args = parse_arguments()
    dataset = load_or_exit(args)
    folder = output_folder(args, "steps", dataset)
    thread_counts = sorted({1, args.threads})

    print(f"neighbours of {len(dataset.X)} points", file=sys.stderr)
    neighbors = find_neighbors(dataset.X, args.perplexity, args.threads)
    layout = read_layout(args.layout, len(dataset.X)) if args.layout else None
    if layout is None:
        print(f"a layout after {args.layout_iterations} iterations", file=sys.stderr)
        P, _ = make_affinities(neighbors, args.perplexity, "float32", args.threads)
        initial = pca_layout(dataset.X, args.seed)
        layout = late_layout(P, initial, args.layout_iterations, args.threads)
        np.save(folder / "layout.npy", layout)

    runs = [(dtype, threads) for dtype in args.dtypes for threads in thread_counts]
    results = []
    with Disturbance() as others, tqdm(total=len(runs) * len(args.methods), unit="run") as bar:
        for dtype, threads in runs:
            P, bsp = make_affinities(neighbors, args.perplexity, dtype, threads, BSP_REPEATS)
            for method in args.methods:
                bar.set_postfix_str(f"{method}, {dtype}, {threads} threads")
                timed = time_iterations(P, layout, method, args.iterations, threads)
                timed["milliseconds"]["bsp"] = 1e3 * bsp
                results.append(
                    {
                        "method": method,
                        "dtype": dtype,
                        "threads": threads,
                        **timed,
                    }
                )
                bar.update()

    settings = {
        "threads": args.threads,
        "iterations": args.iterations,
        "layout": "given" if args.layout else f"after {args.layout_iterations} iterations",
        "perplexity": args.perplexity,
        "seed": args.seed,
    }
    tables = markdown(results, thread_counts) + "\n\n" + disturbance_note([others.cores])
    found = {"results": results, "disturbance_cores": others.cores}
    write_results(folder, "steps", dataset, settings, found, tables)
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = make_parser(__doc__.partition("\n")[0], "digits")
    parser.add_argument("--iterations", type=positive, default=250, help="iterations to time")
    parser.add_argument(
        "--layout", type=Path, help="late layout to start from, .npy; otherwise one is made first"
    )
    parser.add_argument(
        "--layout-iterations", type=positive, default=1000, help="iterations of a layout made first"
    )
    parser.add_argument(
        "--methods", type=some_of(METHODS), default="barnes_hut,fft", help=", ".join(METHODS)
    )
    parser.add_argument(
        "--dtypes", type=some_of(DTYPES), default="float32,float64", help=", ".join(DTYPES)
    )
    return parser.parse_args()


def read_layout(path: Path, points: int) -> npt.NDArray[Any]:
    try:
        layout = np.load(path)
    except (OSError, ValueError) as error:
        sys.exit(f"error: cannot read {path}: {error}")
    if layout.shape != (points, 2):
        sys.exit(f"error: {path} has shape {layout.shape}, not {(points, 2)}")
    return np.ascontiguousarray(layout)


def markdown(results: Sequence[Mapping[str, Any]], thread_counts: Sequence[int]) -> str:
    sections = []
    for method, dtype in dict.fromkeys((r["method"], r["dtype"]) for r in results):
        chosen = [r for r in results if (r["method"], r["dtype"]) == (method, dtype)]
        header = ["step"] + [f"{n} thread{'s' * (n > 1)}, ms" for n in thread_counts]
        if len(chosen) > 1:
            header.append("speedup")
        rows = []
        for step, title in {"bsp": "BSP, once", **STEPS}.items():
            times = [r["milliseconds"][step] for r in chosen]
            if not any(times):
                continue  # a step that this method does not have
            row = [title, *(number(time, ".3f") for time in times)]
            if len(chosen) > 1:
                row.append(number(times[0] / times[-1] if times[-1] else None, ".2f"))
            rows.append(row)
        used = ", ".join(f"{n} {name}" for name, n in chosen[-1]["iterations_by_method"].items())
        sections.append(f"## {method}, {dtype}\n\n{table(header, rows)}\n\nIterations: {used}.")
    return "\n\n".join(sections)


if __name__ == "__main__":
    sys.exit(main())
