"""The gradient descent through all its phases."""

from collections.abc import Sequence
from dataclasses import dataclass

from acctsne.optimize.optimizer import NOBODY, Observers, Optimizer
from acctsne.optimize.schedule import Phase, Start
from acctsne.optimize.stopping import SMALL_GRADIENT, StoppingRules, Watch
from acctsne.runtime.progress import logger


@dataclass
class Descent:
    """A layout on its way through a schedule: all that is needed to go on later."""

    optimizer: Optimizer
    recall: float = 1.0  # the part of the nearest neighbours that its affinities know
    start: Start = "clear"  # how much the layout that it started from knows of the data
    flat: bool = False  # the data have no more dimensions than the map
    phase: int = 0  # index into the schedule
    watch: Watch | None = None  # over the present phase; None before it begins, or without rules

    def run(
        self,
        schedule: Sequence[Phase],
        stopping: StoppingRules | None = None,
        observers: Observers = NOBODY,
    ) -> str:
        """Go on to the end of the schedule, or until a rule or a callback says stop.

        Returns why it ended before its time, or nothing.
        """
        begun = self.watch is not None
        self.optimizer.forget_restraint()
        while self.phase < len(schedule):
            phase = schedule[self.phase]
            last = self.phase + 1 == len(schedule)
            if not begun:
                rules = stopping if last or not stopping else stopping.between_phases()
                self.watch = Watch(rules, flat=self.flat) if rules else None
                if phase.reset_momentum:
                    self.optimizer.reset_momentum()
                if phase.spread:
                    self.optimizer.widen(phase.spread)
            ended = self.optimizer.run(phase, self.watch, observers)
            if ended and (last or ended != SMALL_GRADIENT):
                return ended
            if ended:
                logger.info(
                    "%s ended after %d iterations: %s", phase.name, self.optimizer.n_iter, ended
                )
            self.phase += 1
            self.watch = None
            begun = False
        return ""
