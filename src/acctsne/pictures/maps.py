"""Several maps in one picture: which of their points are the same, and what is known of them."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne.pictures.inputs import Categories, categories, check_points, entries
from acctsne.runtime.checks import check_unique

Array = npt.NDArray[Any]

_UNKNOWN = object()


@dataclass(frozen=True)
class Maps:
    """One map or several, of points that are counted once however many maps have them."""

    layouts: list[Array]
    titles: list[str]
    n_points: int
    rows: list[npt.NDArray[np.intp]]  # which point each row of each map is
    ids: list[Any] | None  # of the points
    apart: bool  # rows differ from map to map, and what is known of them is given for each map

    @classmethod
    def of(cls, Y: Any, ids: Any = None, titles: Any = None) -> "Maps":
        """Check a map, or a list of maps with ids of their rows and titles.

        Examples
        --------
        >>> import numpy as np
        >>> maps = Maps.of([np.eye(2), np.zeros((3, 2))], ids=["ab", "bcd"])
        >>> maps.ids, [rows.tolist() for rows in maps.rows], maps.titles
        (['a', 'b', 'c', 'd'], [[0, 1], [1, 2, 3]], ['map 1', 'map 2'])
        """
        several = _are_several(Y)
        layouts = (
            [_named(f"map {m + 1}: ", check_points, each) for m, each in enumerate(Y)]
            if several
            else [check_points(Y)]
        )
        titles = _titles(titles, len(layouts))
        if len({layout.shape[1] for layout in layouts}) > 1:
            counts = [layout.shape[1] for layout in layouts]
            raise ValueError(f"maps must have the same number of columns; got {counts}")
        sizes = [len(layout) for layout in layouts]
        if several and ids is not None:
            names, rows = _points_of_ids(ids, sizes)
            return cls(layouts, titles, len(names), rows, names, apart=True)
        if len(set(sizes)) > 1:
            raise ValueError(
                f"maps have {sizes} points; give ids, a list of names for each map, to tell which "
                "points are the same"
            )
        if ids is not None:
            ids = entries(ids)
            if len(ids) != sizes[0]:
                raise ValueError(
                    f"ids must have one entry for each of the {sizes[0]} points; got {len(ids)}"
                )
        every = np.arange(sizes[0])
        return cls(layouts, titles, sizes[0], [every] * len(layouts), ids, apart=False)

    def __len__(self) -> int:
        return len(self.layouts)

    def each(self, name: str, given: Any) -> list[Any]:
        """Check that something is given for each map."""
        if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != len(self):
            kind = type(given).__name__
            count = f" of {len(given)}" if isinstance(given, Sequence) else ""
            raise ValueError(
                f"{name} must be a list with one entry for each of the {len(self)} maps, as ids "
                f"is; got {kind}{count}"
            )
        return list(given)

    def labels(self, given: Any) -> Categories | None:
        """Give the category of every point."""
        if given is None:
            return None
        if not self.apart:
            return categories(given, self.n_points)
        parts = [getattr(part, "array", part) for part in self.each("labels", given)]
        for part, rows in zip(parts, self.rows, strict=True):
            categories(part, len(rows))  # for its errors
        if all(hasattr(part, "categories") and hasattr(part, "codes") for part in parts):
            union = sys.modules["pandas"].api.types.union_categoricals
            joined = union(parts, ignore_order=True)
        else:
            joined = [label for part in parts for label in entries(part)]
        found = categories(joined, sum(map(len, self.rows)))
        every = np.concatenate(self.rows)
        codes = found.codes[self._first_rows()]
        wrong = np.flatnonzero(codes[every] != found.codes)
        if len(wrong):
            assert self.ids is not None
            of = [*found.names, "none"]
            point = every[wrong[0]]
            raise ValueError(
                f"id {self.ids[point]!r} has the label {of[codes[point]]!r} in one map and "
                f"{of[found.codes[wrong[0]]]!r} in another; a point has one label. What differs "
                "from map to map can be given as hover"
            )
        return Categories(found.names, codes)

    def numbers(self, name: str, given: Any, check: Callable[[Any, int], Array]) -> list[Array]:
        """Give a number for each row of each map."""
        if not self.apart:
            return [check(given, self.n_points)] * len(self)
        parts = self.each(name, given)
        return [check(part, len(rows)) for part, rows in zip(parts, self.rows, strict=True)]

    def images(self, given: Any) -> Any:
        """Give the picture of every point, from the first map that has it."""
        if given is None or not self.apart:
            return given
        parts = [np.asarray(part) for part in self.each("images", given)]
        for m, (part, rows) in enumerate(zip(parts, self.rows, strict=True)):
            if part.ndim < 3 or len(part) != len(rows) or part.shape[1:] != parts[0].shape[1:]:
                raise ValueError(
                    f"images[{m}] must be of shape ({len(rows)}, height, width), and all images of "
                    f"one size; got shape {part.shape}"
                )
        return np.concatenate(parts)[self._first_rows()]

    def column(
        self, parts: Sequence[Any], equal: Callable[[Any, Any], bool]
    ) -> list[tuple[int | None, list[Any]]]:
        """Give a column of the points, from columns of the maps, None where one has none.

        Where maps differ about a point, there is a column for each map, told by its number.
        """
        merged: list[Any] = [_UNKNOWN] * self.n_points
        own: list[tuple[int | None, list[Any]]] = []
        same = True
        for m, (rows, part) in enumerate(zip(self.rows, parts, strict=True)):
            if part is None:
                continue
            column: list[Any] = [None] * self.n_points
            for row, entry in zip(rows.tolist(), part, strict=True):
                column[row] = entry
                if merged[row] is _UNKNOWN:
                    merged[row] = entry
                elif not equal(merged[row], entry):
                    same = False
            own.append((m, column))
        if not same:
            return own
        return [(None, [None if entry is _UNKNOWN else entry for entry in merged])]

    def _first_rows(self) -> npt.NDArray[np.intp]:
        """Where each point is first, counting the rows of all maps one after the other."""
        return np.unique(np.concatenate(self.rows), return_index=True)[1]


def _are_several(Y: Any) -> bool:
    if not isinstance(Y, list | tuple) or not Y:
        return False
    try:
        return np.ndim(Y[0]) == 2
    except ValueError:  # of ragged lists
        return False


def _named(name: str, check: Callable[[Any], Array], given: Any) -> Array:
    try:
        return check(given)
    except ValueError as error:
        raise ValueError(f"{name}{error}") from None


def _titles(titles: Any, count: int) -> list[str]:
    if titles is None:
        return [f"map {m + 1}" for m in range(count)]
    if isinstance(titles, str) or len(titles) != count:
        raise ValueError(f"titles must be a list of {count}, one for each map; got {titles!r}")
    return [str(title) for title in titles]


def _points_of_ids(ids: Any, sizes: Sequence[int]) -> tuple[list[Any], list[Array]]:
    """Count different ids once, in the order in which they appear."""
    if isinstance(ids, str) or not isinstance(ids, Sequence) or len(ids) != len(sizes):
        raise ValueError(f"ids must be a list with the ids of each of the {len(sizes)} maps")
    number: dict[Any, int] = {}
    rows = []
    for m, (given, size) in enumerate(zip(ids, sizes, strict=True)):
        names = entries(given)
        if len(names) != size:
            raise ValueError(f"ids[{m}] has {len(names)} entries for {size} points")
        check_unique(names, f"ids[{m}]")
        if m and not any(name in number for name in names):
            raise ValueError(
                f"ids[{m}] has none of the ids before, such as {next(iter(number))!r}, but "
                f"{names[0]!r}: maps are shown together if they share points"
            )
        rows.append(np.array([number.setdefault(name, len(number)) for name in names]))
    return list(number), rows
