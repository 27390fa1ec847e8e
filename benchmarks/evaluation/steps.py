"""Seconds of every step, on one thread and on all, beside the paper's."""

from typing import Any

from common import table
from evaluation.cells import NOT_YET, PRINTED, counted
from evaluation.plan import OURS, OURS_AS_PAPER, OURS_TREE, SYNTHETIC, Plan
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

OF_TREE = ("tree_building", "summarization")


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
        "is faster, an end when the map is done. Where a fit was repeated, all figures of a column "
        "are of the repeat of median seconds. The total has all else too, the search for "
        "neighbours in the first place."
    ]
    for threads in thread_counts(plan):
        cores = "1" if threads == 1 else "32"
        paper = printed[cores]
        keys = keys_of(plan, threads)
        records = [store.middle(key) for key in keys]
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
        times = [str(len(store.fits(key)) or "-") for key in keys]
        lines.append(["fits, of which the median one", "-", "-", *times])
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
    parts += longer(store, plan)
    return "\n\n".join(parts)


def longer(store: Store, plan: Plan) -> list[str]:
    """Say why steps of the tree take longer than the paper's on one thread, where they do."""
    record = store.middle(plan.fit(SYNTHETIC, OURS_AS_PAPER, plan.step_rows, 1))
    paper = PRINTED["steps"]["1"]["Acc-t-SNE"]
    if record is None or not record.ok:
        return []
    taken = {step: step_seconds(record, step) for step in (*OF_TREE, "repulsive")}
    shown = [
        f"{STEPS[step]}, {taken[step]:.1f} s against {paper[step]:.1f}"
        for step in OF_TREE
        if taken[step] > paper[step]
    ]
    if not shown:
        return []
    # From native/tree/summarize.cpp and build.cpp, and native/kernels/node.hpp.
    told = (
        f"Longer than the paper's on one thread: {'; '.join(shown)}. Ours does more there, for the "
        "repulsion's sake. Summarisation also puts the points into the order of the tree, looks "
        "which leaves have all points in one place, and sums the second moments of every node "
        "beside its centre of mass. By these a cell may stand for its points from 1.8 times as "
        f"near, and the repulsion takes {taken['repulsive']:.1f} s against "
        f"{paper['repulsive']:.1f}. A node with them has 72 bytes in double precision, and "
        "building writes it twice: where its subtree is made, and at its place in the tree, which "
        "is the same for any number of threads."
    )
    single = store.middle(plan.fit(SYNTHETIC, OURS_TREE, threads=1))
    if single is not None and single.ok:
        both = [
            " and ".join(f"{_each(fit, step):.0f}" for step in OF_TREE) for fit in (single, record)
        ]
        told += (
            " Double precision does not explain it: for a point and iteration, the two take "
            f"{both[0]} ns in float32 ({single.key.rows:,} points, tree only) and {both[1]} ns "
            "here. How much of it is the machine's is not known: the paper's code tells no seconds "
            "of steps here."
        )
    return [told]


def _each(fit: Record, step: str) -> float:
    """Return nanoseconds of a step for each point and iteration."""
    return 1e9 * step_seconds(fit, step) / fit.key.rows / float(fit.figures["iterations"])


TABLE = Table(
    "steps",
    "Steps",
    wanted,
    text,
    paper="Tables 5 and 6 and the profile of Figure 1b, seconds of steps",
)
