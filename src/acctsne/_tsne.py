"""The estimator."""

from collections.abc import Callable
from math import gcd
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.metrics.pairwise import _VALID_METRICS
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from acctsne import _core
from acctsne._affinities import Affinities, joint_probabilities
from acctsne._dof import DOF_CONSTRAINTS, Dof, output_kernel
from acctsne._init import initial_layout
from acctsne._neighbors import find_neighbors
from acctsne._progress import StageTimer, logger, progress_bar, shown_log
from acctsne._schedule import Phase, make_schedule
from acctsne._similarity import Similarity
from acctsne._validate import METHODS, Problem, check_problem

# Iterations between evaluations of the KL divergence, where the stopping rules look.
CHECK_EVERY = 50


class TSNE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """t-distributed stochastic neighbour embedding.

    A drop-in for :class:`sklearn.manifold.TSNE`: same parameters, same meaning, same attributes.
    All steps run in a native core on every core allowed, and give the same bits for any number of
    threads.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the embedding: 1, 2 or 3.

    perplexity : float, default=30.0
        The effective number of neighbours of each sample; usually between 5 and 50. Must be
        less than the number of samples.

    early_exaggeration : float, default=12.0
        Factor on the attractive forces in the first phase, which forms the clusters.

    learning_rate : float or "auto", default="auto"
        In scikit-learn's unit: four times as much in bhtsne, FIt-SNE and openTSNE makes the same
        step. "auto" is `n_samples / exaggeration / 4` with the exaggeration of each phase if
        `schedule="fast"`, and `max(n_samples / early_exaggeration / 4, 50)` throughout if
        `schedule="sklearn"`.

    max_iter : int, default=1000
        Iterations in all; at least 250.

    n_iter_without_progress : int, default=300
        Stop after so many iterations without a smaller KL divergence, looked at every 50 iterations
        after early exaggeration. -1 stops at the first such look.

    min_grad_norm : float, default=1e-7
        Stop when the gradient's norm is not larger, looked at every 50 iterations after early
        exaggeration.

    metric : str or callable, default="euclidean"
        Distance between samples: "euclidean" runs natively, any other of scikit-learn's through
        scikit-learn. "precomputed" takes X as a square matrix of distances, or (Barnes-Hut) a
        sparse graph of them. It is the square of the distance that enters the Gaussian kernel,
        whatever the metric.

    metric_params : dict, default=None
        More arguments for the metric.

    init : {"pca", "random", "spectral", "multilevel"} or ndarray, default="pca"
        Initial layout: one that :mod:`acctsne.init` makes, or an array of shape
        (n_samples, n_components). Points in the very same place are moved slightly apart.

    verbose : int, default=0
        1 logs stages and iterations to the logger "acctsne" (shown on stderr if logging is not
        configured) and draws a progress bar on a terminal.

    random_state : int, RandomState instance or None, default=None
        Seed of the random initial layout.

    method : {"auto", "barnes_hut", "fft", "exact"}, default="auto"
        How repulsive forces are computed. "barnes_hut" walks a tree, O(N log N), in 1 to 3
        dimensions. "fft" convolves on a grid, O(N) plus the area of the map, in 1 and 2 dimensions;
        a map too wide for the grid goes to the tree. "auto" takes whichever is fastest for the
        number of points and the map's present width, all pairs included. "exact" sums over all
        pairs and also makes all samples neighbours of each other, so that memory grows with the
        square of their number.

    angle : float, default=0.5
        For Barnes-Hut: smaller is more accurate and slower. The force error is at most that of
        scikit-learn at the same value, about 2 % at 0.5.

    force_error : float, default=0.02
        For the grid: the relative error of the repulsive forces that its spacing aims at.

    n_jobs : int, default=None
        Threads for every stage. None or -1: all cores that affinity mask, cgroup quota and
        `OMP_NUM_THREADS` allow.

    schedule : {"fast", "sklearn"}, default="fast"
        "fast" raises the learning rate to n_samples / 4 after early exaggeration and keeps momentum
        at 0.8, which reaches a lower KL divergence in the same iterations; steps longer than 5 are
        shortened. "sklearn" follows scikit-learn's schedule step by step.

    early_exaggeration_iter : int, default=250
        Iterations of early exaggeration, part of `max_iter`.

    callback : callable, default=None
        Called as `callback(iteration, kl_divergence, embedding)`, with a copy of the embedding,
        every `callback_every` iterations; returning True stops the fit.

    callback_every : int, default=50
        Iterations between calls of `callback`.

    dtype : numpy.float32 or numpy.float64, default=numpy.float32
        Precision of affinities and layout. Sums that need more are always in double precision, and
        so are the distances that decide who is a neighbour.

    dof : float or "sklearn", default=1.0
        Degrees of freedom of the similarity in the embedding, `(1 + d^2 / dof) ** -dof`, from 0.001
        to 1000, as openTSNE and FIt-SNE define them. Below 1 the tails are heavier: clusters come
        apart into finer ones [1]_, and the map takes more iterations to settle. Above 1 they are
        lighter, up to the Gaussian of SNE. The default is 1 in every dimension. "sklearn" takes
        scikit-learn's similarity, which differs in 3-D only: Student's with two degrees of freedom,
        `(1 + d^2 / 2) ** -1.5`. The gradient is the derivative of that objective; scikit-learn's
        own is not, there.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        The layout, of type `dtype`.

    kl_divergence_ : float
        KL divergence of `embedding_`, with the method's own sum Z; `acctsne.quality.exact_kl` gives
        the exact value.

    n_iter_ : int
        Index of the last iteration, counted from 0, as scikit-learn has it.

    learning_rate_ : float
        Learning rate of the early exaggeration phase.

    n_features_in_ : int
        Number of features seen during fit.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X has column names that are all strings.

    timings_ : dict
        Seconds by step: "knn", "bsp", "symmetrize", "init", "tree_building", "summarization",
        "attractive", "repulsive", "update", "kl_divergence", "relabel", and "total". Also how many
        iterations each method computed: "iterations_fft" and so on.

    Notes
    -----
    Ctrl-C is answered within 0.2 s while native code runs, which is all but the initial PCA and the
    rotation before the neighbour search: KeyboardInterrupt is raised, and the attributes hold the
    layout of the last finished iteration.

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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "perplexity": [Interval(Real, 0, None, closed="neither")],
        "early_exaggeration": [Interval(Real, 1, None, closed="left")],
        "learning_rate": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 250, None, closed="left")],
        "n_iter_without_progress": [Interval(Integral, -1, None, closed="left")],
        "min_grad_norm": [Interval(Real, 0, None, closed="left")],
        "metric": [StrOptions(set(_VALID_METRICS) | {"precomputed"}), callable],
        "metric_params": [dict, None],
        "init": [StrOptions({"pca", "random", "spectral", "multilevel"}), np.ndarray],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "method": [StrOptions(set(METHODS))],
        "angle": [Interval(Real, 0, 1, closed="both")],
        "force_error": [Interval(Real, 1e-4, 0.2, closed="both")],
        "n_jobs": [None, Integral],
        "schedule": [StrOptions({"fast", "sklearn"})],
        "early_exaggeration_iter": [Interval(Integral, 0, None, closed="left")],
        "callback": [callable, None],
        "callback_every": [Interval(Integral, 1, None, closed="left")],
        "dtype": "no_validation",  # checked in _validate, with the value in the message
        "dof": DOF_CONSTRAINTS,
    }

    embedding_: npt.NDArray[Any]
    kl_divergence_: float
    n_iter_: int
    learning_rate_: float
    timings_: dict[str, float]

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float = 30.0,
        early_exaggeration: float = 12.0,
        learning_rate: float | Literal["auto"] = "auto",
        max_iter: int = 1000,
        n_iter_without_progress: int = 300,
        min_grad_norm: float = 1e-7,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: dict[str, Any] | None = None,
        init: str | npt.NDArray[Any] = "pca",
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
        method: str = "auto",
        angle: float = 0.5,
        n_jobs: int | None = None,
        schedule: Literal["fast", "sklearn"] = "fast",
        early_exaggeration_iter: int = 250,
        callback: Callable[[int, float, npt.NDArray[Any]], bool | None] | None = None,
        callback_every: int = 50,
        dtype: npt.DTypeLike = np.float32,
        force_error: float = 0.02,
        dof: Dof = 1.0,
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

    def fit(self, X: Any, y: Any = None) -> "TSNE":
        """Embed X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Samples in rows; with `metric="precomputed"`, their distances.
        y : None
            Ignored.

        Returns
        -------
        self : TSNE
            The fitted estimator.
        """
        self.fit_transform(X)
        return self

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: Any = None) -> npt.NDArray[Any]:
        """Embed X and return the embedding.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Samples in rows; with `metric="precomputed"`, their distances.
        y : None
            Ignored.

        Returns
        -------
        embedding : ndarray of shape (n_samples, n_components)
            The layout, of type `dtype`.
        """
        timer = StageTimer()
        with shown_log(self.verbose):
            problem = check_problem(self, X)
            logger.info(
                "%d samples, %s, %s, %d threads, SIMD level %s",
                problem.n_samples,
                problem.method,
                problem.dtype.name,
                problem.threads,
                _core.build_info()["simd_level"],
            )
            with timer.stage("knn"):
                neighbors = list(find_neighbors(problem, self.verbose))
            # Handed over for good: together they are as large as P.
            similarity = Similarity("gaussian", (problem.perplexity,))
            P = joint_probabilities(
                neighbors.pop(0), neighbors.pop(0), similarity, problem.threads, timer
            )
            with timer.stage("init"):
                layout = initial_layout(problem, check_random_state(self.random_state), P)
            logger.info(
                "affinities in %.2f s (neighbours %.2f s)",
                timer.total(),
                timer.seconds["knn"],
            )
            self._optimize(problem, P, layout, timer)
        return self.embedding_

    def _optimize(
        self,
        problem: Problem,
        P: Affinities,
        layout: npt.NDArray[Any],
        timer: StageTimer,
    ) -> None:
        schedule = make_schedule(
            self.schedule,
            problem.n_samples,
            self.max_iter,
            self.early_exaggeration,
            self.early_exaggeration_iter,
            self.learning_rate,
        )
        self.learning_rate_ = schedule[0].learning_rate
        kind = _core.Optimizer64 if problem.dtype == np.float64 else _core.Optimizer32
        optimizer = kind(
            P.offsets,
            P.columns,
            P.values,
            layout,
            problem.method,
            self.angle,
            self.force_error,
            *output_kernel(self.dof, problem.n_components),
        )
        try:
            with progress_bar("iterations", self.max_iter, "it", self.verbose) as move_to:
                for phase in schedule:
                    stopped = self._run_phase(phase, optimizer, problem.threads, move_to)
                    if stopped != "finished":
                        logger.info(
                            "stopped after %d iterations: %s", optimizer.iterations, stopped
                        )
                        break
            self.kl_divergence_ = optimizer.kl_divergence(problem.threads)
            logger.info(
                "KL divergence %.4f after %d iterations", self.kl_divergence_, optimizer.iterations
            )
        finally:
            # Also after Ctrl-C or an error in the callback: the layout of the last finished
            # iteration.
            self.embedding_ = optimizer.points
            self.n_iter_ = optimizer.iterations - 1
            self.timings_ = {**timer.seconds, **optimizer.seconds, "total": timer.total()}
            used = optimizer.iterations_by_method
            self.timings_.update({f"iterations_{method}": n for method, n in used.items()})
            logger.info(
                "repulsion: %s", ", ".join(f"{n} iterations {method}" for method, n in used.items())
            )

    def _run_phase(
        self,
        phase: Phase,
        optimizer: Any,
        threads: int,
        progress: Callable[[int], None] | None,
    ) -> str:
        if phase.restart:
            optimizer.rest()

        def on_report(iteration: int, kl: float, gradient_norm: float) -> bool:
            number = iteration + 1
            if self.verbose and number % CHECK_EVERY == 0:
                logger.info(
                    "%s, iteration %d: KL divergence %.4f, gradient norm %.3g",
                    phase.name,
                    number,
                    kl,
                    gradient_norm,
                )
            if self.callback is not None and number % self.callback_every == 0:
                return bool(self.callback(iteration, kl, optimizer.points))
            return False

        report_every = CHECK_EVERY if self.verbose else 0
        if self.callback is not None:
            report_every = gcd(report_every, self.callback_every)
        stopped: str = optimizer.run(
            iterations=phase.iterations,
            exaggeration=phase.exaggeration,
            learning_rate=phase.learning_rate,
            momentum=phase.momentum,
            max_step=phase.max_step,
            check_every=CHECK_EVERY if phase.may_stop else 0,
            min_gradient_norm=self.min_grad_norm,
            patience=max(self.n_iter_without_progress, 0),
            callback_every=report_every,
            callback=on_report if report_every else None,
            progress=progress,
            threads=threads,
        )
        return stopped

    @property
    def _n_features_out(self) -> int:
        """Number of columns of the embedding, for the names that set_output gives them."""
        return int(self.embedding_.shape[1])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.input_tags.sparse = True
        return tags
