"""The program `acctsne`: from a file of data to a map, without writing Python.

Progress and warnings go to stderr, results to files or stdout. The exit code is 0 if all went
well, 1 if something failed or was interrupted, 2 if the command makes no sense.
"""

import argparse
import os
import sys
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from importlib import import_module
from io import StringIO

import acctsne
from acctsne.cli.messages import ClosedStdout, note, warnings_as_notes
from acctsne.runtime.launch import launched_processes, launched_rank
from acctsne.runtime.stderr import drop_unwritten

# Each is a module of this package with `describe`, which adds options, and `run`, which takes them.
COMMANDS = {
    "embed": "make a map of a file of data",
    "transform": "place new samples in a map",
    "plot": "draw a map",
    "view": "explore a map, or several, in the browser",
    "score": "judge a map, whoever made it",
    "info": "versions, build and machine",
    "demo": "embed the handwritten digits",
}


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if sys.stdout is None:
        sys.stdout = ClosedStdout()
    try:
        options = read_arguments(arguments)
        if launched_processes() > 1 and arguments[0] != "embed":
            if launched_rank() > 0:
                return 1  # the first process says it
            raise ValueError(f"{arguments[0]} is for one process; start it without mpiexec")
        with warnings_as_notes():
            code: int | None = options.run(options)
            sys.stdout.flush()
    except KeyboardInterrupt:
        if launched_rank() == 0:
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
    finally:
        drop_unwritten()
    return code or 0


def read_arguments(arguments: list[str]) -> argparse.Namespace:
    """Parse a command line, of which the first of several processes says what is wrong."""
    parser = make_parser(*arguments[:1])
    if launched_processes() == 1:
        return parser.parse_args(arguments)
    said = StringIO()
    with ExitStack() as silent:
        if launched_rank() > 0:
            silent.enter_context(redirect_stdout(said))
            silent.enter_context(redirect_stderr(said))
        try:
            return parser.parse_args(arguments)
        except SystemExit as ended:
            if ended.code and arguments[:1] == ["embed"]:
                from acctsne.cli.together import refuse

                # A file that is an option may be missing on one machine alone.
                refuse(said.getvalue().rpartition("error: ")[2])
            raise


def make_parser(name: str = "") -> argparse.ArgumentParser:
    """List the commands, and describe the one that is called, whose module alone is loaded."""
    parser = argparse.ArgumentParser(
        prog="acctsne",
        description="t-SNE for CPUs. Files are npy, npz, csv, tsv, parquet, arrow, feather, h5ad, "
        "zarr or mtx, by their suffix.",
        epilog="`acctsne COMMAND --help` has the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"acctsne {acctsne.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for each, summary in COMMANDS.items():
        command = commands.add_parser(each, help=summary)
        if each == name:
            module = import_module(f"acctsne.cli.{name}")
            module.describe(command)
            command.set_defaults(run=module.run, usage_error=command.error)
    return parser
