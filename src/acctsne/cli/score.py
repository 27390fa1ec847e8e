"""`acctsne score`: judge a map, whoever made it."""

import argparse
from pathlib import Path
from typing import Any

from acctsne import quality
from acctsne.cli.inputs import add_reading_options, read_data, read_embedding
from acctsne.cli.messages import blaming, blaming_arguments, note, report
from acctsne.cli.outputs import check_distinct
from acctsne.files import formats as io
from acctsne.quality.report import ReportSettings, check_inputs
from acctsne.runtime.progress import busy

# Arguments of `acctsne.quality`, and what they are called here.
FLAGS = {
    "perplexity": "--perplexity",
    "metric": "--metric",
    "dof": "--dof",
    "n_neighbors": "--neighbors",
    "method": "--method",
    "n_jobs": "--threads",
}

USUAL_NEIGHBORS = 10


def describe(command: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    command.add_argument("data", type=Path, metavar="DATA", help="the data")
    command.add_argument("embedding", type=Path, metavar="EMBEDDING", help="its map")
    add_reading_options(command)
    command.add_argument(
        "--perplexity",
        type=number_or_word,
        default=30.0,
        metavar="VALUE",
        help="a number, auto or multiscale; default: 30",
    )
    command.add_argument(
        "--metric", default="euclidean", help="distance between samples; default: euclidean"
    )
    command.add_argument(
        "--dof",
        type=number_or_word,
        default=1.0,
        metavar="VALUE",
        help="degrees of freedom of the map's similarity; default: 1",
    )
    command.add_argument(
        "--neighbors",
        type=int,
        metavar="K",
        help=f"compared; default: {USUAL_NEIGHBORS}, and by point 10, 30 and 100",
    )
    command.add_argument("--method", default="auto", help="whose force error; default: auto")
    command.add_argument(
        "--by-point",
        type=Path,
        metavar="CSV",
        help="write what is known of every point, for `plot --values` and `view --hover`",
    )
    command.add_argument("--threads", type=int, default=None, help="default: all cores")
    command.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    command.add_argument("--json", action="store_true", help="print JSON instead of a table")


def number_or_word(text: str) -> float | str:
    """Read a number; leave words to those who know them."""
    try:
        return float(text)
    except ValueError:
        return text


def run(options: argparse.Namespace) -> None:
    """Print the referee's table."""
    if options.by_point is not None:
        with blaming("--by-point"):
            io.check_output(options.by_point, (".csv",))
        read = {"DATA": options.data, "EMBEDDING": options.embedding}
        check_distinct(options, read, {"--by-point": options.by_point})
    data = read_data(options)
    embedding = read_embedding(options.embedding, None)
    if len(embedding.X) != data.X.shape[0]:
        raise io.DataError(
            f"{options.embedding}: {len(embedding.X)} points for the {data.X.shape[0]} samples of "
            f"{options.data}"
        )
    labels = embedding.labels if data.labels is None else data.labels
    with blaming_arguments(FLAGS, FLAGS):
        figures = judge(options, data.X, embedding.X, labels)
    report({name: round(figure, 6) for name, figure in figures.items()}, options.json)


def judge(options: argparse.Namespace, X: Any, Y: Any, labels: Any) -> dict[str, float]:
    """Compute all that was asked for; whatever cannot be judged is said before."""
    k = USUAL_NEIGHBORS if options.neighbors is None else options.neighbors
    verbose = int(not options.quiet)
    of_map: dict[str, Any] = {"dof": options.dof, "n_jobs": options.threads}
    of_data: dict[str, Any] = {"metric": options.metric, "n_jobs": options.threads}
    by_point: dict[str, Any] = {
        "perplexity": options.perplexity,
        "metric": options.metric,
        "dof": options.dof,
    }
    if options.neighbors is not None:
        by_point["n_neighbors"] = k
    if options.by_point is not None:
        check_inputs(X, Y, ReportSettings(**by_point))
    figures = {}
    with busy("force error", verbose):
        figures[f"force error, {options.method}"] = quality.force_error(Y, options.method, **of_map)
    with busy("exact KL divergence", verbose):
        kl = quality.exact_kl(X, Y, options.perplexity, metric=options.metric, **of_map)
        figures = {"exact KL divergence": kl, **figures}
    with busy("neighbours kept", verbose):
        kept = quality.neighbor_preservation(X, Y, k, **of_data)
        figures[f"{k}-neighbour preservation"] = kept
        if labels is not None:
            agreement = quality.label_agreement(Y, labels, k, n_jobs=options.threads)
            figures[f"{k}-neighbour label agreement"] = agreement
    if options.by_point is not None:
        found = quality.report(X, Y, **by_point, n_jobs=options.threads, verbose=verbose)
        found.to_csv(options.by_point)
        figures |= found.means
        note(f"wrote {options.by_point}")
    return figures
