"""Memory of whole fits beyond the data and the loaded package."""

from common import table
from evaluation.cells import absent, cell, groups, without_data
from evaluation.end_to_end import wanted
from evaluation.plan import Plan
from evaluation.records import Store
from evaluation.table import Table


def text(store: Store, plan: Plan) -> str:
    columns = [
        (data, rows)
        for data in plan.datasets
        if without_data(store, data) is None
        for rows in groups(store, plan, data, plan.threads)
    ]
    lines = [
        [
            entry.title,
            *(
                cell(store, plan.fit(data, entry, rows), "peak_bytes", ",.0f", 1e-6)
                for data, rows in columns
            ),
        ]
        for entry in plan.entries
        if entry.contestant not in absent(store)
    ]
    header = ["package", *(f"{data.title}, {rows:,}" for data, rows in columns)]
    return (
        "Megabytes that the processes of the fits above took at most, beyond what they had with "
        "the data read and the package loaded; medians.\n\n" + table(header, lines)
    )


TABLE = Table("memory", "Memory", wanted, text)
