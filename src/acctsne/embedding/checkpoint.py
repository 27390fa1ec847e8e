"""Files that keep an unfinished fit, so that it can go on after the machine or its user stopped."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from acctsne.embedding.descent import Descent
from acctsne.embedding.embedding import Embedding
from acctsne.files.archive import Contents, incomplete, read_archive, write_archive
from acctsne.optimize.stopping import Watch
from acctsne.runtime.progress import logger

ARCHIVE_KIND = "checkpoint"

# Parameters that change what is seen of a fit, not the map.
NOT_OF_THE_MAP = ("callback", "callback_every", "n_jobs", "verbose")


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

    def open(self, X: Any, parameters: Mapping[str, Any], threads: int) -> Descent | None:
        """Return what the file holds if the fit is to go on from there.

        Raises ValueError if it is of other data or parameters, in whose map it would not end.
        """
        of_the_map = {
            name: _plain(value) for name, value in parameters.items() if name not in NOT_OF_THE_MAP
        }
        of_the_map["dtype"] = np.dtype(parameters["dtype"]).name
        self._identity = {"data": fingerprint(X), "parameters": of_the_map}
        if not (self._resume and self.path.exists()):
            return None
        contents = read_archive(self.path, ARCHIVE_KIND)
        with incomplete(self.path):
            identity = contents.part("of")
            kept = {
                "data": identity.setting("data", str),
                "parameters": identity.setting("parameters", dict),
            }
            descent = Descent(
                Embedding._from_archive(contents, threads),
                float(contents.setting("recall", float, int)),
                contents.setting("tangled", bool),
                contents.setting("phase", int),
                _watch(contents),
            )
        self._check_identity(kept)
        logger.info("going on from %s after %d iterations", self.path, descent.embedding.n_iter)
        return descent

    def save(self, descent: Descent) -> None:
        """Write the file; the one before stays until all is written."""
        settings, arrays = descent.embedding._to_archive()
        settings |= {
            "of": self._identity,
            "recall": descent.recall,
            "tangled": descent.tangled,
            "phase": descent.phase,
            "watch": descent.watch and asdict(descent.watch),
        }
        write_archive(self.path, ARCHIVE_KIND, settings, arrays)

    def _check_identity(self, kept: dict[str, Any]) -> None:
        if kept["data"] != self._identity["data"]:
            raise ValueError(
                f"{self.path} is of a fit to other data; give the same data, or remove the file to "
                "begin anew"
            )
        now, before = self._identity["parameters"], kept["parameters"]
        for name in sorted({*now, *before}):
            if now.get(name) != before.get(name):
                raise ValueError(
                    f"{self.path} is of a fit with {name}={before.get(name)!r}, and now it is "
                    f"{now.get(name)!r}; give the same value, or remove the file to begin anew"
                )


def _watch(contents: Contents) -> Watch | None:
    """Take the watch over the present phase from a file."""
    if contents.setting("watch", dict, type(None)) is None:
        return None
    part = contents.part("watch")
    numbers = {
        name: part.setting(name, float, int)
        for name in ("tol", "min_grad_norm", "patience", "nothing", "best_kl", "best_iteration")
    }
    kls = [float(kl) for kl in part.setting("kls", list)]
    return Watch(**numbers, kls=kls)


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
