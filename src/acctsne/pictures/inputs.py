"""What every picture begins with: checked points, and categories from any kind of labels."""

import unicodedata
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from acctsne.runtime.labels import label_array, missing_labels
from acctsne.runtime.tables import turned_into_numbers

Array = npt.NDArray[Any]

# Differences of larger ones overflow in single precision.
LARGEST_NUMBER = 1e37

# More different fractional numbers than this are measurements, not categories.
_MAX_FRACTIONAL_LABELS = 100


@dataclass(frozen=True)
class Categories:
    """Which category each point belongs to."""

    names: list[str]
    codes: npt.NDArray[np.int32]  # index into names; -1 for a point without a label

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        """Which points have no label."""
        return self.codes < 0

    def counts(self) -> npt.NDArray[np.intp]:
        """Points in each category."""
        return np.bincount(self.codes[~self.missing], minlength=len(self.names))


@dataclass(frozen=True)
class Quantized:
    """Coordinates in 16 bits: finer than a screen, and half of float32."""

    steps: npt.NDArray[np.uint16]
    low: npt.NDArray[np.float64]
    step: float

    @classmethod
    def of(cls, points: Array) -> "Quantized":
        """Round points to 65535 equal steps along the widest axis."""
        low = points.min(axis=0).astype(np.float64)
        step = float((points.max(axis=0) - low).max()) / 65535 or 1.0
        return cls(np.rint((points - low) / step).astype(np.uint16), low, step)

    def points(self) -> npt.NDArray[np.float32]:
        """Coordinates again, within half a step."""
        return (self.low + self.step * self.steps).astype(np.float32)


def check_points(Y: Any) -> Array:
    """Give Y as a finite float array of two or three columns."""
    if np.ma.is_masked(Y):
        raise ValueError("Y has masked values, and every point needs a place; leave out their rows")
    if issparse(Y):
        raise ValueError("Y is a sparse matrix, and a map is dense; give Y.toarray()")
    try:
        with turned_into_numbers(Y, "Y"):
            points = np.asarray(Y)
            if points.dtype.kind == "c":
                raise ValueError(f"got {points.dtype}")
            if points.dtype != np.float32:
                points = points.astype(np.float64, copy=False)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"Y must be an array of real numbers: {error}") from None
    if points.ndim != 2 or points.shape[1] not in (2, 3):
        advice = ""
        if points.ndim == 2 and points.shape[1] > 3:
            advice = ". Choose two or three columns, such as Y[:, :2], or embed Y itself once more"
        raise ValueError(
            f"Y must be of shape (n_points, 2) or (n_points, 3); got shape {points.shape}{advice}"
        )
    if len(points) == 0:
        raise ValueError("Y has no points")
    bad = ~np.isfinite(points).all(axis=1)
    if bad.any():
        raise ValueError(
            f"Y has NaN or infinity in {bad.sum()} of {len(points)} rows, the first is row "
            f"{np.argmax(bad)}; leave these rows out"
        )
    largest = float(np.abs(points).max())
    if largest > LARGEST_NUMBER:
        raise ValueError(
            f"Y has a coordinate of size {largest:g}; maps within {LARGEST_NUMBER:g} can be "
            "drawn, so scale it"
        )
    return points


def check_values(values: Any, n_points: int) -> npt.NDArray[np.float64]:
    """Give one number per point; NaN where there is none."""
    try:
        numbers = np.asarray(values)
        if numbers.dtype.kind == "c":
            raise ValueError(f"got {numbers.dtype}")
        numbers = numbers.astype(np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"values must be numbers ({error}); pass categories as labels=") from None
    _check_length("values", numbers, n_points)
    if np.isinf(numbers).any():
        raise ValueError(
            f"values has infinity in row {np.argmax(np.isinf(numbers))}; use NaN for missing ones"
        )
    return numbers


def entries(column: Any) -> list[Any]:
    """List what is in an array, a Series or anything else that can be gone through.

    Times of NumPy become text, for it lists some of them as numbers; None where there is none.
    Numbers of less than double precision stay what they are: 0.1 would get more digits.

    Examples
    --------
    >>> entries(np.array(["2026-01-31", "NaT"], dtype="datetime64[ns]"))
    ['2026-01-31', None]
    """
    dtype = getattr(column, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind == "M":
        array = np.asarray(column)
        texts = np.datetime_as_string(array, unit="auto").tolist()
        return [None if text == "NaT" else text.replace("T", " ") for text in texts]
    if isinstance(dtype, np.dtype) and dtype.kind == "f" and dtype.itemsize < 8:
        return list(np.asarray(column))
    return column.tolist() if hasattr(column, "tolist") else list(column)


def categories(labels: Any, n_points: int) -> Categories:
    """Read labels of any kind: strings, numbers, booleans, pandas Series or Categorical.

    Categories are in sorted order, or in a Categorical's own; None, NaN and NA are no category.

    Examples
    --------
    >>> found = categories(["b", None, "a", "b"], n_points=4)
    >>> found.names, found.codes.tolist()
    (['a', 'b'], [1, -1, 0, 1])
    """
    labels = getattr(labels, "array", labels)  # what a pandas Series holds
    if hasattr(labels, "categories") and hasattr(labels, "codes"):
        codes = np.asarray(labels.codes, dtype=np.int32)
        _check_length("labels", codes, n_points)
        used = np.unique(codes[codes >= 0])
        position = np.full(len(labels.categories) + 1, -1, dtype=np.int32)
        position[used] = np.arange(len(used))
        return Categories([category_name(labels.categories[i]) for i in used], position[codes])

    array = label_array(labels)
    _check_length("labels", array, n_points)
    present = ~missing_labels(array)
    listed = array[present].tolist()
    try:
        different = set(listed)
    except TypeError as error:
        raise ValueError(f"labels must be strings, numbers or booleans: {error}") from None
    if len(different) > _MAX_FRACTIONAL_LABELS and any(
        isinstance(label, float) and not label.is_integer() for label in different
    ):
        raise ValueError(
            f"labels has {len(different)} different fractional numbers; pass them as values="
        )
    try:
        ordered = sorted(different)
    except TypeError:  # of several types
        ordered = sorted(different, key=str)
    index = {label: code for code, label in enumerate(ordered)}
    codes = np.full(n_points, -1, dtype=np.int32)
    codes[present] = np.fromiter(map(index.__getitem__, listed), np.int32, len(listed))
    return Categories([category_name(label) for label in ordered], codes)


def drawable(text: Any) -> str:
    """Give text as fonts and SVG files can hold it.

    Control characters and lone surrogates, which they cannot, are replaced.
    """
    return "".join(
        character
        if character == "\n" or unicodedata.category(character) not in ("Cc", "Cs")
        else " "
        if character.isspace()
        else "\N{REPLACEMENT CHARACTER}"
        for character in str(text)
    )


def category_name(label: Any) -> str:
    """Give the name of a label's category, as which its picture has it."""
    if isinstance(label, bytes):
        return label.decode(errors="replace")
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)


def _check_length(name: str, array: Array, n_points: int) -> None:
    if array.shape != (n_points,):
        raise ValueError(
            f"{name} must have one entry for each of the {n_points} points; got shape {array.shape}"
        )
