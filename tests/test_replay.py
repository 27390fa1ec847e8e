"""The replay of recorded loops (benchmarks/replay.py) against schedules made by hand."""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acctsne import _core

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))

from replay import (
    CHUNKS,
    MEMORY,
    SERIAL,
    TEAM,
    Memory,
    Recording,
    TeamModel,
    limits,
    loop_end,
    replay,
)
from simulate import without_doubtful

FREE = TeamModel()


def recording(*loops: tuple[str, float, Sequence[float]]) -> Recording:
    """Make one of loops with a step, the serial stretch before, and chunks."""
    steps = list(dict.fromkeys(step for step, _, _ in loops))
    counts = np.array([len(chunks) for _, _, chunks in loops])
    return Recording(
        steps=steps,
        step=np.array([steps.index(step) for step, _, _ in loops], np.int32),
        serial_seconds=np.array([serial for _, serial, _ in loops], np.float64),
        loop_seconds=np.array([sum(chunks) for _, _, chunks in loops], np.float64),
        chunk_count=counts,
        chunk_ends=np.cumsum(counts),
        chunk_seconds=np.array([c for _, _, chunks in loops for c in chunks], np.float32),
    )


def end(chunks: Sequence[float], workers: int) -> float:
    return loop_end(np.array(chunks, np.float32), np.zeros(workers))


def plain_end(chunks: Sequence[float], starts: Sequence[float], transfer: float) -> float:
    """The team's rule, worker by worker and chunk by chunk."""
    workers = len(starts)
    shares = [
        list(chunks[len(chunks) * w // workers : len(chunks) * (w + 1) // workers])
        for w in range(workers)
    ]
    clocks = [(start, worker, 0) for worker, start in enumerate(starts)]
    ends = [0.0] * workers
    while clocks:
        clock, worker, visited = clocks.pop(clocks.index(min(clocks)))
        if visited == workers:
            ends[worker] = clock
            continue
        clock += transfer if visited else 0.0
        share = shares[(worker + visited) % workers]
        clocks.append(
            (clock + share.pop(0), worker, visited) if share else (clock, worker, visited + 1)
        )
    return max(e for w, e in enumerate(ends) if w == 0 or starts[w] <= ends[0])


def test_three_chunks_on_two_workers() -> None:
    # The first worker has one chunk, the second two.
    assert end([1, 1, 1], 2) == 2
    # The first takes the third chunk, as the second is at its long one.
    assert end([1, 5, 2], 2) == 5
    # The second has to do its second one, which it begins at 1, while the first is busy until 4.
    assert end([4, 1, 5], 2) == 6


def test_a_free_worker_takes_from_the_next_first() -> None:
    # Shares 0, 0 | 4, 4 | 6, 6: the free one takes the second 4 at once and is done at 4, as is the
    # second worker; one of them takes the last 6.
    assert end([0, 0, 4, 4, 6, 6], 3) == 10


def test_one_worker_takes_the_sum() -> None:
    recorded = recording(("a", 0.5, [1, 2, 3]), ("b", 0.25, [4]), ("a", 0.125, []))
    costly = TeamModel(opening=1, waking=1, closing=1, transfer=1)
    assert replay(recorded, 1, costly) == {"a": 6.625, "b": 4.25}
    assert recorded.seconds() == {"a": 6.625, "b": 4.25}


def test_serial_stretches_bound_the_speedup() -> None:
    # Amdahl: a tenth is serial.
    recorded = recording(("step", 100.0, [1.0] * 900))
    one = replay(recorded, 1, FREE)["step"]
    for workers in (2, 4, 10, 90):
        assert replay(recorded, workers, FREE)["step"] == pytest.approx(100 + 900 / workers)
        assert one / replay(recorded, workers, FREE)["step"] < 10


def test_wake_up_and_barrier() -> None:
    team = TeamModel(
        opening=0.25, waking=1, opening_asleep=2, waking_asleep=8, wake_call=0.5, closing=0.125
    )
    awake = [("step", 0.0, [4.0, 4.0])]
    # The helper sleeps before the first loop: the owner begins at 2 and has taken both chunks by 6,
    # when the helper is not there yet.
    assert replay(recording(*awake), 2, team)["step"] == 10.125
    # In the second loop it spins, and begins at 1.
    twice = replay(recording(*awake, *awake), 2, team)["step"]
    assert twice == 10.125 + 5.125
    # A stretch longer than it spins lets it sleep.
    apart = replay(recording(*awake, ("step", 1.0, [4.0, 4.0])), 2, team)["step"]
    assert apart == 10.125 + 1 + 10.125
    # Each further sleeping helper takes another call: the last of four begins at 9.
    assert replay(recording(("step", 0.0, [16.0] * 4)), 4, team)["step"] == 9 + 16 + 0.125


def test_a_helper_that_comes_too_late_is_not_waited_for() -> None:
    team = TeamModel(waking_asleep=100)
    assert replay(recording(("step", 0.0, [1.0, 1.0])), 2, team)["step"] == 2


def test_cache_lines_go_from_core_to_core() -> None:
    awake = TeamModel(transfer=0.5, spinning=np.inf)
    # The three helpers begin at 0, 0.5 and 1. The last one is done at 3, sees the three shares of
    # others until 4.5, and all leave one after the other, the first of them as closing has it.
    loop = recording(("step", 0.0, [2.0] * 4))
    assert replay(loop, 4, awake)["step"] == 4.5 + 2 * 0.5


def test_memory_is_a_ceiling_of_loops() -> None:
    recorded = recording(("fast", 1.0, [1.0] * 64), ("slow", 0.0, [1.0] * 64))
    memory = Memory(core=1e9, socket=8e9)
    moved = {"slow": 64e9}
    # As much as a core can move in its time: it scales until the socket is full.
    for workers, slow in ((1, 64), (2, 32), (8, 8), (16, 8), (64, 8)):
        seconds = replay(recorded, workers, FREE, moved, memory)
        assert seconds["slow"] == pytest.approx(slow)
        assert seconds["fast"] == pytest.approx(1 + 64 / workers)


def test_what_a_cache_holds_does_not_come_from_memory() -> None:
    memory = Memory(core=1e9, socket=8e9, cache=30e6)
    assert memory.missing(120e6) == 0.75
    assert memory.missing(20e6) == memory.missing(0.0) == 0
    assert Memory(core=1e9, socket=8e9).missing(1.0) == 1


def test_what_limits_a_step() -> None:
    even = [1.0] * 64
    recorded = recording(
        ("serial", 50.0, even),
        ("chunks", 0.0, [1.0] * 32 + [20.0]),
        ("one chunk", 0.0, [3.0]),
        ("memory", 0.0, even),
        *[("team", 0.0, [0.125] * 32) for _ in range(8)],
    )
    team = TeamModel(waking=0.25, waking_asleep=0.25, closing=1.0)
    memory = Memory(core=1e9, socket=8e9)
    found = limits(recorded, 32, team, {"memory": 320e9}, memory)
    assert {step: max(saved, key=lambda cause: saved[cause]) for step, saved in found.items()} == {
        "serial": SERIAL,
        "chunks": CHUNKS,
        "one chunk": CHUNKS,
        "memory": MEMORY,
        "team": TEAM,
    }
    # 40 s of memory, where two chunks each, the wake-up and the barrier take 3.25.
    assert found["memory"] == {SERIAL: 0, TEAM: 0, MEMORY: 36.75, CHUNKS: 0}
    assert found["serial"][SERIAL] == 50
    # The owner, free at 1, takes the long chunk, which is the last of all. Shared out evenly, it is
    # 52 s for 32 workers, of whom 31 begin at 0.25.
    assert found["chunks"][CHUNKS] == pytest.approx(21 - (52 + 31 * 0.25) / 32)


def test_one_chunk_wakes_nobody() -> None:
    team = TeamModel(opening_asleep=1, waking_asleep=1, closing=1)
    assert replay(recording(("step", 0.0, [3.0])), 32, team)["step"] == 3


@settings(max_examples=50, deadline=None)
@given(
    chunks=st.lists(st.floats(0.0, 10.0, width=32), min_size=1, max_size=30),
    starts=st.lists(st.floats(0.0, 5.0, width=32), min_size=1, max_size=6),
    transfer=st.sampled_from([0.0, 0.25]),
)
def test_the_short_cut_changes_nothing(
    chunks: list[float], starts: list[float], transfer: float
) -> None:
    quick = loop_end(np.array(chunks, np.float32), np.array(starts), transfer)
    assert quick == pytest.approx(plain_end(chunks, starts, transfer), abs=1e-9)


@settings(max_examples=50, deadline=None)
@given(
    chunks=st.lists(st.floats(0.0, 10.0, width=32), min_size=1, max_size=50),
    workers=st.integers(1, 12),
)
def test_nobody_idles_while_there_is_work(chunks: list[float], workers: int) -> None:
    """Graham's bounds, which every such schedule keeps."""
    total, longest = sum(chunks), max(chunks)
    found = end(chunks, workers)
    assert found >= max(total / workers, longest) - 1e-9
    assert found <= total / workers + (1 - 1 / workers) * longest + 1e-9


@pytest.mark.parametrize("chunks", [1, 7, 64, 1000])
def test_more_workers_are_never_slower_at_equal_chunks(chunks: int) -> None:
    ends = [end([1.0] * chunks, workers) for workers in range(1, 70)]
    assert ends == sorted(ends, reverse=True)
    assert ends == [-(-chunks // workers) for workers in range(1, 70)]


def test_a_prediction_that_misses_two_threads_is_withheld() -> None:
    predicted = {"good": {"1": 2.0, "2": 1.05, "32": 0.1}, "bad": {"1": 2.0, "2": 1.0, "32": 0.1}}
    measured = {"good": {"1": 2.0, "2": 1.0}, "bad": {"1": 2.0, "2": 1.2}}
    assert without_doubtful(predicted, measured) == {
        "good": {"1": 2.0, "2": 1.05, "32": 0.1},
        "bad": {"1": 2.0, "2": 1.0},
    }


def test_a_recording_is_replayed() -> None:
    squared = np.random.default_rng(0).random((2000, 20), np.float32)

    def search() -> None:
        _core.search_perplexity(squared, 5.0, 1)

    recorded = Recording(**_core.record_loops(search))
    assert recorded.loops()["BSP"] == 1
    assert len(recorded.chunk_seconds) == recorded.chunk_count.sum() == 8
    seconds = replay(recorded, 1, FREE)
    assert seconds == pytest.approx(recorded.seconds())
    longest = float(recorded.chunk_seconds.max())
    assert replay(recorded, 8, FREE)["BSP"] == pytest.approx(
        longest + recorded.serial()["BSP"], rel=1e-5
    )


def test_an_error_ends_a_recording() -> None:
    def fail() -> None:
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        _core.record_loops(fail)
    assert _core.record_loops(lambda: None)["chunk_count"].sum() == 0
