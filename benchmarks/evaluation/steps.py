"""Seconds of every step, on one thread and on all, beside the paper's."""

from typing import Any

from common import table
from evaluation.cells import NOT_YET, PRINTED, counted
from evaluation.plan import OURS, OURS_AS_PAPER, SYNTHETIC, Plan
from evaluation.records import Key, Record, Store
from evaluation.table import Table

# The paper's steps by the names in `timings_`.
STEPS = {
    "bsp": "BSP",
    "tree_building": "tree building",
    "summarization": "summarisation",
    "attractive": "attractive",
    "repulsive": "repulsive",
}


def keys_of(plan: Plan, threads: int) -> list[Key]:
    entries = (OURS_AS_PAPER, OURS)
    return [plan.fit(SYNTHETIC, entry, plan.step_rows, threads) for entry in entries]


def thread_counts(plan: Plan) -> list[int]:
    return sorted({1, plan.threads})


def wanted(store: Store, plan: Plan) -> list[Key]:
    return [key for threads in reversed(thread_counts(plan)) for key in keys_of(plan, threads)]


def step_seconds(record: Record, step: str) -> float:
    """Return the seconds of a step, or of the whole fit."""
    figures: dict[str, Any] = record.figures
    return float(figures["seconds"] if step == "total" else figures["timings"].get(step, 0.0))


def text(store: Store, plan: Plan) -> str:
    printed = PRINTED["steps"]
    parts = [
        f'Seconds over a whole fit of {plan.step_rows:,} synthetic points of 20 columns. "As the '
        f'paper" is its method and precision with our steps: tree only, float64, '
        f'{plan.iterations} iterations; "default" is what a user gets: float32, the grid where it '
        "is faster, an end when the map is done. The total has all else too, the search for "
        "neighbours in the first place."
    ]
    for threads in thread_counts(plan):
        cores = "1" if threads == 1 else "32"
        paper = printed[cores]
        records = [store.get(key) for key in keys_of(plan, threads)]
        lines = []
        for step, title in {**STEPS, "total": "total"}.items():
            line = [title, *(f"{paper[name][step]:,.1f}" for name in ("daal4py", "Acc-t-SNE"))]
            for record in records:
                if record is None:
                    line.append(NOT_YET)
                elif not record.ok:
                    line.append(record.status)
                else:
                    line.append(f"{step_seconds(record, step):,.1f}")
            lines.append(line)
        done = [
            str(record.figures["iterations"]) if record and record.ok else "-" for record in records
        ]
        lines.append(["iterations", "1000", "1000", *done])
        core = "core" if cores == "1" else "cores"
        header = ["step", f"paper, {cores} {core}: daal4py", "Acc-t-SNE"]
        header += ["acctsne, as the paper", "acctsne, default"]
        parts.append(
            f"**{counted(threads)}**, and the paper's on {cores} {core} ({printed['source']}):"
        )
        parts.append(table(header, lines))
    parts.append(
        f"What differs: the paper's cells are real and ours synthetic; its machine is "
        f"{PRINTED['machine']}; its rule of descent is scikit-learn's, so that maps, and with them "
        "trees, grow at another pace."
    )
    return "\n\n".join(parts)


TABLE = Table("steps", "Steps", wanted, text)
