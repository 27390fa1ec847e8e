"""The program `fast_tsne`: FIt-SNE's file protocol, with acctsne inside.

FIt-SNE's wrappers for Python, R and Matlab, and Seurat's ``RunTSNE(tsne.method = "FIt-SNE")``,
write data and settings to a file, run ``fast_tsne VERSION INPUT OUTPUT THREADS`` and read the
result from another. Here is such a program. All numbers are 4-byte integers and 8-byte reals in
the machine's byte order, arrays row by row.

INPUT holds `SIZES`; if the perplexity is 0, a count and so many perplexities, whose affinities are
averaged; `SETTINGS`, of which `max_step_norm` came with version 1.2; the data; `ENDING`; and the
initial layout, or nothing for a random one. OUTPUT holds the number of points and of dimensions,
the layout, the number of iterations, and the KL divergence of each 50th, zeros for the others.

Learning rates are four times those of :class:`acctsne.TSNE` for the same step.
"""

import struct
import sys
from collections.abc import Iterator
from itertools import pairwise
from math import inf, isfinite
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array, check_random_state

from acctsne.affinities.affinities import Affinities, form_of
from acctsne.files.errors import DataError
from acctsne.files.replacing import replacing
from acctsne.forces.output_kernel import LARGEST_DOF, LEAST_DOF
from acctsne.forces.repulsion import MOST_DIMENSIONS, RepulsionOptions
from acctsne.init.layouts import layout_from_affinities
from acctsne.optimize.optimizer import Observers, Optimizer
from acctsne.optimize.schedule import Phase, Ramp
from acctsne.runtime.threads import effective_threads

# The versions whose files are understood; the last one is what Seurat is told and then writes.
VERSIONS = ("1.1.0", "1.2.0", "1.2.1")
WITHOUT_STEP_NORM = ("1.1.0",)

# Wrappers run the program without arguments and read its version from this line: Seurat's the first
# one in it; its early releases and their copies want to see 1.1, and then write that.
GREETING = f"=============== t-SNE v{VERSIONS[-1]} =============== (reads = t-SNE v1.1, too)"

SIZES = {"n": "i", "d": "i", "theta": "d", "perplexity": "d"}
SETTINGS = {
    "no_dims": "i",
    "max_iter": "i",
    "stop_early_exag_iter": "i",
    "mom_switch_iter": "i",
    "momentum": "d",
    "final_momentum": "d",
    "learning_rate": "d",
    "max_step_norm": "d",
    "K": "i",
    "sigma": "d",
    "nbody_algo": "i",
    "knn_algo": "i",
    "early_exag_coeff": "d",
    "no_momentum_during_exag": "i",
    "n_trees": "i",
    "search_k": "i",
    "start_late_exag_iter": "i",
    "late_exag_coeff": "d",
    "nterms": "i",
    "intervals_per_integer": "d",
    "min_num_intervals": "i",
}
ENDING = {"seed": "i", "df": "d", "load_affinities": "i"}

BARNES_HUT = 1  # nbody_algo; 2 is the grid
# The output has a number for each.
MOST_ITERATIONS = 10_000_000
COST_EVERY = 50


class Request(NamedTuple):
    """What an input file asks for."""

    settings: dict[str, Any]
    perplexities: list[float]
    X: npt.NDArray[np.float64]
    init: npt.NDArray[np.float64] | None


class Result(NamedTuple):
    """What an output file holds."""

    Y: npt.NDArray[Any]
    costs: npt.NDArray[np.float64]


def main(arguments: list[str] | None = None) -> int:
    """Run as FIt-SNE's program does; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    print(GREETING, flush=True)
    if not 1 <= len(arguments) <= 4 or arguments[0] not in VERSIONS:
        note(f"usage: fast_tsne VERSION INPUT OUTPUT THREADS, with VERSION {', '.join(VERSIONS)}")
        return 2
    version, source, target, threads = (
        *arguments,
        *("", "data.dat", "result.dat", "0")[len(arguments) :],
    )
    try:
        request = read_request(Path(source), version)
        result = run(request, effective_threads(int(threads) if int(threads) > 0 else None))
        write_result(Path(target), result)
    except (ValueError, OSError, MemoryError) as error:
        note(f"error: {' '.join(str(error).split()) or type(error).__name__}")
        return 1
    except KeyboardInterrupt:
        note("interrupted")
        return 1
    return 0


def note(message: str) -> None:
    """Say something that is no result."""
    print(f"fast_tsne (acctsne): {message}", file=sys.stderr)


def read_request(path: Path, version: str) -> Request:
    """Read an input file."""
    layout = {
        name: kind
        for name, kind in SETTINGS.items()
        if name != "max_step_norm" or version not in WITHOUT_STEP_NORM
    }
    with open(path, "rb") as file:
        settings = {"max_step_norm": -1.0, **_fields(file, SIZES)}
        perplexities = [settings["perplexity"]]
        if settings["perplexity"] == 0:
            count = _fields(file, {"perplexity_list": "i"})["perplexity_list"]
            perplexities = _reals(file, (count,)).tolist()
        settings |= _fields(file, layout)
        X = _reals(file, (settings["n"], settings["d"]))
        settings |= _fields(file, ENDING)
        at_end = len(file.peek(1)) == 0
        init = None if at_end else _reals(file, (settings["n"], settings["no_dims"]))
    return Request(settings, perplexities, X, init)


def run(request: Request, threads: int) -> Result:
    """Embed what was asked for, as it was asked for."""
    _check(request)
    _say_what_is_ignored(request)
    settings = request.settings
    n, dimensions, iterations = (int(settings[key]) for key in ("n", "no_dims", "max_iter"))
    P = _affinities(request, threads)
    init = "random" if request.init is None else request.init
    random = check_random_state(settings["seed"] if settings["seed"] >= 0 else None)
    layout = layout_from_affinities(init, P, dimensions, random, threads)
    # More accurate at the same angle than FIt-SNE, which compares half as wide a cell.
    repulsion = RepulsionOptions(_method(settings), angle=settings["theta"], dof=settings["df"])
    optimizer = Optimizer(form_of(P), layout, repulsion, threads)
    costs = np.zeros(iterations)

    def keep_cost(iteration: int, kl: float, positions: npt.NDArray[Any]) -> None:
        costs[iteration] = kl
        note(f"iteration {iteration + 1}, cost {kl:.4f}")

    observers = Observers([keep_cost], COST_EVERY)
    for phase in schedule(settings):  # FIt-SNE does not stop early
        optimizer.run(phase, observers=observers)
    costs[-1] = optimizer.kl()
    positions = optimizer.positions
    if not (np.isfinite(positions).all() and isfinite(costs[-1])):
        raise DataError("the result is not finite; try a smaller learning rate")
    note(f"{n} points, {dimensions} dimensions, KL divergence {costs[-1]:.4f}")
    return Result(positions, costs)


def schedule(settings: dict[str, Any]) -> Iterator[Phase]:
    """Cut the iterations where exaggeration or momentum changes.

    Both exaggerations hold where they overlap, and the early one for ever if its end is negative,
    as in FIt-SNE.
    """
    end = settings["max_iter"]
    early_end, late_start = settings["stop_early_exag_iter"], settings["start_late_exag_iter"]
    early_end = end if early_end < 0 else early_end
    late_start = end if late_start < 0 or settings["late_exag_coeff"] <= 0 else late_start
    switch = settings["mom_switch_iter"]
    cuts = sorted({0, end, *(cut for cut in (early_end, late_start, switch) if 0 < cut < end)})
    for start, stop in pairwise(cuts):
        early = settings["early_exag_coeff"] if start < early_end else 1.0
        late = settings["late_exag_coeff"] if start >= late_start else 1.0
        yield Phase(
            name=f"from {start}",
            end=stop,
            exaggeration=Ramp.constant(early * late),
            learning_rate=Ramp.constant(settings["learning_rate"] / 4),
            momentum=settings["momentum"] if start < switch else settings["final_momentum"],
            max_step=settings["max_step_norm"] if settings["max_step_norm"] > 0 else inf,
            rule="delta_bar_delta",
        )


def write_result(path: Path, result: Result) -> None:
    """Write an output file."""
    with replacing(path) as beside, open(beside, "wb") as file:
        file.write(struct.pack("=ii", *result.Y.shape))
        file.write(result.Y.astype(np.float64).tobytes())
        file.write(struct.pack("=i", len(result.costs)))
        file.write(result.costs.tobytes())


def _fields(file: BinaryIO, layout: dict[str, str]) -> dict[str, Any]:
    form = "=" + "".join(layout.values())
    content = file.read(struct.calcsize(form))
    if len(content) < struct.calcsize(form):
        raise DataError(f"{file.name}: the file ends before {', '.join(layout)}")
    return dict(zip(layout, struct.unpack(form, content), strict=True))


def _reals(file: BinaryIO, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    if min(shape) < 1:
        raise DataError(f"{file.name}: an array of shape {shape}")
    count = int(np.prod(shape, dtype=np.int64))
    left = Path(file.name).stat().st_size - file.tell()
    if left < 8 * count:
        raise DataError(f"{file.name}: {left} bytes left for an array of shape {shape}")
    return np.frombuffer(file.read(8 * count)).reshape(shape)


def _check(request: Request) -> None:
    settings = request.settings
    n, dimensions = settings["n"], settings["no_dims"]
    limit = MOST_DIMENSIONS.get(_method(settings), dimensions)
    if not 1 <= dimensions <= limit:
        raise DataError(
            f"no_dims is {dimensions}; it must be at least 1, and at most "
            f"{MOST_DIMENSIONS['fft']} with the grid and {MOST_DIMENSIONS['barnes_hut']} with "
            "nbody_algo 1, the tree; there is no limit with theta 0"
        )
    if not 0 <= settings["theta"] <= 1:
        raise DataError(f"theta is {settings['theta']:g}; it must be between 0 and 1")
    if not 1 <= settings["max_iter"] <= MOST_ITERATIONS:
        raise DataError(
            f"max_iter is {settings['max_iter']}; it must be between 1 and {MOST_ITERATIONS}"
        )
    for name in ("momentum", "final_momentum"):
        if not 0 <= settings[name] < 1:
            raise DataError(f"{name} is {settings[name]:g}; it must be at least 0 and less than 1")
    if not 0 < settings["learning_rate"] < inf:
        raise DataError(
            f"learning_rate is {settings['learning_rate']:g}; it must be positive and finite"
        )
    for name in ("max_step_norm", "late_exag_coeff", "sigma", "perplexity"):
        if not isfinite(settings[name]):
            raise DataError(f"{name} is {settings[name]:g}; it must be a finite number")
    if not 0 < settings["early_exag_coeff"] < inf:
        raise DataError(
            f"early_exag_coeff is {settings['early_exag_coeff']:g}; it must be positive, 1 for none"
        )
    if not LEAST_DOF <= settings["df"] <= LARGEST_DOF:
        raise DataError(
            f"df is {settings['df']:g}; it must be between {LEAST_DOF:g} and {LARGEST_DOF:g}"
        )
    if _is_fixed_width(request):
        if settings["sigma"] <= 0 or not 1 <= settings["K"] < n:
            raise DataError(
                f"perplexity is negative, so sigma ({settings['sigma']:g}) must be positive and "
                f"K ({settings['K']}) between 1 and {n - 1}"
            )
    elif not min(request.perplexities) > 0 or 3 * max(request.perplexities) > n - 1:
        raise DataError(
            f"perplexity {max(request.perplexities):g}: it must be positive and at most "
            f"{(n - 1) / 3:g}, a third of the other points"
        )
    check_array(request.X, ensure_min_samples=2, input_name="X")
    if request.init is not None:
        check_array(request.init, input_name="the initial layout")


def _method(settings: dict[str, Any]) -> str:
    if settings["theta"] == 0:
        return "exact"
    return "barnes_hut" if settings["nbody_algo"] == BARNES_HUT else "fft"


def _say_what_is_ignored(request: Request) -> None:
    settings = request.settings
    note("neighbours are exact: knn_algo, n_trees and search_k are ignored")
    if _method(settings) == "fft":
        note(
            "the grid is made for a force error of 2 %: theta, nterms, intervals_per_integer and "
            "min_num_intervals are ignored"
        )
    if settings["no_momentum_during_exag"]:
        note("no_momentum_during_exag is ignored")
    if settings["load_affinities"]:
        note("load_affinities is ignored: affinities are computed, and not saved")
    if not _is_fixed_width(request) and (settings["K"] > 0 or settings["sigma"] > 0):
        note("K and sigma are ignored: there is a perplexity")


def _is_fixed_width(request: Request) -> bool:
    return bool(request.settings["perplexity"] < 0)


def _affinities(request: Request, threads: int) -> Affinities:
    settings, perplexities = request.settings, request.perplexities
    if _is_fixed_width(request):
        kind: dict[str, Any] = {"kind": "fixed", "bandwidth": settings["sigma"]}
    elif len(perplexities) > 1:
        kind = {"kind": "multiscale", "perplexity": perplexities}
    else:
        kind = {"perplexity": perplexities[0]}
    if settings["theta"] == 0:
        k = settings["n"] - 1
    else:
        k = settings["K"] if _is_fixed_width(request) else int(3 * max(perplexities))
    return Affinities.from_data(request.X, n_neighbors=k, neighbors="exact", n_jobs=threads, **kind)
