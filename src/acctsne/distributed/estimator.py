"""TSNE for several processes."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.utils.validation import check_array, check_is_fitted

from acctsne import estimator
from acctsne.compat.scikit_learn import feature_names_of
from acctsne.distributed.checkpoint import SharedCheckpoint
from acctsne.distributed.optimizer import OnFirstProcess
from acctsne.distributed.processes import Processes
from acctsne.distributed.rows import SharedRows, share_rows, stored_rows
from acctsne.distributed.stages import SharedStages
from acctsne.distributed.transform import SharedMap
from acctsne.embedding.arguments import check_callbacks
from acctsne.embedding.checkpoint import Checkpoint
from acctsne.embedding.transform import check_map
from acctsne.files.archive import RowsInParts
from acctsne.neighbors.metrics import native_metric
from acctsne.optimize.descent import Descent
from acctsne.optimize.optimizer import Callback
from acctsne.problem import Problem, check_parameters, problem_of_data
from acctsne.runtime.memory import room_for
from acctsne.runtime.progress import shown_log
from acctsne.runtime.threads import effective_threads
from acctsne.runtime.timer import StageTimer
from acctsne.stages import Stages

# Rows of data that are sent at a time to be written to a file.
SAVED_ROWS = 2**14

# Parameters that processes may have each its own of. Of an array as `init` each has its rows.
OWN_PARAMETERS = ("comm", "n_jobs", "verbose", "callback", "random_state", "metric_params")


class TSNE(estimator.TSNE):
    """t-SNE by the processes that an MPI launcher has started: the map that one would make.

    Every process makes one with the same parameters and calls `fit` with its rows of the data; the
    rows of all, in the order of ranks, are the samples. The map has the bits that
    :class:`acctsne.TSNE` gives for the same data in one process, for any number of processes and
    threads. Needs mpi4py, the extra `acctsne[mpi]`.

    On more than one process, these are refused: `init="spectral"` and `"multilevel"`,
    `method="exact"`, metrics other than euclidean, sqeuclidean, cosine and correlation, sparse
    data and `fixed` samples.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the map.

    comm : mpi4py.MPI.Comm, default=None
        The processes; None for all that were started together, `MPI.COMM_WORLD`.

    **parameters
        The parameters of :class:`acctsne.TSNE`. `n_jobs` are threads of each process; None shares
        the cores of a machine among the processes there. An array as `init` has the rows of this
        process. `callback` is called on the first process, with all positions; `verbose` shows what
        the first process says.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_rows, n_components)
        The places of the rows that this process gave; :meth:`gather` has all.

    timings_ : dict
        As of :class:`acctsne.TSNE`. For each stage also `STAGE_communication`, the seconds that it
        took to exchange data or to wait for the others, and `STAGE_bytes_sent`, the bytes that had
        to leave this process. "optimize" is the whole of the gradient descent; of its bytes,
        "halo", "charges" and "sums" are those of iterations, "relabel" those of numbering points
        anew, "positions" those of maps that were asked for or that the tree needed.

    Examples
    --------
    Run this with `mpiexec -n 4 python script.py`; it runs with one process as well.

    >>> import numpy as np
    >>> from acctsne.distributed import TSNE
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> tsne = TSNE(perplexity=10, random_state=0).fit(X)
    >>> tsne.embedding_.shape
    (200, 2)
    >>> tsne.gather().shape
    (200, 2)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **estimator.PARAMETER_CONSTRAINTS,
        "comm": "no_validation",
    }

    # Rank and number of the processes that share the last fit, and the way to them if it is known.
    _place: tuple[int, int]
    _connection: Processes | None = None

    def __init__(self, n_components: int = 2, *, comm: Any = None, **parameters: Any) -> None:
        super().__init__(n_components, **parameters)
        self.comm = comm

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted([*estimator.TSNE().get_params(deep=False), "comm"])

    def fit(self, X: Any, y: Any = None, *, fixed: npt.ArrayLike | None = None) -> "TSNE":
        """Embed the rows of all processes.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), path-like or StoredRows
            The rows of this process, any number of them; or the same npy, parquet, zarr or h5ad
            file on every process, of which each reads its part: a path, or what
            :func:`acctsne.io.open_rows` makes of a path and a key.
        y : None
            Ignored.
        fixed : None
            Samples cannot be held on several processes.

        Returns
        -------
        self : TSNE
            The fitted estimator.
        """
        self.fit_transform(X, fixed=fixed)
        return self

    def fit_transform(
        self, X: Any, y: Any = None, *, fixed: npt.ArrayLike | None = None
    ) -> npt.NDArray[Any]:
        """Embed the rows of all processes and return the places of those of this one.

        Parameters
        ----------
        X, y, fixed
            As in :meth:`fit`.

        Returns
        -------
        embedding : ndarray of shape (n_rows, n_components)
            The layout of this process's rows, of type `dtype`.
        """
        with self._together(fixed):
            embedding: npt.NDArray[Any] = super().fit_transform(X, fixed=fixed)
        return embedding

    def gather(self) -> npt.NDArray[Any]:
        """Return the places of the samples of all processes, on every one of them.

        Every process must call it.

        Returns
        -------
        embedding : ndarray of shape (n_samples, n_components)
            In the order of ranks, and of the rows that each gave.
        """
        check_is_fitted(self, "embedding_")
        if self._processes.size == 1:
            return np.asarray(self.embedding_).copy()
        return self._processes.joined(self.embedding_, self._given_ends)

    def __sklearn_clone__(self) -> "TSNE":
        """Return an unfitted copy for the same processes."""
        # A communicator is not one's own to copy, and most cannot be.
        comm, self.comm = self.comm, None
        try:
            made: TSNE = super().__sklearn_clone__()
        finally:
            self.comm = comm
        made.comm = comm
        return made

    @property
    def _processes(self) -> Processes:
        """The processes that share the last fit, which a copy of the estimator finds again."""
        if self._connection is None:
            found = Processes(self.comm)
            with found.agreeing():
                _check_place(self._place, (found.rank, found.size))
            found.check_simd_levels()
            self._connection = found
        return self._connection

    @_processes.setter
    def _processes(self, processes: Processes) -> None:
        self._connection = processes
        self._place = (processes.rank, processes.size)

    def __getstate__(self) -> dict[str, Any]:
        """Return what copies and pickles are made of: own rows, and no connection to others."""
        state = {**super().__getstate__()}
        state.pop("_connection", None)
        return state

    @contextmanager
    def _together(self, fixed: Any = None) -> Iterator[None]:
        """Check parameters, then let all processes end by an error if one does."""
        self._processes = Processes(self.comm)
        with self._processes.ending_together():
            if self._processes.size > 1:
                self._check_together(fixed)
            with self._shown_by_the_first():
                yield

    def _check_together(self, fixed: Any) -> None:
        """Check parameters, which must be the same on all processes."""
        self._processes.check_simd_levels()
        parameters = self.get_params(deep=False)
        with self._processes.agreeing():
            self._validate_params()
            check_parameters(parameters)
            check_callbacks(parameters["callback"])
            _refuse_unsupported(parameters, fixed)
        given = {
            name: (_meaning(name, value), _shown(value))
            for name, value in parameters.items()
            if name not in OWN_PARAMETERS
        }
        first = self._processes.bcast(given)
        with self._processes.agreeing():
            for name, (meaning, shown) in given.items():
                if meaning != first[name][0]:
                    raise ValueError(
                        f"{name} is {shown} here and {first[name][1]} on rank 0; all processes "
                        "must be given the same parameters"
                    )

    def _check_for_folder(self, path: Path) -> None:
        """Check parameters of a fit that is kept in a folder, by one process too."""
        self._validate_params()
        try:
            _refuse_unsupported(self.get_params(deep=False), None)
        except ValueError as error:  # of one process, for several were refused before
            raise ValueError(
                f"{path} is a folder, in which several processes keep a fit: {error}"
            ) from error

    @contextmanager
    def _shown_by_the_first(self) -> Iterator[None]:
        """Let only the first process log and draw progress."""
        verbose = self.verbose
        if self._processes.rank > 0:
            self.verbose = 0
        try:
            yield
        finally:
            self.verbose = verbose

    # The stages, where several processes do them otherwise than one.

    def _fit(
        self, X: Any, fixed: npt.ArrayLike | None = None, checkpoint: Checkpoint | None = None
    ) -> npt.NDArray[Any]:
        if self._processes.size == 1:
            stored = stored_rows(X)
            return super()._fit(X if stored is None else stored.read(), fixed, checkpoint)
        self.__dict__.pop("embedding_", None)  # an earlier fit's
        try:
            super()._fit(X, fixed, checkpoint)
        finally:
            if hasattr(self, "embedding_"):
                begin, end = [0, *self._given_ends][self._processes.rank :][:2]
                self.embedding_ = self.embedding_[begin:end].copy()
        return self.embedding_

    def _room(self, problem: Problem) -> AbstractContextManager[None]:
        size = self._processes.size
        if size == 1:
            return super()._room(problem)
        what = f"Each of {size} processes that fit {problem.n_samples} samples"
        return room_for(problem.least_memory() // size, what)

    def _timer(self) -> StageTimer:
        return _CountingTimer(self._processes)

    def _problem(self, X: Any, fixed: npt.ArrayLike | None = None) -> Problem:
        if self._processes.size == 1:
            return super()._problem(X, fixed)
        rows = share_rows(X, self._processes)
        self._keep_features(X, rows.shape[1])
        self._given_ends = rows.given_ends
        parameters = self.get_params(deep=False)
        parameters["n_jobs"] = self._own_threads()
        with self._processes.agreeing():
            threads = effective_threads(parameters["n_jobs"])
        self._processes.warn_of_bound_threads(threads)
        if isinstance(self.init, np.ndarray):
            parameters["init"] = self._whole_layout(self.init, rows)
        with self._processes.agreeing():
            return problem_of_data(parameters, rows)

    def _keep_features(self, X: Any, n_features: int) -> None:
        """Note how many features there are, and their names if they have some."""
        self.n_features_in_ = n_features
        self.__dict__.pop("feature_names_in_", None)  # an earlier fit's
        with self._processes.agreeing():
            mine = feature_names_of(X)
        every = self._processes.allgather(None if mine is None else tuple(mine))
        named = [(rank, names) for rank, names in enumerate(every) if names is not None]
        if not named:
            return
        first, expected = named[0]
        with self._processes.agreeing():
            for rank, names in named:
                if names != expected:
                    at = next(i for i in range(n_features) if names[i] != expected[i])
                    raise ValueError(
                        f"column {at} is {names[at]!r} on rank {rank} and {expected[at]!r} on rank "
                        f"{first}; all must give the same columns in the same order"
                    )
        self.feature_names_in_ = np.asarray(expected, dtype=object)

    def _own_threads(self) -> int:
        """Return what `n_jobs` is here; every process must call it, whatever its own is."""
        share = self._processes.threads_each()
        return share if self.n_jobs is None else self.n_jobs

    def _whole_layout(self, given: npt.NDArray[Any], rows: SharedRows) -> npt.NDArray[Any]:
        """Put together a layout of which each process has the rows that go with its data."""
        here = rows.given(self._processes.rank)
        expected = (here.stop - here.start, self.n_components)
        with self._processes.agreeing():
            if given.shape != expected:
                raise ValueError(
                    f"init has shape {given.shape}; expected {expected}, a row for each row of X "
                    "that this process gives"
                )
            mine = check_array(
                given, dtype=np.float64, order="C", ensure_min_samples=0, input_name="init"
            )
        return self._processes.joined(mine, rows.given_ends)

    def _stages(self) -> Stages:
        return super()._stages() if self._processes.size == 1 else SharedStages(self._processes)

    def _optimize(
        self,
        descent: Descent,
        problem: Problem,
        callbacks: list[Callback],
        timer: StageTimer,
        checkpoint: Checkpoint | None,
    ) -> None:
        if self._processes.size > 1:
            # Only the callbacks of the first process are called, and all processes stop for them at
            # the same iterations.
            some = self._processes.bcast(bool(callbacks))
            callbacks = [OnFirstProcess(callbacks, self._processes)] if some else []
        try:
            with timer.stage("optimize"):
                super()._optimize(descent, problem, callbacks, timer, checkpoint)
        finally:
            self.timings_.update(
                {name: value for name, value in timer.seconds.items() if "optimize" in name}
            )

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Place samples into the map, where one process would place them.

        Every process must call it.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            New samples of this process, any number of them, none too.

        Returns
        -------
        positions : ndarray of shape (n_new, n_components)
            Their places.
        """
        check_is_fitted(self, "embedding_")
        if self._processes.size == 1:
            return super().transform(X)
        with self._processes.ending_together(), self._shown_by_the_first():
            with self._processes.agreeing():
                new = self._new_samples(X, least=0)
            searched = self._how_searched()
            whole = self.gather()
            positions = check_map(whole, len(whole))
            fitted = SharedMap(self._fit_X, positions, *searched, self._processes)
            threads = effective_threads(self._own_threads())
            with shown_log(self.verbose):
                return fitted.place(new, threads, self.verbose)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to one file, which :meth:`acctsne.TSNE.load` reads, too.

        Every process must call it; the first one writes.

        Parameters
        ----------
        path : path-like
            As of :meth:`acctsne.TSNE.save`.
        """
        check_is_fitted(self, "embedding_")
        parameters = self.get_params(deep=False)
        del parameters["comm"]
        with self._processes.ending_together():
            embedding = self.gather()
            if self._processes.size == 1:
                self._write(path, parameters, embedding, self._fit_X)
                return
            X: Any = self._fit_X
            if isinstance(self.init, np.ndarray):
                parameters["init"] = self._whole_layout(self.init, X)
            blocks = self._processes.to_first(X.own, SAVED_ROWS)
            error: Exception | None = None
            try:
                if self._processes.rank == 0:
                    rows = RowsInParts(X.shape, X.dtype, blocks)
                    self._write(path, parameters, embedding, rows)
            except Exception as raised:
                error = raised
            # What the others send, to whatever end; they send it here.
            for _ in blocks:
                pass
            self._processes.agree(error)

    @classmethod
    def load(cls, path: str | os.PathLike[str], comm: Any = None) -> "TSNE":
        """Read a fitted estimator that :meth:`save`, or that of :class:`acctsne.TSNE`, wrote.

        Every process must call it, and reads all of the file to keep its rows.

        Parameters
        ----------
        path : path-like
            The file.
        comm : mpi4py.MPI.Comm, default=None
            The processes that call it; None for all.

        Returns
        -------
        tsne : TSNE
            Ready to :meth:`transform`. `embedding_` has the places of the rows that this process
            owns.
        """
        processes = Processes(comm)
        with processes.ending_together():
            processes.check_simd_levels()
            with processes.agreeing():
                tsne = super().load(path)
                assert isinstance(tsne, TSNE)
                if processes.size > 1:
                    tsne._check_loaded()
            tsne.comm, tsne._processes = comm, processes
            if processes.size > 1:
                tsne._keep_own_rows()
        return tsne

    def _check_loaded(self) -> None:
        """Refuse what several processes cannot do, whoever has saved it."""
        _refuse_unsupported(self.get_params(deep=False), None)
        if self._fit_X is None or issparse(self._fit_X):
            raise TypeError(
                "several processes place samples by dense data; this file has "
                f"{'no data' if self._fit_X is None else 'sparse data'}. Load it with acctsne.TSNE"
            )

    def _keep_own_rows(self) -> None:
        """Forget those rows of a whole estimator that other processes own."""
        n_samples = len(self.embedding_)
        own = self._processes.own_rows(n_samples)
        ends = [self._processes.own_rows(n_samples, r).stop for r in range(self._processes.size)]
        whole: Any = self._fit_X
        self._fit_X = SharedRows(whole[own].copy(), n_samples, ends)
        self._given_ends = ends
        self.embedding_ = self.embedding_[own].copy()
        if isinstance(self.init, np.ndarray):
            self.init = self.init[own].copy()


def _check_place(fitted: tuple[int, int], here: tuple[int, int]) -> None:
    if here != fitted:
        raise ValueError(
            f"this copy of an estimator has the rows of rank {fitted[0]} of {fitted[1]} processes, "
            f"and is used by rank {here[0]} of {here[1]}. Each process needs its own; save() "
            "writes one file, which any number of processes can load()"
        )


def fit_with_checkpoint(
    tsne: TSNE, X: Any, path: Path, *, every: int, resume: bool
) -> SharedCheckpoint:
    """Fit an estimator, kept in a folder now and then, from where that says if it is resumed.

    Every process calls it. Returns the checkpoint, which can be removed when the map is safe.
    """
    with tsne._together():
        tsne._check_for_folder(path)
        checkpoint = SharedCheckpoint(path, every, resume, tsne._processes)
        tsne._fit(X, checkpoint=checkpoint)
    return checkpoint


class _CountingTimer(StageTimer):
    """Collects, beside the seconds of stages, those of communication and the bytes that leave."""

    def __init__(self, processes: Processes) -> None:
        super().__init__()
        self._processes = processes

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add what passes inside to the stage's figures."""
        seconds, sent = self._processes.seconds, self._processes.bytes_sent
        try:
            with super().stage(name):
                yield
        finally:
            self._add(f"{name}_communication", self._processes.seconds - seconds)
            self._add(f"{name}_bytes_sent", self._processes.bytes_sent - sent)

    def _add(self, name: str, value: float) -> None:
        self.seconds[name] = self.seconds.get(name, 0) + value


def _meaning(name: str, value: Any) -> Any:
    """Return a parameter so that it can be compared between processes, however it is written."""
    if isinstance(value, np.ndarray):
        return _shown(value)
    if name == "dtype":
        return np.dtype(value).name
    if isinstance(value, list | tuple):
        return tuple(_meaning("", one) for one in value)
    return value.item() if isinstance(value, np.generic) else value


def _shown(value: Any) -> str:
    return "an array" if isinstance(value, np.ndarray) else repr(value)


def _refuse_unsupported(parameters: dict[str, Any], fixed: Any) -> None:
    """Say what several processes cannot do."""
    init, metric, params = (parameters[name] for name in ("init", "metric", "metric_params"))
    if isinstance(init, str) and init not in ("pca", "random"):
        raise ValueError(
            f"init={init!r} needs all affinities in one place; several processes start from "
            "'pca', 'random' or an array"
        )
    if parameters["method"] == "exact":
        raise ValueError(
            "method='exact' takes every pair for neighbours, which is for small data; use it in "
            "one process, or another method"
        )
    if native_metric(metric, params) is None:
        given = f"{metric!r} with metric_params={params!r}" if params else repr(metric)
        raise ValueError(
            f"metric={given} does not run natively; several processes search by 'euclidean', "
            "'sqeuclidean', 'cosine' and 'correlation'"
        )
    if fixed is not None:
        raise ValueError("samples cannot be held in place by several processes yet")
