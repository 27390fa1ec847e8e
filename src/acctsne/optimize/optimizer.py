"""The optimiser of one layout: the native one, and how phases of the schedule are run on it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import iscoroutine, isgenerator
from math import e, exp, gamma, pi
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne import _core
from acctsne.affinities.forms import Conditional, Matrix, field_values
from acctsne.forces.output_kernel import output_kernel
from acctsne.forces.repulsion import RepulsionOptions
from acctsne.optimize.schedule import BLURRED, CHECK_EVERY, TANGLED, Phase, Start
from acctsne.optimize.state import OptimizerState
from acctsne.optimize.stopping import Watch
from acctsne.runtime.communicator import Communicator
from acctsne.runtime.progress import Progress, logger

Callback = Callable[[int, float, npt.NDArray[Any]], bool | None]

# How often momentum may be lowered, and the steps of a mean point be shortened, in one iteration
# before the log calls it too often: hardly a map goes without (benchmarks/restraint.py,
# docs/tuning.md).
OFTEN_BRAKED = 1 / 3
OFTEN_TURNED = 1 / 16

# In fewer iterations than this, often means nothing.
FEWEST_ITERATIONS = 50


@dataclass(frozen=True)
class Observers:
    """Whoever is told while a phase runs, and how often: every so many iterations."""

    callbacks: Sequence[Callback] = ()  # one that returns True ends the phase
    callback_every: int = CHECK_EVERY
    keep: Callable[[], None] | None = None  # not called where the phase ends
    keep_every: int = CHECK_EVERY
    log: bool = False
    progress: Progress = None  # of the iterations done so far, now and then


NOBODY = Observers()


def _wants_to_stop(answer: Any) -> bool:
    """Read what a callback returns."""
    if iscoroutine(answer) or isgenerator(answer):
        # Neither has run by now, and both would count as true.
        answer.close()
        raise TypeError(
            f"a callback returned a {type(answer).__name__}, which nobody runs; give a function "
            "without async, await and yield"
        )
    try:
        return bool(answer)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"a callback returned {type(answer).__name__}, which is neither true nor false "
            f"({error}); it must return True to end the fit, or nothing"
        ) from error


def layout_memory(n_samples: int, n_components: int, dtype: np.dtype[Any]) -> int:
    """Return the bytes of positions, steps, gains, preconditioner and two forces."""
    return 6 * n_samples * n_components * dtype.itemsize


# Least difference of the mean drops of two numbers of dimensions by which data are told apart.
TOLD_APART = 0.15


def mean_drop(dimensions: int, perplexity: float) -> float:
    """Tell how far log p falls below the largest of its row, on average, in uniform data.

    With p = exp(-beta r^2), the mean of beta r^2 is half the number of dimensions. The nearest
    neighbour, which has the largest p, lies within a ball that holds one point on average; the
    number of points in one of radius beta^(-1/2) follows from the perplexity.
    """
    ball: float = pi ** (dimensions / 2) / gamma(dimensions / 2 + 1)
    nearest: float = pi * e * gamma(1 + 2 / dimensions) * (ball * perplexity) ** (-2 / dimensions)
    return dimensions / 2 - nearest


class Optimizer:
    """A layout that is being optimised, with all that this needs but the schedule.

    P is read once and not kept. Of several processes each gives its own rows of P, and all of the
    layout, which is of P's precision.
    """

    def __init__(
        self,
        P: Conditional | Matrix,
        layout: npt.NDArray[Any],
        repulsion: RepulsionOptions,
        threads: int,
        processes: Communicator | None = None,
    ) -> None:
        self.repulsion = repulsion
        self.threads = threads
        self._n_samples, self._dims = layout.shape
        kind: Any = _core.Optimizer64 if layout.dtype == np.float64 else _core.Optimizer32
        others = () if processes is None else (processes,)
        self._native: _core.Optimizer32 | _core.Optimizer64 = kind(
            *field_values(P), layout, repulsion.native(layout.shape[1]), *others, threads
        )

    @property
    def positions(self) -> npt.NDArray[Any]:
        """The present layout: a copy, one row a sample."""
        return self._native.points

    @property
    def output_kernel(self) -> _core.OutputKernel:
        """How the similarity of two points of the map falls off."""
        return output_kernel(self.repulsion.dof, self._dims)

    @property
    def n_iter(self) -> int:
        """Iterations done so far."""
        return self._native.iterations

    @property
    def timings(self) -> dict[str, float]:
        """Seconds by step, and iterations by method."""
        by_method = self._native.iterations_by_method
        return {
            **self._native.seconds,
            **{f"iterations_{method}": count for method, count in by_method.items()},
        }

    def kl(self) -> float:
        """Compute the KL divergence of the present layout, with the method's own Z."""
        return self._native.kl_divergence(self.threads)

    @property
    def kl_of_one_place(self) -> float:
        """The KL divergence of a map with all points in one place, which says nothing."""
        return self._native.kl_of_one_place

    def disorder(self) -> float:
        """Tell how far apart neighbours are: 0 in one place, about 1 where all is at random."""
        return self._native.disorder(self.threads)

    def kind_of_start(self) -> Start:
        """Tell how much the present layout knows of the data."""
        disorder = self.disorder()
        # P has as many pairs as would be equally likely by its entropy: this part of all pairs. In
        # a map that shows them perfectly, they fill as large a part of its area.
        faithful = exp(-self.kl_of_one_place * 2 / self._dims)
        if disorder > TANGLED:
            return "tangled"
        return "blurred" if disorder > BLURRED * faithful else "clear"

    def is_flat(self) -> bool:
        """Say whether the data seem to have no more dimensions than the map.

        In how many they lie shows in how far log p falls below the largest of its row.
        """
        perplexity = (self._n_samples - 1) * exp(-self.kl_of_one_place)
        usual, more = (mean_drop(d, perplexity) for d in (self._dims, self._dims + 1))
        # Few neighbours fall off alike in any number of dimensions; equal ones tell nothing.
        told = more - usual > TOLD_APART
        return told and mean_drop(1, perplexity) / 2 < self._native.mean_drop < (usual + more) / 2

    def state(self) -> OptimizerState:
        """Return all that is needed to go on later."""
        return self._native.state()

    def restore(self, state: OptimizerState) -> None:
        """Go on from the state of an optimiser of the same P."""
        self._native.restore(state)

    def reset_momentum(self) -> None:
        """Forget momentum and gains."""
        self._native.reset_momentum()

    def widen(self, spread: float) -> None:
        """Scale a layout to this root mean square distance from its mean, unless it is wider.

        One that has points held stays as it is.
        """
        self._native.widen(spread, self.threads)

    def hold(self, fixed: npt.NDArray[np.uint8] | None) -> None:
        """Hold the points where `fixed` is not 0, and let go of all others."""
        self._native.hold(fixed)

    def tether(self, targets: npt.NDArray[Any], weights: npt.NDArray[Any]) -> None:
        """Draw every point to a target of its own, with so much weight."""
        self._native.tether(targets, weights)

    def step(self, phase: Phase) -> None:
        """Do one iteration of a phase."""
        left = max(phase.end - self.n_iter - 1, 0)
        self._native.run(phase.native(1, self.n_iter, left=left), None, None, self.threads)

    def run(self, phase: Phase, watch: Watch | None = None, observers: Observers = NOBODY) -> str:
        """Go on to the end of a phase; returns why it ended before, or nothing."""
        log_every = CHECK_EVERY if observers.log else 0
        callback_every = observers.callback_every if observers.callbacks else 0
        look_every = phase.look_every if watch else 0
        keep_every = observers.keep_every if observers.keep else 0
        reason = ""
        if watch:
            watch.kl_of_one_place = self.kl_of_one_place

        def on_report(iteration: int, kl: float, gradient_norm: float) -> bool:
            nonlocal reason

            def due(every: int) -> bool:
                return every > 0 and (iteration + 1) % every == 0

            if due(log_every):
                logger.info(
                    "%s, iteration %d: KL divergence %.4f, gradient norm %.3g",
                    phase.name,
                    iteration + 1,
                    kl,
                    gradient_norm,
                )
            if due(callback_every):
                # Each one is called, whatever the others say, with a copy of its own.
                answers = [
                    _wants_to_stop(one(iteration, kl, self.positions))
                    for one in observers.callbacks
                ]
                reason = "callback" if any(answers) else ""
            if watch and due(look_every):
                reason = reason or watch.reason_to_end(iteration, kl, gradient_norm)
            if observers.keep and due(keep_every) and not reason:
                observers.keep()
            return bool(reason)

        native = phase.native(
            max(phase.end - self.n_iter, 0),
            self.n_iter,
            report_every=[n for n in (log_every, callback_every, look_every, keep_every) if n],
        )
        finished = self._native.run(native, on_report, observers.progress, self.threads)
        return "" if finished else reason

    @property
    def restraint(self) -> dict[str, float]:
        """What kept the descent from swinging or flying apart since it was last forgotten.

        In so many "iterations": those in which momentum was lowered, "braked"; how often the steps
        of a mean point were shortened, "turned"; and the largest learning rate that was used in
        place of a larger one, "lowered_rate", 0 if none was.
        """
        seen = self._native.restraint
        return {**seen, "turned": seen["turned"] / self._native.rows}

    def forget_restraint(self) -> None:
        """Begin to count anew."""
        self._native.forget_restraint()

    def log_restraint(self) -> None:
        """Log what restrained the descent, and whether it had to more often than in most."""
        seen = self.restraint
        if seen["lowered_rate"] > 0:
            logger.info(
                "learning rate lowered to n_samples / exaggeration, at most %.4g: no map follows "
                "longer steps",
                seen["lowered_rate"],
            )
        n_iter = seen["iterations"]
        often = seen["braked"] > OFTEN_BRAKED * n_iter or seen["turned"] > OFTEN_TURNED * n_iter
        logger.info(
            "%sless momentum in %d of %d iterations, shorter steps %.3g times a point",
            "steps too large: " if often and n_iter >= FEWEST_ITERATIONS else "",
            seen["braked"],
            n_iter,
            seen["turned"],
        )
