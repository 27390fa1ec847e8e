"""`acctsne info`: versions, build and machine, for a bug report."""

import argparse
import platform

import numpy as np
import scipy
import sklearn

import acctsne
from acctsne.cli.messages import report
from acctsne.runtime.build import build_info
from acctsne.runtime.threads import available_cores


def describe(command: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    command.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(options: argparse.Namespace) -> None:
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
