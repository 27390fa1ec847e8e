"""Peak memory of a process, where one and where several share a fit.

    python benchmarks/processes.py --folder FOLDER --dataset synthetic:1000000x20 --processes 1,4

Writes the data to FOLDER as npy, embeds that file by each number of processes, one number after the
other, and prints what each process held at most, by stage: resident memory as Linux counts it,
pages of the file and of MPI included. The descent ends after a few iterations, which do not add to
it; `--iterations 1000` lets it end by itself. Needs mpi4py and Linux.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from acctsne.distributed import TSNE
from acctsne.runtime.timer import StageTimer
from common import memory_peak, start_memory_peak, table
from datasets import NAMES_HELP, DatasetError, load

# Stages whose bytes are counted, and what is sent in every iteration.
SENDING = ("knn", "symmetrize", "optimize")
EVERY_ITERATION = ("halo", "charges", "sums")

FLAGS = ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]


class Watched(TSNE):
    """Notes the peak of resident memory of each stage, and the seconds of all its threads."""

    def _timer(self) -> StageTimer:
        timer = super()._timer()
        stage = timer.stage
        self.peaks: dict[str, int] = {}
        self.cpu: dict[str, float] = {}

        @contextmanager
        def watched(name: str) -> Iterator[None]:
            self.note("elsewhere")
            before = process_time()
            try:
                with stage(name):
                    yield
            finally:
                self.note(name)
                self.cpu[name] = self.cpu.get(name, 0.0) + process_time() - before

        timer.stage = watched  # type: ignore[method-assign]
        return timer

    def note(self, name: str) -> None:
        """Take down the peak since the last one, and begin anew."""
        self.peaks[name] = max(memory_peak(), self.peaks.get(name, 0))
        start_memory_peak()


def measure(path: Path, options: argparse.Namespace) -> None:
    """Embed a file together with the other processes, and print figures of this one."""
    tsne = Watched(
        neighbors=options.neighbors,
        n_jobs=options.threads,
        random_state=0,
        verbose=int(options.verbose),
        callback=lambda *_: True,
        callback_every=options.iterations,
    )
    tsne.fit(path)
    tsne.note("elsewhere")
    sent = {name: value for name, value in tsne.timings_.items() if "bytes_sent" in name}
    figures = {
        "rank": tsne._processes.rank,
        "peaks": tsne.peaks,
        "search_cpu": tsne.cpu["knn"],
        "iterations": tsne.n_iter_ + 1,
        "kl": tsne.kl_divergence_,
        "seconds": tsne.timings_["total"],
        **sent,
    }
    tell(figures)


def tell(figures: dict[str, Any]) -> None:
    """Print figures of a process, in one piece, lest lines of several be mixed."""
    sys.stdout.write(json.dumps(figures) + "\n")


def run(path: Path, processes: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run so many processes; return the figures of each."""
    program = [__file__, "--folder", ".", "--measure", str(path)]
    program += ["--iterations", str(options.iterations), "--neighbors", options.neighbors]
    program += ["--threads", str(max(1, options.threads // processes))]
    program += ["--verbose"] if options.verbose else []
    return told(mpiexec(processes, *program))


def mpiexec(processes: int, *program: str, flags: Sequence[str] = ()) -> list[str]:
    """Make the command that runs a Python program by so many processes."""
    launcher = str(Path(sys.executable).parent / "mpiexec")
    return [launcher, *FLAGS, *flags, "-n", str(processes), sys.executable, *program]


def told(command: Sequence[str]) -> list[dict[str, Any]]:
    """Run a command; return the figures that its processes tell."""
    ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]


def data_file(dataset: str, folder: Path) -> Path:
    """Write a data set to a file, unless it is there; without the data, say so and exit."""
    try:
        data = load(dataset)
    except DatasetError as error:
        sys.exit(str(error))
    path = folder / f"{data.slug}.npy"
    if not path.exists():
        np.save(path, data.X)
    return path


def sent_in_iteration(process: dict[str, Any]) -> float:
    """Compute the bytes that left a process in a mean iteration."""
    sent = sum(process.get(f"{what}_bytes_sent", 0) for what in EVERY_ITERATION)
    return float(sent / process["iterations"])


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description="Peak memory of processes that share a fit.")
    parser.add_argument("--folder", type=Path, required=True, help="where the data is written to")
    parser.add_argument("--dataset", default="synthetic:1000000x20", help=NAMES_HELP)
    parser.add_argument("--processes", default="1,4", help="numbers of them")
    parser.add_argument("--neighbors", default="approximate", choices=["approximate", "exact"])
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--threads", type=int, default=2, help="of all processes together")
    parser.add_argument("--verbose", action="store_true", help="show the log of the fits")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options)
        return
    path = data_file(options.dataset, options.folder)
    figures = {count: run(path, count, options) for count in map(int, options.processes.split(","))}
    stages = next(iter(figures.values()))[0]["peaks"]
    one = None
    rows = []
    for count, processes in figures.items():
        peaks = [max(process["peaks"][stage] for process in processes) for stage in stages]
        divergences = {process["kl"] for process in processes}
        one = max(peaks) if one is None else one
        together = sum(max(process["peaks"].values()) for process in processes)
        cells = [
            count,
            f"{max(peaks) / 1e6:.0f}",
            f"{max(peaks) / one:.2f}",
            f"{together / 1e6:.0f}",
        ]
        cells += [f"{peak / 1e6:.0f}" for peak in peaks]
        cells += [
            f"{max(process.get(f'{stage}_bytes_sent', 0) for process in processes) / 1e6:.0f}"
            for stage in SENDING
        ]
        cells += [f"{max(map(sent_in_iteration, processes)) / 1e6:.2f}"]
        cells += [f"{sum(process['search_cpu'] for process in processes):.1f}"]
        cells += [f"{processes[0]['seconds']:.0f}", *divergences]
        rows.append([str(cell) for cell in cells])
    sent = [f"{stage} sent" for stage in SENDING]
    print("MB of one process, the largest of all")
    print(
        table(
            [
                "processes",
                "peak",
                "of the first",
                "all together",
                *stages,
                *sent,
                "iteration sent",
                "search, core seconds",
                "seconds",
                "KL",
            ],
            rows,
        )
    )


if __name__ == "__main__":
    main()
