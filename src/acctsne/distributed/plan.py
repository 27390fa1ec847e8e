"""What a fit by several processes will take: seconds, memory and bytes of each stage.

    python -m acctsne.distributed.plan --points 1e8 --features 50 --ranks 16 --cores 32 --gbit 25

Bytes follow from what the code sends, memory from what docs/clusters.md says is where, seconds from
work, bytes and messages. It is a model: `Calibration` has what it takes from measurements, and what
it only estimates. Maps have two dimensions and single precision, neighbours are approximate, the
start is by PCA.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, exp, isfinite, log, log2, sqrt

from acctsne._core import APPROXIMATE_AXES, BLOCK_ROWS, FEW_FEATURES
from acctsne.neighbors.euclidean import RECALL_SAMPLE, chosen_mode
from acctsne.optimize.schedule import LOOK_EVERY
from acctsne.runtime.checks import MAX_SAMPLES

DIMS = 2
REAL = 4  # bytes of a number in single precision, of the name of a point too
DOUBLE = 8

# How the native core cuts its work; tests/test_plan.py reads the same from its source.
SAMPLE_ROWS = 4096  # from which axes are found
SUM_ROWS = 512  # for each of which Z has a number
UPDATE_ROWS = 1024  # for each of which a step has UPDATE_NUMBERS
UPDATE_NUMBERS = 3 * DIMS + 4
EDGE_BLOCK_ROWS = 256  # for each of which the KL divergence has a number
EDGE_NUMBERS = 3  # for each of these, that are summed over P
POINTS_PER_SUM = 8 * BLOCK_ROWS  # of charges
STRIP_COLUMNS = 8
MOST_TILES_IN_STRIP = 32
SEGMENT_NODES = 8  # of a column, that are sent unless none has a charge
FEWEST_BLOCKS = 6  # a side of a grid that is convolved in blocks
COARSENESS = 4  # of the grid for the far part of the kernel
# With the default step, a block's side, its margin, and the reach around it from which its part of
# the coarse grid is made; all in nodes.
BLOCK_SIDE = 192
BLOCK_MARGIN = 32
COARSE_REACH = 3 * COARSENESS
BATCH_POINTS = 64 * 256  # whose surroundings are fetched together in the second round
RELABELLED_AT = (0, 50, 200, 500)
SYMMETRISATION_PARTS = 32  # in which edges of the transposed matrix come
TRANSPOSED_PARTS = 16  # in which one process transposes them
RELABELLING_PARTS = 64  # in which rows of P move

# Of a checkpoint: positions, steps and gains of a point, and with its number all of its state.
MOVING_STATE = 3 * DIMS * REAL
STATE = MOVING_STATE + REAL


@dataclass(frozen=True)
class Calibration:
    """The figures that no formula gives, each under the command that measures it anew."""

    # python benchmarks/paper.py --only growth --contestants acctsne
    # A million samples of 20 features by one process with two threads, machine A of
    # docs/performance.md, one run: microseconds of a core and sample.
    neighbors: float = 42.0
    perplexity: float = 0.96
    symmetrisation: float = 7.0
    start: float = 0.27
    relabelling: float = 1.0  # each time
    # The same of an iteration. benchmarks/steps.py has them for a map at its end.
    attraction: float = 0.097
    repulsion: float = 0.025  # without the transform
    update: float = 0.010  # and KL divergence
    iterations: int = 340  # after which that fit ended by itself

    # python benchmarks/methods.py
    node: float = 0.25e-3  # microseconds of a core, times log2 of the nodes transformed
    block_node: float = 5.0e-3  # of a node in a block, margins included (docs/tuning.md)

    # From the seconds of one process with two threads and two with one in docs/clusters.md: how
    # much more work the same is for several, and what charging a grid together adds for each point.
    shared_symmetrisation: float = 1.9
    shared_relabelling: float = 3.1
    shared_charges: float = 0.012

    # python benchmarks/processes.py --folder FOLDER --dataset synthetic:1000000x20 --processes 1,4
    process: float = 210e6  # bytes of a process before it has data
    # Fitted to the bytes that four sent in an iteration, in the mean (docs/clusters.md).
    halo: float = 0.30  # points of others, as a part of own ones, for sqrt(ranks) - 1
    border: float = 18.0  # points that reach into others' tiles, likewise, for 1 / width
    around: float = 3.2  # how much longer borders between processes are than those of squares
    moved: tuple[float, ...] = (1.0, 0.68, 0.24, 0.24)  # part of the rows, in each relabelling
    # From maps of 100,000 to 4,000,000 samples, which hardly differ in it.
    first_wide: int = 47  # the iteration from which on the map grows
    nodes: float = 13.1e3  # of its grid, by which it does in each
    charged: float = 0.46  # of these nodes
    # Fitted to the memory of the search by each of four, not counted: lists and points that are
    # fetched for each point searched.
    lists: float = 2.5
    fetched: float = 12.0
    # Fitted to the memory of the start: bytes that every process has for each of all points.
    start_room: float = 90.0

    # Counted in the arrays of the code: the same from the start on.
    room: float = 108.0
    # Edges of a row of P for each neighbour, of a million samples; bytes of one whose column takes
    # 32 bits, as most do before points are relabelled, and of one afterwards.
    edges: float = 1.5
    scattered_edge: float = 6.0
    edge: float = 4.2

    # Estimated, not measured.
    halo_exponent: float = -0.07  # of the points, from shares at 200,000 and a million
    first_round: float = 0.65  # part of the search
    cells: float = 1.0  # microseconds of a core and sample; every process orders all of a million
    products: float = 1e4  # additions and multiplications in a microsecond of a core
    efficiency: float = 0.7  # of each of more than two cores
    most_cores: int = 32  # beyond which more are not counted on
    latency: float = 30e-6  # seconds of a round of messages


CALIBRATION = Calibration()

# Each is summed by itself, and the growth of the map was calibrated on some hundreds.
MOST_ITERATIONS = 100_000


@dataclass(frozen=True)
class Job:
    """A fit, and what it is given: processes, cores of each and the speed of its network."""

    points: int
    features: int
    ranks: int
    cores: int = 1
    gbit: float = 10.0
    perplexity: float = 30.0
    iterations: int = CALIBRATION.iterations
    checkpoint_every: int = 0  # iterations; 0 for no checkpoints

    def __post_init__(self) -> None:
        least = {"points": 2, "features": 1, "ranks": 1, "cores": 1, "iterations": 1}
        least["checkpoint_every"] = 0
        for name, limit in least.items():
            if getattr(self, name) < limit:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least {limit}")
        if self.points > MAX_SAMPLES:
            raise ValueError(f"points is {self.points}; at most {MAX_SAMPLES} are supported")
        if self.iterations > MOST_ITERATIONS:
            raise ValueError(
                f"iterations is {self.iterations}; the model goes through at most {MOST_ITERATIONS}"
            )
        if not (isfinite(self.gbit) and self.gbit > 0):
            raise ValueError(f"gbit is {self.gbit:g}; it must be a number above 0")
        if not 1 <= self.perplexity < self.points:
            raise ValueError(
                f"perplexity is {self.perplexity:g}; it must be at least 1 and less than the "
                f"{self.points} points"
            )

    @property
    def neighbors(self) -> int:
        """Neighbours of each sample."""
        return min(self.points - 1, int(3 * self.perplexity + 1))

    @property
    def axes(self) -> int:
        """Coordinates of a sample in the search."""
        return min(self.features, APPROXIMATE_AXES)

    @property
    def first_neighbors(self) -> int:
        """Neighbours that the first round finds."""
        more = self.neighbors // 2 + 16 if self.axes < self.features else 0
        return min(self.neighbors + more, self.points - 1)

    @property
    def own(self) -> float:
        """Points of a process, in the mean."""
        return self.points / self.ranks

    @property
    def most_own(self) -> int:
        """Points of the process that has most."""
        blocks = ceil(self.points / BLOCK_ROWS)
        return min(self.points, ceil(blocks / self.ranks) * BLOCK_ROWS)

    @property
    def elsewhere(self) -> float:
        """The part of things without order that is not on a process."""
        return (self.ranks - 1) / self.ranks

    @property
    def cut(self) -> float:
        """How long the borders of a process are: those of squares that divide a square."""
        return sqrt(self.ranks) - 1

    @property
    def relabellings(self) -> int:
        """How often points are numbered anew."""
        return sum(iteration < self.iterations for iteration in RELABELLED_AT)

    @property
    def busy_cores(self) -> float:
        """Cores of a process, as far as they are of use."""
        cores = min(self.cores, CALIBRATION.most_cores)
        return max(min(cores, 2), CALIBRATION.efficiency * cores)

    def gathered(self, rows: float, row_bytes: float) -> float:
        """Bytes that a process sends so that all have all rows."""
        return rows / self.ranks * row_bytes * (self.ranks - 1)

    def summed(self, numbers: float) -> float:
        """Bytes that it sends to add up numbers in the order of processes."""
        return 2 * self.elsewhere * numbers * DOUBLE


@dataclass(frozen=True)
class Stage:
    """What one process spends on a stage: the mean of work and bytes, the most memory."""

    name: str
    work: float  # microseconds of a core
    sent: float = 0.0  # bytes
    rounds: float = 0.0  # of messages that wait for each other
    memory: float = 0.0  # bytes at the peak

    def seconds(self, job: Job) -> float:
        """How long it takes."""
        steps = ceil(log2(job.ranks)) * self.rounds
        network = 8 * self.sent / (job.gbit * 1e9)
        return self.work * 1e-6 / job.busy_cores + network + steps * CALIBRATION.latency


def axes(job: Job) -> Stage:
    """Find the leading axes in a sample of the rows, project own rows."""
    c = CALIBRATION
    sample = min(job.points, SAMPLE_ROWS)
    products = 2 * job.features * job.axes * (job.own + sample)
    sent = job.gathered(sample, REAL * job.features)
    return Stage("axes, projection", products / c.products, sent, 3, _searched(job))


def first_round(job: Job) -> Stage:
    """Gather all coordinates, order all points into cells, search the cells nearby."""
    c = CALIBRATION
    effort = max(1.0, job.points / 1e6) ** 0.6
    searched = (c.neighbors * c.first_round - c.cells) * effort * job.axes / 20 * job.own
    ordered = c.cells * job.points * log2(job.points) / log2(1e6)
    coordinates = REAL * job.axes + DOUBLE
    packed = REAL * job.axes + REAL
    copied = coordinates if job.ranks > 1 else 0
    memory = (
        _searched(job)
        + job.points * (copied + packed + REAL)
        + job.most_own * job.first_neighbors * REAL
    )
    sent = job.gathered(job.points, coordinates)
    return Stage("neighbours, first round", searched + ordered, sent, 3, memory)


def second_round(job: Job) -> Stage:
    """Fetch rows and lists of neighbours' neighbours, keep the nearest, estimate the recall."""
    c = CALIBRATION
    work = c.neighbors * (1 - c.first_round) * job.features / 20 * job.own
    batch = min(BATCH_POINTS, job.own)
    batches = ceil(job.own / batch)
    lists = min(c.lists * batch, job.points - batch)
    fetched = min(c.fetched * batch, job.points)
    list_bytes = REAL * job.first_neighbors
    row_bytes = REAL * job.features
    found = job.neighbors * 2 * REAL
    # Lists are asked of the processes that searched nearby, taken here for any.
    sent = job.elsewhere * batches * (
        lists * (REAL + list_bytes) + fetched * (REAL + row_bytes + REAL * (job.axes + 1))
    ) + job.elsewhere * job.own * (REAL + found)
    sample = min(RECALL_SAMPLE, job.points)
    checked = min(sample / job.ranks * job.neighbors, job.points)
    sent += job.gathered(sample, row_bytes + REAL * job.axes + DOUBLE)
    sent += sample * (job.neighbors + 1) * REAL * (job.ranks - 1)
    sent += job.elsewhere * checked * (REAL + row_bytes + REAL * (job.axes + 1))
    laid_out = ceil((job.axes + 1) / 16) * 16 * REAL
    kept = job.most_own * (found + list_bytes)
    if job.ranks == 1:
        around: float = job.points * (REAL + laid_out)
    else:
        # Every list twice, when it is sent; coordinates also as they leave and as they arrive.
        of_point = row_bytes + laid_out + 2 * REAL * (job.axes + 1)
        around = (
            job.points * 2 * REAL
            + 2 * (batch + lists) * list_bytes
            + fetched * of_point
            + 3 * batch * found
        )
    memory = _searched(job) + kept + around
    return Stage("neighbours, second round", work, sent, 18 * batches, memory)


def perplexity(job: Job) -> Stage:
    """Make each sample's own distribution over its neighbours."""
    work = CALIBRATION.perplexity * job.neighbors / 91 * job.own
    memory = _base(job) + job.most_own * job.neighbors * (2 * REAL + REAL)
    return Stage("perplexity", work, memory=memory)


def symmetrisation(job: Job) -> Stage:
    """Send every edge to the owner of its column, twice: to count and to fill."""
    c = CALIBRATION
    more = c.shared_symmetrisation if job.ranks > 1 else 1
    work = c.symmetrisation * more * job.neighbors / 91 * job.own
    triple = 3 * REAL
    edges = job.own * job.neighbors
    sent = 2 * job.elsewhere * edges * triple
    sent += job.gathered(job.points, DOUBLE)
    sent += job.gathered(ceil(job.points / EDGE_BLOCK_ROWS), EDGE_NUMBERS * DOUBLE)
    most = job.most_own * job.neighbors
    # One process transposes a part of its edges at a time. Several have a part three times: as it
    # leaves, as it arrives and sorted.
    transposed = (2 * REAL + 2) / TRANSPOSED_PARTS
    part = transposed if job.ranks == 1 else 3 * triple / SYMMETRISATION_PARTS
    edges_memory = most * (2 * REAL + c.edges * c.scattered_edge + part)
    memory = _base(job) + edges_memory + job.points * c.room
    return Stage("symmetrisation", work, sent, 4 * SYMMETRISATION_PARTS, memory)


def start(job: Job) -> Stage:
    """Find principal components and give all processes the layout."""
    c = CALIBRATION
    sent = job.gathered(job.points, DIMS * DOUBLE)
    sent += job.elsewhere * job.points * DIMS * REAL  # from the first to all, in the mean
    # Covariance and mean, of the coordinates where there are many features.
    features = job.features if job.features <= FEW_FEATURES else job.axes
    sent += job.summed(features * features + features)
    sent += job.elsewhere * DIMS * features * DOUBLE
    memory = _base(job) + job.most_own * job.neighbors * 2 * REAL + job.points * c.start_room
    return Stage("start", c.start * job.features / 20 * job.own, sent, 2 * job.ranks, memory)


def relabelling(job: Job, first: int = 0) -> Stage:
    """Move points, their state and their rows of P: at first as if each went anywhere."""
    c = CALIBRATION
    edges = job.neighbors * c.edges
    state = 8 + 4 * DIMS * REAL + REAL
    row = 3 * REAL + 2 * REAL + edges * (REAL + 2)
    moved = sum(c.moved[first : job.relabellings]) * job.elsewhere * job.own * (state + row)
    told = job.gathered(job.points, REAL) + REAL * _foreign(job)
    more = c.shared_relabelling if job.ranks > 1 else 1
    times = max(job.relabellings - first, 0)
    return Stage(
        f"relabelling, {times} times",
        times * more * c.relabelling * job.neighbors / 91 * job.own,
        moved + times * told,
        times * (64 + 6 * RELABELLING_PARTS),
        _descent_memory(job),
    )


def descent(job: Job) -> Stage:
    """Go through all iterations, and give all positions at the end."""
    each = [iteration(job, number) for number in range(job.iterations)]
    return Stage(
        f"descent, {job.iterations} iterations",
        sum(one.work for one in each),
        sum(one.sent for one in each) + job.gathered(job.points, DIMS * REAL),
        sum(one.rounds for one in each),
        _descent_memory(job),
    )


def iteration(job: Job, number: int) -> Stage:
    """Go through one iteration: halo, charges, sums; transform the grid or some blocks of it."""
    c = CALIBRATION
    work = (c.attraction * job.neighbors / 91 + c.repulsion + c.update) * job.own
    work += c.shared_charges * job.own if job.ranks > 1 else 0
    nodes = grid_nodes(number)
    if in_blocks(number):
        coarse = 4 * nodes / COARSENESS**2  # padded
        work += c.block_node * needed_nodes(job, number) + c.node * coarse * log2(coarse)
    else:
        work += c.node * nodes * log2(nodes)
    sent = halo_bytes(job) + charges_bytes(job, number) + sums_bytes(job)
    return Stage("descent, one iteration", work, sent, 10, _descent_memory(job))


def mean_iteration(job: Job) -> Stage:
    """Return what an iteration takes in the mean of all."""
    each = [iteration(job, number) for number in range(job.iterations)]
    count = len(each)
    return Stage(
        "descent, one iteration",
        sum(one.work for one in each) / count,
        sum(one.sent for one in each) / count,
        sum(one.rounds for one in each) / count,
        each[0].memory,
    )


def halo_bytes(job: Job) -> float:
    """Bytes of the positions that others' edges lead to."""
    return _foreign(job) * DIMS * REAL


def charges_bytes(job: Job, number: int) -> float:
    """Bytes of points that reach into others' tiles, of charges, and of what says where they are.

    All processes need all charges of a grid that is transformed whole. Of one in blocks each needs
    those around its points, and the coarse grid.
    """
    c = CALIBRATION
    nodes = grid_nodes(number)
    width = ceil(sqrt(nodes))
    strips = ceil(width / STRIP_COLUMNS)
    rows = 1 << ceil(log2(max(STRIP_COLUMNS, width / MOST_TILES_IN_STRIP)))
    counts = strips * ceil(width / rows) + strips
    points = min(c.border / width * job.cut, job.ranks - 1) * job.own
    parts = ceil(job.own / POINTS_PER_SUM)
    others = job.ranks - 1
    sent_nodes = needed_nodes(job, number) - nodes / job.ranks
    coarse = job.gathered(nodes / COARSENESS**2, REAL) if in_blocks(number) else 0
    bits = sent_nodes / SEGMENT_NODES / 8
    return (
        points * DIMS * REAL
        + sent_nodes * c.charged * REAL
        + coarse
        + bits
        + others * (counts * 4 + parts * DOUBLE)
    )


def checkpoints(job: Job) -> Stage:
    """Give every process the state of its own rows, which it writes."""
    times = (job.iterations - 1) // job.checkpoint_every if job.checkpoint_every else 0
    # Of positions, steps and gains the last are there twice, as they were sent and as they came.
    memory = _fitting_memory(job) + job.most_own * (MOVING_STATE + DIMS * REAL)
    sent = times * job.own * job.elsewhere * MOVING_STATE
    return Stage(f"checkpoints, {times} times", 0, sent, 6 * times, memory)


def resuming(job: Job) -> Stage:
    """Read own rows of the affinities and of the state, which the core then hands to their points.

    It takes the place of all stages before the descent, and is not one of a whole fit.
    """
    read = job.most_own * job.neighbors * 2 * REAL
    symmetrised = symmetrisation(job)
    # The core has a copy of the state, what is on its way, and the numbers of all points anew.
    copied = job.most_own * (STATE + 2 * DIMS * REAL) + job.points * REAL
    memory = max(symmetrised.memory, _fitting_memory(job) + read + copied)
    handed_on = job.own * job.elsewhere * MOVING_STATE + job.gathered(job.points, REAL)
    return Stage(
        "going on from one",
        symmetrised.work,
        symmetrised.sent + handed_on,
        symmetrised.rounds + 7,
        memory + job.most_own * STATE,
    )


def in_blocks(number: int) -> bool:
    """Whether the grid of an iteration is so wide that it is convolved in blocks."""
    return sqrt(grid_nodes(number)) > (FEWEST_BLOCKS - 1) * BLOCK_SIDE


def needed_nodes(job: Job, number: int) -> float:
    """Nodes whose charges a process needs: all, or those in and around the blocks of its points."""
    nodes = grid_nodes(number)
    own = nodes / job.ranks
    if job.ranks == 1 or not in_blocks(number):
        return nodes
    # A border is shared by two; beyond it half a block, in the mean, and what is around it.
    length = 4 * sqrt(nodes) * job.cut / job.ranks
    beyond = BLOCK_SIDE / 2 + BLOCK_MARGIN + COARSE_REACH
    return min(nodes, own + CALIBRATION.around * length * beyond)


def sums_bytes(job: Job) -> float:
    """Bytes of the numbers for chunks of rows: of Z, of the step, now and then of KL."""
    numbers = (
        ceil(job.points / SUM_ROWS)
        + UPDATE_NUMBERS * ceil(job.points / UPDATE_ROWS)
        + ceil(job.points / EDGE_BLOCK_ROWS) / LOOK_EVERY
    )
    agreed = 1 + 1 / LOOK_EVERY  # whether to stop
    return job.gathered(numbers, DOUBLE) + agreed * DOUBLE * (job.ranks - 1)


def grid_nodes(number: int) -> float:
    """Nodes of the grid in an iteration: the map's area grows when exaggeration has faded."""
    c = CALIBRATION
    return max(40.0**2, c.nodes * (number - c.first_wide))


def _foreign(job: Job) -> float:
    """Points of others that own edges lead to."""
    c = CALIBRATION
    share = c.halo * exp(c.halo_exponent * log(job.points / 1e6)) * job.cut
    return min(share, job.ranks - 1) * job.own


def _base(job: Job) -> float:
    """Bytes of a process and its rows of the data."""
    return CALIBRATION.process + job.most_own * job.features * REAL


def _searched(job: Job) -> float:
    """Bytes of the same and of what a search has of own rows."""
    return _base(job) + job.most_own * (REAL * job.axes + DOUBLE)


def _fitting_memory(job: Job) -> float:
    """Bytes between iterations."""
    c = CALIBRATION
    return _base(job) + job.most_own * job.neighbors * c.edges * c.edge + job.points * c.room


def _descent_memory(job: Job) -> float:
    """Bytes while rows of P move: as they were, as they will be and, in parts, on their way."""
    c = CALIBRATION
    moving = 3 * c.scattered_edge / RELABELLING_PARTS if job.ranks > 1 else 0
    edges = job.most_own * job.neighbors * c.edges
    return _base(job) + edges * (c.scattered_edge + c.edge + moving) + job.points * c.room


MakesStage = Callable[[Job], Stage]

# All stages, in the order in which a fit has them.
STAGES: tuple[MakesStage, ...] = (
    axes,
    first_round,
    second_round,
    perplexity,
    symmetrisation,
    start,
    relabelling,
    descent,
)


def stages(job: Job) -> list[Stage]:
    """Return what each stage takes."""
    found = [stage(job) for stage in STAGES]
    return [*found, checkpoints(job)] if job.checkpoint_every else found


def total(job: Job) -> Stage:
    """Return what the whole takes: the sum of all but memory, of which it is the peak."""
    parts = stages(job)
    return Stage(
        "whole fit",
        sum(part.work for part in parts),
        sum(part.sent for part in parts),
        sum(part.rounds for part in parts),
        max(part.memory for part in parts),
    )


def table(job: Job) -> str:
    """Write what a fit takes, with what was assumed."""
    shown = [*stages(job), total(job)]
    shown.insert(STAGES.index(descent), mean_iteration(job))
    if job.checkpoint_every:
        shown.append(resuming(job))
    rows = [("of each process", "seconds", "sent", "memory")]
    rows += [
        (one.name, f"{one.seconds(job):.3g}", _size(one.sent), _size(one.memory)) for one in shown
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    c = CALIBRATION
    lines += [
        "",
        f"Assumed: {c.efficiency:.0%} of each core up to {c.most_cores}, {c.latency * 1e6:.0f} "
        "microseconds a round of messages, a link of its own for each process,",
        "float32, rows in no order, cores like those of Zen 4. Nothing was checked on more than "
        "one machine; fetching in the second round is the least certain.",
    ]
    if job.checkpoint_every:
        lines.append("Of checkpoints, the seconds of the disk are left out.")
    if chosen_mode("auto", job.points, job.features) == "exact":
        lines.append("So few are searched exactly unless neighbors='approximate', as it is here.")
    return "\n".join(lines)


def _size(count: float) -> str:
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count / 1e3:.3g} kB" if count else "0"


def _whole(text: str) -> int:
    """Read a whole number, 1e8 too."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not (isfinite(value) and value == int(value)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number such as 1000000 or 1e6")
    return int(value)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the plan of a fit; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m acctsne.distributed.plan",
        description="Predict seconds, memory and bytes of a fit that processes share.",
    )
    add = parser.add_argument
    add("--points", type=_whole, required=True, help="samples, 1e8 for example")
    add("--features", type=_whole, required=True, help="numbers of a sample")
    add("--ranks", type=_whole, required=True, help="processes")
    add("--cores", type=_whole, default=1, help="of each process")
    add("--gbit", type=float, default=10.0, help="a second that a process can send")
    add("--perplexity", type=float, default=30.0)
    add("--iterations", type=_whole, default=CALIBRATION.iterations)
    add("--checkpoint-every", type=_whole, default=0, help="iterations; 0, the default, for none")
    try:
        job = Job(**vars(parser.parse_args(arguments)))
    except ValueError as error:
        parser.error(str(error))
    print(table(job))
    return 0


if __name__ == "__main__":
    sys.exit(main())
