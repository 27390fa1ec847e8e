"""All tables and figures, in the order of the page."""

from evaluation import (
    accuracy,
    convergence,
    end_to_end,
    growth,
    maps,
    memory,
    precision,
    scaling,
    single_thread,
    small,
    steps,
)
from evaluation.table import Table

TABLES: dict[str, Table] = {
    module.TABLE.name: module.TABLE
    for module in (
        end_to_end,
        accuracy,
        single_thread,
        precision,
        steps,
        scaling,
        maps,
        convergence,
        small,
        memory,
        growth,
    )
}
