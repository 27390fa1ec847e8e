"""What becomes of the others when the program of one process ends by an error outside of a fit.

Within a fit, errors are everybody's (processes.py). Of one outside, as when a process cannot read
its rows, the others know nothing: they would wait for it in their fit, and it for them in the end.
"""

import os
import sys
from inspect import currentframe
from types import TracebackType
from typing import Any

from acctsne.distributed.processes import is_known_to_all, say_who_ends_all


def end_all_after_an_uncaught_error() -> None:
    """Have MPI end all processes, instead of waiting for them, if this one ends by an error."""
    before, process = sys.excepthook, os.getpid()

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        before(kind, error, trace)
        # The end of a fork is nobody's but its own.
        if os.getpid() == process and not _goes_on():
            _end_all(error)

    sys.excepthook = hook


def _goes_on() -> bool:
    """Say whether the error was only shown: at a prompt, or by a program that is still running."""
    frame = currentframe()
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    return frame is not None or hasattr(sys, "ps1")


def _end_all(error: BaseException) -> None:
    mpi: Any = sys.modules.get("mpi4py.MPI")
    # Before MPI has begun, launchers see to it: none of the processes can begin without the others.
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        return
    world = mpi.COMM_WORLD
    # dask-mpi tells its scheduler and workers to close.
    if world.Get_size() == 1 or "dask_mpi" in sys.modules or is_known_to_all(error):
        return
    from mpi4py.run import set_abort_status

    say_who_ends_all(world.Get_rank(), world.Get_size(), error)
    # When Python has ended, after whatever it has yet to write and to tidy up.
    set_abort_status(error)
