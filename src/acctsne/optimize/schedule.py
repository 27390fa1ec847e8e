"""The phases of the gradient descent: how long, how fast, how much exaggeration, which rule.

Learning rates are in scikit-learn's unit, in which the gradient carries its factor 4; they are a
quarter of those of openTSNE and FIt-SNE for the same step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import inf
from typing import Any, Literal, NamedTuple

from acctsne import _core
from acctsne.compat.scikit_learn import Interval
from acctsne.forces.output_kernel import output_kernel

# scikit-learn's floor of the automatic learning rate.
SKLEARN_SMALLEST_RATE = 50.0

# Longest step of a point in one iteration, as in openTSNE and FIt-SNE: far above ordinary steps, it
# only keeps a runaway point from leaving the map.
MAX_STEP = 5.0

# With more degrees of freedom points feel each other less far: a step of that length throws them to
# where nothing draws them back. The longest step falls as 1 / scale of the output kernel, to this.
LEAST_MAX_STEP = 1.5

# Far more than anyone waits for, and sums of such counts fit the native core's integers.
MAX_ITERATIONS = 2**31 - 1

# Iterations between lines of the log, and between looks at scikit-learn's stopping rules.
CHECK_EVERY = 50

# Iterations between looks at the KL divergence while it is not known when the map will be done. A
# look takes the better part of an iteration (docs/tuning.md).
LOOK_EVERY = 20

# Iterations in which early exaggeration fades, from a start that knows the data and from a tangled
# one: longer ends lower in KL and keeps less of large distances (benchmarks/descent.py,
# docs/tuning.md).
FADE = 50
FADE_OF_TANGLED = 100

# Data of no more dimensions than the map, such as curves and sheets, can be shown faithfully, but
# have to be laid flat first: a map that is done before is torn or folded for good. Early
# exaggeration of them lasts for so many iterations more (docs/tuning.md).
LONGER_FOR_FLAT = 100

# How much a start knows of the data, by how far apart neighbours are in it (Optimizer.disorder).
# It is tangled if that is more than this part of what it would be at random; blurred if it is more
# than so many times what it would be in a map that shows all of them (docs/tuning.md has figures).
TANGLED = 0.7
BLURRED = 3.0

# A blurred start, such as principal components of images, shows where groups of points belong, but
# not their neighbours. It keeps more of that if it is as wide as groups are when they form, and if
# momentum does not carry them past each other (benchmarks/arrangement.py, docs/tuning.md).
# Exaggeration is held for the first part of its time, so that the groups form before it fades.
SPREAD_OF_BLURRED = 1.3
MOMENTUM_OF_BLURRED = 0.8
HELD_OF_BLURRED = 3 / 10

# Iterations of scikit-learn's early exaggeration.
SKLEARN_EARLY = 250

PerPhase = float | Sequence[float] | Literal["auto"]
Rule = Literal["heavy_ball", "delta_bar_delta"]
Start = Literal["clear", "blurred", "tangled"]


class Ramp(NamedTuple):
    """A value that goes from one to another over a phase, by the same factor in each iteration."""

    first: float
    last: float

    @classmethod
    def constant(cls, value: float) -> "Ramp":
        """Return a ramp that stays where it is."""
        return cls(float(value), float(value))


@dataclass(frozen=True)
class Phase:
    """A run of iterations."""

    name: str
    end: int  # the iteration, counted over all phases, that it ends before
    exaggeration: Ramp  # this and the next from its first iteration to its last
    learning_rate: Ramp
    momentum: float | None  # None for as much as the run bears
    max_step: float
    rule: Rule = "heavy_ball"
    begin: int = 0  # the iteration that it begins with
    reset_momentum: bool = False  # forget momentum and gains before it
    spread: float = 0.0  # a narrower layout is widened to this before it; 0 if none is
    look_every: int = 0  # iterations between looks at the stopping rules; 0 if none applies

    def native(
        self, iterations: int, done: int, report_every: Sequence[int] = (), left: int = 0
    ) -> _core.Phase:
        """Return what the native core takes: so many iterations between those done and left.

        Those done are counted over all phases.
        """
        return _core.Phase(
            iterations=iterations,
            done=max(done - self.begin, 0),
            exaggeration=self.exaggeration,
            learning_rate=self.learning_rate,
            rule=self.rule,
            momentum=self.momentum,
            max_step=self.max_step,
            report_every=list(report_every),
            left=left,
        )


def longest_step(output_scale: float) -> float:
    """Return how far a point may go in an iteration, by the scale of the output kernel.

    Examples
    --------
    >>> [longest_step(scale) for scale in (0.5, 1.0, 2.0, 10.0)]
    [5.0, 5.0, 2.5, 1.5]
    """
    return max(MAX_STEP / max(output_scale, 1.0), LEAST_MAX_STEP)


@dataclass(frozen=True)
class Schedule:
    """What the descent is asked to be, as users say it (:class:`acctsne.TSNE` explains each).

    "fast" is the heavy ball (native/optimize/friction.hpp) with a learning rate of N /
    exaggeration, the largest that it bears; early exaggeration fades. "sklearn" does what
    scikit-learn does: delta-bar-delta, one learning rate N / early_exaggeration / 4, momentum 0.5
    then 0.8, and 250 iterations of constant early exaggeration, after which it forgets momentum
    and gains.
    """

    kind: Literal["fast", "sklearn"] = "fast"
    max_iter: int = 1000
    early_exaggeration: float = 12.0
    early_exaggeration_iter: int | Literal["auto"] = "auto"
    learning_rate: PerPhase = "auto"
    momentum: PerPhase = "auto"
    max_step: float | Literal["auto"] = "auto"
    late_exaggeration: float = 1.0
    late_exaggeration_start: int | None = None
    output_scale: float = 1.0  # of the output kernel

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> "Schedule":
        """Take from checked parameters of an estimator what concerns the descent."""
        names = {field.name for field in fields(cls)} - {"kind", "output_scale"}
        return cls(
            kind=parameters["schedule"],
            output_scale=output_kernel(parameters["dof"], parameters["n_components"]).scale,
            **{name: parameters[name] for name in names},
        )

    def phases(self, n_samples: int, start: Start = "clear", *, flat: bool = False) -> list[Phase]:
        """Lay out the phases of a descent of so many samples from a start of some kind.

        Flat data have no more dimensions than the map.
        """
        early_end = self._early_end(start, flat)
        late_start = (
            self.max_iter if self.late_exaggeration == 1.0 else self.late_exaggeration_start
        )
        after = 1.0 if late_start is not None and late_start > early_end else self.late_exaggeration
        faded = Ramp(
            float(self.early_exaggeration), float(after if self._fast else self.early_exaggeration)
        )
        early = self._phase("early exaggeration", early_end, faded, n_samples, early=True)
        blurred = self._fast and start == "blurred" and early_end > 0
        phases = _held_first(early) if blurred else [early]
        if late_start is not None:
            # No iterations at all where early exaggeration lasts longer.
            phases.append(self._phase("embedding", late_start, Ramp.constant(1.0), n_samples))
        if self.late_exaggeration != 1.0:
            late = Ramp.constant(self.late_exaggeration)
            phases.append(self._phase("late exaggeration", self.max_iter, late, n_samples))
        if not self._fast:
            phases[1] = replace(phases[1], reset_momentum=True)
        return phases

    @property
    def _fast(self) -> bool:
        return self.kind == "fast"

    def _early_end(self, start: Start, flat: bool) -> int:
        wanted = self.early_exaggeration_iter
        if wanted == "auto":
            fade = FADE_OF_TANGLED if start == "tangled" else FADE
            fade += LONGER_FOR_FLAT if flat else 0
            wanted = fade if self._fast else SKLEARN_EARLY
        return min(wanted, self.max_iter)

    def _phase(
        self, name: str, end: int, exaggeration: Ramp, n_samples: int, *, early: bool = False
    ) -> Phase:
        which = 0 if early else 1
        momentum = _per_phase(self.momentum)[which]
        usual = None if self._fast else 0.5 if early else 0.8
        step = self.max_step
        if step == "auto":
            step = longest_step(self.output_scale) if self._fast else inf
        # With exaggeration it is not the KL divergence that falls. scikit-learn's early one may end
        # before its time all the same, where the gradient has become small.
        may_stop = not early and end == self.max_iter and exaggeration.last == 1.0
        may_stop |= early and not self._fast
        return Phase(
            name=name,
            end=end,
            exaggeration=exaggeration,
            learning_rate=self._rates(
                _per_phase(self.learning_rate)[which], exaggeration, n_samples
            ),
            momentum=usual if momentum is None else momentum,
            max_step=float(step),
            rule="heavy_ball" if self._fast else "delta_bar_delta",
            look_every=(LOOK_EVERY if self._fast else CHECK_EVERY) if may_stop else 0,
        )

    def _rates(self, given: float | None, exaggeration: Ramp, n_samples: int) -> Ramp:
        if given is not None:
            return Ramp.constant(given)
        if self._fast:
            return Ramp(*(n_samples / factor for factor in exaggeration))
        return Ramp.constant(max(n_samples / self.early_exaggeration / 4, SKLEARN_SMALLEST_RATE))


def _held_first(early: Phase) -> list[Phase]:
    """Cut early exaggeration, from a blurred start, into a part that is held and one that fades."""
    momentum = MOMENTUM_OF_BLURRED if early.momentum is None else early.momentum
    end = int(HELD_OF_BLURRED * early.end)
    held = replace(
        early,
        end=end,
        exaggeration=Ramp.constant(early.exaggeration.first),
        learning_rate=Ramp.constant(early.learning_rate.first),
        momentum=momentum,
        spread=SPREAD_OF_BLURRED,
    )
    return [held, replace(early, begin=end, momentum=momentum)]


def _per_phase(value: PerPhase) -> tuple[float | None, float | None]:
    """Return the values of the early and of the later phases, None where automatic."""
    if value == "auto":
        return None, None
    if isinstance(value, Sequence):
        return float(value[0]), float(value[1])
    return float(value), float(value)


def check_pair(name: str, value: Any, allowed: Interval) -> None:
    """Check a pair of numbers, for early exaggeration and the rest; anything else passes."""
    if not isinstance(value, tuple | list):
        return
    if len(value) != 2 or not all(allowed.is_satisfied_by(one) for one in value):
        raise ValueError(
            f"{name} as a pair, for early exaggeration and for the rest, must be two numbers, each "
            f"{allowed}; got {value!r}"
        )
