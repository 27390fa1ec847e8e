"""How much of large distances, neighbours and labels maps keep, over many samples.

One map tells little: where clusters come to lie is partly chance. So the same descents run on
several samples of the same data, and differences to the reference of benchmarks/descent.py, sample
by sample, are given with their standard errors. A sample of all points has them in another order,
which changes roundings, and by them where a descent ends.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr
from tqdm import tqdm

import datasets
from acctsne import TSNE, Affinities, init, quality
from acctsne.affinities.affinities import form_of
from acctsne.forces.repulsion import RepulsionOptions
from acctsne.optimize.descent import Descent
from acctsne.optimize.optimizer import Optimizer
from acctsne.optimize.schedule import MAX_STEP, Phase, Ramp, Schedule
from acctsne.optimize.stopping import MIN_GRAD_NORM, PATIENCE, TOL, StoppingRules
from common import table
from descent import ITERATIONS, distances, random_pairs, reference_schedule
from referee import exact_kl

Array = npt.NDArray[Any]

PAIRS = 300_000  # so many that their choice does not show
STRENGTH = 12.0  # of early exaggeration
LONGER = 4 * ITERATIONS
LOOK = 2  # iterations between looks for the reference's KL divergence


def fade(iterations: int) -> list[float]:
    """Fade by the same factor in each iteration, as the default does."""
    return [STRENGTH ** (1 - i / iterations) for i in range(iterations)]


def linear(iterations: int) -> list[float]:
    return [STRENGTH + (1 - STRENGTH) * i / iterations for i in range(iterations)]


def reciprocal(iterations: int) -> list[float]:
    """Fade so that the reciprocal of exaggeration grows linearly."""
    return [1 / (1 / STRENGTH + (1 - 1 / STRENGTH) * i / iterations) for i in range(iterations)]


def hold(iterations: int) -> list[float]:
    return iterations * [STRENGTH]


@dataclass(frozen=True)
class Early:
    """Another early phase than the default's."""

    exaggeration: Sequence[float]  # of each iteration
    spread: float = 1.0  # of the start, against the default's
    momentum: float | None = None  # None for as much as the run bears
    rest_at: int | None = None  # the iteration before which momentum is forgotten

    def phases(self, n_samples: int) -> list[Phase]:
        early = [
            Phase(
                name="early exaggeration",
                end=i + 1,
                exaggeration=Ramp.constant(factor),
                learning_rate=Ramp.constant(n_samples / factor),
                momentum=self.momentum,
                max_step=MAX_STEP,
                reset_momentum=i == self.rest_at,
            )
            for i, factor in enumerate(self.exaggeration)
        ]
        return [*early, Schedule().phases(n_samples)[-1]]


EARLY = {
    "narrow start, fade of 50": Early(fade(50)),
    "narrow, abrupt end after 30": Early(hold(30)),
    "narrow, linear fade of 50": Early(linear(50)),
    "narrow, reciprocal fade of 50": Early(reciprocal(50)),
    "narrow, 10 held, fade of 40, momentum 0.8": Early(hold(10) + fade(40), momentum=0.8),
    "narrow, 30 held, rest, fade of 30": Early(hold(30) + fade(30), rest_at=30),
    "300 x, 20 held, fade of 40, momentum 0.9": Early(
        hold(20) + fade(40), spread=300, momentum=0.9
    ),
    "10000 x, fade of 50, momentum 0.8": Early(fade(50), spread=10_000, momentum=0.8),
    "10000 x, 10 held, fade of 40, momentum 0.8": Early(
        hold(10) + fade(40), spread=10_000, momentum=0.8
    ),
    "10000 x, 10 held, fade of 40, momentum 0.9": Early(
        hold(10) + fade(40), spread=10_000, momentum=0.9
    ),
    "30000 x, fade of 50": Early(fade(50), spread=30_000),
}


class Outcome(NamedTuple):
    """What a descent has led to."""

    iterations: int
    kl: float
    ranks: float
    kept: float
    agreement: float  # of labels; no number without them


class Sample:
    """Some points of a data set, with affinities, a start and the way to judge maps."""

    def __init__(self, X: Array, labels: Array | None, threads: int) -> None:
        self.X = X
        self.labels = labels
        self.threads = threads
        self.pairs = random_pairs(len(X), PAIRS)
        self.distances = distances(X, self.pairs)
        self.P = Affinities.from_data(X, perplexity=30.0, n_jobs=threads)
        self.start = init.pca(X)

    def outcomes(self, variants: bool) -> dict[str, Outcome]:
        """Run all descents."""
        reference = self._optimizer()
        schedule = reference_schedule(len(self.start))
        Descent(reference).run(schedule)
        found = {"reference": self._judged(reference.n_iter, reference.positions)}
        goal = reference.kl()
        reference.run(replace(schedule[-1], end=LONGER))
        found[f"reference, {LONGER} iterations"] = self._judged(LONGER, reference.positions)
        found["default, at the reference's KL"] = self._fitted(
            tol=0, callback=lambda _, kl, __: kl <= goal, callback_every=LOOK
        )
        found["default"] = self._fitted()
        for name, early in EARLY.items() if variants else ():
            found[name] = self._begun_by(early)
        return found

    def _fitted(self, **more: Any) -> Outcome:
        fit = TSNE(init=self.start, n_jobs=self.threads, **more).fit(self.P)
        return self._judged(fit.n_iter_ + 1, fit.embedding_)

    def _begun_by(self, early: Early) -> Outcome:
        optimizer = self._optimizer(early.spread)
        stopping = StoppingRules(TOL, MIN_GRAD_NORM, PATIENCE)
        Descent(optimizer).run(early.phases(len(self.start)), stopping)
        return self._judged(optimizer.n_iter, optimizer.positions)

    def _optimizer(self, spread: float = 1.0) -> Optimizer:
        start = (spread * self.start).astype(self.start.dtype)
        return Optimizer(form_of(self.P), start, RepulsionOptions(), self.threads)

    def _judged(self, iterations: int, Y: Array) -> Outcome:
        kl = exact_kl(self.P, Y, self.threads)
        ranks = float(spearmanr(self.distances, distances(Y, self.pairs))[0])
        kept = quality.neighbor_preservation(self.X, Y, n_jobs=self.threads)
        agreement = np.nan
        if self.labels is not None:
            agreement = quality.label_agreement(Y, self.labels, n_jobs=self.threads)
        return Outcome(iterations, kl, ranks, kept, agreement)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with <dataset>*.npz")
    parser.add_argument(
        "--datasets", default="mnist:5000,fashion_mnist:5000", help="comma-separated, name:N each"
    )
    parser.add_argument("--samples", type=int, default=8, help="samples of N points of each")
    parser.add_argument("--variants", action="store_true", help="also other early phases")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    if args.samples < 2:
        parser.error(f"a standard error takes at least 2 samples; got {args.samples}")
    lines = []
    for name in args.datasets.split(","):
        base, _, size = name.rpartition(":")
        try:
            data = datasets.load(base or name, None, args.data)
        except datasets.DatasetError as error:
            sys.exit(str(error))
        if not base or not size.isdecimal() or int(size) > len(data.X):
            sys.exit(f"{name}: say how many of its {len(data.X)} points make a sample, as name:N")
        runs = []
        for seed in tqdm(range(args.samples), unit="sample", desc=name):
            rng = np.random.default_rng([seed, int(size)])
            rows = rng.choice(len(data.X), size=int(size), replace=False)
            if int(size) < len(data.X):
                rows.sort()
            labels = None if data.labels is None else data.labels[rows]
            runs.append(Sample(data.X[rows], labels, args.threads).outcomes(args.variants))
        lines += rows_of(name, runs)
    header = ["data", "descent", "iterations", "KL against the default's, %"]
    for figure in ("rank correlation", "10-NN kept", "label agreement"):
        header += [figure, "against the reference's"]
    print(table(header, lines))
    return 0


def rows_of(name: str, runs: Sequence[dict[str, Outcome]]) -> list[list[str]]:
    """Compare the descents of all samples, each with the others of its sample."""

    def row(descent: str) -> list[str]:
        found = [run[descent] for run in runs]
        references = [run["reference"] for run in runs]
        kls = [100 * (run[descent].kl / run["default"].kl - 1) for run in runs]
        cells = [name, descent, f"{np.mean([each.iterations for each in found]):.0f}"]
        cells.append(with_error(kls, ".1f"))
        for figure in ("ranks", "kept", "agreement"):
            values = np.array([getattr(each, figure) for each in found])
            known = np.array([getattr(each, figure) for each in references])
            cells += [f"{values.mean():.3f}", with_error(values - known, ".4f")]
        return cells

    return [row(descent) for descent in runs[0]]


def with_error(values: Sequence[float] | Array, form: str) -> str:
    """Return the mean and its standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):+{form}} ± {error:{form}}"


if __name__ == "__main__":
    sys.exit(main())
