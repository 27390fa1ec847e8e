"""How repulsive forces are computed: the methods there are, and what they can be told."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from acctsne import _core
from acctsne.compat.scikit_learn import Interval, StrOptions
from acctsne.forces.output_kernel import DOF_CONSTRAINTS, Dof, output_kernel

# How repulsive forces can be computed.
METHODS = tuple(_core.methods())

# Most dimensions of a map that the tree and the grid have; all pairs take any number.
MOST_DIMENSIONS = {name: most for name, most in _core.methods().items() if most > 0}

# What an estimator and an Embedding share, in scikit-learn's form.
REPULSION_CONSTRAINTS: dict[str, Any] = {
    "n_components": [Interval(Integral, 1, None, closed="left")],
    "method": [StrOptions(set(METHODS))],
    "angle": [Interval(Real, 0, 1, closed="both")],
    "force_error": [Interval(Real, 1e-4, 0.2, closed="both")],
    "dof": DOF_CONSTRAINTS,
    "n_jobs": [None, Integral],
}


@dataclass(frozen=True)
class RepulsionOptions:
    """How repulsive forces are computed, of which similarity of the map's points."""

    method: str = "auto"
    angle: float = 0.5  # of Barnes-Hut
    force_error: float = 0.02  # what the grid aims at
    dof: Dof = 1.0

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> "RepulsionOptions":
        """Take from checked parameters what concerns the forces."""
        dof = parameters["dof"]
        return cls(
            method=str(parameters["method"]),
            angle=float(parameters["angle"]),
            force_error=float(parameters["force_error"]),
            dof=dof if dof == "sklearn" else float(dof),
        )

    def native(self, n_components: int) -> _core.RepulsionOptions:
        """Return the form that the native core takes, for a map of so many dimensions."""
        kernel = output_kernel(self.dof, n_components)
        return _core.RepulsionOptions(self.method, self.angle, self.force_error, kernel)


def check_method(method: str, n_components: int) -> None:
    """Check that the method works in so many dimensions."""
    limit = MOST_DIMENSIONS.get(method, n_components)
    if n_components > limit:
        raise ValueError(
            f"'n_components' should be inferior to {limit + 1} for method={method!r}; got "
            f"n_components={n_components}. Use method='auto', which takes what there is for so "
            "many, or method='exact', which has no limit"
        )
