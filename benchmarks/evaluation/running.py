"""Makes measurements, each in a process of its own, and keeps their records."""

import hashlib
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
from evaluation.records import (
    OF_MAPS,
    Key,
    Record,
    Store,
    environment,
    installed,
    make_record,
    same_map,
)

MODULES = {
    "fit": "contestants",
    "judgement": "referee",
    "map": "evaluation.thumbnail",
    "descent": "evaluation.descent",
    "prediction": "simulate",
}
UNAVAILABLE = ("not installed", "no data")  # here: nothing that was measured
PATIENCE = 1.5  # times the longest fit, after which one is given up

Wanted = Callable[[Store, Plan], list[Key]]


class Runner:
    """Makes what is wanted and not there; a stopped run goes on where it was."""

    def __init__(self, store: Store, plan: Plan, scratch: Path, folder: Path | None) -> None:
        self.store = store
        self.plan = plan
        self._scratch = scratch  # data and maps, which are no results
        self._folder = folder  # of data sets

    def missing(self, wanted: Wanted, again: bool, made: set[Key], anew: bool = False) -> list[Key]:
        """Return what is wanted and has no record, or, `again`, none of what is here now.

        `anew`, all that is wanted and not among what was made counts as missing.
        """
        return [
            key
            for key in dict.fromkeys(wanted(self.store, self.plan))
            if (anew and key not in made)
            or (record := self.store.get(key)) is None
            or (record.status == "not installed" and installed(key.contestant))
            or (again and key not in made and (stale(record) or record.status == "no data"))
        ]

    def run(
        self,
        tables: dict[str, Wanted],
        chosen: Callable[[Key], bool],
        again: bool = False,
        at_most: int | None = None,
        anew: bool = False,
    ) -> set[Key]:
        """Measure table by table, each by the options that name it, and return what was made.

        What is wanted is asked for after each one, as it may depend on what was found.
        """
        made: set[Key] = set()
        spent = 0.0

        def left(name: str) -> list[Key]:
            return list(filter(chosen, self.missing(tables[name], again, made, anew)))

        def expected(keys: list[Key]) -> float:
            return sum(estimate.seconds(self.store, self.plan, key) for key in keys)

        with tqdm(bar_format=BAR, unit="s") as bar:
            for name in tables:
                while keys := left(name):
                    key = keys[0]
                    ahead = dict.fromkeys(other for table in tables for other in left(table))
                    bar.total = spent + expected(list(ahead))
                    here = expected([key])
                    what = f"{name.split()[-1]}: {described(key)}"
                    whole = bar.total - spent
                    bar.set_description_str(f"{what}, about {here:.0f} s of {whole:.0f} s")
                    self._keep(self.measure(key, name))
                    made.add(key)
                    spent += here
                    bar.update(here)
                    if at_most is not None and len(made) >= at_most:
                        return made
        return made

    def _keep(self, record: Record) -> None:
        """Write a record, unless it would take the place of one that can only be made elsewhere."""
        earlier = self.store.get(record.key)
        if record.status not in UNAVAILABLE or earlier is None or not earlier.ok:
            self.store.write(record)

    def alternate(self, options: str, wanted: Wanted) -> None:
        """Make fits in turn, and let their records take the place of all earlier ones."""
        made = self.run({options: wanted}, lambda key: True, anew=True)
        fits = {key.of(repeat=0) for key in made}
        for record in list(self.store):
            if record.key.of(repeat=0) in fits and record.key not in made:
                self.store.remove(record.key)

    def measure(self, key: Key, options: str) -> Record:
        """Make one measurement."""
        if not installed(key.contestant):
            report: dict[str, Any] = {"status": "not installed", "reason": "it cannot be imported"}
            return make_record(key, report, options, None)
        if key.kind == "part":
            data = self.plan.data(key.dataset)
            report = estimate.decide(self.store, self.plan, data, key.threads)
            return make_record(key, report, options, None)
        cores = usable_cores()[: key.threads]
        try:
            data_folder = self._prepared(key)
        except DatasetError:
            source = self.plan.data(key.dataset).source
            reason = f"neither a file {source}*.npz nor OpenML gave this data"
            return make_record(key, {"status": "no data", "reason": reason}, options, None)
        if key.kind in OF_MAPS:
            report = self._with_map(key.of(kind="fit"), data_folder, cores, options)
            if report["status"] != "ok":
                return make_record(key, report, options, None)
        with Disturbance() as others:
            report = self._isolated(key, data_folder, cores)
        return make_record(key, report, options, others.cores)

    def _with_map(
        self, key: Key, data_folder: Path, cores: list[int], options: str
    ) -> dict[str, Any]:
        """Make sure that the map of a fit's record is there, and return the status.

        The record may be of another machine, or of an earlier run than the map. The fit is then
        made anew, and where that leads to another map, as another version does, its record takes
        the place of the earlier one, lest figures of two maps stand in one row.
        """
        recorded = self.store.get(key)
        embedding = self._embedding(key)
        if recorded is not None and embedding.exists():
            expected = recorded.figures.get("map_digest")
            if expected in (None, digest(embedding)):
                return {"status": "ok"}
        with Disturbance() as others:
            report = self._isolated(key, data_folder, cores)
        other = recorded is None or not same_map(recorded.figures, report)
        if report["status"] == "ok" and other:
            self.store.write(make_record(key, report, options, others.cores))
        return report

    def _isolated(self, key: Key, data_folder: Path, cores: list[int]) -> dict[str, Any]:
        """Make one measurement in a process of its own, and tell which map it made or saw."""
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
        patience = PATIENCE * self.plan.most_seconds
        with pinned(cores):
            report = run_isolated(job, self._scratch, key.threads, patience)
        if report["status"] == "ok" and key.kind in ("fit", *OF_MAPS):
            report["map_digest"] = digest(embedding)
        return report

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


def digest(path: Path) -> str:
    """Return what tells one file from another."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


BAR = "{desc} |{bar:20}| {elapsed} passed, {remaining} left"


def described(key: Key) -> str:
    kind = "" if key.kind == "fit" else f"{key.kind} of "
    return f"{kind}{key.entry.title} on {key.rows:,} of {key.dataset}, {counted(key.threads)}"


def stale(record: Record) -> bool:
    """Whether a record is of another machine, version or commit than those here now."""
    return record.environment != environment(record.key.contestant)
