"""Replay recorded loops on any number of workers: our scheduling rule, its costs, the memory.

A model, with what it leaves out: cores are as fast as the one that was recorded, however many work;
what a chunk takes does not depend on the core or on who worked before on its data.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Seconds = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class TeamModel:
    """What a team costs beside the work, in seconds.

    The figures of one helper are measured; those of more follow from what happens one after the
    other: the system wakes sleeping helpers one by one, and a cache line that many wait for goes
    from one core to the next.
    """

    opening: float = 0.0  # until the owner begins, while its helpers spin
    waking: float = 0.0  # until the first helper begins
    opening_asleep: float = 0.0  # the same if the helpers sleep
    waking_asleep: float = 0.0
    wake_call: float = 0.0  # for each further sleeping helper
    closing: float = 0.0  # from the end of the last chunk to the end of the loop
    transfer: float = 0.0  # of a cache line from core to core
    spinning: float = 40e-6  # for so long an idle helper spins (kSpinTime, native/parallel.cpp)

    def starts(self, workers: int, asleep: bool) -> Seconds:
        """When each worker can begin, the owner first."""
        further = np.arange(-1.0, workers - 1)
        if asleep:
            starts = self.waking_asleep + further * self.wake_call
            starts[0] = self.opening_asleep + (workers - 2) * self.wake_call
        else:
            starts = self.waking + further * self.transfer
            starts[0] = self.opening
        return starts

    def end(self, workers: int) -> float:
        """How long the owner takes to see that all are done: they leave by one gate."""
        return self.closing + (workers - 2) * self.transfer


@dataclass(frozen=True)
class Memory:
    """What memory delivers, in bytes a second, and what need not come from it."""

    core: float
    socket: float
    cache: float = 0.0  # bytes that the last cache of all cores holds

    def bandwidth(self, workers: int) -> float:
        return min(workers * self.core, self.socket)

    def missing(self, touched: float) -> float:
        """Return the part that comes from memory of bytes that are gone through again and again.

        The cache keeps as much of them as it holds.
        """
        return max(0.0, 1 - self.cache / touched) if touched else 0.0


@dataclass(frozen=True)
class Recording:
    """What `_core.record_loops` returns."""

    steps: Sequence[str]
    step: npt.NDArray[np.int32]
    serial_seconds: npt.NDArray[np.float64]
    loop_seconds: npt.NDArray[np.float64]
    chunk_count: npt.NDArray[np.int64]
    chunk_ends: npt.NDArray[np.int64]
    chunk_seconds: npt.NDArray[np.float32]

    def seconds(self) -> dict[str, float]:
        """Seconds by step, as they were measured."""
        both = self.serial_seconds + self.loop_seconds
        return {name: float(both[self.step == i].sum()) for i, name in enumerate(self.steps)}

    def serial(self) -> dict[str, float]:
        """Those of them that no loop has."""
        return {
            name: float(self.serial_seconds[self.step == i].sum())
            for i, name in enumerate(self.steps)
        }

    def loops(self) -> dict[str, int]:
        """How many loops each step has."""
        with_chunks = self.chunk_count > 0
        return {name: int(with_chunks[self.step == i].sum()) for i, name in enumerate(self.steps)}


def loop_end(chunks: Seconds, starts: Seconds, transfer: float = 0.0) -> float:
    """When the last worker has found nothing left to do.

    The rule is ThreadTeam's: of n chunks, worker w of P first takes those from n w / P to
    n (w + 1) / P in their order, then those that are left of the next worker's, and so on round.
    """
    workers = len(starts)
    bounds = [len(chunks) * worker // workers for worker in range(workers + 1)]
    begins = np.concatenate([[0.0], np.cumsum(chunks, dtype=np.float64)])
    own_ends = starts + begins[bounds[1:]] - begins[bounds[:-1]]
    # Until somebody is free, all are at work on their own.
    first_free = own_ends.min()
    following = []
    queue = []
    for worker, (begin, end) in enumerate(pairwise(bounds)):
        since = begins[begin : end + 1] - begins[begin] + starts[worker]
        taken = int(np.searchsorted(since[:-1], first_free))
        following.append(begin + taken)
        queue.append((float(since[taken]), worker, 0))
    heapq.heapify(queue)
    left = sum(bounds[worker + 1] - following[worker] for worker in range(workers))
    while left:
        time, worker, visited = heapq.heappop(queue)
        share = (worker + visited) % workers
        way = transfer if visited else 0.0
        if following[share] < bounds[share + 1]:
            time += way + float(chunks[following[share]])
            following[share] += 1
            left -= 1
        else:
            time += way
            visited += 1
        heapq.heappush(queue, (time, worker, visited))
    # Each looks into every other share once more; a helper that comes too late is not waited for.
    ends = {
        worker: time + (workers - max(visited, 1)) * transfer for time, worker, visited in queue
    }
    return max(end for worker, end in ends.items() if worker == 0 or starts[worker] <= ends[0])


def balanced_end(chunks: Seconds, starts: Seconds) -> float:
    """When all would be done if the work could be cut at will."""
    return float(chunks.sum(dtype=np.float64) + starts.sum()) / len(starts)


def replay(
    recording: Recording,
    workers: int,
    team: TeamModel,
    bytes_moved: Mapping[str, float] | None = None,
    memory: Memory | None = None,
    *,
    balanced: bool = False,
) -> dict[str, float]:
    """Seconds by step on so many workers; serial stretches last as long as they did.

    `balanced`, the work of every loop is shared out evenly, whatever its chunks, if that helps.
    """
    in_loops = np.zeros(len(recording.steps))
    serial = np.zeros(len(recording.steps))
    idle = np.inf  # of the helpers
    begin = 0
    for loop, end in enumerate(recording.chunk_ends):
        step = recording.step[loop]
        serial[step] += recording.serial_seconds[loop]
        idle += recording.serial_seconds[loop]
        chunks = recording.chunk_seconds[begin:end]
        begin = end
        alone = workers == 1 or len(chunks) < 2
        starts = team.starts(workers, asleep=idle > team.spinning)
        if alone:
            taken = float(recording.loop_seconds[loop])
        else:
            taken = loop_end(chunks, starts, team.transfer) + team.end(workers)
        idle = idle + taken if alone else 0.0
        if balanced:
            taken = min(taken, balanced_end(chunks, starts) + team.end(workers))
        in_loops[step] += taken
    seconds = {}
    for step, name in enumerate(recording.steps):
        at_least = 0.0
        if memory is not None and bytes_moved is not None:
            at_least = bytes_moved.get(name, 0.0) / memory.bandwidth(workers)
        # One worker has shown what memory gives it.
        seconds[name] = float(
            serial[step] + (in_loops[step] if workers == 1 else max(in_loops[step], at_least))
        )
    return seconds


# What may keep a step from gaining by more workers.
SERIAL = "serial stretches"
TEAM = "wake-up and barrier"
MEMORY = "memory bandwidth"
CHUNKS = "chunks, too few or unequal"


def limits(
    recording: Recording,
    workers: int,
    team: TeamModel,
    bytes_moved: Mapping[str, float],
    memory: Memory,
) -> dict[str, dict[str, float]]:
    """Seconds by step that so many workers would save if one of what limits them were not there."""
    whole = replay(recording, workers, team, bytes_moved, memory)
    without = {
        TEAM: replay(recording, workers, TeamModel(), bytes_moved, memory),
        MEMORY: replay(recording, workers, team),
        CHUNKS: replay(recording, workers, team, bytes_moved, memory, balanced=True),
    }
    serial = recording.serial()
    return {
        step: {
            SERIAL: serial[step],
            # A schedule may be shorter by chance than one with less to wait for.
            **{cause: max(0.0, taken - less[step]) for cause, less in without.items()},
        }
        for step, taken in whole.items()
    }
