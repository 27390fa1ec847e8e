"""What the maps are worth: KL divergence as reported and exact, force error, neighbours kept."""

from common import table
from evaluation.cells import PRINTED, cell, groups, present, without_data
from evaluation.contest import contest, judgements
from evaluation.plan import Plan
from evaluation.records import Key, Store
from evaluation.table import Table


def wanted(store: Store, plan: Plan) -> list[Key]:
    fits = [key for data in plan.datasets for key in contest(store, plan, data, plan.threads)]
    # Small runs that only tell how long larger ones take are not judged.
    shown = {
        plan.fit(data, entry, rows)
        for data in plan.datasets
        for rows in groups(store, plan, data, plan.threads)
        for entry in plan.entries
    }
    fits = [key for key in fits if key.kind == "fit" and key.repeat == 0]
    return fits + judgements(store, [key for key in fits if key in shown])


def text(store: Store, plan: Plan) -> str:
    parts = [
        "Maps of the fits above, judged by the same referee: affinities of exact neighbours in "
        "double precision, the KL divergence with Z over all pairs (beyond 150,000 rows Z from a "
        "grid with a force error of 0.1 %), the error of each package's own repulsive forces on "
        "its own map where it lets us at them, the part of each point's 10 nearest neighbours that "
        "are so in the map, and that of points whose label most of these have."
    ]
    header = [
        "package",
        "precision",
        "reported KL",
        "exact KL",
        "force error, %",
        "10-NN kept",
        "label agreement",
    ]
    printed = PRINTED["accuracy"]
    for data in plan.datasets:
        if without_data(store, data) is not None:
            continue
        for rows in groups(store, plan, data, plan.threads):
            lines = []
            fits = [plan.fit(data, entry, rows) for entry in plan.entries]
            for fit in present(store, plan, fits):
                judged = fit.of(kind="judgement")
                lines.append(
                    [
                        fit.entry.title,
                        fit.dtype,
                        cell(store, fit, "reported_kl", ".4f"),
                        cell(store, judged, "exact_kl", ".4f"),
                        cell(store, judged, "force_error", ".2f", 100),
                        cell(store, judged, "neighbor_preservation", ".4f"),
                        cell(store, judged, "label_agreement", ".4f"),
                    ]
                )
            parts += [f"**{data.title}**, {data.part(rows)}:", table(header, lines)]
            paper = printed["kl"].get(data.name)
            if paper and rows == data.rows:
                known = ", ".join(f"{name} {value:.3f}" for name, value in paper.items())
                other = ", on the cells that ours stands in for" if data.name == "synthetic" else ""
                parts.append(f"The paper ({printed['source']}{other}): {known}.")
    return "\n\n".join(parts)


TABLE = Table("accuracy", "Accuracy", wanted, text)
