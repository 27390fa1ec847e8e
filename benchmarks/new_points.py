"""How long `transform` takes to place new points, and how well they are placed.

    python benchmarks/new_points.py --dataset mnist --new 10000

Fits all but so many random rows, places these, and prints seconds, medians of rounds, and the part
of fitted and of placed points whose label most of their ten nearest neighbours in the map have.
"""

import sys
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne import TSNE, nearest_neighbors
from acctsne.neighbors.nearest import query_neighbors
from acctsne.neighbors.records import SearchSettings
from common import load_or_exit, make_parser

NEIGHBORS = 10


def agreement(
    neighbors: npt.NDArray[Any], labels: npt.NDArray[Any], own: npt.NDArray[Any]
) -> float:
    """Compute the part of points whose own label most of their neighbours have."""
    names, codes = np.unique(labels, return_inverse=True)
    votes = np.zeros((len(neighbors), len(names)), dtype=int)
    for column in neighbors.T:
        votes[np.arange(len(votes)), codes[column]] += 1
    return float(np.mean(names[votes.argmax(axis=1)] == own))


def main() -> int:
    """Measure."""
    parser = make_parser(__doc__ or "", "mnist")
    parser.add_argument("--new", type=int, default=10_000, help="rows that are placed")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    dataset = load_or_exit(args)
    if dataset.labels is None:
        sys.exit("the data has no labels to judge places by")
    order = np.random.default_rng(args.seed).permutation(len(dataset.X))
    placed, fitted = order[: args.new], order[args.new :]
    X, new = dataset.X[fitted], dataset.X[placed]
    begin = perf_counter()
    tsne = TSNE(n_jobs=args.threads, random_state=args.seed).fit(X)
    fit_seconds = perf_counter() - begin
    seconds = []
    for _ in range(args.rounds):
        begin = perf_counter()
        places = tsne.transform(new)
        seconds.append(perf_counter() - begin)
    labels = dataset.labels[fitted]
    among = nearest_neighbors(tsne.embedding_, NEIGHBORS).indices
    settings = SearchSettings(NEIGHBORS, threads=args.threads)
    around = query_neighbors(tsne.embedding_, places, settings).indices
    print(
        f"{len(X)} fitted in {fit_seconds:.2f} s, {len(new)} placed in {median(seconds):.2f} s; "
        f"label agreement {agreement(among, labels, labels):.3f} of the fitted, "
        f"{agreement(around, labels, dataset.labels[placed]):.3f} of the placed"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
