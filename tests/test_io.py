"""Files in and out: what is read is what was written, and what is wrong is said in one line."""

import gzip
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import numpy.typing as npt
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse
import zarr
from pyarrow import feather

from acctsne import io, nearest_neighbors
from acctsne.files.formats import WRITABLE, read_columns, read_ids
from acctsne.files.h5ad import OBSM_KEY
from acctsne.files.replacing import replacing
from acctsne.pictures.inputs import categories
from acctsne.runtime.optional import require

Array = npt.NDArray[Any]

X = np.random.default_rng(7).normal(size=(12, 3))
LABELS = np.array(list("abcabcabcabc"))
FRAME = pd.DataFrame(X, columns=["u", "v", "w"]).assign(species=LABELS)


def save_csv(path: Path) -> None:
    FRAME.to_csv(path, index=False)


def save_tsv(path: Path) -> None:
    FRAME.to_csv(path, index=False, sep="\t")


def save_npz(path: Path) -> None:
    np.savez(path, X=X, label=LABELS)


def save_h5ad(path: Path) -> None:
    obs = pd.DataFrame({"species": pd.Categorical(LABELS)}, index=[f"cell{i}" for i in range(12)])
    made = anndata.AnnData(scipy.sparse.csr_matrix(X), obs=obs, obsm={"X_pca": X[:, :2]})
    made.write_h5ad(path)


WRITERS: dict[str, Callable[[Path], None]] = {
    "x.npy": lambda path: np.save(path, X),
    "x.npz": save_npz,
    "x.csv": save_csv,
    "x.csv.gz": save_csv,
    "x.tsv": save_tsv,
    "x.parquet": lambda path: FRAME.to_parquet(path),
    "x.feather": lambda path: FRAME.to_feather(path),
    "x.arrow": lambda path: polars.from_pandas(FRAME).write_ipc(path),
    "x.mtx": lambda path: scipy.io.mmwrite(path, X),
    "x.h5ad": save_h5ad,
}


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    for name, save in WRITERS.items():
        save(tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("name", WRITERS)
def test_what_other_libraries_wrote_is_read(folder: Path, name: str) -> None:
    data = io.read(folder / name)
    dense = data.X.toarray() if scipy.sparse.issparse(data.X) else data.X
    np.testing.assert_allclose(dense, X, rtol=1e-14)
    if name in ("x.npy", "x.mtx", "x.h5ad"):
        assert data.labels is None
    else:
        assert data.labels is not None
        assert data.labels.tolist() == LABELS.tolist()
        assert data.label_name == ("label" if name == "x.npz" else "species")


def test_npy_is_memory_mapped(folder: Path) -> None:
    assert isinstance(io.read(folder / "x.npy").X, np.memmap)


@pytest.mark.parametrize("matrix", [scipy.sparse.csr_matrix, scipy.sparse.csc_matrix])
def test_sparse_npz(tmp_path: Path, matrix: Any) -> None:
    sparse = matrix(np.diag([1.0, 2.0, 3.0]))
    scipy.sparse.save_npz(tmp_path / "x.npz", sparse)
    read = io.read(tmp_path / "x.npz").X
    assert read.format == "csr"
    np.testing.assert_array_equal(read.toarray(), sparse.toarray())


@pytest.mark.parametrize("choice", [{"labels": "species"}, {"key": "X"}])
def test_a_sparse_matrix_has_nothing_to_choose(tmp_path: Path, choice: dict[str, Any]) -> None:
    scipy.sparse.save_npz(tmp_path / "x.npz", scipy.sparse.csr_matrix(X))
    with pytest.raises(io.DataError, match=r"x\.npz: no array '\w+', but one sparse matrix"):
        io.read(tmp_path / "x.npz", **choice)


def test_sparse_mtx_may_be_compressed(tmp_path: Path) -> None:
    sparse = scipy.sparse.coo_matrix(np.diag([1.0, 2.0, 3.0]))
    scipy.io.mmwrite(tmp_path / "x.mtx", sparse)
    (tmp_path / "x.mtx.gz").write_bytes(gzip.compress((tmp_path / "x.mtx").read_bytes()))
    np.testing.assert_array_equal(io.read(tmp_path / "x.mtx.gz").X.toarray(), sparse.toarray())


def test_h5ad_keys(folder: Path) -> None:
    data = io.read(folder / "x.h5ad", key="X_pca", labels="species")
    np.testing.assert_array_equal(data.X, X[:, :2])
    assert data.labels is not None
    assert data.labels.tolist() == LABELS.tolist()


def test_zarr(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(5, 3))
    np.testing.assert_array_equal(io.read(tmp_path / "x.zarr").X, X)
    group = zarr.open_group(tmp_path / "two.zarr", mode="w")
    group.create_array("A", data=X)
    group.create_array("B", data=X[:, :2])
    np.testing.assert_array_equal(io.read(tmp_path / "two.zarr", key="B").X, X[:, :2])
    sparse = scipy.sparse.csr_matrix(X)
    with warnings.catch_warnings(action="ignore"):  # of which zarr format is the coming one
        anndata.AnnData(sparse, obsm={"X_pca": X[:, 1:]}).write_zarr(tmp_path / "cells.zarr")
    np.testing.assert_array_equal(io.read(tmp_path / "cells.zarr", key="X_pca").X, X[:, 1:])
    for name, key, said in [
        ("two", None, r"2 two-dimensional arrays \(A, B\); choose one by key"),
        ("two", "C", "no array 'C'; there are A, B"),
        ("cells", None, "'X' is not a dense array; choose one of X_pca by key"),
        ("x", "A", "is one array, which has no key; got 'A'"),
        ("none", None, "no such file"),
    ]:
        for read in (io.read, io.open_rows):
            with pytest.raises(io.DataError, match=rf"{name}\.zarr: {said}"):
                read(tmp_path / f"{name}.zarr", key=key)
    with pytest.raises(io.DataError, match=r"cannot write '\.zarr'; choose one of \.npy"):
        io.write(tmp_path / "map.zarr", X)


# Parts of a file.


def save_parts(folder: Path) -> dict[str, io.StoredRows]:
    np.save(folder / "x.npy", X)
    FRAME.to_parquet(folder / "x.parquet", row_group_size=5)
    zarr.create_array(folder / "x.zarr", data=X, chunks=(5, 2))
    made = anndata.AnnData(X, obsm={"few": X[:, :2]})
    made.write_h5ad(folder / "x.h5ad")
    made.write_h5ad(folder / "packed.h5ad", compression="gzip")
    return {
        name: io.open_rows(folder / name)
        for name in ("x.npy", "x.parquet", "x.zarr", "x.h5ad", "packed.h5ad")
    }


@pytest.mark.parametrize("rows", [(0, 12), (0, 5), (3, 4), (4, 11), (10, 12), (7, 7), (12, 12)])
def test_a_part_of_a_file(tmp_path: Path, rows: tuple[int, int]) -> None:
    for name, stored in save_parts(tmp_path).items():
        assert stored.shape == X.shape
        assert stored.dtype == X.dtype
        part = stored.read(*rows)
        assert part.dtype == X.dtype, name
        np.testing.assert_array_equal(part, X[slice(*rows)])
        assert (stored.mapped is not None) == (name in ("x.npy", "x.h5ad"))


def test_a_choice_within_a_part(tmp_path: Path) -> None:
    save_parts(tmp_path)
    few = io.open_rows(tmp_path / "packed.h5ad", key="few")
    np.testing.assert_array_equal(few.read(3, 9), X[3:9, :2])
    dropped = io.open_rows(tmp_path / "x.parquet", drop=["v"])
    np.testing.assert_array_equal(dropped.read(3, 9), X[3:9, [0, 2]])
    single = FRAME[["u", "w"]].astype(np.float32)
    single.to_parquet(tmp_path / "single.parquet")
    assert io.open_rows(tmp_path / "single.parquet", columns=["w"]).read().dtype == np.float32


def test_files_that_cannot_be_read_in_parts(folder: Path) -> None:
    for name in ("x.csv", "x.csv.gz", "x.npz", "x.feather", "x.mtx"):
        said = r"all rows are read or none.* one of \.npy, \.parquet, \.h5ad, \.zarr"
        with pytest.raises(io.DataError, match=said):
            io.open_rows(folder / name)
    with pytest.raises(io.DataError, match=r"X is stored as a csr_matrix.* obsm by key"):
        io.open_rows(folder / "x.h5ad")
    with pytest.raises(io.DataError, match="no 'X_umap' in obsm; there are X_pca"):
        io.open_rows(folder / "x.h5ad", key="X_umap")
    with pytest.raises(io.DataError, match="no column 'colour'"):
        io.open_rows(folder / "x.parquet", columns=["colour"])
    with pytest.raises(io.DataError, match=r"only \.npz, \.h5ad, \.zarr files have arrays"):
        io.open_rows(folder / "x.npy", key="X")
    polars.DataFrame({"a": [1.0, 2.0, 3.0], "b": [3.0, 4.0, None]}).write_parquet(
        folder / "holes.parquet", row_group_size=2
    )
    rows = io.open_rows(folder / "holes.parquet")
    assert rows.read(0, 2).tolist() == [[1.0, 3.0], [2.0, 4.0]]
    with pytest.raises(io.DataError, match=r"holes\.parquet: row 3, column 'b': missing value"):
        rows.read(1, 3)
    (folder / "x.parquet").write_text("This is a letter.")
    with pytest.raises(io.DataError, match="not a readable parquet file"):
        io.open_rows(folder / "x.parquet")


def test_arrow_files_of_either_form(tmp_path: Path) -> None:
    # Hugging Face's datasets are kept as streams.
    table = pa.Table.from_pandas(FRAME)
    for begin in (pa.ipc.new_file, pa.ipc.new_stream):
        with begin(str(tmp_path / "x.arrow"), table.schema) as file:
            file.write_table(table, max_chunksize=5)
        data = io.read(tmp_path / "x.arrow")
        np.testing.assert_array_equal(data.X, X)
        assert data.labels is not None
        assert data.labels.tolist() == LABELS.tolist()
    whole = (tmp_path / "x.arrow").read_bytes()
    (tmp_path / "x.arrow").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(io.DataError, match=r"x\.arrow: not a readable arrow file"):
        io.read(tmp_path / "x.arrow")


def test_columns_of_one_name(tmp_path: Path) -> None:
    twice = pa.table([pa.array([1.0, 2.0]), pa.array([3.0, 4.0])], names=["a", "a"])
    pq.write_table(twice, tmp_path / "x.parquet")
    feather.write_feather(twice, tmp_path / "x.feather")
    for name, read in (
        ("x.parquet", io.read),
        ("x.parquet", io.open_rows),
        ("x.feather", io.read),
        ("x.feather", lambda path: read_columns(path, 2)),
    ):
        with pytest.raises(io.DataError, match=rf"{name}: several columns are called 'a'"):
            read(tmp_path / name)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_tables_are_read_by_the_calling_thread_alone(folder: Path) -> None:
    # pyarrow's threads abort a program that ends while they start.
    program = (
        "import os, sys, pyarrow.feather, pyarrow.parquet\n"
        "from acctsne import io\n"
        "def threads(): return len(os.listdir('/proc/self/task'))\n"
        "before = threads()\n"
        "for path in sys.argv[1:]: io.read(path)\n"
        "io.open_rows(sys.argv[1]).read()\n"
        "assert threads() == before, (before, threads())\n"
    )
    files = [str(folder / name) for name in ("x.parquet", "x.feather")]
    subprocess.run([sys.executable, "-c", program, *files], check=True)


# How tables are understood.


def table(folder: Path, text: str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "features", "labels"),
    [
        ("1,2\n3,4\n", [[1, 2], [3, 4]], None),
        ("a,b\n1,2\n3,4\n", [[1, 2], [3, 4]], None),
        ("1,2,x\n3,4,y\n", [[1, 2], [3, 4]], ["x", "y"]),
        ("a,label\n1,7\n3,9\n", [[1], [3]], [7, 9]),
        ("0,1,label\n1,2,x\n3,4,y\n", [[1, 2], [3, 4]], ["x", "y"]),
        # As pandas writes an array: numbers for names, and the names of rows first.
        (",0,1\n0,1.5,2\n1,3,4\n", [[1.5, 2], [3, 4]], None),
        ("0,1,2,3,4\n5,6,7,8,9\n", [[5, 6, 7, 8, 9]], None),
        ("0,1\n1,0\n", [[0, 1], [1, 0]], None),
        # A single row is a sample if any of its cells is a number.
        ("0,1,2,3,4\n", [[0, 1, 2, 3, 4]], None),
        ("x,1,2\n", [[1, 2]], ["x"]),
        # As R's write.csv does.
        ('"","u","v"\n"r1",1,2\n"r2",3,4\n', [[1, 2], [3, 4]], None),
        ("a;b\n1;2\n3;4\n", [[1, 2], [3, 4]], None),
        ('a,name\n1,"x, y"\n3,"z"\n', [[1], [3]], ["x, y", "z"]),
        ("\ufeffa,b\n1,2\n\n3,4\n", [[1, 2], [3, 4]], None),
        ("\na,b\n1,2\n3,4\n", [[1, 2], [3, 4]], None),
        ("# a,b\n1e3,-2\n3,4\n", [[1000, -2], [3, 4]], None),
        # One row says little about a column.
        ("a,kind\n1,\n3,x\n5,y\n", [[1], [3], [5]], [None, "x", "y"]),
        ("a,kind\n1,NA\n3,x\n", [[1], [3]], [None, "x"]),
        ("1,2,\n3,4,x\n5,6,y\n", [[1, 2], [3, 4], [5, 6]], [None, "x", "y"]),
        ("a,kind\n1,7\n3,x\n5,y\n2,z\n", [[1], [3], [5], [2]], ["7", "x", "y", "z"]),
        ("a,label\n1,NaN\n3,9\n", [[1], [3]], [None, 9]),
        # Sodium is no missing value.
        ("a,ion\n1,Na\n3,K\n", [[1], [3]], ["Na", "K"]),
        # Where the comma is the decimal sign.
        ("a;b\n1,5;2\n-3,25;4e1\n", [[1.5, 2], [-3.25, 40]], None),
        ("1,5;2,5\n3,5;4,5\n", [[1.5, 2.5], [3.5, 4.5]], None),
        ("a;kind\n1,5;x, y\n3;z\n", [[1.5], [3]], ["x, y", "z"]),
        # Tables that were saved as csv with tabs in them.
        ("a\tb\n1\t2\n3\t4\n", [[1, 2], [3, 4]], None),
        ("1,5\t2\n3\t4,5\n", [[1.5, 2], [3, 4.5]], None),
        ('a,kind\n1,"x\ty"\n3,z\n', [[1], [3]], ["x\ty", "z"]),
        # A cell of several lines.
        ('a,kind\n1,"x\ny"\n3,"a ""b"""\n', [[1], [3]], ["x\ny", 'a "b"']),
        # Numbers of rows are no features.
        ("id,a,b\n7,1,2\n9,3,4\n", [[1, 2], [3, 4]], None),
        ("Index,a\n3,1\n4,3\n", [[1], [3]], None),
        ("index,a\n3,1\n5,3\n", [[3, 1], [5, 3]], None),
        # Of several names of labels one is the label, and none is a feature.
        ("a,class,target\n1,7,x\n3,9,y\n", [[1], [3]], ["x", "y"]),
        ("a,class,target\n1,7,5\n3,9,6\n", [[1], [3]], [7, 9]),
    ],
)
def test_header_and_labels_are_detected(
    tmp_path: Path, text: str, features: list[list[float]], labels: list[str] | None
) -> None:
    data = io.read(table(tmp_path, text))
    assert data.X.tolist() == features
    assert (None if data.labels is None else data.labels.tolist()) == labels


@pytest.mark.parametrize(
    ("text", "argument", "what"),
    [
        ("a,b\n1,2\n3,4\n", "header", "the first row names the columns"),
        ("1,2\n3,4\n", "header", "the first row is a sample and names no columns"),
        (",0,1\n0,1,2\n1,3,4\n", "columns", "the first column, which has no name, is left out"),
        ("id,a\n7,1\n9,3\n", "columns", "column 'id' numbers the rows and is left out"),
        ("row,a\n1,1\n2,3\n", "columns", "column 'row' numbers the rows and is left out"),
        ("a;b\n1;2\n3;4\n", "delimiter", "cells are separated by semicolons"),
        ("a\tb\n1\t2\n3\t4\n", "delimiter", "cells are separated by tabs"),
        ("a;b\n1,5;2\n3;4\n", "delimiter", "numbers have a decimal comma"),
        ("a,class,label\n1,7,5\n3,9,6\n", "labels", "column 'label' has the name of labels, too"),
    ],
)
def test_what_is_guessed_is_told(tmp_path: Path, text: str, argument: str, what: str) -> None:
    found = io.read(table(tmp_path, text)).guesses
    assert any(guess.argument == argument and what in guess.what for guess in found), found


def test_what_is_said_is_not_guessed(tmp_path: Path) -> None:
    path = table(tmp_path, ",id,a,class,target\n0,1,2,3,4\n1,2,3,4,5\n")
    said = io.read(path, header=True, columns=["id", "a"], labels="class", delimiter=",")
    assert said.guesses == ()
    assert said.X.tolist() == [[1, 2], [2, 3]]


@pytest.mark.parametrize("read", [io.read, io.open_rows])
def test_guess_of_cells(read: Callable[..., Any], tmp_path: Path) -> None:
    made = anndata.AnnData(X, obsm={"X_pca": X[:, 1:]})
    made.write_h5ad(tmp_path / "x.h5ad")
    made.write_h5ad(tmp_path / "packed.h5ad", compression="gzip")
    with warnings.catch_warnings(action="ignore"):  # of which zarr format is the coming one
        made.write_zarr(tmp_path / "x.zarr")
    for path in (tmp_path / "x.h5ad", tmp_path / "packed.h5ad", tmp_path / "x.zarr"):
        (found,) = read(path).guesses
        assert found.argument == "key"
        assert found.what == "X is the data, not X_pca", path
        assert read(path, key="X_pca").guesses == ()


def test_guesses_in_other_formats(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", X=X, Z=X, label=LABELS, y=LABELS)
    first, second = io.read(tmp_path / "x.npz").guesses
    assert first == ("key", "of the arrays X, Z, label, y, X is the data")
    assert second == ("labels", "of the arrays label, y, none is taken for labels")
    assert io.read(tmp_path / "x.npz", key="X", labels="y").guesses == ()
    numbered = FRAME.assign(index=np.arange(5, 17))
    numbered.to_parquet(tmp_path / "x.parquet")
    for found in (io.read(tmp_path / "x.parquet"), io.open_rows(tmp_path / "x.parquet")):
        assert [guess.argument for guess in found.guesses] == ["columns"]
    assert io.read(tmp_path / "x.parquet").X.shape == (12, 3)
    np.testing.assert_array_equal(io.open_rows(tmp_path / "x.parquet").read(), X)


def test_a_delimiter_of_ones_own(tmp_path: Path) -> None:
    path = table(tmp_path, "a|b\n1,5|2\n3|4\n")
    assert io.read(path, delimiter="|").X.tolist() == [[1.5, 2], [3, 4]]


def test_rows_may_be_longer_than_a_cell(tmp_path: Path) -> None:
    X = np.arange(3 * 40_000.0).reshape(3, -1) / 7
    path = tmp_path / "wide.csv"
    path.write_text("".join(",".join(f"{v:.3f}" for v in row) + "\n" for row in X))
    assert np.allclose(io.read(path).X, X, atol=1e-3)


def test_a_cell_that_is_too_long_is_named(tmp_path: Path) -> None:
    path = tmp_path / "spaces.csv"
    path.write_text("1,2\n" + "3 " * 70_000 + ",4\n")
    with pytest.raises(io.DataError, match=r"row 2: field larger .*131072.* separated by ','"):
        io.read(path)


def test_text_is_told_by_many_rows(tmp_path: Path) -> None:
    blank = "".join(f"{i},\n" for i in range(3000))
    data = io.read(table(tmp_path, f"a,kind\n{blank}5,x\n6,y\n"))
    assert data.label_name == "kind"
    assert data.X.shape == (3002, 1)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("b,id,kind,a\n1,7,x,2\n3,9,y,4\n", ("b", "a")),
        ("1,2\n3,4\n", None),
        ("a,a\n1,2\n3,4\n", None),  # which do not tell them apart
    ],
)
def test_names_of_features(tmp_path: Path, text: str, names: tuple[str, ...] | None) -> None:
    assert io.read(table(tmp_path, text)).feature_names == names
    if names is not None:
        pd.read_csv(tmp_path / "t.csv").to_parquet(tmp_path / "t.parquet")
        assert io.read(tmp_path / "t.parquet").feature_names == names


def test_columns_can_be_named(tmp_path: Path) -> None:
    path = table(tmp_path, "id,a,b,kind,group\nq,1,2,x,5\nr,3,4,y,6\n")
    data = io.read(path, labels="kind", drop=["id", "group"])
    assert data.X.tolist() == [[1, 2], [3, 4]]
    assert data.label_name == "kind"
    assert io.read(path, columns=["b"], labels="group").X.tolist() == [[2], [4]]


def test_detection_can_be_overruled(tmp_path: Path) -> None:
    path = table(tmp_path, "0,1\n1,2\n")
    assert io.read(path, header=True).X.tolist() == [[1, 2]]
    path = table(tmp_path, "0,1,2,3,4\n5,6,7,8,9\n")
    assert io.read(path, header=False).X.tolist() == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def test_labels_in_their_own_file(tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", LABELS)
    assert io.read_labels(tmp_path / "y.npy", 12).tolist() == LABELS.tolist()
    for text in ("9\n10\n9\n", "digit\n9\n10\n9\n"):
        assert io.read_labels(table(tmp_path, text), 3).tolist() == [9, 10, 9]
    both = table(tmp_path, "a,class\n1,x\n2,y\n")
    assert io.read_labels(both, 2).tolist() == ["x", "y"]
    with pytest.raises(io.DataError, match="2 labels for 3 samples"):
        io.read_labels(both, 3)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("species\na\n\nb\n", ["a", None, "b"]),
        ("digit\n9\n\n10\n", [9, None, 10]),
        ("digit\n9\n10\n\n", [9, 10, None]),
        ("a\n\na\n", ["a", None, "a"]),
        ("9\n10\n\n", [9, 10, None]),
        ("a\nb\na\n\n\n", ["a", "b", "a"]),
        ("0\na\nb\nb\n", ["a", "b", "b"]),  # as pandas writes a column without a name
        ("01\n1\n1_0\n", ["01", "1", "1_0"]),
        ("9\nNA\n10\n", [9, None, 10]),
    ],
)
def test_a_label_a_line(tmp_path: Path, text: str, labels: list[Any]) -> None:
    assert io.read_labels(table(tmp_path, text, "y.txt"), 3).tolist() == labels


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("9\n10\n11\n12\n", "4 labels for 3 samples; the first line, '9', was taken for a label"),
        ("a\nb\nb\na\n", "4 labels for 3 samples; the first line, 'a', was taken for a label"),
        ("digit\n9\n10\n", "2 labels for 3 samples; the first line, 'digit', was taken for a head"),
        ("a\n\n\n\na\n", "5 labels for 3 samples; .* blank lines, 3 of them, for missing labels"),
        ("species\na\nb\n\n", "is 'species' a header and the blank line at the end a missing"),
        ("\n\n", "the file is empty"),
    ],
)
def test_labels_that_do_not_fit(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(io.DataError, match=rf"y\.txt: {said}"):
        io.read_labels(table(tmp_path, text, "y.txt"), 3)


@pytest.mark.parametrize("name", ["y.txt", "y.csv"])
def test_labels_that_are_not_utf8(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes("Käfer\n".encode("latin-1"))
    with pytest.raises(io.DataError, match=rf"{name}: not a readable \w+ file: 'utf-8' codec"):
        io.read_labels(tmp_path / name, 1)


def test_ids_are_text(tmp_path: Path) -> None:
    np.save(tmp_path / "ids.npy", [1, 10])
    assert read_ids(tmp_path / "ids.npy", 2).tolist() == ["1", "10"]
    assert read_ids(table(tmp_path, "01\n1\n"), 2).tolist() == ["01", "1"]
    assert read_ids(table(tmp_path, "a,class\n1,07\n2,7\n"), 2).tolist() == ["07", "7"]
    with pytest.raises(io.DataError, match=r"t\.csv: row 2 has no id"):
        read_ids(table(tmp_path, "1\n\n2\n"), 3)


# What is wrong is said in one line with file, row and column.


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n3,oops\n", "t.csv: row 3, column 'b': 'oops' is not a number"),
        ("a,b\n1,2\n3,\n", "t.csv: row 3, column 'b': missing value"),
        ("a,b\n1,2\n3,NA\n", "t.csv: row 3, column 'b': missing value, written NA"),
        ("a,b\nNA,2\n3,4\n5,6\n", "t.csv: row 2, column 'a': missing value, written NA"),
        ("a;b\n1,5;2.5\n", "numbers with a decimal comma, '1,5', and with a decimal point, '2.5'"),
        ("a,b\n1,nan\n3,4\n", "t.csv: row 2, column 'b': missing value, written nan"),
        ("1,2\n3,inf\n", "t.csv: row 2, column 'column 2': inf is not a finite number"),
        ("a,b\n1,2\n3,4,5\n", "t.csv: row 3 has 3 columns instead of 2"),
        ("a,b\n1,2\n3\n", "t.csv: row 3 has 1 columns instead of 2"),
        ("a,kind\n1,x\n3,y,5\n", "t.csv: row 3 has 3 columns instead of 2"),
        ("a,b\n1\n3,4\n", "t.csv: row 2 has 1 columns instead of 2"),
        ("", "t.csv: the file is empty"),
        ("a,b\n", "t.csv: a header and no rows"),
        ("1,2\n1_000,4\n", "t.csv: row 2, column 'column 1': '1_000' is not a number"),
        ("1,2\n\u0663,4\n", "t.csv: row 2, column 'column 1': '\u0663' is not a number"),
        # Quotes that do not close would take the rows below into their cell.
        ('a,kind\n1,x\n3,"y\n5,z\n', "t.csv: row 3: a cell begins with a quote and does not end"),
        ('a,kind\n1,"x\n3,"y\n5,z\n', "t.csv: row 2: a cell begins with a quote and does not end"),
        ('a,kind\r1,x\r3,"y\r5,z\r', "t.csv: row 3: a cell begins with a quote and does not end"),
        ('a,b\n1,2\n3,"4' + "\n5,6" * 1000, "t.csv: row 3: a cell begins with a quote"),
        ("1|2\n3|4\n", "holds text, and is the only one; cells are taken to be separated by ','"),
        ("id,kind,a\nq,x,1\nr,y,2\n", "t.csv: column 'id', 'kind' holds text"),
        ("kind\nx\ny\n", "t.csv: column 'kind' holds text"),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(io.DataError) as caught:
        io.read(table(tmp_path, text))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_quotes_in_columns_that_are_left_out(tmp_path: Path) -> None:
    path = table(tmp_path, 'a,kind,note\n1,x,"y\n3,z,w\n')
    with pytest.raises(io.DataError, match="row 2: a cell begins with a quote"):
        io.read(path, labels="kind", drop=["note"])


def with_a_hole(value: float) -> Array:
    holed = X.copy()
    holed[4, 1] = value
    return holed


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros(5), "an array of shape (5,)"),
        (np.zeros((2, 3, 4)), "an array of shape (2, 3, 4)"),
        (np.zeros((0, 3)), "an empty array of shape (0, 3)"),
        (np.full((3, 2), "a"), "values of type <U1; numbers are needed"),
        (np.zeros((3, 2), dtype=complex), "values of type complex128"),
        (with_a_hole(np.nan), "row 5, column 2: missing value"),
        (with_a_hole(-np.inf), "row 5, column 2: -inf is not a finite number"),
    ],
)
def test_bad_arrays(tmp_path: Path, array: Array, said: str) -> None:
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(io.DataError) as caught:
        io.read(tmp_path / "x.npy")
    assert f"x.npy: {said}" in str(caught.value)


def test_rows_are_counted_over_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acctsne.files.checks.ROWS_AT_ONCE", 2)
    scipy.sparse.save_npz(tmp_path / "x.npz", scipy.sparse.csr_matrix(with_a_hole(np.nan)))
    np.save(tmp_path / "x.npy", with_a_hole(np.nan))
    for name in ("x.npz", "x.npy"):
        with pytest.raises(io.DataError, match=r"row 5, column 2: missing value"):
            io.read(tmp_path / name)


@pytest.mark.parametrize(
    ("step", "read"),
    [
        ("matrix_market._dense", lambda folder: io.read(folder / "x.mtx")),
        ("delimited._sample", lambda folder: read_columns(folder / "x.csv", 2)),
    ],
)
def test_mistakes_of_ours_are_not_told_as_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, read: Callable[[Path], Any]
) -> None:
    def mistaken(*_: Any) -> None:
        raise AttributeError("a mistake of ours")

    monkeypatch.setattr(f"acctsne.files.{step}", mistaken)
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,4\n")
    header = "%%MatrixMarket matrix array real general"
    (tmp_path / "x.mtx").write_text(f"{header}\n2 2\n1\n2\n3\n4\n")
    with pytest.raises(AttributeError, match="a mistake of ours"):
        read(tmp_path)


@pytest.mark.parametrize("name", ["x.npy", "x.mtx"])
def test_files_without_room_for_labels(folder: Path, name: str) -> None:
    with pytest.raises(io.DataError, match=f"{name}: holds no labels; give them in a file of"):
        io.read(folder / name, labels="y")


def test_arrays_that_may_both_be_labels(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, X=np.eye(3), y=[1, 2, 3], label=[4, 5, 6])
    assert io.read(path).labels is None
    chosen = io.read(path, labels="y").labels
    assert chosen is not None
    assert chosen.tolist() == [1, 2, 3]


def test_missing_values_elsewhere(tmp_path: Path) -> None:
    scipy.sparse.save_npz(tmp_path / "x.npz", scipy.sparse.csr_matrix(with_a_hole(np.nan)))
    with pytest.raises(io.DataError, match=r"x\.npz: row 5, column 2: missing value"):
        io.read(tmp_path / "x.npz")
    polars.DataFrame({"a": [1.0, 2.0], "b": [3.0, None]}).write_parquet(tmp_path / "x.parquet")
    with pytest.raises(io.DataError, match=r"x\.parquet: row 2, column 'b': missing value"):
        io.read(tmp_path / "x.parquet")


@pytest.mark.parametrize("name", ["x.parquet", "x.feather"])
@pytest.mark.parametrize("others", [{"a": [1.0, 2.0]}, {"a": [1.0, 2.0], "kind": ["p", "q"]}])
def test_columns_of_times(tmp_path: Path, name: str, others: dict[str, Any]) -> None:
    frame = pd.DataFrame({**others, "when": pd.to_datetime(["2026-01-31", "2026-02-01"])})
    path = tmp_path / name
    frame.to_parquet(path) if name == "x.parquet" else frame.to_feather(path)
    with pytest.raises(io.DataError, match=f"{name}: column 'when' holds times; name the column"):
        io.read(path)
    with pytest.raises(io.DataError, match=f"{name}: column 'when' holds times"):
        io.read(path, columns=["a", "when"])
    np.testing.assert_array_equal(io.read(path, drop=["when"]).X, [[1.0], [2.0]])
    if "kind" not in others:
        assert io.read(path, labels="when").label_name == "when"


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_decimals_are_numbers(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"prices{suffix}"
    price = pa.array([Decimal("1.25"), Decimal("2.50"), Decimal("4.00")])
    write_table(path, {"price": price, "count": [1.0, 2.0, 4.0]})
    data = io.read(path)
    assert data.labels is None
    assert data.X.tolist() == [[1.25, 1.0], [2.5, 2.0], [4.0, 4.0]]
    if suffix == ".parquet":
        assert io.open_rows(path).read(0, 3).tolist() == data.X.tolist()
    assert read_columns(path, 3)["price"].tolist() == [1.25, 2.5, 4.0]


@pytest.mark.parametrize("values", [[[1.0, 2.0]] * 3, [{"a": 1}] * 3])
@pytest.mark.parametrize("read", [io.read, io.open_rows])
def test_columns_of_several_values(tmp_path: Path, values: list[Any], read: Any) -> None:
    path = tmp_path / "table.parquet"
    for name in ("vector", "label"):
        write_table(path, {name: values, "count": [1, 2, 4]})
        said = rf"table\.parquet: column '{name}' holds several values in each row"
        with pytest.raises(io.DataError, match=said):
            read(path)
    read(path, drop=["label"])


def write_table(path: Path, columns: dict[str, Any]) -> None:
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        feather.write_feather(pa.table(columns), path)


@pytest.mark.parametrize("name", WRITERS)
def test_truncated_files(folder: Path, name: str) -> None:
    path = folder / name
    whole = path.read_bytes()
    # Within a number of the last but one row; binary formats have their tables at the end.
    path.write_bytes(whole[: -30 if name in ("x.csv", "x.tsv") else -50])
    with pytest.raises(io.DataError) as caught:
        io.read(path)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.parquet", "x.feather", "x.h5ad", "x.mtx"])
def test_files_of_another_kind(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("This is a letter.\n")
    with pytest.raises(io.DataError, match=f"{name}: not a readable"):
        io.read(tmp_path / name)


def test_pickles_are_refused(tmp_path: Path) -> None:
    pickled = np.array([[1, "a"]], dtype=object)
    np.save(tmp_path / "x.npy", pickled, allow_pickle=True)
    with pytest.raises(io.DataError, match=r"x\.npy: not a readable npy file: .*Python objects"):
        io.read(tmp_path / "x.npy")
    np.savez(tmp_path / "x.npz", X=pickled)
    with pytest.raises(io.DataError, match=r"x\.npz: .*allow_pickle=False"):
        io.read(tmp_path / "x.npz")


def test_what_is_not_there(folder: Path) -> None:
    with pytest.raises(io.DataError, match="no such file"):
        io.read(folder / "absent.npy")
    with pytest.raises(io.DataError, match=r"unknown suffix '\.xls'; known are \.npy"):
        io.read(folder / "x.xls")
    with pytest.raises(io.DataError, match="no column 'colour'; there are 'u', 'v', 'w'"):
        io.read(folder / "x.csv", labels="colour")
    with pytest.raises(io.DataError, match="no array 'Z'; there are X, label"):
        io.read(folder / "x.npz", key="Z")
    with pytest.raises(io.DataError, match="no 'X_umap' in obsm; there are X_pca"):
        io.read(folder / "x.h5ad", key="X_umap")
    with pytest.raises(io.DataError, match="no 'kind' in obs"):
        io.read(folder / "x.h5ad", labels="kind")
    np.savez(folder / "two.npz", A=X, B=X)
    with pytest.raises(io.DataError, match="2 two-dimensional arrays among A, B; choose one"):
        io.read(folder / "two.npz")


# Writing.


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [name for name in WRITERS if not name.endswith(".gz")])
def test_round_trip(tmp_path: Path, name: str, dtype: Any) -> None:
    Y = X.astype(dtype)
    io.write(tmp_path / name, Y, labels=LABELS)
    back = io.read(tmp_path / name, key=OBSM_KEY if name == "x.h5ad" else None)
    np.testing.assert_array_equal(back.X.astype(dtype), Y)
    if name not in ("x.npy", "x.mtx", "x.h5ad"):
        assert back.labels is not None
        assert back.labels.tolist() == LABELS.tolist()


def test_labels_with_delimiters_come_back(tmp_path: Path) -> None:
    labels = np.array(['a,b\t"c"', "d\ne"] * 6)
    for name in ("x.csv", "x.tsv"):
        io.write(tmp_path / name, X, labels=labels)
        read = io.read(tmp_path / name).labels
        assert read is not None
        assert read.tolist() == labels.tolist()


@pytest.mark.parametrize(
    "name", ["x.npz", "x.csv", "x.tsv", "x.parquet", "x.arrow", "x.feather", "x.h5ad"]
)
@pytest.mark.parametrize("known", [["a", "b", "01"], [9, 10, 7]])
def test_missing_labels_stay_missing(tmp_path: Path, name: str, known: list[Any]) -> None:
    io.write(tmp_path / name, X[:5], labels=[*known, None, np.nan])
    key = OBSM_KEY if name == "x.h5ad" else None
    back = io.read(tmp_path / name, key=key, labels="label").labels
    assert back is not None
    assert back.tolist() == [*known, None, None]
    found = categories(back, 5)
    assert len(found.names) == 3
    assert found.missing.tolist() == [False] * 3 + [True] * 2


def test_missing_labels_of_other_libraries(tmp_path: Path) -> None:
    frame = pd.DataFrame(X[:3], columns=["u", "v", "w"])
    for column in (["b", None, "a"], pd.array([10, None, 9], dtype="Int64")):
        labels = pd.Series(column)
        frame.assign(label=labels).to_parquet(tmp_path / "x.parquet")
        read = io.read(tmp_path / "x.parquet").labels
        assert read is not None
        assert read.tolist() == [labels[0], None, labels[2]]
    cells = anndata.AnnData(X[:3])
    cells.obs["kind"] = pd.Categorical(["b", None, "a"])
    cells.write_h5ad(tmp_path / "x.h5ad")
    read = io.read(tmp_path / "x.h5ad", labels="kind").labels
    assert read is not None
    assert read.tolist() == ["b", None, "a"]


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.csv", "x.parquet", "x.h5ad", "x.mtx"])
def test_what_is_written_is_checked(tmp_path: Path, name: str) -> None:
    for labels in (LABELS[:5], [*LABELS, "a"], LABELS[:, None], "a"):
        with pytest.raises(ValueError, match="labels must have one entry for each of the 12 rows"):
            io.write(tmp_path / name, X, labels=labels)
    for Y in (X[0], FRAME, scipy.sparse.csr_matrix(X), X.astype(complex)):
        with pytest.raises(ValueError, match="Y must be a two-dimensional array of numbers"):
            io.write(tmp_path / name, Y)
    assert not list(tmp_path.iterdir())
    io.write(tmp_path / name, FRAME[["u", "v"]], labels=LABELS.tolist())
    back = io.read(tmp_path / name, key=OBSM_KEY if name == "x.h5ad" else None)
    np.testing.assert_array_equal(back.X, X[:, :2])


class Wordless:
    """An object that has no text."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize("suffix", WRITABLE)
@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["a\0b", "c", "d"], r"label 1, 'a\\x00b', is not text"),
        (np.array(["c", "\ud800", "d"]), r"label 2, '\\ud800', is not text"),
        ([Wordless(), 1, 2], "column 'label' cannot be made text: no words"),
        ([Decimal("sNaN"), 1, 2], "column 'label' cannot be made text"),
        ([[1], [2, 3], [4]], "labels are no array|column 'label' cannot"),
        (np.zeros(3, dtype=[("a", int), ("b", float)]), "labels of type"),
        (np.array([b"abcd"] * 3, dtype="V4"), "labels of type"),
    ],
)
def test_labels_that_no_file_can_hold(tmp_path: Path, suffix: str, labels: Any, said: str) -> None:
    path = tmp_path / f"map{suffix}"
    with pytest.raises(ValueError, match=rf"map\{suffix}: ({said})"):
        io.write(path, X[:3], labels=labels)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", WRITABLE)
def test_labels_of_any_kind_come_back(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"map{suffix}"
    huge = [str(10**40), "-1", str(2**64)]
    for labels, expected in (
        ([10**40, -1, 2**64], huge),
        (np.ma.masked_array([7, 8, 9], mask=[False, True, False]), [7, None, 9]),
        (["a\rb", "c\nd", 'e"'], ["a\rb", "c\nd", 'e"']),
        ([1 + 2j, None, "x"], ["(1+2j)", None, "x"]),
        # As h5py gives text.
        (np.array([b"b", b"a", b"c\xff"]), ["b", "a", "c\\xff"]),
        # Integers of which some are missing, which NumPy has not.
        (pd.Series([7, None, 9], dtype="Int64"), [7, None, 9]),
        (polars.Series([7, None, 9]), [7, None, 9]),
        (pa.array([7, None, 9]), [7, None, 9]),
    ):
        io.write(path, X[:3], labels=labels)
        if suffix in (".npy", ".mtx"):
            np.testing.assert_array_equal(io.read(path).X, X[:3])
            continue
        back = io.read(path, key=OBSM_KEY if suffix == ".h5ad" else None, labels="label")
        assert back.labels is not None
        assert back.labels.tolist() == expected


@pytest.mark.parametrize("suffix", WRITABLE)
def test_numbers_of_any_kind_come_back(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"map{suffix}"
    for Y in (X.astype(np.longdouble), X.astype(">f8"), np.asfortranarray(X), X[::-2], X > 0):
        io.write(path, Y)
        back = io.read(path, key=OBSM_KEY if suffix == ".h5ad" else None)
        np.testing.assert_array_equal(back.X, Y)
    for wrong in (X[:0], X[:, :0], [[1, 2], [3]]):
        with pytest.raises(ValueError, match=rf"map\{suffix}: Y "):
            io.write(path, wrong)


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_a_label_longer_than_a_cell(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(ValueError, match=rf"map\{suffix}: label 2, 'xxx.* is longer than"):
        io.write(tmp_path / f"map{suffix}", X[:2], labels=["a", "x" * 200_000])


def test_h5ad_keeps_all_else(folder: Path) -> None:
    io.write(folder / "out.h5ad", X[:, :2], source=folder / "x.h5ad")
    before, after = (anndata.read_h5ad(folder / name) for name in ("x.h5ad", "out.h5ad"))
    np.testing.assert_array_equal(after.obsm["X_tsne"], X[:, :2])
    np.testing.assert_array_equal(after.obsm["X_pca"], before.obsm["X_pca"])
    pd.testing.assert_frame_equal(after.obs, before.obs)
    # Also in place, and over an older embedding.
    io.write(folder / "out.h5ad", X[:, 1:], source=folder / "out.h5ad")
    np.testing.assert_array_equal(anndata.read_h5ad(folder / "out.h5ad").obsm["X_tsne"], X[:, 1:])


def test_suffixes_in_capitals(tmp_path: Path) -> None:
    for name in ("X.NPY", "X.CSV", "X.TSV", "X.PARQUET"):
        io.write(tmp_path / name, X)
        np.testing.assert_array_equal(io.read(tmp_path / name).X, X)
    with open(tmp_path / "Y.NPY", "wb") as array, open(tmp_path / "Y.NPZ", "wb") as archive:
        np.save(array, LABELS)
        np.savez(archive, y=LABELS)
    table(tmp_path, "\n".join(LABELS), "Y.TXT")
    for name in ("Y.NPY", "Y.NPZ", "Y.TXT"):
        assert io.read_labels(tmp_path / name, 12).tolist() == LABELS.tolist()
    save_h5ad(tmp_path / "X.H5AD")
    io.write(tmp_path / "OUT.H5AD", X[:, :2], source=tmp_path / "X.H5AD")
    assert anndata.read_h5ad(tmp_path / "OUT.H5AD").obs["species"].tolist() == LABELS.tolist()
    io.write(tmp_path / "x.mtx", X)
    (tmp_path / "X.MTX.GZ").write_bytes(gzip.compress((tmp_path / "x.mtx").read_bytes()))
    np.testing.assert_array_equal(io.read(tmp_path / "X.MTX.GZ").X, X)


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "map.csv"
    path.write_text("precious")

    def fail_half_way() -> None:
        with replacing(path) as beside:
            beside.write_text("half of it")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert [p.name for p in tmp_path.iterdir()] == ["map.csv"]
    assert path.read_text() == "precious"


def test_impossible_outputs(tmp_path: Path) -> None:
    for path, said in [
        (tmp_path / "map.xls", "cannot write '.xls'"),
        (tmp_path / "absent" / "map.npy", "no such folder"),
    ]:
        with pytest.raises(io.DataError, match=said):
            io.write(path, X)


def test_a_missing_extra_says_what_to_install() -> None:
    with pytest.raises(ImportError, match=r"no_such_package is not installed; run: pip install"):
        require("no_such_package.part", "parquet")


# Neighbours beside a map, for viewers.


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather"])
def test_neighbors_in_the_form_that_embedding_atlas_reads(tmp_path: Path, suffix: str) -> None:
    X = np.array([[0.0], [1.0], [3.0], [7.0]])
    found = nearest_neighbors(X, 2)
    path = tmp_path / f"map{suffix}"
    labels = np.array(["a", "b", "a", "b"])
    Y = np.column_stack([X, -X])
    io.write(path, Y, labels=labels, neighbors=(found.indices, found.distances))
    frame = pd.read_parquet(path) if suffix == ".parquet" else pd.read_feather(path)
    assert frame.columns.tolist() == ["x", "y", "label", "neighbors"]
    assert [row["ids"].tolist() for row in frame.neighbors] == [[1, 2], [0, 2], [1, 0], [2, 1]]
    distances = [row["distances"].tolist() for row in frame.neighbors]
    assert distances == [[1.0, 3.0], [1.0, 2.0], [2.0, 3.0], [4.0, 6.0]]
    again = io.read(path)  # as a map
    np.testing.assert_array_equal(again.X, Y)
    assert again.label_name == "label"


def test_neighbors_that_do_not_fit(tmp_path: Path) -> None:
    rows = np.zeros((3, 2), dtype=int)
    with pytest.raises(io.DataError, match=r"cannot write neighbours in '.csv'; choose .*parquet"):
        io.write(tmp_path / "map.csv", np.zeros((3, 2)), neighbors=(rows, rows))
    for wrong in [(rows[:2], rows[:2]), (rows, rows[:, :1]), (rows,), (rows[0], rows[0])]:
        with pytest.raises(ValueError, match=r"both of shape \(3, n_neighbors\)"):
            io.write(tmp_path / "map.parquet", np.zeros((3, 2)), neighbors=wrong)
    for indices, distances, told in [
        (rows + 3, rows, "row 0 of neighbors has 3; indices go from 0 to 2"),
        (rows - 1, rows, "row 0 of neighbors has -1; indices go from 0 to 2"),
        (rows, np.array([[1, 2], [3, np.nan], [5, 6]]), "row 1 of neighbors has nan; distances"),
        (rows, rows - 0.5, "row 0 of neighbors has -0.5; distances are 0 or positive"),
    ]:
        with pytest.raises(ValueError, match=told):
            io.write(tmp_path / "map.parquet", np.zeros((3, 2)), neighbors=(indices, distances))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "read",
    [
        io.read,
        io.open_rows,
        lambda path: io.read_labels(path, 3),
        lambda path: read_columns(path, 3),
    ],
)
@pytest.mark.parametrize("name", ["x.parquet", "x"])
def test_what_is_no_file_is_named(tmp_path: Path, read: Callable[..., Any], name: str) -> None:
    path = tmp_path / name
    path.mkdir()
    with pytest.raises(io.DataError, match="is a folder"):
        read(path)
    path.rmdir()
    if path.suffix and hasattr(os, "mkfifo"):
        os.mkfifo(path)
        with pytest.raises(io.DataError, match="is a device, a pipe or a socket"):
            read(path)
