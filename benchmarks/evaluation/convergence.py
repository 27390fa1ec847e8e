"""Time to a given exact KL divergence: curves of all packages from the same start."""

from pathlib import Path
from typing import Any

from common import number, table
from convergence import seconds_to
from evaluation.cells import NOT_YET, absent, counted
from evaluation.contest import judgements
from evaluation.plan import FITSNE, MULTICORE, OPENTSNE, OURS, SKLEARN, SKLEARNEX, Data, Plan
from evaluation.records import Entry, Key, Store, installed
from evaluation.table import Figure, Table

OTHERS = (SKLEARNEX, OPENTSNE, SKLEARN, MULTICORE, FITSNE)

Part = tuple[Data, int]  # of which so many rows
Points = list[tuple[int, float, float]]  # iterations, seconds, exact KL


def others(plan: Plan) -> list[Entry]:
    return [entry for entry in OTHERS if entry in plan.entries]


def ours_key(plan: Plan, part: Part | None = None) -> Key:
    data, rows = part or plan.curve
    return plan.fit(data, OURS, rows).of(kind="descent")


def their_keys(plan: Plan, entry: Entry) -> list[Key]:
    data, rows = plan.curve
    key = plan.fit(data, entry, rows)
    return [key.of(iterations=n) for n in (*plan.curve_iterations, plan.iterations)]


def wanted(store: Store, plan: Plan) -> list[Key]:
    entries = [entry for entry in others(plan) if installed(entry.contestant)]
    fits = [key for entry in entries for key in their_keys(plan, entry)]
    found = [ours_key(plan), *fits, *judgements(store, fits)]
    for data, rows in plan.curve_of_ours:
        whole = [plan.fit(data, entry, rows) for entry in entries]
        found += [ours_key(plan, (data, rows)), *whole, *judgements(store, whole)]
    return found


def curve(store: Store, plan: Plan, entry: Entry) -> Points:
    found = []
    for key in their_keys(plan, entry):
        seconds = store.figure(key, "seconds")
        kl = store.figure(key.of(kind="judgement"), "exact_kl")
        if seconds is not None and kl is not None:
            found.append((key.iterations, seconds, kl))
    return found


def passed(store: Store, plan: Plan, entry: Entry, part: Part) -> tuple[float, ...] | None:
    """Return a package's seconds and exact KL, and ours to it, as far as they are known."""
    data, rows = part
    key = plan.fit(data, entry, rows)
    seconds = store.figure(key, "seconds")
    kl = store.figure(key.of(kind="judgement"), "exact_kl")
    if seconds is None or kl is None:
        return None
    record = store.get(ours_key(plan, part))
    ours = seconds_to(record.figures, kl) if record and record.ok else None
    return (seconds, kl) if ours is None else (seconds, kl, ours)


def compared(store: Store, plan: Plan, part: Part | None = None) -> str:
    """Return how long ours takes to where each of the others ends."""
    lines = []
    for entry in others(plan):
        if entry.contestant in absent(store):
            continue
        found = passed(store, plan, entry, part or plan.curve)
        if found is None:
            lines.append([entry.title, *[NOT_YET] * 4])
            continue
        seconds, kl, *rest = found
        ours = rest[0] if rest else None
        lines.append(
            [
                entry.title,
                f"{seconds:.2f}",
                f"{kl:.4f}",
                number(ours, ".2f"),
                number(seconds / ours if ours else None, ".1f"),
            ]
        )
    header = ["package", "its whole fit, s", "its exact KL", "ours there after, s", "times"]
    return table(header, lines)


def told(store: Store, plan: Plan) -> str | None:
    """Tell of small data in one sentence, once it has been measured."""
    part = plan.curve_of_ours[0]
    found = passed(store, plan, SKLEARNEX, part)
    if found is None or len(found) < 3:
        return None
    seconds, _, ours = found
    return (
        f"On the {part[0].title}, ours is there after {ours:.2f} of the {seconds:.2f} s that\n"
        f"{SKLEARNEX.title} takes, {seconds / ours:.1f} times as fast."
    )


def text(store: Store, plan: Plan) -> str:
    data, rows = plan.curve
    tries = ", ".join(map(str, plan.curve_iterations))
    parts = [
        "How long ours takes to the exact KL divergence that another package's whole fit ends "
        f"with, the search for neighbours included: {data.title}, {data.part(rows)}, "
        f"{counted(plan.threads)}. Every point of the picture is a fit of its own: ours are ended "
        "by a callback after so many iterations, the other packages' are of "
        f"{tries} and {plan.iterations} iterations.",
        compared(store, plan),
    ]
    for part in plan.curve_of_ours:
        title = f"{part[0].title}, {part[0].part(part[1])}"
        record = store.get(ours_key(plan, part))
        if record and record.ok:
            parts += [f"The same of {title}:", compared(store, plan, part)]
        else:
            parts.append(f"The same of {title}: {NOT_YET}.")
    return "\n\n".join(parts)


def draw(store: Store, plan: Plan, plt: Any, path: Path) -> None:
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    record = store.get(ours_key(plan))
    if record and record.ok:
        figures = record.figures
        (line,) = axes.plot(figures["seconds"], figures["kl"], "o-", ms=3, label="acctsne")
        ends = figures["ends"][1:]
        axes.plot(*ends, "o", color=line.get_color(), fillstyle="none", ms=9)
        axes.annotate("ends here", ends, (0, 10), textcoords="offset points", ha="center")
    for entry in others(plan):
        points = curve(store, plan, entry)
        if points:
            axes.plot(
                [seconds for _, seconds, _ in points],
                [kl for *_, kl in points],
                "o-",
                ms=3,
                label=entry.title,
            )
    axes.set(xlabel="seconds, neighbours included", ylabel="exact KL divergence", xscale="log")
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


TABLE = Table(
    "convergence",
    "Time to a given KL divergence",
    wanted,
    text,
    (
        Figure(
            "convergence",
            "Exact KL divergence against seconds, all packages from the same start",
            lambda store, plan: bool((record := store.get(ours_key(plan))) and record.ok),
            draw,
        ),
    ),
)
