"""Whether there is room for what is about to be computed, and a sentence where there is not.

Only what can never fit is refused beforehand: the least that a computation takes is held against
the limits themselves, not against what happens to be free at the moment.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

if sys.platform != "win32":
    import resource

# Less is not worth looking for limits.
SMALL = 2**26

NEEDS = "needs at least"
ADVICE = "Fewer samples, fewer neighbours (a smaller perplexity) or float32 need less"

# Addresses that a thread takes, whether it uses them or not: its stack, and where glibc gives it
# memory from.
USUAL_STACK = 8 * 2**20
ARENA = 64 * 2**20

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")


@contextmanager
def room_for(needed: int, what: str, advice: str = ADVICE) -> Iterator[None]:
    """Raise MemoryError if so many bytes more cannot be had, or if memory runs out on the way."""
    if needed > SMALL:
        for limit, left in _left():
            if needed > left:
                raise MemoryError(
                    f"{what} {NEEDS} {_size(needed)} of memory, and {limit} leaves "
                    f"{_size(left)}. {advice}"
                )
    try:
        yield
    except MemoryError as error:
        if NEEDS in str(error):
            raise  # of a part, which says more
        raise MemoryError(
            f"{what} {NEEDS} {_size(needed)} of memory, and it ran out. {advice}"
        ) from error


def room_for_columns(n_columns: int) -> AbstractContextManager[None]:
    """Raise MemoryError if sparse data has too many columns to keep two numbers for each."""
    advice = "Leave out columns without values"
    return room_for(16 * n_columns, f"A sparse matrix of {n_columns} columns", advice)


def threads_that_fit() -> int | None:
    """Tell how many threads half of the address space that is left can hold; None without a limit.

    Threads are started until the system refuses: then there is no room left for their work.
    """
    if sys.platform == "win32":
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
    stack = USUAL_STACK if stack == resource.RLIM_INFINITY else stack
    return max(limit - _used()[0], 0) // 2 // (stack + ARENA)


def _left() -> Iterator[tuple[str, int]]:
    """Tell for each limit that there is how many bytes this process could still get."""
    mapped, resident = _used()
    if sys.platform != "win32":
        address_space = resource.getrlimit(resource.RLIMIT_AS)[0]
        if address_space != resource.RLIM_INFINITY:
            yield "the limit of the address space (ulimit -v)", max(address_space - mapped, 0)
    for limit in _cgroup_limits():
        yield "the limit of the container (cgroup)", max(limit - resident, 0)
    machine = _machine()
    if machine is not None:
        yield "the machine", max(machine - resident, 0)


def _used() -> tuple[int, int]:
    """Return the bytes that this process has mapped, and those of them that are in memory."""
    try:
        mapped, resident = (PROC / "self/statm").read_text().split()[:2]
    except OSError:
        return 0, 0
    page = os.sysconf("SC_PAGE_SIZE")
    return int(mapped) * page, int(resident) * page


def _cgroup_limits() -> Iterator[int]:
    """Return the memory limits of this process' control group and of those above it."""
    try:
        groups = (PROC / "self/cgroup").read_text().splitlines()
    except OSError:
        return
    for group in groups:
        _, controllers, path = group.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        root = CGROUPS / controllers
        name = "memory.limit_in_bytes" if controllers else "memory.max"
        folder = root / path.lstrip("/")
        for place in (folder, *folder.parents):
            try:
                text = (place / name).read_text().strip()
            except OSError:
                text = "max"
            if text.isdecimal():
                yield int(text)
            if place == root:
                break


def _machine() -> int | None:
    """Return the machine's memory with what it can swap out; None where that is not bounded.

    macOS and Windows swap to files that grow, so that their memory is not the most that there is:
    there, what does not fit ends in a MemoryError on the way.
    """
    try:
        lines = (PROC / "meminfo").read_text().splitlines()
        sizes = {name: int(rest.split()[0]) for name, rest in (line.split(":") for line in lines)}
        return 1024 * (sizes["MemTotal"] + sizes["SwapTotal"])
    except (OSError, ValueError, KeyError, IndexError):
        return None


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
