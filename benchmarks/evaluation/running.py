"""Makes measurements, each in a process of its own, and keeps their records."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from common import Disturbance, pca_layout, pinned, run_isolated, usable_cores
from datasets import DatasetError, load
from evaluation import estimate
from evaluation.cells import counted
from evaluation.plan import Plan
from evaluation.records import Key, Record, Store, environment, installed, make_record

MODULES = {
    "fit": "contestants",
    "judgement": "referee",
    "map": "evaluation.thumbnail",
    "descent": "evaluation.descent",
}
PATIENCE = 1.5  # times the longest fit, after which one is given up

Wanted = Callable[[Store, Plan], list[Key]]


class Runner:
    """Makes what is wanted and not there; a stopped run goes on where it was."""

    def __init__(self, store: Store, plan: Plan, scratch: Path, folder: Path | None) -> None:
        self.store = store
        self.plan = plan
        self._scratch = scratch  # data and maps, which are no results
        self._folder = folder  # of data sets

    def missing(self, wanted: Wanted, again: bool, made: set[Key]) -> list[Key]:
        """Return what is wanted and has no record, or, `again`, none of what is here now."""
        return [
            key
            for key in dict.fromkeys(wanted(self.store, self.plan))
            if (record := self.store.get(key)) is None
            or (record.status == "not installed" and installed(key.contestant))
            or (again and key not in made and (stale(record) or record.status == "no data"))
        ]

    def run(
        self,
        tables: dict[str, Wanted],
        chosen: Callable[[Key], bool],
        again: bool = False,
        at_most: int | None = None,
    ) -> int:
        """Measure table by table and return how many measurements were made.

        What is wanted is asked for after each one, as it may depend on what was found.
        """
        made: set[Key] = set()
        spent = 0.0

        def left(name: str) -> list[Key]:
            return list(filter(chosen, self.missing(tables[name], again, made)))

        def expected(keys: list[Key]) -> float:
            return sum(estimate.seconds(self.store, self.plan, key) for key in keys)

        with tqdm(bar_format=BAR, unit="s") as bar:
            for name in tables:
                while keys := left(name):
                    key = keys[0]
                    ahead = dict.fromkeys(other for table in tables for other in left(table))
                    bar.total = spent + expected(list(ahead))
                    here = expected([key])
                    bar.set_description_str(f"{name}: {described(key)}, about {here:.0f} s")
                    self.store.write(self.measure(key, name))
                    made.add(key)
                    spent += here
                    bar.update(here)
                    if at_most is not None and len(made) >= at_most:
                        return len(made)
        return len(made)

    def measure(self, key: Key, table: str) -> Record:
        """Make one measurement."""
        if not installed(key.contestant):
            report: dict[str, Any] = {"status": "not installed", "reason": "it cannot be imported"}
            return make_record(key, report, table, None)
        if key.kind == "part":
            data = self.plan.data(key.dataset)
            report = estimate.decide(self.store, self.plan, data, key.threads)
            return make_record(key, report, table, None)
        cores = usable_cores()[: key.threads]
        try:
            data_folder = self._prepared(key)
        except DatasetError:
            source = self.plan.data(key.dataset).source
            reason = f"neither a file {source}*.npz nor OpenML gave this data"
            return make_record(key, {"status": "no data", "reason": reason}, table, None)
        embedding = self._embedding(key)
        if key.kind in ("judgement", "map") and not embedding.exists():
            # The record of the fit is there but its map is not, as on another machine.
            self._isolated(key.of(kind="fit"), data_folder, cores)
        with Disturbance() as others:
            report = self._isolated(key, data_folder, cores)
        return make_record(key, report, table, others.cores)

    def _isolated(self, key: Key, data_folder: Path, cores: list[int]) -> dict[str, Any]:
        embedding = self._embedding(key)
        embedding.parent.mkdir(parents=True, exist_ok=True)
        job = {
            "module": MODULES[key.kind],
            "contestant": key.contestant,
            "dtype": key.dtype,
            "X": str(data_folder / "X.npy"),
            "init": str(data_folder / "init.npy"),
            "labels": str(data_folder / "labels.npy"),
            "embedding": str(embedding),
            "threads": key.threads,
            "seed": self.plan.seed,
            "max_iter": key.iterations,
            "perplexity": self.plan.perplexity,
        }
        with pinned(cores):
            return run_isolated(job, self._scratch, key.threads, PATIENCE * self.plan.most_seconds)

    def _embedding(self, key: Key) -> Path:
        path = self._scratch / "embeddings" / key.of(kind="fit").path
        return path.with_suffix(".npy")

    def _prepared(self, key: Key) -> Path:
        """Write the data of a measurement and where its maps start, if they are not there."""
        folder = self._scratch / f"{key.dataset}-{key.rows}"
        if folder.exists():
            return folder
        data = self.plan.data(key.dataset)
        dataset = load(data.source, key.rows, self._folder)
        if len(dataset.X) != key.rows:
            raise DatasetError(f"{data.name} has {len(dataset.X)} rows, not {key.rows}")
        unfinished = folder.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        np.save(unfinished / "X.npy", dataset.X)
        np.save(unfinished / "init.npy", pca_layout(dataset.X, self.plan.seed))
        if dataset.labels is not None:
            np.save(unfinished / "labels.npy", dataset.labels)
        unfinished.rename(folder)
        return folder


BAR = "{desc} |{bar:20}| {elapsed} passed, {remaining} left"


def described(key: Key) -> str:
    kind = "" if key.kind == "fit" else f"{key.kind} of "
    return f"{kind}{key.entry.title} on {key.rows:,} of {key.dataset}, {counted(key.threads)}"


def stale(record: Record) -> bool:
    """Whether a record is of another machine, version or commit than those here now."""
    return record.environment != environment(record.key.contestant)
