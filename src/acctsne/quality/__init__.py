"""The referee: how good an embedding is, whoever made it.

Reported KL divergences of different packages are not comparable: each uses its own approximate sum
Z, some count self terms, some report exaggerated values. The figures here are exact and take
nothing from the optimiser: exact neighbours, all pairs, double precision. `report` says of every
point how well the map shows it; what it estimates from a sample comes with its error.
"""

from acctsne.quality.figures import (
    affinities,
    exact_kl,
    exact_z,
    force_error,
    label_agreement,
    neighbor_preservation,
)
from acctsne.quality.report import Report, report

__all__ = [
    "Report",
    "affinities",
    "exact_kl",
    "exact_z",
    "force_error",
    "label_agreement",
    "neighbor_preservation",
    "report",
]
