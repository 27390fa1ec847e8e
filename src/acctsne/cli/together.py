"""`acctsne embed` by several processes, which `mpiexec` or `srun` has started."""

import argparse
from contextlib import ExitStack, nullcontext, redirect_stderr, suppress
from io import StringIO
from typing import Any

import numpy as np

from acctsne.cli.embed import print_summary
from acctsne.cli.inputs import open_data, say_guesses
from acctsne.cli.messages import blaming, note
from acctsne.cli.options import blaming_parameters, estimator_parameters
from acctsne.cli.outputs import check_outputs, write_embedding
from acctsne.distributed.checkpoint import SharedCheckpoint
from acctsne.distributed.estimator import TSNE, fit_with_checkpoint
from acctsne.distributed.processes import Processes, noting_interrupts
from acctsne.pictures import html, plot
from acctsne.runtime.launch import launched_processes

# Options of `embed` that several processes do not serve.
REFUSED = ("labels", "header", "delimiter", "movie", "write_neighbors", "keep_partial")


def run(options: argparse.Namespace) -> int:
    """Fit together; the first process writes and speaks."""
    with ExitStack() as held:
        # Ctrl-C waits until the others, who may be starting MPI with this process, can be told.
        interrupts = held.enter_context(noting_interrupts())
        processes = _started(options)
        first = processes.rank == 0
        silent = nullcontext() if first else redirect_stderr(StringIO())
        try:
            with processes.ending_together():
                with processes.agreeing(BaseException), silent:
                    held.close()
                    interrupts.raise_if_pressed()
                    _check_options(options)
                _embed(options, processes)
        except (Exception, KeyboardInterrupt):
            if first:
                raise
            return 1  # the first process says it
    return 0


def refuse(message: str) -> None:
    """Tell the processes whose command line was in order that it was not here."""
    with suppress(ModuleNotFoundError, ValueError):
        processes = Processes()
        if processes.size == launched_processes():
            processes.agree(ValueError(message))  # where they agree on their options


def _started(options: argparse.Namespace) -> Processes:
    """Start MPI."""
    try:
        processes = Processes()
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{_why_mpi(options)}. {error}", name=error.name) from None
    if processes.size != launched_processes():
        raise ValueError(
            f"the launcher has started {launched_processes()} processes, and mpi4py knows of "
            f"{processes.size}: they belong to different installations of MPI. Slurm may have to "
            "be told how to start them, by srun --mpi=pmix"
        )
    return processes


def _why_mpi(options: argparse.Namespace) -> str:
    if launched_processes() == 1:
        return (
            f"--checkpoint: {options.checkpoint} is a folder, in which several processes keep a "
            "fit; to go on from it, one process needs mpi4py, too"
        )
    return (
        f"{launched_processes()} copies of this program were started, which would all write one "
        "file; to share the work they need mpi4py"
    )


def _check_options(options: argparse.Namespace) -> None:
    for name in REFUSED:
        if getattr(options, name) not in (None, False, []):
            who = "by several processes"
            if launched_processes() == 1:
                who = f"with {options.checkpoint}, a checkpoint of several processes"
            options.usage_error(f"--{name.replace('_', '-')} cannot be used {who}")
    check_outputs(options)


def _embed(options: argparse.Namespace, processes: Processes) -> None:
    first = processes.rank == 0
    with processes.agreeing():
        rows = open_data(options)
    shape = rows.shape
    if first and not options.quiet:
        say_guesses(options.data, rows.guesses)
        note(f"{options.data}: {shape[0]} samples, {shape[1]} features, {processes.size} processes")
    parameters = estimator_parameters(options)
    layout = parameters.get("init")
    if isinstance(layout, np.ndarray):
        with processes.agreeing(), blaming("--init"):
            if len(layout) != shape[0]:
                raise ValueError(f"init has {len(layout)} rows; expected {shape[0]}, one a sample")
            columns = parameters.get("n_components", 2)
            if layout.shape[1:] != (columns,):
                expected = f"({shape[0]}, {columns})"
                raise ValueError(f"init has shape {layout.shape}; expected {expected}")
        parameters["init"] = layout[processes.own_rows(shape[0])]
    tsne = TSNE(**parameters, verbose=int(not options.quiet))
    checkpoint = _fit(tsne, rows, options, processes)
    embedding = tsne.gather()
    with processes.agreeing():
        if first:
            write_embedding(options.output, embedding, None, source=options.data)
            if options.plot is not None:
                plot.save(embedding, options.plot)
            if options.html is not None:
                html.write(embedding, options.html)
    if options.map is not None:
        tsne.save(options.map)
    if checkpoint is not None:
        checkpoint.remove()
    if first and options.json:
        print_summary(options, shape, tsne, {"processes": processes.size})


def _fit(
    tsne: TSNE, X: Any, options: argparse.Namespace, processes: Processes
) -> SharedCheckpoint | None:
    """Fit, kept in a folder if that was asked for."""
    folder = options.checkpoint
    try:
        with blaming_parameters(options):
            if folder is None:
                tsne.fit(X)
                return None
            return fit_with_checkpoint(
                tsne,
                X,
                folder,
                every=options.checkpoint_every,
                resume=options.resume,
            )
    except KeyboardInterrupt:
        if folder is not None and folder.exists() and processes.rank == 0:
            note(f"--resume goes on from {folder}")
        raise
