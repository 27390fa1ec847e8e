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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne.files.arrow_tables import arrow_columns, open_parquet, read_arrow, write_arrow
from acctsne.files.checks import check_cells, check_data, check_labels, check_written
from acctsne.files.columns import MISSING_CELLS, as_labels, label_text
from acctsne.files.delimited import (
    delimited_columns,
    read_column,
    read_delimited,
    write_delimited_file,
)
from acctsne.files.errors import DataError, damaged
from acctsne.files.h5ad import open_h5ad, read_h5ad, write_h5ad
from acctsne.files.matrix_market import read_mtx, write_mtx
from acctsne.files.numpy_arrays import (
    open_npy,
    read_label_array,
    read_npy,
    read_npz,
    write_npy,
    write_npz,
)
from acctsne.files.records import Array, Data, PathLike, Wanted, Written
from acctsne.files.replacing import check_replaceable, replacing, suffix_of
from acctsne.files.stored_rows import StoredRows
from acctsne.files.zarr_arrays import open_zarr, read_zarr
from acctsne.runtime.optional import require

__all__ = ["Data", "DataError", "StoredRows", "open_rows", "read", "read_labels", "write"]


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
        comma, or the semicolon or tab if the first row has one. Beside another than the comma,
        numbers may have decimal commas.

    Returns
    -------
    data : Data
        `X`, `labels`, `label_name`, what was guessed, and the names of X's columns.

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
    wanted = Wanted(key, labels, columns, drop, header, delimiter)
    data = _read(path, wanted)
    return data if data.labels is None else replace(data, labels=as_labels(data.labels))


def _read(path: Path, wanted: Wanted) -> Data:
    """Read data with the cells of its labels as they are."""
    return check_data(path, _format_of(path, wanted).read(path, wanted))


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
    wanted = Wanted(key, columns=columns, drop=drop)
    opens = _format_of(path, wanted).open_rows
    if opens is None:
        raise DataError(
            f"{path}: of {known_suffix(path)} files all rows are read or none, which several "
            "processes cannot share; convert the data to one of "
            f"{_suffixes(lambda form: form.open_rows is not None)}"
        )
    return opens(path, wanted)


def _format_of(path: Path, wanted: Wanted) -> "Format":
    """Check that there is such a file, and that it has what is to be chosen from."""
    known = FORMATS.get(suffix_of(path))
    may_be_folder = known is not None and known.is_folder
    if path.is_dir():  # whatever its suffix
        _check_file(path, may_be_folder)
    form = FORMATS[known_suffix(path)]
    _check_file(path, may_be_folder)
    if wanted.key is not None and "key" not in form.offers:
        keyed = _suffixes(lambda form: "key" in form.offers)
        raise DataError(f"{path}: only {keyed} files have arrays to choose by key")
    if (wanted.columns is not None or wanted.drop) and not is_table(path):
        raise DataError(f"{path}: only tables have columns to choose")
    if wanted.labels is not None and "labels" not in form.offers:
        raise DataError(f"{path}: holds no labels; give them in a file of their own")
    return form


def _check_file(path: Path, may_be_folder: bool = False) -> None:
    """Say what there is in the place of a file."""
    if path.is_file() or (may_be_folder and path.exists()):
        return
    if path.is_dir():
        raise DataError(f"{path}: is a folder; name a file in it")
    if path.exists():
        raise DataError(
            f"{path}: is a device, a pipe or a socket, which cannot be read twice; write what it "
            "gives into a file"
        )
    raise DataError(f"{path}: no such file")


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
    _check_file(path)
    read_table = FORMATS[known_suffix(path)].read_columns
    if read_table is None:
        tables = _suffixes(lambda form: form.read_columns is not None)
        raise DataError(f"{path}: no table of named columns; give one of {tables}")
    columns = read_table(path)
    rows = len(next(iter(columns.values()), ()))
    if rows != n_samples:
        raise DataError(f"{path}: {rows} rows for {n_samples} points")
    return columns


def _read_cells(path: Path, n_samples: int) -> Array:
    """Read a column of labels as it is."""
    _check_file(path)
    suffix = suffix_of(path)
    if suffix in (".txt", ".csv", ".tsv") and _is_one_column(path):
        return read_column(path, n_samples)
    if suffix in (".npy", ".npz"):
        cells = read_label_array(path)
    else:
        found = _read(path, Wanted()).labels
        if found is None:
            raise DataError(f"{path}: no column of labels found")
        cells = found
    if len(cells) != n_samples:
        raise DataError(f"{path}: {len(cells)} labels for {n_samples} samples")
    check_labels(path, cells)
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
    form = FORMATS[check_output(path, neighbors=neighbors is not None)]
    written = check_written(path, Y, labels, source, neighbors)
    if written.labels is not None and form.check_labels is not None:
        form.check_labels(path, written.labels)
    assert form.write is not None  # check_output has seen to it
    with replacing(path) as beside:
        form.write(beside, written)


def known_suffix(path: Path) -> str:
    """Return the suffix that names the format; of x.csv.gz it is .csv."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    suffix = suffixes[-1] if suffixes else ""
    if suffix == ".gz" and len(suffixes) > 1:
        packed = FORMATS.get(suffixes[-2])
        suffix = suffixes[-2] if packed is not None and packed.may_be_gzipped else suffix
    if suffix not in FORMATS:
        raise DataError(f"{path}: unknown suffix {suffix!r}; known are {', '.join(FORMATS)}")
    return suffix


def is_table(path: Path) -> bool:
    """Say whether files of this suffix have columns to choose, by name."""
    return FORMATS[known_suffix(path)].read_columns is not None


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


def _is_one_column(path: Path) -> bool:
    with damaged(path), open(path, encoding="utf-8-sig") as file:
        first = file.readline()
    return not any(sign in first for sign in ",;\t")


@dataclass(frozen=True)
class Format:
    """How files of one kind are read and written."""

    read: Callable[[Path, Wanted], Data]
    write: Callable[[Path, Written], None] | None
    offers: tuple[str, ...] = ()  # what can be chosen from: "key", "labels"
    needs: tuple[str, str] | None = None  # a module and the extra that brings it
    keeps_neighbors: bool = False
    open_rows: Callable[[Path, Wanted], StoredRows] | None = None  # where a part can be read
    read_columns: Callable[[Path], dict[str, Array]] | None = None  # of tables
    check_labels: Callable[[Path, Array], None] | None = None  # where not all can be written
    is_folder: bool = False
    may_be_gzipped: bool = False  # with .gz after the suffix


_DELIMITED = Format(
    read_delimited,
    write_delimited_file,
    ("labels",),
    read_columns=delimited_columns,
    check_labels=check_cells,
    may_be_gzipped=True,
)
_ARROW = Format(
    read_arrow,
    write_arrow,
    ("labels",),
    ("pyarrow", "parquet"),
    keeps_neighbors=True,
    read_columns=arrow_columns,
)
FORMATS: dict[str, Format] = {
    ".npy": Format(read_npy, write_npy, open_rows=open_npy),
    ".npz": Format(read_npz, write_npz, ("key", "labels")),
    ".csv": _DELIMITED,
    ".tsv": _DELIMITED,
    ".parquet": replace(_ARROW, open_rows=open_parquet),
    ".arrow": _ARROW,
    ".feather": _ARROW,
    ".h5ad": Format(
        read_h5ad,
        write_h5ad,
        ("key", "labels"),
        ("anndata", "anndata"),
        open_rows=open_h5ad,
    ),
    ".zarr": Format(
        read_zarr, None, ("key",), ("zarr", "zarr"), open_rows=open_zarr, is_folder=True
    ),
    ".mtx": Format(read_mtx, write_mtx, may_be_gzipped=True),
}
WRITABLE = tuple(suffix for suffix, form in FORMATS.items() if form.write is not None)
