"""What a user sees while a fit runs: log lines, and a bar on a terminal."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from tqdm import tqdm

logger = logging.getLogger("acctsne")
logger.addHandler(logging.NullHandler())


@contextmanager
def shown_log(verbose: int) -> Iterator[None]:
    """Show log lines on stderr while `verbose`, unless the program handles them itself."""
    handled = logging.getLogger().hasHandlers() or any(
        not isinstance(handler, logging.NullHandler) for handler in logger.handlers
    )
    if not verbose:
        yield
        return
    level = logger.level
    handler = _TqdmHandler()
    handler.setFormatter(logging.Formatter("[acctsne] %(message)s"))
    if not handled:
        logger.addHandler(handler)
    logger.setLevel(min(level or logging.INFO, logging.INFO))
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class _TqdmHandler(logging.Handler):
    """Writes to stderr without tearing a progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        tqdm.write(self.format(record), file=sys.stderr)


@contextmanager
def progress_bar(
    description: str, total: int, unit: str, verbose: int
) -> Iterator[Callable[[int], None] | None]:
    """Give a function that moves a bar to a count, or None where no bar is to be drawn."""
    if not verbose or not sys.stderr.isatty():
        yield None
        return
    with tqdm(total=total, desc=description, unit=unit, leave=False, file=sys.stderr) as bar:

        def move_to(count: int) -> None:
            bar.update(count - bar.n)

        yield move_to


class StageTimer:
    """Collects the seconds of named stages."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._start = perf_counter()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time spent inside to the stage's seconds."""
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - start

    def total(self) -> float:
        """Seconds since the timer was made."""
        return perf_counter() - self._start
