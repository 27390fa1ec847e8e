"""`acctsne plot`: draw a map."""

import argparse
from pathlib import Path

import numpy as np

from acctsne.cli.inputs import add_labels_option, read_embedding
from acctsne.cli.messages import blaming
from acctsne.cli.outputs import PICTURES, check_picture, draw
from acctsne.files import formats as io


def describe(command: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    command.add_argument("embedding", type=Path, metavar="EMBEDDING", help="the map")
    command.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="png, pdf or svg"
    )
    colours = command.add_mutually_exclusive_group()
    add_labels_option(colours)
    colours.add_argument("--values", type=Path, metavar="FILE", help="numbers to colour by")
    command.add_argument("--title", help="a line above it")


def run(options: argparse.Namespace) -> None:
    """Draw a map."""
    with blaming("-o"):
        check_picture(options.output, PICTURES)
    data = read_embedding(options.embedding, options.labels)
    if options.values is None:
        draw(data.X, options.output, labels=data.labels, title=options.title)
    else:
        with blaming("--values"):
            values = io.read_labels(options.values, len(data.X)).astype(np.float64)
        draw(data.X, options.output, values=values, title=options.title)
