"""`acctsne view`: explore a map in the browser."""

import argparse
import webbrowser
from pathlib import Path

from acctsne.cli.inputs import add_labels_option, read_embedding
from acctsne.cli.messages import blaming, note
from acctsne.cli.outputs import PAGES, check_picture, write_page


def describe(command: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    command.add_argument("embedding", type=Path, metavar="EMBEDDING", help="the map")
    command.add_argument(
        "-o", "--output", type=Path, metavar="PAGE", help="default: EMBEDDING with suffix .html"
    )
    add_labels_option(command)
    command.add_argument("--title", help="a line above it")
    command.add_argument("--no-browser", action="store_true", help="only write the page")


def run(options: argparse.Namespace) -> None:
    """Write the page and show it."""
    page = options.output or options.embedding.with_suffix(".html")
    with blaming("-o"):
        check_picture(page, PAGES)
    data = read_embedding(options.embedding, options.labels)
    title = options.title or options.embedding.stem
    write_page(data.X, page, labels=data.labels, title=title)
    note(f"wrote {page}")
    if not options.no_browser:
        webbrowser.open(page.resolve().as_uri())
