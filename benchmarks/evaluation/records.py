"""Measurements as records: one JSON file each, written whole or not at all."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from common import HERE, machine
from contestants import CONTESTANTS

# What a measurement depends on besides the contestant: of the machine, and of what all stand on.
MACHINE = ("cpu", "cores", "system")
COMMON_VERSIONS = ("python", "numpy", "scipy")
OURS = ("acctsne", "commit", "compiler", "simd")
# The distributions behind the modules of other packages.
DISTRIBUTIONS = {
    "sklearn.manifold": ("scikit-learn",),
    "sklearnex.manifold": ("scikit-learn", "scikit-learn-intelex"),
    "openTSNE": ("openTSNE",),
}
IN_BOTH_PRECISIONS = ("sklearnex",)  # contestants whose precision is that of their data
OF_MAPS = ("judgement", "map")  # kinds of measurements of the map that a fit has made
NATIVE_SOURCES = ("src", "native", "CMakeLists.txt")  # what a commit must change to count


class Entry(NamedTuple):
    """A contestant as it enters: which package, and the precision of what it is given."""

    contestant: str
    dtype: str

    @property
    def title(self) -> str:
        title = CONTESTANTS[self.contestant].title
        return f"{title}, {self.dtype}" if self.contestant in IN_BOTH_PRECISIONS else title

    @property
    def ours(self) -> bool:
        return self.contestant.startswith("acctsne")


@dataclass(frozen=True)
class Key:
    """Names one measurement.

    A fit is a package's run, a judgement what the referee says of its map, a map a sample of its
    points to draw, a descent the KL divergence on the way of ours, a prediction what more cores
    would bring, a part the decision on how many rows slow packages are run.
    """

    kind: str
    dataset: str
    rows: int
    contestant: str
    dtype: str
    threads: int
    iterations: int = 1000
    repeat: int = 0

    @property
    def entry(self) -> Entry:
        return Entry(self.contestant, self.dtype)

    @property
    def path(self) -> Path:
        name = f"{self.contestant}-{self.dtype}-{self.threads}-{self.iterations}-{self.repeat}"
        return Path(self.kind) / f"{self.dataset}-{self.rows}" / f"{name}.json"

    def of(self, **changes: Any) -> "Key":
        return replace(self, **changes)


@dataclass(frozen=True)
class Record:
    """What a measurement has found: "ok", or the status and reason why not."""

    key: Key
    status: str
    figures: dict[str, Any]
    environment: dict[str, str]
    command: str
    date: str
    disturbance_cores: float | None = None

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    def as_json(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"

    @staticmethod
    def from_json(text: str) -> "Record":
        content = json.loads(text)
        return Record(**{**content, "key": Key(**content["key"])})


class Store:
    """The records of a folder, by their keys."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._records: dict[Key, Record] = {}
        for path in sorted(folder.glob("*/*/*.json")):
            record = Record.from_json(path.read_text())
            self._records[record.key] = record

    def __iter__(self) -> Iterator[Record]:
        return (record for record in self._records.values() if self._belongs(record))

    def get(self, key: Key) -> Record | None:
        """Return a record; one of the map of an earlier fit than the present one is none."""
        record = self._records.get(key)
        return record if record is not None and self._belongs(record) else None

    def _belongs(self, record: Record) -> bool:
        """Whether a record is no other fit's.

        Fits, and what is said of their maps, tell the digest of the map. Where one of them does
        not, what is not older than the fit is taken to be of its map.
        """
        if record.key.kind not in OF_MAPS:
            return True
        fit = self._records.get(record.key.of(kind="fit"))
        if fit is None:
            return False
        digests = [each.figures.get("map_digest") for each in (fit, record)]
        if None in digests:
            return datetime.fromisoformat(record.date) >= datetime.fromisoformat(fit.date)
        return digests[0] == digests[1]

    def write(self, record: Record) -> None:
        path = self.folder / record.key.path
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(record.as_json())
        os.replace(unfinished, path)
        self._records[record.key] = record

    def remove(self, key: Key) -> None:
        (self.folder / key.path).unlink()
        del self._records[key]

    def fits(self, key: Key) -> list[Record]:
        """Return the records that differ from the key in the repeat only."""
        found: list[Record] = []
        while record := self.get(key.of(repeat=len(found))):
            found.append(record)
        return found

    def middle(self, key: Key) -> Record | None:
        """Return the repeat that took the median of the seconds, for figures of one fit.

        Where not all repeats have ended well, it is the first one, which tells why.
        """
        found = self.fits(key)
        if not found or not all(record.ok for record in found):
            return self.get(key)
        return sorted(found, key=lambda record: float(record.figures["seconds"]))[len(found) // 2]

    def figure(self, key: Key, name: str) -> float | None:
        """Return the median of a figure over the repeats, if all of them have it."""
        values = [record.figures.get(name) for record in self.fits(key) if record.ok]
        known = [value for value in values if value is not None]
        return float(median(known)) if known and len(known) == len(values) else None


def same_map(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two fits have made the same map, by their figures.

    Where digests are missing, two that went equally far to the same KL divergence, to its last
    digit, are taken to have.
    """
    digests = [figures.get("map_digest") for figures in (one, other)]
    if None not in digests:
        return bool(digests[0] == digests[1])
    return all(one.get(name) == other.get(name) for name in ("iterations", "reported_kl"))


def installed(contestant: str) -> bool:
    """Whether a contestant can be found here; that it can be loaded, its process will tell."""
    return find_spec(CONTESTANTS[contestant].module.partition(".")[0]) is not None


def environment(contestant: str) -> dict[str, str]:
    """Describe what a contestant's measurement depends on, and nothing that it does not."""
    described = _everything()
    module = CONTESTANTS[contestant].module
    names = OURS if module == "acctsne" else DISTRIBUTIONS.get(module, ())
    return {name: described[name] for name in (*MACHINE, *COMMON_VERSIONS, *names)}


@cache
def _everything() -> Mapping[str, str]:
    described = {name: str(value) for name, value in machine(threads=1).items()}
    return {**described, "commit": commit()}


def commit() -> str:
    """Name the last commit that changed what is measured, and say if it has been changed since."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(HERE.parent), *arguments, "--", *NATIVE_SOURCES]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = " and changes" if git("status", "--porcelain") else ""
        return git("log", "-1", "--format=%h") + changed
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def make_record(key: Key, report: Mapping[str, Any], options: str, cores: float | None) -> Record:
    figures = {name: value for name, value in report.items() if name != "status"}
    if "reason" in figures:  # which may name files of this machine
        figures["reason"] = str(figures["reason"]).replace(str(HERE.parent), ".")
    return Record(
        key=key,
        status=report["status"],
        figures=figures,
        environment=environment(key.contestant),
        command=f"python benchmarks/paper.py {options}",
        date=datetime.now(UTC).isoformat(timespec="minutes"),
        disturbance_cores=None if cores is None else round(cores, 2),
    )
