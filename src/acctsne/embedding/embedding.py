"""The layout and its optimisation, as an object that applications can hold."""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from acctsne import _core
from acctsne.affinities.affinities import Affinities, csr_arrays
from acctsne.compat.scikit_learn import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)
from acctsne.embedding.arguments import check_callbacks, check_fixed
from acctsne.embedding.transform import check_neighbors_in_map, place_new_points
from acctsne.files.archive import Contents, incomplete, read_archive, write_archive
from acctsne.forces.engine import ENGINE_CONSTRAINTS, Engine, check_method
from acctsne.forces.output_kernel import Dof, output_kernel
from acctsne.init.layouts import layout_from_affinities
from acctsne.optimize.optimizer import make_optimizer, run_phase
from acctsne.optimize.schedule import (
    CHECK_EVERY,
    LOOK_EVERY,
    MAX_ITERATIONS,
    MAX_STEP,
    Phase,
    Ramp,
)
from acctsne.optimize.state import read_state, split_state
from acctsne.optimize.stopping import Watch, log_end
from acctsne.runtime.progress import logger, progress_bar, shown_log
from acctsne.runtime.threads import effective_threads

Callback = Callable[[int, float, npt.NDArray[Any]], bool | None]

ARCHIVE_KIND = "embedding"

# How often momentum may be lowered, and the steps of a mean point be shortened, in one iteration
# before the log tells of it: hardly a map goes without (docs/tuning.md).
OFTEN_BRAKED = 1 / 3
OFTEN_TURNED = 1 / 16

# In fewer iterations than this, often means nothing.
FEWEST_ITERATIONS = 50

_OPTIMIZE_CONSTRAINTS: dict[str, Any] = {
    "n_iter": [Interval(Integral, 1, MAX_ITERATIONS, closed="both")],
    "exaggeration": [Interval(Real, 0, None, closed="neither")],
    "learning_rate": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
    "momentum": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="left")],
    "max_step": [Interval(Real, 0, None, closed="neither")],
    "callbacks": [callable, list, tuple],
    "callback_every": [Interval(Integral, 1, MAX_ITERATIONS, closed="both")],
    "tol": [Interval(Real, 0, 1, closed="left")],
    "verbose": ["verbose"],
}


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
        Dimension of the layout. More than three need method "auto" or "exact".

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
        given = {
            "n_components": n_components,
            "n_jobs": n_jobs,
            "method": method,
            "angle": angle,
            "force_error": force_error,
            "dof": dof,
        }
        validate_parameter_constraints(ENGINE_CONSTRAINTS, given, caller_name="Embedding")
        check_method(method, n_components)
        threads = effective_threads(n_jobs)
        layout = layout_from_affinities(
            init, affinities, n_components, check_random_state(random_state), threads
        )
        self._begin(affinities, layout, Engine.of(given), threads)

    def _begin(
        self, affinities: Affinities, layout: npt.NDArray[Any], engine: Engine, threads: int
    ) -> None:
        self.affinities = affinities
        self._engine = engine
        self._threads = threads
        self._optimizer = make_optimizer(affinities._P, layout, engine, threads)

    @classmethod
    def _of(
        cls, affinities: Affinities, layout: npt.NDArray[Any], engine: Engine, threads: int
    ) -> "Embedding":
        """Take arguments that were checked, and the layout as it is."""
        embedding = cls.__new__(cls)
        embedding._begin(affinities, layout, engine, threads)
        return embedding

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

        Examples
        --------
        >>> from acctsne import Affinities, Embedding
        >>> P = [[0, 2, 0], [2, 0, 1], [0, 1, 0]]
        >>> embedding = Embedding(Affinities.from_matrix(P), "random", random_state=0)
        >>> before = embedding.kl(exact=True)
        >>> embedding.optimize(50).kl(exact=True) < before
        True
        """
        if not exact:
            return float(self._optimizer.kl_divergence(self._threads))
        positions = self.positions.astype(np.float64)
        arrays = csr_arrays(self.affinities.to_scipy().astype(np.float64))
        kernel = output_kernel(self._engine.dof, positions.shape[1])
        return _core.exact_kl(*arrays, positions, kernel, self._threads)

    def optimize(
        self,
        n_iter: int,
        *,
        exaggeration: float = 1.0,
        learning_rate: float | Literal["auto"] = "auto",
        momentum: float | Literal["auto"] = "auto",
        max_step: float = MAX_STEP,
        fixed: npt.ArrayLike | None = None,
        callbacks: Callback | Sequence[Callback] = (),
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
            Factor on the attractive forces; 12 is usual for the first 50 iterations.
        learning_rate : float or "auto", default="auto"
            In scikit-learn's unit. "auto" is n_samples / exaggeration, the most that is used: a
            larger one is lowered to it, as the log says.
        momentum : float or "auto", default="auto"
            Part of the last step that is added to the next. "auto" begins with 0.95 and goes up to
            0.99, over all calls, as long as the KL divergence falls.
        max_step : float, default=5.0
            Longest step of a point.
        fixed : array-like, default=None
            Points that stay exactly where they are: a mask, or their indices.
        callbacks : callable or list of callables, default=()
            Called as `callback(iteration, kl, positions)`, with the iteration counted from 0 over
            all calls of `optimize`; if one returns True, the optimisation ends. What one raises
            passes through, and the embedding holds the last finished iteration.
        callback_every : int, default=50
            They are called after iterations whose number, counted from 1, is a multiple of this.
        tol : float, default=0.0
            End when the KL divergence falls, in 40 iterations of this call, by less than this part
            of what was gained in all, over a map with all points in one place. With another
            exaggeration than 1 it is not the KL divergence that falls, and the call does not end
            before its time.
        verbose : int, default=0
            1 logs, and draws progress on a terminal or in a notebook.

        Returns
        -------
        self : Embedding
            The same object.

        Examples
        --------
        >>> import numpy as np
        >>> from acctsne import Affinities, Embedding
        >>> X = np.random.default_rng(0).normal(size=(100, 5))
        >>> embedding = Embedding(Affinities.from_data(X, perplexity=10))
        >>> embedding.optimize(50, exaggeration=12).optimize(50, tol=1e-3).n_iter
        100
        """
        given = {
            "n_iter": n_iter,
            "exaggeration": exaggeration,
            "learning_rate": learning_rate,
            "momentum": momentum,
            "max_step": max_step,
            "callbacks": callbacks,
            "callback_every": callback_every,
            "tol": tol,
            "verbose": verbose,
        }
        validate_parameter_constraints(
            _OPTIMIZE_CONSTRAINTS, given, caller_name="Embedding.optimize"
        )
        checked_callbacks = check_callbacks(callbacks)
        held = check_fixed(fixed, self.affinities.n_samples)
        if learning_rate == "auto":
            learning_rate = self.affinities.n_samples / exaggeration
        phase = Phase(
            name="optimization",
            end=self.n_iter + int(n_iter),
            exaggeration=Ramp.constant(exaggeration),
            learning_rate=Ramp.constant(learning_rate),
            momentum=None if momentum == "auto" else float(momentum),
            max_step=float(max_step),
            # With exaggeration it is not the KL divergence that falls.
            look_every=LOOK_EVERY if tol > 0 and exaggeration == 1 else 0,
        )
        with (
            shown_log(verbose),
            progress_bar("iterations", int(n_iter), "it", verbose) as move_to,
        ):
            start = self.n_iter
            self._forget_restraint()
            ended = self._run(
                phase,
                watch=Watch(tol=float(tol)),
                fixed=held,
                callbacks=checked_callbacks,
                callback_every=int(callback_every),
                log=bool(verbose),
                progress=move_to and (lambda count: move_to(count - start)),
            )
            log_end(self.n_iter, ended or "n_iter")
            self._log_restraint()
        return self

    def _run(
        self,
        phase: Phase,
        *,
        watch: Watch | None = None,
        fixed: npt.NDArray[np.uint8] | None = None,
        callbacks: Sequence[Callback] = (),
        callback_every: int = CHECK_EVERY,
        keep: Callable[[], None] | None = None,
        keep_every: int = CHECK_EVERY,
        log: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> str:
        """Run a phase; returns why it ended before its time, or nothing.

        `keep` is called every `keep_every` iterations if it goes on.
        """
        optimizer = self._optimizer
        optimizer.hold(fixed)
        log_every = CHECK_EVERY if log else 0
        callback_every = callback_every if callbacks else 0
        look_every = phase.look_every if watch else 0
        keep_every = keep_every if keep else 0
        reason = ""
        if watch:
            watch.nothing = optimizer.kl_of_one_place

        def on_report(iteration: int, kl: float, gradient_norm: float) -> bool:
            nonlocal reason

            def due(every: int) -> bool:
                return every > 0 and (iteration + 1) % every == 0

            if due(log_every):
                logger.info(
                    "%s, iteration %d: KL divergence %.4f, gradient norm %.3g",
                    phase.name,
                    iteration + 1,
                    kl,
                    gradient_norm,
                )
            if due(callback_every):
                # Each one is called, whatever the others say, with a copy of its own.
                answers = [callback(iteration, kl, optimizer.points) for callback in callbacks]
                reason = "callback" if any(answers) else ""
            if watch and due(look_every):
                reason = reason or watch.reason_to_end(iteration, kl, gradient_norm)
            if keep and due(keep_every) and not reason:
                keep()
            return bool(reason)

        finished = run_phase(
            optimizer,
            phase,
            self._threads,
            report_every=[n for n in (log_every, callback_every, look_every, keep_every) if n],
            observer=on_report,
            progress=progress,
        )
        return "" if finished else reason

    def _release_affinities(self) -> None:
        """Forget the affinities, which are as large as the optimiser's own form of them.

        What needs them can then no longer be asked: the exact KL divergence, a copy or a file.
        """
        del self.affinities

    def _rest(self) -> None:
        """Forget momentum and gains."""
        self._optimizer.reset_momentum()

    def _disorder(self) -> float:
        """Tell how far apart neighbours are: 0 in one place, about 1 where all is at random."""
        return float(self._optimizer.disorder(self._threads))

    def _forget_restraint(self) -> None:
        """Begin to note anew what `_log_restraint` tells of."""
        self._optimizer.forget_restraint()

    def _log_restraint(self) -> None:
        """Log what kept the descent from swinging or flying apart, if anything did."""
        seen = self._optimizer.restraint
        if seen["lowered_rate"] > 0:
            logger.info(
                "learning rate lowered to n_samples / exaggeration, at most %.4g: no map follows "
                "longer steps",
                seen["lowered_rate"],
            )
        per_point = seen["turned"] / self._optimizer.rows
        n_iter = seen["iterations"]
        often = seen["braked"] > OFTEN_BRAKED * n_iter or per_point > OFTEN_TURNED * n_iter
        if often and n_iter >= FEWEST_ITERATIONS:
            logger.info(
                "steps too large: less momentum in %d of %d iterations, shorter steps %.3g times a "
                "point",
                seen["braked"],
                n_iter,
                per_point,
            )

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
        return place_new_points(self.positions, *neighbors, self._engine, self._threads)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the embedding, its affinities and the optimiser's state to a file.

        Parameters
        ----------
        path : path-like
            The file: an npz archive of plain arrays, which is never unpickled. Whatever was there
            stays until all is written.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from acctsne import Affinities, Embedding
        >>> P = [[0, 2, 0], [2, 0, 1], [0, 1, 0]]
        >>> embedding = Embedding(Affinities.from_matrix(P), "random", random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     embedding.optimize(20).save(Path(folder) / "map.npz")
        ...     Embedding.load(Path(folder) / "map.npz")
        Embedding(n_samples=3, n_components=2, n_iter=20)
        """
        write_archive(path, ARCHIVE_KIND, *self._to_archive())

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
        threads = effective_threads(n_jobs)
        contents = read_archive(path, ARCHIVE_KIND)
        with incomplete(path):
            return cls._from_archive(contents, threads)

    def _to_archive(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Return what JSON can hold, and the arrays."""
        scalars, state = split_state(self._optimizer.state())
        affinities, described = self.affinities._to_arrays()
        settings = {"embedding": asdict(self._engine), "state": scalars, "affinities": described}
        return settings, {**state, **affinities}

    @classmethod
    def _from_archive(cls, contents: Contents, threads: int) -> "Embedding":
        affinities = Affinities._from_archive(contents.part("affinities"), threads)
        state = read_state(contents.part("state"), affinities.n_samples, affinities.dtype)
        engine = read_engine(contents, state["points"].shape[1])
        return cls._restored(affinities, engine, state, threads)

    @classmethod
    def _restored(
        cls,
        affinities: Affinities,
        engine: Engine,
        state: dict[str, Any],
        threads: int,
    ) -> "Embedding":
        embedding = cls._of(affinities, state["points"], engine, threads)
        embedding._optimizer.restore(state)
        return embedding

    def copy(self) -> "Embedding":
        """Return an independent embedding in the same state; they share the affinities.

        Returns
        -------
        embedding : Embedding
            The copy.

        Examples
        --------
        >>> from acctsne import Affinities, Embedding
        >>> P = [[0, 2, 0], [2, 0, 1], [0, 1, 0]]
        >>> embedding = Embedding(Affinities.from_matrix(P), "random", random_state=0)
        >>> embedding.copy().optimize(10).n_iter, embedding.n_iter
        (10, 0)
        """
        return self._restored(self.affinities, self._engine, self._optimizer.state(), self._threads)

    __copy__ = copy

    def __reduce__(self) -> tuple[Any, ...]:
        state = self._optimizer.state()
        return type(self)._restored, (self.affinities, self._engine, state, self._threads)

    def __repr__(self) -> str:
        n_samples, n_components = self._optimizer.points.shape
        return (
            f"Embedding(n_samples={n_samples}, n_components={n_components}, n_iter={self.n_iter})"
        )


def read_engine(contents: Contents, n_components: int) -> Engine:
    """Take from a file how forces are computed; ValueError if that cannot be."""
    given = contents.part("embedding").settings
    engine_of = {**given, "n_components": n_components, "n_jobs": None}
    validate_parameter_constraints(ENGINE_CONSTRAINTS, engine_of, caller_name="Embedding")
    missing = {"method", "angle", "force_error", "dof"} - set(given)
    if missing:
        raise ValueError(f"it has no {sorted(missing)[0]}")
    check_method(given["method"], n_components)
    return Engine.of(given)
