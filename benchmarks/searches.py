"""The searches for nearest neighbours that benchmarks/neighbors.py compares.

Each takes the data, the number of neighbours, threads, a seed and an effort, and returns indices,
nearest first, without the point itself.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from acctsne import nearest_neighbors

Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[Any]


@dataclass(frozen=True)
class Search:
    name: str
    module: str
    find: Callable[[Floats, int, int, int, Any], Indices]
    efforts: Sequence[int] = ()  # ascending; none for exact ones and for ours

    def load(self) -> None:
        """Import the package; raises ImportError if it is not installed."""
        importlib.import_module(self.module)

    def run(self, X: Floats, k: int, threads: int, seed: int, effort: int | None) -> Indices:
        return self.find(X, k, threads, seed, effort)


def without_itself(indices: Indices, k: int) -> Indices:
    """Drop the point itself from its k + 1 neighbours, or the last where it is not among them."""
    own = indices == np.arange(len(indices))[:, None]
    order = np.argsort(own, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(indices, order, axis=1)


def acctsne_exact(X: Floats, k: int, threads: int, seed: int, _: Any) -> Indices:
    return nearest_neighbors(X, k, mode="exact", n_jobs=threads, random_state=seed).indices


def acctsne_approximate(X: Floats, k: int, threads: int, seed: int, _: Any) -> Indices:
    return nearest_neighbors(X, k, mode="approximate", n_jobs=threads, random_state=seed).indices


def brute_force(module: str) -> Callable[[Floats, int, int, int, Any], Indices]:
    def search(X: Floats, k: int, threads: int, _seed: int, _: Any) -> Indices:
        kind = importlib.import_module(module).NearestNeighbors
        with threadpool_limits(threads):
            model = kind(n_neighbors=k, algorithm="brute", n_jobs=threads).fit(X)
            return np.asarray(model.kneighbors()[1])

    return search


def faiss_flat(X: Floats, k: int, threads: int, _seed: int, _: Any) -> Indices:
    import faiss

    faiss.omp_set_num_threads(threads)
    index = faiss.IndexFlatL2(X.shape[1])
    index.add(X)
    return without_itself(index.search(X, k + 1)[1], k)


def faiss_cells(X: Floats, k: int, threads: int, _seed: int, probes: int) -> Indices:
    import faiss

    faiss.omp_set_num_threads(threads)
    cells = int(4 * np.sqrt(len(X)))  # as faiss's guidelines advise
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(X.shape[1]), X.shape[1], cells)
    index.train(X)
    index.add(X)
    index.nprobe = probes
    return without_itself(index.search(X, k + 1)[1], k)


def hnswlib(X: Floats, k: int, threads: int, seed: int, effort: int) -> Indices:
    import hnswlib as package

    index = package.Index(space="l2", dim=X.shape[1])
    index.init_index(max_elements=len(X), ef_construction=effort, M=16, random_seed=seed)
    index.set_num_threads(threads)
    index.add_items(X)
    index.set_ef(max(effort, k + 1))
    return without_itself(index.knn_query(X, k + 1)[0].astype(np.int64), k)


def usearch(X: Floats, k: int, threads: int, _seed: int, effort: int) -> Indices:
    from usearch.index import Index

    index = Index(
        ndim=X.shape[1],
        metric="l2sq",
        dtype="f32",
        expansion_add=effort,
        expansion_search=max(effort, k + 1),
    )
    index.add(np.arange(len(X)), X, threads=threads)
    return without_itself(index.search(X, k + 1, threads=threads).keys.astype(np.int64), k)


def pynndescent(X: Floats, k: int, threads: int, seed: int, trees: int) -> Indices:
    from pynndescent import NNDescent

    index = NNDescent(X, n_neighbors=k + 1, n_trees=trees, random_state=seed, n_jobs=threads)
    return without_itself(index.neighbor_graph[0], k)


SEARCHES = {
    search.name: search
    for search in (
        Search("acctsne", "acctsne", acctsne_exact),
        Search("acctsne-approximate", "acctsne", acctsne_approximate),
        Search("scikit-learn", "sklearn", brute_force("sklearn.neighbors")),
        Search("scikit-learn-intelex", "sklearnex", brute_force("sklearnex.neighbors")),
        Search("faiss-flat", "faiss", faiss_flat),
        Search("faiss-cells", "faiss", faiss_cells, (8, 16, 32, 64, 128)),
        Search("hnswlib", "hnswlib", hnswlib, (100, 150, 200, 300, 500)),
        Search("usearch", "usearch", usearch, (100, 150, 200, 300, 500)),
        Search("pynndescent", "pynndescent", pynndescent, (5, 10, 20, 40)),
    )
}
