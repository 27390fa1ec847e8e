"""Matrix Market files: a header, then an entry a line.

SciPy's reader is many times as fast, and a damaged number in the file crashes it.
"""

import gzip
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_matrix, csr_matrix

from acctsne.files.errors import damaged
from acctsne.files.records import Data, Wanted, Written
from acctsne.files.replacing import suffix_of
from acctsne.runtime.checks import check_n_samples
from acctsne.runtime.memory import room_for

ADVICE = "Fewer rows need less"
BANNER = "%%matrixmarket"
FORMATS = ("coordinate", "array")
FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")
SYMMETRIES = ("general", "symmetric", "skew-symmetric")


def read_mtx(path: Path, _: Wanted) -> Data:
    """Read a matrix, which has no labels."""
    with damaged(path):
        return Data(read_matrix_market(path))


def write_mtx(beside: Path, written: Written) -> None:
    """Write a map."""
    write_matrix_market(beside, written.Y)


def read_matrix_market(path: Path) -> Any:
    """Read a matrix: an array, or a CSR matrix. ValueError, with the place, for what is damaged."""
    with gzip.open(path, "rt") if suffix_of(path) == ".gz" else open(path) as file:
        form, field, symmetry = _banner(file)
        sizes = _sizes(file, 3 if form == "coordinate" else 2)
        # Dense numbers, or an offset for every row: a header of one line can ask for any number.
        needed = 8 * (sizes[0] * sizes[1] if form == "array" else sizes[0])
        with room_for(needed, "the matrix that the header speaks of", ADVICE):
            body = _numbers(file)
            if form == "array":
                return _dense(body, sizes, symmetry)
            return _sparse(body, sizes, field, symmetry)


def write_matrix_market(path: Path, Y: npt.NDArray[Any]) -> None:
    """Write an array, column by column as the format has it.

    SciPy's writer does not notice a full disk.
    """
    digits = 9 if Y.dtype == np.float32 else 17
    with open(path, "w", encoding="ascii") as file:
        file.write(f"%%MatrixMarket matrix array real general\n{Y.shape[0]} {Y.shape[1]}\n")
        np.savetxt(file, Y.T.reshape(-1), fmt=f"%.{digits}g")


def _banner(file: IO[str]) -> tuple[str, str, str]:
    words = file.readline(1024).lower().split()
    if len(words) != 5 or words[:2] != [BANNER, "matrix"]:
        raise ValueError("line 1 is no Matrix Market header")
    form, field, symmetry = words[2:]
    for word, known in ((form, FORMATS), (field, FIELDS), (symmetry, SYMMETRIES)):
        if word not in known:
            raise ValueError(f"line 1 says {word!r}; known are {', '.join(known)}")
    return form, field, symmetry


def _sizes(file: IO[str], count: int) -> list[int]:
    for line in file:
        if line.startswith("%") or not line.strip():
            continue
        words = line.split()
        if len(words) != count or not all(word.isdecimal() and len(word) < 19 for word in words):
            raise ValueError(f"{line.strip()!r:.60} is not the {count} sizes of a matrix")
        sizes = [int(word) for word in words]
        check_n_samples(sizes[0], "the matrix")
        if sizes[1] >= 2**31:
            raise ValueError(f"{sizes[1]} columns are more than can be held")
        return sizes
    raise ValueError("the file ends before the matrix' sizes")


def _numbers(file: IO[str]) -> npt.NDArray[np.float64]:
    lines: Iterator[str] = (line for line in file if not line.startswith("%"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a body without lines
        return np.loadtxt(lines, dtype=np.float64, comments=None, ndmin=2)


def _dense(
    body: npt.NDArray[np.float64], sizes: list[int], symmetry: str
) -> npt.NDArray[np.float64]:
    if symmetry != "general":
        raise ValueError(f"a dense matrix that is {symmetry} is no table of samples")
    rows, columns = sizes
    if body.size != rows * columns:
        raise ValueError(f"{body.size} numbers for {rows} rows of {columns}")
    return np.ascontiguousarray(body.reshape(columns, rows).T)


def _sparse(
    body: npt.NDArray[np.float64], sizes: list[int], field: str, symmetry: str
) -> csr_matrix:
    rows, columns, entries = sizes
    width = 2 if field == "pattern" else 3
    if body.size == 0:
        body = body.reshape(0, width)
    if body.shape != (entries, width):
        raise ValueError(
            f"{body.shape[0]} entries of {body.shape[1]} numbers; the header says {entries} of "
            f"{width}"
        )
    places = body[:, :2]
    wrong = ~((places == np.floor(places)) & (places >= 1) & (places <= [rows, columns])).all(
        axis=1
    )
    if wrong.any():
        first = int(wrong.argmax())
        raise ValueError(f"entry {first + 1} is at {places[first].tolist()}, outside the matrix")
    i, j = (places - 1).astype(np.int32).T
    values = body[:, 2] if width == 3 else np.ones(entries)
    if symmetry != "general":
        other = i != j
        sign = 1 if symmetry == "symmetric" else -1
        i, j = np.concatenate([i, j[other]]), np.concatenate([j, i[other]])
        values = np.concatenate([values, sign * values[other]])
    return csr_matrix(coo_matrix((values, (i, j)), shape=(rows, columns)))
