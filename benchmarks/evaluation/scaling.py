"""How steps and whole fits gain by more cores: measured here, and predicted beyond."""

import json
from pathlib import Path
from typing import Any

from common import number, table
from evaluation.cells import NOT_YET, PRINTED
from evaluation.plan import OURS, OURS_AS_PAPER, SYNTHETIC, Data, Plan
from evaluation.records import Entry, Key, Store
from evaluation.steps import STEPS, step_seconds
from evaluation.table import Figure, Table

TOLERATED = 0.1  # by which a prediction may miss what was measured, and still be shown
SHOWN_CORES = ("2", "4", "8", "16", "32", "64")
ALL_STEPS = {**STEPS, "total": "whole fit"}


def pairs(plan: Plan) -> list[tuple[Data, int, Entry]]:
    """Return the fits that are measured at every number of threads."""
    found = [
        (SYNTHETIC, plan.step_rows, OURS_AS_PAPER),
        (SYNTHETIC, plan.step_rows, OURS),
    ]
    whole = [data for data in plan.datasets if data.name in ("mnist", "digits")]
    return [*found, (whole[-1], whole[-1].rows, OURS)] if whole else found


def counts(plan: Plan) -> list[int]:
    powers = [2**power for power in range(10) if 2**power < plan.threads]
    return [*powers, plan.threads]


def wanted(store: Store, plan: Plan) -> list[Key]:
    return [
        plan.fit(data, entry, rows, threads)
        for data, rows, entry in pairs(plan)
        for threads in counts(plan)
    ]


def text(store: Store, plan: Plan) -> str:
    printed = PRINTED["scaling"]
    header = ["step", "paper: daal4py, 32 cores", "Acc-t-SNE, 32 cores"]
    columns = []
    for data, rows, entry in pairs(plan):
        for threads in counts(plan)[1:]:
            header.append(f"{entry.title}, {data.title} {rows:,}: {threads} threads")
            both = [store.get(plan.fit(data, entry, rows, n)) for n in (1, threads)]
            columns.append(both)
    lines = []
    for step, title in ALL_STEPS.items():
        line = [title]
        for package in ("daal4py", "Acc-t-SNE"):
            line.append(number(printed["speedup"][package].get(step)))
        for one, more in columns:
            if one is None or more is None or not one.ok or not more.ok:
                line.append(NOT_YET)
                continue
            base, taken = step_seconds(one, step), step_seconds(more, step)
            line.append(f"{base / taken:.2f}" if base > 0.05 and taken > 0 else "-")
        lines.append(line)
    parts = [
        f"Times faster than on one thread, measured on the cores at hand; the paper's from "
        f"{printed['source']}. Steps of less than 0.05 s are left out.",
        table(header, lines),
    ]
    return "\n\n".join(parts + predicted(store))


# What benchmarks/simulate.py writes: a list of {"data": name, "steps": {step: {cores: seconds}},
# "measured": {step: {cores: seconds}}}.


def predictions(store: Store) -> list[dict[str, Any]]:
    path = store.folder.parent / "scaling-prediction.json"
    found: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    return found


def misses(prediction: dict[str, Any]) -> dict[str, float]:
    """Return by how much the prediction misses what was measured, for each step."""
    found: dict[str, float] = {}
    for step, measured in prediction["measured"].items():
        for cores, seconds in measured.items():
            if cores != "1" and seconds and cores in prediction["steps"].get(step, {}):
                miss = prediction["steps"][step][cores] / seconds - 1
                found[step] = max(found.get(step, 0.0), miss, key=abs)
    return found


def trusted(prediction: dict[str, Any]) -> bool:
    off = misses(prediction)
    return bool(off) and all(abs(miss) <= TOLERATED for miss in off.values())


def predicted(store: Store) -> list[str]:
    """Tell what is predicted for more cores, if the prediction holds for those at hand."""
    parts = []
    for prediction in predictions(store):
        off = misses(prediction)
        title = f"**Predicted**, {prediction['data']}"
        told = ", ".join(f"{ALL_STEPS.get(step, step)} {miss:+.0%}" for step, miss in off.items())
        if not trusted(prediction):
            told = told or "nothing was measured"
            parts.append(
                f"{title}: the simulation misses what was measured here by more than "
                f"{TOLERATED:.0%} ({told}), so its figures for more cores are not shown."
            )
            continue
        lines = []
        for step, seconds in prediction["steps"].items():
            speedups = (
                seconds["1"] / seconds[cores] if seconds.get(cores) else None
                for cores in SHOWN_CORES
            )
            lines.append([ALL_STEPS.get(step, step), *(number(s, ".1f") for s in speedups)])
        header = ["step", *(f"{cores} cores" for cores in SHOWN_CORES)]
        parts.append(
            f"{title}: times faster than on one thread, by a replay of chunk times recorded on one "
            "thread with the native loop's scheduling rule and measured costs of waking, waiting "
            f"and memory. Against what was measured here: {told}."
        )
        parts.append(table(header, lines))
    return parts or [f"Predicted for more cores: {NOT_YET} (`benchmarks/simulate.py`)."]


def draw(store: Store, plan: Plan, plt: Any, path: Path) -> None:
    shown = [prediction for prediction in predictions(store) if trusted(prediction)]
    width = 4.2 * len(shown)
    figure, grid = plt.subplots(
        1, len(shown), figsize=(width, 3.6), squeeze=False, layout="constrained"
    )
    for axes, prediction in zip(grid.flat, shown, strict=True):
        for step, seconds in prediction["steps"].items():
            cores = sorted(seconds, key=int)
            speedups = [seconds["1"] / seconds[n] if seconds[n] else 1.0 for n in cores]
            counts = [int(n) for n in cores]
            axes.loglog(counts, speedups, ".-", label=ALL_STEPS.get(step, step))
            measured = prediction["measured"].get(step, {})
            for n, taken in measured.items():
                if n != "1" and taken:
                    axes.plot(int(n), measured["1"] / taken, "kx", ms=5)
        axes.plot(counts, counts, ":", color="#888888")
        axes.set(xlabel="cores", ylabel="times faster than one", title=prediction["data"])
        axes.set_xticks(counts, [str(n) for n in counts])
        axes.minorticks_off()
        axes.legend(fontsize=7, frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


TABLE = Table(
    "scaling",
    "Scaling",
    wanted,
    text,
    (
        Figure(
            "scaling",
            "Predicted speedup by number of cores, step by step; crosses are measured",
            lambda store, plan: any(map(trusted, predictions(store))),
            draw,
        ),
    ),
)
