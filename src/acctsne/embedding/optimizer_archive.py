"""An unfinished optimisation in a file: affinities, how forces are computed, and the state."""

from dataclasses import asdict
from typing import Any

import numpy.typing as npt

from acctsne.affinities.affinities import (
    Affinities,
    arrays_and_settings,
    form_of,
    read_affinities,
)
from acctsne.compat.scikit_learn import validate_parameter_constraints
from acctsne.files.archive import Contents
from acctsne.forces.repulsion import REPULSION_CONSTRAINTS, RepulsionOptions, check_method
from acctsne.optimize.optimizer import Optimizer
from acctsne.optimize.state import read_state, split_state


def settings_and_arrays(
    affinities: Affinities, optimizer: Optimizer
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return what JSON can hold, and the arrays."""
    scalars, state = split_state(optimizer.state())
    arrays, described = arrays_and_settings(affinities)
    settings = {"embedding": asdict(optimizer.repulsion), "state": scalars, "affinities": described}
    return settings, {**state, **arrays}


def read_optimizer(contents: Contents, threads: int) -> tuple[Affinities, Optimizer]:
    """Put together what `settings_and_arrays` took apart; ValueError if it is damaged."""
    affinities = read_affinities(contents.part("affinities"), threads)
    state = read_state(contents.part("state"), affinities.n_samples, affinities.dtype)
    repulsion = read_repulsion(contents, state["points"].shape[1])
    optimizer = Optimizer(form_of(affinities), state["points"], repulsion, threads)
    optimizer.restore(state)
    return affinities, optimizer


def read_repulsion(contents: Contents, n_components: int) -> RepulsionOptions:
    """Take from a file how forces are computed; ValueError if that cannot be."""
    given = contents.part("embedding").settings
    options = {**given, "n_components": n_components, "n_jobs": None}
    validate_parameter_constraints(REPULSION_CONSTRAINTS, options, caller_name="Embedding")
    missing = {"method", "angle", "force_error", "dof"} - set(given)
    if missing:
        raise ValueError(f"it has no {sorted(missing)[0]}")
    check_method(given["method"], n_components)
    return RepulsionOptions.of(given)
