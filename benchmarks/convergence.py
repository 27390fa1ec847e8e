"""How fast packages bring the KL divergence down: exact values against seconds, same start."""

import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy.typing as npt
from tqdm import tqdm

from acctsne import TSNE, Affinities
from common import (
    Disturbance,
    disturbance_note,
    load_or_exit,
    make_parser,
    median,
    number,
    output_folder,
    pca_layout,
    pyplot,
    some_of,
    table,
    write_results,
)
from contestants import CONTESTANTS, Task
from referee import exact_kl

# Iterations after which fits are ended and their layouts judged.
OURS = (50, 60, 70, 75, 80, 90, 100, 120, 140, 160, 180, 200, 240, 280, 320, 400, 500, 750, 1000)
OTHERS = (250, 400, 1000)

# A fit shorter than this is done again, so many times in all, and medians are told.
SHORT, REPEATS = 2.0, 5

Curve = dict[str, Any]


def main() -> int:
    parser = make_parser(__doc__ or "", "mnist")
    parser.add_argument(
        "--contestants",
        type=some_of(CONTESTANTS),
        default="sklearnex,opentsne,sklearn",
        help="comma-separated, besides ours",
    )
    args = parser.parse_args()
    dataset = load_or_exit(args)
    folder = output_folder(args, "convergence", dataset)
    P = Affinities.from_data(dataset.X, perplexity=args.perplexity, n_jobs=args.threads)
    start = pca_layout(dataset.X, args.seed)
    task = Task(dataset.X, start, args.threads, args.seed, 1000, args.perplexity)
    with Disturbance() as others:
        curves = [ours(P, task)]
        for name in tqdm(args.contestants, unit="contestant"):
            curves.append(theirs(name, P, task))
    rows = [
        [curve["title"], str(n), f"{seconds:.2f}", number(kl, ".4f")]
        for curve in curves
        for n, seconds, kl in zip(curve["iterations"], curve["seconds"], curve["kl"], strict=True)
    ]
    tables = table(["package", "iterations", "s", "exact KL"], rows)
    passed = table(["package", "its whole fit, s", "its KL", "ours there after, s", "ratio"], [
        [
            curve["title"],
            f"{curve['seconds'][-1]:.2f}",
            number(curve["kl"][-1], ".4f"),
            number(seconds := seconds_to(curves[0], curve["kl"][-1]), ".2f"),
            number(None if seconds is None else curve["seconds"][-1] / seconds, ".1f"),
        ]
        for curve in curves[1:]
    ])  # fmt: skip
    note = disturbance_note([others.cores])
    settings = {"threads": args.threads, "perplexity": args.perplexity, "seed": args.seed}
    results = {"curves": curves, "disturbance_cores": others.cores}
    text = f"{passed}\n\n{tables}\n\n{note}"
    write_results(folder, "convergence", dataset, settings, results, text, draw(folder, curves))
    return 0


def ours(P: Affinities, task: Task) -> Curve:
    """Fit once by default, and to several numbers of iterations, each from the start."""
    how: dict[str, Any] = {
        "perplexity": task.perplexity,
        "init": task.init,
        "n_jobs": task.threads,
        "random_state": task.seed,
    }
    # First the whole fit, as with the others: none of the fits that count is a process's first.
    default, whole = _timed_fit(task.X, how)
    seconds, kl = [], []
    for n in OURS:
        ended = {**how, "tol": 0, "callback": lambda *_: True, "callback_every": n}
        fits = [_timed_fit(task.X, ended) for _ in range(REPEATS if whole < SHORT else 1)]
        seconds.append(median([took for _, took in fits]))
        kl.append(exact_kl(P, fits[0][0].embedding_, task.threads))
    return {
        "title": "acctsne",
        "iterations": list(OURS),
        "seconds": seconds,
        "kl": kl,
        "ends": [default.n_iter_ + 1, whole, exact_kl(P, default.embedding_, task.threads)],
    }


def _timed_fit(X: npt.NDArray[Any], how: dict[str, Any]) -> tuple[TSNE, float]:
    begin = perf_counter()
    fit = TSNE(**how).fit(X)
    return fit, perf_counter() - begin


def theirs(name: str, P: Affinities, task: Task) -> Curve:
    """Fit a package to several numbers of iterations, each from the start."""
    contestant = CONTESTANTS[name]
    seconds, kl = [], []
    for n in OTHERS:
        outcomes = [contestant.run(task._replace(max_iter=n))]
        if outcomes[0].seconds < SHORT:
            outcomes += [contestant.run(task._replace(max_iter=n)) for _ in range(REPEATS - 1)]
        seconds.append(median([outcome.seconds for outcome in outcomes]))
        kl.append(exact_kl(P, outcomes[0].embedding, task.threads))
    return {"title": contestant.title, "iterations": list(OTHERS), "seconds": seconds, "kl": kl}


def seconds_to(curve: Curve, kl: float) -> float | None:
    """Find when a curve has come down to a value."""
    reached = (s for s, value in zip(curve["seconds"], curve["kl"], strict=True) if value <= kl)
    return next(reached, None)


def draw(folder: Path, curves: list[Curve]) -> str | None:
    plt = pyplot()
    if plt is None:
        return None
    figure, axes = plt.subplots(figsize=(6, 4), constrained_layout=True)
    for curve in curves:
        (line,) = axes.plot(
            curve["seconds"], curve["kl"], marker="o", markersize=3, label=curve["title"]
        )
        if "ends" in curve:
            axes.plot(*curve["ends"][1:], "o", color=line.get_color(), fillstyle="none", ms=9)
            axes.annotate(
                "ends here", curve["ends"][1:], (0, 10), textcoords="offset points", ha="center"
            )
    axes.set(xlabel="seconds, neighbours included", ylabel="exact KL divergence", xscale="log")
    axes.legend(frameon=False)
    figure.savefig(folder / "convergence.png", dpi=150)
    return "convergence.png"


if __name__ == "__main__":
    sys.exit(main())
