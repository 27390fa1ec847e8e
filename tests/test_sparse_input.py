"""Sparse matrices whose parts do not fit each other: refused before compiled code sees them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array, coo_matrix, csc_matrix, csr_matrix, random_array

from acctsne import TSNE, Affinities, init, nearest_neighbors, quality


def sound(n: int = 40, d: int = 40) -> csr_matrix:
    X = csr_matrix(random_array((n, d), density=0.4, rng=np.random.default_rng(0)))
    X.setdiag(0)
    X.eliminate_zeros()
    return X


def with_part(kind: type, part: str, value: int) -> Any:
    X = kind(sound())
    getattr(X, part)[3] = value
    return X


def shorter(part: str) -> Any:
    X = sound()
    setattr(X, part, getattr(X, part)[:-5])
    return X


BROKEN: dict[str, Callable[[], Any]] = {
    "a column out of range": lambda: with_part(csr_matrix, "indices", 10**6),
    "a negative column": lambda: with_part(csr_matrix, "indices", -3),
    "rows that do not ascend": lambda: with_part(csr_matrix, "indptr", 10**6),
    "a negative row": lambda: with_part(csr_matrix, "indptr", -1),
    "a row out of range": lambda: with_part(csc_matrix, "indices", 40),
    "too few values": lambda: shorter("data"),
    "too few columns": lambda: shorter("indices"),
    "coordinates out of range": lambda: with_part(coo_matrix, "row", 10**6),
    "negative coordinates": lambda: with_part(coo_matrix, "col", -1),
}
USES: dict[str, Callable[[Any], Any]] = {
    "TSNE": lambda X: TSNE(perplexity=5).fit(X),
    "TSNE of distances": lambda X: TSNE(perplexity=5, metric="precomputed", init="random").fit(X),
    "transform": lambda X: TSNE(perplexity=5, init="random").fit(sound()).transform(X),
    "nearest_neighbors": lambda X: nearest_neighbors(X, 5),
    "from_data": lambda X: Affinities.from_data(X, perplexity=5),
    "from_distances": lambda X: Affinities.from_distances(X, perplexity=2),
    "from_matrix": Affinities.from_matrix,
    "init.pca": init.pca,
    "exact_kl": lambda X: quality.exact_kl(None, np.zeros((40, 2)), P=X),
    "neighbor_preservation": lambda X: quality.neighbor_preservation(X, np.zeros((40, 2)), 5),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("broken", BROKEN)
def test_refused(use: str, broken: str) -> None:
    with pytest.raises(ValueError, match="damaged sparse matrix"):
        USES[use](BROKEN[broken]())


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("shape", [(40,), (40, 3, 2)])
def test_no_table(use: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"sparse array of shape \(40,.*expected 2 dimensions"):
        USES[use](coo_array(np.ones(shape)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [csr_matrix, csc_matrix, coo_matrix])
def test_sound_ones_are_taken(kind: type) -> None:
    X = kind(sound())
    np.testing.assert_array_equal(
        TSNE(perplexity=5, random_state=0).fit_transform(X),
        TSNE(perplexity=5, random_state=0).fit_transform(sound()),
    )
