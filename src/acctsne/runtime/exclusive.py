"""One fit at a time on an estimator: two at once would leave a mix of both."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

# Fits that are under way, by the identity of their estimator: an attribute would be copied with it.
_under_way: dict[int, object] = {}

if hasattr(os, "register_at_fork"):
    # Threads that fit are not there in the child.
    os.register_at_fork(after_in_child=_under_way.clear)


@contextmanager
def alone(estimator: object) -> Iterator[None]:
    """Refuse a fit of an estimator while another is under way, in a thread or in its own callback.

    Raises RuntimeError.
    """
    this_fit = object()
    try:
        # One operation, so that neither threads nor Ctrl-C come between look and entry.
        if _under_way.setdefault(id(estimator), this_fit) is not this_fit:
            name = type(estimator).__name__
            raise RuntimeError(
                f"this {name} is being fitted by another thread, or has called this fit from a "
                "callback; wait for it, or fit a clone (sklearn.base.clone)"
            )
        yield
    finally:
        if _under_way.get(id(estimator)) is this_fit:
            del _under_way[id(estimator)]
