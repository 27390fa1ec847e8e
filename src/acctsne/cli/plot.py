"""`acctsne plot`: draw a map."""

import argparse
from pathlib import Path

from acctsne.cli.inputs import add_labels_option, read_embedding, read_values
from acctsne.cli.messages import blaming, blaming_arguments
from acctsne.cli.outputs import PICTURES, check_writable
from acctsne.pictures import plot


def describe(command: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    command.add_argument("embedding", type=Path, metavar="EMBEDDING", help="the map")
    command.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="png, pdf or svg"
    )
    colours = command.add_mutually_exclusive_group()
    add_labels_option(colours)
    colours.add_argument(
        "--values",
        metavar="FILE[:COLUMN]",
        help="numbers to colour by, such as a column of what `score --by-point` wrote",
    )
    command.add_argument("--title", help="a line above it")


def run(options: argparse.Namespace) -> None:
    """Draw a map."""
    with blaming("-o"):
        check_writable(options.output, PICTURES)
    data = read_embedding(options.embedding, options.labels)
    if options.values is None:
        with blaming_arguments({"labels": "--labels"}, ("labels",)):
            plot.save(data.X, options.output, labels=data.labels, title=options.title)
    else:
        with blaming("--values"):
            values = read_values(options.values, len(data.X))
            plot.save(data.X, options.output, values=values, title=options.title)
