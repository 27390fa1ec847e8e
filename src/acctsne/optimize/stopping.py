"""When the gradient descent ends before its time."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

# The default of TSNE.
TOL = 0.005

# Looks that a fall is measured over: one alone may meet a moment at which friction holds the map.
LOOKS = 2


@dataclass
class Watch:
    """Looks at one phase now and then and says when to end it.

    The first four fields are the rules, the others what was seen so far: a watch that is kept
    beside an embedding goes on with it.
    """

    tol: float = 0.0  # smallest fall of KL over LOOKS looks, as a part of all that was gained
    min_grad_norm: float = -inf  # the gradient's norm must stay above
    patience: float = inf  # iterations without a smaller KL
    nothing: float = inf  # KL of a map that says nothing, from which on gains are counted
    kls: Sequence[float] = field(default_factory=list)  # the last few, the oldest first
    best_kl: float = inf
    best_iteration: int = 0

    def reason_to_end(self, iteration: int, kl: float, gradient_norm: float) -> str:
        """Take a look; returns why the phase should end, or nothing."""
        self.kls = [*self.kls, kl][-LOOKS - 1 :]
        if kl < self.best_kl:
            self.best_kl, self.best_iteration = kl, iteration
        elif iteration - self.best_iteration > self.patience:
            return "no progress"
        if gradient_norm <= self.min_grad_norm:
            return "small gradient"
        return "KL divergence hardly falls" if self._hardly_falls() else ""

    def _hardly_falls(self) -> bool:
        if self.tol <= 0 or len(self.kls) <= LOOKS:
            return False
        first, last = self.kls[0], self.kls[-1]
        return first - last < self.tol * (self.nothing - last)
