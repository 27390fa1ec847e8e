"""Degrees of freedom: how the similarity of two points of the embedding falls off."""

from numbers import Real
from typing import Any, Literal

from acctsne import _core
from acctsne.compat.scikit_learn import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)

Dof = float | Literal["sklearn"]

# From the largest on the similarity is a Gaussian to a few parts in a thousand; below the least
# hardly anything repels.
LEAST_DOF, LARGEST_DOF = 1e-3, 1e3

# In scikit-learn's form.
DOF_CONSTRAINTS: list[Any] = [
    Interval(Real, LEAST_DOF, LARGEST_DOF, closed="both"),
    StrOptions({"sklearn"}),
]


def output_kernel(dof: Dof, n_components: int) -> _core.OutputKernel:
    """Return the similarity (1 + d^2 / scale)^-exponent that checked degrees of freedom mean.

    Examples
    --------
    >>> output_kernel(0.5, n_components=2)
    OutputKernel(exponent=0.5, scale=0.5)
    >>> output_kernel("sklearn", n_components=3)
    OutputKernel(exponent=1.5, scale=2.0)
    """
    if dof == "sklearn":
        # Student's t-distribution with one degree of freedom less than dimensions, one at least.
        student = float(max(n_components - 1, 1))
        return _core.OutputKernel((student + 1) / 2, student)
    return _core.OutputKernel(float(dof), float(dof))


def check_dof(dof: Any, n_components: int, caller: str) -> _core.OutputKernel:
    """Check degrees of freedom as scikit-learn checks an estimator's parameters."""
    validate_parameter_constraints({"dof": DOF_CONSTRAINTS}, {"dof": dof}, caller_name=caller)
    return output_kernel(dof, n_components)
