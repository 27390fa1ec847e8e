"""What stands in the cells of tables, measured or not."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from common import number
from evaluation.contest import part_rows, too_long
from evaluation.plan import Data, Plan
from evaluation.records import Key, Store

NOT_YET = "not yet measured"
# Of more commits than one: records outlive the branches that they were made on.
LOST_COMMITS = "A commit that the repository does not have was not merged as it was."
PRINTED: dict[str, Any] = json.loads((Path(__file__).parent / "printed.json").read_text())


def cell(store: Store, key: Key, name: str, form: str = ".2f", scale: float = 1.0) -> str:
    """Return a figure, the median over repeats, or why it is not there."""
    record = store.get(key)
    if record is None:
        return "-" if too_long(store, key) else NOT_YET
    if not record.ok:
        return record.status
    value = store.figure(key, name)
    return number(None if value is None else value * scale, form)


def ratio(above: float | None, below: float | None, form: str = ".1f") -> str:
    return number(above / below if above is not None and below else None, form)


def groups(store: Store, plan: Plan, data: Data, threads: int) -> list[int]:
    """Return the numbers of rows on which contestants meet: all, and a part if some need it."""
    part = part_rows(store, data, threads)
    return [data.rows] if part is None else [data.rows, part]


def present(store: Store, plan: Plan, keys: Iterable[Key]) -> list[Key]:
    """Leave out contestants that are not installed; the page lists them once."""
    out = absent(store)
    return [key for key in keys if key.contestant not in out]


def absent(store: Store) -> set[str]:
    """Return the contestants that were not installed wherever they were asked."""
    asked: dict[str, set[str]] = {}
    for record in store:
        if record.key.kind == "fit":
            asked.setdefault(record.key.contestant, set()).add(record.status)
    return {name for name, statuses in asked.items() if statuses == {"not installed"}}


def without_data(store: Store, data: Data) -> str | None:
    """Return why a data set could not be had, if nothing could be measured on it."""
    found = [r for r in store if r.key.dataset == data.name and r.key.kind == "fit"]
    if found and all(record.status in ("no data", "not installed") for record in found):
        reasons = (record.figures["reason"] for record in found if record.status == "no data")
        return next(reasons, None)
    return None


def failures(store: Store, keys: Iterable[Key]) -> list[str]:
    """Say which contestants failed, and how."""
    failed = [record for key in keys if (record := store.get(key)) and record.status == "failed"]
    return [
        f"{record.key.entry.title} failed on {record.key.rows:,} rows of {record.key.dataset}: "
        f"{record.figures['reason']}."
        for record in failed
    ]


def seconds_form(entry_seconds: float | None) -> str:
    """Two digits after the point below ten seconds, one above."""
    return ".2f" if entry_seconds is not None and entry_seconds < 10 else ".1f"


def counted(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"
