"""How the cost of whole fits grows with the number of points, up to ten million."""

from pathlib import Path
from typing import Any

import numpy as np

from common import number, table
from evaluation import estimate
from evaluation.cells import NOT_YET, cell, seconds_form
from evaluation.contest import rounds
from evaluation.plan import OPENTSNE, OURS, SKLEARN, SKLEARNEX, SYNTHETIC, Plan
from evaluation.records import Entry, Key, Store, installed
from evaluation.table import Figure, Table

OTHERS = (SKLEARNEX, OPENTSNE, SKLEARN)


def others(plan: Plan) -> list[Entry]:
    return [entry for entry in OTHERS if entry in plan.entries]


def keys_of(plan: Plan, entry: Entry) -> list[Key]:
    return [plan.fit(SYNTHETIC, entry, rows) for rows in plan.growth]


def wanted(store: Store, plan: Plan) -> list[Key]:
    keys: list[Key] = []
    for size in range(len(plan.growth)):
        fits = [keys_of(plan, OURS)[size]]
        for entry in others(plan):
            key = keys_of(plan, entry)[size]
            expected = estimate.fit_seconds(store, plan, key)
            if installed(entry.contestant) and expected <= plan.growth_seconds:
                fits.append(key)
        keys += rounds(store, plan, fits)
    return keys


def points(store: Store, plan: Plan, entry: Entry) -> list[tuple[int, float]]:
    found = ((key.rows, store.figure(key, "seconds")) for key in keys_of(plan, entry))
    return [(rows, seconds) for rows, seconds in found if seconds is not None]


def text(store: Store, plan: Plan) -> str:
    lines = []
    for size, key in enumerate(keys_of(plan, OURS)):
        taken = store.figure(key, "seconds")
        record = store.middle(key)
        recall = record.figures["timings"].get("recall") if record and record.ok else None
        theirs = []
        for entry in others(plan):
            other = keys_of(plan, entry)[size]
            value = store.figure(other, "seconds")
            longer = estimate.fit_seconds(store, plan, other) > plan.growth_seconds
            skipped = store.get(other) is None and longer
            theirs.append("-" if skipped else cell(store, other, "seconds", seconds_form(value)))
        lines.append(
            [
                f"{key.rows:,}",
                cell(store, key, "seconds", seconds_form(taken)),
                cell(store, key, "iterations", ".0f"),
                number(recall, ".4f"),
                cell(store, key, "peak_bytes", ",.0f", 1e-6),
                *theirs,
            ]
        )
    header = [
        "points",
        "acctsne, s",
        "iterations",
        "recall",
        "MB",
        *(f"{e.title}, s" for e in others(plan)),
    ]
    return (
        "Whole fits of synthetic data of 20 columns, fewer points being the first of more; other "
        f"packages as far as they are expected to take {plan.growth_seconds:g} s at most. The "
        "recall is that of the neighbours, 1 where they are exact, and memory is beyond the data."
        f"\n\n{table(header, lines)}"
    )


def draw(store: Store, plan: Plan, plt: Any, path: Path) -> None:
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for entry in (OURS, *others(plan)):
        found = points(store, plan, entry)
        if not found:
            continue
        large = [(rows, seconds) for rows, seconds in found if rows >= 10_000]
        label = entry.title
        if len(large) > 1:
            logs = np.log(np.array(large, dtype=float))
            label += f", N^{np.polyfit(logs[:, 0], logs[:, 1], 1)[0]:.2f} from 10,000 on"
        axes.loglog(*zip(*found, strict=True), "o-", ms=3, label=label)
    axes.set(xlabel="points (synthetic, 20 columns)", ylabel="seconds of a whole fit")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def largest(store: Store, plan: Plan) -> str:
    """Tell the steps of the fits of a million points and of ten, each those of one fit."""
    keys = [key for key in keys_of(plan, OURS) if key.rows >= 1_000_000] or keys_of(plan, OURS)[-1:]
    records = [store.middle(key) for key in keys]
    steps = {
        "knn": "neighbours",
        "bsp": "perplexity search",
        "symmetrize": "symmetrisation, into the compact form",
        "init": "initial layout",
        "tree_building": "tree building",
        "summarization": "summarisation",
        "attractive": "attractive forces",
        "repulsive": "repulsive forces",
        "relabel": "relabelling",
        "update": "update",
    }
    lines = []
    for step, title in steps.items():
        values = [r.figures["timings"].get(step) if r and r.ok else None for r in records]
        if any(values) or not any(records):
            lines.append(
                [
                    title,
                    *(
                        number(value, ".1f") if record else NOT_YET
                        for value, record in zip(values, records, strict=True)
                    ),
                ]
            )
    for title, name, form, scale in (
        ("**whole fit**", "seconds", ".1f", 1.0),
        ("iterations", "iterations", ".0f", 1.0),
        ("KL divergence, by the optimiser's own Z", "reported_kl", ".4f", 1.0),
        ("memory beyond the data, GB", "peak_bytes", ".2f", 1e-9),
    ):
        lines.append(
            [
                title,
                *(
                    number(scale * record.figures[name], form)
                    if record and record.ok
                    else cell(store, key, name, form)
                    for key, record in zip(keys, records, strict=True)
                ),
            ]
        )
    recalls = [r.figures["timings"].get("recall") if r and r.ok else None for r in records]
    lines.append(["estimated recall of the neighbours", *(number(v, ".4f") for v in recalls)])
    times = [str(len(store.fits(key)) or "-") for key in keys]
    lines.append(["fits, of which this is the median one", *times])
    return table(["step, seconds", *(f"{key.rows:,} points" for key in keys)], lines)


TABLE = Table(
    "growth",
    "Growth, up to ten million points",
    wanted,
    lambda store, plan: (
        f"{text(store, plan)}\n\nThe largest of ours, step by step:\n\n{largest(store, plan)}"
    ),
    (
        Figure(
            "growth",
            "Seconds of whole fits against the number of points, log-log",
            lambda store, plan: len(points(store, plan, OURS)) > 1,
            draw,
        ),
    ),
)
