"""Several maps through their schedules at once, tied where they share points."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acctsne.embedding.ties import Ties
from acctsne.optimize.optimizer import Optimizer
from acctsne.optimize.schedule import LOOK_EVERY, Phase
from acctsne.optimize.stopping import StoppingRules, Watch, log_end
from acctsne.runtime.progress import Progress

# The least strength at the beginning of early exaggeration, from where it fades. Clusters find
# their places then, and maps that disagree about them are torn by tethers later on
# (docs/aligned.md has figures).
EARLY_STRENGTH = 1.0


@dataclass
class JointDescent:
    """Maps that take every iteration together.

    Each is drawn to where its partners were before the iteration, so that the order in which they
    move does not show.
    """

    optimizers: Sequence[Optimizer]
    schedules: Sequence[Sequence[Phase]]  # one a map, all of the same length in iterations
    ties: Ties
    strength: float

    def run(self, stopping: StoppingRules, progress: Progress = None) -> None:
        """Go to the end of the schedules, or until all KL divergences hardly fall."""
        end = max(phase.end for phase in self.schedules[0])
        watches = [Watch(stopping, one.kl_of_one_place) for one in self.optimizers]
        for iteration in range(end):
            phases = [self._phase(at, iteration) for at in range(len(self.optimizers))]
            if self.strength > 0:
                self._tether(iteration)
            for optimizer, phase in zip(self.optimizers, phases, strict=True):
                optimizer.step(phase)
            if progress is not None:
                progress(iteration + 1)
            if not all(phase.look_every for phase in phases) or (iteration + 1) % LOOK_EVERY:
                continue
            # Every watch looks, whatever the others say.
            reasons = [
                watch.reason_to_end(iteration, optimizer.kl(), np.inf)
                for watch, optimizer in zip(watches, self.optimizers, strict=True)
            ]
            if all(reasons):
                log_end(iteration + 1, "KL divergences hardly fall")
                return
        log_end(end, "max_iter")

    def _phase(self, at: int, iteration: int) -> Phase:
        return next(phase for phase in self.schedules[at] if iteration < phase.end)

    def _strength(self, iteration: int) -> float:
        early = max(schedule[0].end for schedule in self.schedules)
        return (
            max(self.strength, EARLY_STRENGTH * (1 - iteration / early)) if early else self.strength
        )

    def _tether(self, iteration: int) -> None:
        strength = self._strength(iteration)
        layouts = [optimizer.positions for optimizer in self.optimizers]
        targets = self.ties.targets(layouts)
        for optimizer, target, count in zip(
            self.optimizers, targets, self.ties.partners, strict=True
        ):
            weights = (strength * count).astype(target.dtype)
            optimizer.tether(target, weights)
