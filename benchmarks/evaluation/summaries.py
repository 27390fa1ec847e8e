"""Tables of other pages, from the same records: marked regions that are written anew."""

import re
from collections.abc import Callable

from common import number, table
from evaluation import convergence, iterations, small
from evaluation.cells import cell, present, ratio, seconds_form
from evaluation.end_to_end import hours_shown
from evaluation.growth import largest
from evaluation.plan import (
    CIFAR,
    DIGITS,
    FASHION,
    MNIST,
    OURS,
    SKLEARNEX,
    SYNTHETIC,
    Data,
    Plan,
)
from evaluation.records import Store


def compared(store: Store, plan: Plan, data: Data) -> str:
    """Return everything known of the fits of a data set in one table, for docs/performance.md."""
    keys = present(store, plan, (plan.fit(data, entry) for entry in plan.entries))
    lines = [[key.entry.title, *small.figures(store, key, plan.fit(data, OURS))] for key in keys]
    return table(["contestant", *small.HEADER], lines)


def short(store: Store, plan: Plan, data: Data) -> str:
    """Return what a reader of the README looks for."""
    keys = present(store, plan, (plan.fit(data, entry) for entry in plan.entries))
    lines = []
    for key in keys:
        judged = key.of(kind="judgement")
        taken = store.figure(key, "seconds")
        lines.append(
            [
                f"**{key.entry.title}**" if key.entry == OURS else key.entry.title,
                cell(store, key, "seconds", seconds_form(taken)),
                number(small.without_search(store, key), seconds_form(taken)),
                cell(store, key, "iterations", ".0f"),
                cell(store, judged, "exact_kl", ".3f"),
                cell(store, judged, "force_error", ".2f", 100),
            ]
        )
    header = ["package", "seconds", "without neighbours", "iterations", "exact KL"]
    return table([*header, "force error, %"], lines)


def million(store: Store, plan: Plan) -> str:
    """Tell of a million points in one sentence."""
    key = plan.fit(SYNTHETIC, OURS, 1_000_000)
    record = store.middle(key)
    recall = record.figures["timings"].get("recall") if record and record.ok else None
    return (
        f"A million points (synthetic, 20 dimensions): {cell(store, key, 'seconds', '.0f')} s for "
        f"the whole fit,\nneighbours of recall {number(recall, '.3f')} included, in "
        f"{cell(store, key, 'peak_bytes', '.1f', 1e-9)} GB of memory beyond the data."
    )


def memory(store: Store, plan: Plan) -> str:
    """Tell what large fits take."""
    taken = [
        cell(store, plan.fit(SYNTHETIC, OURS, rows), "peak_bytes", ".1f", 1e-9)
        for rows in (1_000_000, 10_000_000)
    ]
    return (
        f"A million points of 20 features took {taken[0]} GB beyond the data, ten million "
        f"{taken[1]} GB ([Performance](performance.md))."
    )


def searches(store: Store, plan: Plan) -> str:
    """Return the seconds of the exact searches for neighbours, of images by brute force too."""
    lines = []
    for data in (MNIST, FASHION, CIFAR):
        keys = [plan.fit(data, entry) for entry in (OURS, SKLEARNEX)]
        ours, theirs = (store.figure(key, "knn_seconds") for key in keys)
        lines.append(
            [
                f"{data.title}, {data.rows:,} x {data.columns:,}",
                number(ours, ".2f"),
                number(theirs, ".1f"),
                ratio(theirs, ours),
                hours_shown(store, keys[1], keys[0]),
            ]
        )
    header = ["data", "acctsne, s", "scikit-learn-intelex, s", "times", "hours apart"]
    return table(header, lines)


def descents(store: Store, plan: Plan) -> str:
    """Tell of the descent on many problems, which benchmarks/descent.py has recorded."""
    return iterations.text(iterations.read(store.folder.parent / "descent.json"))


Made = Callable[[Store, Plan], str | None]  # None if there are no records to make it from yet

# By page and by the name of the region.
REGIONS: dict[str, dict[str, Made]] = {
    "README.md": {
        "mnist": lambda store, plan: short(store, plan, MNIST),
        "digits": lambda store, plan: short(store, plan, DIGITS),
        "million": million,
    },
    "docs/faq.md": {"memory": memory},
    "docs/performance.md": {
        "mnist": lambda store, plan: compared(store, plan, MNIST),
        "digits": lambda store, plan: compared(store, plan, DIGITS),
        "small": small.region,
        "convergence": convergence.compared,
        "convergence of digits": convergence.told,
        "descent": descents,
        "searches": searches,
        "large": largest,
    },
}


def with_regions(page: str, regions: dict[str, Made], store: Store, plan: Plan) -> str:
    """Return a page with its marked regions written anew, those that there are records for."""
    for name, made in regions.items():
        begin = f"<!-- {name}: made by benchmarks/paper.py -->"
        end = f"<!-- end of {name} -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        before, *_, after = pattern.split(page, maxsplit=1)
        if len(pattern.findall(page)) != 1:
            raise ValueError(f"the page has not exactly one region {name!r}")
        new = made(store, plan)
        if new is not None:
            page = f"{before}{begin}\n\n{new}\n\n{end}{after}"
    return page
