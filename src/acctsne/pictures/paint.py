"""How the points of a picture are coloured: by categories, by numbers, or all alike."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne.pictures.colors import SINGLE, categorical, from_hex
from acctsne.pictures.inputs import Categories, categories, category_name, check_values
from acctsne.runtime.optional import require

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Paint:
    """How points are coloured: each has a row of a table of colours, or -1 for none."""

    rows: Array
    table: Array
    categories: Categories | None = None
    scale: Any = None  # matplotlib's ScalarMappable, for a colour bar
    extend: str = "neither"  # at which ends of the scale values are cut off

    @classmethod
    def of(cls, n_points: int, labels: Any, values: Any, colors: Any, cmap: str) -> "Paint":
        """Colour points by labels or by values, all alike if there are neither."""
        if labels is not None and values is not None:
            raise ValueError("points are coloured either by labels or by values; got both")
        if labels is not None:
            found = labels if isinstance(labels, Categories) else categories(labels, n_points)
            return cls(found.codes, _category_colors(found.names, colors), found)
        if values is not None:
            return _paint_values(check_values(values, n_points), cmap)
        return cls(np.zeros(n_points, dtype=np.int32), from_hex(SINGLE)[None])

    def part(self, points: slice) -> "Paint":
        """How some of the points are coloured, with only the categories that they have."""
        rows = self.rows[points]
        if self.categories is None:
            return replace(self, rows=rows)
        used, codes = np.unique(rows[rows >= 0], return_inverse=True)
        own = np.full(len(rows), -1, dtype=np.int32)
        own[rows >= 0] = codes
        named = Categories([self.categories.names[code] for code in used], own)
        return replace(self, rows=own, table=self.table[used], categories=named)


def _category_colors(names: list[str], colors: Any) -> Array:
    if colors is None:
        return categorical(len(names))
    to_rgb = require("matplotlib.colors", "plot").to_rgb
    if isinstance(colors, Mapping):
        colors = {category_name(label): color for label, color in colors.items()}
        lacking = [name for name in names if name not in colors]
        if lacking:
            raise ValueError(f"colors has none for {lacking[0]!r}; give one for every category")
        colors = [colors[name] for name in names]
    if isinstance(colors, str) or not isinstance(colors, Iterable):
        raise TypeError(f"colors must be a mapping or a list of colours; got {colors!r}")
    colors = list(colors)
    if len(colors) < len(names):
        raise ValueError(f"colors has {len(colors)} for {len(names)} categories")
    table = []
    for name, color in zip(names, colors, strict=False):
        try:
            table.append(to_rgb(color))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"colors has {color!r} for {name!r}, which is no colour of matplotlib's: {error}"
            ) from None
    return np.array(table).reshape(-1, 3)


def _paint_values(numbers: Array, cmap: str) -> Paint:
    present = numbers[~np.isnan(numbers)]
    if len(present) == 0:
        raise ValueError("values are all missing")
    low, high = np.percentile(present, [0.5, 99.5])
    if low == high:
        low, high = present.min(), present.max()
    cut = (bool(present.min() < low), bool(present.max() > high))
    colormaps = require("matplotlib", "plot").colormaps
    if isinstance(cmap, str) and cmap not in colormaps:
        near = get_close_matches(cmap.lower(), colormaps, 3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise ValueError(f"cmap must be a colour map of matplotlib's; got {cmap!r}{hint}")
    if not isinstance(cmap, str | require("matplotlib.colors", "plot").Colormap):
        raise TypeError(f"cmap must be the name of a colour map of matplotlib's; got {cmap!r}")
    norm = require("matplotlib.colors", "plot").Normalize(low, high)
    colormap = colormaps[cmap] if isinstance(cmap, str) else cmap
    scale = require("matplotlib.cm", "plot").ScalarMappable(norm, colormap)
    table = scale.cmap(np.linspace(0, 1, 256))[:, :3]
    position = np.nan_to_num((numbers - low) / ((high - low) or 1.0))
    rows = np.rint(255 * np.clip(position, 0, 1)).astype(np.int32)
    rows[np.isnan(numbers)] = -1
    extend = {(True, True): "both", (True, False): "min", (False, True): "max"}.get(cut, "neither")
    return Paint(rows, table, scale=scale, extend=extend)
