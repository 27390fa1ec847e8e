"""Time the search for nearest neighbours against those of other packages, in one process.

Every contestant finds the neighbours of the same float32 data, in alternating rounds; building its
index counts. Approximate ones are first given more and more effort until their recall, from the
exact neighbours of a sample of points, reaches the target, and are then timed at that effort.
"""

import sys
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from acctsne.neighbors.nearest import query_neighbors
from acctsne.neighbors.records import SearchSettings
from common import (
    Disturbance,
    disturbance_note,
    load_or_exit,
    make_parser,
    median,
    number,
    output_folder,
    positive,
    some_of,
    table,
    write_results,
)
from searches import SEARCHES, Search

Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[Any]
Job = tuple[Floats, int, int, int]  # data, neighbours, threads, seed

DEFAULT = "acctsne,scikit-learn,scikit-learn-intelex"
RECALL_SAMPLE = 1000


class Referee:
    """Knows how far the true neighbours of a sample of points lie."""

    def __init__(self, job: Job) -> None:
        X, k, threads, seed = job
        rng = np.random.default_rng(seed)
        self._X = X
        self._rows = rng.choice(len(X), size=min(RECALL_SAMPLE, len(X)), replace=False)
        settings = SearchSettings(k + 1, threads=threads)  # the point itself is the first
        self._limits = query_neighbors(X, X[self._rows], settings).distances[:, -1:]

    def recall(self, indices: Indices) -> float:
        theirs = indices[self._rows]
        differences = self._X[theirs].astype(np.float64) - self._X[self._rows][:, None]
        own = theirs == self._rows[:, None]
        distances = np.where(own, np.inf, np.linalg.norm(differences, axis=2))
        return float((distances <= self._limits * (1 + 1e-6)).mean())


def tuned(search: Search, job: Job, referee: Referee, target: float) -> int | None:
    """Find the least effort that reaches the target, or the most there is."""
    effort = None
    for effort in search.efforts:
        recall = referee.recall(search.run(*job, effort))
        print(f"{search.name}, effort {effort}: recall {recall:.4f}", file=sys.stderr)
        if recall >= target:
            break
    return effort


def main() -> int:
    parser = make_parser(__doc__, "digits")
    parser.add_argument("--neighbors", type=positive, default=90, help="neighbours of each point")
    parser.add_argument("--repeats", type=positive, default=3, help="rounds")
    parser.add_argument("--recall", type=float, default=0.99, help="target of approximate ones")
    parser.add_argument(
        "--contestants",
        type=some_of(SEARCHES),
        default=DEFAULT,
        help="comma-separated, of " + ", ".join(SEARCHES),
    )
    args = parser.parse_args()
    dataset = load_or_exit(args)
    folder = output_folder(args, "neighbors", dataset)
    job = dataset.X, args.neighbors, args.threads, args.seed
    referee = Referee(job)
    efforts: dict[str, int | None] = {}
    for name in args.contestants:
        try:
            SEARCHES[name].load()
        except ImportError:
            print(f"{name} is not installed", file=sys.stderr)
        else:
            efforts[name] = tuned(SEARCHES[name], job, referee, args.recall)

    seconds: dict[str, list[float]] = {name: [] for name in efforts}
    recalls: dict[str, float] = {}
    with Disturbance() as others, tqdm(total=args.repeats * len(efforts), unit="run") as bar:
        for _ in range(args.repeats):
            for name, effort in efforts.items():
                bar.set_postfix_str(name)
                start = perf_counter()
                indices = SEARCHES[name].run(*job, effort)
                seconds[name].append(perf_counter() - start)
                recalls[name] = referee.recall(indices)
                bar.update()

    fastest_of_ours = [median(seconds[name]) for name in efforts if name.startswith("acctsne")]
    ours = min(fastest_of_ours, default=float("nan"))
    rows = []
    results: list[dict[str, Any]] = []
    for name, effort in efforts.items():
        took = median(seconds[name])
        results.append(
            {
                "contestant": name,
                "effort": effort,
                "seconds": seconds[name],
                "recall": recalls[name],
            }
        )
        rows.append(
            [name, number(effort, "d"), f"{took:.2f}", f"{took / ours:.2f}", f"{recalls[name]:.4f}"]
        )
    tables = table(["contestant", "effort", "seconds", "ratio", "recall"], rows)
    settings = {
        "neighbors": args.neighbors,
        "threads": args.threads,
        "rounds": args.repeats,
        "recall target": args.recall,
    }
    note = disturbance_note([others.cores])
    write_results(
        folder, "neighbors", dataset, settings, {"runs": results}, f"{tables}\n\n{note}", None
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
