"""What is known of points, as the texts that a page shows: columns of any kind."""

import math
import sys
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne.pictures.colors import categorical, hex_codes
from acctsne.pictures.inputs import entries
from acctsne.pictures.maps import Maps

# Each category is a layer of its own; so many stay fluent. The smallest beyond share one.
MAX_CATEGORIES = 200

# A column of so few different numbers is coloured as categories.
MAX_NUMBERED_CATEGORIES = 12

# Whole numbers below this are all told apart in double precision, and written without exponent.
_LARGEST_WHOLE = 2**53


def fields_of(hover: Any, maps: Maps) -> list[tuple[Any, Any]]:
    """Names and columns of what to show about a point."""
    if hover is None:
        return []
    if not maps.apart:
        return _named_columns(hover)
    parts = [dict(_named_columns(each)) for each in maps.each("hover", hover)]
    fields = []
    for name in dict.fromkeys(name for part in parts for name in part):
        columns: list[list[Any] | None] = []
        for m, part in enumerate(parts):
            if name in part:
                texts_of(f"hover[{m}][{name!r}]", part[name], len(maps.rows[m]))  # for its errors
                columns.append(entries(part[name]))
            else:
                columns.append(None)
        for of, column in maps.column(columns, lambda a, b: _text(a) == _text(b)):
            fields.append((name if of is None else f"{name}, {maps.titles[of]}", column))
    return fields


def _named_columns(hover: Any) -> list[tuple[Any, Any]]:
    names = getattr(hover, "columns", None)
    if names is None and not hasattr(hover, "keys"):
        kind = type(hover).__name__
        raise ValueError(f"hover must be a DataFrame or a mapping of names to columns; got {kind}")
    by_place = getattr(hover, "iloc", None)
    if names is None or by_place is None:
        return [(name, hover[name]) for name in (hover.keys() if names is None else names)]
    # Columns of pandas may share a name, by which none of them can be had.
    columns: dict[Any, Any] = {}
    for i, name in enumerate(names):
        same = list(names[:i]).count(name)
        columns[f"{name} ({same + 1})" if same else name] = by_place[:, i]
    return list(columns.items())


def columns_of(
    fields: list[tuple[Any, Any]], n_points: int
) -> tuple[list[dict[str, Any]], dict[str, npt.NDArray[np.uint32]]]:
    """Each column's kind and different texts, and, where not one a row, the place of each row's."""
    columns: list[dict[str, Any]] = []
    places = {}
    for i, (name, column) in enumerate(fields):
        texts = texts_of(f"hover[{name!r}]", column, n_points)
        different = sorted(set(texts))
        kind = _kind(column, different)
        if kind == "category" and _are_numbers(column):
            different.sort(key=lambda text: float(text or "-inf"))
        if len(different) < n_points / 2:
            place = {text: k for k, text in enumerate(different)}
            places[f"column{i}"] = np.fromiter(map(place.__getitem__, texts), np.uint32, n_points)
            texts = different
        columns.append({"name": str(name), "texts": texts, "kind": kind})
    return columns, places


def _kind(column: Any, different: list[str]) -> str:
    """Tell how a column can be coloured: as numbers, as categories, or, being text, not at all."""
    n_names = len(different) - ("" in different)
    if _are_numbers(column):
        return "number" if n_names > MAX_NUMBERED_CATEGORIES else "category"
    return "category" if 0 < n_names <= MAX_CATEGORIES else "text"


def _are_numbers(column: Any) -> bool:
    present = [entry for entry in entries(column) if _text(entry) != ""]
    return bool(present) and all(
        isinstance(entry, int | float | np.number)
        and not isinstance(entry, bool)
        and _is_finite(entry)
        for entry in present
    )


def _is_finite(entry: Any) -> bool:
    try:
        return math.isfinite(entry)
    except OverflowError:  # an integer that no float holds
        return False


def palette_of(columns: list[dict[str, Any]]) -> list[str]:
    """Colours for the column with the most categories."""
    most = max((len(each["texts"]) for each in columns if each["kind"] == "category"), default=0)
    return hex_codes(categorical(min(most, MAX_CATEGORIES + 1)))


def texts_of(name: str, column: Any, n_points: int) -> list[str]:
    """Write every entry of a column of points."""
    if not isinstance(column, Iterable):
        raise ValueError(f"{name} must be a column of {n_points} entries; got {column!r}")
    texts = [_text(entry) for entry in entries(column)]
    if len(texts) != n_points:
        raise ValueError(
            f"{name} must have one entry for each of the {n_points} points; got {len(texts)}"
        )
    return texts


def _text(entry: Any) -> str:
    """Write an entry so that it can be read back: it may be an id, or be taken as csv."""
    if _is_missing(entry):
        return ""
    if isinstance(entry, float | np.floating):
        whole = abs(float(entry)) < _LARGEST_WHOLE and entry == int(entry)
        # NumPy's float64 is a float whose repr names its type, which a float's own does not.
        shortest = repr(float(entry)) if isinstance(entry, float) else str(entry)
        return str(int(entry)) if whole else shortest
    if isinstance(entry, datetime):
        return entry.isoformat(sep=" ").removesuffix(" 00:00:00")
    return str(entry)


def _is_missing(entry: Any) -> bool:
    if entry is None or entry is getattr(sys.modules.get("pandas"), "NA", None):
        return True
    if isinstance(entry, np.datetime64 | np.timedelta64):
        return bool(np.isnat(entry))
    # NaN, and pandas' NaT.
    return isinstance(entry, float | np.floating | datetime | timedelta) and entry != entry
