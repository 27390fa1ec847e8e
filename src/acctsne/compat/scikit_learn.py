"""scikit-learn's private names that acctsne depends on.

Known to work with scikit-learn 1.6 to 1.9; `make test-versions` runs the tests with the oldest and
the newest supported versions. A drop-in has to validate parameters with scikit-learn's own types,
or its tests for estimators fail.
"""

import sklearn.manifold
import sklearn.manifold._t_sne
from sklearn.base import _fit_context as fit_context
from sklearn.metrics.pairwise import _VALID_METRICS as VALID_METRICS
from sklearn.neighbors import NearestNeighbors
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    make_constraint,
    validate_parameter_constraints,
)
from sklearn.utils.validation import _get_feature_names as feature_names_of

__all__ = [
    "TSNE_MODULES",
    "VALID_METRICS",
    "Interval",
    "StrOptions",
    "compares_all_pairs",
    "feature_names_of",
    "fit_context",
    "make_constraint",
    "validate_parameter_constraints",
]

# Where scikit-learn's TSNE can be imported from.
TSNE_MODULES = (sklearn.manifold, sklearn.manifold._t_sne)


def compares_all_pairs(search: NearestNeighbors) -> bool:
    """Say whether a search that is fitted has no tree for its metric."""
    return bool(search._fit_method == "brute")
