"""What a table or figure of the page is: what it wants measured, and how it is told and drawn."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.plan import Plan
from evaluation.records import Key, Store


@dataclass(frozen=True)
class Figure:
    """A picture, which is drawn once there is something to show."""

    name: str  # of the file
    alt: str
    ready: Callable[[Store, Plan], bool]
    draw: Callable[[Store, Plan, Any, Path], None]  # with pyplot, into a file


@dataclass(frozen=True)
class Table:
    name: str
    title: str
    wanted: Callable[[Store, Plan], list[Key]]
    text: Callable[[Store, Plan], str]
    figures: tuple[Figure, ...] = ()
    paper: str = ""  # which of the paper's tables and figures it answers
