"""Pictures of maps that need no tuning, from a hundred points to ten million.

`scatter` draws into matplotlib axes, `save` writes a file, `LivePlot` shows a fit as it runs.
"""

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from acctsne.files.replacing import replacing, suffix_of
from acctsne.pictures.colors import MISSING, from_hex
from acctsne.pictures.inputs import Categories, check_points, check_values, drawable
from acctsne.pictures.label_places import island_medians, spread
from acctsne.pictures.maps import Maps
from acctsne.pictures.paint import Paint
from acctsne.pictures.shading import pixel_of, shade
from acctsne.runtime.interrupts import lost_interrupts
from acctsne.runtime.optional import require
from acctsne.runtime.progress import in_notebook

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = npt.NDArray[Any]

# Formats of pictures.
SUFFIXES = (".png", ".pdf", ".svg")

# Above this many points a map is counted on a grid: markers would hide one another.
SHADE_ABOVE = 1_000_000

# Names are written on the map up to this many categories; beyond, there is a legend.
MAX_NAMES = 30

# The longest legend; the largest categories are in it.
MAX_LEGEND = 120

_INCHES = 6.0  # of a new map's side
_PANEL_INCHES, _MAX_ACROSS = 4.0, 4  # of each of several maps, and how many stand side by side
_DPI = 200  # of written pictures, and of points inside vector formats
_MARGIN = 0.03  # of the map's extent, around it
_LONGEST_NAME = 32
_LEAST_SIZE, _LARGEST_SIZE = 0.15, 14.0  # of a marker, in square points
_LARGEST_MARKER = 1e6  # that is drawn if asked for: wider than a picture


def scatter(
    Y: npt.ArrayLike,
    labels: Any = None,
    values: Any = None,
    *,
    ax: "Axes | None" = None,
    size: float | None = None,
    alpha: float | Array | None = None,
    colors: Mapping[str, Any] | Sequence[Any] | None = None,
    cmap: str = "viridis",
    names: bool | None = None,
    legend: bool | None = None,
    title: str | None = None,
) -> "Axes":
    """Draw a map.

    Points are drawn in a fixed random order, so that no category hides another; those without label
    or value are grey and lie below. More than a million points are counted on a fine grid instead.

    Parameters
    ----------
    Y : array-like of shape (n_points, 2) or (n_points, 3)
        The map.
    labels : array-like of shape (n_points,), default=None
        Categories of any kind: strings, integers, booleans, a pandas Categorical. None and NaN
        are no category.
    values : array-like of shape (n_points,), default=None
        Numbers to colour points by, instead of labels. Colours span all but the outermost 0.5 %
        at either end.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure of pyplot's if None. For three columns, axes made with
        `projection="3d"`.
    size : float, default=None
        Area of a marker in square points; None to have it follow from how densely the points lie.
    alpha : float or ndarray of shape (n_points,), default=None
        Opacity of all markers, or of each; None to have it follow likewise.
    colors : mapping or sequence of colours, default=None
        Colours of the categories, by label or in order; None for a palette of colours as different
        as can be.
    cmap : str, default="viridis"
        matplotlib's colour map for `values`.
    names : bool, default=None
        Whether to write categories at their medians; None to do so for up to 30.
    legend : bool, default=None
        Whether to draw a legend or colour bar; None to do so for `values` and where there are no
        names.
    title : str, default=None
        Text above the map.

    Returns
    -------
    ax : matplotlib Axes
        The axes drawn into.

    Examples
    --------
    >>> import numpy as np
    >>> from acctsne import plot
    >>> ax = plot.scatter(np.random.default_rng(0).normal(size=(100, 2)), ["a", "b"] * 50)
    >>> [text.get_text() for text in ax.texts]
    ['a', 'b']
    """
    points = check_points(Y)
    _check_markers(size, alpha, len(points))
    paint = Paint.of(len(points), labels, values, colors, cmap)
    own = ax is None
    ax = _new_axes(points.shape[1]) if ax is None else _check_axes(ax, points.shape[1])
    names, legend = _what_to_write(paint, names, legend)
    _draw_points(ax, points, paint, size, alpha, _frame(points))
    if title is not None:
        ax.set_title(drawable(title), parse_math=False)
    if legend:
        _add_key([ax], paint, own)
    if names:
        _write_names(ax, points, paint)
    return ax


def save(
    Y: npt.ArrayLike | Sequence[npt.ArrayLike],
    path: str | Path,
    labels: Any = None,
    values: Any = None,
    *,
    ids: Any = None,
    title: str | None = None,
    titles: Sequence[str] | None = None,
    **options: Any,
) -> None:
    """Draw a map, or several beside each other, into a png, pdf or svg file.

    In pdf and svg, text stays text and the points are one image, so that files stay small. Several
    maps are seen through the same frame, in the same colours.

    Parameters
    ----------
    Y : array-like of shape (n_points, 2) or (n_points, 3), or list of such
        The map, or several.
    labels, values, title
        As for `scatter`; with ids, lists with one entry for each map.
    path : str or Path
        The file, which is replaced whole or not at all; its suffix says the format.
    ids : list of array-like of shape (n_points,), default=None
        Names of the points of each of several maps, where these differ in points.
    titles : list of str, default=None
        Text above each of several maps.
    **options
        Other parameters of `scatter` but `ax`.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from acctsne import plot
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot.save(np.eye(2), f"{folder}/map.png", title="Two points")
    ...     os.listdir(folder)
    ['map.png']
    """
    path = Path(path)
    if suffix_of(path) not in SUFFIXES:
        raise ValueError(f"a picture is written as .png, .pdf or .svg; got {str(path)!r}")
    if "ax" in options:
        raise TypeError("save draws into a figure of its own; to draw into axes, use scatter")
    maps = Maps.of(Y, ids, titles)
    with lost_interrupts() as raise_if_lost:
        if len(maps) == 1:
            figure = _draw(maps.layouts[0], labels, values, title=title, **options)
        else:
            figure = _draw_several(maps, labels, values, title, Look(**options))
        # Tight: a legend stands outside the axes and is to widen the picture, not to squeeze the
        # map.
        with replacing(path) as beside:
            figure.savefig(beside, dpi=_DPI, bbox_inches="tight", pad_inches=0.1)
            raise_if_lost()


def _draw(Y: npt.ArrayLike, labels: Any, values: Any, **options: Any) -> "Figure":
    """Draw a map into a figure that pyplot knows nothing of."""
    points = check_points(Y)
    figure: Figure = require("matplotlib.figure", "plot").Figure(figsize=(_INCHES, _INCHES))
    projection = "3d" if points.shape[1] == 3 else None
    ax = figure.add_axes((0, 0, 1, 0.94), projection=projection)
    scatter(points, labels, values, ax=ax, **options)
    return figure


@dataclass(frozen=True)
class Look:
    """Those parameters of `scatter` that say how a map looks."""

    size: float | None = None
    alpha: float | None = None
    colors: Any = None
    cmap: str = "viridis"
    names: bool | None = None
    legend: bool | None = None


def _draw_several(maps: Maps, labels: Any, values: Any, title: str | None, look: Look) -> "Figure":
    """Draw maps beside each other, as `scatter` would each, with one key for all."""
    rows = np.concatenate(maps.rows)
    if values is not None:
        values = np.concatenate(maps.numbers("values", values, check_values))
    found = maps.labels(labels)
    if found is not None:
        found = Categories(found.names, found.codes[rows])
    paint = Paint.of(len(rows), found, values, look.colors, look.cmap)
    names, legend = _what_to_write(paint, look.names, look.legend)
    across = min(len(maps), _MAX_ACROSS)
    down = math.ceil(len(maps) / across)
    figure: Figure = require("matplotlib.figure", "plot").Figure(
        figsize=(across * _PANEL_INCHES, down * _PANEL_INCHES)
    )
    frame = _frame(np.concatenate(maps.layouts))
    ends = np.cumsum([0, *map(len, maps.layouts)])
    axes = []
    for m, points in enumerate(maps.layouts):
        place = (
            (m % across) / across,
            1 - (m // across + 1) / down,
            0.98 / across,
            0.92 / down,
        )
        ax = figure.add_axes(place, projection="3d" if points.shape[1] == 3 else None)
        part = paint.part(slice(ends[m], ends[m + 1]))
        _draw_points(ax, points, part, look.size, look.alpha, frame)
        ax.set_title(drawable(maps.titles[m]), parse_math=False)
        if names:
            _write_names(ax, points, part)
        axes.append(ax)
    if legend:
        _add_key(axes, paint, grow=False)
    if title is not None:
        figure.suptitle(drawable(title), y=1 + 0.02 / down, va="bottom", parse_math=False)
    return figure


class LivePlot:
    """Show a fit as it runs: a picture in the notebook that changes, or a window.

    Where there is neither, as in a script on a server, it does nothing.

    Parameters
    ----------
    labels, values : array-like of shape (n_points,), default=None
        As for `scatter`.
    **options
        Other parameters of `scatter`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from acctsne import TSNE, plot
    >>> X, y = load_digits(return_X_y=True)
    >>> tsne = TSNE(callback=plot.LivePlot(y), callback_every=25, max_iter=250).fit(X)
    """

    def __init__(self, labels: Any = None, values: Any = None, **options: Any) -> None:
        self.labels = labels
        self.values = values
        self.options = options
        self._handle: Any = None
        self._ax: Any = None

    def __call__(self, iteration: int, kl: float, positions: Array) -> None:
        """Draw the present layout; a callback of `acctsne.TSNE`."""
        title = f"iteration {iteration + 1}, KL divergence {kl:.3f}"
        if in_notebook():
            self._show_in_notebook(positions, title)
        elif _has_window():
            self._show_in_window(positions, title)

    def _show_in_notebook(self, positions: Array, title: str) -> None:
        picture = io.BytesIO()
        figure = _draw(positions, self.labels, self.values, title=title, **self.options)
        figure.savefig(picture, format="png", dpi=80, bbox_inches="tight")
        ipython = require("IPython.display", "plot")
        image = ipython.Image(data=picture.getvalue())
        if self._handle is None:
            self._handle = ipython.display(image, display_id=True)
        else:
            self._handle.update(image)

    def _show_in_window(self, positions: Array, title: str) -> None:
        import matplotlib.pyplot as plt

        if self._ax is None:
            self._ax = _new_axes(positions.shape[1])
        self._ax.clear()
        scatter(positions, self.labels, self.values, ax=self._ax, title=title, **self.options)
        plt.pause(0.001)  # lets the window draw


def _has_window() -> bool:
    matplotlib = require("matplotlib", "plot")
    backends = require("matplotlib.backends", "plot")
    interactive = backends.backend_registry.list_builtin(backends.BackendFilter.INTERACTIVE)
    return matplotlib.get_backend().lower() in interactive


def _check_markers(size: Any, alpha: Any, n_points: int) -> None:
    """Refuse sizes and opacities that matplotlib stumbles over, or never comes to an end with."""
    limits = {"size": (size, _LARGEST_MARKER), "alpha": (alpha, 1.0)}
    for name, (given, most) in limits.items():
        if given is None:
            continue
        array = np.asarray(given)
        numbers = array.dtype.kind in "iuf" and bool(((array >= 0) & (array <= most)).all())
        if not numbers or array.shape not in ((), (1,), (n_points,)):
            raise ValueError(
                f"{name} must be a number from 0 to {most:g}, or one for each of the {n_points} "
                f"points; got {given!r}"
            )


def _new_axes(n_columns: int) -> "Axes":
    plt = require("matplotlib.pyplot", "plot")
    figure = plt.figure(figsize=(_INCHES, _INCHES))
    # Room for a title above; more is made on the right if a legend needs it.
    ax: Axes = figure.add_axes((0.02, 0, 0.94, 0.94), projection="3d" if n_columns == 3 else None)
    return ax


def _check_axes(ax: Any, n_columns: int) -> Any:
    if not isinstance(ax, require("matplotlib.axes", "plot").Axes):
        raise TypeError(f"ax must be axes of matplotlib, or None; got {type(ax).__name__}")
    if (ax.name == "3d") != (n_columns == 3):
        needed = 'projection="3d"' if n_columns == 3 else "no projection"
        raise ValueError(f"a map of {n_columns} columns needs axes with {needed}; got {ax.name!r}")
    return ax


def _what_to_write(paint: Paint, names: bool | None, legend: bool | None) -> tuple[bool, bool]:
    """Whether there are names on the map, and whether there is a legend or a colour bar."""
    n_categories = 0 if paint.categories is None else len(paint.categories.names)
    if names is None:
        names = n_categories <= MAX_NAMES
    names = names and n_categories > 0
    if legend is None:
        legend = paint.scale is not None or not names
    return names, legend and (paint.scale is not None or n_categories > 0)


def _frame(points: Array) -> tuple[Array, Array]:
    """Corners of a square, or cube, around all points, with some room."""
    low, high = points.min(axis=0).astype(float), points.max(axis=0).astype(float)
    half = ((high - low).max() / 2 or 1.0) * (1 + 2 * _MARGIN)
    return (low + high) / 2 - half, (low + high) / 2 + half


def _set_frame(ax: "Axes", low: Array, high: Array) -> None:
    """Set the limits of the axes and take away everything else."""
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])
    if isinstance(ax, require("mpl_toolkits.mplot3d", "plot").Axes3D):
        ax.set_zlim(low[2], high[2])
        ax.set_box_aspect((1, 1, 1), zoom=1.1)
        # The walls stay, as if lit from one side: they show the depth.
        walls = zip((ax.xaxis, ax.yaxis, ax.zaxis), ("0.965", "0.98", "0.945"), strict=True)
        for axis, grey in walls:
            axis.set_ticks([])
            axis.set_pane_color(grey)
            axis.line.set_visible(False)
    else:
        ax.set_aspect("equal", adjustable="box")
        ax.set_axis_off()


def _draw_points(
    ax: Any,
    points: Array,
    paint: Paint,
    size: float | None,
    alpha: float | Array | None,
    frame: tuple[Array, Array],
) -> None:
    low, high = frame
    _set_frame(ax, low, high)
    table = np.vstack([paint.table, from_hex(MISSING)])  # row -1
    if len(points) > SHADE_ABOVE and points.shape[1] == 2:
        image = shade(points, low, high, _pixels(points, low, high), paint.rows, table)
        extent = (low[0], high[0], low[1], high[1])
        ax.imshow(image, extent=extent, origin="lower", interpolation="antialiased")
        return
    auto_size, auto_alpha = marker(ax, points)
    order = np.random.default_rng(0).permutation(len(points))
    order = np.concatenate([order[paint.rows[order] < 0], order[paint.rows[order] >= 0]])
    ax.scatter(
        *points[order].T,
        s=auto_size if size is None else size,
        c=table[paint.rows[order]],
        alpha=auto_alpha if alpha is None else np.broadcast_to(alpha, len(points))[order],
        linewidths=0,
        rasterized=True,
    )


def _pixels(points: Array, low: Array, high: Array) -> int:
    """Pixels along a side of a shaded map: three points on each that has any, on average."""
    coarse = 256
    cells = np.bincount(pixel_of(points, low, high, coarse))
    covered = np.count_nonzero(cells) / coarse**2
    return int(min(math.sqrt(len(points) / (3 * covered)), 2 * _INCHES * _DPI))


def marker(ax: "Axes", points: Array) -> tuple[float, float]:
    """Marker area in square points and opacity, from how densely the points lie.

    Markers together have 0.7 times the area that the map covers. Opacity is such that at a typical
    point's place, where markers may lie upon one another, 0.9 of the background is hidden.
    """
    low, high = points.min(axis=0)[:2], points.max(axis=0)[:2]
    side = float((high - low).max()) or 1.0
    cells = int(np.clip(math.sqrt(len(points) / 8), 4, 256))
    cell = pixel_of(points[:, :2], low, low + side, cells)
    counts = np.bincount(cell)
    box = ax.get_window_extent()
    width = min(box.width, box.height) * 72 / ax.figure.dpi / (1 + 2 * _MARGIN)
    cell_area = (width / cells) ** 2
    covered = np.count_nonzero(counts) * cell_area
    size = float(np.clip(0.7 * covered / len(points), _LEAST_SIZE, _LARGEST_SIZE))
    layers = float(np.median(counts[cell])) * size / cell_area
    return size, float(np.clip(1 - 0.1 ** (1 / layers), 0.2, 0.9))


def _short(name: str) -> str:
    name = drawable(" ".join(name.split()))
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _write_names(ax: Any, points: Array, paint: Paint) -> None:
    found = paint.categories
    if found is None or not found.names:
        return
    patheffects = require("matplotlib.patheffects", "plot")
    anchors = island_medians(points, found.codes, len(found.names))
    style: dict[str, Any] = {
        "ha": "center",
        "va": "center",
        "fontsize": 12 if len(anchors) <= 12 else 9,
        "fontweight": "bold",
        "parse_math": False,
        "path_effects": [patheffects.withStroke(linewidth=3, foreground="white", alpha=0.8)],
    }
    texts = [
        ax.text(*anchor, _short(name), color=0.5 * color, **style)
        for anchor, name, color in zip(anchors, found.names, paint.table, strict=True)
    ]
    if points.shape[1] == 3:
        return
    root = ax.figure.canvas.figure
    if root.get_layout_engine() is not None:
        root.draw_without_rendering()  # so that boxes are measured where they will be
    boxes = [text.get_window_extent() for text in texts]
    sizes = np.array([(box.width + 2, box.height) for box in boxes])
    wanted = ax.transData.transform(anchors)
    places = ax.transData.inverted().transform(spread(wanted, sizes))
    for text, place in zip(texts, places, strict=True):
        text.set_position(tuple(place))


def _add_key(axes: "list[Axes]", paint: Paint, grow: bool) -> None:
    """Add what tells the colours: a bar for numbers, or a legend, beside the last of the axes."""
    if paint.scale is not None:
        _add_color_bar(axes, paint)
    elif paint.categories is not None:
        _add_legend(axes[-1], paint.categories, paint.table, grow)


def _add_legend(ax: "Axes", found: Categories, table: Array, grow: bool) -> None:
    """List the categories beside the axes, in as many columns as they need."""
    from matplotlib.lines import Line2D

    largest = np.argsort(-found.counts(), kind="stable")[:MAX_LEGEND]
    shown = np.sort(largest)
    entries = [
        Line2D([], [], ls="", marker="o", ms=6, mew=0, color=table[i], label=_short(found.names[i]))
        for i in shown
    ]
    left_out = len(found.names) - len(shown)
    if left_out:
        entries.append(Line2D([], [], ls="", label=f"and {left_out} smaller ones"))
    if found.missing.any():
        entries.append(Line2D([], [], ls="", marker="o", ms=6, mew=0, color=MISSING, label="none"))
    font = 9 if len(entries) <= 25 else 7
    height = ax.get_window_extent().height * 72 / ax.figure.dpi
    rows = max(int(height / (1.5 * font)), 1)
    box = ax.legend(
        handles=entries,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        ncols=math.ceil(len(entries) / rows),
        fontsize=font,
        frameon=False,
        handletextpad=0.2,
        columnspacing=1.0,
        labelspacing=0.35,
        borderaxespad=0.3,
    )
    for text in box.get_texts():
        text.set_parse_math(False)
    if grow:
        figure = ax.figure.canvas.figure
        place = ax.get_position()
        width = box.get_window_extent().x1 / figure.dpi + 0.1
        figure.set_size_inches(width, _INCHES)
        shrink = _INCHES / width
        ax.set_position((place.x0 * shrink, place.y0, place.width * shrink, place.height))


def _add_color_bar(axes: "list[Axes]", paint: Paint) -> None:
    bar = axes[0].figure.colorbar(
        paint.scale, ax=axes, extend=paint.extend, extendfrac=0.03, shrink=0.5, aspect=25, pad=0.01
    )
    bar.ax.tick_params(labelsize=9)
    bar.outline.set_visible(False)
