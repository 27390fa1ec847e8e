"""`acctsne view`: explore a map, or several, in the browser."""

import argparse
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acctsne.cli.inputs import add_labels_option, read_embedding
from acctsne.cli.messages import blaming, blaming_arguments, note
from acctsne.cli.outputs import PAGES, Array, check_writable
from acctsne.files import formats as io
from acctsne.pictures import html


def describe(command: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    command.add_argument(
        "embeddings",
        type=Path,
        nargs="+",
        metavar="EMBEDDING",
        help="the map, or several to flip between",
    )
    command.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="PAGE",
        help="default: the first EMBEDDING with suffix .html",
    )
    add_labels_option(command)
    command.add_argument(
        "--ids",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="for each map, names of its rows: equal ones are the same point (default: rows are)",
    )
    command.add_argument(
        "--hover",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="a table with a row for each point, to show and to colour by, such as what `score "
        "--by-point` wrote; with --ids, one for each map",
    )
    command.add_argument("--title", help="a line above it")
    command.add_argument("--no-browser", action="store_true", help="only write the page")


def run(options: argparse.Namespace) -> None:
    """Write the page and show it."""
    paths = options.embeddings
    with blaming("-o"):
        page = options.output or _guessed_page(paths[0])
        check_writable(page, PAGES)
    read = [read_embedding(path, options.labels) for path in paths]
    with blaming("--ids"):
        ids = _read_ids(options.ids, [len(data.X) for data in read])
    with blaming("--hover"):
        hover = _read_hover(options.hover, [len(data.X) for data in read], ids is not None)
    names = [path.stem for path in paths]
    how = {"title": options.title or ", ".join(names)}
    flags = {name: f"--{name}" for name in ("labels", "ids", "hover")}
    with blaming_arguments(flags, flags):
        if len(read) == 1:
            labels: Any = read[0].labels
            html.write(read[0].X, page, labels=labels, ids=ids and ids[0], hover=hover, **how)
        else:
            labels = [data.labels for data in read]
            if ids is None or any(each is None for each in labels):
                labels = labels[0] if ids is None else None
            maps = [data.X for data in read]
            html.write(maps, page, labels=labels, ids=ids, hover=hover, titles=names, **how)
    note(f"wrote {page}")
    if not options.no_browser:
        webbrowser.open(page.resolve().as_uri())


def _guessed_page(embedding: Path) -> Path:
    """Choose a page beside the map: a new one, or one to be made anew."""
    page = embedding.with_suffix(".html")
    if page.is_file() and not html.is_page(page):
        raise io.DataError(
            f"{page}: exists, and is no page that acctsne has written; name another, or this one "
            "to replace it"
        )
    return page


def _read_ids(paths: Sequence[Path] | None, sizes: Sequence[int]) -> list[Array] | None:
    if paths is None:
        return None
    if len(paths) != len(sizes):
        raise io.DataError(f"{len(paths)} files of ids for {len(sizes)} maps; give one for each")
    return [io.read_ids(path, size) for path, size in zip(paths, sizes, strict=True)]


def _read_hover(paths: Sequence[Path] | None, sizes: Sequence[int], apart: bool) -> Any:
    """Read a table for each map whose points have ids, or one for all maps, or none."""
    if paths is None:
        return None
    several = apart and len(sizes) > 1
    wanted = len(sizes) if several else 1
    if len(paths) != wanted:
        given = f"{len(paths)} tables for {len(sizes)} maps"
        how = "one for each, as --ids" if several else "one, as rows are the same points"
        raise io.DataError(f"{given}; give {how}")
    tables = [io.read_columns(path, size) for path, size in zip(paths, sizes[:wanted], strict=True)]
    return tables if several else tables[0]
