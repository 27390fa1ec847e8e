"""The layout and its optimisation, as an object that applications can hold."""

import os
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from acctsne import _core
from acctsne.affinities.affinities import Affinities, check_affinities, csr_arrays, form_of
from acctsne.compat.scikit_learn import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)
from acctsne.embedding.arguments import check_callbacks, check_fixed
from acctsne.embedding.optimizer_archive import read_optimizer, settings_and_arrays
from acctsne.embedding.transform import check_neighbors_in_map, place_new_points
from acctsne.files.archive import incomplete, read_archive, write_archive
from acctsne.forces.output_kernel import Dof
from acctsne.forces.repulsion import REPULSION_CONSTRAINTS, RepulsionOptions, check_method
from acctsne.init.layouts import layout_from_affinities
from acctsne.optimize.optimizer import Callback, Observers, Optimizer, layout_memory
from acctsne.optimize.schedule import (
    CHECK_EVERY,
    LOOK_EVERY,
    MAX_ITERATIONS,
    Phase,
    Ramp,
    longest_step,
)
from acctsne.optimize.state import OptimizerState
from acctsne.optimize.stopping import StoppingRules, Watch, log_end
from acctsne.runtime.checks import check_parameter_sizes
from acctsne.runtime.memory import room_for
from acctsne.runtime.progress import progress_bar, shown_log
from acctsne.runtime.threads import effective_threads

ARCHIVE_KIND = "embedding"

FEWER_DIMENSIONS = "Fewer dimensions or samples need less"

_OPTIMIZE_CONSTRAINTS: dict[str, Any] = {
    "n_iter": [Interval(Integral, 1, MAX_ITERATIONS, closed="both")],
    "exaggeration": [Interval(Real, 0, None, closed="neither")],
    "learning_rate": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
    "momentum": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="left")],
    "max_step": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
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
        check_affinities(affinities)
        given = {
            "n_components": n_components,
            "n_jobs": n_jobs,
            "method": method,
            "angle": angle,
            "force_error": force_error,
            "dof": dof,
        }
        validate_parameter_constraints(REPULSION_CONSTRAINTS, given, caller_name="Embedding")
        check_parameter_sizes(given)
        check_method(method, n_components)
        threads = effective_threads(n_jobs)
        random = check_random_state(random_state)
        n_samples = affinities.n_samples
        with room_for(
            layout_memory(n_samples, int(n_components), affinities.dtype),
            f"An embedding of {n_samples} samples in {n_components} dimensions",
            FEWER_DIMENSIONS,
        ):
            layout = layout_from_affinities(init, affinities, int(n_components), random, threads)
            self.affinities = affinities
            self._optimizer = Optimizer(
                form_of(affinities), layout, RepulsionOptions.of(given), threads
            )

    @classmethod
    def _of(cls, affinities: Affinities, optimizer: Optimizer) -> "Embedding":
        """Take over an optimiser as it is."""
        embedding = cls.__new__(cls)
        embedding.affinities = affinities
        embedding._optimizer = optimizer
        return embedding

    @property
    def positions(self) -> npt.NDArray[Any]:
        """The present layout: a copy, one row a sample."""
        return self._optimizer.positions

    @property
    def n_iter(self) -> int:
        """Iterations done so far."""
        return self._optimizer.n_iter

    @property
    def timings(self) -> dict[str, float]:
        """Seconds by step, and iterations by method."""
        return self._optimizer.timings

    def kl(self, exact: bool = False) -> float:
        """Compute the KL divergence of the present layout.

        Parameters
        ----------
        exact : bool, default=False
            With Z over all pairs in double precision; otherwise with the method's own Z.

        Returns
        -------
        kl : float
            The divergence from P without exaggeration; never negative.

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
            return self._optimizer.kl()
        positions = self.positions.astype(np.float64)
        arrays = csr_arrays(self.affinities.to_scipy().astype(np.float64))
        return _core.exact_kl(
            *arrays, positions, self._optimizer.output_kernel, self._optimizer.threads
        )

    def optimize(
        self,
        n_iter: int,
        *,
        exaggeration: float = 1.0,
        learning_rate: float | Literal["auto"] = "auto",
        momentum: float | Literal["auto"] = "auto",
        max_step: float | Literal["auto"] = "auto",
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
        max_step : float or "auto", default="auto"
            Longest step of a point. "auto" as in :class:`acctsne.TSNE`.
        fixed : array-like, default=None
            Points that stay exactly where they are: a mask, or their indices.
        callbacks : callable or list of callables, default=()
            Called as `callback(iteration, kl, positions)`, with the iteration counted from 0 over
            all calls of `optimize`; if one returns True, the optimisation ends. What one raises
            passes through, and the embedding holds the last finished iteration.
        callback_every : int, default=50
            They are called after iterations whose number, counted from 1, is a multiple of this.
        tol : float, default=0.0
            End when the KL divergence changes, in 40 iterations of this call, by less than this
            part of what was gained in all, over a map with all points in one place, and by less
            than three times this part of what is left. With another exaggeration than 1 it is not
            the KL divergence that falls, and the call does not end before its time.
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
        check_parameter_sizes(given)
        checked_callbacks = check_callbacks(callbacks)
        held = check_fixed(fixed, self.affinities.n_samples)
        if learning_rate == "auto":
            learning_rate = self.affinities.n_samples / exaggeration
        if max_step == "auto":
            max_step = longest_step(self._optimizer.output_kernel.scale)
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
            observers = Observers(
                callbacks=checked_callbacks,
                callback_every=int(callback_every),
                log=bool(verbose),
                progress=move_to and (lambda count: move_to(count - start)),
            )
            self._optimizer.hold(held)
            self._optimizer.forget_restraint()
            watch = Watch(StoppingRules(tol=float(tol)))
            ended = self._optimizer.run(phase, watch, observers)
            log_end(self.n_iter, ended or "n_iter")
            self._optimizer.log_restraint()
        return self

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
        return place_new_points(
            self.positions, neighbors, self._optimizer.repulsion, self._optimizer.threads
        )

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
        write_archive(path, ARCHIVE_KIND, *settings_and_arrays(self.affinities, self._optimizer))

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
            return cls._of(*read_optimizer(contents, threads))

    @classmethod
    def _restored(
        cls,
        affinities: Affinities,
        repulsion: RepulsionOptions,
        state: OptimizerState,
        threads: int,
    ) -> "Embedding":
        optimizer = Optimizer(form_of(affinities), state["points"], repulsion, threads)
        optimizer.restore(state)
        return cls._of(affinities, optimizer)

    def _parts(self) -> tuple[Affinities, RepulsionOptions, OptimizerState, int]:
        """Return what `_restored` takes."""
        optimizer = self._optimizer
        return self.affinities, optimizer.repulsion, optimizer.state(), optimizer.threads

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
        return self._restored(*self._parts())

    __copy__ = copy

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._restored, self._parts()

    def __repr__(self) -> str:
        n_samples, n_components = self.positions.shape
        return (
            f"Embedding(n_samples={n_samples}, n_components={n_components}, n_iter={self.n_iter})"
        )
