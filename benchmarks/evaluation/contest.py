"""Who runs on how much of a data set, how often and in which order."""

from collections.abc import Sequence

from evaluation import estimate
from evaluation.plan import OURS, Data, Plan
from evaluation.records import Entry, Key, Store, installed


def part_key(data: Data, threads: int) -> Key:
    return Key("part", data.name, data.rows, *OURS, threads)


def contest(store: Store, plan: Plan, data: Data, threads: int) -> list[Key]:
    """Return the fits of all contestants, as far as it is known which are to be made.

    Those that may take too long are run on few rows first. Who would take too long then, gets a
    part of the rows, and so do all others, to be compared with.
    """
    first = store.get(plan.fit(data, OURS, threads=threads))
    if first is not None and first.status == "no data":
        return [first.key]
    decision = store.get(part_key(data, threads))
    unsure = [] if decision else estimate.doubtful(store, plan, data, threads)
    out = {"/".join(key.entry) for key in unsure}
    if decision:
        out |= set(decision.figures["predicted"])
    entries = [entry for entry in plan.entries if installed(entry.contestant)]
    whole = [entry for entry in entries if "/".join(entry) not in out]
    keys = rounds(store, plan, [plan.fit(data, entry, threads=threads) for entry in whole])
    if unsure:
        probes = [key.of(rows=plan.probe_rows) for key in unsure]
        keys += probes
        if all(store.get(probe) for probe in probes):
            keys.append(part_key(data, threads))
    rows = part_rows(store, data, threads)
    if rows is not None:
        part = [plan.fit(data, entry, rows, threads) for entry in entries]
        keys += rounds(store, plan, part)
    if data == plan.datasets[0]:  # that a package is not installed is told once
        keys += [
            plan.fit(data, entry, threads=threads) for entry in sorted({*plan.entries} - {*entries})
        ]
    return keys


def part_rows(store: Store, data: Data, threads: int) -> int | None:
    """Return how many rows those are run on whom all rows would take too long, if any."""
    decision = store.get(part_key(data, threads))
    if decision is None or not decision.figures["predicted"]:
        return None
    return int(decision.figures["rows"])


def too_long(store: Store, key: Key) -> bool:
    """Whether that contestant would take too long on so many rows, and has got a part instead."""
    decision = store.get(Key("part", key.dataset, key.rows, *OURS, key.threads))
    return decision is not None and "/".join(key.entry) in decision.figures["predicted"]


def alternating(store: Store, plan: Plan, data: Data, entries: Sequence[Entry]) -> list[Key]:
    """Return fits of some contestants in turn, on the rows where all meet, however long they take.

    Seconds of a fit that was made hours from another's are of a machine that may have been another
    one in speed; these are comparable.
    """
    rows = part_rows(store, data, plan.threads)
    keys = [plan.fit(data, entry, rows) for entry in entries]
    return rounds(store, plan, keys, plan.fewest_rounds)


def rounds(store: Store, plan: Plan, keys: Sequence[Key], fewest: int = 1) -> list[Key]:
    """Repeat short fits, in rounds that each begin with another contestant."""
    times = {}
    for key in keys:
        first = store.get(key)
        failed = first is not None and not first.ok
        expected = estimate.fit_seconds(store, plan, key)
        times[key] = 1 if failed else max(fewest, plan.repeats_of(expected))
    ordered = []
    for repeat in range(max(times.values(), default=0)):
        start = repeat % len(keys)
        for key in (*keys[start:], *keys[:start]):
            if repeat < times[key]:
                ordered.append(key.of(repeat=repeat))
    return ordered


def judgements(store: Store, fits: Sequence[Key], kind: str = "judgement") -> list[Key]:
    """Return what is to be said of the maps of the first round, as far as they have been made."""
    done = (store.get(key) for key in fits if key.kind == "fit" and key.repeat == 0)
    return [record.key.of(kind=kind) for record in done if record is not None and record.ok]
