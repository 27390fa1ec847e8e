"""Whole fits of the largest data set on one thread."""

from common import table
from evaluation.cells import PRINTED
from evaluation.contest import contest
from evaluation.end_to_end import difference, section
from evaluation.plan import Data, Plan
from evaluation.records import Key, Store
from evaluation.table import Table


def largest(plan: Plan) -> Data:
    return max(plan.datasets, key=lambda data: data.rows)


def wanted(store: Store, plan: Plan) -> list[Key]:
    return contest(store, plan, largest(plan), 1)


def text(store: Store, plan: Plan) -> str:
    printed = PRINTED["single_thread"]
    base = printed["seconds"]["scikit-learn"]
    lines = [
        [name, f"{seconds:,}", f"{base / seconds:.1f}"]
        for name, seconds in printed["seconds"].items()
    ]
    return "\n\n".join(
        [
            "Whole fits as in [End to end](#end-to-end), on one thread.",
            *section(store, plan, largest(plan), 1),
            f"The paper ({printed['source']}), which the synthetic data stands in for:",
            table(["package", "seconds", "times scikit-learn"], lines),
            difference(1),
        ]
    )


TABLE = Table(
    "single-thread", "Single thread", wanted, text, paper="Table 4, seconds on one thread"
)
