"""Exact neighbours of sparse rows, against scikit-learn's brute force, alternating.

    python benchmarks/sparse_rows.py --samples 50000 --features 30000 --filled 0.03

Columns are filled alike, or with --zipf as words of a text are. Values are those of a gamma
distribution. Seconds of each round, their medians, and how much of the neighbours agree; where they
do not, distances in float64, of rows made dense, tell whether either chose a farther one.
"""

import argparse
import time
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

from acctsne import nearest_neighbors
from acctsne.runtime.threads import available_cores

Indices = npt.NDArray[np.integer[Any]]


def make_rows(n: int, features: int, filled: float, zipf: bool, seed: int = 0) -> csr_matrix:
    """Draw rows, each column with its own chance to be filled."""
    rng = np.random.default_rng(seed)
    chance = np.full(features, filled)
    if zipf:
        ranks = np.arange(1, features + 1)
        chance = np.minimum(0.9, filled * features / np.log(features) / ranks)
    blocks: list[npt.NDArray[np.int32]] = []
    offsets = np.zeros(n + 1, dtype=np.int64)
    for i in range(n):
        columns = np.flatnonzero(rng.random(features, dtype=np.float32) < chance)
        blocks.append(columns.astype(np.int32))
        offsets[i + 1] = offsets[i] + len(columns)
    values = rng.gamma(2.0, size=int(offsets[-1])).astype(np.float32)
    return csr_matrix((values, np.concatenate(blocks), offsets), shape=(n, features))


def explain(X: csr_matrix, metric: str, ours: Indices, theirs: Indices, most: int = 2000) -> str:
    """Say of rows that differ how much farther either list's neighbours are, place by place."""
    rows = np.flatnonzero((ours != theirs).any(axis=1))[:most]
    excess = {"acctsne": 0.0, "scikit-learn": 0.0}
    for i in rows:
        row = X[i].toarray().astype(np.float64)
        lists = {"acctsne": ours[i], "scikit-learn": theirs[i]}
        far = {
            name: pairwise_distances(row, X[chosen].toarray().astype(np.float64), metric)[0]
            for name, chosen in lists.items()
        }
        best = np.minimum(np.sort(far["acctsne"]), np.sort(far["scikit-learn"]))
        for name, distances in far.items():
            excess[name] = max(excess[name], float(np.max(distances / best - 1)))
    farther = ", ".join(f"{name} by {part:.1e}" for name, part in excess.items())
    return (
        f"of {len(rows)} rows that differ, farther than need be at most: {farther} of the distance"
    )


def timed(find: Any) -> tuple[float, Any]:
    """Return seconds and result."""
    start = time.perf_counter()
    found = find()
    return time.perf_counter() - start, found


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description="Exact neighbours of sparse rows.")
    parser.add_argument("--samples", type=int, default=50_000)
    parser.add_argument("--features", type=int, default=30_000)
    parser.add_argument("--filled", type=float, default=0.03)
    parser.add_argument("--zipf", action="store_true", help="columns as words of a text")
    parser.add_argument(
        "--metric", default="euclidean", choices=["euclidean", "cosine", "correlation"]
    )
    parser.add_argument("--neighbors", type=int, default=90)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=available_cores())
    parser.add_argument("--alone", action="store_true", help="without scikit-learn")
    options = parser.parse_args()
    X = make_rows(options.samples, options.features, options.filled, options.zipf)
    in_column = np.bincount(X.indices, minlength=X.shape[1]).astype(float)
    print(f"{X.shape[0]} x {X.shape[1]}, {X.nnz / np.prod(X.shape):.1%} filled", flush=True)
    k, threads = options.neighbors, options.threads
    ours: list[float] = []
    theirs: list[float] = []
    # scikit-learn has no correlation of sparse rows; cosine is what takes it as long.
    their_metric = "cosine" if options.metric == "correlation" else options.metric
    brute = NearestNeighbors(n_neighbors=k, algorithm="brute", metric=their_metric, n_jobs=threads)
    for _ in range(options.rounds):
        seconds, found = timed(
            lambda: nearest_neighbors(X, k, metric=options.metric, mode="exact", n_jobs=threads)
        )
        ours.append(seconds)
        products = in_column @ in_column / 2 / seconds
        print(f"acctsne {seconds:.2f} s, {products:.2e} products/s", flush=True)
        if options.alone:
            continue
        seconds, indices = timed(lambda: brute.fit(X).kneighbors(return_distance=False))
        theirs.append(seconds)
        print(f"scikit-learn {seconds:.2f} s", flush=True)
        if their_metric == options.metric:
            print(f"the same neighbours: {(indices == found.indices).mean():.3%}", flush=True)
            print(explain(X, options.metric, found.indices, indices), flush=True)
    if theirs:
        print(f"ratio of medians {median(theirs) / median(ours):.1f}")


if __name__ == "__main__":
    main()
