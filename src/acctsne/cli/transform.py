"""`acctsne transform`: place new samples in a map."""

import argparse
from pathlib import Path

from acctsne.cli.inputs import add_reading_options, read_data
from acctsne.cli.messages import blaming
from acctsne.cli.outputs import check_distinct, write_embedding
from acctsne.estimator import TSNE
from acctsne.files import formats as io


def describe(command: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    command.add_argument("map", type=Path, metavar="MAP", help="what `embed --map` wrote")
    command.add_argument("data", type=Path, metavar="NEW", help="the new samples")
    command.add_argument("-o", "--output", required=True, metavar="OUT", help="their places")
    add_reading_options(command)


def run(options: argparse.Namespace) -> None:
    """Place new samples in a fitted map."""
    if options.output != "-":
        with blaming("-o"):
            io.check_output(Path(options.output))
    check_distinct(options, {"MAP": options.map, "NEW": options.data}, {"-o": options.output})
    if not options.map.is_file():
        raise io.DataError(f"{options.map}: no such file")
    tsne = TSNE.load(options.map)
    # What is read is an array, whose columns are those of the map in their order.
    names = tsne.__dict__.pop("feature_names_in_", None)
    if names is None or options.columns is not None or not io.is_table(options.data):
        data = read_data(options)
    else:
        options.columns = names.tolist()
        with blaming("MAP has columns of names"):
            data = read_data(options)
    write_embedding(options.output, tsne.transform(data.X), data.labels, source=options.data)
