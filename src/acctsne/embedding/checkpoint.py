"""Files that keep an unfinished fit, so that it can go on after the machine or its user stopped."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
from scipy.sparse import issparse

from acctsne.affinities.affinities import Affinities
from acctsne.embedding.optimizer_archive import read_optimizer, settings_and_arrays
from acctsne.files.archive import Contents, incomplete, read_archive, write_archive
from acctsne.optimize.descent import Descent
from acctsne.optimize.optimizer import Optimizer
from acctsne.optimize.schedule import Phase, Start
from acctsne.optimize.stopping import StoppingRules, Watch
from acctsne.runtime.progress import logger

ARCHIVE_KIND = "checkpoint"

# Parameters that change what is seen of a fit, not the map.
NOT_OF_THE_MAP = ("callback", "callback_every", "comm", "n_jobs", "verbose")


class OtherFit(ValueError):  # noqa: N818
    """What was kept belongs to another fit."""


class Checkpoint:
    """Where a fit is kept every so many iterations.

    Parameters
    ----------
    path : Path
        The file.
    every : int
        Iterations between two writes, counted from the beginning of the fit.
    resume : bool
        Go on from the file if it is there.
    """

    def __init__(self, path: Path, every: int, resume: bool) -> None:
        self.path = path
        self.every = every
        self._resume = resume
        self._identity: dict[str, Any] = {}
        self._P: Affinities

    def open(self, X: Any, parameters: Mapping[str, Any], threads: int) -> Descent | None:
        """Return what the file holds if the fit is to go on from there.

        Raises ValueError if it is of other data or parameters, in whose map it would not end.
        """
        self._identity = self._identity_of(X, of_the_map(parameters))
        if not (self._resume and self.exists()):
            return None
        descent = self._read(threads)
        logger.info("going on from %s after %d iterations", self.path, descent.optimizer.n_iter)
        return descent

    def keep_affinities(self, P: Affinities) -> None:
        """Note the affinities of a fit that begins, which are written with everything else."""
        self._P = P

    def check_place(self, descent: Descent, schedule: Sequence[Phase]) -> None:
        """Refuse a descent that was kept at a place which its schedule does not have.

        It would end there, as if all were done.
        """
        with incomplete(self.path):
            phase, iterations = descent.phase, descent.optimizer.n_iter
            if not 0 <= phase < len(schedule):
                raise ValueError(f"phase is {phase!r:.50}; there are {len(schedule)}")
            # A phase that a rule may end has no iteration that the next must begin with.
            whole = (before.end for before in schedule[:phase] if not before.look_every)
            begin = max(whole, default=0)
            end = max(begin, schedule[phase].end)
            if not begin <= iterations <= end:
                raise ValueError(
                    f"iterations are {iterations}, and phase {phase} has those from {begin} to "
                    f"{end}"
                )

    def save(self, descent: Descent) -> None:
        """Write the file; the one before stays until all is written."""
        settings, arrays = settings_and_arrays(self._P, descent.optimizer)
        settings |= self._described(descent)
        write_archive(self.path, ARCHIVE_KIND, settings, arrays)

    def exists(self) -> bool:
        """Say whether there is something to go on from."""
        return self.path.exists()

    def remove(self) -> None:
        """Remove what is no longer needed."""
        self.path.unlink(missing_ok=True)

    def _identity_of(self, X: Any, parameters: dict[str, Any]) -> dict[str, Any]:
        return {"data": fingerprint(X), "parameters": parameters}

    def _read(self, threads: int) -> Descent:
        contents = read_archive(self.path, ARCHIVE_KIND)
        self._check_identity(contents, self.path)
        with incomplete(self.path):
            self._P, optimizer = read_optimizer(contents, threads)
            return descent_of(contents, optimizer)

    def _described(self, descent: Descent) -> dict[str, Any]:
        """Return what is kept beside affinities and state."""
        return {
            "of": self._identity,
            "recall": descent.recall,
            "start": descent.start,
            "flat": descent.flat,
            "phase": descent.phase,
            "watch": descent.watch and asdict(descent.watch),
        }

    def _check_identity(self, contents: Contents, path: Path) -> None:
        """Refuse what was kept of a fit to other data or with other parameters."""
        with incomplete(path):
            kept = contents.part("of")
            data, before = kept.setting("data", str), kept.setting("parameters", dict)
        if data != self._identity["data"]:
            raise OtherFit(
                f"{self.path} is of a fit to other data; give the same data, or remove it to begin "
                "anew"
            )
        now = self._identity["parameters"]
        for name in sorted({*now, *before}):
            if now.get(name) != before.get(name):
                raise OtherFit(
                    f"{self.path} is of a fit with {name}={before.get(name)!r}, and now it is "
                    f"{now.get(name)!r}; give the same value, or remove it to begin anew"
                )


def of_the_map(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that a map depends on, as what JSON gives back unchanged."""
    chosen = {
        name: _plain(value) for name, value in parameters.items() if name not in NOT_OF_THE_MAP
    }
    return {**chosen, "dtype": np.dtype(parameters["dtype"]).name}


def descent_of(contents: Contents, optimizer: Optimizer) -> Descent:
    """Put together a descent from what `_described` kept; ValueError if it is damaged."""
    return Descent(
        optimizer,
        contents.number("recall"),
        _start(contents),
        contents.setting("flat", bool),
        contents.setting("phase", int),
        _watch(contents),
    )


def _start(contents: Contents) -> Start:
    start = contents.setting("start", str)
    if start not in get_args(Start):
        raise ValueError(f"start is {start!r:.50}")
    return cast(Start, start)


def _watch(contents: Contents) -> Watch | None:
    """Take the watch over the present phase from a file."""
    if contents.setting("watch", dict, type(None)) is None:
        return None
    part = contents.part("watch")
    # Rules that never apply are infinite.
    given = part.part("rules")
    rules = {field.name: given.number(field.name, finite=False) for field in fields(StoppingRules)}
    return Watch(
        StoppingRules(**rules),
        kl_of_one_place=part.number("kl_of_one_place", finite=False),
        flat=part.setting("flat", bool),
        best_kl=part.number("best_kl", finite=False),
        best_iteration=part.setting("best_iteration", int),
        kls=part.numbers("kls"),
    )


def fingerprint(X: Any) -> str:
    """Return a digest of data, whatever its memory layout.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.ones((3, 2))
    >>> fingerprint(X) == fingerprint(np.asfortranarray(X))
    True
    >>> fingerprint(X) == fingerprint(X.T)
    False
    """
    arrays = (X.indptr, X.indices, X.data) if issparse(X) else (X,)
    digest = hashlib.sha256(repr(X.shape).encode())
    for array in arrays:
        digest.update(array.dtype.str.encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    """Make of a parameter what JSON gives back unchanged."""
    if isinstance(value, np.ndarray):
        return f"array {fingerprint(value)}"
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    return value if isinstance(value, int | float | str | None) else repr(value)
