"""How many iterations a fit needs, from what benchmarks/descent.py has written."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from common import number, table
from evaluation.cells import LOST_COMMITS, NOT_YET

# Columns of the table by the names of figures, with their form; "curve" has one for each iteration.
COLUMNS = {
    "reached": ("to the same KL", ".0f"),
    "ends_after": ("ends after", ".0f"),
    "exact_kl": ("exact KL", ".4f"),
    "reference_kl": ("reference's", ".4f"),
    "difference": ("difference, %", "+.1f"),
    "kept": ("10-NN kept", ".3f"),
    "reference_kept": ("reference's", ".3f"),
    "labels": ("labels", ".3f"),
    "reference_labels": ("reference's", ".3f"),
    "ranks": ("rank correlation", ".3f"),
    "reference_ranks": ("reference's", ".3f"),
}
CURVE = ("100", "130", "150", "200", "250", "300")

Entry = Mapping[str, Any]  # {"data": title, "date", "commit", "cpu", "figures": {name: value}}


def read(path: Path) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    return entries


def write(path: Path, entries: Sequence[Entry]) -> None:
    """Put entries into the file, each in the place of one for the same data."""
    found = {entry["data"]: entry for entry in (*read(path), *entries)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(list(found.values()), indent=1) + "\n")


def values(entry: Entry) -> dict[str, float | None]:
    """Return the figures of an entry by the titles' names, with the curve's."""
    figures = entry["figures"]
    return {
        **{name: figures.get(name) for name in COLUMNS},
        **{at: figures["curve"].get(at) for at in CURVE},
    }


def rows(entries: Sequence[Entry]) -> str:
    """Return all figures as a table."""
    forms = {**{name: form for name, (_, form) in COLUMNS.items()}, **dict.fromkeys(CURVE, "+.1f")}
    lines = [
        [entry["data"], *(number(value, forms[name]) for name, value in values(entry).items())]
        for entry in entries
    ]
    header = ["data", *(title for title, _ in COLUMNS.values()), *(f"at {at}, %" for at in CURVE)]
    return table(header, lines)


def means(entries: Sequence[Entry]) -> Entry:
    """Return an entry of the means, over those that have a figure."""
    found = [values(entry) for entry in entries]
    known = {
        name: [value for each in found if (value := each[name]) is not None] for name in found[0]
    }
    averages = {name: mean(each) if each else None for name, each in known.items()}
    curve = {at: averages.pop(at) for at in CURVE}
    return {"data": "mean", "figures": {**averages, "curve": curve}}


def text(entries: Sequence[Entry]) -> str:
    """Tell all of it: the table, what stands out, and what it was measured with."""
    if not entries:
        return f"{NOT_YET} (`benchmarks/descent.py`)"
    figures = {entry["data"]: values(entry) for entry in entries}
    # Titles of data sets end in their shape; the others are generated, or ask for something else.
    sets = [f["reached"] for name, f in figures.items() if " x " in name and f["reached"]]
    above = [
        f"{name} by {f['difference']:.1f} %"
        for name, f in figures.items()
        if f["difference"] is not None and f["difference"] > 0
    ]
    ranks = [values(means(entries))[name] for name in ("ranks", "reference_ranks")]
    told = []
    if sets:
        told.append(
            f"Data sets take {min(sets):.0f} to {max(sets):.0f} iterations to the reference's KL "
            "divergence."
        )
    told.append(f"Above it end: {'; '.join(above) or 'none'}.")
    told.append(
        "The mean rank correlation, of how much of the large distances is kept, is "
        f"{number(ranks[0], '.3f')} against {number(ranks[1], '.3f')}."
    )
    made = dict.fromkeys(
        f"{entry.get('cpu', 'processor not recorded')}, {entry.get('date', 'date not recorded')}, "
        + (f"commit {entry['commit']}" if "commit" in entry else "commit not recorded")
        for entry in entries
    )
    measured = f"Measured with: {'; '.join(made)}."
    if len({entry["commit"] for entry in entries if "commit" in entry}) > 1:
        measured += f" {LOST_COMMITS}"
    return f"{rows(entries)}\n\n{' '.join(told)}\n\n{measured}"
