"""Data, labels and embeddings in files, the format chosen by the suffix.

========================  =========================================================
``.npy``                  memory-mapped
``.npz``                  dense arrays or one scipy sparse matrix; never unpickled
``.csv``, ``.tsv``        plain or ``.gz``; header and label column are detected
``.parquet``              extra ``parquet``
``.arrow``, ``.feather``  extra ``parquet``
``.h5ad``                 ``X`` or an array of ``obsm``; extra ``anndata``
``.mtx``                  MatrixMarket, plain or ``.gz``
========================  =========================================================

Whatever is wrong with a file is one line that names the file and, where there is one, row and
column, counted from 1. In text files rows are lines, the header included.
"""

import os
import shutil
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.io
from scipy.sparse import csr_matrix, issparse, load_npz

from acctsne.files.replacing import DataError, replacing
from acctsne.files.tables import (
    LABEL_NAMES,
    Choice,
    as_labels,
    read_arrow,
    read_delimited,
    write_arrow,
    write_delimited,
)
from acctsne.runtime.optional import require

__all__ = ["Data", "DataError", "read", "read_labels", "write"]

DELIMITED = (".csv", ".tsv")
ARROW = (".parquet", ".arrow", ".feather")
SUFFIXES = (".npy", ".npz", *DELIMITED, *ARROW, ".h5ad", ".mtx")

# Where scanpy keeps a t-SNE, and so do we.
OBSM_KEY = "X_tsne"

# Rows looked at in one go when searching a memory-mapped array for values that are not finite.
ROWS_AT_ONCE = 65536

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Data:
    """What a file holds."""

    X: Any
    """Samples in rows: an array, or a CSR matrix."""

    labels: npt.NDArray[Any] | None = None
    """One label a sample, if the file has labels."""

    label_name: str | None = None
    """The name of the column or array that they come from."""


def read(
    path: PathLike,
    *,
    labels: str | None = None,
    key: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    header: bool | None = None,
) -> Data:
    r"""Read data, and its labels if it has any.

    Parameters
    ----------
    path : str or path
        The file; its suffix is its format.
    labels : str, default=None
        The column (tables), array (npz) or column of `obs` (h5ad) that holds the labels. None
        detects one in tables and npz: the only column of text, or one called label, labels, class
        or target.
    key : str, default=None
        The array of an npz, or the key of `obsm` in an h5ad. None is the only two-dimensional array
        or the one called X, and the matrix `X`.
    columns : sequence of str, default=None
        The columns of a table that are features; None for all but the label.
    drop : sequence of str, default=()
        Columns of a table that are not features.
    header : bool, default=None
        Whether the first row of a csv or tsv names the columns; None detects it.

    Returns
    -------
    data : Data
        `X`, `labels` and `label_name`.

    Raises
    ------
    DataError
        If the file cannot be used, in one line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from acctsne import io
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "flowers.csv"
    >>> _ = path.write_text("length,width,species\n5.1,3.5,setosa\n6.2,2.9,virginica\n")
    >>> data = io.read(path)
    >>> data.X.tolist()
    [[5.1, 3.5], [6.2, 2.9]]
    >>> data.labels.tolist()
    ['setosa', 'virginica']
    """
    path = Path(path)
    suffix = known_suffix(path)
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    if key is not None and suffix not in (".npz", ".h5ad"):
        raise DataError(f"{path}: only npz and h5ad files have arrays to choose by key")
    if suffix not in (*DELIMITED, *ARROW) and (columns is not None or drop):
        raise DataError(f"{path}: only tables have columns to choose")
    if suffix in (".npy", ".mtx") and labels is not None:
        raise DataError(f"{path}: holds no labels; give them in a file of their own")
    choice = Choice(labels, columns, drop, header)
    try:
        if suffix == ".npy":
            data = Data(np.load(path, mmap_mode="r", allow_pickle=False))
        elif suffix == ".npz":
            data = _read_npz(path, key, labels)
        elif suffix == ".mtx":
            data = Data(scipy.io.mmread(path))
        elif suffix == ".h5ad":
            data = _read_h5ad(path, key, labels)
        else:
            reader = read_delimited if suffix in DELIMITED else read_arrow
            data = Data(*reader(path, choice))
    except DataError:
        raise
    # What numpy, scipy, zipfile, zlib, pyarrow and h5py raise for files that are cut short or are
    # something else.
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path}: not a readable {suffix[1:]} file: {_one_line(error)}") from error
    return _checked(path, data)


def read_labels(path: PathLike, n_samples: int) -> npt.NDArray[Any]:
    r"""Read labels from a file of their own.

    Parameters
    ----------
    path : str or path
        A one-dimensional npy, an npz with one such array, a text file with one label a line (csv,
        tsv or txt, with or without a header), or a table whose label column is detected.
    n_samples : int
        How many there must be.

    Returns
    -------
    labels : ndarray of shape (n_samples,)
        The labels.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from acctsne import io
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "species.txt"
    >>> _ = path.write_text("setosa\nsetosa\nvirginica\n")
    >>> io.read_labels(path, 3).tolist()
    ['setosa', 'setosa', 'virginica']
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    labels: npt.NDArray[Any] | None
    if path.suffix in (".npy", ".npz"):
        labels = _read_label_array(path)
    elif path.suffix in (".txt", *DELIMITED) and _is_one_column(path):
        lines = path.read_text(encoding="utf-8-sig").split("\n")
        cells = [line.strip().strip('"') for line in lines if line.strip()]
        has_header = len(cells) == n_samples + 1
        labels = as_labels(cells[has_header:])
    else:
        labels = read(path).labels
        if labels is None:
            raise DataError(f"{path}: no column of labels found")
    if len(labels) != n_samples:
        raise DataError(f"{path}: {len(labels)} labels for {n_samples} samples")
    return labels


def write(
    path: PathLike,
    Y: npt.NDArray[Any],
    *,
    labels: npt.NDArray[Any] | None = None,
    source: PathLike | None = None,
) -> None:
    """Write an embedding.

    The file is written beside `path` and then moved into place, so that a failure leaves an older
    file as it was.

    Parameters
    ----------
    path : str or path
        The file; its suffix is its format.
    Y : ndarray of shape (n_samples, n_components)
        The embedding.
    labels : ndarray of shape (n_samples,), default=None
        Labels to be written with it, as column or array `label`, where the format has room.
    source : str or path, default=None
        For h5ad: the h5ad file that was embedded. All it holds is copied, and the embedding is
        added as ``obsm["X_tsne"]``. None makes a file of the embedding alone.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from acctsne import io
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "map.csv"
    >>> io.write(path, np.array([[0.5, 1.0], [2.0, 4.0]]), labels=np.array(["a", "b"]))
    >>> print(path.read_text(), end="")
    x,y,label
    0.5,1,a
    2,4,b
    """
    path = Path(path)
    suffix = check_output(path)
    with replacing(path) as beside:
        if suffix in (".npy", ".npz"):
            with open(beside, "wb") as file:
                if suffix == ".npy":
                    np.save(file, Y)
                elif labels is None:
                    np.savez(file, embedding=Y)
                else:
                    np.savez(file, embedding=Y, label=as_labels(labels))
        elif suffix in DELIMITED:
            with open(beside, "w", encoding="utf-8", newline="") as text:
                write_delimited(text, Y, labels, "\t" if suffix == ".tsv" else ",")
        elif suffix == ".mtx":
            scipy.io.mmwrite(beside, Y)
        elif suffix == ".h5ad":
            _write_h5ad(beside, Y, labels, source)
        else:
            write_arrow(beside, Y, labels)


def known_suffix(path: Path) -> str:
    """Return the suffix that names the format; of x.csv.gz it is .csv."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    suffix = suffixes[-1] if suffixes else ""
    if suffix == ".gz" and len(suffixes) > 1 and suffixes[-2] in (*DELIMITED, ".mtx"):
        suffix = suffixes[-2]
    if suffix not in SUFFIXES:
        raise DataError(f"{path}: unknown suffix {suffix!r}; known are {', '.join(SUFFIXES)}")
    return suffix


def check_output(path: Path, suffixes: Sequence[str] = SUFFIXES) -> str:
    """Check, before any work is done for it, that a file can be written; return its suffix."""
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        raise DataError(f"{path}: cannot write {suffix!r}; choose one of {', '.join(suffixes)}")
    if not path.parent.is_dir():
        raise DataError(f"{path}: no such folder")
    if path.is_dir():
        raise DataError(f"{path}: is a folder")
    if suffix in ARROW:
        require("pyarrow", "parquet")
    elif suffix == ".h5ad":
        require("anndata", "anndata")
    return suffix


def _read_npz(path: Path, key: str | None, labels: str | None) -> Data:
    # Opened here: numpy leaves a file that is no archive open.
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        names = archive.files
        if {"format", "shape", "data"} <= set(names):
            return Data(load_npz(file))
        for name in (key, labels):
            if name is not None and name not in names:
                raise DataError(f"{path}: no array {name!r}; there are {', '.join(names)}")
        if key is not None:
            X = archive[key]
        else:
            key, X = _only_matrix(path, {name: archive[name] for name in names})
        if labels is None:
            detected = [name for name in (*LABEL_NAMES, "y") if name in names and name != key]
            labels = detected[0] if len(detected) == 1 else None
        return Data(X) if labels is None else Data(X, archive[labels], labels)


def _only_matrix(path: Path, arrays: dict[str, npt.NDArray[Any]]) -> tuple[str, npt.NDArray[Any]]:
    matrices = {name: array for name, array in arrays.items() if array.ndim == 2}
    if len(matrices) == 1:
        return matrices.popitem()
    if "X" in matrices:
        return "X", matrices["X"]
    raise DataError(
        f"{path}: {len(matrices)} two-dimensional arrays among {', '.join(arrays)}; choose one by "
        "key"
    )


def _read_label_array(path: Path) -> npt.NDArray[Any]:
    try:
        with open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            arrays = [loaded] if path.suffix == ".npy" else [loaded[name] for name in loaded.files]
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path}: not readable: {_one_line(error)}") from error
    flat: list[npt.NDArray[Any]] = [array for array in arrays if array.ndim == 1]
    if len(flat) != 1:
        raise DataError(f"{path}: {len(flat)} one-dimensional arrays; labels need exactly one")
    return flat[0]


def _read_h5ad(path: Path, key: str | None, labels: str | None) -> Data:
    # Only what is asked for is read; an h5ad may hold many times as much.
    elements = require("anndata.io", "anndata")
    with require("h5py", "anndata").File(path, "r") as file:
        if key is not None and key not in file["obsm"]:
            raise DataError(f"{path}: no {key!r} in obsm; there are {', '.join(file['obsm'])}")
        X = elements.read_elem(file["X"] if key is None else file["obsm"][key])
        if labels is None:
            return Data(X)
        if labels not in file["obs"]:
            raise DataError(f"{path}: no {labels!r} in obs; there are {', '.join(file['obs'])}")
        return Data(X, as_labels(np.asarray(elements.read_elem(file["obs"][labels]))), labels)


def _write_h5ad(
    beside: Path, Y: npt.NDArray[Any], labels: npt.NDArray[Any] | None, source: PathLike | None
) -> None:
    if source is not None and Path(source).suffix == ".h5ad":
        shutil.copyfile(source, beside)
        elements = require("anndata.io", "anndata")
        with require("h5py", "anndata").File(beside, "r+") as file:
            elements.write_elem(file["obsm"], OBSM_KEY, Y)
        return
    made = require("anndata", "anndata").AnnData(shape=(len(Y), 0), obsm={OBSM_KEY: Y})
    if labels is not None:
        made.obs["label"] = labels.astype(str)
    made.write_h5ad(beside)


def _checked(path: Path, data: Data) -> Data:
    """Check that the data is a matrix of finite numbers with a label for each row."""
    X = csr_matrix(data.X) if issparse(data.X) else np.asanyarray(data.X)
    if X.ndim != 2:
        raise DataError(
            f"{path}: an array of shape {X.shape}; a two-dimensional one is needed, samples in rows"
        )
    if X.dtype.kind not in "biuf":
        raise DataError(f"{path}: values of type {X.dtype}; numbers are needed")
    if 0 in X.shape:
        raise DataError(f"{path}: an empty array of shape {X.shape}")
    _check_finite(path, X)
    if data.labels is not None and data.labels.shape != (X.shape[0],):
        raise DataError(
            f"{path}: labels {data.label_name!r} of shape {data.labels.shape} for "
            f"{X.shape[0]} samples"
        )
    return Data(X, data.labels, data.label_name)


def _check_finite(path: Path, X: Any) -> None:
    values = X.data if issparse(X) else X
    for start in range(0, len(values), ROWS_AT_ONCE):
        bad = np.argwhere(~np.isfinite(values[start : start + ROWS_AT_ONCE]))
        if len(bad) == 0:
            continue
        first = start + int(bad[0, 0])
        if issparse(X):
            row = int(np.searchsorted(X.indptr, first, side="right")) - 1
            column, value = int(X.indices[first]), values[first]
        else:
            row, column = first, int(bad[0, 1])
            value = values[row, column]
        what = "missing value" if np.isnan(value) else f"{value} is not a finite number"
        raise DataError(f"{path}: row {row + 1}, column {column + 1}: {what}")


def _is_one_column(path: Path) -> bool:
    with open(path, encoding="utf-8-sig") as file:
        first = file.readline()
    return not any(sign in first for sign in ",;\t")


def _one_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
