"""`acctsne view`: explore a map, or several, in the browser."""

import argparse
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acctsne.cli.inputs import add_labels_option, read_embedding
from acctsne.cli.messages import blaming, note
from acctsne.cli.outputs import PAGES, Array, check_picture, write_page
from acctsne.files import formats as io


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
    command.add_argument("--title", help="a line above it")
    command.add_argument("--no-browser", action="store_true", help="only write the page")


def run(options: argparse.Namespace) -> None:
    """Write the page and show it."""
    paths = options.embeddings
    page = options.output or paths[0].with_suffix(".html")
    with blaming("-o"):
        check_picture(page, PAGES)
    read = [read_embedding(path, options.labels) for path in paths]
    with blaming("--ids"):
        ids = _read_ids(options.ids, [len(data.X) for data in read])
    names = [path.stem for path in paths]
    how = {"title": options.title or ", ".join(names)}
    if len(read) == 1:
        write_page(read[0].X, page, labels=read[0].labels, ids=ids and ids[0], **how)
    else:
        labels: Any = [data.labels for data in read]
        if ids is None or any(each is None for each in labels):
            labels = labels[0] if ids is None else None
        maps = [data.X for data in read]
        write_page(maps, page, labels=labels, ids=ids, titles=names, **how)
    note(f"wrote {page}")
    if not options.no_browser:
        webbrowser.open(page.resolve().as_uri())


def _read_ids(paths: Sequence[Path] | None, sizes: Sequence[int]) -> list[Array] | None:
    if paths is None:
        return None
    if len(paths) != len(sizes):
        raise io.DataError(f"{len(paths)} files of ids for {len(sizes)} maps; give one for each")
    return [io.read_ids(path, size) for path, size in zip(paths, sizes, strict=True)]
