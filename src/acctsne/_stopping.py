"""When a phase of the gradient descent ends before its time."""

from dataclasses import dataclass
from math import inf

from acctsne._schedule import Phase

# Looks in a row below the fastest fall that end a phase whose end is sought, lest noise end it.
SLOWER_LOOKS = 3

# A relative fall that counts there: before the map unfolds, the KL divergence creeps by less.
SMALLEST_FALL = 1e-3


@dataclass
class Watch:
    """Looks at one phase now and then and says when to end it.

    The first three fields are the rules, the others what was seen so far: a watch that is kept
    beside an embedding goes on with it.
    """

    tol: float = 0.0  # smallest fall of KL between two looks, as a part of KL
    min_grad_norm: float = -inf  # the gradient's norm must stay above
    patience: float = inf  # iterations without a smaller KL
    last_kl: float = inf
    best_kl: float = inf
    best_iteration: int = 0
    fastest_fall: float = 0.0
    slower_looks: int = 0

    def reason_to_end(self, phase: Phase, iteration: int, kl: float, gradient_norm: float) -> str:
        """Take a look; returns why the phase should end, or nothing."""
        last_kl, self.last_kl = self.last_kl, kl
        if phase.seek_end:
            return "slowing" if self._is_slowing(last_kl, kl) else ""
        if kl < self.best_kl:
            self.best_kl, self.best_iteration = kl, iteration
        elif iteration - self.best_iteration > self.patience:
            return "no_progress"
        if gradient_norm <= self.min_grad_norm:
            return "small_gradient"
        return "tol" if self.tol > 0 and last_kl - kl < self.tol * kl else ""

    def _is_slowing(self, last_kl: float, kl: float) -> bool:
        """Tell whether the relative fall of KL has passed its maximum.

        There the clusters have formed and early exaggeration has done its work (Belkina et al.
        2019, opt-SNE).
        """
        fall = (last_kl - kl) / last_kl if 0 < last_kl < inf else 0.0
        if fall > self.fastest_fall:
            self.fastest_fall = fall
            self.slower_looks = 0
        elif self.fastest_fall >= SMALLEST_FALL:
            self.slower_looks += 1
        return self.slower_looks >= SLOWER_LOOKS
