"""How fast schedules bring the KL divergence down: exact values against seconds."""

import argparse
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from acctsne import TSNE, Affinities, Embedding, quality
from common import (
    Disturbance,
    disturbance_note,
    load_or_exit,
    make_parser,
    number,
    output_folder,
    pca_layout,
    pyplot,
    table,
    write_results,
)

SCHEDULES: dict[str, dict[str, Any]] = {
    "fast": {},
    "fast, 250 early": {"early_exaggeration_iter": 250},
    "fast, 250 early, N / 12 throughout": {
        "early_exaggeration_iter": 250,
        "learning_rate": "early",
    },
    "sklearn": {"schedule": "sklearn"},
}

# Iterations whose layouts are judged.
JUDGED = (100, 200, 250, 300, 400, 500, 750, 1000)

# Up to so many points Z is summed over all pairs; beyond, on a grid fine enough that it makes no
# difference to the digits shown.
ALL_PAIRS = 150_000


def main() -> int:
    args = make_parser(__doc__ or "", "mnist").parse_args()
    dataset = load_or_exit(args)
    folder = output_folder(args, "schedules", dataset)
    P = Affinities.from_data(dataset.X, perplexity=args.perplexity, n_jobs=args.threads)
    layout = pca_layout(dataset.X, args.seed)
    with Disturbance() as others:
        curves = [run(name, P, layout, args) for name in tqdm(SCHEDULES, unit="schedule")]
    rows = [
        [
            curve["schedule"],
            *(number(kl, ".4f") for kl in curve["kl"]),
            f"{curve['seconds'][-1]:.1f}",
        ]
        for curve in curves
    ]
    tables = table(["schedule", *(f"{i} iterations" for i in JUDGED), "loop, s"], rows)
    note = disturbance_note([others.cores])
    settings = {"threads": args.threads, "perplexity": args.perplexity, "seed": args.seed}
    results = {"curves": curves, "disturbance_cores": others.cores}
    figure = draw(folder, curves)
    write_results(folder, "schedules", dataset, settings, results, f"{tables}\n\n{note}", figure)
    return 0


def run(
    name: str, P: Affinities, layout: npt.NDArray[np.float32], args: argparse.Namespace
) -> dict[str, Any]:
    """Embed once, keeping layouts and the time spent on iterations, then judge the layouts."""
    options = dict(SCHEDULES[name])
    if options.get("learning_rate") == "early":
        options["learning_rate"] = P.n_samples / 12 / 4
    kept: list[tuple[int, float, npt.NDArray[np.float32]]] = []
    spent_here = 0.0
    begin = perf_counter()

    def keep(iteration: int, kl: float, positions: npt.NDArray[np.float32]) -> None:
        nonlocal spent_here
        called = perf_counter()
        if iteration + 1 in JUDGED:
            kept.append((iteration + 1, called - begin - spent_here, positions))
        spent_here += perf_counter() - called

    TSNE(init=layout, n_jobs=args.threads, callback=keep, callback_every=50, **options).fit(P)
    return {
        "schedule": name,
        "iterations": [iteration for iteration, _, _ in kept],
        "seconds": [seconds for _, seconds, _ in kept],
        "kl": [exact_kl(P, positions, args.threads) for _, _, positions in kept],
    }


def exact_kl(P: Affinities, positions: npt.NDArray[Any], threads: int) -> float:
    if P.n_samples <= ALL_PAIRS:
        return quality.exact_kl(None, positions, P=P, n_jobs=threads)
    return Embedding(P, positions, method="fft", force_error=1e-3, n_jobs=threads).kl()


def draw(folder: Path, curves: list[dict[str, Any]]) -> str | None:
    plt = pyplot()
    if plt is None:
        return None
    figure, axes = plt.subplots(figsize=(6, 4), constrained_layout=True)
    for curve in curves:
        axes.plot(curve["seconds"], curve["kl"], marker="o", markersize=3, label=curve["schedule"])
    axes.set(xlabel="seconds of iterations", ylabel="KL divergence")
    axes.legend(frameon=False)
    figure.savefig(folder / "schedules.png", dpi=150)
    return "schedules.png"


if __name__ == "__main__":
    sys.exit(main())
