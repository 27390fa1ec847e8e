"""A map, or several, as one HTML file that needs no network: pan, zoom, hover, search, select.

1. Coordinates are rounded to 16 bits, categories and columns to codes, and written as base64.
2. Thumbnails are tiled into sheets, PNG images of at most 2048 pixels a side.
3. Text is written as JSON in which no character can end the script element around it.
4. The page in `pages/` shows all this with Plotly, which is written into the file, too.

The page's content security policy forbids every request to elsewhere.
"""

import base64
import html
import io
import json
import math
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne.files.replacing import replacing, suffix_of
from acctsne.pictures.colors import MISSING, SINGLE, categorical, hex_codes
from acctsne.pictures.hover import MAX_CATEGORIES, columns_of, fields_of, palette_of, texts_of
from acctsne.pictures.inputs import LARGEST_NUMBER, Categories, Quantized
from acctsne.pictures.maps import Maps
from acctsne.runtime.optional import require

Array = npt.NDArray[Any]

SUFFIXES = (".html", ".htm")

# The page's program, in the order in which its parts need each other.
_PROGRAM = ("data", "card", "search", "selection", "coloring", "flipping", "controls", "map")

# Sides of a sheet of thumbnails, and of one of them: larger images are reduced.
_SHEET, _THUMBNAIL = 2048, 64

_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:"
)


def write(
    Y: npt.ArrayLike | Sequence[npt.ArrayLike],
    path: str | Path,
    *,
    labels: Any = None,
    hover: Any = None,
    images: Any = None,
    ids: Any = None,
    title: str | None = None,
    titles: Sequence[str] | None = None,
) -> None:
    """Write a map as one interactive HTML file, or several maps to flip between.

    Drag to pan, scroll to zoom, click a legend's entry to hide a category and double-click to see
    it alone; select points with a box or a lasso and take their ids as csv; colour by any of the
    hover columns. All text is shown as it is: markup in it has no effect.

    Of several maps one is shown. On the way to another, points that both have move from their place
    to the next, and the others fade.

    Parameters
    ----------
    Y : array-like of shape (n_points, 2) or (n_points, 3), or list of such
        The map; one of three columns can be rotated. Or several maps, such as those of
        :class:`AlignedTSNE`.
    path : str or Path
        The file, .html or .htm, which is replaced whole or not at all.
    labels : array-like of shape (n_points,), default=None
        Categories of any kind, as for `acctsne.plot.scatter`.
    hover : DataFrame or mapping of names to columns, default=None
        What to show about the point under the pointer, and to colour by: a column of numbers on a
        scale, or as categories if it has no more than 12 different ones; of text, if it has no more
        than 200 different ones.
    images : array-like of shape (n_points, height, width[, 3 or 4]), default=None
        A thumbnail of each point. Other types than uint8 are scaled from their least to their
        greatest value.
    ids : array-like of shape (n_points,), default=None
        What points are searched by; None for row numbers from 0. Of several maps, a list with the
        ids of each: equal ones are the same point. Labels, hover and images are then lists with
        one entry for each map, too. With None, a row is the same point in every map, and all else
        is given once. A point has one label; of a hover column that differs from map to map there
        is one for each.
    title : str, default=None
        Heading of the page.
    titles : list of str, default=None
        What each of several maps is called.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_digits
    >>> from acctsne import html
    >>> digits = load_digits()
    >>> Y = digits.data[:, 20:22]  # stands in for a map
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     html.write(Y, f"{folder}/map.html", labels=digits.target, images=digits.images)
    ...     os.listdir(folder)
    ['map.html']

    Two batches of digits, with points in both:

    >>> from acctsne import AlignedTSNE
    >>> rows = [range(200), range(100, 300)]
    >>> maps = AlignedTSNE().fit_transform([digits.data[list(each)] for each in rows], ids=rows)
    >>> labels = [digits.target[list(each)] for each in rows]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     html.write(maps, f"{folder}/maps.html", ids=rows, labels=labels, titles=["a", "b"])
    ...     os.listdir(folder)
    ['maps.html']
    """
    path = Path(path)
    if suffix_of(path) not in SUFFIXES:
        raise ValueError(f"a page is written as .html or .htm; got {str(path)!r}")
    maps = Maps.of(Y, ids, titles)
    n_points = maps.n_points
    found = maps.labels(labels)
    codes, legend = _legend(found, n_points)
    fields = fields_of(hover, maps)
    if found is not None and not legend["labelled"]:
        fields.insert(
            0, ("label", [found.names[code] if code >= 0 else "" for code in found.codes])
        )
    columns, places = columns_of(fields, n_points)
    thumbnails, sheets = _sheets(maps.images(images), n_points)
    quantized = Quantized.of(np.concatenate(maps.layouts))
    sizes = [len(layout) for layout in maps.layouts]
    steps = np.split(quantized.steps, np.cumsum(sizes)[:-1])
    about = {
        "low": quantized.low.tolist(),
        "step": quantized.step,
        # Diameters in pixels, and opacity, that suit a window of about 1000 pixels a side.
        "size": float(np.clip(600 / math.sqrt(max(sizes)), 1.5, 7)),
        "opacity": float(np.clip(250 / math.sqrt(max(sizes)), 0.6, 0.85)),
        "maps": maps.titles,
        "apart": maps.apart,
        "columns": columns,
        "palette": palette_of(columns),
        "missing": MISSING,
        "ids": None if maps.ids is None else texts_of("ids", maps.ids, n_points),
        "images": thumbnails,
        **legend,
    }
    scripts = {
        "about": _json(about),
        **{f"positions{m}": _base64(own.T) for m, own in enumerate(steps)},
        **_rows(maps),
        "codes": _base64(codes.astype(np.uint16)),
        **{name: _base64(each) for name, each in places.items()},
        **sheets,
    }
    page = fill(
        "map.html",
        title=html.escape("" if title is None else str(title)) or "t-SNE map",
        policy=_POLICY,
        style=resource("map.css"),
        data="\n".join(
            f'<script type="text/plain" id="{name}">{text}</script>'
            for name, text in scripts.items()
        ),
        plotly=require("plotly.offline", "html").get_plotlyjs(),
        program="\n".join(resource(f"{part}.js") for part in _PROGRAM),
    )
    with replacing(path) as beside:
        beside.write_text(page, encoding="utf-8", errors="replace")


def is_page(path: Path) -> bool:
    """Say whether a file begins as the pages do that are written here."""
    begin = resource("map.html").partition("<html")[0]
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(len(begin)) == begin


def resource(name: str) -> str:
    """Text of a file in `pages/`."""
    return (files("acctsne.pictures") / "pages" / name).read_text(encoding="utf-8")


def fill(template: str, **parts: str) -> str:
    """Fill {{names}} of a file in `pages/`; what is filled in is not looked at again."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], resource(template))


def _json(value: Any) -> str:
    # As JSON escapes, so that nothing in a text can end the script element that it stands in.
    return json.dumps(value, allow_nan=False).replace("<", r"\u003c")


def _base64(array: Array) -> str:
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(np.ascontiguousarray(little).tobytes()).decode()


def _legend(found: Categories | None, n_points: int) -> tuple[Array, dict[str, Any]]:
    """Layers from 0 on, with names and colours; the smallest categories and the missing come last.

    Unless it is "labelled", a layer's name does not say the label of its points.
    """
    if found is None:
        legend = {"names": ["points"], "colors": [SINGLE], "labelled": False}
        return np.zeros(n_points, dtype=np.int32), legend
    codes = found.codes.copy()
    names, colors = list(found.names), hex_codes(categorical(len(found.names)))
    if len(names) > MAX_CATEGORIES:
        kept = np.sort(np.argsort(-found.counts(), kind="stable")[: MAX_CATEGORIES - 1])
        place = np.full(len(names) + 1, len(kept), dtype=np.int32)
        place[kept] = np.arange(len(kept))
        place[-1] = -1
        codes = place[codes]
        others = f"{len(names) - len(kept)} smaller categories"
        names = [names[i] for i in kept] + [others]
        colors = [colors[i] for i in kept] + ["#808080"]
    if found.missing.any():
        codes[found.missing] = len(names)
        names.append("none")
        colors.append(MISSING)
    labelled = len(found.names) <= MAX_CATEGORIES
    return codes, {"names": names, "colors": colors, "labelled": labelled}


def _rows(maps: Maps) -> dict[str, str]:
    """Scripts that say which point each row of a map is; none where that is clear."""
    if not maps.apart:
        return {}
    return {f"rows{m}": _base64(rows.astype(np.uint32)) for m, rows in enumerate(maps.rows)}


def _sheets(images: Any, n_points: int) -> tuple[dict[str, int] | None, dict[str, str]]:
    """Tile thumbnails into sheets; where to find them, and a script for each sheet."""
    if images is None:
        return None, {}
    pictures = _pixels(np.asarray(images), n_points)
    Image = require("PIL.Image", "html")
    height, width = pictures.shape[1:3]
    reduce = _THUMBNAIL / max(height, width)
    if reduce < 1:
        height, width = max(round(height * reduce), 1), max(round(width * reduce), 1)
        pictures = np.stack(
            [
                np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.BOX))
                for picture in pictures
            ]
        )
    across, down = _SHEET // width, _SHEET // height
    scripts = {}
    for i, begin in enumerate(range(0, n_points, across * down)):
        part = pictures[begin : begin + across * down]
        rows = math.ceil(len(part) / across)
        sheet = np.zeros((rows * across, *part.shape[1:]), dtype=np.uint8)
        sheet[: len(part)] = part
        sheet = sheet.reshape(rows, across, *part.shape[1:]).swapaxes(1, 2)
        sheet = sheet.reshape(rows * height, across * width, *part.shape[3:])
        written = io.BytesIO()
        Image.fromarray(sheet).save(written, format="png")
        scripts[f"sheet{i}"] = base64.b64encode(written.getvalue()).decode()
    layout = {"width": width, "height": height, "across": across, "perSheet": across * down}
    return layout, scripts


def _pixels(images: Array, n_points: int) -> Array:
    good = images.ndim == 3 or (images.ndim == 4 and images.shape[3] in (3, 4))
    if not good or len(images) != n_points or 0 in images.shape:
        raise ValueError(
            f"images must be of shape ({n_points}, height, width), with 3 or 4 channels last if "
            f"coloured; got shape {images.shape}"
        )
    if images.dtype == np.uint8:
        return images
    if images.dtype.kind not in "biuf" or not np.isfinite(images).all():
        raise ValueError(f"images must hold finite numbers; got {images.dtype}")
    low, high = float(images.min()), float(images.max())
    if max(-low, high) > LARGEST_NUMBER:
        raise ValueError(f"images has numbers beyond {LARGEST_NUMBER:g}; scale them")
    scaled: Array = (images.astype(np.float32) - low) * (255 / ((high - low) or 1.0))
    return np.rint(scaled).astype(np.uint8)
