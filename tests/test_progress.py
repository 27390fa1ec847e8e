"""What a user sees while a fit runs: something from the first stage on, and nothing left behind."""

import logging
import subprocess
import sys
from errno import ENOSPC
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from acctsne.runtime.progress import logger, shown_log
from helpers import on_a_terminal

FIT = """
import numpy as np
from acctsne import TSNE
X = np.random.default_rng(0).normal(size=(300, 5))
TSNE(max_iter=250, metric={metric!r}, verbose={verbose}).fit(X)
"""
STAGES = ["checking the data", "neighbors", "affinities", "initial layout", "optimiser"]
STAGES.append("iterations")


# The second one is searched by scikit-learn, which counts nothing.
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_every_stage_is_seen_on_a_terminal(metric: str) -> None:
    written = on_a_terminal(FIT.format(metric=metric, verbose=1))
    places = [written.index(f"{stage}: ") for stage in STAGES]
    assert places == sorted(places)
    # What it says of affinities has nothing of the layout's time.
    assert written.index("affinities in ") < written.index("initial layout: ")
    # Bars and clocks are wiped out again; the log stays.
    left = [line.split("\r")[-1] for line in written.split("\r\n")]
    assert not any(line.startswith(tuple(STAGES)) for line in left)
    assert any("[acctsne] KL divergence" in line for line in left)


def test_terminals_that_do_not_know_their_size() -> None:
    written = on_a_terminal(FIT.format(metric="euclidean", verbose=1), size=(0, 0))
    assert all(f"{stage}: " in written for stage in STAGES)


def test_commands_are_seen_from_the_first_second(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(300, 5))
    np.save(tmp_path / "x.npy", X)
    run = f"""
import os, sys
from acctsne.cli.main import main
os.chdir({str(tmp_path)!r})
sys.stdout = open(os.devnull, "w")
assert main(sys.argv[1:]) == 0
"""
    embed = ["embed", "x.npy", "-o", "map.parquet", "--write-neighbors", "5", "--max-iter", "250"]
    score = ["score", "x.npy", "map.parquet", "--by-point", "points.csv"]
    written = on_a_terminal(run, *embed)
    assert written.index("reading x.npy: ") < written.index("neighbors: ")
    assert written.index("neighbors: ") < written.index("checking the data: ")
    stages = ["reading x.npy", "force error", "exact KL divergence", "neighbours kept"]
    written = on_a_terminal(run, *score)
    places = [written.index(f"{stage}: ") for stage in [*stages, "ranks in the data"]]
    assert places == sorted(places)
    for command in (embed, score):
        assert ": 00" not in on_a_terminal(run, *command, "--quiet")


class Full(StringIO):
    """A file on a full disk."""

    def write(self, _text: str) -> int:
        raise OSError(ENOSPC, "No space left on device")


class OnlyWritable:
    """What programs put in the place of stderr to have its lines in a log of their own."""

    def __init__(self) -> None:
        self.written = ""

    def write(self, text: str) -> None:
        self.written += text


def closed() -> StringIO:
    file = StringIO()
    file.close()
    return file


@pytest.mark.parametrize("stderr", [None, Full(), closed(), OnlyWritable()])
def test_a_log_that_cannot_be_written_does_not_end_a_fit(
    monkeypatch: pytest.MonkeyPatch, stderr: Any
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's own, which would take it
    monkeypatch.setattr(sys, "stderr", stderr)
    exec(FIT.format(metric="euclidean", verbose=1), {})
    assert "KL divergence" in getattr(stderr, "written", "KL divergence")


def test_the_log_is_shown_while_any_thread_wants_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    before = logger.level, logger.handlers[:]
    first, second = shown_log(1), shown_log(1)
    first.__enter__()
    second.__enter__()
    logger.info("both")
    first.__exit__(None, None, None)
    logger.info("the second")
    second.__exit__(None, None, None)
    logger.info("none")
    assert capsys.readouterr().err == "[acctsne] both\n[acctsne] the second\n"
    assert (logger.level, logger.handlers) == before


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
