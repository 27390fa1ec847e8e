"""TSNE, the estimator: parameters to a Problem, that through its stages, results to attributes."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from acctsne import _core
from acctsne.affinities.similarity import PERPLEXITY_WORDS
from acctsne.compat.callbacks import CallbackSupportMixin, FitTasks, with_callbacks
from acctsne.compat.scikit_learn import (
    VALID_METRICS,
    Interval,
    StrOptions,
    fit_context,
    validate_parameter_constraints,
)
from acctsne.embedding.arguments import check_callbacks
from acctsne.embedding.checkpoint import Checkpoint
from acctsne.embedding.transform import FittedMap, check_map
from acctsne.estimator_archive import FittedEstimator, read_estimator, write_estimator
from acctsne.files.archive import incomplete
from acctsne.forces.output_kernel import Dof
from acctsne.forces.repulsion import REPULSION_CONSTRAINTS, RepulsionOptions
from acctsne.init.layouts import INITS
from acctsne.neighbors.frame import Frame
from acctsne.neighbors.nearest import readable
from acctsne.neighbors.records import NEIGHBOR_MODES
from acctsne.optimize.descent import Descent
from acctsne.optimize.optimizer import Callback, Observers
from acctsne.optimize.schedule import MAX_ITERATIONS, PerPhase
from acctsne.optimize.stopping import MIN_GRAD_NORM, PATIENCE, log_end
from acctsne.problem import Problem, Samples, check_new_samples, check_parameters, problem_of
from acctsne.runtime.exclusive import alone
from acctsne.runtime.memory import room_for
from acctsne.runtime.progress import busy, logger, progress_bar, shown_log
from acctsne.runtime.rows import check_type_read, computed_dtype
from acctsne.runtime.tables import turned_into_numbers
from acctsne.runtime.threads import effective_threads
from acctsne.runtime.timer import StageTimer
from acctsne.stages import BY_ONE_PROCESS, Stages, start

# Fitted attributes that JSON can hold.
PLAIN_ATTRIBUTES = ("kl_divergence_", "n_iter_", "learning_rate_", "n_features_in_", "timings_")

# Which values each parameter may have, in scikit-learn's form.
PARAMETER_CONSTRAINTS: dict[str, Any] = {
    **REPULSION_CONSTRAINTS,
    "perplexity": [
        StrOptions(set(PERPLEXITY_WORDS)),
        Interval(Real, 0, None, closed="neither"),
    ],
    "early_exaggeration": [Interval(Real, 1, None, closed="left")],
    "learning_rate": [
        StrOptions({"auto"}),
        Interval(Real, 0, None, closed="neither"),
        tuple,
        list,
    ],
    "max_iter": [Interval(Integral, 250, MAX_ITERATIONS, closed="both")],
    "n_iter_without_progress": [Interval(Integral, -1, None, closed="left")],
    "min_grad_norm": [Interval(Real, 0, None, closed="left")],
    "metric": [StrOptions(set(VALID_METRICS) | {"precomputed"}), callable],
    "metric_params": [dict, None],
    "init": [StrOptions(set(INITS)), np.ndarray],
    "verbose": ["verbose"],
    "random_state": ["random_state"],
    "schedule": [StrOptions({"fast", "sklearn"})],
    "early_exaggeration_iter": [
        StrOptions({"auto"}),
        Interval(Integral, 0, None, closed="left"),
    ],
    "callback": [callable, list, tuple, None],
    "callback_every": [Interval(Integral, 1, MAX_ITERATIONS, closed="both")],
    "dtype": "no_validation",  # checked in check_parameters, with the value in the message
    "late_exaggeration": [Interval(Real, 0, None, closed="neither")],
    "late_exaggeration_start": [Interval(Integral, 0, None, closed="left"), None],
    "momentum": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="left"), tuple, list],
    "max_step": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
    "tol": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="left")],
    "neighbors": [StrOptions(set(NEIGHBOR_MODES))],
}


class TSNE(
    CallbackSupportMixin,  # type: ignore[misc]
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """t-distributed stochastic neighbour embedding.

    A drop-in for :class:`sklearn.manifold.TSNE`: same parameters, same attributes; where a meaning
    differs, its parameter says so, and ``schedule="sklearn"`` follows scikit-learn's steps. All
    steps run in a native core on every core allowed, and give the same bits for any number of
    threads.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the embedding. More than three need all pairs, method "auto" or "exact".

    perplexity : float, "auto" or "multiscale", default=30.0
        The effective number of neighbours of each sample; usually between 5 and 50. Must be
        less than the number of samples. "auto" is 30, or an eighth of the number of samples if that
        is less. "multiscale" is the mean of affinities of two perplexities, that of "auto" and a
        hundredth of the number of samples, up to 500; up to 3000 samples it is "auto".

    early_exaggeration : float, default=12.0
        Factor on the attractive forces in the first phase, which forms the clusters. It fades to 1,
        or to `late_exaggeration` if that follows at once, by the same factor in each iteration;
        with `schedule="sklearn"` it stays.

    learning_rate : float, pair of floats or "auto", default="auto"
        In scikit-learn's unit: four times as much in bhtsne, FIt-SNE and openTSNE makes the same
        step. A pair is for early exaggeration and for the rest. If `schedule="fast"`, "auto" is
        `n_samples / exaggeration` with the exaggeration of each iteration, and a larger one is
        lowered to that, as the log says. If `schedule="sklearn"`, "auto" is
        `max(n_samples / early_exaggeration / 4, 50)` throughout.

    max_iter : int, default=1000
        Upper bound of the iterations, early exaggeration included; at least 250. `tol` usually ends
        a fit earlier.

    n_iter_without_progress : int, default=300
        Stop after so many iterations without a smaller KL divergence, looked at every 20 iterations
        after early exaggeration, every 50 if `schedule="sklearn"`. -1 stops at the first look that
        finds none smaller. The default stops only if `schedule="sklearn"`; otherwise `tol` does.

    min_grad_norm : float, default=1e-7
        Stop when the gradient's norm is not larger, looked at as often as
        `n_iter_without_progress`. With `tol=0` the default does not stop; see there. If
        `schedule="sklearn"`, one as small in early exaggeration ends that phase, and not the fit.

    metric : str or callable, default="euclidean"
        Distance between samples, any of scikit-learn's: "euclidean", "l2", "sqeuclidean", "cosine"
        and "correlation" run natively, the others through scikit-learn, or pynndescent if there are
        many samples. "precomputed" takes X as a square matrix of distances, a sparse graph of them
        as KNeighborsTransformer and scanpy make it, or a pair of arrays (indices, distances), each
        of shape (n_samples, n_neighbors). It is the square of the distance that enters the
        Gaussian kernel, whatever the metric: with "sqeuclidean", the fourth power.

    metric_params : dict, default=None
        More arguments for the metric.

    init : {"pca", "random", "spectral", "multilevel"} or ndarray, default="pca"
        Initial layout: one that :mod:`acctsne.init` makes, or an array of shape
        (n_samples, n_components). Points in the very same place are moved slightly apart. With
        `schedule="fast"`, a narrow layout that shows groups of points but not their neighbours, as
        principal components of images do, is widened to a root mean square distance of 1.3 from its
        mean, unless there are fixed points or no early exaggeration.

    verbose : int, default=0
        1 logs stages and iterations to the logger "acctsne" (shown on stderr if logging is not
        configured) and draws progress on a terminal or in a notebook.

    random_state : int, RandomState instance or None, default=None
        Seed of the random initial layout, and of the sample that recall is estimated from.

    method : {"auto", "barnes_hut", "fft", "exact"}, default="auto"
        How repulsive forces are computed. "barnes_hut" walks a tree, O(N log N), in 1 to 3
        dimensions. "fft" convolves on a grid, O(N) plus the area of the map, in 1 and 2 dimensions;
        a map too wide for the grid goes to the tree. "auto" takes whichever is fastest for the
        number of points and the map's present width, all pairs included; in more than three
        dimensions it takes all pairs, O(N^2). "exact" sums over all pairs, in any number of
        dimensions, and also makes all samples neighbours of each other, so that memory grows with
        the square of their number; with "auto" it does not.

    angle : float, default=0.5
        For Barnes-Hut: smaller is more accurate and slower. The force error is at most that of
        scikit-learn at the same value, about 2 % at 0.5.

    force_error : float, default=0.02
        For the grid: the relative error of the repulsive forces that its spacing aims at.

    n_jobs : int, default=None
        Threads for every stage. None or -1: all cores that affinity mask, cgroup quota and
        `OMP_NUM_THREADS` allow.

    schedule : {"fast", "sklearn"}, default="fast"
        How a gradient becomes a step, and what changes on the way. "fast" moves points as heavy
        balls, with momentum close to 1 and steps in inverse proportion to the sum of a point's
        affinities; early exaggeration fades, and the fit ends when it hardly makes progress.
        What is slow in t-SNE are whole clusters that drift apart, and momentum moves those. A point
        that swings ever farther gets shorter steps for a while. "sklearn" follows scikit-learn's
        schedule step by step, with its gains, its momentum and its constant early exaggeration.

    early_exaggeration_iter : int or "auto", default="auto"
        Iterations of early exaggeration, part of `max_iter`. "auto" is 50, or 100 if the
        start is random or any other in which neighbours lie hardly closer than others, so that it
        has to be untangled, and 100 more for data of no more dimensions than the map, such as
        curves and sheets, which have to be laid flat; with `schedule="sklearn"` it is 250. If the
        start is widened (see `init`), exaggeration is held for the first three tenths of them
        before it fades.

    callback : callable or list of callables, default=None
        Called as `callback(iteration, kl_divergence, embedding)`, each with a copy of the
        embedding, every `callback_every` iterations; if one returns True, the fit stops. What one
        raises ends the fit and passes through. scikit-learn's own callbacks can be set with
        `set_callbacks` where scikit-learn has them, from version 1.9 on.

    callback_every : int, default=50
        Iterations between calls of `callback`, and between what scikit-learn's callbacks are told.

    dtype : numpy.float32 or numpy.float64, default=numpy.float32
        Precision of affinities and layout. Sums that need more are always in double precision, and
        so are the distances that decide who is a neighbour.

    dof : float or "sklearn", default=1.0
        Degrees of freedom of the similarity in the embedding, `(1 + d^2 / dof) ** -dof`, from 0.001
        to 1000, as openTSNE and FIt-SNE define them. Below 1 the tails are heavier: clusters come
        apart into finer ones [1]_, and the map takes more iterations to settle. Above 1 they are
        lighter, up to the Gaussian of SNE. The default is 1 in every dimension. "sklearn" takes
        scikit-learn's similarity, which differs from three dimensions on: Student's with
        `n_components - 1` degrees of freedom, `(1 + d^2 / 2) ** -1.5` in 3-D. The gradient is the
        derivative of that objective; scikit-learn's own is not, there.

    late_exaggeration : float, default=1.0
        Factor on the attractive forces after early exaggeration. Above 1 clusters are denser and
        the space between them wider. Other than 1 it is not the KL divergence that falls, and no
        stopping rule applies.

    late_exaggeration_start : int, default=None
        The iteration from which on `late_exaggeration` holds, less than `max_iter`; the end of
        early exaggeration if that comes later, or if None.

    momentum : float, pair of floats or "auto", default="auto"
        Part of the last step that is added to the next. A pair is for early exaggeration and for
        the rest. "auto" is 0.5, then 0.8 if `schedule="sklearn"`. If `schedule="fast"` it begins
        with 0.95, goes up to 0.99 while the objective falls, and down to 0.9 while it rises; from a
        start that is widened (see `init`) it is 0.8 during early exaggeration.

    max_step : float or "auto", default="auto"
        Longest step of a point in one iteration. "auto" is 5 if `schedule="fast"`, less with more
        than one degree of freedom, 5 / dof or 1.5, whichever is more; and none if
        `schedule="sklearn"`.

    tol : float or "auto", default="auto"
        Stop when the KL divergence has changed, over the last 40 iterations, by less than this part
        of all that was gained so far, over a map with all points in one place, and by less than
        three times this part of what is left; by half of it for data of no more dimensions than the
        map, which unroll slowly. It is looked at every 20 iterations after early exaggeration;
        every 50, over the last 100, if `schedule="sklearn"`. 0 never stops: a fit runs to
        `max_iter`, unless `n_iter_without_progress` or `min_grad_norm` is given another value than
        its default, or `schedule="sklearn"`, where both keep scikit-learn's meaning.
        "auto" is 0.005 if `schedule="fast"`, and 0 if `schedule="sklearn"`.

    neighbors : {"auto", "exact", "approximate"}, default="auto"
        How the nearest neighbours are found; see :func:`acctsne.nearest_neighbors`. "auto" is exact
        up to a few hundred thousand samples. With `method="exact"` there is nothing to find.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        The layout, of type `dtype`.

    kl_divergence_ : float
        KL divergence of `embedding_`, with the method's own sum Z; `acctsne.quality.exact_kl` gives
        the exact value, of any metric if it is given the affinities.

    n_iter_ : int
        Index of the last iteration, counted from 0, as scikit-learn has it.

    learning_rate_ : float
        Learning rate that early exaggeration begins with; if one was given, as it was given.

    n_features_in_ : int
        Number of features seen during fit.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, if X has column names that are all strings.

    timings_ : dict
        Seconds by step: "knn", "bsp", "symmetrize", "init", "tree_building", "summarization",
        "attractive", "repulsive", "update", "kl_divergence", "relabel", and "total". Also how many
        iterations each method computed, "iterations_fft" and so on, and "recall", the part of the
        true neighbours that was found: 1 if they are exact, otherwise an estimate.

    Notes
    -----
    Ctrl-C is answered within 0.2 s while native code runs; a call of NumPy, SciPy or scikit-learn,
    as for a spectral start or a metric that is not native, is finished first. KeyboardInterrupt is
    raised, and the attributes hold the layout of the last finished iteration.

    References
    ----------
    .. [1] D. Kobak, G. Linderman, S. Steinerberger, Y. Kluger and P. Berens, "Heavy-tailed kernels
       reveal a finer cluster structure in t-SNE visualisations", ECML PKDD 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from acctsne import TSNE
    >>> X = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]])
    >>> TSNE(perplexity=3).fit_transform(X).shape
    (4, 2)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = PARAMETER_CONSTRAINTS

    embedding_: npt.NDArray[Any]
    kl_divergence_: float
    n_iter_: int
    learning_rate_: float
    timings_: dict[str, float]

    # The metric and the frame of fit's neighbour search; None where transform() has to find one.
    _fit_frame: tuple[Any, Frame] | None = None

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float | str = 30.0,
        early_exaggeration: float = 12.0,
        learning_rate: PerPhase = "auto",
        max_iter: int = 1000,
        n_iter_without_progress: int = PATIENCE,
        min_grad_norm: float = MIN_GRAD_NORM,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: dict[str, Any] | None = None,
        init: str | npt.NDArray[Any] = "pca",
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
        method: str = "auto",
        angle: float = 0.5,
        n_jobs: int | None = None,
        schedule: Literal["fast", "sklearn"] = "fast",
        early_exaggeration_iter: int | Literal["auto"] = "auto",
        callback: Callback | Sequence[Callback] | None = None,
        callback_every: int = 50,
        dtype: npt.DTypeLike = np.float32,
        force_error: float = 0.02,
        dof: Dof = 1.0,
        late_exaggeration: float = 1.0,
        late_exaggeration_start: int | None = None,
        momentum: PerPhase = "auto",
        max_step: float | Literal["auto"] = "auto",
        tol: float | Literal["auto"] = "auto",
        neighbors: Literal["auto", "exact", "approximate"] = "auto",
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.early_exaggeration = early_exaggeration
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.n_iter_without_progress = n_iter_without_progress
        self.min_grad_norm = min_grad_norm
        self.metric = metric
        self.metric_params = metric_params
        self.init = init
        self.verbose = verbose
        self.random_state = random_state
        self.method = method
        self.angle = angle
        self.n_jobs = n_jobs
        self.schedule = schedule
        self.early_exaggeration_iter = early_exaggeration_iter
        self.callback = callback
        self.callback_every = callback_every
        self.dtype = dtype
        self.force_error = force_error
        self.dof = dof
        self.late_exaggeration = late_exaggeration
        self.late_exaggeration_start = late_exaggeration_start
        self.momentum = momentum
        self.max_step = max_step
        self.tol = tol
        self.neighbors = neighbors

    def fit(self, X: Any, y: Any = None, *, fixed: npt.ArrayLike | None = None) -> "TSNE":
        """Embed X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Samples in rows, on disk too, as :func:`acctsne.nearest_neighbors` takes them; with
            `metric="precomputed"`, their distances or neighbours. An :class:`Affinities` is
            embedded as it is.
        y : None
            Ignored.
        fixed : array-like, default=None
            Samples that stay where `init` puts them: a mask, or their indices.

        Returns
        -------
        self : TSNE
            The fitted estimator.
        """
        # By the method as a subclass may have it, with scikit-learn's arguments alone.
        more = {} if fixed is None else {"fixed": fixed}
        self.fit_transform(X, **more)
        return self

    @with_callbacks  # type: ignore[untyped-decorator]
    @fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit_transform(
        self, X: Any, y: Any = None, *, fixed: npt.ArrayLike | None = None
    ) -> npt.NDArray[Any]:
        """Embed X and return the embedding.

        Parameters
        ----------
        X, y, fixed
            As in :meth:`fit`.

        Returns
        -------
        embedding : ndarray of shape (n_samples, n_components)
            The layout, of type `dtype`.
        """
        return self._fit(X, fixed)

    def _fit(
        self, X: Any, fixed: npt.ArrayLike | None = None, checkpoint: Checkpoint | None = None
    ) -> npt.NDArray[Any]:
        timer = self._timer()
        with alone(self), shown_log(self.verbose):
            with busy("checking the data", self.verbose):
                problem = self._problem(X, fixed)
            callbacks = check_callbacks(self.callback)
            samples = problem.given.X if isinstance(problem.given, Samples) else None
            tasks = FitTasks.of(self, X if samples is None else samples)
            logger.info(
                "%d samples, %s, %s, %d threads, SIMD level %s",
                problem.n_samples,
                problem.repulsion.method,
                problem.dtype.name,
                problem.threads,
                _core.build_info()["simd_level"],
            )
            resumed, keep = None, None
            if checkpoint is not None:
                parameters = {**self._parameters(), "init": problem.init}
                resumed = checkpoint.open(samples, parameters, problem.threads)
                keep = checkpoint.keep_affinities
            with self._room(problem):
                descent, frame = (
                    (resumed, None) if resumed else start(problem, timer, self._stages(), keep)
                )
            # Of an earlier fit, lest a callback take its map for that of this data.
            of_data = ("n_features_in_", "feature_names_in_") if samples is None else ()
            for name in ("embedding_", "kl_divergence_", *of_data):
                self.__dict__.pop(name, None)
            # For transform(): the data that the map is of, and how it was searched.
            self._fit_X = samples
            self._fit_frame = (self.metric, frame) if frame else None
            if tasks is not None:
                callbacks.append(tasks)
                tasks.begin()
            self._optimize(descent, problem, callbacks, timer, checkpoint)
            if tasks is not None:
                tasks.finish()
        return self.embedding_

    def _fit_checked(self, X: Any, checkpoint: Checkpoint) -> None:
        """Fit with a checkpoint, whose caller has not checked the parameters."""
        self._validate_params()
        self._fit(X, checkpoint=checkpoint)

    def _parameters(self) -> dict[str, Any]:
        """Return all parameters of this class, of which a subclass may take fewer, or others."""
        return {name: getattr(self, name) for name in TSNE().get_params(deep=False)}

    def _validate_params(self) -> None:
        validate_parameter_constraints(
            self._parameter_constraints, self._parameters(), caller_name=type(self).__name__
        )

    # What several processes do otherwise than one (distributed/estimator.py).

    def _room(self, problem: Problem) -> AbstractContextManager[None]:
        return room_for(problem.least_memory(), f"A fit of {problem.n_samples} samples")

    def _timer(self) -> StageTimer:
        return StageTimer()

    def _problem(self, X: Any, fixed: npt.ArrayLike | None = None) -> Problem:
        """Check the parameters, and X against them."""
        return problem_of(
            self._parameters(),
            X,
            fixed,
            check=partial(validate_data, self),
            caller=type(self).__name__,
        )

    def _stages(self) -> Stages:
        return BY_ONE_PROCESS

    def _optimize(
        self,
        descent: Descent,
        problem: Problem,
        callbacks: list[Callback],
        timer: StageTimer,
        checkpoint: Checkpoint | None,
    ) -> None:
        optimizer = descent.optimizer
        schedule = problem.schedule.phases(problem.n_samples, descent.start, flat=descent.flat)
        if checkpoint is not None:
            checkpoint.check_place(descent, schedule)
        self.learning_rate_ = schedule[0].learning_rate.first
        try:
            with progress_bar("iterations", self.max_iter, "it", self.verbose) as move_to:
                observers = Observers(
                    callbacks=callbacks,
                    callback_every=int(self.callback_every),
                    keep=partial(checkpoint.save, descent) if checkpoint else None,
                    keep_every=checkpoint.every if checkpoint else 0,
                    log=bool(self.verbose),
                    progress=move_to,
                )
                optimizer.hold(problem.fixed)
                ended = descent.run(schedule, problem.stopping, observers)
            log_end(optimizer.n_iter, ended or "max_iter")
            self.kl_divergence_ = optimizer.kl()
            optimizer.log_restraint()
            logger.info(
                "KL divergence %.4f after %d iterations", self.kl_divergence_, optimizer.n_iter
            )
        finally:
            # Also after Ctrl-C or an error in a callback: the layout of the last finished
            # iteration.
            self.embedding_ = optimizer.positions
            if problem.fixed is not None and isinstance(problem.init, np.ndarray):
                # Held samples get back the very bits that were given: with other degrees of freedom
                # than 1, positions are rounded on the way in and out.
                held = problem.fixed != 0
                self.embedding_[held] = problem.init[held]
            self.n_iter_ = optimizer.n_iter - 1
            self.timings_ = {**timer.seconds, **optimizer.timings, "total": timer.total()}
            self.timings_["recall"] = descent.recall
            logger.info(
                "repulsion: %s",
                ", ".join(
                    f"{count} {name.replace('_', ' ', 1)}"
                    for name, count in optimizer.timings.items()
                    if name.startswith("iterations_")
                ),
            )

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Place samples into the map, which stays as it is.

        Each new sample starts at the median of its nearest neighbours in the map, weighted by
        affinity, and then moves down the gradient of its own KL divergence from the map. It does
        not see the other new ones, so that it goes to the same place alone or in any batch. A
        sample that equals one the map was made of goes where that one is, the first of several.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features) or (n_new, n_samples)
            New samples in rows; with `metric="precomputed"`, their distances from the samples of
            the map.

        Returns
        -------
        positions : ndarray of shape (n_new, n_components)
            Their places.

        Examples
        --------
        >>> import numpy as np
        >>> from acctsne import TSNE
        >>> X = np.random.default_rng(0).normal(size=(120, 5))
        >>> tsne = TSNE(perplexity=10).fit(X[:100])
        >>> tsne.transform(X[100:]).shape
        (20, 2)
        >>> bool((tsne.transform(X[:100]) == tsne.embedding_).all())
        True
        """
        check_is_fitted(self, "embedding_")
        if self._fit_X is None:
            raise ValueError(
                "this TSNE was fitted to an Affinities, without data that new samples could be "
                "compared with; fit it to data, or use Embedding.transform with their neighbours"
            )
        new = self._new_samples(X)
        with shown_log(self.verbose):
            positions = check_map(self.embedding_, self._fit_X.shape[0])
            fitted = FittedMap(self._fit_X, positions, *self._how_searched())
            return fitted.place(new, effective_threads(self.n_jobs), self.verbose)

    def _new_samples(self, X: Any, least: int = 1) -> Any:
        """Check samples that are to be placed, and the parameters by which they are."""
        self._check_parameters_since()
        with turned_into_numbers(X), np.errstate(over="ignore", invalid="ignore"):
            X = readable(X)
            new = validate_data(
                self,
                X,
                reset=False,
                accept_sparse="csr",
                ensure_min_samples=least,
                dtype=[computed_dtype(self._fit_X)],
                order="C",
            )
        check_type_read(new, "X", X)
        return check_new_samples(new, self._fit_X, self.metric)

    def _check_parameters_since(self) -> None:
        """Check the parameters once more: they may have been set since the fit."""
        self._validate_params()
        check_parameters(self._parameters())

    def _how_searched(self) -> tuple[Any, dict[str, Any] | None, RepulsionOptions, Frame | None]:
        """Return what a FittedMap has beside data and positions."""
        metric, frame = self._fit_frame or (None, None)
        repulsion = RepulsionOptions.of(self._parameters())
        return self.metric, self.metric_params, repulsion, frame if metric == self.metric else None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a file: parameters, data and map.

        Parameters
        ----------
        path : path-like
            The file: an npz archive of plain arrays, which is never unpickled. A callback is not
            kept; a metric that is a function cannot be saved.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> from acctsne import TSNE
        >>> X = np.random.default_rng(0).normal(size=(120, 5))
        >>> tsne = TSNE(perplexity=10).fit(X[:100])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tsne.save(Path(folder) / "map.npz")
        ...     loaded = TSNE.load(Path(folder) / "map.npz")
        >>> bool((loaded.transform(X[100:]) == tsne.transform(X[100:])).all())
        True
        """
        check_is_fitted(self, "embedding_")
        self._write(path, self._parameters(), self.embedding_, self._fit_X)

    def _write(
        self,
        path: str | os.PathLike[str],
        parameters: dict[str, Any],
        embedding: npt.NDArray[Any],
        X: Any,
    ) -> None:
        self._check_parameters_since()
        attributes = {name: getattr(self, name) for name in PLAIN_ATTRIBUTES if hasattr(self, name)}
        names = getattr(self, "feature_names_in_", None)
        write_estimator(path, FittedEstimator(parameters, attributes, embedding, X, names))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "TSNE":
        """Read a fitted estimator that :meth:`save` wrote.

        Parameters
        ----------
        path : path-like
            The file.

        Returns
        -------
        tsne : TSNE
            Ready to :meth:`transform`.
        """
        fitted = read_estimator(path)
        with incomplete(path):
            tsne = cls()
            unknown = set(fitted.parameters) - set(tsne._parameters())
            if unknown:
                raise ValueError(f"{sorted(unknown)[0]!r} is no parameter of TSNE")
            for name, value in fitted.parameters.items():
                setattr(tsne, name, value)
            tsne._validate_params()
        for name in PLAIN_ATTRIBUTES:
            if name in fitted.attributes:
                setattr(tsne, name, fitted.attributes[name])
        tsne.embedding_ = fitted.embedding
        tsne._fit_X = fitted.X
        if fitted.feature_names is not None:
            tsne.feature_names_in_ = fitted.feature_names
        return tsne

    @property
    def _n_features_out(self) -> int:
        """Number of columns of the embedding, for the names that set_output gives them."""
        return int(self.embedding_.shape[1])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []  # the parameter dtype decides
        return tags


def fit_with_checkpoint(tsne: TSNE, X: Any, checkpoint: Checkpoint) -> TSNE:
    """Fit an estimator, kept in a file now and then, from where the file says if it is resumed."""
    tsne._fit_checked(X, checkpoint)
    return tsne
