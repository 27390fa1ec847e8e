"""Data that is read where it lies: files, half precision, bytes, any strides."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import numpy.typing as npt
import pytest

from acctsne import TSNE, Affinities, io, nearest_neighbors
from acctsne.neighbors.nearest import query_neighbors
from acctsne.neighbors.records import SearchSettings
from acctsne.runtime import rows

Array = npt.NDArray[Any]


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no array be copied because it is small."""
    monkeypatch.setattr(rows, "SCATTERED_BYTES", 0)


def bytes_of(n: int, features: int = 40) -> Array:
    """Whole numbers, which every type holds."""
    rng = np.random.default_rng(n)
    centers = rng.integers(0, 200, size=(5, features))
    X: Array = centers[rng.integers(5, size=n)] + rng.integers(0, 30, size=(n, features))
    return X.astype(np.uint8)


def with_gaps(X: Array) -> Array:
    wide = np.full((2 * X.shape[0], 3 * X.shape[1]), 77, dtype=X.dtype)
    wide[::2, ::3] = X
    return wide[::2, ::3]


STORED: dict[str, Callable[[Array], Array]] = {
    "uint8": lambda X: X,
    "float16": lambda X: X.astype(np.float16),
    "Fortran order": lambda X: np.asfortranarray(X.astype(np.float32)),
    "columns of a wider array": lambda X: np.hstack([X, X]).astype(np.float16)[:, : X.shape[1]],
    "gaps": lambda X: with_gaps(X.astype(np.float32)),
    "gaps between bytes": with_gaps,
    "another byte order": lambda X: X.astype(np.dtype(np.float32).newbyteorder()),
    "backwards": lambda X: np.ascontiguousarray(X[::-1, ::-1].astype(np.float16))[::-1, ::-1],
}


def read_only(X: Array) -> Array:
    X.flags.writeable = False
    return X


@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("mode", ["exact", "approximate"])
def test_neighbours_are_those_of_float32(kind: str, mode: Any) -> None:
    X = bytes_of(900)
    plain = nearest_neighbors(X.astype(np.float32), 12, mode=mode, random_state=0)
    found = nearest_neighbors(read_only(STORED[kind](X)), 12, mode=mode, random_state=0)
    assert found.distances.dtype == np.float32
    np.testing.assert_array_equal(found.indices, plain.indices)
    np.testing.assert_array_equal(found.distances, plain.distances)
    assert found.recall == plain.recall


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation", "cityblock"])
def test_every_metric(metric: str) -> None:
    X = bytes_of(200)
    plain = nearest_neighbors(X.astype(np.float32), 8, metric=metric)
    for kind in ("uint8", "float16", "gaps"):
        found = nearest_neighbors(STORED[kind](X), 8, metric=metric)
        np.testing.assert_array_equal(found.distances, plain.distances)


def test_strides_of_float64() -> None:
    X = np.random.default_rng(0).normal(size=(300, 30))
    plain = nearest_neighbors(X, 9)
    for other in (np.asfortranarray(X), with_gaps(X)):
        np.testing.assert_array_equal(nearest_neighbors(other, 9).distances, plain.distances)


def test_rows_that_are_one_row() -> None:
    X = np.broadcast_to(np.arange(30.0, dtype=np.float32), (50, 30))
    found = nearest_neighbors(X, 3)
    np.testing.assert_array_equal(found.distances, 0)


def test_halves_of_every_size() -> None:
    # All finite halves, subnormal ones among them, a feature each.
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)]
    X = np.zeros((8, len(halves)), dtype=np.float16)
    X[1] = halves
    found = nearest_neighbors(X, 7)
    expected = np.linalg.norm(halves.astype(np.float64))
    np.testing.assert_allclose(found.distances[1], expected, rtol=1e-6)
    small = np.zeros((8, 4), dtype=np.float16)
    small[1, 2] = -6e-8  # the least there is
    np.testing.assert_array_equal(nearest_neighbors(small, 1).distances[1], np.float32(2**-24))


@pytest.mark.parametrize("kind", STORED)
def test_queries(kind: str) -> None:
    X, asked = bytes_of(400), bytes_of(60)
    plain = query_neighbors(X.astype(np.float32), asked.astype(np.float32), SearchSettings(5))
    found = query_neighbors(STORED[kind](X), asked.astype(np.float16), SearchSettings(5))
    np.testing.assert_array_equal(found[0], plain[0])
    np.testing.assert_array_equal(found[1], plain[1])


@pytest.mark.parametrize("kind", STORED)
def test_maps(kind: str, tmp_path: Path) -> None:
    X = bytes_of(300)
    plain = TSNE(perplexity=10, random_state=0, max_iter=250).fit(X.astype(np.float32))
    fitted = TSNE(perplexity=10, random_state=0, max_iter=250).fit(STORED[kind](X))
    np.testing.assert_array_equal(fitted.embedding_, plain.embedding_)
    new = bytes_of(20).astype(np.float32) + 0.3
    np.testing.assert_array_equal(fitted.transform(new), plain.transform(new))
    np.testing.assert_array_equal(fitted.transform(STORED[kind](X)[:9]), fitted.embedding_[:9])
    fitted.save(tmp_path / "map.npz")
    loaded = TSNE.load(tmp_path / "map.npz")
    np.testing.assert_array_equal(loaded.transform(new), plain.transform(new))


def test_nothing_is_copied_whole(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    few_axes = rng.normal(size=(60_000, 8)) @ rng.normal(size=(8, 400))
    np.save(tmp_path / "X.npy", few_axes.astype(np.float16))
    del few_axes
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    tracemalloc.start()
    try:
        nearest_neighbors(X, 5, mode="approximate", random_state=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # What Python allocates to check a block and to hold the result; a copy would be 48 MB, in
    # float32 96 MB.
    assert 60_000 * 5 * 8 < peak < 16e6


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_finite_in_a_later_block(dtype: Any, value: float) -> None:
    X = bytes_of(5000, 3).astype(dtype)
    X[4800, 1] = value
    for use in (TSNE().fit, lambda X: nearest_neighbors(X, 5), Affinities.from_data):
        with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
            use(X)


def test_sums_beyond_half_precision_are_finite() -> None:
    X = np.full((40, 3), 60000, dtype=np.float16)
    X[:20] = 1
    assert nearest_neighbors(X, 5).distances.max() == 0


class Named:
    """An array as ml_dtypes and torch have it: NumPy knows the type by its name only."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.shape = (60, 4)


@pytest.mark.parametrize("name", ["bfloat16", "torch.bfloat16"])
def test_bfloat16_is_refused(name: str) -> None:
    for use in (TSNE().fit, lambda X: nearest_neighbors(X, 5), Affinities.from_data):
        with pytest.raises(TypeError, match=r"X is bfloat16.*float32"):
            use(Named(name))


def bits_of_bfloat16(X: Array) -> Array:
    """The upper half of float32, which is what bfloat16 is."""
    bits: Array = X.astype(np.float32).view(np.uint32) >> 16
    return bits.astype(np.uint16)


def embeddings(n: int, features: int) -> Array:
    """As language models make them: of length 1, some numbers zero."""
    X: Array = np.random.default_rng(1).normal(size=(n, features))
    X[:, ::17] = 0
    X /= np.linalg.norm(X, axis=1)[:, None]
    return X


@pytest.mark.parametrize("scale", [1, 30])
@pytest.mark.parametrize("features", [4, 768])
def test_bits_of_bfloat16_are_refused(scale: float, features: int) -> None:
    X = scale * embeddings(60, features)
    bits = bits_of_bfloat16(X)
    place = TSNE(perplexity=5, max_iter=250).fit(X).transform
    for use in (TSNE().fit, lambda X: nearest_neighbors(X, 5), Affinities.from_data, place):
        with pytest.raises(ValueError, match=r"X is of type uint16.*ml_dtypes.*astype"):
            use(bits)
    assert nearest_neighbors(bits.astype(np.float32), 5).indices.shape == (60, 5)


def test_whole_numbers_of_16_bits_are_taken() -> None:
    rng = np.random.default_rng(2)
    gradient = np.linspace(0, 65535, 60 * 50)
    for values in (
        rng.poisson(3, (60, 50)),
        rng.integers(0, 65536, (60, 50)),
        rng.integers(0x3C00, 0x4500, (60, 50)),  # an image of little contrast
        rng.integers(0xBC00, 0xC500, (60, 50)),
        rng.normal(0x8000, 3000, (60, 50)),
        np.where(rng.random((60, 50)) < 0.01, 0xC000, 0x4000),  # bright specks
        gradient.reshape(60, 50),
        np.zeros((60, 50)),
    ):
        found = nearest_neighbors(values.astype(np.uint16), 5)
        assert found.indices.shape == (60, 5)


def test_tables_of_h5ad_are_mapped(tmp_path: Path) -> None:
    X = bytes_of(50).astype(np.float32)
    anndata.AnnData(X=X).write_h5ad(tmp_path / "cells.h5ad")
    read = io.read(tmp_path / "cells.h5ad").X
    assert isinstance(read, np.memmap)
    np.testing.assert_array_equal(read, X)
    anndata.AnnData(X=X).write_h5ad(tmp_path / "packed.h5ad", compression="gzip")
    np.testing.assert_array_equal(io.read(tmp_path / "packed.h5ad").X, X)
