"""The estimator of several maps whose shared points are tied."""

from collections.abc import Callable, Sequence
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array

from acctsne.compat.scikit_learn import Interval, fit_context, validate_parameter_constraints
from acctsne.embedding.joint_descent import JointDescent
from acctsne.embedding.ties import Ties, ties_of_ids, ties_of_relations
from acctsne.estimator import PARAMETER_CONSTRAINTS, TSNE
from acctsne.forces.output_kernel import Dof
from acctsne.optimize.optimizer import Optimizer
from acctsne.optimize.schedule import PerPhase, Start
from acctsne.optimize.stopping import StoppingRules
from acctsne.problem import Problem, problem_of
from acctsne.runtime.errors import error_of
from acctsne.runtime.exclusive import alone
from acctsne.runtime.memory import room_for
from acctsne.runtime.progress import logger, progress_bar, shown_log
from acctsne.runtime.threads import limited_libraries
from acctsne.runtime.timer import StageTimer
from acctsne.stages import BY_ONE_PROCESS, affinities_and_layout

# The parameters that every slice's TSNE gets as they are.
SHARED_PARAMETERS = (
    "n_components",
    "early_exaggeration",
    "learning_rate",
    "max_iter",
    "metric",
    "metric_params",
    "init",
    "verbose",
    "random_state",
    "method",
    "angle",
    "n_jobs",
    "dtype",
    "force_error",
    "dof",
    "tol",
    "neighbors",
)

# From 1 on shared points are less than a thousandth of the map apart, and stiffer tethers only slow
# the descent.
MAX_STRENGTH = 10.0


class AlignedTSNE(BaseEstimator):  # type: ignore[misc]
    """Several maps at once, whose shared points are held together by tethers.

    For batches, time points or a sweep of a parameter: each slice of the data has affinities and a
    map of its own, and points that are the same in two slices are drawn together while all maps are
    optimised. The result is the same at any number of threads.

    Parameters
    ----------
    strength : float, default=0.01
        Stiffness of the tether between two points that are the same, as a part of the stiffness
        that the attraction of all its neighbours gives to a mean point; up to 10. Early
        exaggeration begins with 1 at least, so that the maps agree on where clusters lie. With 0,
        every map is what :class:`TSNE` makes of its slice from the same start.

    n_components : int, default=2
        Dimension of the maps.

    perplexity : float, str, or list with one of these for each slice, default=30.0
        As in :class:`TSNE`. A list makes a sweep of it.

    early_exaggeration, learning_rate, max_iter, metric, metric_params, method, angle, n_jobs, \
dtype, force_error, dof, neighbors, verbose, random_state
        As in :class:`TSNE`, for every slice.

    init : {"pca", "random", "spectral", "multilevel"}, default="pca"
        Where each map starts. It is turned and mirrored so that points shared with earlier slices
        are as close to them as can be (orthogonal Procrustes).

    tol : float or "auto", default="auto"
        As in :class:`TSNE`: the descent ends when the KL divergence of every map hardly falls.

    Attributes
    ----------
    embeddings_ : list of ndarray of shape (n_samples, n_components)
        A map for each slice, in one common frame. Each lies where its tied points are closest to
        those of the others; with a strength of 0, its mean is the origin.
    kl_divergences_ : list of float
        The final KL divergence of each map.
    displacements_ : list of ndarray of shape (n_samples,)
        How far each point is from the mean of its partners, in the units of the map; nan for a
        point that has none.
    n_iter_ : int
        Index of the last iteration, counted from 0, as :class:`TSNE` has it.
    timings_ : dict
        Seconds for all affinities and layouts ("start"), the descent ("descent") and both
        ("total").

    Notes
    -----
    Ctrl-C raises KeyboardInterrupt as in :class:`TSNE`. If the descent has begun, the attributes
    but `kl_divergences_` hold the maps so far, of which some may have taken one iteration more.

    See Also
    --------
    TSNE : One map.

    Examples
    --------
    >>> import numpy as np
    >>> from acctsne import AlignedTSNE
    >>> X = np.random.default_rng(0).normal(size=(150, 5))
    >>> slices = [X[:100], X[50:]]  # rows 50 to 99 are in both
    >>> aligned = AlignedTSNE(perplexity=10)
    >>> first, second = aligned.fit_transform(slices, ids=[range(100), range(50, 150)])
    >>> first.shape, second.shape
    ((100, 2), (100, 2))
    >>> alone = AlignedTSNE(perplexity=10, strength=0)
    >>> apart = alone.fit(slices, ids=[range(100), range(50, 150)]).displacements_
    >>> bool(np.nanmean(aligned.displacements_[0]) < np.nanmean(apart[0]))
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: PARAMETER_CONSTRAINTS[name] for name in SHARED_PARAMETERS},
        "init": PARAMETER_CONSTRAINTS["init"][:1],
        "perplexity": [*PARAMETER_CONSTRAINTS["perplexity"], list, tuple],
        "strength": [Interval(Real, 0, MAX_STRENGTH, closed="both")],
    }

    embeddings_: list[npt.NDArray[Any]]
    kl_divergences_: list[float]
    displacements_: list[npt.NDArray[np.float64]]
    n_iter_: int
    timings_: dict[str, float]

    def __init__(
        self,
        strength: float = 0.01,
        *,
        n_components: int = 2,
        perplexity: float | str | Sequence[float | str] = 30.0,
        early_exaggeration: float = 12.0,
        learning_rate: PerPhase = "auto",
        max_iter: int = 1000,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: dict[str, Any] | None = None,
        init: str = "pca",
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
        method: str = "auto",
        angle: float = 0.5,
        n_jobs: int | None = None,
        dtype: npt.DTypeLike = np.float32,
        force_error: float = 0.02,
        dof: Dof = 1.0,
        tol: float | Literal["auto"] = "auto",
        neighbors: Literal["auto", "exact", "approximate"] = "auto",
    ) -> None:
        self.strength = strength
        self.n_components = n_components
        self.perplexity = perplexity
        self.early_exaggeration = early_exaggeration
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.metric = metric
        self.metric_params = metric_params
        self.init = init
        self.verbose = verbose
        self.random_state = random_state
        self.method = method
        self.angle = angle
        self.n_jobs = n_jobs
        self.dtype = dtype
        self.force_error = force_error
        self.dof = dof
        self.tol = tol
        self.neighbors = neighbors

    def fit(
        self, Xs: Sequence[Any], relations: Any = None, *, ids: Sequence[Any] | None = None
    ) -> "AlignedTSNE":
        """Embed all slices.

        Parameters
        ----------
        Xs : list of {array-like, sparse matrix, Affinities}
            The slices, each as :meth:`TSNE.fit` takes it. They may differ in features.
        relations : list of array-like of shape (n_pairs, 2), or of dict, default=None
            For each two consecutive slices, which row of the first is which row of the second. One
            less than there are slices.
        ids : list of array-like of shape (n_samples,), default=None
            In the place of relations: a name for each row of each slice. Rows of the same name are
            tied, each to the last slice before that has it.

        Returns
        -------
        self : AlignedTSNE
            The fitted estimator.
        """
        self.fit_transform(Xs, relations, ids=ids)
        return self

    @fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit_transform(
        self, Xs: Sequence[Any], relations: Any = None, *, ids: Sequence[Any] | None = None
    ) -> list[npt.NDArray[Any]]:
        """Embed all slices and return the maps.

        Parameters
        ----------
        Xs, relations, ids
            As in :meth:`fit`.

        Returns
        -------
        embeddings : list of ndarray of shape (n_samples, n_components)
            A map for each slice, in one common frame.
        """
        timer = StageTimer()
        with alone(self), shown_log(self.verbose):
            problems = self._problems(Xs)
            ties = _check_ties(relations, ids, [problem.n_samples for problem in problems])
            descent = self._start(problems, ties, timer)
            stopping = StoppingRules(tol=problems[0].stopping.tol)
            if hasattr(self, "kl_divergences_"):
                del self.kl_divergences_  # an earlier fit's, lest they stay if this one is ended
            try:
                with (
                    timer.stage("descent"),
                    progress_bar("iterations", self.max_iter, "it", self.verbose) as move_to,
                ):
                    descent.run(stopping, move_to)
                self.kl_divergences_ = [optimizer.kl() for optimizer in descent.optimizers]
            finally:
                # Also after Ctrl-C: maps of the iterations that were done.
                self._keep(descent, timer)
            for at, kl in enumerate(self.kl_divergences_):
                logger.info("slice %d: KL divergence %.4f", at, kl)
        return self.embeddings_

    def _keep(self, descent: JointDescent, timer: StageTimer) -> None:
        maps = [optimizer.positions for optimizer in descent.optimizers]
        offsets = descent.ties.offsets(maps)
        if self.strength > 0:
            maps = [one + by.astype(one.dtype) for one, by in zip(maps, offsets, strict=True)]
        self.embeddings_ = maps
        self.displacements_ = descent.ties.displacements(maps)
        self.n_iter_ = min(optimizer.n_iter for optimizer in descent.optimizers) - 1
        self.timings_ = {**timer.seconds, "total": timer.total()}

    def _of_a_slice(self, perplexity: Any) -> dict[str, Any]:
        """Return the parameters of a TSNE of one slice."""
        shared = {name: getattr(self, name) for name in SHARED_PARAMETERS}
        parameters: dict[str, Any] = TSNE(perplexity=perplexity, **shared).get_params(deep=False)
        return parameters

    def _problems(self, Xs: Any) -> list[Problem]:
        """Check every slice against the parameters."""
        if not isinstance(Xs, Sequence) or isinstance(Xs, str):
            raise TypeError(
                f"Xs must be a list of slices, each an array of samples; got {type(Xs).__name__}. "
                "For one map, use TSNE"
            )
        if len(Xs) < 2:
            raise ValueError(f"Xs has {len(Xs)} slices; at least 2 are aligned. For one, use TSNE")
        given: Any = self.perplexity
        perplexities = list(given) if isinstance(given, list | tuple) else [given] * len(Xs)
        if len(perplexities) != len(Xs):
            raise ValueError(
                f"perplexity is a list of {len(perplexities)} for {len(Xs)} slices; expected one "
                "for each slice"
            )
        check = partial(check_array, estimator=self, input_name="X")
        problems = []
        for at, (X, perplexity) in enumerate(zip(Xs, perplexities, strict=True)):
            parameters = self._of_a_slice(perplexity)
            try:
                validate_parameter_constraints(
                    PARAMETER_CONSTRAINTS, parameters, caller_name="AlignedTSNE"
                )
                problems.append(problem_of(parameters, X, check=check, caller="AlignedTSNE"))
            except (ValueError, TypeError) as error:
                raise error_of(type(error), f"slice {at}: {error}") from error
        return problems

    def _start(self, problems: Sequence[Problem], ties: Ties, timer: StageTimer) -> JointDescent:
        """Find affinities and layouts of all slices, turn these, and lay out the descent."""
        least = sum(problem.least_memory() for problem in problems)
        total = sum(problem.n_samples for problem in problems)
        with room_for(least, f"A fit of {total} samples"), timer.stage("start"):
            parts = [affinities_and_layout(problem, StageTimer())[:2] for problem in problems]
            with limited_libraries(1):
                layouts = ties.turned([layout for _, layout in parts])
            optimizers = [
                BY_ONE_PROCESS.optimizer(problem, P, layout)
                for problem, (P, _), layout in zip(problems, parts, layouts, strict=True)
            ]
            del parts  # before the optimisers make their own form of P anew
            schedules = [
                problem.schedule.phases(problem.n_samples, _start_of_tied(optimizer))
                for problem, optimizer in zip(problems, optimizers, strict=True)
            ]
        return JointDescent(optimizers, schedules, ties, float(self.strength))


def _start_of_tied(optimizer: Optimizer) -> Start:
    """Tell the kind of a start, of which none is widened: tied maps keep the same size."""
    return "tangled" if optimizer.kind_of_start() == "tangled" else "clear"


def _check_ties(relations: Any, ids: Any, sizes: Sequence[int]) -> Ties:
    if (relations is None) == (ids is None):
        raise ValueError(
            "give either relations, pairs of rows of consecutive slices, or ids, a name for each "
            f"row; got {'neither' if ids is None else 'both'}"
        )
    return ties_of_relations(relations, sizes) if ids is None else ties_of_ids(ids, sizes)
