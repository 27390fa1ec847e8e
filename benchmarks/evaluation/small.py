"""Parts of a data set as small as most are: ours and the fastest of the others, fitted in turn."""

from common import number, table
from evaluation.cells import NOT_YET, cell, ratio
from evaluation.contest import judgements, rounds
from evaluation.end_to_end import hours_shown
from evaluation.plan import OURS, SKLEARNEX, Plan
from evaluation.records import Key, Store, installed
from evaluation.table import Table

HEADER = (
    *("seconds", "ratio", "less kNN", "ratio", "exact KL", "reported KL", "force error, %"),
    *("10-NN kept", "label agreement", "peak MB"),
)


def without_search(store: Store, key: Key) -> float | None:
    taken, search = (store.figure(key, name) for name in ("seconds", "knn_seconds"))
    return None if taken is None or search is None else taken - search


def figures(store: Store, key: Key, ours: Key) -> list[str]:
    """Return everything known of a package's fits, beside ours of the same data."""
    judged = key.of(kind="judgement")
    less = without_search(store, key)
    return [
        cell(store, key, "seconds", ".2f"),
        ratio(store.figure(key, "seconds"), store.figure(ours, "seconds"), ".2f"),
        number(less, ".2f"),
        ratio(less, without_search(store, ours), ".2f"),
        cell(store, judged, "exact_kl", ".4f"),
        cell(store, key, "reported_kl", ".4f"),
        cell(store, judged, "force_error", ".2f", 100),
        cell(store, judged, "neighbor_preservation", ".4f"),
        cell(store, judged, "label_agreement", ".4f"),
        cell(store, key, "peak_bytes", ".0f", 1e-6),
    ]


def keys_of(plan: Plan) -> list[list[Key]]:
    """Return the fits of each part, ours first."""
    entries = [entry for entry in (OURS, SKLEARNEX) if entry in plan.entries]
    return [[plan.fit(data, entry, rows) for entry in entries] for data, rows in plan.small]


def wanted(store: Store, plan: Plan) -> list[Key]:
    found: list[Key] = []
    for fits in keys_of(plan):
        here = [key for key in fits if installed(key.contestant)]
        found += [*rounds(store, plan, here), *judgements(store, here)]
    return found


def compared(store: Store, plan: Plan) -> str:
    lines = []
    for fits in keys_of(plan):
        for key in fits:
            title = f"{key.rows:,}: {key.entry.title}"
            hours = hours_shown(store, key, fits[0])
            lines.append([title, hours, *figures(store, key, fits[0])])
    return table(["rows: contestant", "hours from ours", *HEADER], lines)


def region(store: Store, plan: Plan) -> str | None:
    """Return the table for docs/performance.md, once all of it has been measured."""
    keys = [key for fits in keys_of(plan) for key in fits]
    judged = [key.of(kind="judgement") for key in keys]
    return compared(store, plan) if all(map(store.get, [*keys, *judged])) else None


def text(store: Store, plan: Plan) -> str:
    parts = "; ".join(f"{data.title}, {data.part(rows)}" for data, rows in plan.small)
    made = region(store, plan)
    if made is None:
        return f"{parts}: {NOT_YET}."
    return (
        "Parts as small as most data are, fitted by ours and by the fastest of the others: "
        f"{parts}. Seconds and memory are medians.\n\n{made}"
    )


TABLE = Table("small", "Smaller data", wanted, text)
