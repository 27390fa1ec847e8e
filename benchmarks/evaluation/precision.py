"""What single precision is worth: seconds and KL divergence in float32 and float64."""

from common import number, table
from evaluation.cells import PRINTED, cell, ratio, seconds_form, without_data
from evaluation.contest import judgements, rounds
from evaluation.end_to_end import difference
from evaluation.plan import OURS, OURS_DOUBLE, Plan
from evaluation.records import Key, Store
from evaluation.table import Table


def wanted(store: Store, plan: Plan) -> list[Key]:
    keys: list[Key] = []
    for data in plan.datasets:
        if without_data(store, data) is not None:
            continue
        fits = [plan.fit(data, entry) for entry in (OURS, OURS_DOUBLE)]
        keys += rounds(store, plan, fits) + judgements(store, fits)
    return keys


def text(store: Store, plan: Plan) -> str:
    printed = PRINTED["precision"]
    lines = []
    for data in plan.datasets:
        single, double = (plan.fit(data, entry) for entry in (OURS, OURS_DOUBLE))
        taken = [store.figure(key, "seconds") for key in (single, double)]
        paper = printed["seconds"][data.name]
        paper_kl = printed["kl"][data.name]
        if without_data(store, data) is not None:
            measured = ["-"] * 5
        else:
            measured = [
                cell(store, single, "seconds", seconds_form(taken[0])),
                cell(store, double, "seconds", seconds_form(taken[1])),
                ratio(taken[1], taken[0], ".2f"),
                cell(store, single.of(kind="judgement"), "exact_kl", ".4f"),
                cell(store, double.of(kind="judgement"), "exact_kl", ".4f"),
            ]
        lines.append(
            [
                data.title,
                *measured,
                number(paper["float32"]),
                number(paper["float64"]),
                f"{paper['float64'] / paper['float32']:.1f}",
                number(paper_kl["float32"], ".3f"),
                number(paper_kl["float64"], ".3f"),
            ]
        )
    header = ["data", "float32, s", "float64, s", "times", "KL, float32", "KL, float64"]
    header += ["paper: float32, s", "float64, s", "times", "KL, float32", "KL, float64"]
    return (
        "Our default in both precisions, and what the paper has of its own "
        f"({printed['source']}; its KL divergences are as reported, ours exact).\n\n"
        + f"{table(header, lines)}\n\n{difference(plan.threads)}"
    )


TABLE = Table(
    "precision",
    "float32 against float64",
    wanted,
    text,
    paper="Table S1, what single precision is worth",
)
