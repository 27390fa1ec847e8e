"""Predict how each step scales to many cores, from the loops recorded on one thread.

1. What a team and memory cost is measured: wake-up, barrier, cache line, bytes a second.
2. A whole fit is recorded on one thread, and timed on two; so are some iterations with the tree.
3. The loops are replayed (replay.py) on 2 to 64 workers.

A step whose prediction for two threads misses what was measured by more than a tenth has no figures
for more. What cannot be measured here is assumed, and the table says so: that every further helper
costs what the first did, and the bandwidth and the cache of a socket with many cores.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from acctsne import TSNE, Affinities, Embedding, _core
from common import (
    Disturbance,
    disturbance_note,
    load_or_exit,
    make_parser,
    median,
    number,
    positive,
    table,
)
from evaluation.plan import CELLS
from evaluation.scaling import PAPER_CORES, PAPER_SPEEDUP
from replay import Memory, Recording, TeamModel, limits, replay

WORKERS = (1, 2, 4, 8, 16, 32, 64)
MEASURED = (1, 2)
TOLERANCE = 0.1  # of a prediction for two threads

# The socket that cores like those here come in, an EPYC 9005: 12 channels of DDR5-6000, 576 GB/s,
# of which four fifths are taken to arrive, and a cache of 32 MB for every 8 of its cores, of which
# 32 are taken to work. The paper's, a Xeon of 2021 with slower cores, has 8 channels of DDR4-3200;
# with its 164 GB/s the attraction of these cores would gain 18.5 times, and a whole fit 20.8.
SOCKET_BANDWIDTH = 0.8 * 576e9
SOCKET_CACHE = 4 * 32 * 2.0**20

# Of native/forces/repulsive_fft.cpp, at the default force_error: the grid's step, how wide a map is
# convolved on two grids, and how many nodes wide in blocks.
GRID_STEP = 0.405
WIDE_MAP = 48.0
NODES_IN_BLOCKS = 961
# Passes over a grid's nodes that its convolution makes. As a whole: lines along x are read and
# their spectrum is written, which is twice as long where lines are padded by their own length, is
# read and written along y, and is read again for the potential. In blocks, all that is done in the
# caches of a core: charges are read twice, and the potential is fetched and written.
PASSES_PADDED = 10
PASSES_NEAR = 7
PASSES_IN_BLOCKS = 5

LOOK_EVERY = 10  # iterations between looks at how wide the map is
REPEATS = 3
TREE_ITERATIONS = 20

LAST_CACHE = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")  # where Linux tells it
COPIED_BYTES = 1 << 28  # far more than caches hold
COST_LOOPS = 300
MORE_HELPERS = 8  # than there are cores: what waking them takes is the owner's time


@dataclass(frozen=True)
class Sizes:
    """What the bytes of a step follow from."""

    points: int
    features: int
    neighbors: int
    edges: float  # entries of P
    grid: float  # bytes of the grid, on average over the iterations
    convolved: float  # bytes that its convolution moves, likewise
    iterations: int = 0
    by_grid: int = 0  # iterations whose repulsion the grid computes
    by_tree: int = 0
    real: int = 4  # bytes of a number
    dims: int = 2

    def of(self, recording: Recording) -> "Sizes":
        """Count iterations by loops of which each has one."""
        loops = recording.loops()
        return replace(
            self,
            iterations=loops.get("attractive", 0),
            by_grid=loops.get("repulsive: gather", 0),
            by_tree=loops.get("summarisation", 0),
        )

    @property
    def array(self) -> float:
        """Bytes of an array with a number for each coordinate."""
        return float(self.points * self.dims * self.real)

    @property
    def touched(self) -> float:
        """Bytes that an iteration goes through: P, the arrays of the update, grid or tree."""
        edges = HALF_EDGE * self.edges
        by_tree = (NODE + LISTS + CODE) * self.points if self.by_tree > self.by_grid else 0.0
        return edges + 6 * self.array + 2 * self.grid + by_tree


HALF_EDGE = 4  # a column of 16 bits and a value of 16
EDGE = 8  # of P as it is made
NODE = 48  # of a tree, which has about as many as points
CODE = 12  # of Morton, with its point
LISTS = 90  # of the tree's groups, for each point (docs/tuning.md)

# Bytes that a step of a fit reads and writes, every array once for each pass over it. Of what is
# done once, all is taken to come from memory.
BYTES_ONCE: Mapping[str, Callable[[Sizes], float]] = {
    "neighbours": lambda s: 4.0 * s.points * s.features,
    "BSP": lambda s: 2.0 * s.points * s.neighbors * s.real,
    "symmetrisation": lambda s: EDGE * (6.0 * s.points * s.neighbors + 2.0 * s.edges),
    "edges": lambda s: 4 * s.array,
    "relabelling": lambda s: 4 * (3 * HALF_EDGE * s.edges + 10 * s.array),
}
# Of what every iteration does, the part that caches do not hold.
BYTES_OF_ITERATIONS: Mapping[str, Callable[[Sizes], float]] = {
    "attractive": lambda s: s.iterations * (HALF_EDGE * s.edges + 2 * s.array),
    "repulsive": lambda s: s.by_tree * (2 * s.array + (NODE + 2 * LISTS) * s.points),
    "repulsive: spread": lambda s: s.by_grid * (2 * s.array + 24 * s.points + 3 * s.grid),
    "repulsive: transform": lambda s: s.by_grid * s.convolved,
    "repulsive: gather": lambda s: s.by_grid * (2 * s.array + s.grid),
    "update": lambda s: s.iterations * 9 * s.array,
    "tree building": lambda s: s.by_tree * (2 * s.array + (6 * CODE + 3 * NODE) * s.points),
    "summarisation": lambda s: s.by_tree * (3 * s.array + 2 * NODE * s.points),
}


# What is measured


def measure_team() -> TeamModel:
    awake = _core.team_costs(2, False, COST_LOOPS)
    asleep = _core.team_costs(2, True, COST_LOOPS)
    many = _core.team_costs(1 + MORE_HELPERS, True, COST_LOOPS)
    return TeamModel(
        opening=awake["open"],
        waking=awake["wake"],
        opening_asleep=asleep["open"],
        waking_asleep=asleep["wake"],
        wake_call=max(0.0, many["open"] - asleep["open"]) / (MORE_HELPERS - 1),
        closing=awake["close"],
        transfer=_core.line_transfer_seconds(),
    )


def measure_bandwidth(threads: int) -> float:
    """Bytes read and written in a second by threads that copy arrays of their own."""
    arrays = [
        (np.ones(COPIED_BYTES, np.uint8), np.empty(COPIED_BYTES, np.uint8)) for _ in range(threads)
    ]

    def copy(pair: tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]) -> None:
        np.copyto(pair[1], pair[0])

    seconds = []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(6):  # the first touches the pages
            start = perf_counter()
            list(pool.map(copy, arrays))
            seconds.append(perf_counter() - start)
    return 2 * COPIED_BYTES * threads / min(seconds[1:])


def shared_cache() -> float:
    """Return the bytes of the last cache here, 0 if the system does not say."""
    try:
        kilobytes = LAST_CACHE.read_text().strip().removesuffix("K")
        return 1024.0 * int(kilobytes)
    except (OSError, ValueError):
        return 0.0


def record(body: Callable[[], object]) -> Recording:
    return Recording(**_core.record_loops(body))


@dataclass(frozen=True)
class Model:
    """What the prediction rests on beside the recording."""

    team: TeamModel
    here: Memory  # of this machine, with two threads
    there: Memory  # of a socket with many cores

    @classmethod
    def measured(cls) -> "Model":
        alone, together = map(measure_bandwidth, MEASURED)
        there = Memory(alone, max(together, SOCKET_BANDWIDTH), SOCKET_CACHE)
        return cls(measure_team(), Memory(alone, together, shared_cache()), there)

    def memory_for(self, workers: int) -> Memory:
        return self.here if workers in MEASURED else self.there


@dataclass(frozen=True)
class Runs:
    """The same work recorded on one thread and timed on two."""

    recorded: Recording
    seconds: Mapping[str, Mapping[str, float]]  # by threads, then by step

    @classmethod
    def of(cls, work: Callable[[int], object], repeats: int) -> "Runs":
        """Run it alternately on one thread and on two; seconds are medians over the repeats."""
        alone, together = [], []
        for _ in range(repeats):
            alone.append(record(lambda: work(1)))
            together.append(record(lambda: work(2)))
        alone.sort(key=lambda run: sum(run.seconds().values()))
        seconds = {}
        for threads, runs in (("1", alone), ("2", together)):
            by_step = [run.seconds() for run in runs]
            seconds[threads] = {
                step: median([steps.get(step, 0.0) for steps in by_step]) for step in by_step[0]
            }
        return cls(alone[len(alone) // 2], seconds)

    def moved(self, sizes: Sizes, memory: Memory) -> dict[str, float]:
        """Bytes by step that come from memory or go there."""
        sizes = sizes.of(self.recorded)
        missing = memory.missing(sizes.touched)
        again = {step: missing * count(sizes) for step, count in BYTES_OF_ITERATIONS.items()}
        return {step: count(sizes) for step, count in BYTES_ONCE.items()} | again

    def predicted(self, model: "Model", sizes: Sizes) -> dict[str, dict[str, float]]:
        found = {}
        for workers in WORKERS:
            memory = model.memory_for(workers)
            moved = self.moved(sizes, memory)
            found[str(workers)] = replay(self.recorded, workers, model.team, moved, memory)
        return found

    def limits(self, model: "Model", sizes: Sizes) -> dict[str, dict[str, float]]:
        """Seconds by what would save them on as many cores as the paper's, then by step."""
        moved = self.moved(sizes, model.there)
        by_step = limits(self.recorded, PAPER_CORES, model.team, moved, model.there)
        causes = next(iter(by_step.values()))
        return {cause: {step: saved[cause] for step, saved in by_step.items()} for cause in causes}


# Steps, gathered


def with_sums(steps: Mapping[str, float]) -> dict[str, float]:
    """Add the whole repulsion, and the sum of all steps."""
    repulsive = sum(s for step, s in steps.items() if step.startswith("repulsive"))
    return {**steps, "repulsive": repulsive, "whole fit": sum(steps.values())}


def by_step(by_workers: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Turn seconds by workers, or by what limits them, then by step, round, and add sums."""
    summed = {workers: with_sums(steps) for workers, steps in by_workers.items()}
    return {
        step: {workers: steps.get(step, 0.0) for workers, steps in summed.items()}
        for step in next(iter(summed.values()))
    }


def error_of_two(predicted: Mapping[str, float], measured: Mapping[str, float]) -> float:
    return predicted["2"] / measured["2"] - 1 if measured["2"] else 0.0


def without_doubtful(
    predicted: Mapping[str, Mapping[str, float]], measured: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, float]]:
    """Take away what is predicted for more than two workers where two are predicted badly."""
    return {
        step: {
            workers: seconds
            for workers, seconds in times.items()
            if int(workers) in MEASURED or abs(error_of_two(times, measured[step])) <= TOLERANCE
        }
        for step, times in predicted.items()
    }


# The program


def main() -> int:
    args = parse_arguments()
    dataset = load_or_exit(args)
    with Disturbance() as others:
        figures = simulated(dataset.X, args)
    if args.output:
        path = args.output / f"simulate-{dataset.slug}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(figures, indent=1) + "\n")
        print(f"wrote {path}", file=sys.stderr)
    print(f"\n{dataset.title}\n\n{markdown(figures)}\n\n{disturbance_note([others.cores])}")
    return 0


def run_job(job: dict[str, Any]) -> dict[str, Any]:
    """Predict for benchmarks/paper.py."""
    args = argparse.Namespace(
        perplexity=job["perplexity"],
        seed=job["seed"],
        repeats=REPEATS,
        tree_iterations=TREE_ITERATIONS,
    )
    return {"status": "ok", **simulated(np.load(job["X"]), args)}


def simulated(X: npt.NDArray[np.float32], args: argparse.Namespace) -> dict[str, Any]:
    """Measure, record and replay; return all figures by name."""
    print("what a team and memory cost", file=sys.stderr)
    model = Model.measured()
    predicted, measured, serial, limited = predict(X, model, args)
    shown = without_doubtful(predicted, measured)
    return {
        "model": asdict(model),
        "withheld": [step for step in predicted if len(shown[step]) < len(WORKERS)],
        "serial": serial,
        "limits": limited,
        "whole_fit": shown.pop("whole fit"),
        "measured_whole_fit": measured.pop("whole fit"),
        "steps": shown,
        "measured": measured,
    }


def parse_arguments() -> argparse.Namespace:
    parser = make_parser(__doc__.partition("\n")[0], "digits")
    parser.add_argument(
        "--repeats", type=positive, default=REPEATS, help="runs of each, alternating"
    )
    parser.add_argument(
        "--tree-iterations",
        type=positive,
        default=TREE_ITERATIONS,
        help="iterations with the tree",
    )
    return parser.parse_args()


Times = dict[str, dict[str, float]]  # by step, then by number of threads or workers


def predict(
    X: npt.NDArray[np.float32], model: Model, args: argparse.Namespace
) -> tuple[Times, Times, dict[str, float], Times]:
    """Return seconds as predicted and as measured, those of one thread that are serial, and limits.

    The limits are the seconds that many cores would save without each of what limits them.
    """
    found: dict[str, Any] = {}

    def fit(threads: int) -> None:
        tsne = TSNE(perplexity=args.perplexity, random_state=args.seed, n_jobs=threads)
        found["layout"] = tsne.fit_transform(X)

    print("a fit on one thread, recorded, and on two", file=sys.stderr)
    fits = Runs.of(fit, args.repeats)
    affinities = Affinities.from_data(X, perplexity=args.perplexity, n_jobs=2)
    sizes = sizes_of(X, affinities, widths_of(X, args))

    def climb(threads: int) -> None:
        embedding = Embedding(affinities, found["layout"], method="barnes_hut", n_jobs=threads)
        embedding.optimize(args.tree_iterations)

    print("iterations with the tree", file=sys.stderr)
    trees = Runs.of(climb, args.repeats)
    print("replaying", file=sys.stderr)
    predicted = by_step(fits.predicted(model, sizes))
    predicted |= tree_steps(by_step(trees.predicted(model, sizes)))
    measured = by_step(fits.seconds) | tree_steps(by_step(trees.seconds))
    serial = with_sums(fits.recorded.serial())
    serial |= tree_steps(with_sums(trees.recorded.serial()))
    limited = by_step(fits.limits(model, sizes)) | tree_steps(by_step(trees.limits(model, sizes)))
    return predicted, measured, serial, limited


T = TypeVar("T")


def tree_steps(steps: Mapping[str, T]) -> dict[str, T]:
    """Those that only the tree has; in a fit, the grid's repulsion is the default."""
    return {
        "tree building": steps["tree building"],
        "summarisation": steps["summarisation"],
        "repulsive, tree": steps["repulsive"],
    }


def widths_of(X: npt.NDArray[np.float32], args: argparse.Namespace) -> list[npt.NDArray[Any]]:
    """Fit once more, and return the sides of the map now and then on its way."""
    widths: list[npt.NDArray[Any]] = []

    def look(iteration: int, kl: float, layout: npt.NDArray[Any]) -> None:
        widths.append(np.ptp(layout, axis=0).astype(np.float64))

    tsne = TSNE(perplexity=args.perplexity, random_state=args.seed, n_jobs=2)
    tsne.set_params(callback=look, callback_every=LOOK_EVERY).fit(X)
    return widths


def sizes_of(
    X: npt.NDArray[np.float32], affinities: Affinities, widths: list[npt.NDArray[Any]]
) -> Sizes:
    grids = [number_of_nodes(width) for width in widths]
    return Sizes(
        points=len(X),
        features=X.shape[1],
        neighbors=affinities.n_neighbors or 0,
        edges=len(affinities.columns),
        grid=float(np.mean([4 * nodes for nodes, _ in grids])),
        convolved=float(np.mean([4 * nodes * passes for nodes, passes in grids])),
    )


def number_of_nodes(width: npt.NDArray[Any]) -> tuple[float, int]:
    """Return the nodes of the grid of a map with these sides, and the passes over them."""
    sides = width / GRID_STEP + 4
    if sides.min() >= NODES_IN_BLOCKS:
        passes = PASSES_IN_BLOCKS
    else:
        passes = PASSES_NEAR if width.min() > WIDE_MAP else PASSES_PADDED
    return float(np.prod(sides)), passes


def markdown(entry: Mapping[str, Any]) -> str:
    steps = {**entry["steps"], "whole fit": entry["whole_fit"]}
    measured = {**entry["measured"], "whole fit": entry["measured_whole_fit"]}
    header = ["step", "1, s", "serial, s", "2, s", "2 predicted", "error"]
    header += [f"{workers}" for workers in WORKERS if workers not in MEASURED]
    header.append(f"paper, {PAPER_CORES}")
    rows = []
    for step, times in steps.items():
        row = [step, number(measured[step]["1"], ".4g"), number(entry["serial"][step], ".2g")]
        row += [number(measured[step]["2"], ".4g"), number(times["2"], ".4g")]
        row.append(f"{error_of_two(times, measured[step]):+.0%}")
        for workers in WORKERS:
            if workers not in MEASURED:
                seconds = times.get(str(workers))
                row.append(number(times["1"] / seconds if seconds else None, ".1f"))
        rows.append([*row, number(PAPER_SPEEDUP.get(step), ".1f")])
    team = entry["model"]["team"]
    memory = entry["model"]["there"]
    notes = [
        table(header, rows),
        "Columns 4 to 64: speedup over one worker, predicted. A step that misses two threads by "
        f"more than {TOLERANCE:.0%} has none: {', '.join(entry['withheld']) or 'all meet it'}.",
        f"Measured: a helper begins after {1e6 * team['waking']:.2g} us, "
        f"{1e6 * team['waking_asleep']:.2g} us if asleep; a loop closes in "
        f"{1e6 * team['closing']:.2g} us; a cache line takes {1e9 * team['transfer']:.0f} ns; "
        f"a core moves {memory['core'] / 1e9:.1f} GB/s.",
        "Assumed: every further helper adds a cache line's way at both ends of a loop, and "
        f"{1e6 * team['wake_call']:.2g} us if it sleeps; {memory['socket'] / 1e9:.0f} GB/s for all "
        f"cores together, beyond what {memory['cache'] / 1e6:.0f} MB of cache hold of what an "
        "iteration goes through; cores as fast as here.",
        f"The paper's are measured, by tree, of a million cells, and of {CELLS:,} for the whole "
        "fit: they compare with steps of the tree and about as many points.",
    ]
    return "\n\n".join(notes)


if __name__ == "__main__":
    sys.exit(main())
