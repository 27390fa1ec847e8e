"""`acctsne score`: judge a map, whoever made it."""

import argparse
from pathlib import Path

from acctsne import quality
from acctsne.cli.inputs import add_reading_options, read_data, read_embedding
from acctsne.cli.messages import note, report
from acctsne.cli.outputs import check_distinct
from acctsne.files import formats as io


def describe(command: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    command.add_argument("data", type=Path, metavar="DATA", help="the data")
    command.add_argument("embedding", type=Path, metavar="EMBEDDING", help="its map")
    add_reading_options(command)
    command.add_argument("--perplexity", type=float, default=30.0, help="default: 30")
    command.add_argument("--neighbors", type=int, default=10, help="compared; default: 10")
    command.add_argument("--method", default="auto", help="whose force error; default: auto")
    command.add_argument(
        "--by-point", type=Path, metavar="CSV", help="write what is known of every point"
    )
    command.add_argument("--threads", type=int, default=None, help="default: all cores")
    command.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(options: argparse.Namespace) -> None:
    """Print the referee's table."""
    if options.by_point is not None:
        io.check_output(options.by_point, (".csv",))
        read = {"DATA": options.data, "EMBEDDING": options.embedding}
        check_distinct(options, read, {"--by-point": options.by_point})
    data = read_data(options)
    embedding = read_embedding(options.embedding, None)
    Y = embedding.X
    if len(Y) != data.X.shape[0]:
        raise io.DataError(
            f"{options.embedding}: {len(Y)} points for the {data.X.shape[0]} samples of "
            f"{options.data}"
        )
    k, jobs = options.neighbors, options.threads
    labels = embedding.labels if data.labels is None else data.labels
    figures = {
        "exact KL divergence": quality.exact_kl(data.X, Y, options.perplexity, n_jobs=jobs),
        f"force error, {options.method}": quality.force_error(Y, options.method, n_jobs=jobs),
        f"{k}-neighbour preservation": quality.neighbor_preservation(data.X, Y, k, n_jobs=jobs),
    }
    if labels is not None:
        figures[f"{k}-neighbour label agreement"] = quality.label_agreement(
            Y, labels, k, n_jobs=jobs
        )
    if options.by_point is not None:
        found = quality.report(data.X, Y, perplexity=options.perplexity, n_jobs=jobs)
        found.to_csv(options.by_point)
        figures |= found.means
        note(f"wrote {options.by_point}")
    report({name: round(figure, 6) for name, figure in figures.items()}, options.json)
