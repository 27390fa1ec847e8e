"""When the gradient descent ends before its time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Any

from acctsne.runtime.progress import logger

# The defaults of TSNE; the last two are scikit-learn's.
TOL = 0.005
PATIENCE = 300
MIN_GRAD_NORM = 1e-7

# Why a phase ends that moves its points hardly any more.
SMALL_GRADIENT = "small gradient"

# Looks that a change is measured over: one alone may meet a moment at which friction holds the map.
LOOKS = 2

# Maps that show nearly all, as of curves, sheets and small data, have gained many times the KL
# divergence that is left, and a small part of the one is a large part of the other. So a change
# counts against at most so many times what is left (benchmarks/descent.py --hostile,
# docs/tuning.md). A map of flat data, of no more dimensions than the map, may lie still for a while
# before its next part unrolls: there is farther to go than the last change tells.
TIMES_LEFT = 3.0
TIMES_LEFT_OF_FLAT = 0.5


@dataclass(frozen=True)
class StoppingRules:
    """By what a phase ends before its time; those that are not given never end one."""

    tol: float = 0.0  # smallest change of KL over LOOKS looks, as a part of what was gained
    min_grad_norm: float = -inf  # the gradient's norm must stay above
    patience: float = inf  # iterations without a smaller KL

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> "StoppingRules":
        """Take the rules from the parameters of an estimator."""
        fast = parameters["schedule"] == "fast"
        tol = parameters["tol"]
        if tol == "auto":
            tol = TOL if fast else 0.0
        min_grad_norm = float(parameters["min_grad_norm"])
        patience = float(max(parameters["n_iter_without_progress"], 0))
        if fast and patience == PATIENCE:
            # The default. tol tells when a map is done; points that were thrown far may take longer
            # than scikit-learn's patience to come back.
            patience = inf
        if fast and tol == 0 and min_grad_norm == MIN_GRAD_NORM:
            # Whoever wants all iterations has not asked for a default.
            min_grad_norm = -inf
        return cls(float(tol), min_grad_norm, patience)

    def between_phases(self) -> "StoppingRules":
        """Leave the rule by which a phase gives way to the next.

        It is scikit-learn's, for early exaggeration: of data alike in all directions that may draw
        all points into one place, where they would stay for good.
        """
        return StoppingRules(min_grad_norm=self.min_grad_norm)


@dataclass
class Watch:
    """Looks at one phase now and then and says when its rules end it.

    What it has seen is kept beside an unfinished fit, which goes on with the same watch.
    """

    rules: StoppingRules
    kl_of_one_place: float = inf  # from which on gains are counted
    flat: bool = False  # the data have no more dimensions than the map
    kls: Sequence[float] = field(default_factory=list)  # the last few, the oldest first
    best_kl: float = inf
    best_iteration: int = 0

    def reason_to_end(self, iteration: int, kl: float, gradient_norm: float) -> str:
        """Take a look; returns why the phase should end, or nothing."""
        self.kls = [*self.kls, kl][-LOOKS - 1 :]
        if kl < self.best_kl:
            self.best_kl, self.best_iteration = kl, iteration
        elif iteration - self.best_iteration > self.rules.patience:
            return "no progress"
        if gradient_norm <= self.rules.min_grad_norm:
            return SMALL_GRADIENT
        return "KL divergence hardly falls" if self._hardly_falls() else ""

    def _hardly_falls(self) -> bool:
        if self.rules.tol <= 0 or len(self.kls) <= LOOKS:
            return False
        # Momentum may carry a map past its goal. It then comes back, and has farther to go than the
        # first and the last look tell: ups count like downs.
        change = sum(abs(later - earlier) for earlier, later in pairwise(self.kls))
        left = self.kls[-1]
        times = TIMES_LEFT_OF_FLAT if self.flat else TIMES_LEFT
        return change < self.rules.tol * min(self.kl_of_one_place - left, times * left)


def log_end(n_iter: int, reason: str) -> None:
    """Tell why a descent ended: a rule, a callback, or the number of iterations asked for."""
    logger.info("ended after %d iterations: %s", n_iter, reason)
