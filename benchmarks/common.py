"""What the benchmarks share: arguments, isolated runs, the machine's description, results."""

import argparse
import json
import os
import platform
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median as _median
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from datasets import NAMES_HELP, Dataset, DatasetError, load

HERE = Path(__file__).resolve().parent
TOLERATED_DISTURBANCE = 0.1  # cores

# Whatever a contestant's threads come from, it must be told the same number.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "LOKY_MAX_CPU_COUNT",
)


# Arguments


def make_parser(description: str, dataset: str) -> argparse.ArgumentParser:
    """Make a parser with the arguments that all benchmarks have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--dataset", default=dataset, help=NAMES_HELP)
    parser.add_argument(
        "--data", type=Path, help="folder with <dataset>*.npz; otherwise that in ACCTSNE_DATA"
    )
    parser.add_argument("--limit", type=positive, help="take a random sample of so many points")
    parser.add_argument("--perplexity", type=float, default=30.0, help="perplexity")
    parser.add_argument("--threads", type=positive, default=len(usable_cores()), help="threads")
    parser.add_argument("--seed", type=int, default=0, help="seed of whatever is random")
    parser.add_argument(
        "--output", type=Path, help="folder for results (results/<benchmark>-<dataset> here)"
    )
    return parser


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {value}")
    return value


def some_of(names: Collection[str]) -> Callable[[str], list[str]]:
    """Make the type of an argument that names some of these, separated by commas."""

    def parse(text: str) -> list[str]:
        found = list(dict.fromkeys(text.split(",")))
        unknown = [name for name in found if name not in names]
        if unknown:
            known = ", ".join(names)
            raise argparse.ArgumentTypeError(f"no {', '.join(unknown)}; there are {known}")
        return found

    return parse


def load_or_exit(args: argparse.Namespace) -> Dataset:
    """Load the data set that the arguments name; without it, say so in one line and exit."""
    try:
        dataset = load(args.dataset, args.limit, args.data)
    except DatasetError as error:
        sys.exit(f"error: {error}")
    if len(dataset.X) <= 3 * args.perplexity + 1:
        sys.exit(
            f"error: perplexity {args.perplexity:g} needs more than {3 * args.perplexity + 1:g} "
            f"points; {dataset.name} has {len(dataset.X)}"
        )
    return dataset


def output_folder(args: argparse.Namespace, benchmark: str, dataset: Dataset) -> Path:
    folder: Path = args.output or HERE / "results" / f"{benchmark}-{dataset.slug}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


# The start that all contestants share


def pca_layout(X: npt.NDArray[np.float32], seed: int) -> npt.NDArray[np.float32]:
    """Two principal components, the first with standard deviation 1e-4: scikit-learn's default."""
    from sklearn.decomposition import PCA

    layout = PCA(n_components=2, random_state=seed).fit_transform(X)
    return np.ascontiguousarray(layout / np.std(layout[:, 0]) * 1e-4, dtype=np.float32)


# Cores, threads and isolated runs


def usable_cores() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


@contextmanager
def pinned(cores: Sequence[int]) -> Iterator[None]:
    """Let processes started inside run on these cores only, where the system can do that."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def run_isolated(
    job: Mapping[str, Any], folder: Path, threads: int, timeout: float | None = None
) -> dict[str, Any]:
    """Run a job by `run_job` of its "module" in a fresh process and return what that reports.

    A fresh process has the memory peak, the thread pools and the caches to itself. The answer's
    "status" is "ok", "not installed" or "failed", the last two with a "reason".
    """
    job_file = folder / "job.json"
    report_file = folder / "report.json"
    report_file.unlink(missing_ok=True)
    job_file.write_text(json.dumps({**job, "report": str(report_file)}))
    environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads))}
    try:
        done = subprocess.run(
            [sys.executable, str(HERE / "isolated.py"), str(job_file)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"status": "failed", "reason": f"not finished after {timeout:g} s"}
    if report_file.exists():
        report: dict[str, Any] = json.loads(report_file.read_text())
        return report
    lines = done.stderr.strip().splitlines()
    reason = lines[-1] if lines else f"exit status {done.returncode}"
    return {"status": "failed", "reason": reason}


# Whether we had the machine to ourselves


class Disturbance:
    """The average number of cores busy with other processes while in a `with` block.

    Threads that wait by spinning, as OpenMP's do, lose far more than their share when a core is
    taken from them, so that on a busy machine packages cannot be compared. `cores` is None where
    the system does not tell, and after blocks too short for its clock of 10 ms.
    """

    cores: float | None = None

    def __enter__(self) -> "Disturbance":
        self._start = perf_counter(), self._busy_seconds(), self._own_seconds()
        return self

    def __exit__(self, *_: object) -> None:
        start, busy, own = self._start
        busy_now = self._busy_seconds()
        seconds = perf_counter() - start
        if busy is not None and busy_now is not None and seconds > 0.5:
            others = (busy_now - busy) - (self._own_seconds() - own)
            self.cores = max(0.0, others / seconds)

    @staticmethod
    def _busy_seconds() -> float | None:
        try:
            fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        except OSError:
            return None
        user, nice, system, _, _, irq, soft_irq, steal = map(int, fields)
        return (user + nice + system + irq + soft_irq + steal) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def _own_seconds() -> float:
        return sum(os.times()[:4])  # of this process and of its finished children


def disturbance_note(cores: Sequence[float | None]) -> str:
    """Say how much other processes disturbed the runs, in the worst case."""
    known = [value for value in cores if value is not None]
    if not known:
        return "Whether other processes ran meanwhile is not known."
    worst = max(known)
    note = f"Other processes kept up to {worst:.2f} cores busy meanwhile"
    if worst < TOLERATED_DISTURBANCE:
        return note + "."
    return note + ": **the machine was not idle, do not trust these times.**"


# Memory of this process, in bytes


def start_memory_peak() -> int:
    """Forget the peak so far, where the system can do that, and return the memory in use."""
    with suppress(OSError):  # the peak then includes what loading the data took
        Path("/proc/self/clear_refs").write_text("5")
    return _proc_status("VmRSS") or _max_rss()


def memory_peak() -> int:
    """Return the largest memory in use since start_memory_peak."""
    # ru_maxrss is the last choice: on Linux it begins with the size of the parent process.
    return _proc_status("VmHWM") or _max_rss()


def _proc_status(field: str) -> int:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    match = re.search(rf"^{field}:\s+(\d+) kB", status, re.MULTILINE)
    return int(match[1]) * 1024 if match else 0


def _max_rss() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


# What ran and on what


def machine(threads: int) -> dict[str, Any]:
    import acctsne  # here, so that processes of other contestants do not load it

    packages = ("numpy", "scipy", "scikit-learn", "scikit-learn-intelex", "openTSNE")
    return {
        "cpu": _cpu_model(),
        "cores": len(usable_cores()),
        "threads": threads,
        "simd": acctsne.build_info()["simd_level"],
        "compiler": acctsne.build_info()["compiler"],
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "acctsne": acctsne.__version__,
        **{name: _package_version(name) for name in packages},
    }


def _cpu_model() -> str:
    try:
        match = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        match = None
    return match[1] if match else platform.processor() or "unknown"


def _package_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


# Results


def median(values: Sequence[float]) -> float:
    return float(_median(values))


def number(value: float | None, form: str = ".3g") -> str:
    return "-" if value is None else format(value, form)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a Markdown table; numbers, which are all columns but the first, stand right."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        return "| " + " | ".join(cells) + " |"

    rule = ["-" * widths[0], *("-" * (max(width, 2) - 1) + ":" for width in widths[1:])]
    return "\n".join([line(header), line(rule), *map(line, rows)])


def write_results(
    folder: Path,
    benchmark: str,
    dataset: Dataset,
    settings: Mapping[str, Any],
    results: Mapping[str, Any],
    tables: str,
    figure: str | None = None,
) -> None:
    """Write <benchmark>.json and <benchmark>.md, and print the latter's tables."""
    described = machine(settings["threads"])
    data = {
        "benchmark": benchmark,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "dataset": {
            "name": dataset.name,
            "points": len(dataset.X),
            "dimensions": dataset.X.shape[1],
            "synthetic": dataset.synthetic,
            "note": dataset.note,
        },
        "machine": described,
        "settings": settings,
        **results,
    }
    (folder / f"{benchmark}.json").write_text(json.dumps(data, indent=2, default=_plain) + "\n")
    lines = [f"# {benchmark}: {dataset.title}", ""]
    if dataset.note:
        lines += [f"Data: {dataset.note}.", ""]
    lines += [tables, ""]
    if figure:
        lines += [f"![{benchmark}]({figure})", ""]
    lines += ["Settings: " + ", ".join(f"{k} {v}" for k, v in settings.items()) + ".", ""]
    lines += ["Machine: " + ", ".join(f"{k} {v}" for k, v in described.items()) + ".", ""]
    (folder / f"{benchmark}.md").write_text("\n".join(lines))
    print(f"\n{dataset.title}\n\n{tables}\n\nResults are in {folder}")


def _plain(value: Any) -> Any:
    """Turn what JSON does not know into what it does."""
    if isinstance(value, np.generic):
        return value.item()
    return str(value)


def pyplot() -> Any:
    """Return matplotlib.pyplot for drawing to files, or None if matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        print("matplotlib is not installed: no figure", file=sys.stderr)
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    return plt
