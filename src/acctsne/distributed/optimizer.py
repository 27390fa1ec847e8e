"""A layout that several processes optimise: each its own points, with their rows of P."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from acctsne.affinities.forms import Conditional, Matrix
from acctsne.distributed.processes import Processes
from acctsne.forces.repulsion import RepulsionOptions
from acctsne.optimize.optimizer import NOBODY, Callback, Observers, Optimizer
from acctsne.optimize.schedule import Phase
from acctsne.optimize.state import OptimizerState
from acctsne.optimize.stopping import Watch


class SharedOptimizer(Optimizer):
    """An optimiser whose every method is called by all processes at once."""

    def __init__(
        self,
        own: Conditional | Matrix,
        layout: npt.NDArray[Any],
        repulsion: RepulsionOptions,
        threads: int,
        processes: Processes,
    ) -> None:
        super().__init__(own, layout, repulsion, threads, processes)
        self._processes = processes

    def restore(self, state: OptimizerState) -> None:
        """Go on from the state of own rows."""
        with self._processes.ending_together():
            try:
                super().restore(state)
            except ValueError as error:  # which the native core refuses on all processes alike
                self._processes.known_to_all(error)
                raise

    @property
    def timings(self) -> dict[str, float]:
        """Seconds by step, iterations by method, and bytes sent by what they were."""
        sent = self._native.bytes_sent
        return {
            **super().timings,
            **{f"{what}_bytes_sent": count for what, count in sent.items()},
        }

    def kl(self) -> float:
        """Return the KL divergence, as one process would."""
        with self._processes.ending_together():
            return super().kl()

    def run(self, phase: Phase, watch: Watch | None = None, observers: Observers = NOBODY) -> str:
        """Go on to the end of a phase, as one process would."""
        # All must help to compute what the first process logs.
        log = self._processes.bcast(observers.log)
        # An error that the others do not know of ends all here: whoever handles it would ask for
        # the positions, which the others do not wait to give.
        with (
            self._processes.ending_together(),
            self._processes.interrupted_together() as raise_if_interrupted,
        ):

            def poll(count: int) -> None:
                raise_if_interrupted()
                if observers.progress is not None:
                    observers.progress(count)

            return super().run(phase, watch, replace(observers, log=log, progress=poll))


class OnFirstProcess:
    """A callback that calls those of the first process, and tells the others what they said."""

    def __init__(self, callbacks: Sequence[Callback], processes: Processes) -> None:
        self._callbacks = callbacks
        self._processes = processes

    def __call__(self, iteration: int, kl: float, positions: npt.NDArray[Any]) -> bool:
        """Return whether one of them wants to stop; raise on all processes what one raises."""
        stop = False
        with self._processes.agreeing(BaseException):  # sys.exit() too
            if self._processes.rank == 0:
                with self._processes.awaited():
                    answers = [
                        callback(iteration, kl, positions.copy()) for callback in self._callbacks
                    ]
                stop = any(answers)
        return bool(self._processes.bcast(stop))
