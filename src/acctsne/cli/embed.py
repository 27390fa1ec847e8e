"""`acctsne embed`: make a map of a file of data."""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from acctsne.cli.inputs import add_reading_options, read_data
from acctsne.cli.messages import blaming, note
from acctsne.cli.options import (
    add_estimator_options,
    blaming_parameters,
    estimator_parameters,
)
from acctsne.cli.outputs import (
    ARCHIVES,
    MOVIES,
    PAGES,
    PICTURES,
    check_picture,
    draw,
    write_embedding,
    write_page,
)
from acctsne.embedding.checkpoint import Checkpoint
from acctsne.estimator import TSNE, fit_with_checkpoint
from acctsne.files import formats as io
from acctsne.files.replacing import replacing
from acctsne.neighbors.nearest import nearest_neighbors
from acctsne.runtime.launch import launched_processes

# Iterations between two frames of a movie: fifty frames for a fit of the usual length.
FRAME_EVERY = 4

# Iterations between two checkpoints. Each is as large as the affinities, a gigabyte for a million
# samples: writing it should take little of the time.
CHECKPOINT_EVERY = 100


def describe(command: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    command.usage = "%(prog)s DATA [-o OUT] [--plot FILE] [--html FILE] [OPTION ...]"
    command.allow_abbrev = False  # a parameter added later must not change what a command means
    command.add_argument("data", type=Path, metavar="DATA", help="the data, samples in rows")
    command.add_argument(
        "-o", "--output", metavar="OUT", help="the map; - is csv on stdout (default: DATA_map)"
    )
    add_reading_options(command)
    command.add_argument("--plot", type=Path, metavar="FILE", help="draw it: png, pdf or svg")
    command.add_argument("--html", type=Path, metavar="FILE", help="a page to explore it in")
    command.add_argument("--movie", type=Path, metavar="FILE", help="the fit as gif, mp4 or html")
    command.add_argument(
        "--map", type=Path, metavar="FILE", help="the fitted estimator (npz), for `transform`"
    )
    command.add_argument(
        "--write-neighbors",
        type=int,
        metavar="K",
        help="with a parquet OUT: each sample's K nearest neighbours, too, for embedding-atlas",
    )
    command.add_argument(
        "--keep-partial", action="store_true", help="write what there is after Ctrl-C"
    )
    command.add_argument(
        "--checkpoint",
        type=Path,
        metavar="FILE",
        help="keep the unfinished fit here (npz; a folder under mpiexec)",
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


def run(options: argparse.Namespace) -> int:
    """Fit, then write all that was asked for."""
    if launched_processes() > 1 or _is_shared(options.checkpoint):
        from acctsne.cli.together import run as run_together

        return run_together(options)
    check_outputs(options)
    data = read_data(options)
    if options.write_neighbors is not None and not 0 < options.write_neighbors < data.X.shape[0]:
        raise io.DataError(
            f"--write-neighbors: {options.write_neighbors} of {data.X.shape[0]} samples; it must "
            "be at least 1 and less than the number of samples"
        )
    if not options.quiet:
        note(f"{options.data}: {data.X.shape[0]} samples, {data.X.shape[1]} features")
        if data.labels is not None:
            guessed = "" if options.labels else " (guessed; --labels chooses another)"
            note(f"labels: {data.label_name}, {len(np.unique(data.labels))} different{guessed}")
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
        with blaming_parameters(options):
            if checkpoint is None:
                tsne.fit(data.X)
            else:
                fit_with_checkpoint(tsne, data.X, checkpoint)
    except KeyboardInterrupt:
        if checkpoint is not None and checkpoint.exists():
            note(f"--resume goes on from {checkpoint.path}")
        if not options.keep_partial or not hasattr(tsne, "embedding_"):
            raise
        interrupted = True
        note(f"interrupted after {tsne.n_iter_ + 1} iterations; writing the map so far")

    neighbors = None
    if options.write_neighbors is not None:
        found = nearest_neighbors(
            data.X,
            options.write_neighbors,
            metric=tsne.metric,
            metric_params=tsne.metric_params,
            n_jobs=tsne.n_jobs,
        )
        neighbors = (found.indices, found.distances)
    write_embedding(
        options.output, tsne.embedding_, data.labels, source=options.data, neighbors=neighbors
    )
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
        checkpoint.remove()
    if options.json:
        print(json.dumps(summary(options, data, tsne, interrupted), default=str))
    return int(interrupted)


def check_outputs(options: argparse.Namespace) -> None:
    """Say whatever cannot be written before the fit, not after it."""
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
    for kind in wanted:
        with blaming(f"--{kind}"):
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
    shared = launched_processes() > 1 or _is_shared(options.checkpoint)
    with blaming("--checkpoint"):
        if not shared:
            check_picture(options.checkpoint, ARCHIVES)
        elif options.checkpoint.is_file():
            raise io.DataError(
                f"{options.checkpoint}: a file; several processes keep a fit in a folder. One "
                "process goes on from this, if it is the checkpoint of one"
            )
        elif not options.checkpoint.parent.is_dir():
            raise io.DataError(f"{options.checkpoint}: no such folder")
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


def _is_shared(checkpoint: Path | None) -> bool:
    """Say whether this is the folder of several processes, which one may go on from, too."""
    return checkpoint is not None and checkpoint.is_dir()


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
