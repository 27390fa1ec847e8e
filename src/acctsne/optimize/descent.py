"""The gradient descent through all its phases."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from acctsne.embedding.embedding import Embedding
from acctsne.optimize.schedule import Phase
from acctsne.optimize.stopping import Watch, log_end


@dataclass
class Descent:
    """An embedding on its way through a schedule: all that is needed to go on later."""

    embedding: Embedding
    recall: float  # the part of the nearest neighbours that its affinities know
    tangled: bool  # whether it started from a layout that knows nothing of the data
    phase: int = 0  # index into the schedule
    watch: Watch | None = None  # over the present phase; None before it begins

    def run(
        self,
        schedule: Sequence[Phase],
        rules: Watch,
        *,
        keep: Callable[["Descent"], None] | None = None,
        **how: Any,
    ) -> None:
        """Go on to the end of the schedule, or until a rule or a callback says stop.

        `keep` is handed the descent every `keep_every` iterations. It and `how` are as in
        Embedding._run.
        """
        self.embedding._forget_restraint()
        ended = ""
        while self.phase < len(schedule):
            phase = schedule[self.phase]
            if self.watch is None:
                self.watch = replace(rules)
                if phase.restart:
                    self.embedding._rest()
            ended = self.embedding._run(
                phase, watch=self.watch, keep=None if keep is None else lambda: keep(self), **how
            )
            if ended:
                break
            self.phase += 1
            self.watch = None
        log_end(self.embedding.n_iter, ended or "max_iter")
