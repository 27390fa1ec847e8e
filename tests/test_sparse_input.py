"""Sparse matrices whose parts do not fit each other: refused before compiled code sees them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import (
    bsr_matrix,
    coo_array,
    coo_matrix,
    csc_matrix,
    csr_array,
    csr_matrix,
    dia_matrix,
    dok_matrix,
    lil_array,
    lil_matrix,
    random_array,
)

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


def with_lists(columns: list[Any], values: list[Any]) -> lil_matrix:
    X = lil_matrix(sound())
    X.rows[3], X.data[3] = columns, values
    return X


def with_fewer_lists() -> lil_matrix:
    X = lil_matrix(sound())
    X.rows = X.rows[:-5]
    return X


def with_diagonals(data: int, offsets: Any) -> dia_matrix:
    X = dia_matrix(sound())
    X.data, X.offsets = X.data[:data], offsets
    return X


def with_offsets(kind: type, value: int, dtype: str) -> Any:
    X = kind(sound())
    X.indptr = X.indptr.astype(dtype)
    X.indptr[3] = value
    return X


def with_indices(indices: Any) -> csr_matrix:
    X = sound()
    X.indices = indices(X.indices)
    return X


def with_smaller_blocks() -> bsr_matrix:
    X = bsr_matrix(sound(), blocksize=(2, 2))
    X.data = X.data.reshape(-1, 1, 4)
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
    "a list with a column out of range": lambda: with_lists([10**6], [1.0]),
    "a list with a negative column": lambda: with_lists([-(10**6)], [1.0]),
    "a list of more columns than values": lambda: with_lists([1, 2, 3], [1.0]),
    "a list of more values than columns": lambda: with_lists([1], [1.0, 2.0, 3.0]),
    "a list of words": lambda: with_lists(["a"], [1.0]),
    "a list of huge columns": lambda: with_lists([2**70], [1.0]),
    "no list": lambda: with_lists(None, [1.0]),  # type: ignore[arg-type]
    "fewer lists than rows": with_fewer_lists,
    "fewer diagonals than offsets": lambda: with_diagonals(2, np.arange(100_000, dtype=np.int32)),
    "more diagonals than offsets": lambda: with_diagonals(20, np.arange(2, dtype=np.int32)),
    "a diagonal twice": lambda: with_diagonals(2, np.array([1, 1], dtype=np.int32)),
    "unsigned rows that do not ascend": lambda: with_offsets(csr_matrix, 10**6, "u8"),
    "unsigned columns that do not ascend": lambda: with_offsets(csc_matrix, 10**6, "u4"),
    "unsigned blocks that do not ascend": lambda: with_offsets(bsr_matrix, 10**6, "u8"),
    "offsets that are no integers": lambda: with_offsets(csr_matrix, 3, "f8"),
    "no columns": lambda: with_indices(lambda indices: None),
    "a list of columns": lambda: with_indices(list),
    "columns that are no integers": lambda: with_indices(lambda indices: indices.astype(float)),
    "a table of columns": lambda: with_indices(lambda indices: indices.reshape(-1, 1)),
    "blocks of another shape": with_smaller_blocks,
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


SOUND: dict[str, Callable[[], Any]] = {
    "csr": sound,
    "csr array": lambda: csr_array(sound()),
    "csc": lambda: csc_matrix(sound()),
    "coo": lambda: coo_matrix(sound()),
    "bsr": lambda: bsr_matrix(sound(), blocksize=(2, 2)),
    "lil": lambda: lil_matrix(sound()),
    "lil array": lambda: lil_array(sound()),
    "dia": lambda: dia_matrix(sound()),
    "dok": lambda: dok_matrix(sound()),
    "unsigned offsets": lambda: with_offsets(csr_matrix, int(sound().indptr[3]), "u8"),
    "unsigned columns": lambda: with_indices(lambda indices: indices.astype(np.uint16)),
    # As complex numbers have their real parts: every other one in memory.
    "values that are not side by side": lambda: (sound() * (1 + 0j)).real,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", SOUND)
@pytest.mark.parametrize("init", ["pca", "random"])
def test_sound_ones_are_taken(kind: str, init: str) -> None:
    how: dict[str, Any] = {"perplexity": 5, "random_state": 0, "init": init, "max_iter": 250}
    np.testing.assert_array_equal(
        TSNE(**how).fit_transform(SOUND[kind]()), TSNE(**how).fit_transform(sound())
    )


def wide() -> csr_matrix:
    return csr_matrix(random_array((40, 4000), density=0.01, rng=np.random.default_rng(0)))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_values_that_are_not_side_by_side_stay_sparse(metric: str) -> None:
    how: dict[str, Any] = {"perplexity": 5, "random_state": 0, "max_iter": 250, "metric": metric}
    np.testing.assert_array_equal(
        TSNE(**how).fit_transform((wide() * (1 + 0j)).real), TSNE(**how).fit_transform(wide())
    )


def test_what_a_matrix_says_of_its_order_is_not_believed() -> None:
    X = sound()
    X.indices, X.data = X.indices.copy(), X.data.copy()
    for begin, end in zip(X.indptr, X.indptr[1:], strict=False):
        X.indices[begin:end] = X.indices[begin:end][::-1].copy()
        X.data[begin:end] = X.data[begin:end][::-1].copy()
    X.has_sorted_indices = X.has_canonical_format = True
    np.testing.assert_array_equal(
        Affinities.from_matrix(X).to_scipy().toarray(),
        Affinities.from_matrix(sound()).to_scipy().toarray(),
    )


def test_the_users_matrix_stays_as_it_is() -> None:
    X = with_offsets(csr_matrix, int(sound().indptr[3]), "u8")
    nearest_neighbors(X, 5)
    assert X.indptr.dtype == np.uint64
