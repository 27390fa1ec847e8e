"""The plan of a shared fit, against what fits sent and held, and against the source it models."""

import re
import subprocess
import sys
from dataclasses import replace
from math import ceil
from pathlib import Path

import numpy as np
import pytest

from acctsne import Affinities
from acctsne._core import BLOCK_ROWS
from acctsne.affinities.affinities import form_of
from acctsne.distributed import plan
from acctsne.distributed.plan import Job
from acctsne.forces.repulsion import RepulsionOptions
from acctsne.optimize.optimizer import Optimizer
from acctsne.optimize.state import split_state

ROOT = Path(__file__).parent.parent
MILLION = Job(points=1_000_000, features=20, ranks=4)
LARGE = Job(points=10**8, features=50, ranks=16, cores=32, gbit=25)


def constant(path: str, pattern: str) -> list[int]:
    """Read numbers from the native source."""
    found = re.search(pattern, (ROOT / "native" / path).read_text())
    assert found, (path, pattern)
    return [int(number) for number in re.findall(r"\d+", found[1])]


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("include/acctsne/communicator.hpp", r"kSumRows = (\d+)", [plan.SUM_ROWS]),
        ("optimize/update.cpp", r"kPointsPerChunk = (\d+)", [plan.UPDATE_ROWS]),
        ("kernels/attractive.hpp", r"kEdgeBlockRows = (\d+)", [plan.EDGE_BLOCK_ROWS]),
        ("forces/grid_tiles.hpp", r"kStripColumns = (\d+)", [plan.STRIP_COLUMNS]),
        ("forces/grid_tiles.hpp", r"kMostTilesInStrip = (\d+)", [plan.MOST_TILES_IN_STRIP]),
        ("forces/shared_charges.hpp", r"kSegmentNodes = (\d+)", [plan.SEGMENT_NODES]),
        ("forces/repulsive_fft.cpp", r"kFewestBlocks = (\d+)", [plan.FEWEST_BLOCKS]),
        ("kernels/grid.hpp", r"kCoarseness = (\d+)", [plan.COARSENESS]),
        ("neighbors/frame.cpp", r"kEffort\{kExactAxes, (\d+)", [plan.SAMPLE_ROWS]),
        ("affinities/exchanged_rows.cpp", r"kGroups = (\d+)", [plan.SYMMETRISATION_PARTS]),
        ("affinities/symmetrize.cpp", r"kParts = (\d+)", [plan.TRANSPOSED_PARTS]),
        ("forces/edges.cpp", r"kParts = (\d+)", [plan.RELABELLING_PARTS]),
        ("forces/edges.cpp", r"P.rows\(\), kJointBlockRows, (\d+)\)", [plan.EDGE_NUMBERS]),
        ("optimize/loop.cpp", r"kRelabelAt\[\] = \{([\d, ]+)\}", list(plan.RELABELLED_AT)),
    ],
)
def test_work_is_cut_as_the_native_core_cuts_it(
    path: str, pattern: str, expected: list[int]
) -> None:
    assert constant(path, pattern) == expected


def test_batches_and_sums_are_those_of_the_native_core() -> None:
    [cells] = constant("neighbors/approximate.hpp", r"cells_at_once = (\d+)")
    [points] = constant("neighbors/cells.hpp", r"kCellPoints = (\d+)")
    assert cells * points == plan.BATCH_POINTS
    [blocks] = constant("forces/charge_spreader.hpp", r"kPointsPerSum = (\d+) \* kBlockRows")
    assert blocks * BLOCK_ROWS == plan.POINTS_PER_SUM
    times, more = constant("kernels/update.hpp", r"size\(int dims\) \{ return (\d+ \* dims \+ \d+)")
    assert times * plan.DIMS + more == plan.UPDATE_NUMBERS


def test_bytes_of_exact_formulas_are_those_counted() -> None:
    # timings_ of a fit of 2000 normal samples of 30 features by two processes, 250 iterations,
    # method="fft": init_bytes_sent and sums_bytes_sent of the first and the second.
    job = Job(points=2000, features=30, ranks=2, iterations=250)
    assert plan.start(job).sent == pytest.approx((23928 + 39448) / 2, rel=0.01)
    assert 250 * plan.sums_bytes(job) == pytest.approx((2080 + 50816) / 2, rel=0.01)


def test_coordinates_are_sent_to_all_others() -> None:
    # Twenty floats and the squared norm as a double of a quarter of the points, to three.
    assert plan.first_round(MILLION).sent == 250_000 * (20 * 4 + 8) * 3


def test_blocks_are_those_of_the_default_step() -> None:
    [reach] = constant("forces/grid_kernel.hpp", r"kNearReach = (\d+)")
    step = 0.405  # docs/how-it-works.md
    assert ceil(ceil(reach / step) / 8) * 8 == plan.BLOCK_MARGIN
    assert plan.BLOCK_SIDE + 2 * plan.BLOCK_MARGIN == 8 * plan.BLOCK_MARGIN  # a power of two


def test_bytes_of_an_iteration_are_those_counted() -> None:
    # docs/clusters.md: the mean of 340 iterations and of four processes.
    assert plan.mean_iteration(MILLION).sent == pytest.approx(2.08e6, rel=0.1)


@pytest.mark.parametrize(
    ("iteration", "counted"), [(70, 0.63), (110, 1.40), (150, 1.59), (210, 1.80), (310, 2.22)]
)
def test_charges_grow_as_counted(iteration: int, counted: float) -> None:
    # docs/clusters.md; points near tiles are a mean of all iterations in the model, and more in the
    # first ones.
    assert plan.charges_bytes(MILLION, iteration) == pytest.approx(counted * 1e6, rel=0.25)


@pytest.mark.parametrize(("ranks", "foreign"), [(16, 1.0), (32, 1.5)])
def test_halo_grows_with_ranks_as_counted(ranks: int, foreign: float) -> None:
    # Shares of a prototype at a million points, relative to 0.31 at four ranks.
    share = plan.halo_bytes(replace(MILLION, ranks=ranks)) * ranks
    assert share / (plan.halo_bytes(MILLION) * 4) == pytest.approx(foreign / 0.31, rel=0.1)


@pytest.mark.parametrize(
    ("ranks", "measured"),
    [(1, (1618, 1423, 1907, 1101, 1604)), (4, (667, 557, 754, 488, 707))],
)
def test_memory_is_that_measured(ranks: int, measured: tuple[int, ...]) -> None:
    # docs/clusters.md, MB: search, conditional probabilities, P, start, descent.
    job = replace(MILLION, ranks=ranks)
    search = max(plan.first_round(job).memory, plan.second_round(job).memory)
    others = (plan.perplexity, plan.symmetrisation, plan.start, plan.descent)
    predicted = [search, *(stage(job).memory for stage in others)]
    assert predicted == pytest.approx([1e6 * one for one in measured], rel=0.15)
    assert plan.total(job).memory == pytest.approx(1e6 * max(measured), rel=0.15)


def test_the_state_is_that_of_a_checkpoint() -> None:
    X = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
    P = form_of(Affinities.from_data(X, perplexity=5))
    optimizer = Optimizer(P, X[:, :2].copy(), RepulsionOptions("fft"), 1)
    _, arrays = split_state(optimizer.state())
    of_points = {name: array for name, array in arrays.items() if name != "mean"}
    assert sum(array.nbytes for array in of_points.values()) == 200 * plan.STATE
    assert of_points["order"].nbytes == 200 * (plan.STATE - plan.MOVING_STATE)


def test_checkpoints_are_planned_where_they_are_wanted() -> None:
    few = replace(LARGE, checkpoint_every=50)
    # In rows of no order, most belong to others than their points.
    assert plan.checkpoints(few).sent == pytest.approx(6 * 24 * LARGE.own * 15 / 16)
    assert plan.total(few).sent == plan.total(LARGE).sent + plan.checkpoints(few).sent
    # Own rows take less than the descent does while rows of P move, whatever the ranks.
    for job in (few, replace(few, ranks=1), replace(few, ranks=1000)):
        assert plan.checkpoints(job).memory < plan.descent(job).memory
        assert plan.total(job).memory == max(stage.memory for stage in plan.stages(job))
        # Going on takes the numbers of all points, too, and own rows twice.
        assert plan.resuming(job).memory > plan.checkpoints(job).memory + 4 * job.points
    assert "checkpoints, 6 times" in plan.table(few)
    assert "going on from one" in plan.table(few)
    assert "checkpoint" not in plan.table(LARGE)


def test_one_process_sends_nothing() -> None:
    assert plan.total(replace(LARGE, ranks=1)).sent == 0


def test_memory_falls_with_ranks() -> None:
    peaks = [plan.total(replace(LARGE, ranks=2**i)).memory for i in range(1, 8)]
    assert peaks == sorted(peaks, reverse=True)
    assert len(set(peaks)) == len(peaks)


@pytest.mark.parametrize("stage", plan.STAGES, ids=lambda stage: stage.__name__)
def test_a_faster_network_or_more_cores_are_never_slower(stage: plan.MakesStage) -> None:
    for name, values in {"gbit": (1, 10, 25, 100), "cores": (1, 2, 3, 8, 32, 64)}.items():
        jobs = [replace(LARGE, **{name: value}) for value in values]
        seconds = [stage(job).seconds(job) for job in jobs]
        assert seconds == sorted(seconds, reverse=True)


def test_many_cores_are_worth_less_and_too_many_nothing() -> None:
    cores = {count: replace(LARGE, cores=count).busy_cores for count in (1, 2, 32, 64)}
    assert cores == pytest.approx({1: 1, 2: 2, 32: 0.7 * 32, 64: 0.7 * 32})


@pytest.mark.parametrize(("ranks", "cores", "measured"), [(1, 2, 56.5), (2, 1, 70.8)])
def test_seconds_are_those_measured(ranks: int, cores: int, measured: float) -> None:
    # docs/clusters.md, 340 iterations on one machine.
    job = replace(MILLION, ranks=ranks, cores=cores, gbit=100)
    assert plan.total(job).seconds(job) == pytest.approx(measured, rel=0.25)


def test_the_whole_is_the_sum_of_its_stages() -> None:
    seconds = sum(stage.seconds(LARGE) for stage in plan.stages(LARGE))
    assert plan.total(LARGE).seconds(LARGE) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("points", "1", "points is 1; it must be at least 2"),
        ("points", "1e10", "at most 1073741824 are supported"),
        ("points", "1.5", "'1.5' is not a whole number"),
        ("points", "inf", "'inf' is not a whole number"),
        ("points", "many", "'many' is not a whole number"),
        ("features", "0", "features is 0; it must be at least 1"),
        ("ranks", "0", "ranks is 0; it must be at least 1"),
        ("cores", "-1", "cores is -1; it must be at least 1"),
        ("iterations", "0", "iterations is 0; it must be at least 1"),
        ("iterations", "1e12", "the model goes through at most 100000"),
        ("checkpoint-every", "-1", "checkpoint_every is -1; it must be at least 0"),
        ("gbit", "0", "gbit is 0; it must be a number above 0"),
        ("gbit", "nan", "gbit is nan; it must be a number above 0"),
        ("perplexity", "1e9", "less than the 100000000 points"),
    ],
)
def test_bad_arguments_are_refused(
    option: str, value: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"points": "1e8", "features": "50", "ranks": "16", option: value}
    with pytest.raises(SystemExit) as stopped:
        plan.main([f"--{name}={text}" for name, text in given.items()])
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err


def test_the_page_says_what_the_network_needs() -> None:
    page = (ROOT / "docs" / "clusters.md").read_text()
    section = page.partition("## What the network needs\n")[2].partition("\n## ")[0]
    shown = [
        [float(cell.split()[0]) for cell in line.strip("| ").split("|")]
        for line in section.splitlines()
        if re.match(r"\| \de\d ", line)
    ]
    assert len(shown) == 6
    for points, ranks, sent, computing, *network, sent_in_all, slow, fast, fastest in shown:
        jobs = [plan.Job(int(points), 50, int(ranks), 32, gbit) for gbit in (1, 10, 25)]
        one = plan.mean_iteration(jobs[0])
        by_network = [8e-6 * one.sent / job.gbit for job in jobs]
        expected = [one.sent / 1e6, one.work / 1e3 / jobs[0].busy_cores, *by_network]
        assert [sent, computing, *network] == pytest.approx(expected, rel=0.05)
        assert sent_in_all == pytest.approx(plan.total(jobs[0]).sent / 1e9, rel=0.01)
        fits = [plan.total(job).seconds(job) for job in jobs]
        assert [slow, fast, fastest] == pytest.approx(fits, rel=0.01)
        assert one.rounds == 10


def test_the_page_shows_what_the_program_prints() -> None:
    page = (ROOT / "docs" / "clusters.md").read_text()
    found = re.search(r"^python (-m acctsne\.distributed\.plan .*)\n```\n+```text\n", page, re.M)
    assert found
    # Without mpi4py: it must not be needed.
    blocked = "import runpy, sys; sys.modules['mpi4py'] = None; sys.argv = {}; {}"
    words = found[1].split()[1:]
    run = f"runpy.run_module({words[0]!r}, run_name='__main__')"
    command = [sys.executable, "-W", "error", "-c", blocked.format(words, run)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert page[found.end() :].startswith(ended.stdout + "```\n")
