"""Degrees of freedom: how the similarity of two points of the embedding falls off."""

from numbers import Real
from typing import Any, Literal, NamedTuple

from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)

Dof = float | Literal["sklearn"]

# In scikit-learn's form. From 1000 on the similarity is a Gaussian to a few parts in a thousand;
# below 0.001 hardly anything repels.
DOF_CONSTRAINTS: list[Any] = [Interval(Real, 1e-3, 1e3, closed="both"), StrOptions({"sklearn"})]


class Similarity(NamedTuple):
    """The parameters of (1 + d^2 / scale)^-exponent."""

    exponent: float
    scale: float


def similarity(dof: Dof, n_components: int) -> Similarity:
    """Return the similarity that checked degrees of freedom stand for.

    Examples
    --------
    >>> similarity(0.5, n_components=2)
    Similarity(exponent=0.5, scale=0.5)
    >>> similarity("sklearn", n_components=3)
    Similarity(exponent=1.5, scale=2.0)
    """
    if dof == "sklearn":
        # Student's t-distribution with one degree of freedom less than dimensions, one at least.
        student = float(max(n_components - 1, 1))
        return Similarity((student + 1) / 2, student)
    return Similarity(float(dof), float(dof))


def check_similarity(dof: Any, n_components: int, caller: str) -> Similarity:
    """Check degrees of freedom as scikit-learn checks an estimator's parameters."""
    validate_parameter_constraints({"dof": DOF_CONSTRAINTS}, {"dof": dof}, caller_name=caller)
    return similarity(dof, n_components)
