"""The phases of the gradient descent: how long, how fast, how much exaggeration, when to stop.

Learning rates are in scikit-learn's unit, in which the gradient carries its factor 4; they are a
quarter of those of openTSNE and FIt-SNE for the same step.
"""

from collections.abc import Sequence
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

# Iterations between looks at the KL divergence, for the stopping rules and the log.
CHECK_EVERY = 50

# Likewise while the end of early exaggeration is sought.
SEEK_EVERY = 10

# Early exaggeration whose end is sought lasts at most so long.
SEEK_AT_MOST = 500

# Iterations of scikit-learn's early exaggeration.
SKLEARN_EARLY = 250

PerPhase = float | Sequence[float] | Literal["auto"]


@dataclass(frozen=True)
class Phase:
    """A run of iterations with constant settings."""

    name: str
    end: int  # the iteration, counted over all phases, that it ends before
    exaggeration: float
    learning_rate: float
    momentum: float
    max_step: float
    restart: bool = False  # forget momentum and gains before it
    may_stop: bool = False  # the stopping rules apply
    seek_end: bool = False  # ends as soon as the KL divergence falls less fast than it did

    @property
    def look_every(self) -> int:
        """Iterations between looks at the KL divergence, 0 for never."""
        return SEEK_EVERY if self.seek_end else CHECK_EVERY if self.may_stop else 0


def make_schedule(
    kind: Literal["fast", "sklearn"],
    n_samples: int,
    max_iter: int,
    early_exaggeration: float,
    early_exaggeration_iter: int | Literal["auto"],
    learning_rate: PerPhase = "auto",
    momentum: PerPhase = "auto",
    max_step: float | Literal["auto"] = "auto",
    late_exaggeration: float = 1.0,
    late_exaggeration_start: int | None = None,
) -> list[Phase]:
    """Lay out the phases.

    "fast" takes a learning rate of N / exaggeration / 4 in each phase, so 12 times larger after
    early exaggeration, with momentum 0.8 throughout and steps clipped (openTSNE's rule); it ends
    early exaggeration as soon as the KL divergence falls less fast than it did. "sklearn" does what
    scikit-learn does: one learning rate N / early_exaggeration / 4, momentum 0.5 then 0.8, a
    restart in between, after 250 iterations.

    Exact KL divergence after 1000 iterations of MNIST-70k and Fashion-MNIST (benchmarks/
    schedules.py): 2.741 and 2.534 with "fast", 2.784 and 2.570 with 250 iterations of early
    exaggeration, 2.835 and 2.625 with "sklearn".
    """
    fast = kind == "fast"
    seek = fast and early_exaggeration_iter == "auto"
    if early_exaggeration_iter == "auto":
        wanted = min(SEEK_AT_MOST, max_iter // 2) if fast else SKLEARN_EARLY
    else:
        wanted = early_exaggeration_iter
    early_end = min(wanted, max_iter)

    early_rate, main_rate = _per_phase(learning_rate)
    early_momentum, main_momentum = _per_phase(momentum)
    step = (MAX_STEP if fast else inf) if max_step == "auto" else float(max_step)

    def rate(given: float | None, exaggeration: float) -> float:
        if given is not None:
            return given
        return max(n_samples / exaggeration / 4, 0.0 if fast else SKLEARN_SMALLEST_RATE)

    def main_phase(name: str, end: int, exaggeration: float, restart: bool) -> Phase:
        return Phase(
            name=name,
            end=end,
            exaggeration=exaggeration,
            learning_rate=rate(main_rate, exaggeration if fast else early_exaggeration),
            momentum=0.8 if main_momentum is None else main_momentum,
            max_step=step,
            restart=restart,
            # With exaggeration it is not the KL divergence that falls.
            may_stop=end == max_iter and exaggeration == 1.0,
        )

    phases = [
        Phase(
            name="early exaggeration",
            end=early_end,
            exaggeration=float(early_exaggeration),
            learning_rate=rate(early_rate, early_exaggeration),
            momentum=(0.8 if fast else 0.5) if early_momentum is None else early_momentum,
            max_step=step,
            seek_end=seek,
        )
    ]
    late_start = max_iter if late_exaggeration == 1.0 else late_exaggeration_start
    if late_start is not None:
        # No iterations at all where early exaggeration lasts longer.
        phases.append(main_phase("embedding", late_start, 1.0, restart=not fast))
    if late_exaggeration != 1.0:
        restart = not fast and late_start is None
        phases.append(main_phase("late exaggeration", max_iter, float(late_exaggeration), restart))
    return phases


def _per_phase(value: PerPhase) -> tuple[float | None, float | None]:
    """Return the values of the early and of the later phases, None where automatic."""
    if value == "auto":
        return None, None
    if isinstance(value, Sequence):
        return float(value[0]), float(value[1])
    return float(value), float(value)
