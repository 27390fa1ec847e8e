"""`acctsne embed`: make a map of a file of data."""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from acctsne.cli.inputs import add_reading_options, read_data
from acctsne.cli.messages import blaming, note
from acctsne.cli.options import add_estimator_options, blaming_parameters, estimator_parameters
from acctsne.cli.outputs import Array, check_outputs, is_shared, write_embedding
from acctsne.embedding.checkpoint import Checkpoint
from acctsne.estimator import TSNE, fit_with_checkpoint
from acctsne.files import formats as io
from acctsne.neighbors.nearest import nearest_neighbors
from acctsne.pictures import html, plot
from acctsne.pictures.movie import Recorder
from acctsne.runtime.labels import missing_labels
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


@dataclass(frozen=True)
class Prepared:
    """All that a fit needs, and what is to be written with its map."""

    data: io.Data
    tsne: TSNE
    neighbors: tuple[Array, Array] | None
    recorder: Recorder | None
    checkpoint: Checkpoint | None


def run(options: argparse.Namespace) -> int:
    """Fit, then write all that was asked for."""
    if launched_processes() > 1 or is_shared(options.checkpoint):
        from acctsne.cli.together import run as run_together

        return run_together(options)
    check_outputs(options)
    prepared = prepare(options)
    interrupted = fit(options, prepared)
    write(options, prepared)
    if prepared.checkpoint is not None and not interrupted:
        prepared.checkpoint.remove()
    if options.json:
        more = {"labels": prepared.data.label_name, "interrupted": interrupted}
        print_summary(options, prepared.data.X.shape, prepared.tsne, more)
    return int(interrupted)


def prepare(options: argparse.Namespace) -> Prepared:
    """Read the data, and do whatever else may fail before hours are spent on the fit."""
    data = read_data(options)
    if not options.quiet:
        say_what_was_read(options, data)
    tsne = TSNE(**estimator_parameters(options), verbose=int(not options.quiet))
    neighbors = neighbors_to_write(options.write_neighbors, data.X, tsne)
    recorder = None
    if options.movie is not None:
        recorder = Recorder(every=FRAME_EVERY)
        tsne.set_params(callback=recorder, callback_every=FRAME_EVERY)
    checkpoint = None
    if options.checkpoint is not None:
        checkpoint = Checkpoint(options.checkpoint, options.checkpoint_every, options.resume)
    return Prepared(data, tsne, neighbors, recorder, checkpoint)


def say_what_was_read(options: argparse.Namespace, data: io.Data) -> None:
    """Tell the size of the data, and what its labels are."""
    note(f"{options.data}: {data.X.shape[0]} samples, {data.X.shape[1]} features")
    if data.labels is None:
        return
    missing = missing_labels(data.labels)
    different = len(set(data.labels[~missing].tolist()))
    without = f", {missing.sum()} samples without" if missing.any() else ""
    guessed = "" if options.labels else " (guessed; --labels chooses another)"
    note(f"labels: {data.label_name}, {different} different{without}{guessed}")


def neighbors_to_write(count: int | None, X: Any, tsne: TSNE) -> tuple[Array, Array] | None:
    """Search for the neighbours that go with the map, if any."""
    if count is None:
        return None
    with blaming("--write-neighbors"):
        if not 0 < count < X.shape[0]:
            raise io.DataError(
                f"{count} of {X.shape[0]} samples; it must be at least 1 and less than the number "
                "of samples"
            )
        found = nearest_neighbors(
            X,
            count,
            metric=tsne.metric,
            metric_params=tsne.metric_params,
            n_jobs=tsne.n_jobs,
            verbose=tsne.verbose,
        )
    return found.indices, found.distances


def fit(options: argparse.Namespace, prepared: Prepared) -> bool:
    """Fit; say whether it was interrupted, and what there is by then is to be kept."""
    tsne, checkpoint = prepared.tsne, prepared.checkpoint
    try:
        with blaming_parameters(options):
            if checkpoint is None:
                tsne.fit(prepared.data.X)
            else:
                fit_with_checkpoint(tsne, prepared.data.X, checkpoint)
    except KeyboardInterrupt:
        if checkpoint is not None and checkpoint.exists():
            note(f"--resume goes on from {checkpoint.path}")
        if not options.keep_partial or not hasattr(tsne, "embedding_"):
            raise
        note(f"interrupted after {tsne.n_iter_ + 1} iterations; writing the map so far")
        return True
    return False


def write(options: argparse.Namespace, prepared: Prepared) -> None:
    """Write the map, and all else that was asked for."""
    embedding, labels = prepared.tsne.embedding_, prepared.data.labels
    write_embedding(
        options.output, embedding, labels, source=options.data, neighbors=prepared.neighbors
    )
    if options.map is not None:
        names = prepared.data.feature_names
        if names is not None:
            prepared.tsne.feature_names_in_ = np.array(names, dtype=object)
        prepared.tsne.save(options.map)
    if options.plot is not None:
        plot.save(embedding, options.plot, labels=labels)
    if options.html is not None:
        html.write(embedding, options.html, labels=labels)
    if prepared.recorder is not None:
        prepared.recorder.write(options.movie, labels=labels)


def print_summary(
    options: argparse.Namespace, shape: tuple[int, ...], tsne: TSNE, more: dict[str, Any]
) -> None:
    """Tell what was embedded, how, and how it went, as JSON."""
    files = [options.output, options.map, options.plot, options.html, options.movie]
    said = {
        "data": str(options.data),
        "n_samples": shape[0],
        "n_features": shape[1],
        **more,
        "kl_divergence": getattr(tsne, "kl_divergence_", None),
        "iterations": tsne.n_iter_ + 1,
        "seconds": tsne.timings_["total"],
        "timings": tsne.timings_,
        "parameters": estimator_parameters(options),
        "files": [str(file) for file in files if file is not None],
    }
    print(json.dumps(said, default=str))
