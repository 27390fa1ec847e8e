"""The native optimiser of one layout, and how a phase of the schedule is run on it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne import _core
from acctsne.affinities.forms import Conditional, Matrix
from acctsne.forces.engine import Engine
from acctsne.optimize.schedule import Phase
from acctsne.runtime.communicator import Communicator

# Called with iteration, KL divergence and gradient norm; True ends the phase.
Observer = Callable[[int, float, float], bool]


def make_optimizer(
    P: Conditional | Matrix,
    layout: npt.NDArray[Any],
    engine: Engine,
    threads: int,
    processes: Communicator | None = None,
) -> Any:
    """Make the native optimiser of a layout of P's precision.

    Of several processes each gives its own rows of P, and all of the layout.
    """
    kind: Any = _core.Optimizer64 if layout.dtype == np.float64 else _core.Optimizer32
    others = () if processes is None else (processes,)
    return kind(*P._fields(), layout, engine.native(layout.shape[1]), *others, threads)


def run_phase(
    optimizer: Any,
    phase: Phase,
    threads: int,
    *,
    report_every: Sequence[int] = (),
    observer: Observer | None = None,
    progress: Callable[[int], None] | None = None,
    most: int | None = None,
) -> bool:
    """Go on to the end of a phase, or by `most` iterations; returns whether it came so far."""
    remaining = max(phase.end - optimizer.iterations, 0)
    iterations = remaining if most is None else min(most, remaining)
    native = phase.native(
        iterations, optimizer.iterations, report_every, left=remaining - iterations
    )
    finished: bool = optimizer.run(native, observer, progress, threads)
    return finished
