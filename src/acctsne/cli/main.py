"""The command `acctsne`: from a file of data to a map, without writing Python.

Progress and warnings go to stderr, results to files or stdout. The exit code is 0 if all went
well, 1 if something failed or was interrupted, 2 if the command makes no sense.
"""

import argparse
import json
import os
import platform
import sys
import warnings
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy
import sklearn

import acctsne
from acctsne import quality
from acctsne.cli.options import add_estimator_options, estimator_parameters
from acctsne.embedding.checkpoint import Checkpoint
from acctsne.estimator import TSNE, fit_with_checkpoint
from acctsne.files import formats as io
from acctsne.files.replacing import replacing
from acctsne.files.tables import write_delimited
from acctsne.runtime.build import build_info
from acctsne.runtime.optional import require
from acctsne.runtime.threads import available_cores

Array = npt.NDArray[Any]

PICTURES = (".png", ".pdf", ".svg")
PAGES = (".html",)
MOVIES = (".gif", ".mp4", ".html")
ARCHIVES = (".npz",)

# Iterations between two frames of a movie: fifty frames for a fit of the usual length.
FRAME_EVERY = 4

# Iterations between two checkpoints. Each is as large as the affinities, a gigabyte for a million
# samples: writing it should take little of the time.
CHECKPOINT_EVERY = 100


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        if arguments[:1] == ["demo"]:
            from acctsne.cli.demo import main as run_demo

            run_demo(arguments[1:])
            return 0
        options = make_parser().parse_args(arguments)
        with warnings_as_notes():
            code: int | None = options.run(options)
            sys.stdout.flush()
    except KeyboardInterrupt:
        note("interrupted")
        return 1
    except BrokenPipeError:
        # Whoever read our output has stopped; Python must not try to flush the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    # What bad files, bad parameters, full disks and missing extras raise.
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        note(f"error: {' '.join(str(error).split()) or type(error).__name__}")
        return 1
    return code or 0


def note(message: str) -> None:
    """Say something that is no result."""
    print(f"acctsne: {message}", file=sys.stderr)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Show warnings as lines for users, without places in the code."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_args, **_named: note(f"warning: {message}")
        yield


def make_parser() -> argparse.ArgumentParser:
    """Describe the commands and their options."""
    parser = argparse.ArgumentParser(
        prog="acctsne",
        description="t-SNE for CPUs. Files are npy, npz, csv, tsv, parquet, arrow, feather, h5ad "
        "or mtx, by their suffix.",
        epilog="`acctsne COMMAND --help` has the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"acctsne {acctsne.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser(
        "embed",
        help="make a map of a file of data",
        usage="%(prog)s DATA [-o OUT] [--plot FILE] [--html FILE] [OPTION ...]",
        allow_abbrev=False,  # a parameter added later must not change what a command means
    )
    command.add_argument("data", type=Path, metavar="DATA", help="the data, samples in rows")
    command.add_argument("-o", "--output", metavar="OUT", help="the map; - is csv on stdout")
    add_reading_options(command)
    command.add_argument("--plot", type=Path, metavar="FILE", help="draw it: png, pdf or svg")
    command.add_argument("--html", type=Path, metavar="FILE", help="a page to explore it in")
    command.add_argument("--movie", type=Path, metavar="FILE", help="the fit as gif, mp4 or html")
    command.add_argument(
        "--map", type=Path, metavar="FILE", help="the fitted estimator (npz), for `transform`"
    )
    command.add_argument(
        "--keep-partial", action="store_true", help="write what there is after Ctrl-C"
    )
    command.add_argument(
        "--checkpoint", type=Path, metavar="FILE", help="keep the unfinished fit here (npz)"
    )
    command.add_argument(
        "--checkpoint-every",
        type=int,
        default=CHECKPOINT_EVERY,
        metavar="N",
        help=f"iterations between two writes; default: {CHECKPOINT_EVERY}",
    )
    command.add_argument(
        "--resume", action="store_true", help="go on from the checkpoint if it is there"
    )
    command.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    command.add_argument("--json", action="store_true", help="print a summary as JSON")
    add_estimator_options(command)
    command.set_defaults(run=embed, usage_error=command.error)

    command = commands.add_parser("transform", help="place new samples in a map")
    command.add_argument("map", type=Path, metavar="MAP", help="what `embed --map` wrote")
    command.add_argument("data", type=Path, metavar="NEW", help="the new samples")
    command.add_argument("-o", "--output", required=True, metavar="OUT", help="their places")
    add_reading_options(command)
    command.set_defaults(run=transform)

    command = commands.add_parser("plot", help="draw a map")
    command.add_argument("embedding", type=Path, metavar="EMBEDDING", help="the map")
    command.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="png, pdf or svg"
    )
    colours = command.add_mutually_exclusive_group()
    add_labels_option(colours)
    colours.add_argument("--values", type=Path, metavar="FILE", help="numbers to colour by")
    command.add_argument("--title", help="a line above it")
    command.set_defaults(run=plot)

    command = commands.add_parser("view", help="explore a map in the browser")
    command.add_argument("embedding", type=Path, metavar="EMBEDDING", help="the map")
    command.add_argument(
        "-o", "--output", type=Path, metavar="PAGE", help="default: EMBEDDING with suffix .html"
    )
    add_labels_option(command)
    command.add_argument("--title", help="a line above it")
    command.add_argument("--no-browser", action="store_true", help="only write the page")
    command.set_defaults(run=view)

    command = commands.add_parser("score", help="judge a map, whoever made it")
    command.add_argument("data", type=Path, metavar="DATA", help="the data")
    command.add_argument("embedding", type=Path, metavar="EMBEDDING", help="its map")
    add_reading_options(command)
    command.add_argument("--perplexity", type=float, default=30.0, help="default: 30")
    command.add_argument("--neighbors", type=int, default=10, help="compared; default: 10")
    command.add_argument("--method", default="auto", help="whose force error; default: auto")
    command.add_argument("--threads", type=int, default=None, help="default: all cores")
    command.add_argument("--json", action="store_true", help="print JSON instead of a table")
    command.set_defaults(run=score)

    command = commands.add_parser("info", help="versions, build and machine")
    command.add_argument("--json", action="store_true", help="print JSON instead of a table")
    command.set_defaults(run=info)

    commands.add_parser("demo", help="embed the handwritten digits", add_help=False)
    return parser


def add_labels_option(command: argparse._ActionsContainer) -> None:
    """Add --labels."""
    command.add_argument(
        "--labels",
        metavar="COLUMN|FILE",
        help="a column or array of the data (h5ad: of obs), or a file with a label a sample",
    )


def add_reading_options(command: argparse.ArgumentParser) -> None:
    """Add what can be said about a file of data."""
    add_labels_option(command)
    command.add_argument("--key", help="array of an npz, or key of obsm in an h5ad")
    command.add_argument(
        "--columns", type=listed, metavar="NAME,...", help="columns of a table that are features"
    )
    command.add_argument(
        "--drop", type=listed, default=[], metavar="NAME,...", help="columns to leave out"
    )
    command.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="the first row of a csv names its columns (default: detected)",
    )


def listed(text: str) -> list[str]:
    """Split a list of names."""
    return [name.strip() for name in text.split(",")]


def read_data(options: argparse.Namespace) -> io.Data:
    """Read DATA with its labels, from wherever these are."""
    own = is_file_of_labels(options.labels)
    data = io.read(
        options.data,
        labels=None if own else options.labels,
        key=options.key,
        columns=options.columns,
        drop=options.drop,
        header=options.header,
    )
    if own:
        return io.Data(data.X, io.read_labels(options.labels, data.X.shape[0]), options.labels)
    return data


def read_embedding(path: Path, labels: str | None) -> io.Data:
    """Read a map, with its labels if it has any."""
    own = is_file_of_labels(labels)
    key = io.OBSM_KEY if path.suffix == ".h5ad" else None
    data = io.read(path, labels=None if own else labels, key=key)
    if own and labels is not None:
        return io.Data(data.X, io.read_labels(labels, len(data.X)), labels)
    return data


def is_file_of_labels(labels: str | None) -> bool:
    """Tell a file from the name of a column."""
    return labels is not None and Path(labels).is_file()


def embed(options: argparse.Namespace) -> int:
    """Fit, then write all that was asked for."""
    check_outputs(options)
    data = read_data(options)
    if not options.quiet:
        note(f"{options.data}: {data.X.shape[0]} samples, {data.X.shape[1]} features")
        if data.labels is not None:
            note(f"labels: {data.label_name}, {len(np.unique(data.labels))} different")
    tsne = TSNE(**estimator_parameters(options), verbose=int(not options.quiet))
    recorder = None
    if options.movie is not None:
        from acctsne.pictures.movie import Recorder

        recorder = Recorder(every=FRAME_EVERY)
        tsne.set_params(callback=recorder, callback_every=FRAME_EVERY)
    checkpoint = None
    if options.checkpoint is not None:
        checkpoint = Checkpoint(options.checkpoint, options.checkpoint_every, options.resume)
    interrupted = False
    try:
        if checkpoint is None:
            tsne.fit(data.X)
        else:
            fit_with_checkpoint(tsne, data.X, checkpoint)
    except KeyboardInterrupt:
        if checkpoint is not None and checkpoint.path.exists():
            note(f"--resume goes on from {checkpoint.path}")
        if not options.keep_partial or not hasattr(tsne, "embedding_"):
            raise
        interrupted = True
        note(f"interrupted after {tsne.n_iter_ + 1} iterations; writing the map so far")

    write_embedding(options.output, tsne.embedding_, data.labels, options.data)
    if options.map is not None:
        with replacing(options.map) as beside:
            tsne.save(beside)
    if options.plot is not None:
        draw(tsne.embedding_, options.plot, labels=data.labels)
    if options.html is not None:
        write_page(tsne.embedding_, options.html, labels=data.labels)
    if recorder is not None:
        with replacing(options.movie) as beside:
            recorder.write(beside, labels=data.labels)
    if checkpoint is not None and not interrupted:
        checkpoint.path.unlink(missing_ok=True)
    if options.json:
        print(json.dumps(summary(options, data, tsne, interrupted), default=str))
    return int(interrupted)


def check_outputs(options: argparse.Namespace) -> None:
    """Say whatever cannot be written before the fit, not after it."""
    kinds = {"plot": PICTURES, "html": PAGES, "movie": MOVIES, "map": ARCHIVES}
    wanted = [kind for kind in kinds if getattr(options, kind) is not None]
    if options.output is None and not wanted:
        options.usage_error("nothing to write: give -o, --plot, --html, --movie or --map")
    if options.output == "-" and options.json:
        options.usage_error("-o - and --json would mix two results on stdout")
    if options.output not in (None, "-"):
        io.check_output(Path(options.output))
    for kind in wanted:
        check_picture(getattr(options, kind), kinds[kind])
    dimensions = estimator_parameters(options).get("n_components", 2)
    drawn = [f"--{kind}" for kind in wanted if kind != "map"]
    if drawn and dimensions not in (2, 3):
        options.usage_error(
            f"{' and '.join(drawn)}: only maps of 2 and 3 dimensions can be drawn; got "
            f"--n-components {dimensions}. Write the map with -o"
        )
    if options.checkpoint is not None:
        check_checkpoint(options)
    elif options.resume:
        options.usage_error("--resume needs --checkpoint FILE to go on from")


def check_checkpoint(options: argparse.Namespace) -> None:
    """Say what is wrong with a checkpoint before it is needed."""
    check_picture(options.checkpoint, ARCHIVES)
    if options.checkpoint_every < 1:
        options.usage_error(
            f"--checkpoint-every must be at least 1; got {options.checkpoint_every}"
        )
    results = [options.output, options.map]
    if any(file is not None and Path(file) == options.checkpoint for file in results):
        options.usage_error("--checkpoint is removed after the fit; give it a file of its own")
    if options.checkpoint.exists() and not options.resume:
        raise io.DataError(
            f"{options.checkpoint}: exists, from a fit that did not end; go on from it with "
            "--resume, or remove it"
        )


def summary(
    options: argparse.Namespace, data: io.Data, tsne: TSNE, interrupted: bool
) -> dict[str, Any]:
    """Tell what was embedded, how, and how it went."""
    files = [options.output, options.map, options.plot, options.html, options.movie]
    return {
        "data": str(options.data),
        "n_samples": data.X.shape[0],
        "n_features": data.X.shape[1],
        "labels": data.label_name,
        "kl_divergence": getattr(tsne, "kl_divergence_", None),
        "iterations": tsne.n_iter_ + 1,
        "interrupted": interrupted,
        "seconds": tsne.timings_["total"],
        "timings": tsne.timings_,
        "parameters": estimator_parameters(options),
        "files": [str(file) for file in files if file is not None],
    }


def transform(options: argparse.Namespace) -> None:
    """Place new samples in a fitted map."""
    if options.output != "-":
        io.check_output(Path(options.output))
    if not options.map.is_file():
        raise io.DataError(f"{options.map}: no such file")
    tsne = TSNE.load(options.map)
    data = read_data(options)
    write_embedding(options.output, tsne.transform(data.X), data.labels, options.data)


def plot(options: argparse.Namespace) -> None:
    """Draw a map."""
    check_picture(options.output, PICTURES)
    data = read_embedding(options.embedding, options.labels)
    if options.values is None:
        draw(data.X, options.output, labels=data.labels, title=options.title)
    else:
        values = io.read_labels(options.values, len(data.X)).astype(np.float64)
        draw(data.X, options.output, values=values, title=options.title)


def view(options: argparse.Namespace) -> None:
    """Write the page and show it."""
    page = options.output or options.embedding.with_suffix(".html")
    check_picture(page, PAGES)
    data = read_embedding(options.embedding, options.labels)
    title = options.title or options.embedding.stem
    write_page(data.X, page, labels=data.labels, title=title)
    note(f"wrote {page}")
    if not options.no_browser:
        webbrowser.open(page.resolve().as_uri())


def score(options: argparse.Namespace) -> None:
    """Print the referee's table."""
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
    report({name: round(figure, 6) for name, figure in figures.items()}, options.json)


def info(options: argparse.Namespace) -> None:
    """Print what a bug report should say."""
    build = {
        name: ", ".join(value) if isinstance(value, list) else value
        for name, value in build_info().items()
    }
    versions = {module.__name__: module.__version__ for module in (np, scipy, sklearn)}
    report(
        {
            "acctsne": acctsne.__version__,
            "python": platform.python_version(),
            **versions,
            "machine": f"{platform.system()} {platform.machine()}",
            "cores": available_cores(),
            **build,
        },
        options.json,
    )


def report(figures: dict[str, Any], as_json: bool) -> None:
    """Print named figures for a person or a program."""
    if as_json:
        print(json.dumps(figures))
        return
    width = max(map(len, figures)) + 2
    for name, figure in figures.items():
        print(f"{name:<{width}}{figure}")


def check_picture(path: Path, suffixes: Sequence[str]) -> None:
    """Check, before any work is done for it, that a picture can be made."""
    suffix = io.check_output(path, suffixes)
    if suffixes == PAGES:
        require("plotly", "html")
    elif suffix == ".mp4":
        require("imageio_ffmpeg", "movie")
    elif suffix in (*PICTURES, ".gif"):
        require("matplotlib", "plot")


def write_embedding(output: str | None, Y: Array, labels: Array | None, source: Path) -> None:
    """Write a map to a file, or to stdout."""
    if output == "-":
        write_delimited(sys.stdout, Y, labels)
    elif output is not None:
        io.write(output, Y, labels=labels, source=source)


def draw(Y: Array, path: Path, **how: Any) -> None:
    """Write a picture of a map."""
    from acctsne.pictures import plot as pictures

    with replacing(path) as beside:
        pictures.save(Y, beside, **how)


def write_page(Y: Array, path: Path, **how: Any) -> None:
    """Write the interactive page of a map."""
    from acctsne.pictures import html

    with replacing(path) as beside:
        html.write(Y, beside, **how)
