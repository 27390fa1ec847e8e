"""The same data by all packages side by side, each with seconds and exact KL divergence."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.accuracy import wanted as judged
from evaluation.cells import NOT_YET, groups
from evaluation.contest import judgements
from evaluation.plan import FULL, Plan
from evaluation.records import Key, Store
from evaluation.table import Figure, Table
from evaluation.thumbnail import unpacked


def wanted(store: Store, plan: Plan) -> list[Key]:
    keys = judged(store, plan)
    shown = {data.name for data in plan.mapped}
    made = [key.of(kind="fit") for key in keys if key.kind == "judgement" and key.dataset in shown]
    return keys + judgements(store, made, "map")


def panels(store: Store, plan: Plan, name: str) -> list[Key]:
    """Return the maps of a data set that there are, of the rows on which most packages meet."""
    data = next((data for data in plan.mapped if data.name == name), None)
    if data is None:
        return []
    rows = groups(store, plan, data, plan.threads)[-1]
    keys = [plan.fit(data, entry, rows).of(kind="map") for entry in plan.entries]
    return [key for key in keys if (record := store.get(key)) and record.ok]


def draw(name: str, store: Store, plan: Plan, plt: Any, path: Path) -> None:
    keys = panels(store, plan, name)
    data = plan.data(name)
    columns = min(4, len(keys))
    lines = -(-len(keys) // columns)
    size = (2.5 * columns, 2.8 * lines + 0.3)
    figure, grid = plt.subplots(lines, columns, figsize=size, squeeze=False, layout="constrained")
    for axes in grid.flat:
        axes.axis("off")
    for axes, key in zip(grid.flat, keys, strict=False):
        record = store.get(key)
        assert record is not None
        points, labels = unpacked(record.figures)
        colors = labels % 20
        dot = float(np.clip(5000 / len(points), 0.4, 4))
        axes.scatter(*points.T, s=dot, c=colors, cmap="tab20", linewidths=0)
        axes.set_aspect("equal")
        axes.set_title(caption(store, key), fontsize=7)
    figure.suptitle(f"{data.title}, {data.part(keys[0].rows)}", fontsize=9)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def caption(store: Store, key: Key) -> str:
    seconds = store.figure(key.of(kind="fit"), "seconds")
    kl = store.figure(key.of(kind="judgement"), "exact_kl")
    taken = "" if seconds is None else f"{seconds:.3g} s"
    judgement = f"exact KL {NOT_YET}" if kl is None else f"exact KL {kl:.3f}"
    return f"{key.entry.title}\n{taken}, {judgement}"


def text(store: Store, plan: Plan) -> str:
    shown: dict[tuple[str, ...], list[str]] = {}  # data sets by the packages that they have maps of
    for data in plan.mapped:
        there = tuple(key.entry.title for key in panels(store, plan, data.name))
        shown.setdefault(there, []).append(data.title)
    told = [
        f"Of {', '.join(data)}: {'; '.join(there) or NOT_YET}." for there, data in shown.items()
    ]
    return (
        "As in the paper's supplement: the same data by all packages, the same 4000 points of each "
        "map, coloured by label, with the seconds of the whole fit and the exact KL divergence.\n\n"
        + "\n\n".join(told)
    )


def _ready(name: str, store: Store, plan: Plan) -> bool:
    return bool(panels(store, plan, name))


TABLE = Table(
    "maps",
    "Maps side by side",
    wanted,
    text,
    tuple(
        Figure(
            f"maps-{data.name}",
            f"Maps of {data.title} by all packages",
            partial(_ready, data.name),
            partial(draw, data.name),
        )
        for data in FULL.mapped
    ),
    paper="Figures S1 to S6, maps",
)
