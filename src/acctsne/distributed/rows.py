"""The data, of which each process holds its own rows."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from acctsne.affinities.affinities import Affinities
from acctsne.distributed.processes import Processes, first_other
from acctsne.files.backed import in_reach
from acctsne.files.formats import open_rows
from acctsne.files.stored_rows import StoredRows
from acctsne.neighbors.nearest import check_rows
from acctsne.runtime.rows import computed_dtype


@dataclass
class SharedRows:
    """Rows of all processes, as far as this one has them."""

    own: npt.NDArray[Any]  # the rows that it owns: whole blocks
    n_samples: int  # the rows of all processes
    given_ends: list[int]  # where the rows end that each process was given

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the data of all processes."""
        return self.n_samples, int(self.own.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the data, the same on every process."""
        return self.own.dtype

    def given(self, rank: int) -> slice:
        """Return the rows that a process was given."""
        return slice(self.given_ends[rank - 1] if rank else 0, self.given_ends[rank])


def stored_rows(X: Any) -> StoredRows | None:
    """Open what is in a file; None for rows that are in memory."""
    if isinstance(X, StoredRows):
        return X
    return open_rows(X) if isinstance(X, str | os.PathLike) else None


def share_rows(X: Any, processes: Processes) -> SharedRows:
    """Check what each process was given, and bring rows to those that own them."""
    with processes.agreeing():
        stored = stored_rows(X)
    shapes = processes.allgather(None if stored is None else stored.shape)
    with processes.agreeing():
        _check_shapes(shapes)
    with processes.agreeing():
        if stored is not None:
            own = processes.own_rows(stored.shape[0])
            X = stored.read(own.start, own.stop)
        checked = _checked(X)
    forms = processes.allgather((*checked.shape, checked.dtype.str))
    with processes.agreeing():
        _check_forms(forms)
    # Rows stay of their type if all processes have the same, and otherwise get the one that they
    # are computed with. A process without rows has no say: its empty array may be of any type.
    types = {np.dtype(dtype) for count, _, dtype in forms if count}
    computed_types = {computed_dtype(np.empty(0, dtype=one)) for one in types}
    dtype = types.pop() if len(types) == 1 else np.result_type(*computed_types)
    checked = np.ascontiguousarray(checked, dtype=dtype)
    ends = [int(end) for end in np.cumsum([form[0] for form in forms])]
    n_samples = ends[-1]
    own_rows = checked if stored is not None else _to_owners(checked, ends, processes)
    return SharedRows(own_rows, n_samples, ends)


def _checked(X: Any) -> npt.NDArray[Any]:
    if isinstance(X, Affinities):
        raise TypeError("several processes embed data, not an Affinities; use acctsne.TSNE")
    X = in_reach(X)
    if issparse(X):
        raise TypeError(
            "several processes take dense rows only; got a sparse matrix. Reduce it to some 50 "
            "principal components first, or use acctsne.TSNE"
        )
    rows: npt.NDArray[Any] = check_rows(X, "X", 0)
    return rows


def _check_shapes(shapes: list[tuple[int, int] | None]) -> None:
    """Check that processes read from one file, or none does; None stands for rows in memory."""
    rank = first_other(shapes)
    if rank is None:
        return
    if None in (shapes[0], shapes[rank]):
        with_path, without = (rank, 0) if shapes[0] is None else (0, rank)
        raise ValueError(
            f"rank {with_path} was given a path, rank {without} rows; give all processes the same"
        )
    raise ValueError(
        f"rank {rank} reads a file of shape {shapes[rank]}, rank 0 one of {shapes[0]}; all must "
        "have the same file"
    )


def _check_forms(forms: list[tuple[int, int, str]]) -> None:
    features = [n_features for _, n_features, _ in forms]
    rank = first_other(features)
    if rank is not None:
        raise ValueError(
            f"rank {rank} was given rows of {features[rank]} features, rank 0 of {features[0]}"
        )
    n_samples = sum(form[0] for form in forms)
    if n_samples < 2:
        raise ValueError(f"Found array with {n_samples} sample(s) while a minimum of 2 is required")


def _to_owners(rows: npt.NDArray[Any], ends: list[int], processes: Processes) -> npt.NDArray[Any]:
    """Send each row that was given here to the process that owns it."""
    n_samples = ends[-1]
    row_bytes = rows.shape[1] * rows.itemsize
    begin = ends[processes.rank] - len(rows)
    own = processes.own_rows(n_samples)
    to_each = [
        min(max(processes.own_rows(n_samples, rank).stop - begin, 0), len(rows))
        for rank in range(processes.size)
    ]
    from_each = [min(max(end - own.start, 0), own.stop - own.start) for end in ends]
    mine = np.empty((own.stop - own.start, rows.shape[1]), dtype=rows.dtype)
    processes.exchange(
        rows.reshape(-1).view(np.uint8),
        [count * row_bytes for count in to_each],
        mine.reshape(-1).view(np.uint8),
        [count * row_bytes for count in from_each],
    )
    return mine
