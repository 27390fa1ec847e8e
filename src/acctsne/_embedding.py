"""The layout and its optimisation, as an object that applications can hold."""

import os
from collections.abc import Callable, Iterable
from math import gcd
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from acctsne import _core, quality
from acctsne._affinities import Affinities
from acctsne._dof import Dof, check_dof
from acctsne._init import layout_from_affinities
from acctsne._progress import logger, progress_bar, shown_log
from acctsne._schedule import CHECK_EVERY, MAX_STEP, SEEK_EVERY, Phase, Slowing, Stalled
from acctsne._store import read_archive, write_archive
from acctsne._threads import effective_threads
from acctsne._transform import check_neighbors_in_map, place_new_points
from acctsne._validate import check_fixed, check_method, check_positive

Callback = Callable[[int, float, npt.NDArray[Any]], bool | None]

ARCHIVE_KIND = "embedding"


class Embedding:
    """A layout of the samples of an :class:`Affinities`, to be optimised step by step.

    The state of the optimisation is kept: `optimize(m)` called n times gives the same bits as
    `optimize(n * m)`, for any number of threads, and also if the embedding was saved and loaded in
    between.

    Parameters
    ----------
    affinities : Affinities
        The joint probabilities; their precision is that of the layout.

    init : {"spectral", "multilevel", "random"} or ndarray, default="spectral"
        Where the samples start: one of :mod:`acctsne.init`, or an array of shape
        (n_samples, n_components).

    n_components : int, default=2
        Dimension of the layout: 1, 2 or 3.

    method : {"auto", "barnes_hut", "fft", "exact"}, default="auto"
        How repulsive forces are computed, as in :class:`TSNE`.

    angle : float, default=0.5
        Opening angle of Barnes-Hut.

    force_error : float, default=0.02
        The error of the repulsive forces that the grid aims at.

    dof : float or "sklearn", default=1.0
        Degrees of freedom, as in :class:`TSNE`.

    n_jobs : int, default=None
        Threads; None for all cores.

    random_state : int, RandomState instance or None, default=None
        Seed of a random start.

    Examples
    --------
    >>> import numpy as np
    >>> from acctsne import Affinities, Embedding
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> embedding = Embedding(Affinities.from_data(X, perplexity=10))
    >>> embedding.optimize(100, exaggeration=12).optimize(100).n_iter
    200
    >>> embedding.positions.shape
    (100, 2)
    """

    def __init__(
        self,
        affinities: Affinities,
        init: str | npt.ArrayLike = "spectral",
        *,
        n_components: int = 2,
        method: str = "auto",
        angle: float = 0.5,
        force_error: float = 0.02,
        dof: Dof = 1.0,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        if not isinstance(affinities, Affinities):
            raise TypeError(
                f"affinities must be an Affinities; got {type(affinities).__name__}. Make one with "
                "Affinities.from_data(X) or Affinities.from_matrix(P)"
            )
        check_method(method, n_components)
        self.affinities = affinities
        self._threads = effective_threads(n_jobs)
        self._settings: dict[str, Any] = {
            "method": method,
            "angle": float(angle),
            "force_error": float(force_error),
            "dof": dof,
        }
        layout = layout_from_affinities(
            init, affinities, n_components, check_random_state(random_state), self._threads
        )
        self._optimizer = self._make_optimizer(layout)

    def _make_optimizer(self, layout: npt.NDArray[Any]) -> Any:
        dof = check_dof(self._settings["dof"], layout.shape[1], type(self).__name__)
        kind = _core.Optimizer64 if self.affinities.dtype == np.float64 else _core.Optimizer32
        return kind(
            self.affinities.offsets,
            self.affinities.columns,
            self.affinities.values,
            layout,
            self._settings["method"],
            self._settings["angle"],
            self._settings["force_error"],
            *dof,
        )

    @property
    def positions(self) -> npt.NDArray[Any]:
        """The present layout: a copy, one row a sample."""
        positions: npt.NDArray[Any] = self._optimizer.points
        return positions

    @property
    def n_iter(self) -> int:
        """Iterations done so far."""
        return int(self._optimizer.iterations)

    @property
    def timings(self) -> dict[str, float]:
        """Seconds by step, and iterations by method."""
        by_method = self._optimizer.iterations_by_method
        return {
            **self._optimizer.seconds,
            **{f"iterations_{method}": count for method, count in by_method.items()},
        }

    def kl(self, exact: bool = False) -> float:
        """Compute the KL divergence of the present layout.

        Parameters
        ----------
        exact : bool, default=False
            With Z over all pairs in double precision; otherwise with the method's own Z.

        Returns
        -------
        kl : float
            Of P without exaggeration; never negative.
        """
        if not exact:
            return float(self._optimizer.kl_divergence(self._threads))
        return quality.exact_kl(
            None,
            self.positions,
            P=self.affinities.to_scipy(),
            dof=self._settings["dof"],
            n_jobs=self._threads,
        )

    def optimize(
        self,
        n_iter: int,
        *,
        exaggeration: float = 1.0,
        learning_rate: float | Literal["auto"] = "auto",
        momentum: float = 0.8,
        max_step: float = MAX_STEP,
        fixed: npt.ArrayLike | None = None,
        callbacks: Callback | Iterable[Callback] = (),
        callback_every: int = CHECK_EVERY,
        tol: float = 0.0,
        verbose: int = 0,
    ) -> "Embedding":
        """Do some iterations of gradient descent.

        Parameters
        ----------
        n_iter : int
            How many.
        exaggeration : float, default=1.0
            Factor on the attractive forces; 12 is usual for the first 250 iterations.
        learning_rate : float or "auto", default="auto"
            In scikit-learn's unit. "auto" is n_samples / exaggeration / 4.
        momentum : float, default=0.8
            Part of the last step that is added to the next.
        max_step : float, default=5.0
            Longest step of a point.
        fixed : array-like, default=None
            Points that stay exactly where they are: a mask, or their indices.
        callbacks : callable or list of callables, default=()
            Called as `callback(iteration, kl, positions)`, with the iteration counted from 0; if
            one returns True, the optimisation ends. What one raises passes through, and the
            embedding holds the last finished iteration.
        callback_every : int, default=50
            Iterations between calls.
        tol : float, default=0.0
            End when the KL divergence falls by less than this part of itself in 50 iterations.
        verbose : int, default=0
            1 logs, and draws a progress bar on a terminal.

        Returns
        -------
        self : Embedding
            The same object.
        """
        check_positive("n_iter", n_iter, integer=True)
        check_positive("callback_every", callback_every, integer=True)
        check_positive("exaggeration", exaggeration)
        check_positive("max_step", max_step)
        if learning_rate == "auto":
            learning_rate = self.affinities.n_samples / exaggeration / 4
        check_positive("learning_rate", learning_rate)
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum must be at least 0 and less than 1; got {momentum}")
        if tol < 0:
            raise ValueError(f"tol must not be negative; got {tol}")
        phase = Phase(
            name="optimization",
            end=self.n_iter + int(n_iter),
            exaggeration=float(exaggeration),
            learning_rate=float(learning_rate),
            momentum=float(momentum),
            max_step=float(max_step),
            may_stop=tol > 0,
        )
        with (
            shown_log(verbose),
            progress_bar("iterations", int(n_iter), "it", verbose) as move_to,
        ):
            start = self.n_iter
            self._run(
                phase,
                fixed=check_fixed(fixed, self.affinities.n_samples),
                callbacks=[callbacks] if callable(callbacks) else list(callbacks),
                callback_every=int(callback_every),
                tol=tol,
                log=bool(verbose),
                progress=move_to and (lambda count: move_to(count - start)),
            )
        return self

    def _run(
        self,
        phase: Phase,
        *,
        fixed: npt.NDArray[np.uint8] | None = None,
        callbacks: Iterable[Callback] = (),
        callback_every: int = CHECK_EVERY,
        tol: float = 0.0,
        min_grad_norm: float = 0.0,
        patience: int = -1,
        log: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> str:
        """Run a phase to its end; returns why it ended."""
        optimizer = self._optimizer
        if phase.restart:
            optimizer.rest()
        optimizer.hold(fixed)
        callbacks = list(callbacks)
        slowing, stalled = Slowing(), Stalled(tol)
        reason = ""

        def on_report(iteration: int, kl: float, gradient_norm: float) -> bool:
            nonlocal reason
            number = iteration + 1
            if log and number % CHECK_EVERY == 0:
                logger.info(
                    "%s, iteration %d: KL divergence %.4f, gradient norm %.3g",
                    phase.name,
                    number,
                    kl,
                    gradient_norm,
                )
            if callbacks and number % callback_every == 0:
                positions = optimizer.points
                # Each one is called, whatever the others say.
                answers = [callback(iteration, kl, positions) for callback in callbacks]
                if any(answers):
                    reason = "callback"
            if phase.seek_end and number % SEEK_EVERY == 0 and slowing(kl):
                reason = reason or "slowing"
            if phase.may_stop and number % CHECK_EVERY == 0 and stalled(kl):
                reason = reason or "tol"
            return bool(reason)

        report_every = gcd(
            CHECK_EVERY if log or (phase.may_stop and tol > 0) else 0,
            callback_every if callbacks else 0,
            SEEK_EVERY if phase.seek_end else 0,
        )
        stopped: str = optimizer.run(
            iterations=max(phase.end - self.n_iter, 0),
            exaggeration=phase.exaggeration,
            learning_rate=phase.learning_rate,
            momentum=phase.momentum,
            max_step=phase.max_step,
            check_every=CHECK_EVERY if phase.may_stop else 0,
            min_gradient_norm=min_grad_norm,
            patience=patience,
            callback_every=report_every,
            callback=on_report if report_every else None,
            progress=progress,
            threads=self._threads,
        )
        return reason or stopped

    def transform(self, indices: npt.ArrayLike, distances: npt.ArrayLike) -> npt.NDArray[Any]:
        """Place new samples, given their neighbours, into the present layout, which stays.

        Parameters
        ----------
        indices : array-like of shape (n_new, n_neighbors), int
            The nearest samples of the embedding, nearest first; some 15 of them are enough.
        distances : array-like of shape (n_new, n_neighbors)
            Their distances, whose squares enter a Gaussian.

        Returns
        -------
        positions : ndarray of shape (n_new, n_components)
            The same for a sample alone or in any batch.

        Examples
        --------
        >>> import numpy as np
        >>> from acctsne import Affinities, Embedding
        >>> X = np.random.default_rng(0).normal(size=(100, 5))
        >>> embedding = Embedding(Affinities.from_data(X, perplexity=10)).optimize(250)
        >>> embedding.transform([[3, 14, 15]], [[0.1, 0.2, 0.3]]).shape
        (1, 2)
        """
        neighbors = check_neighbors_in_map(indices, distances, self.affinities.n_samples)
        positions = self.positions
        return place_new_points(
            positions,
            *neighbors,
            method=self._settings["method"],
            angle=self._settings["angle"],
            force_error=self._settings["force_error"],
            dof=check_dof(self._settings["dof"], positions.shape[1], type(self).__name__),
            threads=self._threads,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the embedding, its affinities and the optimiser's state to a file.

        Parameters
        ----------
        path : path-like
            The file: an npz archive of plain arrays, which is never unpickled.
        """
        state = self._optimizer.state()
        scalars = {name: state.pop(name) for name in ("iterations", "relabelled_at")}
        affinities, described = self.affinities._to_arrays()
        settings = {"embedding": self._settings, "state": scalars, "affinities": described}
        write_archive(path, ARCHIVE_KIND, settings, {**state, **affinities})

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, n_jobs: int | None = None) -> "Embedding":
        """Read an embedding that :meth:`save` wrote.

        Parameters
        ----------
        path : path-like
            The file.
        n_jobs : int, default=None
            Threads; None for all cores.

        Returns
        -------
        embedding : Embedding
            It goes on where the saved one stood.
        """
        settings, arrays = read_archive(path, ARCHIVE_KIND)
        names = ("points", "updates", "gains", "mean", "order")
        try:
            state = {name: arrays.pop(name) for name in names}
            affinities = Affinities._from_arrays(arrays, settings["affinities"])
            return cls._restored(
                affinities, settings["embedding"], {**state, **settings["state"]}, n_jobs
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{os.fspath(path)} is not a complete acctsne file: {error}"
            ) from error

    @classmethod
    def _restored(
        cls,
        affinities: Affinities,
        settings: dict[str, Any],
        state: dict[str, Any],
        n_jobs: int | None,
    ) -> "Embedding":
        embedding = cls.__new__(cls)
        embedding.affinities = affinities
        embedding._settings = dict(settings)
        embedding._threads = effective_threads(n_jobs)
        embedding._optimizer = embedding._make_optimizer(state["points"])
        embedding._optimizer.restore(**state)
        return embedding

    def copy(self) -> "Embedding":
        """Return an independent embedding in the same state; they share the affinities.

        Returns
        -------
        embedding : Embedding
            The copy.
        """
        return self._restored(
            self.affinities, self._settings, self._optimizer.state(), self._threads
        )

    __copy__ = copy

    def __reduce__(self) -> tuple[Any, ...]:
        state = self._optimizer.state()
        return type(self)._restored, (self.affinities, self._settings, state, self._threads)

    def __repr__(self) -> str:
        n_samples, n_components = self._optimizer.points.shape
        return (
            f"Embedding(n_samples={n_samples}, n_components={n_components}, n_iter={self.n_iter})"
        )
