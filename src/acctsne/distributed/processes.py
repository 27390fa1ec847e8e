"""The processes that share a fit, and how they speak to each other and of errors."""

import builtins
import os
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from time import perf_counter
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from acctsne import _core
from acctsne.runtime.build import build_info
from acctsne.runtime.errors import error_of
from acctsne.runtime.interrupts import interrupts_heard_by
from acctsne.runtime.optional import require
from acctsne.runtime.stderr import drop_unwritten, say
from acctsne.runtime.threads import available_cores, bound_cores

Bytes = npt.NDArray[np.uint8]

# MPI counts in 32 bits.
MOST_AT_ONCE = 2**30

# An attribute of errors that every process raises: nobody waits for one that ends by such an error.
KNOWN = "_acctsne_known_to_all"

# Whether this thread calls a callback, whose answer the other processes wait for.
_awaited: ContextVar[bool] = ContextVar("_awaited", default=False)


def is_known_to_all(error: BaseException | None) -> bool:
    """Say whether every process raises this error, or one that it was made of."""
    return error is not None and (hasattr(error, KNOWN) or is_known_to_all(error.__cause__))


def say_who_ends_all(rank: int, size: int, error: BaseException) -> None:
    """Write on stderr which process's error ends all."""
    cause = " ".join(str(error).split())
    named = f"{type(error).__name__}{': ' if cause else ''}{cause}"
    say(f"acctsne: rank {rank} of {size} failed, which ends all: {named}")


def _names(error: BaseException) -> tuple[str, str]:
    """Return the name of an error's type, and of what every Python knows it as."""
    builtin = next(one for one in type(error).__mro__ if one.__module__ == "builtins")
    return type(error).__name__, builtin.__name__


def _said(error: BaseException) -> str | int | None:
    """Return an error's message; of SystemExit the exit code, if that is no message."""
    if isinstance(error, SystemExit) and (error.code is None or isinstance(error.code, int)):
        return error.code
    return str(error)


def first_other(values: Sequence[Any]) -> int | None:
    """Return the first rank whose value is not that of rank 0; None if all are the same."""
    return next((rank for rank, value in enumerate(values) if value != values[0]), None)


def _pieces(message: Bytes) -> Iterator[Bytes]:
    for begin in range(0, len(message), MOST_AT_ONCE):
        yield message[begin : begin + MOST_AT_ONCE]


@cache
def _place_of_duplicates(mpi: Any) -> int:
    """Return the key of the attribute that a communicator keeps its duplicate under."""
    key: int = mpi.Comm.Create_keyval(delete_fn=lambda _comm, _key, duplicate: duplicate.Free())
    return key


def _check_communicator(comm: Any, mpi: Any) -> None:
    if isinstance(comm, mpi.Comm) and comm == mpi.COMM_NULL:
        raise ValueError(
            "comm is MPI.COMM_NULL: it was freed, or this process is none of those that it was "
            "made for, which alone take part"
        )
    if not isinstance(comm, mpi.Intracomm):
        raise TypeError(f"comm must be an Intracomm of mpi4py; got {type(comm).__name__}")


def _duplicate(comm: Any, mpi: Any) -> Any:
    """Return a communicator of the same processes in which nobody else sends anything.

    It is made once for a communicator and freed with it, for there are only so many.
    """
    key = _place_of_duplicates(mpi)
    duplicate = comm.Get_attr(key)
    if duplicate is None:
        duplicate = comm.Dup()
        comm.Set_attr(key, duplicate)
    return duplicate


class Interrupts:
    """Whether Ctrl-C was pressed while it was only noted."""

    pressed = False

    def raise_if_pressed(self) -> None:
        """Raise KeyboardInterrupt after it was."""
        if self.pressed:
            raise KeyboardInterrupt

    def hand_on(self) -> None:
        """Let whoever handled Ctrl-C before know that it was."""
        if self.pressed:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def noting_interrupts() -> Iterator[Interrupts]:
    """Keep Ctrl-C from raising anything, if this is the thread that it would be raised in."""
    interrupts = Interrupts()

    def note(*_: Any) -> None:
        interrupts.pressed = True

    with interrupts_heard_by(note):
        yield interrupts


class Processes:
    """A communicator of mpi4py, with what the native core and the stages ask of it.

    All processes must call the same methods in the same order. Bytes are counted as often as they
    have to leave this process; what `allgather` and `bcast` pickle, a few numbers, is not. Messages
    go through a duplicate of the communicator, so that those of the user's own are left alone.
    """

    def __init__(self, comm: Any = None) -> None:
        with noting_interrupts() as interrupts:  # MPI starts here, or waits for the others
            self._mpi = require("mpi4py.MPI", "mpi")
            comm = self._mpi.COMM_WORLD if comm is None else comm
            _check_communicator(comm, self._mpi)
            self.size: int = comm.Get_size()
            self._check_not_awaited()
            self._comm = _duplicate(comm, self._mpi)
        self.rank: int = self._comm.Get_rank()
        self.seconds = 0.0
        self.bytes_sent = 0
        with self.ending_together():
            interrupts.hand_on()

    # What the native core calls (native/include/acctsne/communicator.hpp).

    def gather(self, array: Bytes, ends: list[int]) -> None:
        """Complete an array of which each process has filled its part."""
        begins = [0, *ends[:-1]]
        mine = ends[self.rank] - begins[self.rank]
        with self._counted(mine * (self.size - 1)):
            if ends[-1] <= MOST_AT_ONCE:
                counts = [end - begin for begin, end in zip(begins, ends, strict=True)]
                parts = [array, (counts, begins), self._mpi.BYTE]
                self._comm.Allgatherv(self._mpi.IN_PLACE, parts)
                return
            for rank in range(self.size):
                for begin in range(begins[rank], ends[rank], MOST_AT_ONCE):
                    end = min(begin + MOST_AT_ONCE, ends[rank])
                    self._comm.Bcast([array[begin:end], self._mpi.BYTE], root=rank)

    def exchange(
        self, sent: Bytes, sent_ends: list[int], received: Bytes, received_ends: list[int]
    ) -> None:
        """Hand a message to every process, and take one from each."""
        sent_begins, received_begins = [0, *sent_ends[:-1]], [0, *received_ends[:-1]]
        outgoing = [sent[begin:end] for begin, end in zip(sent_begins, sent_ends, strict=True)]
        incoming = [
            received[begin:end] for begin, end in zip(received_begins, received_ends, strict=True)
        ]
        with self._counted(sent_ends[-1] - len(outgoing[self.rank])):
            # In pieces that MPI can count: both ends know the length of a message, so that nothing
            # has to be agreed on first.
            requests = []
            for step in range(1, self.size):
                source = (self.rank - step) % self.size
                for piece in _pieces(incoming[source]):
                    requests.append(self._comm.Irecv([piece, self._mpi.BYTE], source=source))
            for step in range(1, self.size):
                to = (self.rank + step) % self.size
                for piece in _pieces(outgoing[to]):
                    requests.append(self._comm.Isend([piece, self._mpi.BYTE], dest=to))
            incoming[self.rank][:] = outgoing[self.rank]
            self._mpi.Request.Waitall(requests)

    # What the stages call.

    def threads_each(self) -> int:
        """Return how many threads a process should have: its part of the cores of its machine."""
        machine = self._comm.Split_type(self._mpi.COMM_TYPE_SHARED)
        here = machine.Get_size()
        machine.Free()
        cores = available_cores()
        # A launcher that binds processes to cores has given each its own.
        return cores if cores < (os.cpu_count() or 1) else max(1, cores // here)

    def warn_of_bound_threads(self, threads: int) -> None:
        """Warn on the first process of one with more threads than cores that it may run on."""
        everyone = self.allgather((threads, bound_cores(), os.cpu_count()))
        bound = [(rank, *one) for rank, one in enumerate(everyone) if one[1] and one[0] > one[1]]
        if not bound or self.rank > 0:
            return
        rank, wanted, cores, machine = bound[0]
        others = f", and so have {len(bound) - 1} others" if len(bound) > 1 else ""
        warnings.warn(
            f"rank {rank} has {wanted} threads for the {cores} of {machine} cores that it may run "
            f"on{others}: a launcher may have bound it to them, as Open MPI does without "
            "--bind-to none",
            stacklevel=2,
        )

    def check_simd_levels(self) -> None:
        """Refuse processes that compute by different instructions, and so to different bits."""
        ranks: dict[str, list[int]] = {}
        for rank, level in enumerate(self.allgather(build_info()["simd_level"])):
            ranks.setdefault(level, []).append(rank)
        if len(ranks) == 1:
            return
        levels = "; ".join(
            f"{level} on rank{'s' if len(some) > 1 else ''} {', '.join(map(str, some))}"
            for level, some in ranks.items()
        )
        with self.agreeing():
            raise ValueError(
                f"processes use different SIMD levels ({levels}), and would not give the same "
                "bits. Set the environment variable ACCTSNE_SIMD to the lowest for all of them"
            )

    def own_rows(self, n_rows: int, rank: int | None = None) -> slice:
        """Return the rows that a process owns of so many: whole blocks."""
        begin, end = _core.rows_of(self.rank if rank is None else rank, self.size, n_rows)
        return slice(begin, end)

    def all_rows(self, own: npt.NDArray[Any], n_rows: int) -> npt.NDArray[Any]:
        """Gather the rows that each process owns."""
        return self.joined(own, [self.own_rows(n_rows, rank).stop for rank in range(self.size)])

    def joined(self, own: npt.NDArray[Any], ends: list[int]) -> npt.NDArray[Any]:
        """Gather rows of which those of each process end here."""
        with self.agreeing():  # all of them may need more memory than there is
            rows = np.empty((ends[-1], *own.shape[1:]), dtype=own.dtype)
        begin = ends[self.rank - 1] if self.rank else 0
        rows[begin : ends[self.rank]] = own
        if rows.size:
            row_bytes = rows.nbytes // len(rows)
            self.gather(rows.reshape(-1).view(np.uint8), [end * row_bytes for end in ends])
        return rows

    def to_first(self, own: npt.NDArray[Any], rows: int) -> Iterator[npt.NDArray[Any]]:
        """Give the first process the rows of all in their order, so many at a time."""
        counts = self.allgather(len(own))
        if self.rank > 0:
            for begin in range(0, len(own), rows):
                block = np.ascontiguousarray(own[begin : begin + rows])
                with self._counted(block.nbytes):
                    for piece in _pieces(block.reshape(-1).view(np.uint8)):
                        self._comm.Send([piece, self._mpi.BYTE], dest=0)
            return
        for rank, count in enumerate(counts):
            for begin in range(0, count, rows):
                block = own[begin : begin + rows]
                if rank > 0:
                    block = np.empty((min(rows, count - begin), *own.shape[1:]), dtype=own.dtype)
                    with self._counted(0):
                        for piece in _pieces(block.reshape(-1).view(np.uint8)):
                            self._comm.Recv([piece, self._mpi.BYTE], source=rank)
                yield block

    def allgather(self, value: Any) -> list[Any]:
        """Collect a small value of each process."""
        with self._counted(0):
            values: list[Any] = self._comm.allgather(value)
            return values

    def bcast(self, value: Any) -> Any:
        """Give every process what the first one has."""
        with self._counted(0):
            return self._comm.bcast(value, root=0)

    def bcast_array(self, array: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
        """Give every process an array that the first one has."""
        shape, dtype = self.bcast(None if array is None else (array.shape, array.dtype))
        if array is None:
            array = np.empty(shape, dtype=dtype)
        data = np.ascontiguousarray(array)
        flat = data.reshape(-1).view(np.uint8)
        with self._counted(len(flat) * (self.size - 1) if self.rank == 0 else 0):
            for begin in range(0, len(flat), MOST_AT_ONCE):
                piece = flat[begin : begin + MOST_AT_ONCE]
                self._comm.Bcast([piece, self._mpi.BYTE], root=0)
        return data

    @contextmanager
    def _counted(self, sent: int) -> Iterator[None]:
        self._check_not_awaited()
        start = perf_counter()
        yield
        self.seconds += perf_counter() - start
        self.bytes_sent += sent

    # Errors.

    @contextmanager
    def agreeing(self, on: type[BaseException] = Exception) -> Iterator[None]:
        """Raise on every process what one of them raises inside, where none may wait for others.

        What is no such error, as Ctrl-C at any moment is none, ends all processes at once.
        """
        error: BaseException | None = None
        with self.ending_together():
            try:
                yield
            except on as raised:
                error = raised
        self.agree(error)

    def agree(self, error: BaseException | None) -> None:
        """Raise the error of the first process that has one, on all of them."""
        errors = self.allgather(None if error is None else (*_names(error), _said(error)))
        bad = [rank for rank, one in enumerate(errors) if one is not None]
        if not bad:
            return
        name, builtin, said = errors[bad[0]]
        # What all say alike is nobody's in particular.
        if isinstance(said, str) and (len(bad) < self.size or len(set(errors)) > 1):
            said = f"rank {bad[0]}: {said}" if said else f"rank {bad[0]}"
        self._raise(name, builtin, said, error)

    def _raise(
        self, name: str, builtin: str, said: str | int | None, cause: BaseException | None
    ) -> NoReturn:
        kind = getattr(builtins, builtin)
        if cause is not None and type(cause).__name__ == name and len(cause.args) == 1:
            kind = type(cause)
        if kind in (Exception, BaseException):
            kind, said = RuntimeError, f"{said} ({name})"
        error = error_of(kind, said) if isinstance(said, str) else SystemExit(said)
        self.known_to_all(error)
        raise error from cause

    @contextmanager
    def ending_together(self) -> Iterator[None]:
        """End all processes if one leaves by an error that the others do not know of.

        They would wait for it forever.
        """
        try:
            yield
        except BaseException as error:
            if self.size > 1 and not is_known_to_all(error):
                self._abort(error)
            raise

    @contextmanager
    def interrupted_together(self) -> Iterator[Callable[[], None]]:
        """Keep Ctrl-C from leaving the others waiting in the middle of an exchange.

        Gives a function that raises KeyboardInterrupt after it was pressed. It is to be called only
        where all processes will hear of that: by the native loop's poll (native/optimize/loop.cpp).
        """
        with noting_interrupts() as interrupts:
            try:
                yield interrupts.raise_if_pressed
                # Too late for a poll to see it.
                if any(self.allgather(interrupts.pressed)):
                    raise KeyboardInterrupt
            except KeyboardInterrupt as interrupt:
                self.known_to_all(interrupt)
                raise

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Refuse to exchange anything inside: the others wait for what is found out there."""
        token = _awaited.set(True)
        try:
            yield
        finally:
            _awaited.reset(token)

    def _check_not_awaited(self) -> None:
        if self.size > 1 and _awaited.get():
            error = RuntimeError(
                "a callback is called on the first process, and the others wait for it; it cannot "
                "fit, transform, gather, save or load with them"
            )
            self.known_to_all(error)  # none of them has begun what it would end
            raise error

    def known_to_all(self, error: BaseException) -> None:
        """Note that every process raises this error."""
        setattr(error, KNOWN, True)

    def _abort(self, error: BaseException) -> NoReturn:
        say_who_ends_all(self.rank, self.size, error)
        if not isinstance(error, KeyboardInterrupt):
            say("".join(traceback.format_exception(error)).rstrip("\n"))
        drop_unwritten()
        self._comm.Abort(1)
        raise SystemExit(1)
