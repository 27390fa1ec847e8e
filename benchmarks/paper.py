"""Make the paper's evaluation again: measure what is missing, write docs/paper.md.

    python benchmarks/paper.py --only end-to-end,steps

Every measurement is made in a process of its own and kept as a JSON file. Stopped, the program goes
on where it was. `--plan` says what is missing and how long it will take, `--render` only writes.
`--alternate` fits ours and the paper's own code in turn, so that their seconds can be compared.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from common import HERE, some_of
from contestants import CONTESTANTS
from evaluation import estimate, page
from evaluation.contest import alternating
from evaluation.plan import FULL, OURS, QUICK, SKLEARNEX, Plan
from evaluation.records import Key, Store, installed
from evaluation.registry import TABLES
from evaluation.running import MODULES as KINDS
from evaluation.running import Runner, Wanted, described, stale

ROOT = HERE.parent
RESULTS = HERE / "results" / "paper"


def main(arguments: Sequence[str] | None = None) -> int:
    args = parse_arguments(arguments)
    output: Path | None = args.output or (ROOT / "build" / "paper-quick" if args.quick else None)
    store = Store(output / "records" if output else RESULTS)
    scratch = output / "scratch" if output else ROOT / "build" / "paper"
    whole = QUICK if args.quick else FULL
    plan = limited(whole, args)
    runner = Runner(store, plan, scratch, args.data)
    tables = {f"--only {name}": TABLES[name].wanted for name in args.only}
    chosen = chooser(args)
    if args.alternate:
        tables = in_turn(plan, args)
    if args.plan:
        tell(runner, tables, chosen, args.again, anew=bool(args.alternate))
        return 0
    if not args.render:
        scratch.mkdir(parents=True, exist_ok=True)
        others = [record for record in store if stale(record)]
        if others and not args.again and not args.alternate:
            print(
                f"{len(others)} records are of another machine, version or commit than those here; "
                "--again measures them anew",
                file=sys.stderr,
            )
        if args.alternate:
            for options, wanted in tables.items():
                runner.alternate(options, wanted)
        else:
            runner.run(tables, chosen, args.again, args.at_most)
    return write(store, whole.as_measured(store), output)


def write(store: Store, plan: Plan, output: Path | None) -> int:
    """Write the page, and, unless into a folder of its own, the tables of other pages."""
    if output is None:
        written = page.pages(store, plan, ROOT)
        page.draw(store, plan, ROOT / "docs")
    else:
        written = {output / "paper.md": page.rendered(store, plan)}
        page.draw(store, plan, output)
    for path, text in written.items():
        path.write_text(text)
        print(f"wrote {path}")
    return 0


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "--only",
        type=some_of(TABLES),
        default=list(TABLES),
        help=f"comma-separated tables to measure, of {', '.join(TABLES)}",
    )
    parser.add_argument(
        "--datasets",
        type=some_of([data.name for data in FULL.datasets]),
        help="comma-separated; measure on these only",
    )
    parser.add_argument(
        "--contestants",
        type=some_of(CONTESTANTS),
        help=f"comma-separated, of {', '.join(CONTESTANTS)}; measure these only",
    )
    parser.add_argument(
        "--kinds",
        type=some_of(KINDS),
        help=f"comma-separated, of {', '.join(KINDS)}; measure these only: fits and descents want "
        "an idle machine, judgements and maps do not",
    )
    parser.add_argument("--data", type=Path, help="folder with <dataset>*.npz; see ACCTSNE_DATA")
    parser.add_argument("--quick", action="store_true", help="little data, into build/paper-quick")
    parser.add_argument("--output", type=Path, help="folder for records and page, not docs")
    parser.add_argument("--repeats", type=int, help="at most so many fits of the same")
    parser.add_argument("--most-minutes", type=float, help="of a fit; beyond, a part of the data")
    parser.add_argument("--part-minutes", type=float, help="of a fit of such a part")
    parser.add_argument("--at-most", type=int, help="stop after so many measurements")
    parser.add_argument(
        "--again", action="store_true", help="measure anew what is of another machine or version"
    )
    parser.add_argument(
        "--alternate",
        type=some_of([data.name for data in FULL.datasets]),
        help="comma-separated data sets; fit them anew with ours and scikit-learn-intelex in "
        "float32, or with --contestants, in turn, whatever records there are of both",
    )
    parser.add_argument(
        "--plan", action="store_true", help="only say what is missing, and how long"
    )
    parser.add_argument("--render", action="store_true", help="only write the pages")
    return parser.parse_args(arguments)


def limited(plan: Plan, args: argparse.Namespace) -> Plan:
    """Return the plan with the limits that were given."""
    if args.repeats is not None:
        shorter = tuple((limit, min(times, args.repeats)) for limit, times in plan.repeats)
        plan = replace(plan, repeats=shorter)
    if args.most_minutes is not None:
        plan = replace(plan, most_seconds=60 * args.most_minutes)
    if args.part_minutes is not None:
        plan = replace(plan, part_seconds=60 * args.part_minutes)
    return plan


def in_turn(plan: Plan, args: argparse.Namespace) -> dict[str, Wanted]:
    """Return the fits that are made in turn, by the options that name them."""
    entries = [OURS, SKLEARNEX]
    option = "--alternate {}"
    if args.contestants is not None:
        entries = [entry for entry in plan.entries if entry.contestant in args.contestants]
        option += f" --contestants {','.join(args.contestants)}"
    absent = [entry.title for entry in entries if not installed(entry.contestant)]
    if absent:
        sys.exit(f"--alternate: {', '.join(absent)} cannot be imported; nothing was measured")
    return {
        option.format(data.name): partial(alternating, data=data, entries=entries)
        for data in plan.datasets
        if data.name in args.alternate
    }


def chooser(args: argparse.Namespace) -> Callable[[Key], bool]:
    def chosen(key: Key) -> bool:
        if args.datasets is not None and key.dataset not in args.datasets:
            return False
        if key.kind == "part":
            return True
        of_kind = args.kinds is None or key.kind in args.kinds
        return of_kind and (args.contestants is None or key.contestant in args.contestants)

    return chosen


def tell(
    runner: Runner,
    tables: Mapping[str, Wanted],
    chosen: Callable[[Key], bool],
    again: bool,
    anew: bool,
) -> None:
    """Print what is missing, table by table, with minutes; what two share is with the first."""
    told: set[Key] = set()
    for options, wanted in tables.items():
        name = options.removeprefix("--only ")
        missing = runner.missing(wanted, again, told, anew)
        keys = [key for key in missing if chosen(key) and key not in told]
        told |= set(keys)
        seconds = [estimate.seconds(runner.store, runner.plan, key) for key in keys]
        print(f"{name}: {len(keys)} measurements, about {sum(seconds) / 60:.1f} minutes")
        for key, taken in zip(keys, seconds, strict=True):
            print(f"  {taken:8.0f} s  {described(key)}")


if __name__ == "__main__":
    sys.exit(main())
