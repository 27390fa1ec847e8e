"""Columns of tables: which are features, which one is the label, and labels as what they mean.

A column is one of three: a feature, the label, or left out. Text cannot be a feature, so a single
column of text is taken for the label; so is a column of numbers with the name of one. Whatever is
decided here and could be meant otherwise is a `Guess`, for the user to see.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from acctsne.files.errors import DataError
from acctsne.files.records import Array, Guess, Wanted
from acctsne.runtime.labels import missing_labels

# Names of columns that nobody means as features, in lower case.
LABEL_NAMES = ("label", "labels", "class", "target")

# Names of the first column under which pandas and R write the names of rows.
INDEX_NAMES = ("", "Unnamed: 0")

# Names, in lower case, of columns that number the rows: the first by its name alone, the others if
# they count up by one.
ID_NAME = "id"
COUNTER_NAMES = ("index", "idx", "row", "rowid", "row_id", "row_number", "number", "no", "nr", "#")

# Cells without a value, as pandas and R write them. Not "Na", which is sodium.
MISSING_CELLS = ("", "NA", "N/A", "NaN", "nan")

# Names of the coordinates of an embedding.
AXES = ("x", "y", "z")


class Columns(NamedTuple):
    """Positions of the columns in use."""

    features: list[int]
    label: int | None
    counters: list[int]  # of the features, those that are none if they count the rows
    guesses: tuple[Guess, ...]


def choose_columns(
    path: Path,
    names: Sequence[str],
    is_text: Sequence[bool],
    wanted: Wanted,
    unfit: Mapping[str, Sequence[bool]] | None = None,
) -> Columns:
    """Decide which columns are features and which one is the label.

    `unfit` says which columns are neither unless they are asked for as the label, by what they
    hold, such as times: nobody means a legend of them.
    """
    unfit = unfit or {}
    is_number = [not any(kinds) for kinds in zip(is_text, *unfit.values(), strict=True)]
    guesses = []
    for name in (wanted.labels, *(wanted.columns or ()), *wanted.drop):
        if name is not None and name not in names:
            raise DataError(f"{path}: no column {name!r}; there are {_listed(names)}")
    dropped = {names.index(name) for name in wanted.drop}
    free = wanted.columns is None
    if names[0] in INDEX_NAMES and len(names) > 1 and 0 not in dropped:
        dropped.add(0)
        if free and wanted.labels != names[0]:
            guesses.append(Guess("columns", "the first column, which has no name, is left out"))
    candidates = [i for i in range(len(names)) if i not in dropped]

    label, others = _choose_label(names, is_text, candidates, wanted.labels)
    if others:
        left = " and left out" if free else ""
        guesses.append(
            Guess(
                "labels",
                f"column {_listed([names[i] for i in others])} has the name of labels, too, and "
                f"is not taken for them{left}",
            )
        )

    counters: list[int] = []
    if wanted.columns is not None:
        features = [names.index(name) for name in wanted.columns]
    else:
        features = [i for i in candidates if i != label and i not in others]
        ids = [i for i in features if names[i].lower() == ID_NAME and is_number[i]]
        if ids and len(ids) < len(features):
            features = [i for i in features if i not in ids]
            guesses.append(left_out(names[i] for i in ids))
        counters = [i for i in features if names[i].lower() in COUNTER_NAMES and is_number[i]]
    for kind, is_kind in {"text": is_text, **unfit}.items():
        not_numbers = [names[i] for i in features if is_kind[i]]
        if not_numbers:
            raise DataError(
                f"{path}: column {_listed(not_numbers)} holds {kind}; name the column of labels "
                "(labels), or leave out what is no feature (drop)"
            )
    if not features:
        raise DataError(f"{path}: no column of numbers left to use as features")
    return Columns(features, label, counters, tuple(guesses))


def _choose_label(
    names: Sequence[str], is_text: Sequence[bool], candidates: Sequence[int], wanted: str | None
) -> tuple[int | None, list[int]]:
    """Return the column of labels, if there is one, and others that have the name of one."""
    if wanted is not None:
        return names.index(wanted), []
    named = [i for i in candidates if names[i].lower() in LABEL_NAMES]
    if named:
        # Text is what cannot be a feature in any case.
        label = next((i for i in named if is_text[i]), named[0])
        return label, [i for i in named if i != label]
    text = [i for i in candidates if is_text[i]]
    return text[0] if len(text) == 1 and len(candidates) > 1 else None, []


def left_out(names: Iterable[str]) -> Guess:
    """Say that columns are left out, as they number the rows."""
    return Guess("columns", f"column {_listed(list(names))} numbers the rows and is left out")


def counts_rows(values: Array) -> bool:
    """Tell a column that goes up by one from row to row.

    Examples
    --------
    >>> counts_rows(np.array([3.0, 4.0, 5.0])), counts_rows(np.array([3.0, 5.0, 6.0]))
    (True, False)
    """
    return len(values) > 1 and bool((np.diff(values) == 1).all())


def as_labels(cells: Array) -> Array:
    """Make labels of cells: None for empty and missing ones, integers if all others are.

    As integers 10 sorts after 9. Text that an integer would not give back stays text: 01 is another
    label than 1.

    Examples
    --------
    >>> as_labels(np.array(["9", "10", ""])).tolist()
    [9, 10, None]
    >>> as_labels(np.array(["01", "1"])).tolist()
    ['01', '1']
    """
    if cells.dtype.kind not in "OSU":
        return cells
    present = label_text(cells) != ""
    values: Array = cells[present]
    if values.dtype == object:
        listed = values.tolist()
        plain = {type(value) for value in listed} <= {int, float}
        # Integers beyond 64 bits stay what they are as text only.
        exact = all(-(2**63) <= value < 2**63 for value in listed if isinstance(value, int))
        values = np.array(listed) if plain and exact else label_text(values)
    elif values.dtype.kind == "S":
        values = label_text(values)
    if values.dtype.kind == "U":
        with suppress(ValueError, OverflowError):
            numbers = values.astype(np.int64)
            values = numbers if (numbers.astype(str) == values).all() else values
    if present.all():
        return values
    labels = np.full(len(cells), None)
    labels[present] = values.astype(object)
    return labels


def label_text(cells: Array) -> npt.NDArray[np.str_]:
    """Give labels as text, which is empty for those that are missing."""
    missing = missing_labels(cells)
    if cells.dtype.kind in "OS":
        # Bytes that are no text are shown as what they are.
        texts = (c.decode(errors="backslashreplace") if isinstance(c, bytes) else c for c in cells)
        cells = np.fromiter(texts, object, len(cells))
    return np.where(missing, "", cells.astype(object)).astype(str)


def embedding_columns(Y: Array, labels: Array | None) -> dict[str, Array]:
    """Name the coordinates of a map, and its labels if it has some."""
    dimensions = Y.shape[1]
    names = AXES[:dimensions] if dimensions <= len(AXES) else [f"y{i}" for i in range(dimensions)]
    columns = dict(zip(names, Y.T, strict=True))
    return columns if labels is None else {**columns, "label": labels}


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
