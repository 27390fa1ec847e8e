"""A folder that keeps an unfinished fit of several processes, for any number of them to go on from.

The affinities are written once, those of own rows by each process. Every generation has a file of
each process with the state of its rows, and a manifest that names all files and is written last: a
generation without one does not exist. The generation before is kept, for a manifest can reach a
disk before what it names does.
"""

import hashlib
import re
import uuid
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne._core import BLOCK_ROWS
from acctsne.affinities.affinities import Affinities, form_of
from acctsne.affinities.forms import Conditional
from acctsne.distributed.optimizer import SharedOptimizer
from acctsne.distributed.processes import Processes
from acctsne.distributed.rows import SharedRows
from acctsne.embedding.checkpoint import Checkpoint, OtherFit, descent_of, fingerprint
from acctsne.embedding.optimizer_archive import read_repulsion
from acctsne.files.archive import Contents, incomplete, read_archive, write_archive
from acctsne.forces.repulsion import RepulsionOptions
from acctsne.optimize.descent import Descent
from acctsne.optimize.state import ROW_ARRAYS, OptimizerState, read_state, split_state
from acctsne.runtime.progress import logger

MANIFEST, AFFINITIES, STATE = "checkpoint manifest", "checkpoint affinities", "checkpoint state"

# Rows in one array of a file: another number of processes reads the arrays that it needs.
PIECE_ROWS = 2**16

# Generations that are kept.
GENERATIONS = 2

# How the names of the folder's files begin; and all of a name, also of a file that was being
# written. A folder may hold files of the user's, which must not be taken for these and removed.
PREFIXES = ("manifest-", "affinities-", "state-")
OWN_NAME = re.compile(
    r"(manifest-\d+|affinities-[0-9a-f]{12}-\d+|state-\d+-[0-9a-f]{12}-\d+)\.npz"
    r"|\.(manifest|affinities|state)-[0-9a-f-]*\.[0-9a-f]{12}\.part\.npz"
)


@dataclass(frozen=True)
class Part:
    """A file with the rows of one process."""

    name: str
    begin: int
    end: int


@dataclass(frozen=True)
class Parts:
    """The files of all processes, one after the other."""

    files: tuple[Part, ...]

    @classmethod
    def of(cls, contents: Contents, name: str, n_samples: int) -> "Parts":
        """Take them from a manifest; ValueError if they do not have every row once."""
        files = []
        at = 0
        for given in contents.setting(name, list):
            part = Part(*given) if isinstance(given, list) and len(given) == 3 else None
            if part is None or part.begin != at or not _follows(part.end, at):
                raise ValueError(f"{name} has {given!r:.80}, which does not begin at row {at}")
            if Path(str(part.name)).name != part.name or not part.name.startswith(PREFIXES):
                raise ValueError(f"{name} names {part.name!r:.80}")
            files.append(part)
            at = part.end
        if at != n_samples:
            raise ValueError(f"{name} end at row {at}, and there are {n_samples}")
        return cls(tuple(files))

    def within(self, rows: slice) -> Iterator[Part]:
        """Give those that have some of the rows."""
        for part in self.files:
            if part.begin < rows.stop and part.end > rows.start:
                yield part

    def listed(self) -> list[list[Any]]:
        """Return them for a manifest."""
        return [[part.name, part.begin, part.end] for part in self.files]


class SharedCheckpoint(Checkpoint):
    """A checkpoint whose every method is called by all processes at once.

    Parameters
    ----------
    path : Path
        The folder, which all processes must see.
    every, resume
        As of a Checkpoint.
    processes : Processes
        Any number of them, whoever wrote the folder.
    """

    def __init__(self, path: Path, every: int, resume: bool, processes: Processes) -> None:
        super().__init__(path, every, resume)
        self._processes = processes
        self._fit = ""  # a name that no other fit has
        self._affinities = Parts(())
        self._equal = False
        self._n_samples = 0

    def exists(self) -> bool:
        """Say whether the first process sees a generation."""
        return bool(self._processes.bcast(bool(self._manifests())))

    def remove(self) -> None:
        """Remove all files, and the folder if nothing else is in it."""
        with self._processes.agreeing():
            if self._processes.rank == 0 and self.path.is_dir():
                self._remove_all_but(())
                if not any(self.path.iterdir()):
                    self.path.rmdir()

    def keep_affinities(self, P: Affinities) -> None:
        """Write own rows of the affinities of a fit that begins."""
        own = form_of(P)
        assert isinstance(own, Conditional)
        self._fit = self._processes.bcast(uuid.uuid4().hex[:12])
        self._equal = own.equal
        with self._processes.agreeing():
            if self._processes.rank == 0:
                _make_folder(self.path)
        arrays = {"indices": own.indices, "values": own.values}
        self._affinities = self._written("affinities", AFFINITIES, {}, arrays)

    def save(self, descent: Descent) -> None:
        """Write another generation, then forget all but the last two."""
        optimizer = descent.optimizer
        scalars, arrays = split_state(optimizer.state())
        mean = arrays.pop("mean")
        settings = {"iterations": scalars["iterations"]}
        states = self._written(f"state-{optimizer.n_iter}", STATE, settings, arrays)
        described = {
            **self._described(descent),
            "fit": self._fit,
            "n_samples": self._n_samples,
            "embedding": asdict(optimizer.repulsion),
            "state": scalars,
            "equal": self._equal,
            "affinities": self._affinities.listed(),
            "states": states.listed(),
        }
        with self._processes.agreeing():
            if self._processes.rank == 0:
                self._publish(described, mean)

    def _publish(self, described: dict[str, Any], mean: npt.NDArray[Any]) -> None:
        """Make a generation of the files that are there; the first process does."""
        before = self._manifests()
        number = _number(before[0]) + 1 if before else 1
        manifest = self.path / f"manifest-{number}.npz"
        write_archive(manifest, MANIFEST, described, {"mean": mean})
        self._remove_all_but([manifest, *before[: GENERATIONS - 1]])

    def _remove_all_but(self, manifests: Iterable[Path]) -> None:
        kept = set()
        for manifest in manifests:
            kept.add(manifest.name)
            try:
                contents = read_archive(manifest, MANIFEST)
                n_samples = contents.setting("n_samples", int)
                for name in ("affinities", "states"):
                    kept |= {part.name for part in Parts.of(contents, name, n_samples).files}
            except (ValueError, OSError):
                continue  # damaged: nobody goes on from it
        for file in self.path.iterdir():
            if OWN_NAME.fullmatch(file.name) and file.name not in kept:
                file.unlink(missing_ok=True)

    def _written(
        self,
        name: str,
        kind: str,
        settings: dict[str, Any],
        arrays: dict[str, npt.NDArray[Any]],
    ) -> Parts:
        """Write a file of own rows, and return those of all; every one is then complete."""
        file = f"{name}-{self._fit}-{self._processes.rank}.npz"
        rows = self._processes.own_rows(self._n_samples)
        mine = (Part(file, rows.start, rows.stop), 0)
        with self._processes.agreeing():
            pieces = {
                f"{array_name}_{rows.start + begin}": array[begin : begin + PIECE_ROWS]
                for array_name, array in arrays.items()
                for begin in range(0, len(array), PIECE_ROWS)
            }
            settings = {
                **settings,
                "fit": self._fit,
                "rows": [rows.start, rows.stop],
                "piece_rows": PIECE_ROWS,
            }
            write_archive(self.path / file, kind, settings, pieces)
            mine = (mine[0], (self.path / file).stat().st_size)
        everyone = self._processes.allgather(mine)
        with self._processes.agreeing():
            for rank, (part, size) in enumerate(everyone if self._processes.rank == 0 else []):
                seen = self.path / part.name
                if not seen.is_file() or seen.stat().st_size != size:
                    raise OSError(
                        f"{seen}, which rank {rank} has written, is not seen by rank 0; a "
                        "checkpoint must be in a folder that all machines share"
                    )
        return Parts(tuple(part for part, _ in everyone))

    # Going on.

    def _identity_of(self, X: Any, parameters: dict[str, Any]) -> dict[str, Any]:
        self._n_samples = X.shape[0]
        own = X.own if isinstance(X, SharedRows) else X
        identity = {"data": self._shared_fingerprint(own, X.shape), "parameters": parameters}
        # The parameters that the first process was told: in some of them processes may differ.
        shared: dict[str, Any] = self._processes.bcast(identity)
        return shared

    def _shared_fingerprint(self, own: npt.NDArray[Any], shape: tuple[int, ...]) -> str:
        """Return a digest of all rows, made of those of blocks, which no process shares."""
        blocks = [
            fingerprint(own[begin : begin + BLOCK_ROWS]) for begin in range(0, len(own), BLOCK_ROWS)
        ]
        digest = hashlib.sha256(repr(shape).encode())
        for theirs in self._processes.allgather("".join(blocks)):
            digest.update(theirs.encode())
        return digest.hexdigest()

    def _read(self, threads: int) -> Descent:
        """Go on from the last generation, or from the one before if that is damaged."""
        manifests = self._processes.bcast(self._manifests())
        for place, manifest in enumerate(manifests):
            error: Exception | None = None
            try:
                kept = self._read_generation(manifest)
            except (ValueError, OSError, MemoryError) as raised:
                error = raised
            damage = None if isinstance(error, OtherFit) else error
            damages = [one for one in self._processes.allgather(damage and str(damage)) if one]
            if damages and place + 1 < len(manifests):
                if self._processes.rank == 0:
                    logger.warning("%s; going on from the generation before", damages[0])
                continue
            self._processes.agree(error)
            break
        dims = kept.state["points"].shape[1]
        nowhere = np.zeros((self._n_samples, dims), dtype=kept.P.values.dtype)
        optimizer = SharedOptimizer(kept.P, nowhere, kept.repulsion, threads, self._processes)
        with incomplete(manifest):
            optimizer.restore(kept.state)
        self._fit, self._equal, self._affinities = kept.fit, kept.P.equal, kept.affinities
        with self._processes.agreeing(), incomplete(manifest):
            return descent_of(kept.contents, optimizer)

    def _read_generation(self, manifest: Path) -> "_Generation":
        contents = read_archive(manifest, MANIFEST)
        self._check_identity(contents, self.path)
        with incomplete(manifest):
            n_samples = contents.setting("n_samples", int)
            if n_samples != self._n_samples:
                raise ValueError(f"{n_samples} samples in place of {self._n_samples}")
            fit = contents.setting("fit", str)
            equal = contents.setting("equal", bool)
            affinities = Parts.of(contents, "affinities", n_samples)
            states = Parts.of(contents, "states", n_samples)
            iterations = contents.part("state").setting("iterations", int)
        P = self._read_affinities(affinities, fit, equal)
        with incomplete(manifest):
            mean = contents.array("mean", P.values.dtype.str[1:], 1)
        arrays = {"mean": mean, **self._read_states(states, fit, iterations, mean)}
        with incomplete(manifest):
            own = Contents(contents.setting("state", dict), arrays)
            state = read_state(own, len(P.values), P.values.dtype)
            repulsion = read_repulsion(contents, state["points"].shape[1])
        return _Generation(contents, fit, affinities, P, repulsion, state)

    def _read_affinities(self, parts: Parts, fit: str, equal: bool) -> Conditional:
        """Read own rows, whichever files they are in."""
        own = self._processes.own_rows(self._n_samples)
        found: list[npt.NDArray[Any]] = []
        for part in parts.within(own):
            for piece in self._conditionals(part, own, fit, equal):
                if not found:
                    shape = (own.stop - own.start, piece.indices.shape[1])
                    found = [np.empty(shape, np.int32), np.empty(shape, piece.values.dtype)]
                    at = 0
                with incomplete(self.path / part.name):
                    if piece.indices.shape[1] != shape[1]:
                        raise ValueError(f"rows of {piece.indices.shape[1]} and {shape[1]} values")
                end = at + len(piece.indices)
                found[0][at:end], found[1][at:end] = piece.indices, piece.values
                at = end
        if not found:  # more processes than blocks of rows
            some = next(part for part in parts.files if part.end > part.begin)
            width, dtype = self._form_of(some, fit, equal)
            found = [np.empty((0, width), np.int32), np.empty((0, width), dtype)]
        return Conditional(found[0], found[1], equal)

    def _form_of(self, part: Part, fit: str, equal: bool) -> tuple[int, np.dtype[Any]]:
        first = next(self._conditionals(part, slice(part.begin, part.begin + 1), fit, equal))
        return first.indices.shape[1], first.values.dtype

    def _conditionals(
        self, part: Part, rows: slice, fit: str, equal: bool
    ) -> Iterator[Conditional]:
        """Read those of some rows from a file."""
        for contents, wanted in self._pieces(part, rows, AFFINITIES, fit, ("indices", "values")):
            with incomplete(self.path / part.name):
                piece = Conditional.from_archive(contents, equal, self._n_samples)
            yield Conditional(piece.indices[wanted], piece.values[wanted], equal)

    def _read_states(
        self, parts: Parts, fit: str, iterations: int, mean: npt.NDArray[Any]
    ) -> dict[str, npt.NDArray[Any]]:
        """Read those of own rows, whichever files they are in."""
        none = np.empty((0, len(mean)), mean.dtype)
        found = {name: [none] for name in ROW_ARRAYS} | {"order": [np.empty(0, np.int32)]}
        own = self._processes.own_rows(self._n_samples)
        for part in parts.within(own):
            for contents, wanted in self._pieces(part, own, STATE, fit, ROW_ARRAYS):
                with incomplete(self.path / part.name):
                    if contents.setting("iterations", int) != iterations:
                        raise ValueError(f"it is not of iteration {iterations}")
                    for name, array in contents.arrays.items():
                        if array.shape[1:] != found[name][0].shape[1:]:
                            raise ValueError(f"{name} has shape {array.shape}")
                        found[name].append(array[wanted])
        return {name: np.concatenate(arrays) for name, arrays in found.items()}

    def _pieces(
        self, part: Part, rows: slice, kind: str, fit: str, names: Iterable[str]
    ) -> Iterator[tuple[Contents, slice]]:
        """Read those arrays of a file that have some of the rows, and say which of theirs they are.

        The arrays are named as they were when they were whole.
        """
        file = self.path / part.name
        size = self._opened(file, kind, part, fit, ()).settings.get("piece_rows")
        with incomplete(file):
            if not isinstance(size, int) or size < 1:
                raise ValueError(f"piece_rows is {size!r:.50}")
        for begin in range(part.begin, part.end, size):
            end = min(begin + size, part.end)
            if begin >= rows.stop or end <= rows.start:
                continue
            stored = {f"{name}_{begin}": name for name in names}
            contents = self._opened(file, kind, part, fit, stored)
            arrays = {stored[name]: array for name, array in contents.arrays.items()}
            with incomplete(file):
                for name, array in arrays.items():
                    if array.shape[:1] != (end - begin,):
                        raise ValueError(
                            f"{name} has shape {array.shape}, for rows {begin} to {end}"
                        )
            wanted = slice(max(rows.start - begin, 0), rows.stop - begin)
            yield Contents(contents.settings, arrays), wanted

    def _opened(
        self, file: Path, kind: str, part: Part, fit: str, arrays: Collection[str]
    ) -> Contents:
        """Read those arrays of a file, which must belong to this fit and to these rows."""
        try:
            contents = read_archive(file, kind, arrays)
        except FileNotFoundError:
            raise ValueError(f"{file} is missing, a part of the checkpoint") from None
        with incomplete(file):
            if contents.setting("fit", str) != fit:
                raise ValueError("it is of another fit")
            if contents.setting("rows", list) != [part.begin, part.end]:
                raise ValueError(f"it does not have rows {part.begin} to {part.end}")
        return contents

    def _manifests(self) -> list[Path]:
        """Return the manifests that there are, the last one first."""
        found = [file for file in self.path.glob("manifest-*.npz") if _number(file) > 0]
        return sorted(found, key=_number, reverse=True)


@dataclass(frozen=True)
class _Generation:
    """What one generation holds, own rows of the affinities."""

    contents: Contents
    fit: str
    affinities: Parts
    P: Conditional
    repulsion: RepulsionOptions
    state: OptimizerState


def _follows(end: Any, begin: int) -> bool:
    return isinstance(end, int) and end >= begin


def _number(manifest: Path) -> int:
    digits = manifest.stem.removeprefix("manifest-")
    return int(digits) if digits.isdecimal() else 0


def _make_folder(path: Path) -> None:
    if path.is_file():
        raise ValueError(
            f"{path} is a file, which one process may go on from; several keep a fit in a folder"
        )
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise OSError(error.errno, f"{path} cannot be made: {error.strerror}") from error
