"""The stages of a fit that several processes do otherwise than one."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from acctsne import _core
from acctsne.affinities.affinities import Affinities, form_of
from acctsne.affinities.similarity import Similarity
from acctsne.distributed.neighbors import find_neighbors
from acctsne.distributed.optimizer import SharedOptimizer
from acctsne.distributed.processes import Processes
from acctsne.init.layouts import finished, random_layout, separate_coincident
from acctsne.neighbors.records import Neighbors
from acctsne.optimize.optimizer import Optimizer
from acctsne.problem import Problem, Samples
from acctsne.stages import Stages


class SharedStages(Stages):
    """Stages that all processes go through at once, each with its own rows."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    def neighbors(self, problem: Problem, samples: Samples) -> Neighbors:
        """Find the nearest neighbours of own rows."""
        return find_neighbors(samples.X, samples.search, self._processes)

    def tell_missed(
        self, similarity: Similarity, missed: int, n_rows: int, n_neighbors: int
    ) -> None:
        """Say on the first process how many rows of all cannot reach the perplexity."""
        missed = sum(self._processes.allgather(missed))
        n_rows = sum(self._processes.allgather(n_rows))
        with self._processes.agreeing():  # a warning may be an error
            if self._processes.rank == 0:
                similarity.tell_missed(missed, n_rows, n_neighbors)

    def initial_layout(
        self, problem: Problem, P: Affinities, found: Neighbors | None
    ) -> npt.NDArray[Any]:
        """Make the layout of all samples; the first process does, so that all have the same."""
        first = self._processes.rank == 0
        layout = None
        if isinstance(problem.init, np.ndarray):
            layout = separate_coincident(problem.init, threads=problem.threads) if first else None
        elif problem.init == "random":
            if first:
                shape = (problem.n_samples, problem.n_components)
                random = check_random_state(problem.random_state)
                layout = random_layout(shape, random, problem.dtype, problem.threads)
        else:
            assert isinstance(problem.given, Samples)
            components = found.components if found else None
            if components is None:
                # Of own rows, on the axes of all.
                components = _core.principal_components(
                    problem.given.X.own,
                    problem.n_components,
                    problem.threads,
                    n_samples=problem.n_samples,
                    processes=self._processes,
                )
            everything = self._processes.all_rows(components, problem.n_samples)
            layout = finished(everything, problem.dtype, problem.threads) if first else None
        return self._processes.bcast_array(layout)

    def optimizer(self, problem: Problem, P: Affinities, layout: npt.NDArray[Any]) -> Optimizer:
        """Make the optimiser of own points."""
        return SharedOptimizer(
            form_of(P), layout, problem.repulsion, problem.threads, self._processes
        )
