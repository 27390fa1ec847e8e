"""What the maps are worth: KL divergence as reported and exact, force error, neighbours kept."""

from common import table
from evaluation.cells import NOT_YET, PRINTED, cell, groups, present, without_data
from evaluation.contest import contest, judgements
from evaluation.plan import Data, Plan
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
    for data in plan.datasets:
        reason = without_data(store, data)
        if reason is not None:
            parts += [f"**{data.title}**: {NOT_YET}: {reason}.", *papers(data)]
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
            if rows == data.rows:
                parts += papers(data)
    parts.append(
        "What differs: the paper's figures are what each package reports of its own map, and not a "
        f"referee's; its rule is {PRINTED['rule']}. Here all begin with the same layout, and ours "
        "ends by itself."
    )
    return "\n\n".join(parts)


def papers(data: Data) -> list[str]:
    """Tell the paper's figures of a data set, if it has any."""
    printed = PRINTED["accuracy"]
    if data.name not in printed["kl"]:
        return []
    known = ", ".join(f"{name} {value:.3f}" for name, value in printed["kl"][data.name].items())
    other = ", on the cells that ours stands in for" if data.name == "synthetic" else ""
    return [f"The paper ({printed['source']}{other}): {known}."]


TABLE = Table("accuracy", "Accuracy", wanted, text, paper="Table 3, KL divergence")
