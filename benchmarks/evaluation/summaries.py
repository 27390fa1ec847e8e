"""Tables of other pages, from the same records: marked regions that are written anew."""

import re
from collections.abc import Callable

from common import number, table
from evaluation import convergence, iterations
from evaluation.cells import cell, present, ratio, seconds_form
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
from evaluation.records import Key, Store


def compared(store: Store, plan: Plan, data: Data) -> str:
    """Return everything known of the fits of a data set in one table, for docs/performance.md."""
    keys = present(store, plan, (plan.fit(data, entry) for entry in plan.entries))
    ours = plan.fit(data, OURS)
    base = store.figure(ours, "seconds")
    base_less = _without_search(store, ours)
    lines = []
    for key in keys:
        judged = key.of(kind="judgement")
        taken = store.figure(key, "seconds")
        less = _without_search(store, key)
        lines.append(
            [
                key.entry.title,
                cell(store, key, "seconds", ".2f"),
                ratio(taken, base, ".2f"),
                number(less, ".2f"),
                ratio(less, base_less, ".2f"),
                cell(store, judged, "exact_kl", ".4f"),
                cell(store, key, "reported_kl", ".4f"),
                cell(store, judged, "force_error", ".2f", 100),
                cell(store, judged, "neighbor_preservation", ".4f"),
                cell(store, judged, "label_agreement", ".4f"),
                cell(store, key, "peak_bytes", ".0f", 1e-6),
            ]
        )
    header = ["contestant", "seconds", "ratio", "less kNN", "ratio", "exact KL", "reported KL"]
    header += ["force error, %", "10-NN kept", "label agreement", "peak MB"]
    return table(header, lines)


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
                number(_without_search(store, key), seconds_form(taken)),
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
        ours, theirs = (
            store.figure(plan.fit(data, entry), "knn_seconds") for entry in (OURS, SKLEARNEX)
        )
        lines.append(
            [
                f"{data.title}, {data.rows:,} x {data.columns:,}",
                number(ours, ".2f"),
                number(theirs, ".1f"),
                ratio(theirs, ours),
            ]
        )
    return table(["data", "acctsne, s", "scikit-learn-intelex, s", "times"], lines)


def descents(store: Store, plan: Plan) -> str:
    """Tell of the descent on many problems, which benchmarks/descent.py has recorded."""
    return iterations.text(iterations.read(store.folder.parent / "descent.json"))


def _without_search(store: Store, key: Key) -> float | None:
    taken, search = (store.figure(key, name) for name in ("seconds", "knn_seconds"))
    return None if taken is None or search is None else taken - search


Made = Callable[[Store, Plan], str]

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
        "convergence": convergence.compared,
        "descent": descents,
        "searches": searches,
        "large": largest,
    },
}


def with_regions(page: str, regions: dict[str, Made], store: Store, plan: Plan) -> str:
    """Return a page with its marked regions written anew."""
    for name, made in regions.items():
        begin = f"<!-- {name}: made by benchmarks/paper.py -->"
        end = f"<!-- end of {name} -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        new = f"{begin}\n\n{made(store, plan)}\n\n{end}"
        before, *_, after = pattern.split(page, maxsplit=1)
        if len(pattern.findall(page)) != 1:
            raise ValueError(f"the page has not exactly one region {name!r}")
        page = before + new + after
    return page
