"""What a user sees while a fit runs: something from the first stage on, and nothing left behind."""

import os
import pty
import subprocess
import sys
import termios
from importlib import import_module
from typing import Any

import pytest

FIT = """
import numpy as np
from acctsne import TSNE
X = np.random.default_rng(0).normal(size=(300, 5))
TSNE(max_iter=250, metric={metric!r}, verbose={verbose}).fit(X)
"""
STAGES = ["checking the data", "neighbors", "affinities", "initial layout", "optimiser"]
STAGES.append("iterations")


def on_a_terminal(program: str) -> str:
    """Run a program whose stderr is a terminal; return what was written on it."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    with subprocess.Popen([sys.executable, "-c", program], stderr=theirs) as running:
        os.close(theirs)
        written = b""
        while True:
            try:
                read = os.read(ours, 4096)
            except OSError:  # how a terminal ends on Linux
                break
            if not read:
                break
            written += read
    os.close(ours)
    assert running.returncode == 0
    return written.decode()


# The second one is searched by scikit-learn, which counts nothing.
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_every_stage_is_seen_on_a_terminal(metric: str) -> None:
    written = on_a_terminal(FIT.format(metric=metric, verbose=1))
    places = [written.index(f"{stage}: ") for stage in STAGES]
    assert places == sorted(places)
    # Bars and clocks are wiped out again; the log stays.
    left = [line.split("\r")[-1] for line in written.split("\r\n")]
    assert not any(line.startswith(tuple(STAGES)) for line in left)
    assert any("[acctsne] KL divergence" in line for line in left)


def test_nothing_is_seen_unless_asked_for() -> None:
    assert on_a_terminal(FIT.format(metric="euclidean", verbose=0)) == ""


def test_no_bars_in_files() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIT.format(metric="euclidean", verbose=1)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "\r" not in done.stderr
    assert "checking the data" not in done.stderr


def test_every_stage_is_seen_in_a_notebook() -> None:
    nbformat: Any = import_module("nbformat.v4")
    nbclient: Any = import_module("nbclient")
    cell = nbformat.new_code_cell(FIT.format(metric="euclidean", verbose=1))
    notebook = nbformat.new_notebook(cells=[cell])
    # What is wiped out within a cell's output is dropped from it; every output is looked at here.
    seen: list[str] = []

    class Client(nbclient.NotebookClient):  # type: ignore[misc]
        def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
            seen.append(str(msg["content"]))
            return super().process_message(msg, cell, cell_index)

    Client(notebook, timeout=120, kernel_name="python3").execute()
    for stage in STAGES:
        assert any(f"{stage}: " in content for content in seen), stage
