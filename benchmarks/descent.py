"""How many iterations a fit needs: against 1000 of delta-bar-delta, on many problems.

This is what the constants of the descent are settled by (native/optimize/friction.hpp,
native/kernels/step_rule-inl.hpp, src/acctsne/optimize/schedule.py and stopping.py): change one,
build, run, compare the means.
"""

import argparse
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr
from sklearn.datasets import load_wine, make_moons, make_s_curve, make_swiss_roll
from tqdm import tqdm

import datasets
from acctsne import TSNE, Affinities, init, quality
from acctsne.affinities.affinities import form_of
from acctsne.forces.repulsion import RepulsionOptions
from acctsne.optimize.descent import Descent
from acctsne.optimize.optimizer import Optimizer
from acctsne.optimize.schedule import Phase, Ramp
from common import machine
from evaluation import iterations
from evaluation.records import commit
from referee import exact_kl

Array = npt.NDArray[Any]

ITERATIONS = 1000
LOOK = 10  # iterations between looks at the KL divergence

# Pairs of points whose distances are ranked.
PAIRS = 40_000


def generated(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def branching(random: np.random.Generator) -> Array:
    """Generate 6000 points along twelve lines in 30 dimensions, each from where another ends."""
    ends = [np.zeros(30)]
    points = []
    for _ in range(12):
        begin = ends[random.integers(len(ends))]
        ends.append(begin + 3 * random.normal(size=30))
        along = random.random((500, 1))
        points.append(begin + along * (ends[-1] - begin) + 0.25 * random.normal(size=(500, 30)))
    return np.concatenate(points)


def rings(random: np.random.Generator) -> Array:
    """Generate two rings of 400 points each, one through the other."""
    turn = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    x, y, nothing = np.cos(turn), np.sin(turn), np.zeros(400)
    both = np.concatenate([np.stack([x, y, nothing], 1), np.stack([1 + x, nothing, y], 1)])
    return both + 0.01 * random.normal(size=both.shape)


def spiral(random: np.random.Generator) -> Array:
    """Generate 1000 points along three turns in a plane."""
    turn = np.linspace(1, 20, 1000)
    points = np.stack([turn * np.cos(turn), turn * np.sin(turn)], 1)
    return points + 0.02 * random.normal(size=points.shape)


HOSTILE: dict[str, Callable[[], Array]] = {
    "noise": lambda: generated(1).normal(size=(20_000, 50)),
    "copies": lambda: np.repeat(generated(2).normal(size=(600, 20)), 20, axis=0),
    "heavy tails": lambda: generated(3).standard_t(1.5, size=(7000, 32)),
    "islands": lambda: (
        generated(4).normal(size=(4000, 10))
        + 1e4 * generated(5).normal(size=(20, 10))[np.arange(4000) % 20]
    ),
    "few": lambda: generated(6).normal(size=(100, 5)),
    # Maps that show nearly all of these, so that little KL divergence is left.
    "wine": lambda: load_wine().data,
    "two moons": lambda: make_moons(1500, noise=0.05, random_state=0)[0],
    "S curve": lambda: make_s_curve(2000, random_state=0)[0],
    "swiss roll": lambda: make_swiss_roll(3000, random_state=0)[0],
    "trajectories": lambda: branching(generated(7)),
    "linked rings": lambda: rings(generated(8)),
    "spiral": lambda: spiral(generated(9)),
}
# What is done to the digits besides.
VARIED: dict[str, dict[str, Any]] = {
    "digits, perplexity 1.5": {"perplexity": 1.5},
    "digits, perplexity 5": {"perplexity": 5.0},
    "digits, perplexity 100": {"perplexity": 100.0},
    "digits, dof 0.5": {"dof": 0.5},
    "digits, dof 2": {"dof": 2.0},
    "digits, dof 10": {"dof": 10.0},
    "digits, random start": {"init": "random"},
}
USUAL = "digits,mnist:2000,mnist:10000,fashion_mnist:5000,fashion_mnist:20000,mnist,fashion_mnist"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with <dataset>*.npz")
    parser.add_argument("--datasets", default=USUAL, help="comma-separated, :N for a sample")
    parser.add_argument(
        "--hostile",
        nargs="?",
        const="all",
        help="also noise, copies, ...: all, or those named, with ; between",
    )
    parser.add_argument("--early", type=int, help="iterations of early exaggeration")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--output", type=Path, help="JSON file that figures are put into, too")
    args = parser.parse_args()
    problems: list[tuple[str, Array, Array | None, dict[str, Any]]] = []
    for name in filter(None, args.datasets.split(",")):
        base, _, limit = name.partition(":") if not name.startswith("synthetic") else (name, "", "")
        try:
            data = datasets.load(base, int(limit) if limit else None, args.data)
        except datasets.DatasetError as error:
            sys.exit(str(error))
        problems.append((data.title, data.X, data.labels, {}))
    if args.hostile:
        digits = datasets.load("digits")
        asked = [*HOSTILE, *VARIED] if args.hostile == "all" else args.hostile.split(";")
        for name in asked:
            if name in HOSTILE:
                problems.append((name, HOSTILE[name]().astype(np.float32), None, {}))
            elif name in VARIED:
                problems.append((name, digits.X, digits.labels, VARIED[name]))
            else:
                sys.exit(f"no problem {name!r}; there are {', '.join([*HOSTILE, *VARIED])}")
    if args.early is not None:
        problems = [
            (title, X, labels, {"early_exaggeration_iter": args.early, **more})
            for title, X, labels, more in problems
        ]
    entries = [judge(*problem, args.threads) for problem in tqdm(problems, unit="problem")]
    print(f"{iterations.rows([*entries, iterations.means(entries)])}\n")
    if args.output:
        iterations.write(args.output, entries)
    return 0


def judge(
    title: str, X: Array, labels: Array | None, more: dict[str, Any], threads: int
) -> dict[str, Any]:
    """Run both descents from the same start and compare where they lead."""
    parameters = {
        "perplexity": 30.0,
        "dof": 1.0,
        "init": "pca",
        "early_exaggeration_iter": "auto",
        **more,
    }
    dof = parameters["dof"]
    perplexity = min(parameters["perplexity"], (len(X) - 1) / 3)
    P = Affinities.from_data(X, perplexity=perplexity, n_jobs=threads)
    start = init.pca(X) if parameters["init"] == "pca" else init.random(len(X), random_state=0)
    reference = Optimizer(form_of(P), start, RepulsionOptions(dof=dof), threads)
    Descent(reference).run(reference_schedule(len(X)))
    goal = reference.kl()
    curve: dict[int, float] = {}

    def note(iteration: int, kl: float, _: Array) -> None:
        curve[iteration + 1] = kl

    how: dict[str, Any] = {
        "init": start,
        "dof": dof,
        "early_exaggeration_iter": parameters["early_exaggeration_iter"],
        "n_jobs": threads,
    }
    TSNE(**how, tol=0, max_iter=ITERATIONS, callback=note, callback_every=LOOK).fit(P)
    begin = perf_counter()
    fit = TSNE(**how).fit(P)
    print(f"{title}: {perf_counter() - begin:.2f} s", file=sys.stderr)
    reached = next((n for n, kl in sorted(curve.items()) if kl <= goal), None)
    maps = fit.embedding_, reference.positions
    exact = [exact_kl(P, Y, threads, dof) for Y in maps]
    kept = [quality.neighbor_preservation(X, Y, n_jobs=threads) for Y in maps]
    agreement = [None if labels is None else quality.label_agreement(Y, labels) for Y in maps]
    ranks = [rank_correlation(X, Y) for Y in maps]
    names = ["exact_kl", "reference_kl", "kept", "reference_kept"]
    names += ["labels", "reference_labels", "ranks", "reference_ranks"]
    return {
        "data": title,
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "cpu": machine(threads)["cpu"],
        "figures": {
            "reached": reached,
            "ends_after": fit.n_iter_ + 1,
            **dict(zip(names, (*exact, *kept, *agreement, *ranks), strict=True)),
            "difference": 100 * (exact[0] / exact[1] - 1),
            "curve": {at: 100 * (curve[int(at)] / goal - 1) for at in iterations.CURVE},
        },
    }


def reference_schedule(n_samples: int) -> list[Phase]:
    """Lay out 1000 iterations of delta-bar-delta with the learning rates of openTSNE.

    Early exaggeration ends after 80, about where the KL divergence falls fastest.
    """
    return [
        Phase(
            name="reference",
            end=end,
            exaggeration=Ramp.constant(factor),
            learning_rate=Ramp.constant(n_samples / factor / 4),
            momentum=0.8,
            max_step=5.0,
            rule="delta_bar_delta",
        )
        for end, factor in ((80, 12.0), (ITERATIONS, 1.0))
    ]


def random_pairs(n_samples: int, count: int = PAIRS) -> Array:
    """Draw pairs of different points, the same in each call: their rows, in two rows."""
    pairs = np.random.default_rng(0).integers(0, n_samples, size=(2, count))
    return pairs[:, pairs[0] != pairs[1]]


def distances(Z: Array, pairs: Array) -> Array:
    blocks = [
        np.linalg.norm(Z[i].astype(np.float64) - Z[j], axis=1)
        for i, j in np.array_split(pairs, range(4096, pairs.shape[1], 4096), axis=1)
    ]
    return np.concatenate(blocks)


def rank_correlation(X: Array, Y: Array) -> float:
    """Correlate ranks of the distances of random pairs."""
    pairs = random_pairs(len(X))
    return float(spearmanr(distances(X, pairs), distances(Y, pairs))[0])


if __name__ == "__main__":
    sys.exit(main())
