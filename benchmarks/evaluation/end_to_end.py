"""Whole fits of all packages on all data sets: seconds, and speedup over scikit-learn."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from common import table
from evaluation import estimate
from evaluation.cells import (
    NOT_YET,
    PRINTED,
    cell,
    counted,
    failures,
    groups,
    present,
    ratio,
    seconds_form,
    without_data,
)
from evaluation.contest import contest, part_key, too_long
from evaluation.plan import OURS, SKLEARN, Data, Plan
from evaluation.records import Entry, Key, Store
from evaluation.table import Figure, Table

SERIOUS_ROWS = 10_000  # from which on a fit says something about more than a million
ONE_RUN = 1.0  # hours; what lies farther apart is not compared within one run


def wanted(store: Store, plan: Plan) -> list[Key]:
    return [key for data in plan.datasets for key in contest(store, plan, data, plan.threads)]


def text(store: Store, plan: Plan) -> str:
    parts = [
        "Whole fits, the search for neighbours included; every package with its defaults from the "
        f"same initial layout, perplexity {plan.perplexity:g}, on {plan.threads} threads. Others "
        f"do {plan.iterations} iterations, ours ends by itself when the map is done. Medians of "
        "up to five fits below 10 s and three below 60 s, each in a fresh process; longer ones "
        "once, or three times where `--alternate` was given. Contestants of one run take turns. "
        '"Hours from ours" says how far, at most, a package\'s fits lie from the nearest of ours; '
        "beyond an hour it is marked, as the machine may have had another speed by then. The "
        "precision is that of the data. Ours computes all in it; scikit-learn descends in float32 "
        "and openTSNE in float64 whatever they are given, so that each enters once; "
        "scikit-learn-intelex searches neighbours in it and descends in float64."
    ]
    for data in plan.datasets:
        parts += section(store, plan, data, plan.threads)
    paper = PRINTED["end_to_end"]
    over = ", ".join(f"{times:g} times as fast as {name}" for name, times in paper["over"].items())
    parts.append(
        f"The paper ({paper['source']}): Acc-t-SNE is {paper['speedup']['least']} to "
        f"{paper['speedup']['most']} times as fast as scikit-learn, and up to {over}. Of "
        "the seconds that its bars show, its text has those of Acc-t-SNE: [float32 against "
        f"float64](#float32-against-float64). {difference(plan.threads)}"
    )
    return "\n\n".join(parts)


def difference(threads: int) -> str:
    """Say what differs from the paper, in one line."""
    return (
        f"What differs: the paper had {PRINTED['machine']}; {PRINTED['rule']}. Here "
        f"{counted(threads)} of the machine above did the work, and ours ends by itself."
    )


def section(store: Store, plan: Plan, data: Data, threads: int) -> list[str]:
    """Tell of one data set: a table of all rows, and one of the part that slow packages got."""
    reason = without_data(store, data)
    if reason is not None:
        return [f"**{data.title}**: {NOT_YET}: {reason}."]
    parts = []
    decision = store.get(part_key(data, threads))
    predicted = decision.figures["predicted"] if decision else {}
    guesses = {}  # by entry: the fits that can be extrapolated from, with what they lead to
    for entry in plan.entries:
        if "/".join(entry) in predicted:
            guesses[entry] = guessed(store, plan.fit(data, entry, threads=threads))
    for rows in groups(store, plan, data, threads):
        keys = present(
            store, plan, (plan.fit(data, entry, rows, threads) for entry in plan.entries)
        )
        base = store.figure(plan.fit(data, SKLEARN, rows, threads), "seconds")
        lines = []
        for key in keys:
            taken = store.figure(key, "seconds")
            shown = cell(store, key, "seconds", seconds_form(taken))
            guess = guesses.get(key.entry)
            if rows == data.rows and taken is None and guess:
                shown = "about {1:,.0f}, from {0:,} rows".format(*guess[-1])
            lines.append(
                [
                    key.entry.title,
                    key.dtype,
                    shown,
                    str(len(store.fits(key)) or "-"),
                    hours_shown(store, key, plan.fit(data, OURS, rows, threads)),
                    ratio(base, taken),
                    cell(store, key, "iterations", ".0f"),
                ]
            )
        header = ["package", "precision", "seconds", "fits", "hours from ours"]
        header += ["times scikit-learn", "iterations"]
        parts.append(f"**{data.title}**, {data.part(rows)}:")
        parts.append(table(header, lines))
        parts += failures(store, keys)
    if decision and predicted:
        limit = decision.figures["most_seconds"] / 60
        parts.append(
            f"Who would take more than {limit:g} minutes for all rows, by extrapolation from fewer "
            "(N log N, and N squared for a search over all pairs), gets the part instead; seconds "
            'with "about" are extrapolated, each from the most rows that the package was fitted '
            "to on as many threads, and the medians of those fits. These are not the same rows "
            "for all, so no speedup is formed from them."
        )
        parts += spread_of(guesses)
    return parts


def guessed(store: Store, key: Key) -> list[tuple[int, float]]:
    """Return what fits of less rows lead to: their rows, and the seconds for all rows."""
    return [
        (smaller.rows, estimate.extrapolated(store, smaller, key))
        for smaller in estimate.smaller_fits(store, key)
    ]


def spread_of(guesses: dict[Entry, list[tuple[int, float]]]) -> list[str]:
    """Say how much an extrapolation depends on the rows that it begins with."""
    told = []
    for entry, found in guesses.items():
        large = [(rows, seconds) for rows, seconds in found if rows >= SERIOUS_ROWS]
        if len(large) > 1:
            from_each = ", ".join(f"{seconds:,.0f} s from {rows:,}" for rows, seconds in large)
            told.append(f"{entry.title}: {from_each}")
    if not told:
        return []
    return [f"How far it depends on the rows that it begins with: {'; '.join(told)}."]


def hours_apart(store: Store, key: Key, ours: Key) -> float | None:
    """Return how far the farthest of a package's fits lies from the nearest of ours."""
    theirs, own = (
        [datetime.fromisoformat(record.date) for record in store.fits(each) if record.ok]
        for each in (key, ours)
    )
    if not theirs or not own:
        return None
    return max(min(abs((date - other).total_seconds()) for other in own) for date in theirs) / 3600


def hours_shown(store: Store, key: Key, ours: Key) -> str:
    apart = None if key == ours else hours_apart(store, key, ours)
    if apart is None:
        return "-"
    return "0" if apart == 0 else f"{apart:.1f}" if apart <= ONE_RUN else f"**{apart:.1f}**"


@dataclass(frozen=True)
class Bar:
    """One contestant's seconds in a panel, fitted or extrapolated from so many rows."""

    entry: Entry
    seconds: float
    from_rows: int | None = None


def drawn(store: Store, plan: Plan) -> list[tuple[Data, int, list[Bar]]]:
    """Return the panels: data, rows, and who has been measured on them or extrapolated to them."""
    panels = []
    for data in plan.datasets:
        for rows in groups(store, plan, data, plan.threads):
            found = (_bar(store, plan, data, rows, entry) for entry in plan.entries)
            bars = [bar for bar in found if bar is not None]
            if any(bar.from_rows is None for bar in bars):
                panels.append((data, rows, bars))
    return panels


def _bar(store: Store, plan: Plan, data: Data, rows: int, entry: Entry) -> Bar | None:
    key = plan.fit(data, entry, rows)
    taken = store.figure(key, "seconds")
    if taken is not None:
        return Bar(entry, taken)
    guesses = guessed(store, key) if too_long(store, key) else []
    return Bar(entry, guesses[-1][1], guesses[-1][0]) if guesses else None


def draw(store: Store, plan: Plan, plt: Any, path: Path) -> None:
    panels = drawn(store, plan)
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    figure, grid = plt.subplots(
        lines, columns, figsize=(4.2 * columns, 3.4 * lines), squeeze=False, layout="constrained"
    )
    for axes in grid.flat[len(panels) :]:
        axes.axis("off")
    for axes, (data, rows, bars) in zip(grid.flat, panels, strict=False):
        taken = [bar.seconds for bar in bars]
        places = range(len(bars))
        for place, bar in zip(places, bars, strict=True):
            if bar.from_rows is None:
                axes.bar(place, bar.seconds, color="#3b6fb6" if bar.entry.ours else "#b0b0b0")
                shown = f"{bar.seconds:.3g}"
            else:
                axes.bar(place, bar.seconds, color="white", edgecolor="#808080", hatch="///")
                shown = f"~{bar.seconds:.2g}" if bar.seconds < 100 else f"~{bar.seconds:,.0f}"
            axes.annotate(shown, (place, bar.seconds), ha="center", va="bottom", fontsize=7)
        axes.set_yscale("log")
        axes.set_ylim(min(taken) / 3, max(taken) * 2)  # room below the least, and for figures
        titles = [bar.entry.title.replace(", ", ",\n") for bar in bars]
        axes.set_xticks(list(places), titles, rotation=60, ha="right", fontsize=7)
        axes.set_ylabel("seconds", fontsize=8)
        axes.set_title(f"{data.title}\n{data.part(rows)}", fontsize=9)
        if any(bar.from_rows is not None for bar in bars):
            axes.text(
                *(0.03, 0.97, "hatched: extrapolated\nfrom fewer rows"),
                transform=axes.transAxes,
                va="top",
                fontsize=7,
            )
        base = store.figure(plan.fit(data, SKLEARN, rows), "seconds")
        if base is not None:
            fitted = [place for place in places if bars[place].from_rows is None]
            right = axes.twinx()
            times = [base / bars[place].seconds for place in fitted]
            right.plot(fitted, times, "o-", color="#c2571a", ms=3, lw=1)
            right.set_yscale("log")
            right.set_ylabel("times scikit-learn", color="#c2571a", fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


TABLE = Table(
    "end-to-end",
    "End to end",
    wanted,
    text,
    (
        Figure(
            "end-to-end",
            "Seconds of whole fits as bars, hatched where extrapolated, and speedup over "
            "scikit-learn as lines, by data set",
            lambda store, plan: bool(drawn(store, plan)),
            draw,
        ),
    ),
    paper="Figure 4, seconds of whole fits",
)
