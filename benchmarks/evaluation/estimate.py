"""How long a measurement will take: from its like if there is one, from stated rates otherwise."""

from math import log

from evaluation.plan import ALL_PAIRS, Data, Plan
from evaluation.records import Key, Store, installed

START = 2.0  # seconds that a process takes to import its package and to read its data
# Seconds on one core for 1000 iterations of 1000 points, and for 10^12 multiplications of the
# search for neighbours (of 10^6 points for packages that search approximately), from
# docs/performance.md. They only serve the progress bar until there are records, and say which
# contestants are tried on a part of the data first.
STATED = {
    "acctsne": (0.08, 1.7),
    "acctsne-float64": (0.12, 2.5),
    "acctsne-bh": (0.1, 1.7),
    "acctsne-paper": (0.4, 2.5),
    "sklearn": (8.0, 26.0),
    "sklearnex": (0.9, 26.0),
    "opentsne": (4.8, 1900.0),
    "multicoretsne": (4.0, 1900.0),
    "fitsne": (1.0, 1900.0),
}
EXTRA_COLUMNS = 60  # what keeping the nearest costs, in columns


def seconds(store: Store, plan: Plan, key: Key) -> float:
    """Return the seconds that a measurement is expected to take, its process included."""
    if key.kind == "part" or not installed(key.contestant):
        return 0.0
    if key.kind == "map":
        return START
    if key.kind == "judgement":
        pairs = min(float(key.rows) ** 2, 1e10)
        return START + 3e-9 * pairs + 2e-4 * max(0, key.rows - 100_000)
    if key.kind == "descent":
        fit = key.of(kind="fit", iterations=plan.iterations)
        return START + 6 * seconds(store, plan, fit) + 18 * 3e-10 * key.rows**2
    if key.kind == "prediction":  # three fits on one thread and on two, and what they are held to
        fits = [key.of(kind="fit", threads=threads) for threads in (1, 2)]
        return START + 3.5 * sum(fit_seconds(store, plan, fit) for fit in fits)
    return START + 1e-6 * key.rows + fit_seconds(store, plan, key)


def fit_seconds(store: Store, plan: Plan, key: Key) -> float:
    """Return the seconds that a fit is expected to take."""
    same = store.figure(key.of(repeat=0), "seconds")
    if same is not None:
        return same
    smaller = smaller_fits(store, key)
    if smaller:
        return extrapolated(store, smaller[-1], key)
    descent, search = STATED[key.contestant]
    columns = plan.data(key.dataset).columns
    thousands = key.rows / 1000
    iterations = key.iterations / 1000
    growth = log(max(key.rows, 2)) / log(70_000)
    neighbors = _multiplications(key.contestant, key.rows, columns) * search
    return (descent * thousands * iterations * growth + neighbors) / key.threads


def smaller_fits(store: Store, key: Key) -> list[Key]:
    """Return the fits of less rows that the same contestant has done on as many threads.

    They are in the order of their rows. What a fit gains by more threads is not known from others.
    """
    done = [
        record.key
        for record in store
        if record.ok
        and record.key == key.of(rows=record.key.rows, repeat=0)
        and record.key.rows < key.rows
    ]
    return sorted(done, key=lambda smaller: smaller.rows)


def extrapolated(store: Store, smaller: Key, key: Key) -> float:
    """Extrapolate a fit to more rows: N log N, and N^2 for a search over all pairs."""
    ratio = key.rows / smaller.rows
    growing = ratio * log(key.rows) / log(smaller.rows)
    search = store.figure(smaller, "knn_seconds") or 0.0
    rest = (store.figure(smaller, "seconds") or 0.0) - search
    searching = ratio**2 if key.contestant in ALL_PAIRS else growing
    return rest * growing + search * searching


def _multiplications(contestant: str, rows: int, columns: int) -> float:
    """Count the multiplications of a search in 10^12, or the points of an approximate one in 10^6.

    Ours skips most pairs of large data, which is counted as three hundred thousand
    points that each is compared to.
    """
    if STATED[contestant][1] > 100:
        return rows / 1e6
    others = min(rows, 300_000) if contestant.startswith("acctsne") else rows
    return rows * others * (columns + EXTRA_COLUMNS) / 1e12


def doubtful(store: Store, plan: Plan, data: Data, threads: int) -> list[Key]:
    """Return the fits of all rows that may take too long, which smaller ones must tell."""
    return [
        key
        for entry in plan.entries
        if not entry.ours and installed(entry.contestant)
        for key in [plan.fit(data, entry, threads=threads)]
        if store.get(key) is None
        and data.rows > plan.probe_rows
        and fit_seconds(store, plan, key) > plan.most_seconds / 3
    ]


def decide(store: Store, plan: Plan, data: Data, threads: int) -> dict[str, object]:
    """Decide from the smaller fits who gets a part of the data, and which."""
    predicted = {}
    rungs = [rows for rows in plan.rungs if rows < data.rows]
    rows = rungs[-1]
    for key in doubtful(store, plan, data, threads):
        smaller = smaller_fits(store, key)
        if not smaller:
            continue  # it failed, or is not installed
        whole = extrapolated(store, smaller[-1], key)
        if whole <= plan.most_seconds:
            continue
        predicted["/".join(key.entry)] = [smaller[-1].rows, round(whole)]
        fitting = [n for n in rungs if fit_seconds(store, plan, key.of(rows=n)) < plan.part_seconds]
        rows = min(rows, max(fitting, default=rungs[0]))
    return {
        "status": "ok",
        "rows": rows,
        "predicted": predicted,
        "most_seconds": plan.most_seconds,
    }
