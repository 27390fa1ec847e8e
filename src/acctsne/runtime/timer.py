"""How long the stages of a fit take."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter


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
