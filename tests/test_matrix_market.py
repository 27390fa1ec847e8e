"""Matrix Market files against SciPy's reader and writer, and what is refused."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.io
from scipy.sparse import coo_matrix, random_array

from acctsne.files.matrix_market import read_matrix_market, write_matrix_market


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
def test_sparse_ones_are_read_as_scipy_reads_them(
    tmp_path: Path, field: str, symmetry: str
) -> None:
    if (field, symmetry) == ("pattern", "skew-symmetric"):
        return
    X = coo_matrix(random_array((20, 20), density=0.2, rng=np.random.default_rng(0)))
    X = (10 * X).tocsr()
    X.data = np.rint(X.data) + 1
    if symmetry != "general":
        X = X + X.T if symmetry == "symmetric" else X - X.T
        X.eliminate_zeros()
    path = tmp_path / "x.mtx"
    scipy.io.mmwrite(path, X, field=field, symmetry=symmetry, comment="words\nand more")
    expected = scipy.io.mmread(path).toarray()
    np.testing.assert_array_equal(read_matrix_market(path).toarray(), expected)
    zipped = tmp_path / "x.mtx.gz"
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    np.testing.assert_array_equal(read_matrix_market(zipped).toarray(), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_ones_go_there_and_back(tmp_path: Path, dtype: type) -> None:
    X: npt.NDArray[Any] = np.random.default_rng(0).normal(size=(7, 3)).astype(dtype)
    path = tmp_path / "x.mtx"
    write_matrix_market(path, X)
    np.testing.assert_array_equal(read_matrix_market(path).astype(dtype), X)
    np.testing.assert_array_equal(scipy.io.mmread(path).astype(dtype), X)


HEADER = "%%MatrixMarket matrix coordinate real general\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no Matrix Market header"),
        ("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n", "says 'complex'"),
        (HEADER, "ends before the matrix' sizes"),
        (HEADER + "3 3\n", "not the 3 sizes"),
        (HEADER + "3 -3 1\n", "not the 3 sizes"),
        (HEADER + "3 99999999999 1\n", "more than can be held"),
        (HEADER + "3 3 2\n1 1 1\n", "1 entries of 3 numbers; the header says 2"),
        (HEADER + "3 3 1\n4 1 1\n", "entry 1 is at"),
        (HEADER + "3 3 1\n0 1 1\n", "entry 1 is at"),
        (HEADER + "3 3 1\n1.5 1 1\n", "entry 1 is at"),
        (HEADER + "3 3 1\nnan 1 1\n", "entry 1 is at"),
        (HEADER + "3 3 2\n1 1 1\n1 2 1.5E", "could not convert"),
        (HEADER + "3 3 2\n1 1 1\n1 2 \x00\n", "could not convert"),
        ("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n", "3 numbers for 2 rows of 2"),
    ],
)
def test_damage(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "x.mtx"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        read_matrix_market(path)
