"""How steps and whole fits gain by more cores: measured here, and predicted beyond."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import number, table
from evaluation.cells import NOT_YET, PRINTED
from evaluation.plan import CELLS, OURS, OURS_AS_PAPER, SYNTHETIC, Data, Plan
from evaluation.records import Entry, Key, Store
from evaluation.steps import STEPS, step_seconds
from evaluation.table import Figure, Table
from replay import CHUNKS, MEMORY, SERIAL, TEAM

CHECKED_THREADS = 2  # whose seconds a prediction is held against
TOLERATED = 0.1  # by which a prediction may miss what was measured, and still be shown
SHOWN_CORES = ("2", "4", "8", "16", "32", "64")

WHOLE = "whole fit"
ALL_STEPS = {**STEPS, "total": WHOLE}
REPULSION = "repulsive"  # of the default fit, as a rule by grid
TREE_REPULSION = "repulsive, tree"
OF_TREE = ("tree building", "summarisation", TREE_REPULSION)  # of runs of their own

# The paper's own speedup, by the names of simulate.py.
PAPER_CORES = 32
PAPER_CELLS = (SYNTHETIC, 1_000_000)  # what stands in for those of its steps
PAPER_SPEEDUP: dict[str, float] = {
    ALL_STEPS[step]: speedup for step, speedup in PRINTED["scaling"]["speedup"]["Acc-t-SNE"].items()
}
PAPER_SPEEDUP[TREE_REPULSION] = PAPER_SPEEDUP.pop(REPULSION)  # it has no grid

# What a step loses time to on more cores, by the names of replay.py.
CAUSES = {
    SERIAL: "stretches that one thread does alone",
    TEAM: "the waking of threads and the wait for the last of them",
    MEMORY: "the bandwidth of memory",
    CHUNKS: "chunks of work that are too few or unequal",
}


def pairs(plan: Plan) -> list[tuple[Data, int, Entry]]:
    """Return the fits that are measured at every number of threads."""
    found = [
        (SYNTHETIC, plan.step_rows, OURS_AS_PAPER),
        (SYNTHETIC, plan.step_rows, OURS),
    ]
    whole = [data for data in plan.datasets if data.name in ("mnist", "digits")]
    return [*found, (whole[-1], whole[-1].rows, OURS)] if whole else found


def counts(plan: Plan) -> list[int]:
    powers = [2**power for power in range(10) if 2**power < plan.threads]
    return [*powers, plan.threads]


def prediction_keys(plan: Plan) -> list[Key]:
    """Name the predictions, each of which is checked by two threads."""
    return [
        plan.fit(data, OURS, rows, CHECKED_THREADS).of(kind="prediction")
        for data, rows in plan.predicted
    ]


def wanted(store: Store, plan: Plan) -> list[Key]:
    fits = [
        plan.fit(data, entry, rows, threads)
        for data, rows, entry in pairs(plan)
        for threads in counts(plan)
    ]
    return fits + (prediction_keys(plan) if plan.threads >= CHECKED_THREADS else [])


def text(store: Store, plan: Plan) -> str:
    printed = PRINTED["scaling"]
    header = ["step", "paper: daal4py, 32 cores", "Acc-t-SNE, 32 cores"]
    columns = []
    for data, rows, entry in pairs(plan):
        for threads in counts(plan)[1:]:
            header.append(f"{entry.title}, {data.title} {rows:,}: {threads} threads")
            both = [store.middle(plan.fit(data, entry, rows, n)) for n in (1, threads)]
            columns.append(both)
    lines = []
    for step, title in ALL_STEPS.items():
        line = [title]
        for package in ("daal4py", "Acc-t-SNE"):
            line.append(number(printed["speedup"][package].get(step)))
        for one, more in columns:
            if one is None or more is None or not one.ok or not more.ok:
                line.append(NOT_YET)
                continue
            base, taken = step_seconds(one, step), step_seconds(more, step)
            line.append(f"{base / taken:.2f}" if base > 0.05 and taken > 0 else "-")
        lines.append(line)
    parts = [
        f"Times faster than on one thread, measured on the cores at hand; the paper's from "
        f"{printed['source']}. It measured steps of its fits by tree, in float64, of one "
        f"million mouse brain cells, and whole fits of {CELLS:,}, all of 1000 iterations. Our "
        "default fits compute most repulsion by grid, which the paper does not have. Steps of less "
        "than 0.05 s are left out. Fits on one thread and on more were not made in turn: where a "
        "step gains more than the number of threads, the machine may have had another speed by "
        "then.",
        table(header, lines),
    ]
    return "\n\n".join(parts + predicted(store, plan))


# The figures of a prediction, which benchmarks/simulate.py makes: "steps" and "measured":
# {step: {cores: seconds}}, "whole_fit" and "measured_whole_fit": {cores: seconds}, "limits":
# {step: {cause: seconds}}.
@dataclass(frozen=True)
class Prediction:
    """Seconds of a step, or of the whole fit, by number of cores."""

    step: str
    seconds: dict[str, float]
    measured: dict[str, float]
    limits: dict[str, float]  # seconds that the paper's cores would save without each

    @property
    def miss(self) -> float | None:
        """By how much it misses what was measured, relatively; None if nothing was."""
        misses = [
            self.seconds[cores] / seconds - 1
            for cores, seconds in self.measured.items()
            if cores != "1" and seconds and cores in self.seconds
        ]
        return max(misses, key=abs, default=None)

    @property
    def holds(self) -> bool:
        return self.miss is not None and abs(self.miss) <= TOLERATED

    def speedup(self, cores: str) -> float | None:
        return self.seconds["1"] / self.seconds[cores] if self.seconds.get(cores) else None


@dataclass(frozen=True)
class Predicted:
    """All predictions for some data, and what they were made with."""

    data: str
    made: str
    steps: list[Prediction]
    paper: dict[str, float]  # the speedups that the paper has for such data

    def short(self, step: Prediction) -> bool:
        """Whether a step holds and is below the paper's."""
        goal, found = self.paper.get(step.step), step.speedup(str(PAPER_CORES))
        return step.holds and goal is not None and found is not None and found < goal


def predictions(store: Store, plan: Plan) -> list[Predicted]:
    """Read what is predicted."""
    found = []
    for key, (data, rows) in zip(prediction_keys(plan), plan.predicted, strict=True):
        record = store.get(key)
        if record is None or not record.ok:
            continue
        figures = record.figures
        steps = {**figures["steps"], WHOLE: figures.get("whole_fit", {})}
        measured = {**figures["measured"], WHOLE: figures.get("measured_whole_fit", {})}
        limits = figures.get("limits", {})
        made = f"{record.date[:10]}, commit {record.environment.get('commit', 'not recorded')}"
        if "model" in figures:
            there = figures["model"]["there"]
            made += (
                f"; cores as fast as here, in a socket of {there['socket'] / 1e9:.0f} GB/s and "
                f"{there['cache'] / 1e6:.0f} MB of cache"
            )
        listed = [
            Prediction(step, seconds, measured.get(step, {}), limits.get(step, {}))
            for step, seconds in steps.items()
            if seconds
        ]
        paper = PAPER_SPEEDUP if (data, rows) == PAPER_CELLS else {}
        found.append(Predicted(f"{data.title}, {data.part(rows)}", made, listed, paper))
    return found


def predicted(store: Store, plan: Plan) -> list[str]:
    """Tell what is predicted for more cores, of steps whose prediction holds for those at hand."""
    found = predictions(store, plan)
    if not found:
        return [f"Predicted for more cores: {NOT_YET}."]
    parts = [
        "**Predicted** for more cores by `benchmarks/simulate.py`, which the command above runs: "
        "times faster than on one thread, by a replay of chunk times recorded on one thread with "
        "the native loop's scheduling rule and measured costs of waking, waiting and memory. A "
        "step whose prediction "
        f"misses what was measured here by more than {TOLERATED:.0%} has no figures.",
        "The steps are of default fits in float32, but for tree building, summarisation and "
        f'"{TREE_REPULSION}": these are of iterations by tree that begin with the finished map. '
        f'"{REPULSION}" is all repulsion of the default fit, and rows that begin with its name are '
        "the grid's parts. The grid does a fraction of the tree's work, so that what cannot be "
        "shared out evenly weighs more: it is faster on the cores at hand, and gains less by more "
        "of them.",
        "A socket of today is assumed, whose memory keeps up with such cores. With that of the "
        "paper's, of 2021 and 164 GB/s, a whole fit of a million cells gained 20.8 times on 32 "
        "cores, and attraction 18.5 times.",
    ]
    for each in found:
        lines = []
        for step in each.steps:
            speedups = [step.speedup(cores) if step.holds else None for cores in SHOWN_CORES]
            miss = "-" if step.miss is None else f"{step.miss:+.1%}"
            line = [step.step, miss, *(number(speedup, ".1f") for speedup in speedups)]
            if each.paper:
                line.append(number(each.paper.get(step.step), ".1f"))
            lines.append(line)
        parts.append(f"**{each.data}** ({each.made}):")
        header = ["step", "against measured", *(f"{cores} cores" for cores in SHOWN_CORES)]
        if each.paper:
            header.append(f"paper, {PAPER_CORES} cores")
        parts.append(table(header, lines))
        parts += remarks(each)
    return parts


def remarks(predicted: Predicted) -> list[str]:
    """Say what the whole fit's figures rest on, how the paper's compare, and what limits ours."""
    steps = {step.step: step for step in predicted.steps}
    parts = []
    if WHOLE in steps and steps[WHOLE].holds:
        # Steps of the tree are of runs of their own, and the whole repulsion is a sum of others.
        apart = (*OF_TREE, REPULSION)
        missed = [step for step in predicted.steps if not step.holds and step.step not in apart]
        share = sum(step.measured.get("1", 0.0) for step in missed) / steps[WHOLE].measured["1"]
        parts.append(
            f"The whole fit's figures rest on steps whose prediction misses what was measured by "
            f"more than {TOLERATED:.0%}, and which take {share:.1%} of its seconds on one thread: "
            f"{', '.join(step.step for step in missed)}."
            if missed
            else "The predictions of all steps of the whole fit hold."
        )
    short = [step for step in predicted.steps if predicted.short(step)]
    if not predicted.paper:
        parts.append("The paper has no such figures for data of this size.")
    elif not short:
        parts.append(f"No figure is below the paper's on {PAPER_CORES} cores.")
    # What the paper does not have, or has of another method, is told wherever it stands.
    told = [s for s in predicted.steps if s in short or (s.holds and s.step in (REPULSION, WHOLE))]
    limited = [limit(step, predicted) for step in told if step.speedup(str(PAPER_CORES))]
    if limited:
        parts.append(
            "\n".join(
                [
                    f"What limits gains most on {PAPER_CORES} cores, by the replay:",
                    "",
                    *(f"- {each}" for each in limited),
                ]
            )
        )
    return parts


def limit(step: Prediction, predicted: Predicted) -> str:
    """Say what keeps a step from gaining more by cores, and where in it."""
    cores = str(PAPER_CORES)
    title = {
        REPULSION: "The repulsion of the default fit",
        TREE_REPULSION: "The repulsion by tree",
        WHOLE: "The whole fit",
    }.get(step.step, f"The step {step.step}")
    told = f"{title} is {step.speedup(cores):.1f} times as fast"
    if predicted.short(step):
        told += f", the paper's {predicted.paper[step.step]:g} times"
    if not step.limits:
        return f"{told}; what limits it is {NOT_YET}."
    cause, saved = max(step.limits.items(), key=lambda item: item[1])
    told += (
        f". It loses most to {CAUSES[cause]}, without which it would take "
        f"{saved / step.seconds[cores]:.0%} less time"
    )
    inner = {REPULSION: f"{REPULSION}: ", WHOLE: ""}.get(step.step)
    if inner is None:
        return f"{told}."
    sums = (*OF_TREE, REPULSION, WHOLE)
    parts = [
        s for s in predicted.steps if s.step.startswith(inner) and s.step not in sums and s.limits
    ]
    most = max(parts, key=lambda part: part.limits[cause], default=None)
    return f"{told}." if most is None else f'{told}, most of it in "{most.step}".'


def holding(store: Store, plan: Plan) -> dict[str, list[Prediction]]:
    """Leave out what does not hold."""
    held = {each.data: [s for s in each.steps if s.holds] for each in predictions(store, plan)}
    return {data: steps for data, steps in held.items() if steps}


def style(place: int) -> dict[str, Any]:
    """Return how a step's curve looks: no two of the first forty look the same."""
    line = place // 10 % 4
    return {
        "color": f"C{place % 10}",
        "linestyle": ("-", "--", "-.", ":")[line],
        "marker": "o^sv"[line],
        "markersize": 4,
    }


def draw(store: Store, plan: Plan, plt: Any, path: Path) -> None:
    shown = holding(store, plan)
    names = dict.fromkeys(step.step for steps in shown.values() for step in steps)
    styles = {name: style(place) for place, name in enumerate(n for n in names if n != WHOLE)}
    styles[WHOLE] = {"color": "black", "linewidth": 3, "marker": ".", "zorder": 3}
    width = 4.8 * len(shown) + 2.4
    figure, grid = plt.subplots(
        1, len(shown), figsize=(width, 4.8), squeeze=False, layout="constrained"
    )
    curves: dict[str, Any] = {}
    for axes, (data, steps) in zip(grid.flat, shown.items(), strict=True):
        ticks = sorted({int(cores) for step in steps for cores in step.seconds})
        for step in steps:
            counts = sorted(step.seconds, key=int)
            speedups = [step.speedup(cores) or 1.0 for cores in counts]
            (curves[step.step],) = axes.loglog(
                [int(cores) for cores in counts], speedups, **styles[step.step]
            )
            for cores, seconds in step.measured.items():
                if cores != "1" and seconds:
                    axes.plot(int(cores), step.measured["1"] / seconds, "kx", ms=5, zorder=4)
        axes.plot(ticks, ticks, ":", color="#888888")
        axes.set(xlabel="cores", ylabel="times faster than one", title=data)
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.set_yticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
    listed = [name for name in styles if name in curves]
    figure.legend(
        [curves[name] for name in listed],
        listed,
        loc="outside right center",
        fontsize=8,
        frameon=False,
        handlelength=3.5,
    )
    figure.savefig(path, dpi=110)
    plt.close(figure)


TABLE = Table(
    "scaling",
    "Scaling",
    wanted,
    text,
    (
        Figure(
            "scaling",
            "Predicted speedup by number of cores, step by step; crosses are measured",
            lambda store, plan: bool(holding(store, plan)),
            draw,
        ),
    ),
    paper="Figures 5 and 6, gains by more cores",
)
