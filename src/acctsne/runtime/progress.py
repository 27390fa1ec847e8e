"""What a user sees while a fit runs: log lines, and a bar on a terminal or in a notebook."""

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from threading import Event, Lock, Thread
from typing import Any

from tqdm import tqdm

from acctsne.runtime.stderr import say

# Characters of a line and lines, where the terminal does not know.
USUAL_SIZE = {"ncols": 80, "nrows": 24}

# Moves a bar to a count; None where no bar is drawn.
Progress = Callable[[int], None] | None

logger = logging.getLogger("acctsne")
logger.addHandler(logging.NullHandler())


class _SayingHandler(logging.Handler):
    """Says what is logged."""

    def emit(self, record: logging.LogRecord) -> None:
        say(self.format(record))


class _ShownLog:
    """The log on stderr, unless the program handles it itself, while any thread wants it shown."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._wanted_by = 0
        self._level = logging.NOTSET
        self._handler = _SayingHandler()
        self._handler.setFormatter(logging.Formatter("[acctsne] %(message)s"))

    def __enter__(self) -> None:
        with self._lock:
            if not self._wanted_by:
                handled = logging.getLogger().hasHandlers() or any(
                    not isinstance(handler, logging.NullHandler) for handler in logger.handlers
                )
                if not handled:
                    logger.addHandler(self._handler)
                self._level = logger.level
                logger.setLevel(min(self._level or logging.INFO, logging.INFO))
            self._wanted_by += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._wanted_by -= 1
            if not self._wanted_by:
                logger.removeHandler(self._handler)
                logger.setLevel(self._level)


_SHOWN_LOG = _ShownLog()


def shown_log(verbose: int) -> AbstractContextManager[None]:
    """Show log lines on stderr while `verbose`, unless the program handles them itself."""
    return _SHOWN_LOG if verbose else nullcontext()


@contextmanager
def progress_bar(description: str, total: int, unit: str, verbose: int) -> Iterator[Progress]:
    """Give a function that moves a bar to a count, or None where no bar is to be drawn."""
    if not _bars_are_seen(verbose):
        yield None
        return
    with _bar(total=total, desc=description, unit=unit) as bar:

        def move_to(count: int) -> None:
            bar.update(count - bar.n)

        yield move_to


@contextmanager
def busy(description: str, verbose: int) -> Iterator[None]:
    """Show that a stage without a count is under way, and for how long."""
    if not _bars_are_seen(verbose):
        yield
        return
    done = Event()
    with _bar(desc=description, bar_format="{desc}: {elapsed}") as bar:

        def tick() -> None:
            while not done.wait(1.0):
                bar.refresh()

        clock = Thread(target=tick, daemon=True)
        clock.start()
        try:
            yield
        finally:
            done.set()
            clock.join()


def _bars_are_seen(verbose: int) -> bool:
    return bool(verbose) and sys.stderr is not None and (_on_a_terminal() or in_notebook())


def _on_a_terminal() -> bool:
    """Say whether stderr is one: it may be closed, or an object of the user's that only writes."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False


def in_notebook() -> bool:
    """Say whether an IPython kernel runs us; an IPython on a terminal has none."""
    # Whoever runs us in a kernel has imported it.
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _bar(**options: Any) -> Any:
    """Make a bar of widgets in a notebook that has them, of characters elsewhere."""
    if in_notebook() and find_spec("ipywidgets"):
        from tqdm.notebook import tqdm as widget_bar

        return widget_bar(leave=False, file=sys.stderr, **options)
    more: dict[str, Any] = {**_size(), **options}
    return tqdm(leave=False, file=sys.stderr, **more)


def _size() -> dict[str, int]:
    """Choose a size for terminals that say that they have none, on which tqdm draws nothing."""
    try:
        told = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):
        return {}
    return {} if all(told) else USUAL_SIZE
