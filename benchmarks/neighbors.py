"""Time the exact search for nearest neighbours against those of other packages, in one process.

Every contestant finds the same neighbours of the same float32 data, in alternating rounds.
"""

import importlib
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from acctsne import nearest_neighbors
from common import (
    Disturbance,
    disturbance_note,
    load_or_exit,
    make_parser,
    median,
    number,
    output_folder,
    positive,
    table,
    write_results,
)

Floats = npt.NDArray[Any]


def acctsne_exact(X: Floats, k: int, threads: int) -> Floats:
    return np.asarray(nearest_neighbors(X, k, mode="exact", n_jobs=threads).distances)


def brute_force(module: str) -> Callable[[Floats, int, int], Floats]:
    def search(X: Floats, k: int, threads: int) -> Floats:
        kind = importlib.import_module(module).NearestNeighbors
        with threadpool_limits(threads):
            model = kind(n_neighbors=k, algorithm="brute", n_jobs=threads).fit(X)
            return np.asarray(model.kneighbors()[0])

    return search


CONTESTANTS = {
    "acctsne": acctsne_exact,
    "scikit-learn": brute_force("sklearn.neighbors"),
    "scikit-learn-intelex": brute_force("sklearnex.neighbors"),
}


def main() -> int:
    parser = make_parser(__doc__, "digits")
    parser.add_argument("--neighbors", type=positive, default=90, help="neighbours of each point")
    parser.add_argument("--repeats", type=positive, default=3, help="rounds")
    parser.add_argument(
        "--contestants",
        default=",".join(CONTESTANTS),
        help="comma-separated, of " + ", ".join(CONTESTANTS),
    )
    args = parser.parse_args()
    dataset = load_or_exit(args)
    folder = output_folder(args, "neighbors", dataset)
    names = args.contestants.split(",")
    unknown = set(names) - set(CONTESTANTS)
    if unknown:
        sys.exit(f"error: unknown contestants {', '.join(sorted(unknown))}")

    seconds: dict[str, list[float]] = {name: [] for name in names}
    found: dict[str, Floats] = {}
    with Disturbance() as others, tqdm(total=args.repeats * len(names), unit="run") as bar:
        for _ in range(args.repeats):
            for name in names:
                bar.set_postfix_str(name)
                start = perf_counter()
                try:
                    found[name] = CONTESTANTS[name](dataset.X, args.neighbors, args.threads)
                except ImportError:
                    print(f"{name} is not installed", file=sys.stderr)
                seconds[name].append(perf_counter() - start)
                bar.update()

    ours = median(seconds["acctsne"]) if "acctsne" in found else float("nan")
    rows = []
    results: list[dict[str, Any]] = []
    for name in names:
        if name not in found:
            continue
        took = median(seconds[name])
        # How far the distances are from ours, which are exact: others round more.
        difference = float(np.abs(found[name] - found["acctsne"]).max() / found["acctsne"].max())
        results.append({"contestant": name, "seconds": seconds[name], "difference": difference})
        rows.append([name, f"{took:.2f}", f"{took / ours:.2f}", number(difference)])
    tables = table(["contestant", "seconds", "ratio", "largest difference"], rows)
    settings = {"neighbors": args.neighbors, "threads": args.threads, "rounds": args.repeats}
    note = disturbance_note([others.cores])
    write_results(
        folder, "neighbors", dataset, settings, {"runs": results}, f"{tables}\n\n{note}", None
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
