"""Data, labels and embeddings in files, the format chosen by the suffix.

========================  ==================================================================
``.npy``                  memory-mapped
``.npz``                  dense arrays or one scipy sparse matrix; never unpickled
``.csv``, ``.tsv``        plain or ``.gz``; header and label column are detected
``.parquet``              extra ``parquet``
``.arrow``, ``.feather``  extra ``parquet``
``.h5ad``                 ``X`` or an array of ``obsm``; extra ``anndata``
``.zarr``                 an array, or one of a group or of AnnData's; read only; extra ``zarr``
``.mtx``                  MatrixMarket, plain or ``.gz``
========================  ==================================================================

Whatever is wrong with a file is one line that names the file and, where there is one, row and
column, counted from 1. In text files rows are lines, the header included.
"""

import csv
import os
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse, load_npz

from acctsne.files.backed import mapped_table
from acctsne.files.hdf5 import find_inside, group_inside
from acctsne.files.matrix_market import read_matrix_market, write_matrix_market
from acctsne.files.replacing import (
    DataError,
    check_replaceable,
    replacing,
    reserve,
    suffix_of,
)
from acctsne.files.stored_rows import StoredRows
from acctsne.files.tables import (
    LABEL_NAMES,
    MISSING_CELLS,
    Choice,
    Guess,
    ReadTable,
    arrow_columns,
    as_labels,
    delimited_columns,
    label_text,
    open_parquet,
    read_arrow,
    read_column,
    read_delimited,
    write_arrow,
    write_delimited,
)
from acctsne.files.zarr_arrays import find_array
from acctsne.runtime.checks import check_sparse
from acctsne.runtime.labels import label_array
from acctsne.runtime.optional import require

__all__ = ["Data", "DataError", "StoredRows", "open_rows", "read", "read_labels", "write"]

# Where scanpy keeps a t-SNE, and so do we.
OBSM_KEY = "X_tsne"

# Rows looked at in one go when searching a memory-mapped array for values that are not finite.
ROWS_AT_ONCE = 65536

PathLike = str | os.PathLike[str]
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Data:
    """What a file holds."""

    X: Any
    """Samples in rows: an array, or a CSR matrix."""

    labels: npt.NDArray[Any] | None = None
    """One label a sample, if the file has labels; None or NaN for a sample without one."""

    label_name: str | None = None
    """The name of the column or array that they come from."""

    guesses: tuple[Guess, ...] = ()
    """What was decided without being told: the argument of :func:`read` that decides it, and a
    sentence."""


def read(
    path: PathLike,
    *,
    labels: str | None = None,
    key: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    header: bool | None = None,
    delimiter: str | None = None,
) -> Data:
    r"""Read data, and its labels if it has any.

    Parameters
    ----------
    path : str or path
        The file; its suffix is its format.
    labels : str, default=None
        The column (tables), array (npz) or column of `obs` (h5ad) that holds the labels. None
        detects one in tables and npz: one called label, labels, class or target, or the only
        column of text.
    key : str, default=None
        The array of an npz or zarr, or the key of `obsm` in an h5ad. None is the only
        two-dimensional array or the one called X, and the matrix `X`.
    columns : sequence of str, default=None
        The columns of a table that are features; None for all but the label and what numbers the
        rows: a first column without a name, numbers called id, and those called index, row,
        number or the like that count up by one.
    drop : sequence of str, default=()
        Columns of a table that are not features.
    header : bool, default=None
        Whether the first row of a csv or tsv names the columns; None detects it.
    delimiter : str, default=None
        The character between two cells of a csv or tsv; None is the tab for tsv, and for csv the
        comma, or the semicolon if the first row has that. Beside another than the comma, numbers
        may have decimal commas.

    Returns
    -------
    data : Data
        `X`, `labels`, `label_name`, and what was guessed.

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
    if delimiter is not None and len(delimiter) != 1:
        raise ValueError(f"delimiter must be one character; got {delimiter!r}")
    wanted = Wanted(key, labels, Choice(labels, columns, drop, header, delimiter))
    data = _read(path, wanted)
    return data if data.labels is None else replace(data, labels=as_labels(data.labels))


def _read(path: Path, wanted: "Wanted") -> Data:
    """Read data with the cells of its labels as they are."""
    return _checked(path, _format_of(path, wanted).read(path, wanted))


def open_rows(
    path: PathLike,
    *,
    key: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
) -> StoredRows:
    """Open data of which a part of the rows is to be read.

    Of an npy, parquet, zarr or h5ad file, each of several processes can read its own rows
    (:class:`acctsne.distributed.TSNE`). A dense table of an h5ad file, and an npy file, are mapped
    into memory where they lie in one piece; of others, those row groups or chunks are read that
    hold the rows.

    Parameters
    ----------
    path : str or path
        The file; its suffix is its format.
    key : str, default=None
        The key of `obsm` in an h5ad, or the array of a zarr. None is `X`, or the only array.
    columns : sequence of str, default=None
        The columns of a parquet file that are features; None for all but the label.
    drop : sequence of str, default=()
        Columns of a parquet file that are not features.

    Returns
    -------
    rows : StoredRows
        Its `shape`, its `dtype`, and `read(begin, end)`.

    Raises
    ------
    DataError
        If the file cannot be used, or not by parts, in one line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from acctsne import io
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "numbers.npy"
    >>> np.save(path, np.arange(12.0).reshape(4, 3))
    >>> rows = io.open_rows(path)
    >>> rows.shape
    (4, 3)
    >>> rows.read(1, 3).tolist()
    [[3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]
    """
    path = Path(path)
    wanted = Wanted(key, None, Choice(None, columns, drop))
    opens = _format_of(path, wanted).open_rows
    if opens is None:
        raise DataError(
            f"{path}: of {known_suffix(path)} files all rows are read or none, which several "
            "processes cannot share; convert the data to one of "
            f"{_suffixes(lambda form: form.open_rows is not None)}"
        )
    return opens(path, wanted)


def _format_of(path: Path, wanted: "Wanted") -> "Format":
    """Check that there is such a file, and that it has what is to be chosen from."""
    form = FORMATS[known_suffix(path)]
    if not (path.exists() if form.is_folder else path.is_file()):
        raise DataError(f"{path}: no such file")
    if wanted.key is not None and "key" not in form.offers:
        keyed = _suffixes(lambda form: "key" in form.offers)
        raise DataError(f"{path}: only {keyed} files have arrays to choose by key")
    if (wanted.choice.columns is not None or wanted.choice.drop) and "columns" not in form.offers:
        raise DataError(f"{path}: only tables have columns to choose")
    if wanted.labels is not None and "labels" not in form.offers:
        raise DataError(f"{path}: holds no labels; give them in a file of their own")
    return form


def _suffixes(able: "Callable[[Format], bool]") -> str:
    return ", ".join(suffix for suffix, form in FORMATS.items() if able(form))


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
        The labels; None or NaN where one is missing, as on a line that is blank or NA.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from acctsne import io
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "species.txt"
    >>> _ = path.write_text("setosa\nsetosa\nvirginica\n")
    >>> io.read_labels(path, 3).tolist()
    ['setosa', 'setosa', 'virginica']
    """
    cells = _read_cells(Path(path), n_samples)
    if suffix_of(Path(path)) in (".txt", ".csv", ".tsv"):
        cells = np.where(np.isin(cells, MISSING_CELLS), "", cells)
    return as_labels(cells)


def read_ids(path: PathLike, n_samples: int) -> npt.NDArray[np.str_]:
    """Read names of rows from a file such as `read_labels` takes; as text, for 01 is not 1."""
    ids = label_text(_read_cells(Path(path), n_samples))
    named = ids != ""
    if not named.all():
        raise DataError(f"{path}: row {np.argmin(named) + 1} has no id")
    return ids


def read_columns(path: PathLike, n_samples: int) -> dict[str, Array]:
    r"""Read all columns of a table: what is known of points, to show and to colour by.

    Parameters
    ----------
    path : str or path
        A csv, tsv, parquet, arrow or feather file, with a header.
    n_samples : int
        How many rows there must be.

    Returns
    -------
    columns : dict of str to ndarray of shape (n_samples,)
        Numbers, NaN where one is missing, or objects: text, and None.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from acctsne.files.formats import read_columns
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "points.csv"
    >>> _ = path.write_text("kept,name\n0.5,a\nnan,\n")
    >>> {name: column.tolist() for name, column in read_columns(path, 2).items()}
    {'kept': [0.5, nan], 'name': ['a', None]}
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    suffix = known_suffix(path)
    if "columns" not in FORMATS[suffix].offers:
        raise DataError(f"{path}: no table of named columns; give a csv, tsv, parquet or arrow")
    read = delimited_columns if FORMATS[suffix] is _DELIMITED else arrow_columns
    with _unreadable(path):
        columns = read(path)
    rows = len(next(iter(columns.values()), ()))
    if rows != n_samples:
        raise DataError(f"{path}: {rows} rows for {n_samples} points")
    return columns


def _read_cells(path: Path, n_samples: int) -> Array:
    """Read a column of labels as it is."""
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    suffix = suffix_of(path)
    if suffix in (".txt", ".csv", ".tsv") and _is_one_column(path):
        with _unreadable(path):
            return read_column(path, n_samples)
    if suffix in (".npy", ".npz"):
        cells = _read_label_array(path)
    else:
        found = _read(path, Wanted(None, None, Choice())).labels
        if found is None:
            raise DataError(f"{path}: no column of labels found")
        cells = found
    if len(cells) != n_samples:
        raise DataError(f"{path}: {len(cells)} labels for {n_samples} samples")
    _check_labels(path, cells)
    return cells


def write(
    path: PathLike,
    Y: npt.ArrayLike,
    *,
    labels: Any = None,
    source: PathLike | None = None,
    neighbors: tuple[npt.NDArray[Any], npt.NDArray[Any]] | None = None,
) -> None:
    """Write an embedding.

    The file is written beside `path` and then moved into place, so that a failure leaves an older
    file as it was.

    Parameters
    ----------
    path : str or path
        The file; its suffix is its format.
    Y : array-like of shape (n_samples, n_components)
        The embedding.
    labels : array-like of shape (n_samples,), default=None
        Labels to be written with it, as column or array `label`, where the format has room; None
        and NaN where one is missing.
    source : str or path, default=None
        For h5ad: the h5ad file that was embedded. All it holds is copied, and the embedding is
        added as ``obsm["X_tsne"]``. None makes a file of the embedding alone.
    neighbors : tuple of two ndarrays of shape (n_samples, n_neighbors), default=None
        For parquet, arrow and feather: indices and distances of each sample's neighbours, such as
        :func:`acctsne.nearest_neighbors` finds, as a column `neighbors` of ``{"ids": [...],
        "distances": [...]}``, which embedding-atlas reads.

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
    suffix = check_output(path, neighbors=neighbors is not None)
    written = _checked_output(path, Y, labels, source, neighbors)
    writer = FORMATS[suffix].write
    assert writer is not None  # check_output has seen to it
    with replacing(path) as beside:
        writer(beside, written)


def _checked_output(
    path: Path, Y: Any, labels: Any, source: PathLike | None, neighbors: Any
) -> "Written":
    """Check that there are numbers to write, and for each row of them what goes with it."""
    Y = _array_of(path, Y, "Y")
    if Y.ndim != 2 or Y.dtype.kind not in "biuf" or 0 in Y.shape:
        raise ValueError(
            f"{path}: Y must be a two-dimensional array of numbers, not empty; got {Y.dtype} of "
            f"shape {Y.shape}"
        )
    n_rows = len(Y)
    if labels is not None:
        labels = _labels_to_write(path, labels, n_rows)
    if neighbors is not None:
        neighbors = _neighbors_to_write(path, neighbors, n_rows)
    return Written(Y, labels, source, neighbors)


def _array_of(path: Path, given: Any, name: str) -> Array:
    """Give an array in the machine's byte order and a type that files have."""
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise ValueError(f"{path}: {name} is no array: {_one_line(error)}") from error
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        return array.astype(np.float64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _labels_to_write(path: Path, given: Any, n_rows: int) -> Array:
    """Give labels that every format can hold: numbers, times or text, and None."""
    try:
        labels = label_array(given)
    except ValueError as error:
        raise ValueError(f"{path}: labels are no array: {_one_line(error)}") from error
    if labels.shape != (n_rows,):
        raise ValueError(
            f"{path}: labels must have one entry for each of the {n_rows} rows of Y; got shape "
            f"{labels.shape}"
        )
    _check_label_type(path, labels)
    try:
        labels = as_labels(labels)
        cells = label_text(labels)
    except Exception as error:  # whatever an object does when it is asked for its text
        raise ValueError(
            f"{path}: column 'label' cannot be made text: {_one_line(error)}"
        ) from error
    _check_labels(path, labels)
    longest = csv.field_size_limit()
    if FORMATS[suffix_of(path)] is _DELIMITED and np.char.str_len(cells).max(initial=0) > longest:
        row = int(np.char.str_len(cells).argmax()) + 1
        raise ValueError(
            f"{path}: label {row}, {str(cells[row - 1])!r:.50}, is longer than the {longest} "
            "characters that a cell may have"
        )
    return labels


def _neighbors_to_write(path: Path, given: Any, n_rows: int) -> tuple[Array, Array]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ValueError(
            f"{path}: neighbors must be indices and distances, both of shape "
            f"({n_rows}, n_neighbors); got no pair of arrays"
        )
    indices, distances = (_array_of(path, rows, "neighbors") for rows in given)
    shapes = (indices.shape, distances.shape)
    if shapes[0] != shapes[1] or len(shapes[0]) != 2 or shapes[0][0] != n_rows or 0 in shapes[0]:
        raise ValueError(
            f"{path}: neighbors must be indices and distances, both of shape "
            f"({n_rows}, n_neighbors); got {', '.join(map(str, shapes))}"
        )
    if indices.dtype.kind not in "iu" or distances.dtype.kind not in "iuf":
        raise ValueError(
            f"{path}: neighbors must be integers and real numbers; got {indices.dtype} and "
            f"{distances.dtype}"
        )
    return indices, distances


def known_suffix(path: Path) -> str:
    """Return the suffix that names the format; of x.csv.gz it is .csv."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    suffix = suffixes[-1] if suffixes else ""
    if suffix == ".gz" and len(suffixes) > 1 and suffixes[-2] in (".csv", ".tsv", ".mtx"):
        suffix = suffixes[-2]
    if suffix not in FORMATS:
        raise DataError(f"{path}: unknown suffix {suffix!r}; known are {', '.join(FORMATS)}")
    return suffix


def check_output(
    path: Path, suffixes: Sequence[str] | None = None, *, neighbors: bool = False
) -> str:
    """Check, before any work is done for it, that a file can be written; return its suffix."""
    suffix = suffix_of(path)
    allowed = WRITABLE if suffixes is None else suffixes
    if neighbors:
        allowed = tuple(suffix for suffix in allowed if FORMATS[suffix].keeps_neighbors)
    if suffix not in allowed:
        what = f"neighbours in {suffix!r}" if neighbors else repr(suffix)
        raise DataError(f"{path}: cannot write {what}; choose one of {', '.join(allowed)}")
    if not path.parent.is_dir():
        raise DataError(f"{path}: no such folder")
    if path.is_dir():
        raise DataError(f"{path}: is a folder")
    check_replaceable(path)
    needs = FORMATS[suffix].needs if suffix in FORMATS else None
    if needs is not None:
        require(*needs)
    return suffix


class Written(NamedTuple):
    """What is to be written into a file; a format leaves out what it has no room for."""

    Y: Array
    labels: Array | None
    source: PathLike | None
    neighbors: tuple[Array, Array] | None


class Wanted(NamedTuple):
    """What is to be taken from a file."""

    key: str | None
    labels: str | None
    choice: Choice


@contextmanager
def _unreadable(path: Path) -> Iterator[None]:
    """Name the file, in one line, in whatever a library raises for one that it cannot read.

    Around calls of libraries alone: nothing of ours may fail unseen in here.
    """
    try:
        yield
    except (ModuleNotFoundError, DataError):
        raise
    except MemoryError as error:
        raise MemoryError(
            f"{path}: cannot be read: {_one_line(error) if str(error) else 'memory ran out'}"
        ) from error
    except Exception as error:
        kind = "text" if suffix_of(path) == ".txt" else known_suffix(path)[1:]
        raise DataError(f"{path}: not a readable {kind} file: {_one_line(error)}") from error


def _read_npy(path: Path, _: Wanted) -> Data:
    with _unreadable(path):
        return Data(np.load(path, mmap_mode="r", allow_pickle=False))


def _open_npy(path: Path, wanted: Wanted) -> StoredRows:
    array = _read_npy(path, wanted).X
    _check_table(path, array.shape, array.dtype)
    return StoredRows.of_mapped(path, array)


def _write_npy(beside: Path, written: Written) -> None:
    # Not by np.save, whose last write of a small array is not looked at.
    contiguous = np.ascontiguousarray(written.Y)
    with open(beside, "wb") as file:
        header = np.lib.format.header_data_from_array_1_0(contiguous)
        np.lib.format.write_array_header_1_0(file, header)
        file.write(contiguous.data)


def _read_npz(path: Path, wanted: Wanted) -> Data:
    key, labels = wanted.key, wanted.labels
    names = _names(path)
    named = [name for name in (key, labels) if name is not None]
    if {"format", "shape", "data"} <= set(names):
        if named:
            raise DataError(
                f"{path}: no array {named[0]!r}, but one sparse matrix; its labels need a file "
                "of their own"
            )
        with _unreadable(path):
            return Data(check_sparse(load_npz(path)))
    for name in named:
        if name not in names:
            raise DataError(f"{path}: no array {name!r}; there are {', '.join(names)}")
    may_be_labels = {labels} if labels is not None else {*LABEL_NAMES, "y"}
    # Only what is asked for: others may be many times as large.
    arrays = _arrays(
        path, names if key is None else [n for n in names if n in {key, *may_be_labels}]
    )
    if key is not None:
        X = arrays[key]
    else:
        key, X = _only_matrix(path, arrays)
    guesses = []
    if wanted.key is None and len(arrays) > 1:
        guesses.append(Guess("key", f"of the arrays {', '.join(arrays)}, {key} is the data"))
    if labels is None:
        detected = [name for name in (*LABEL_NAMES, "y") if name in arrays and name != key]
        labels = detected[0] if len(detected) == 1 else None
        if len(detected) > 1:
            what = f"of the arrays {', '.join(detected)}, none is taken for labels"
            guesses.append(Guess("labels", what))
    return Data(X, None if labels is None else arrays[labels], labels, tuple(guesses))


def _names(path: Path) -> list[str]:
    """Name the arrays of an npz."""
    # Opened here: numpy leaves a file that is no archive open.
    with _unreadable(path), open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        return list(archive.files)


def _arrays(path: Path, names: Sequence[str]) -> dict[str, Array]:
    """Read arrays of an npz."""
    with _unreadable(path), open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        members = {name: archive[name] for name in names}
    # A member without numpy's mark is handed out as bytes.
    for name, array in members.items():
        if not isinstance(array, np.ndarray):
            raise DataError(f"{path}: not a readable npz file: {name!r} is no array")
    return members


def _write_npz(beside: Path, written: Written) -> None:
    more: dict[str, Any] = {}
    if written.labels is not None:
        # Objects would be pickled.
        is_plain = written.labels.dtype != object
        more["label"] = written.labels if is_plain else label_text(written.labels)
    with open(beside, "wb") as file:
        np.savez(file, embedding=written.Y, **more)


def _read_by(
    reader: Callable[[Path, Choice], ReadTable],
) -> Callable[[Path, Wanted], Data]:
    """Make of a reader of tables one of data."""

    def read_table(path: Path, wanted: Wanted) -> Data:
        try:
            return Data(*reader(path, wanted.choice))
        except DataError:
            raise
        # What gzip, zlib, text decoding, csv and pyarrow raise for files that are cut short or are
        # something else.
        except (OSError, EOFError, ValueError, OverflowError, KeyError, zlib.error, csv.Error) as e:
            kind = known_suffix(path)[1:]
            raise DataError(f"{path}: not a readable {kind} file: {_one_line(e)}") from e

    return read_table


def _write_delimited(beside: Path, written: Written) -> None:
    delimiter = "\t" if suffix_of(beside) == ".tsv" else ","
    with open(beside, "w", encoding="utf-8", newline="") as text:
        write_delimited(text, written.Y, written.labels, delimiter)


def _write_arrow(beside: Path, written: Written) -> None:
    write_arrow(beside, written.Y, written.labels, written.neighbors)


def _read_mtx(path: Path, _: Wanted) -> Data:
    with _unreadable(path):
        return Data(read_matrix_market(path))


def _write_mtx(beside: Path, written: Written) -> None:
    write_matrix_market(beside, written.Y)


def _open_parquet(path: Path, wanted: Wanted) -> StoredRows:
    with _unreadable(path):
        rows = open_parquet(path, wanted.choice)

    def read(begin: int, end: int) -> Array:
        with _unreadable(path):
            return rows.read(begin, end)

    return replace(rows, _read=read)


def _read_zarr(path: Path, wanted: Wanted) -> Data:
    with _unreadable(path):
        array, others = find_array(path, wanted.key)
        return Data(np.asarray(array[...]), guesses=_not_meant(others))


def _open_zarr(path: Path, wanted: Wanted) -> StoredRows:
    with _unreadable(path):
        array, others = find_array(path, wanted.key)
    _check_table(path, array.shape, array.dtype)

    def read(begin: int, end: int) -> Array:
        with _unreadable(path):
            return np.asarray(array[begin:end])

    guesses = _not_meant(others)
    return StoredRows(path, array.shape, np.dtype(array.dtype), read, guesses=guesses)


def _not_meant(others: Sequence[str]) -> tuple[Guess, ...]:
    """Say that X was taken, where there are arrays that could be meant instead."""
    return (Guess("key", f"X is the data, not {' or '.join(others)}"),) if others else ()


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


def _read_label_array(path: Path) -> Array:
    if suffix_of(path) == ".npz":
        arrays = list(_arrays(path, _names(path)).values())
    else:
        with _unreadable(path), open(path, "rb") as file:
            arrays = [np.load(file, allow_pickle=False)]
    flat = [array for array in arrays if array.ndim == 1]
    if len(flat) != 1:
        raise DataError(f"{path}: {len(flat)} one-dimensional arrays; labels need exactly one")
    return flat[0]


def _read_h5ad(path: Path, wanted: Wanted) -> Data:
    # Only what is asked for is read; an h5ad may hold many times as much.
    key, labels = wanted.key, wanted.labels
    elements = require("anndata.io", "anndata")
    h5py = require("h5py", "anndata")
    with _unreadable(path):
        file = h5py.File(path, "r")
    with file:
        element = _h5ad_matrix(path, file, key)
        guesses = () if key is not None else _h5ad_guesses(file)
        column = None if labels is None else _h5ad_member(path, file, "obs", labels)
        with _unreadable(path):
            X = mapped_table(path, element) if isinstance(element, h5py.Dataset) else None
            X = elements.read_elem(element) if X is None else X
            read = None if column is None else elements.read_elem(column)
    if not issparse(X) and not isinstance(X, np.ndarray):
        raise DataError(f"{path}: {key or 'X'} is a {type(X).__name__}; an array is needed")
    with _unreadable(path):
        X = check_sparse(X)
    if read is None:
        return Data(X, guesses=guesses)
    return Data(X, np.asarray(read), labels, guesses)


def _h5ad_guesses(file: Any) -> tuple[Guess, ...]:
    """Say that X was taken, where obsm has arrays that could be meant instead."""
    h5py = require("h5py", "anndata")
    # Only a group of this file: a link may lead to another one, which is not to be opened.
    here = isinstance(file.get("obsm", getlink=True), h5py.HardLink)
    names = list(file["obsm"]) if here and isinstance(file["obsm"], h5py.Group) else []
    return _not_meant(names)


def _open_h5ad(path: Path, wanted: Wanted) -> StoredRows:
    h5py = require("h5py", "anndata")
    name = wanted.key or "X"
    with _unreadable(path):
        opened = h5py.File(path, "r")
    with opened as file:
        element = _h5ad_matrix(path, file, wanted.key)
        guesses = () if wanted.key is not None else _h5ad_guesses(file)
        if not isinstance(element, h5py.Dataset):
            kind = element.attrs.get("encoding-type", "group")
            raise DataError(
                f"{path}: {name} is stored as a {kind}, of which processes cannot each read a "
                "part; choose a dense array of obsm by key, such as principal components"
            )
        _check_table(path, element.shape, element.dtype)
        mapped = mapped_table(path, element)
        shape, dtype, place = element.shape, element.dtype, element.name
    if mapped is not None:
        return replace(StoredRows.of_mapped(path, mapped), guesses=guesses)

    def read(begin: int, end: int) -> Array:
        with _unreadable(path), h5py.File(path, "r") as file:
            return np.asarray(file[place][begin:end])

    return StoredRows(path, shape, np.dtype(dtype), read, guesses=guesses)


def _h5ad_matrix(path: Path, file: Any, key: str | None) -> Any:
    """Find X, or an array of obsm by its name."""
    if key is not None:
        return _h5ad_member(path, file, "obsm", key)
    with _unreadable(path):
        return find_inside(path, file, "X")


def _h5ad_member(path: Path, file: Any, group: str, name: str) -> Any:
    """Find an array of obsm or a column of obs."""
    with _unreadable(path):
        members = group_inside(path, file, group)
        names = list(members)
    if name not in names:
        raise DataError(f"{path}: no {name!r} in {group}; there are {', '.join(names)}")
    with _unreadable(path):
        return find_inside(path, members, name)


def check_source(path: Path) -> None:
    """Check, before any work is done for it, that a map can be added to a copy of an h5ad file."""
    h5py = require("h5py", "anndata")
    with _unreadable(path), h5py.File(path, "r") as file:
        if "obsm" in file:
            group_inside(path, file, "obsm")


def _write_h5ad(beside: Path, written: Written) -> None:
    Y, labels, source, _ = written
    # Two copies of it and what HDF5 adds: a file of a few numbers takes half a megabyte.
    text = None if labels is None else label_text(labels)
    room = 2 * Y.nbytes + (0 if text is None else 2 * text.nbytes) + (1 << 20)
    if source is not None and suffix_of(source) == ".h5ad":
        shutil.copyfile(source, beside)
        reserve(beside, room)
        elements = require("anndata.io", "anndata")
        with require("h5py", "anndata").File(beside, "r+") as file:
            if "obsm" not in file:
                elements.write_elem(file, "obsm", {})
            elements.write_elem(group_inside(Path(source), file, "obsm"), OBSM_KEY, Y)
        return
    made = require("anndata", "anndata").AnnData(shape=(len(Y), 0), obsm={OBSM_KEY: Y})
    if text is not None:
        pandas = require("pandas", "anndata")
        made.obs["label"] = pandas.Categorical([cell or None for cell in text.tolist()])
    reserve(beside, room)
    made.write_h5ad(beside)


def _checked(path: Path, data: Data) -> Data:
    """Check that the data is a matrix of finite numbers with a label for each row."""
    X = csr_matrix(data.X) if issparse(data.X) else np.asanyarray(data.X)
    _check_table(path, X.shape, X.dtype)
    _check_finite(path, X)
    if data.labels is not None and data.labels.shape != (X.shape[0],):
        raise DataError(
            f"{path}: labels {data.label_name!r} of shape {data.labels.shape} for "
            f"{X.shape[0]} samples"
        )
    if data.labels is not None:
        _check_labels(path, data.labels)
    return Data(X, data.labels, data.label_name, data.guesses)


def _check_labels(path: Path, cells: Array) -> None:
    """Refuse labels that no format can hold, before a map is made that is to be written with them.

    Text with NUL, or with halves of characters as damaged UTF-16 has them.
    """
    _check_label_type(path, cells)
    if cells.dtype.kind not in "OU":
        return
    for row, label in enumerate(cells.tolist()):
        if isinstance(label, str) and ("\0" in label or not _is_unicode(label)):
            raise DataError(f"{path}: label {row + 1}, {label!r:.50}, is not text of Unicode")


def _check_label_type(path: Path, cells: Array) -> None:
    if cells.dtype.kind == "V":
        raise DataError(f"{path}: labels of type {cells.dtype}; a number or a text is needed")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_table(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if len(shape) != 2:
        raise DataError(
            f"{path}: an array of shape {shape}; a two-dimensional one is needed, samples in rows"
        )
    if dtype.kind not in "biuf":
        raise DataError(f"{path}: values of type {dtype}; numbers are needed")
    if 0 in shape:
        raise DataError(f"{path}: an empty array of shape {shape}")


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
    with _unreadable(path), open(path, encoding="utf-8-sig") as file:
        first = file.readline()
    return not any(sign in first for sign in ",;\t")


def _one_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


@dataclass(frozen=True)
class Format:
    """How files of one kind are read and written."""

    read: Callable[[Path, Wanted], Data]
    write: Callable[[Path, Written], None] | None
    offers: tuple[str, ...] = ()  # what can be chosen from: "key", "labels", "columns"
    needs: tuple[str, str] | None = None  # a module and the extra that brings it
    keeps_neighbors: bool = False
    open_rows: Callable[[Path, Wanted], StoredRows] | None = None  # where a part can be read
    is_folder: bool = False


_TABLE = ("labels", "columns")
_DELIMITED = Format(_read_by(read_delimited), _write_delimited, _TABLE)
_ARROW = Format(_read_by(read_arrow), _write_arrow, _TABLE, ("pyarrow", "parquet"), True)
FORMATS: dict[str, Format] = {
    ".npy": Format(_read_npy, _write_npy, open_rows=_open_npy),
    ".npz": Format(_read_npz, _write_npz, ("key", "labels")),
    ".csv": _DELIMITED,
    ".tsv": _DELIMITED,
    ".parquet": replace(_ARROW, open_rows=_open_parquet),
    ".arrow": _ARROW,
    ".feather": _ARROW,
    ".h5ad": Format(
        _read_h5ad,
        _write_h5ad,
        ("key", "labels"),
        ("anndata", "anndata"),
        open_rows=_open_h5ad,
    ),
    ".zarr": Format(
        _read_zarr, None, ("key",), ("zarr", "zarr"), open_rows=_open_zarr, is_folder=True
    ),
    ".mtx": Format(_read_mtx, _write_mtx),
}
WRITABLE = tuple(suffix for suffix, form in FORMATS.items() if form.write is not None)
