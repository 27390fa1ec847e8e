"""Data that lives in files, as other packages open it: h5py, zarr, an AnnData that is backed.

None of them is imported here: whoever has such an object has imported its package.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne.files.stored_rows import StoredRows
from acctsne.runtime.memory import room_for
from acctsne.runtime.rows import stored_dtype

# Numbers that are read at a time, or a chunk if that has more.
BLOCK_NUMBERS = 2**22

# The drivers of h5py under which a file is an open file of the system's, with its bytes where HDF5
# says they are.
PLAIN_DRIVERS = ("sec2", "windows")

ADVICE = "An npy file, or an HDF5 dataset without chunks and compression, is not read whole"


def in_reach(X: Any, name: str = "X") -> Any:
    """Bring rows that are in a file to where NumPy and SciPy reach them; leave all else as it is.

    What lies in one piece is mapped, everything else read: a table once, into one array of its own
    type. Whether it is a table of numbers is left to the checks that follow.
    """
    if _is_a(X, "anndata", "AnnData"):
        raise TypeError(
            f"{name} is an AnnData object, not an array; use acctsne.scanpy.tsne(adata), or give "
            'its numbers: adata.X, or adata.obsm["X_pca"]'
        )
    if isinstance(X, StoredRows):
        return _read_stored(X, name) if X.mapped is None else X.mapped
    try:
        if hasattr(type(X), "to_memory"):  # anndata's sparse rows, as large in memory as in a file
            return X.to_memory()
        if _is_a(X, "h5py", "Dataset"):
            mapped = _mapped(X)
            return _read(X, name) if mapped is None else mapped
        if _is_a(X, "zarr", "Array"):
            return _read(X, name)
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(
            f"{name} cannot be read from its file, which may be closed or damaged: {error}"
        ) from error
    return X


def mapped_table(path: Path, dataset: Any) -> npt.NDArray[Any] | None:
    """Map a table of an HDF5 file where it lies in one piece, so that it is not read at once."""
    plain = dataset.chunks is None and dataset.ndim == 2 and dataset.dtype.kind in "fiu"
    offset = dataset.id.get_offset() if plain and dataset.size else None
    # HDF5 packs small datasets without gaps: numbers may begin at any byte, where no CPU need be
    # able to compute with them.
    if offset is None or not dataset.dtype.isnative or offset % dataset.dtype.alignment:
        return None
    return np.memmap(path, dataset.dtype, "r", offset, dataset.shape)


def _is_a(X: Any, package: str, kind: str) -> bool:
    loaded = getattr(sys.modules.get(package), kind, None)
    return loaded is not None and isinstance(X, loaded)


def _mapped(dataset: Any) -> npt.NDArray[Any] | None:
    """Map a dataset of a file that is open for reading.

    One that is open for writing may have been given numbers that are not in the file yet.
    """
    file = dataset.file
    if file.mode != "r" or file.driver not in PLAIN_DRIVERS:
        return None
    path = Path(file.filename)
    try:
        same = os.path.samestat(path.stat(), os.fstat(file.id.get_vfd_handle()))
    except OSError:  # the name leads nowhere, from the present folder at least
        return None
    # The name may be another file's by now.
    return mapped_table(path, dataset) if same else None


def _read_stored(rows: StoredRows, name: str) -> npt.NDArray[Any]:
    with _room_for(rows.shape, rows.dtype, name):
        return rows.read()


def _read(table: Any, name: str) -> Any:
    """Read a table of h5py or zarr, in the type that it is going to be kept in."""
    if table.ndim != 2 or 0 in table.shape or table.dtype.kind not in "biuf":
        return table[...]
    dtype = stored_dtype(np.dtype(table.dtype))
    with _room_for(table.shape, dtype, name):
        read = np.empty(table.shape, dtype)
        for block in _blocks(table.shape, table.chunks or (1, table.shape[1])):
            read[block] = table[block]
    return read


def _room_for(
    shape: tuple[int, ...], dtype: np.dtype[Any], name: str
) -> AbstractContextManager[None]:
    needed = shape[0] * shape[1] * dtype.itemsize
    return room_for(needed, f"{name}, which cannot be mapped from its file,", ADVICE)


def _blocks(shape: tuple[int, int], chunks: tuple[int, int]) -> Iterator[tuple[slice, slice]]:
    """Cut a table into blocks of whole chunks, so that each chunk is unpacked once."""
    rows, columns = chunks
    if rows * shape[1] <= BLOCK_NUMBERS:
        rows, columns = rows * (BLOCK_NUMBERS // (rows * shape[1])), shape[1]
    else:
        columns *= max(1, BLOCK_NUMBERS // (rows * columns))
    for row in range(0, shape[0], rows):
        for column in range(0, shape[1], columns):
            yield slice(row, row + rows), slice(column, column + columns)
