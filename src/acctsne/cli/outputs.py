"""Files that commands write: which can be written, checked before the work, and the writing."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import numpy.typing as npt

from acctsne.cli.inputs import is_file_of_labels
from acctsne.cli.messages import blaming, note
from acctsne.cli.options import estimator_parameters
from acctsne.files import formats as io
from acctsne.files.delimited import write_delimited
from acctsne.files.h5ad import check_source
from acctsne.files.replacing import suffix_of
from acctsne.optimize.schedule import MAX_ITERATIONS
from acctsne.pictures import html, movie, plot
from acctsne.runtime.launch import launched_processes
from acctsne.runtime.optional import require

Array = npt.NDArray[Any]

PICTURES = plot.SUFFIXES
PAGES = html.SUFFIXES
MOVIES = tuple(movie.WRITERS)
ARCHIVES = (".npz",)


def check_outputs(options: argparse.Namespace) -> None:
    """Say whatever `embed` cannot write before the fit, not after it."""
    kinds = {"plot": PICTURES, "html": PAGES, "movie": MOVIES, "map": ARCHIVES}
    wanted = [kind for kind in kinds if getattr(options, kind) is not None]
    if options.output is None and not wanted:
        options.output = str(guessed_output(options.data))
        note(f"no output given: the map goes to {options.output} (-o chooses another)")
    if options.output == "-" and options.json:
        options.usage_error("-o - and --json would mix two results on stdout")
    if options.write_neighbors is not None and options.output in (None, "-"):
        options.usage_error("--write-neighbors needs a file to write them into: -o map.parquet")
    if options.output not in (None, "-"):
        with blaming("-o"):
            io.check_output(Path(options.output), neighbors=options.write_neighbors is not None)
        if suffix_of(options.output) == suffix_of(options.data) == ".h5ad":
            check_source(options.data)
    for kind in wanted:
        with blaming(f"--{kind}"):
            check_writable(getattr(options, kind), kinds[kind])
    dimensions = estimator_parameters(options).get("n_components", 2)
    drawn = [f"--{kind}" for kind in wanted if kind != "map"]
    if drawn and dimensions not in (2, 3):
        options.usage_error(
            f"{' and '.join(drawn)}: only maps of 2 and 3 dimensions can be drawn; got "
            f"--n-components {dimensions}. Write the map with -o"
        )
    named = {f"--{kind}": getattr(options, kind) for kind in (*kinds, "checkpoint")}
    check_distinct(options, {"DATA": options.data}, {"-o": options.output, **named})
    if not 1 <= options.checkpoint_every <= MAX_ITERATIONS:
        options.usage_error(
            f"--checkpoint-every must be between 1 and {MAX_ITERATIONS}; got "
            f"{options.checkpoint_every}"
        )
    if options.checkpoint is not None:
        check_checkpoint(options)
    elif options.resume:
        options.usage_error("--resume needs --checkpoint FILE to go on from")


def check_distinct(
    options: argparse.Namespace, read: Mapping[str, Path], written: Mapping[str, Path | str | None]
) -> None:
    """Refuse to write over what is read, or two things into one file; all by their flags."""
    # Not by Path.resolve, which raises RuntimeError for links that lead in a circle.
    data = os.path.realpath(options.data)
    taken = {os.path.realpath(path): flag for flag, path in read.items()}
    if is_file_of_labels(options.labels):
        taken.setdefault(os.path.realpath(options.labels), "--labels")
    for flag, path in written.items():
        if path is None or path == "-":
            continue
        place = os.path.realpath(path)
        if place == data and suffix_of(place) == ".h5ad":
            continue  # the map is added to all that this file holds
        if place in taken:
            options.usage_error(
                f"{taken[place]} and {flag} are the same file, {path}; give {flag} another"
            )
        taken[place] = flag


def guessed_output(data: Path) -> Path:
    """Choose a file beside the data, in its format if that is written, that does not exist yet."""
    suffix = io.known_suffix(data)
    stem = data.name[: data.name.lower().rindex(suffix)]
    guessed = data.with_name(f"{stem}_map{suffix if suffix in io.WRITABLE else '.npy'}")
    if guessed.exists():
        raise io.DataError(
            f"{guessed}: exists, and so is not taken for the map without being asked; give -o"
        )
    return guessed


def check_checkpoint(options: argparse.Namespace) -> None:
    """Say what is wrong with a checkpoint before it is needed."""
    shared = launched_processes() > 1 or is_shared(options.checkpoint)
    with blaming("--checkpoint"):
        if not shared:
            check_writable(options.checkpoint, ARCHIVES)
        elif options.checkpoint.is_file():
            raise io.DataError(
                f"{options.checkpoint}: a file; several processes keep a fit in a folder. One "
                "process goes on from this, if it is the checkpoint of one"
            )
        elif not options.checkpoint.parent.is_dir():
            raise io.DataError(f"{options.checkpoint}: no such folder")
        elif is_shared(options.checkpoint):
            check_is_of_checkpoints(options.checkpoint)
    if options.checkpoint.exists() and not options.resume:
        raise io.DataError(
            f"{options.checkpoint}: exists, from a fit that did not end; go on from it with "
            "--resume, or remove it"
        )


def check_is_of_checkpoints(folder: Path) -> None:
    """Refuse a folder that no fit has made: it would be removed with the checkpoint in it."""
    from acctsne.distributed.checkpoint import OWN_NAME

    if not any(OWN_NAME.fullmatch(file.name) for file in folder.iterdir()):
        raise io.DataError(
            f"{folder}: a folder that holds no checkpoint; several processes make one of their own "
            "and remove it at the end. Name one that is not there yet, such as "
            f"{folder / 'checkpoint'}"
        )


def is_shared(checkpoint: Path | None) -> bool:
    """Say whether this is the folder of several processes, which one may go on from, too."""
    return checkpoint is not None and checkpoint.is_dir()


def check_writable(path: Path, suffixes: Sequence[str]) -> None:
    """Check, before any work is done for it, that a file of some kind can be written."""
    suffix = io.check_output(path, suffixes)
    if suffixes == PAGES:
        require("plotly", "html")
    elif suffix == ".mp4":
        require("imageio_ffmpeg", "movie")
    elif suffix in (*PICTURES, ".gif"):
        require("matplotlib", "plot")


def write_embedding(output: str | None, Y: Array, labels: Array | None, **more: Any) -> None:
    """Write a map to a file, or to stdout."""
    if output == "-":
        if isinstance(sys.stdout, TextIOWrapper):
            # As in a file, whatever language the system speaks.
            sys.stdout.reconfigure(encoding="utf-8", newline="")
        write_delimited(sys.stdout, Y, labels)
    elif output is not None:
        io.write(output, Y, labels=labels, **more)
