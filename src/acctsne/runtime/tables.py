"""Tables that cannot become an array of numbers: which column it is, and why."""

import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Number
from os import PathLike
from typing import Any

import numpy as np
from scipy.sparse import issparse

ADVICE = "leave it out, or turn it into numbers"

# How Python's error begins where NumPy has taken something for a single number.
_NO_NUMBER = ("float() argument must be", "could not convert string to float")


@contextmanager
def turned_into_numbers(X: Any, name: str = "X") -> Iterator[None]:
    """Say in our words what went wrong while data became an array of numbers.

    Only errors are looked into, so that good data is not read twice. Columns of times, though, are
    told by their types: of some packages' tables they would become numbers in silence.
    """
    _refuse_what_is_no_data(X, name)
    _refuse_times(X, name)
    check_representable(X, name)
    try:
        # A number of a wider type may become infinite in double precision, and is refused as such.
        with np.errstate(over="ignore"):
            yield
    except OverflowError:
        raise ValueError(f"{name} has integers beyond 1.8e308, the largest float64") from None
    except Exception as error:
        fault = _fault(X, name, error)
        if fault is not None:
            raise ValueError(fault) from error
        if not str(error).startswith(_NO_NUMBER):
            raise
        what = _no_array(X)
        kind = TypeError if what or isinstance(error, TypeError) else ValueError
        raise kind(
            f"{name} must be an array of numbers with samples in rows; {what or error}"
        ) from error


def check_representable(X: Any, name: str) -> None:
    """Refuse what would be lost on the way to an array of numbers."""
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        masked = np.ma.getmaskarray(X).sum()
        raise ValueError(
            f"{name} has {masked} masked values, and every value is needed; fill them, for example "
            "by zeros, with .filled(0), or leave out their rows"
        )
    if isinstance(X, np.ndarray) and X.dtype.names is not None:
        raise TypeError(
            f"{name} is a structured array, of fields {', '.join(X.dtype.names[:5])}; "
            "numpy.lib.recfunctions.structured_to_unstructured makes an array of numbers of it"
        )
    # An array of times becomes numbers, all but NaT; columns of times in tables are refused.
    times = getattr(getattr(X, "dtype", None), "kind", "") in ("m", "M")
    if times and np.isnat(np.asarray(X)).any():
        raise ValueError(f"{name} has NaT, times that are missing; leave out their rows")


def _refuse_what_is_no_data(X: Any, name: str) -> None:
    """Refuse None, and an object of this package that data became; its class says what to do."""
    if X is None:
        raise TypeError(f"{name} is None; give an array of numbers with samples in rows")
    advice = getattr(type(X), "_what_to_give_for_data", None)
    if advice is not None:
        raise TypeError(
            f"{name} must be an array of numbers, and is an {type(X).__name__}; {advice}"
        )


def _refuse_times(X: Any, name: str) -> None:
    for label, kind in _types_of_columns(X):
        if _is_time(kind):
            raise ValueError(_told(name, label, f"holds times ({kind})"))


def _told(name: str, label: Any, fault: str) -> str:
    return f"{name} must hold numbers, and its column {label!r} {fault}; {ADVICE}"


def _types_of_columns(X: Any) -> Iterator[tuple[Any, Any]]:
    """Name the columns of a table of pandas, polars or pyarrow, each with its type."""
    if isinstance(X, type):
        return
    if hasattr(X, "column_names") and hasattr(X, "schema"):
        yield from zip(X.column_names, getattr(X.schema, "types", ()), strict=False)
    elif hasattr(X, "shape") and hasattr(X, "columns") and hasattr(X, "dtypes"):
        yield from zip(X.columns, X.dtypes, strict=False)


def _is_time(kind: Any) -> bool:
    """Tell times and durations, whichever package the type is of, by how it says so."""
    if hasattr(kind, "is_temporal"):  # polars
        return bool(kind.is_temporal())
    kind = getattr(kind, "pyarrow_dtype", kind)  # in a table of pandas
    if "pyarrow" in sys.modules and isinstance(kind, sys.modules["pyarrow"].DataType):
        return bool(sys.modules["pyarrow"].types.is_temporal(kind))
    return getattr(kind, "kind", "") in ("m", "M")


def _no_array(X: Any) -> str | None:
    """Say what it is that NumPy takes for a single thing, and how to get at the numbers."""
    kind = type(X).__name__
    if isinstance(X, str | bytes | PathLike):
        return f"got {X!r:.100}. If it is a file, acctsne.io.read reads it"
    if hasattr(X, "__array__") or isinstance(X, Sequence | Number) or hasattr(X, "columns"):
        return None
    if hasattr(X, "__cuda_array_interface__"):
        return f"got a {kind} on a GPU. Copy it to the host first: X.get(), in torch X.cpu()"
    if hasattr(X, "__dlpack__"):
        return f"got a {kind}. numpy.from_dlpack(X) makes an array of it"
    return f"got a {kind}, which NumPy cannot read as an array"


def _fault(X: Any, name: str, error: Exception) -> str | None:
    kind = type(X).__name__
    if kind == "LazyFrame":
        return f"{name} is a LazyFrame, whose rows are not there yet; use {name}.collect()"
    if isinstance(X, list | tuple):
        for at, row in enumerate(X):
            if isinstance(row, Mapping):
                return f"{name} has a dictionary for row {at}; pandas.DataFrame({name}) reads them"
            if issparse(row):
                return (
                    f"{name} has a sparse matrix for row {at}; scipy.sparse.vstack({name}) makes "
                    "one of all"
                )
        lengths = [len(row) if hasattr(row, "__len__") else 0 for row in X]
        other = next((at for at, length in enumerate(lengths) if length != lengths[0]), None)
        if other is not None:
            return (
                f"{name} has rows of different lengths, {lengths[0]} values in row 0 and "
                f"{lengths[other]} in row {other}; give every row as many"
            )
    if isinstance(X, type):
        return None
    # DataFrames have names there, and pyarrow's tables their columns.
    names = getattr(X, "column_names", getattr(X, "columns", None))
    if names is None:
        if len(getattr(X, "shape", ())) == 1 and _holds_rows(X):
            return (
                f"{name} is a {kind} whose values are rows; numpy.stack({name}) makes an array of "
                "them"
            )
        return None
    names = list(names)
    if not names:
        return f"{name} is a {kind} without columns"
    for label, column in zip(names, _columns(X, names), strict=True):
        fault = _fault_of_column(column)
        if fault is not None:
            return _told(name, label, fault)
    # An estimator keeps the names of columns, which scikit-learn reads by narwhals: its error.
    if type(error).__name__ == "DuplicateError":
        twice, _ = Counter(names).most_common(1)[0]
        return (
            f"{name} has several columns called {twice!r}; give them different names, or give "
            f"{name}.to_numpy()"
        )
    return None


def _columns(X: Any, names: list[Any]) -> Iterator[Any]:
    by_place = getattr(X, "iloc", None)  # pandas, where several may share a name
    for place, label in enumerate(names):
        if by_place is not None:
            yield by_place[:, place]
        else:
            yield X.column(place) if hasattr(X, "column_names") else X[label]


def _holds_rows(column: Any) -> bool:
    """Tell a column of which each value has several, as where texts have their embeddings."""
    first = next(iter(column), None)
    return hasattr(first, "__len__") and not isinstance(first, str | bytes | Mapping)


def _fault_of_column(column: Any) -> str | None:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            values = np.asarray(column)
            if values.ndim != 1 or _holds_rows(values):
                return "holds several values in each row, of which numpy.stack makes an array"
            if values.dtype.kind == "c":
                return "holds complex numbers"
            values.astype(np.float64)
    except Exception as error:  # polars has types of its own
        return f"does not ({error})"
    return None
