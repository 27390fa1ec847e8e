"""Data that lives in files, handed over as h5py, zarr and anndata open it."""

import io as streams
import os
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anndata
import h5py
import numpy as np
import numpy.typing as npt
import pandas
import pytest
import zarr
from scipy.sparse import issparse, random_array
from sklearn.neighbors import kneighbors_graph

from acctsne import TSNE, Affinities, io, nearest_neighbors, quality
from acctsne.files import backed
from acctsne.files.backed import in_reach

Array = npt.NDArray[Any]

# Whole numbers, which every type holds.
X = np.random.default_rng(0).integers(0, 100, size=(90, 12))
COUNTS = random_array((90, 40), density=0.2, format="csr", rng=np.random.default_rng(1))
FAST: dict[str, Any] = {"perplexity": 10, "max_iter": 250, "random_state": 0}
DOORS: dict[str, Callable[[Any], Any]] = {
    "fit": lambda X: TSNE(**FAST).fit(X),
    "neighbours": lambda X: nearest_neighbors(X, 5),
    "affinities": lambda X: Affinities.from_data(X, perplexity=5),
}


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Write a dataset of HDF5 and open it as it is told; close what was opened."""
    files: list[Any] = []

    def write(X: Array, mode: str = "r", before: Array | None = None, **options: Any) -> Any:
        path = tmp_path / f"{len(files)}.h5"
        with h5py.File(path, "w") as file:
            if before is not None:
                file["before"] = before
            file.create_dataset("X", data=X, **options)
        files.append(h5py.File(path, mode))
        return files[-1]["X"]

    yield write
    for file in files:
        file.close()


def zarr_of(X: Array, chunks: tuple[int, int] = (20, 5)) -> Any:
    array = zarr.create_array({}, shape=X.shape, dtype=X.dtype, chunks=chunks)
    array[:] = X
    return array


def backed_cells(path: Path, X: Any, mode: Any = "r", **options: Any) -> Any:
    anndata.AnnData(X=X).write_h5ad(path, **options)
    return anndata.read_h5ad(path, backed=mode)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.uint8, np.int16, ">f4"])
def test_tables_are_those_in_memory(dtype: Any, opened: Callable[..., Any], tmp_path: Path) -> None:
    plain = X.astype(dtype)
    np.save(tmp_path / "X.npy", plain)
    tables = {
        "one piece": opened(plain),
        "packed": opened(plain, chunks=(25, 5), compression="gzip"),
        "zarr": zarr_of(plain),
        "npy": io.open_rows(tmp_path / "X.npy"),
    }
    expected = nearest_neighbors(plain, 5)
    for kind, table in tables.items():
        found = nearest_neighbors(table, 5)
        assert found.distances.dtype == expected.distances.dtype, kind
        assert np.array_equal(found.distances, expected.distances), kind
        assert np.array_equal(found.indices, expected.indices), kind


def test_maps_and_what_is_done_with_them(opened: Callable[..., Any]) -> None:
    plain = TSNE(**FAST).fit(X.astype(np.float32))
    for table in (opened(X.astype(np.float32)), zarr_of(X.astype(np.float32))):
        fitted = TSNE(**FAST).fit(table)
        assert fitted.n_features_in_ == 12
        np.testing.assert_array_equal(fitted.embedding_, plain.embedding_)
        np.testing.assert_array_equal(fitted.transform(table), plain.embedding_)
        np.testing.assert_array_equal(
            Affinities.from_data(table, perplexity=5).values,
            Affinities.from_data(X.astype(np.float32), perplexity=5).values,
        )


def test_the_referee_takes_them_too(tmp_path: Path) -> None:
    Y = X[:, :2].astype(np.float64)
    np.save(tmp_path / "X.npy", X)
    rows: Any = io.open_rows(tmp_path / "X.npy")
    assert quality.neighbor_preservation(rows, Y) == quality.neighbor_preservation(X, Y)
    cells = backed_cells(tmp_path / "cells.h5ad", COUNTS)
    found = quality.report(cells.X, Y, n_neighbors=5, perplexity=5)
    expected = quality.report(COUNTS, Y, n_neighbors=5, perplexity=5)
    np.testing.assert_array_equal(found.kept, expected.kept)
    cells.file.close()


def test_one_piece_is_mapped(opened: Callable[..., Any], tmp_path: Path) -> None:
    cells = backed_cells(tmp_path / "cells.h5ad", X.astype(np.float32))
    np.save(tmp_path / "X.npy", X.astype(np.float16))
    for table in (
        opened(X.astype(np.float16)),
        opened(X.astype(np.uint8)),
        cells.X,
        io.open_rows(tmp_path / "cells.h5ad"),
        io.open_rows(tmp_path / "X.npy"),
    ):
        reached = in_reach(table)
        assert isinstance(reached, np.memmap)
        assert reached is getattr(table, "mapped", reached)
        assert reached.dtype == table.dtype
        np.testing.assert_array_equal(reached, X)
    of_cells = in_reach(cells.X)
    cells.file.close()
    np.testing.assert_array_equal(of_cells, X)


def test_rows_are_read_by_nobody_else(
    opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = opened(X.astype(np.float16))

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("read through HDF5")

    for reading in ("__getitem__", "__array__", "read_direct"):
        monkeypatch.setattr(h5py.Dataset, reading, refuse)
    for use in DOORS.values():
        use(table)


def test_what_is_being_written_is_read_as_it_is(opened: Callable[..., Any]) -> None:
    table = opened(np.zeros_like(X, dtype=np.float32), "r+")
    table[:] = X  # HDF5 may keep it to itself for now
    reached = in_reach(table)
    np.testing.assert_array_equal(reached, X)
    table[:] = 0
    np.testing.assert_array_equal(reached, X)


@pytest.mark.parametrize("driver", ["core", "fileobj", "stdio"])
def test_other_drivers_read(driver: str, tmp_path: Path) -> None:
    name: Any = streams.BytesIO() if driver == "fileobj" else tmp_path / "X.h5"
    with h5py.File(name, "w") as file:
        file["X"] = X
    with h5py.File(name, "r", driver=None if driver == "fileobj" else driver) as file:
        assert file.driver == driver
        np.testing.assert_array_equal(in_reach(file["X"]), X)


def test_a_name_that_is_another_file_by_now(opened: Callable[..., Any], tmp_path: Path) -> None:
    table = opened(X.astype(np.float32))
    opened(-X.astype(np.float32))
    os.replace(tmp_path / "1.h5", tmp_path / "0.h5")
    np.testing.assert_array_equal(in_reach(table), X)
    (tmp_path / "0.h5").unlink()
    np.testing.assert_array_equal(in_reach(table), X)


def test_numbers_that_begin_at_an_odd_byte(opened: Callable[..., Any]) -> None:
    table = opened(X.astype(np.float64), before=np.ones(3, dtype=np.uint8))
    assert table.id.get_offset() % 8
    reached = in_reach(table)
    assert reached.flags.aligned
    np.testing.assert_array_equal(reached, X)


class CountingStore(zarr.storage.MemoryStore):
    """Counts how often each chunk is fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: Counter[str] = Counter()

    async def get(self, key: str, *rest: Any, **options: Any) -> Any:
        self.fetched[key] += 1
        return await super().get(key, *rest, **options)


@pytest.mark.parametrize("chunks", [(90, 1), (7, 5), (1, 12), (90, 12), (40, 3)])
def test_each_chunk_is_fetched_once(
    chunks: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backed, "BLOCK_NUMBERS", 200)
    store = CountingStore()
    table = zarr.create_array(store, shape=X.shape, dtype=np.uint8, chunks=chunks)
    table[:] = X
    store.fetched.clear()
    reached = in_reach(table)
    assert isinstance(reached, np.ndarray)
    assert reached.dtype == np.uint8
    np.testing.assert_array_equal(reached, X)
    assert set(store.fetched.values()) == {1}
    assert len(store.fetched) == -(-90 // chunks[0]) * -(-12 // chunks[1])


@pytest.mark.parametrize("dtype", [np.float16, np.int16])
def test_no_second_copy(
    dtype: Any, opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backed, "BLOCK_NUMBERS", 1000)
    table = opened(np.ones((20_000, 10), dtype=dtype), chunks=(100, 10), compression="gzip")
    in_reach(table)  # with what h5py loads for the first time
    tracemalloc.start()
    try:
        reached = in_reach(table)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert reached.dtype == (np.float64 if dtype is np.int16 else dtype)
    assert reached.nbytes <= peak < 1.15 * reached.nbytes


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_sparse_rows_of_backed_cells(layout: str, tmp_path: Path) -> None:
    cells = backed_cells(tmp_path / "cells.h5ad", COUNTS.asformat(layout))
    assert issparse(in_reach(cells.X))
    expected = nearest_neighbors(COUNTS, 5, metric="cosine")
    found = nearest_neighbors(cells.X, 5, metric="cosine")
    np.testing.assert_array_equal(found.distances, expected.distances)
    plain = TSNE(**FAST).fit(COUNTS)
    np.testing.assert_array_equal(TSNE(**FAST).fit_transform(cells.X), plain.embedding_)
    np.testing.assert_array_equal(plain.transform(cells.X), plain.embedding_)
    cells.file.close()


def test_a_stored_graph_of_distances(tmp_path: Path) -> None:
    graph = kneighbors_graph(X, 31, mode="distance")
    stored = backed_cells(tmp_path / "graph.h5ad", graph)
    options: dict[str, Any] = {**FAST, "metric": "precomputed", "init": "random"}
    expected = TSNE(**options).fit_transform(graph)
    np.testing.assert_array_equal(TSNE(**options).fit_transform(stored.X), expected)
    stored.file.close()
    graph[7, graph.indices[graph.indptr[7]]] = -1
    wrong = backed_cells(tmp_path / "wrong.h5ad", graph)
    with pytest.raises(ValueError, match="row 7 of the graph has the distance -1"):
        TSNE(**options).fit(wrong.X)
    wrong.file.close()


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("is_backed", [False, True])
def test_cells_themselves_are_refused(door: str, is_backed: bool, tmp_path: Path) -> None:
    cells: Any = anndata.AnnData(X=X.astype(np.float32))
    if is_backed:
        cells = backed_cells(tmp_path / "cells.h5ad", X.astype(np.float32))
    with pytest.raises(TypeError, match=r"X is an AnnData.*acctsne\.scanpy\.tsne.*adata\.X"):
        DOORS[door](cells)


@pytest.mark.parametrize("door", DOORS)
def test_errors_are_those_of_arrays(door: str, opened: Callable[..., Any]) -> None:
    bad = X.astype(np.float32)
    bad[70, 3] = np.nan
    for table in (opened(bad), opened(bad, chunks=(20, 5)), zarr_of(bad)):
        with pytest.raises(ValueError, match="Input X contains NaN"):
            DOORS[door](table)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        DOORS[door](opened(X[0]))
    with pytest.raises(ValueError, match="Complex data not supported"):
        DOORS[door](opened(X.astype(complex)))
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        DOORS[door](opened(X[:0]))


def test_closed_and_damaged_files(opened: Callable[..., Any], tmp_path: Path) -> None:
    table = opened(X)
    cells = backed_cells(tmp_path / "cells.h5ad", COUNTS)
    rows = cells.X
    table.file.close()
    cells.file.close()
    for closed in (table, rows):
        with pytest.raises(ValueError, match="X cannot be read from its file, which may be closed"):
            nearest_neighbors(closed, 5)
    packed = opened(X, "r+", chunks=(90, 12), compression="gzip")
    packed.id.write_direct_chunk((0, 0), b"not what gzip writes")
    packed.file.close()
    with (
        h5py.File(tmp_path / "1.h5", "r") as file,
        pytest.raises(ValueError, match=r"X cannot be read.*or damaged"),
    ):
        nearest_neighbors(file["X"], 5)


def test_more_than_fits(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "large.h5", "w") as file:  # nothing is stored of it
        large = file.create_dataset("X", (2**40, 100), np.float32, chunks=(1000, 100))
        with pytest.raises(MemoryError, match=r"cannot be mapped.*An npy file, or an HDF5"):
            nearest_neighbors(large, 5)


def test_columns_called_like_what_is_looked_for() -> None:
    names = ["to_memory", "file", "chunks", "X", "obsm", "n_obs"]
    table = pandas.DataFrame(X[:, :6].astype(np.float64), columns=names)
    found = nearest_neighbors(table, 5)
    expected = nearest_neighbors(X[:, :6].astype(np.float64), 5)
    np.testing.assert_array_equal(found.distances, expected.distances)
    assert TSNE(**FAST).fit(table).feature_names_in_.tolist() == names
