"""Compare packages on the same data from the same initial layout: time, quality, memory.

Every contestant runs once per round, in a fresh process on the same cores with the same number of
threads. The referee then judges the embeddings of the first round with exact sums, which takes its
time on large data: that of the exact KL divergence grows with the square of N.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from tqdm import tqdm

from common import (
    Disturbance,
    disturbance_note,
    load_or_exit,
    make_parser,
    median,
    number,
    output_folder,
    pca_layout,
    pinned,
    positive,
    pyplot,
    run_isolated,
    some_of,
    table,
    usable_cores,
    write_results,
)
from contestants import CONTESTANTS, EARLY_ITERATIONS
from datasets import Dataset
from referee import FORCE_SAMPLE, NEIGHBORS, exact_affinities
from referee import judge as judge_map

MAP_POINTS = 20_000  # at most so many in a thumbnail


def main() -> int:
    args = parse_arguments()
    dataset = load_or_exit(args)
    folder = output_folder(args, "compare", dataset)
    rounds = run_rounds(args, dataset, folder)

    names = args.contestants
    reports = {
        name: [report for report in rounds if report["contestant"] == name] for name in names
    }
    finished = [name for name in names if all(r["status"] == "ok" for r in reports[name])]
    failed = [name for name in names if any(r["status"] == "failed" for r in reports[name])]
    for name in names:
        if name not in finished:
            unlucky = next(r for r in reports[name] if r["status"] != "ok")
            print(f"{name}: {unlucky['status']}: {unlucky['reason']}", file=sys.stderr)

    rows = [summary(name, reports[name]) for name in finished]
    if rows:
        judge(args, dataset, folder, rows)
        add_ratios(rows)
    figure = draw(dataset, folder, rows) if rows and not args.no_figure else None
    settings = {
        "max_iter": args.max_iter,
        "perplexity": args.perplexity,
        "threads": args.threads,
        "cores": args.cores,
        "rounds": args.repeats,
        "seed": args.seed,
        "force_sample": args.force_sample,
    }
    absent = [[CONTESTANTS[n].title, reports[n][-1]["status"]] for n in names if n not in finished]
    write_results(
        folder,
        "compare",
        dataset,
        settings,
        {"results": rows, "rounds": rounds},
        markdown(rows, absent, [r["disturbance_cores"] for r in rounds]),
        figure,
    )
    return 1 if failed else 0


def parse_arguments() -> argparse.Namespace:
    parser = make_parser(__doc__.partition("\n")[0], "digits")
    parser.add_argument(
        "--contestants",
        type=some_of(CONTESTANTS),
        default="acctsne,sklearn,sklearnex,opentsne",
        help=f"comma-separated, of {', '.join(CONTESTANTS)}; the first is what others are "
        "compared to, unless acctsne is among them",
    )
    parser.add_argument("--repeats", type=positive, default=3, help="rounds")
    parser.add_argument(
        "--max-iter",
        type=positive,
        default=1000,
        help=f"iterations, {EARLY_ITERATIONS} of early exaggeration included",
    )
    parser.add_argument(
        "--cores",
        type=lambda text: [int(core) for core in text.split(",")],
        help="comma-separated numbers of the cores to run on; by default the first usable ones, as "
        "many as threads",
    )
    parser.add_argument(
        "--force-sample",
        type=positive,
        default=FORCE_SAMPLE,
        help="points at which forces are compared",
    )
    parser.add_argument("--timeout", type=float, help="seconds after which a run is given up")
    parser.add_argument("--no-figure", action="store_true", help="do not draw")
    args = parser.parse_args()
    if args.max_iter <= EARLY_ITERATIONS:
        parser.error(f"--max-iter must be more than {EARLY_ITERATIONS}")
    usable = usable_cores()
    if args.cores is None:
        args.cores = usable[: args.threads]
    if not set(args.cores) <= set(usable):
        parser.error(f"--cores: only {','.join(map(str, usable))} can be used")
    if len(args.cores) < args.threads:
        parser.error(f"{args.threads} threads need as many cores, not {len(args.cores)}")
    return args


def run_rounds(args: argparse.Namespace, dataset: Dataset, folder: Path) -> list[dict[str, Any]]:
    embeddings = folder / "embeddings"
    embeddings.mkdir(exist_ok=True)
    for name in CONTESTANTS:  # nothing of an earlier run is to be taken for one of this
        for old in embeddings.glob(f"{name}-[0-9]*.npy"):
            old.unlink()
    names = args.contestants
    out: set[str] = set()  # a contestant that failed once is not asked again
    rounds = []
    with (
        TemporaryDirectory(dir=folder) as work,
        pinned(args.cores),
        tqdm(total=args.repeats * len(names), unit="run") as bar,
    ):
        np.save(f"{work}/X.npy", dataset.X)
        np.save(f"{work}/init.npy", pca_layout(dataset.X, args.seed))
        for number_of_round in range(args.repeats):
            # Each round begins with another contestant, so that none always follows the same one.
            first = number_of_round % len(names)
            for name in names[first:] + names[:first]:
                bar.set_postfix_str(name)
                if name not in out:
                    job = {
                        "module": "contestants",
                        "dtype": "float32",
                        "contestant": name,
                        "X": f"{work}/X.npy",
                        "init": f"{work}/init.npy",
                        "embedding": str(embedding_file(folder, name, number_of_round)),
                        "threads": args.threads,
                        "seed": args.seed,
                        "max_iter": args.max_iter,
                        "perplexity": args.perplexity,
                    }
                    with Disturbance() as others:
                        report = run_isolated(job, Path(work), args.threads, args.timeout)
                    report["disturbance_cores"] = others.cores
                    rounds.append({"round": number_of_round, "contestant": name, **report})
                    if report["status"] != "ok":
                        out.add(name)
                bar.update()
    return rounds


def embedding_file(folder: Path, name: str, number_of_round: int) -> Path:
    return folder / "embeddings" / f"{name}-{number_of_round}.npy"


def summary(name: str, reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Reduce the rounds of one contestant to medians."""
    searched = all(report["knn_seconds"] is not None for report in reports)
    return {
        "contestant": name,
        "title": CONTESTANTS[name].title,
        "seconds": median([r["seconds"] for r in reports]),
        "knn_seconds": median([r["knn_seconds"] for r in reports]) if searched else None,
        "seconds_less_knn": (
            median([r["seconds"] - r["knn_seconds"] for r in reports]) if searched else None
        ),
        "reported_kl": reports[0]["reported_kl"],
        "iterations": reports[0]["iterations"],
        "peak_bytes": median([r["peak_bytes"] for r in reports]),
    }


def judge(
    args: argparse.Namespace, dataset: Dataset, folder: Path, rows: list[dict[str, Any]]
) -> None:
    """Add the referee's figures of the first round's embeddings."""
    P = exact_affinities(dataset.X, args.perplexity, folder)
    for row in tqdm(rows, desc="referee", unit="map"):
        name = row["contestant"]
        Y = np.load(embedding_file(folder, name, 0))
        row |= judge_map(name, dataset.X, dataset.labels, Y, P, args.threads, args.force_sample)


def add_ratios(rows: list[dict[str, Any]]) -> None:
    base = next((row for row in rows if row["contestant"] == "acctsne"), rows[0])
    for row in rows:
        row["ratio"] = row["seconds"] / base["seconds"]
        known = row["seconds_less_knn"] is not None and base["seconds_less_knn"]
        row["ratio_less_knn"] = (
            row["seconds_less_knn"] / base["seconds_less_knn"] if known else None
        )


def markdown(
    rows: list[dict[str, Any]], absent: list[list[str]], disturbance: list[float | None]
) -> str:
    header = [
        "contestant",
        "seconds",
        "ratio",
        "less kNN",
        "ratio",
        "exact KL",
        "reported KL",
        "force error",
        f"{NEIGHBORS}-NN kept",
        "label agreement",
        "peak MB",
    ]
    cells = [
        [
            row["title"],
            number(row["seconds"], ".2f"),
            number(row["ratio"], ".2f"),
            number(row["seconds_less_knn"], ".2f"),
            number(row["ratio_less_knn"], ".2f"),
            number(row["exact_kl"], ".4f"),
            number(row["reported_kl"], ".4f"),
            number(row["force_error"], ".2%"),
            number(row["neighbor_preservation"], ".4f"),
            number(row["label_agreement"], ".4f"),
            number(row["peak_bytes"] / 1e6, ".0f"),
        ]
        for row in rows
    ]
    cells += [[title, status] + ["-"] * (len(header) - 2) for title, status in absent]
    notes = (
        'Seconds are medians over the rounds, of fitting only; "less kNN" is without the search '
        "for neighbours inside the fit. The force error is that of each contestant's own repulsive "
        "forces on its own map. Peak memory is over that of the data and the loaded package. "
        + disturbance_note(disturbance)
    )
    return f"{table(header, cells)}\n\n{notes}"


def draw(dataset: Dataset, folder: Path, rows: list[dict[str, Any]]) -> str | None:
    """Draw times as bars and below them the maps of the first round."""
    plt = pyplot()
    if plt is None:
        return None
    figure = plt.figure(figsize=(max(6, 3 * len(rows)), 3.2 + 0.3 * len(rows)), dpi=150)
    grid = figure.add_gridspec(2, len(rows), height_ratios=[0.3 * len(rows) + 0.3, 2.6])
    bars = figure.add_subplot(grid[0, :])
    titles = [row["title"] for row in rows]
    knn = [row["knn_seconds"] or 0.0 for row in rows]
    rest = [row["seconds"] - part for row, part in zip(rows, knn, strict=True)]
    bars.barh(titles, knn, color="#b0b0b0", label="neighbours, where known")
    bars.barh(titles, rest, left=knn, color="#3b6fb6", label="all else")
    bars.invert_yaxis()
    bars.set_xlabel("seconds (median)")
    bars.set_title(dataset.title, fontsize=10)
    bars.legend(fontsize=7, frameon=False)
    shown = np.random.default_rng(0).permutation(len(dataset.X))[:MAP_POINTS]
    colors = None if dataset.labels is None else dataset.labels[shown]
    size = np.clip(6000 / len(shown), 0.3, 4)
    for column, row in enumerate(rows):
        Y = np.load(embedding_file(folder, row["contestant"], 0))[shown]
        axes = figure.add_subplot(grid[1, column])
        axes.scatter(
            Y[:, 0], Y[:, 1], s=size, c=colors, cmap="tab20", linewidths=0, rasterized=True
        )
        axes.set_title(f"{row['title']}\nexact KL {row['exact_kl']:.4f}", fontsize=8)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_xticks([])
        axes.set_yticks([])
    figure.tight_layout()
    figure.savefig(folder / "compare.png")
    plt.close(figure)
    return "compare.png"


if __name__ == "__main__":
    sys.exit(main())
