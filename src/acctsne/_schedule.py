"""The phases of the gradient descent: how long, how fast, how much exaggeration.

Learning rates are in scikit-learn's unit, in which the gradient carries its factor 4; they are a
quarter of those of openTSNE and FIt-SNE for the same step.
"""

from dataclasses import dataclass
from math import inf
from typing import Literal

# scikit-learn's floor of the automatic learning rate. The fast schedule has none: with its higher
# momentum 50 is too much for a few hundred points (digits, first 100: exact KL 0.17 to 0.21 over
# four seeds with it, 0.16 without).
SKLEARN_SMALLEST_RATE = 50.0

# Longest step of a point in one iteration, as in openTSNE and FIt-SNE: far above ordinary steps, it
# only keeps a runaway point from leaving the map.
MAX_STEP = 5.0


@dataclass(frozen=True)
class Phase:
    """A run of iterations with constant settings."""

    name: str
    iterations: int
    exaggeration: float
    learning_rate: float
    momentum: float
    max_step: float
    restart: bool  # forget momentum and gains before it
    may_stop: bool  # the stopping rules apply


def make_schedule(
    kind: Literal["fast", "sklearn"],
    n_samples: int,
    max_iter: int,
    early_exaggeration: float,
    early_exaggeration_iter: int,
    learning_rate: float | Literal["auto"],
) -> list[Phase]:
    """Lay out the phases.

    "fast" takes a learning rate of N / exaggeration / 4 in each phase, so 12 times larger after
    early exaggeration, with momentum 0.8 throughout and steps clipped (openTSNE's rule). "sklearn"
    does what scikit-learn does: one learning rate N / early_exaggeration / 4, momentum 0.5 then
    0.8, a restart in between.
    """
    early = min(early_exaggeration_iter, max_iter)
    fast = kind == "fast"

    def rate(exaggeration: float) -> float:
        if learning_rate != "auto":
            return float(learning_rate)
        return max(n_samples / exaggeration / 4, 0.0 if fast else SKLEARN_SMALLEST_RATE)

    phases = [
        Phase(
            name="early exaggeration",
            iterations=early,
            exaggeration=float(early_exaggeration),
            learning_rate=rate(early_exaggeration),
            momentum=0.8 if fast else 0.5,
            max_step=MAX_STEP if fast else inf,
            restart=False,
            may_stop=False,
        ),
        Phase(
            name="embedding",
            iterations=max_iter - early,
            exaggeration=1.0,
            learning_rate=rate(1.0 if fast else early_exaggeration),
            momentum=0.8,
            max_step=MAX_STEP if fast else inf,
            restart=not fast,
            may_stop=True,
        ),
    ]
    return phases
