"""Who hears of Ctrl-C, and what Python loses of it on the way."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any


@contextmanager
def interrupts_heard_by(handler: Callable[..., None]) -> Iterator[None]:
    """Have Ctrl-C call this, if this is the thread that it would be raised in."""
    before = signal.getsignal(signal.SIGINT)
    handled = current_thread() is main_thread() and callable(before)
    if handled:
        signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        if handled:
            signal.signal(signal.SIGINT, before)


@contextmanager
def lost_interrupts() -> Iterator[Callable[[], None]]:
    """Give a function that raises KeyboardInterrupt if one was raised where it passes to nobody.

    What a destructor or the callback of a weak reference raises is shown and dropped, and
    matplotlib has so many of these that Ctrl-C is often raised in one. A handler of the user's that
    does not raise lets the work go on, as ever.
    """
    raised = []
    before = signal.getsignal(signal.SIGINT)

    def note(*arguments: Any) -> None:
        assert callable(before)
        try:
            before(*arguments)
        except KeyboardInterrupt as interrupt:
            raised.append(interrupt)
            raise

    def raise_if_lost() -> None:
        if raised:
            raise KeyboardInterrupt

    with interrupts_heard_by(note):
        yield raise_if_lost
