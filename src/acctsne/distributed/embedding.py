"""A layout that several processes optimise: each has all positions, and P of its own rows."""

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from acctsne.affinities.affinities import Affinities
from acctsne.distributed.processes import Processes
from acctsne.embedding.embedding import Callback, Embedding
from acctsne.forces.engine import Engine
from acctsne.optimize.optimizer import make_optimizer


class SharedEmbedding(Embedding):
    """An embedding whose every method is called by all processes at once."""

    @classmethod
    def of_processes(
        cls,
        affinities: Affinities,
        layout: npt.NDArray[Any],
        engine: Engine,
        threads: int,
        processes: Processes,
    ) -> "SharedEmbedding":
        """Take own rows of the affinities, and all of the layout."""
        embedding = cls.__new__(cls)
        embedding._processes = processes
        embedding._begin(affinities, layout, engine, threads)
        # Before edges move to the owners of their points, which takes as much memory.
        embedding._release_affinities()
        return embedding

    _processes: Processes

    def _begin(
        self, affinities: Affinities, layout: npt.NDArray[Any], engine: Engine, threads: int
    ) -> None:
        self.affinities = affinities
        self._engine = engine
        self._threads = threads
        self._optimizer = make_optimizer(affinities._P, layout, engine, threads, self._processes)

    def _release_affinities(self) -> None:
        self.__dict__.pop("affinities", None)

    def _run(self, *phase: Any, log: bool = False, **how: Any) -> str:
        # What the first process logs, all must help to compute.
        log = self._processes.bcast(log)
        progress = how.pop("progress", None)
        with self._processes.interrupted_together() as raise_if_interrupted:

            def poll(count: int) -> None:
                raise_if_interrupted()
                if progress is not None:
                    progress(count)

            return super()._run(*phase, log=log, progress=poll, **how)


class OnFirstProcess:
    """A callback that calls those of the first process, and tells the others what they said."""

    def __init__(self, callbacks: Sequence[Callback], processes: Processes) -> None:
        self._callbacks = callbacks
        self._processes = processes

    def __call__(self, iteration: int, kl: float, positions: npt.NDArray[Any]) -> bool:
        """Return whether one of them wants to stop; raise on all processes what one raises."""
        stop = False
        with self._processes.agreeing():
            if self._processes.rank == 0:
                answers = [
                    callback(iteration, kl, positions.copy()) for callback in self._callbacks
                ]
                stop = any(answers)
        return bool(self._processes.bcast(stop))
