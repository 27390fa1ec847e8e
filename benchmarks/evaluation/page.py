"""The page docs/paper.md, and marked regions of other pages, from records alone."""

import re
from collections import Counter
from pathlib import Path

from common import TOLERATED_DISTURBANCE, pyplot, table
from contestants import CONTESTANTS
from evaluation.cells import LOST_COMMITS, NOT_YET, PRINTED, absent
from evaluation.plan import Plan
from evaluation.records import Record, Store
from evaluation.registry import TABLES
from evaluation.summaries import REGIONS, with_regions

IMAGES = Path("images") / "paper"  # from the page's folder
MACHINE = "Machine and versions"

INTRODUCTION = (
    f"""# The paper's evaluation, made again

acctsne starts from a paper: {PRINTED["source"]}."""
    """ This page has its tables and figures, measured anew
with acctsne and the packages it is compared to, beside the figures that the paper prints, and some
that it does not have.

```
python benchmarks/paper.py
```

makes it, and `--only` a table at a time; a run that was stopped goes on where it was. Every
measurement is a JSON file in `benchmarks/results/paper`; `--render` writes the page, and the tables
of the README and of [performance](performance.md), from them alone; only how many iterations a fit
takes is measured by `benchmarks/descent.py`, into `benchmarks/results/descent.json`. The data
called synthetic stands in for the paper's mouse brain cells: it is generated, and resembles 20
principal components of such data."""
)


def contents() -> str:
    """Say where the paper's tables and figures are, and what it does not have."""
    own = [_place(item.title) for item in TABLES.values() if not item.paper]
    return "\n".join(
        [
            "The paper's tables and figures, and where they are here:",
            "",
            "- Table 1 and Figures 1a, 2 and 3, how its steps work: [how ours do](how-it-works.md)",
            f"- Table 2, the machine: {_place(MACHINE)}",
            *(f"- {item.paper}: {_place(item.title)}" for item in TABLES.values() if item.paper),
            f"- Not in the paper: {'; '.join(own)}",
        ]
    )


def _place(title: str) -> str:
    """Refer to a heading of the page."""
    words = re.sub(r"[^a-z0-9 -]", "", title.lower())
    return f"[{title}](#{words.replace(' ', '-')})"


def rendered(store: Store, plan: Plan) -> str:
    """Return the page."""
    parts = [INTRODUCTION, contents(), f"## {MACHINE}", environment(store)]
    for name, item in TABLES.items():
        parts += [f"## {item.title}", f"```\npython benchmarks/paper.py --only {name}\n```"]
        parts.append(item.text(store, plan))
        for figure in item.figures:
            if figure.ready(store, plan):
                parts.append(f"![{figure.alt}]({(IMAGES / figure.name).as_posix()}.png)")
    return "\n\n".join(parts) + "\n"


def pages(store: Store, plan: Plan, root: Path) -> dict[Path, str]:
    """Return all pages that have something from the records, by their paths."""
    found = {root / "docs" / "paper.md": rendered(store, plan)}
    for name, regions in REGIONS.items():
        path = root / name
        found[path] = with_regions(path.read_text(), regions, store, plan)
    return found


def draw(store: Store, plan: Plan, folder: Path) -> None:
    """Draw the figures that are ready into the images of a folder, and remove others."""
    plt = pyplot()
    images = folder / IMAGES
    images.mkdir(parents=True, exist_ok=True)
    figures = {figure.name: figure for item in TABLES.values() for figure in item.figures}
    ready = {name: figure for name, figure in figures.items() if figure.ready(store, plan)}
    for path in images.glob("*.png"):
        if path.stem not in ready:
            path.unlink()
    if plt is not None:
        for name, figure in ready.items():
            figure.draw(store, plan, plt, images / f"{name}.png")


# Whether all was measured under the same conditions


def environment(store: Store) -> str:
    """Tell machine, versions and dates, and which records differ in them."""
    records = list(store)
    if not records:
        return f"Everything on this page is {NOT_YET}."
    lines = []
    odd: dict[str, tuple[str, list[Record]]] = {}  # what is usual, and who has something else
    names = dict.fromkeys(name for record in records for name in record.environment)
    for name in names:
        counts = Counter(r.environment[name] for r in records if name in r.environment)
        usual = counts.most_common(1)[0][0]
        more = len(counts) - 1
        lines.append([name, f"{usual}, and {more} more" if more else usual])
        if len(counts) > 1:
            others = [r for r in records if r.environment.get(name, usual) != usual]
            odd[name] = usual, others
    days = sorted(record.date[:10] for record in records)
    span = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    counted = f"{len(records)} records, of {span}."
    if odd:
        counted += " The values are those of most records."
    if "commit" in names:
        counted += " The commit is the last one that changed `src`, `native` or `CMakeLists.txt`."
    parts = [table(["", "value"], lines), counted]
    for name, (usual, others) in odd.items():
        told = (
            f"**With another {name} than {usual}, {len(others)} of {len(records)} records:** "
            f"{_named(others)}. `--again` measures them anew."
        )
        parts.append(f"{told} {LOST_COMMITS}" if name == "commit" else told)
    busy = [
        record
        for record in records
        if record.key.kind in ("fit", "descent", "prediction")
        and (record.disturbance_cores or 0.0) >= TOLERATED_DISTURBANCE
    ]
    if busy:
        parts.append(
            f"**Other processes kept {TOLERATED_DISTURBANCE:g} cores or more busy during "
            f"{len(busy)} fits, whose times are not to be trusted:** {_named(busy)}."
        )
    else:
        parts.append(
            f"Other processes kept less than {TOLERATED_DISTURBANCE:g} cores busy during every fit."
        )
    out = sorted(CONTESTANTS[name].title for name in absent(store))
    if out:
        parts.append(f"Not installed there, hence absent from all tables: {', '.join(out)}.")
    return "\n\n".join(parts)


def _named(records: list[Record]) -> str:
    """Name records by contestant, and the data that each was given."""
    found: dict[str, Counter[str]] = {}
    for record in records:
        found.setdefault(record.key.entry.title, Counter())[record.key.dataset] += 1
    return "; ".join(
        f"{data.total()} of {title} ({', '.join(data)})" for title, data in found.items()
    )
