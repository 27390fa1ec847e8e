"""A layout that several processes optimise: each its own points, with their rows of P."""

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from acctsne.affinities.affinities import Affinities
from acctsne.affinities.forms import Conditional, Matrix
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
        # They are not kept: edges move to the owners of their points, which takes as much memory.
        return cls._made(affinities._P, layout, engine, threads, processes)

    @classmethod
    def restored(
        cls,
        own: Conditional,
        engine: Engine,
        state: dict[str, Any],
        threads: int,
        processes: Processes,
    ) -> "SharedEmbedding":
        """Go on from the state of all rows, with the affinities of own rows."""
        embedding = cls._made(own, state["points"], engine, threads, processes)
        with processes.agreeing():
            embedding._optimizer.restore(state)
        return embedding

    @classmethod
    def _made(
        cls,
        own: Conditional | Matrix,
        layout: npt.NDArray[Any],
        engine: Engine,
        threads: int,
        processes: Processes,
    ) -> "SharedEmbedding":
        embedding = cls.__new__(cls)
        embedding._processes = processes
        embedding._engine = engine
        embedding._threads = threads
        embedding._optimizer = make_optimizer(own, layout, engine, threads, processes)
        return embedding

    _processes: Processes

    def _release_affinities(self) -> None:
        """Do nothing: they are not here."""

    @property
    def timings(self) -> dict[str, float]:
        """Seconds by step, iterations by method, and bytes sent by what they were."""
        sent = self._optimizer.bytes_sent
        return {
            **super().timings,
            **{f"{what}_bytes_sent": count for what, count in sent.items()},
        }

    def kl(self, exact: bool = False) -> float:
        """Return the KL divergence, as one process would."""
        with self._processes.ending_together():
            return super().kl(exact)

    def _run(self, *phase: Any, log: bool = False, **how: Any) -> str:
        # What the first process logs, all must help to compute.
        log = self._processes.bcast(log)
        progress = how.pop("progress", None)
        # An error that the others do not know of ends all here: whoever handles it would ask for
        # the positions, which the others do not wait to give.
        with (
            self._processes.ending_together(),
            self._processes.interrupted_together() as raise_if_interrupted,
        ):

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
        with self._processes.agreeing(BaseException):  # sys.exit() too
            if self._processes.rank == 0:
                answers = [
                    callback(iteration, kl, positions.copy()) for callback in self._callbacks
                ]
                stop = any(answers)
        return bool(self._processes.bcast(stop))
