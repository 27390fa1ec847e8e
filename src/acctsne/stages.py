"""The stages of a fit between its checks and the descent: of a Problem, whoever set it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from acctsne.affinities.affinities import Affinities, form_of, joint_probabilities
from acctsne.affinities.similarity import Similarity
from acctsne.init.layouts import finished, layout_from_affinities, separate_coincident
from acctsne.neighbors.frame import Frame
from acctsne.neighbors.given import graph_neighbors, squared
from acctsne.neighbors.nearest import find_all_pairs, find_neighbors
from acctsne.neighbors.principal_components import principal_components
from acctsne.neighbors.records import Neighbors
from acctsne.optimize.descent import Descent
from acctsne.optimize.optimizer import Optimizer
from acctsne.problem import Problem, Samples
from acctsne.runtime.progress import busy, logger
from acctsne.runtime.timer import StageTimer


class Stages:
    """As one process does them, the stages of a fit that several processes do otherwise."""

    def neighbors(self, problem: Problem, samples: Samples) -> Neighbors:
        """Find the nearest neighbours of all samples."""
        search = samples.search
        if samples.precomputed:
            # A Gaussian over no more neighbours than the perplexity could only be flat.
            least = min(search.n_neighbors, int(np.ceil(max(samples.similarity.perplexities))) + 1)
            return squared(graph_neighbors(samples.X, search.n_neighbors, least), search.dtype)
        find = find_all_pairs if problem.repulsion.method == "exact" else find_neighbors
        return find(samples.X, search)

    def tell_missed(
        self, similarity: Similarity, missed: int, n_rows: int, n_neighbors: int
    ) -> None:
        """Say how many of these rows cannot reach the perplexity."""
        similarity.tell_missed(missed, n_rows, n_neighbors)

    def initial_layout(
        self, problem: Problem, P: Affinities, found: Neighbors | None
    ) -> npt.NDArray[Any]:
        """Make the layout that the problem asks for, with no two points in the same place."""
        init, given = problem.init, problem.given
        if isinstance(init, np.ndarray):
            return separate_coincident(init, problem.fixed, problem.threads)
        if init == "pca" and isinstance(given, Samples):
            components = found.components if found else None
            if components is None:
                components = principal_components(given.X, problem.n_components, problem.threads)
            return finished(components, problem.dtype, problem.threads)
        random = check_random_state(problem.random_state)
        return layout_from_affinities(init, P, problem.n_components, random, problem.threads)

    def optimizer(self, problem: Problem, P: Affinities, layout: npt.NDArray[Any]) -> Optimizer:
        """Make the optimiser of the layout."""
        return Optimizer(form_of(P), layout, problem.repulsion, problem.threads)


BY_ONE_PROCESS = Stages()


def affinities_and_layout(
    problem: Problem, timer: StageTimer, stages: Stages = BY_ONE_PROCESS
) -> tuple[Affinities, npt.NDArray[Any], Neighbors | None]:
    """Find neighbours, unless affinities are given, affinities and the initial layout."""
    given = problem.given
    found: Neighbors | None = None
    if isinstance(given, Affinities):
        P = given
    else:
        with timer.stage("knn"):
            found = stages.neighbors(problem, given)
        with busy("affinities", problem.verbose):
            P = joint_probabilities(
                found, given.similarity, problem.threads, timer, stages.tell_missed
            )
    logger.info(
        "affinities in %.2f s (neighbours %.2f s)",
        timer.total(),
        timer.seconds.get("knn", 0.0),
    )
    with busy("initial layout", problem.verbose), timer.stage("init"):
        layout = stages.initial_layout(problem, P, found)
    return P, layout, found


def start(
    problem: Problem,
    timer: StageTimer,
    stages: Stages = BY_ONE_PROCESS,
    keep: Callable[[Affinities], None] | None = None,
) -> tuple[Descent, Frame | None]:
    """Go through all stages; returns the descent and the frame of the search, if it had one.

    `keep` is handed the affinities, which are let go otherwise.
    """
    P, layout, found = affinities_and_layout(problem, timer, stages)
    if keep is not None:
        keep(P)
    with busy("optimiser", problem.verbose), timer.stage("symmetrize"):
        optimizer = stages.optimizer(problem, P, layout)
    recall, frame = (found.recall, found.frame) if found else (1.0, None)
    # Before the optimiser makes its own form of P anew, which takes as much memory.
    del P, found
    return Descent(optimizer, recall, optimizer.kind_of_start(), optimizer.is_flat()), frame
