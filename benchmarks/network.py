"""The descent of two processes over a slow network: measured, and as the planner predicts it.

    python benchmarks/network.py --folder FOLDER --dataset synthetic:1000000x20 --mbit 0,1000,200

Two processes of one thread each send over TCP through a loopback device of their own, in a network
namespace in which `tc` limits it to so many megabits a second, 0 for no limit. They share it, so
that each can send half as many. Prediction is that of `acctsne.distributed.plan` for the same
iterations, with its constants, and once more with the seconds of work that the run without a limit
took, which leaves the network alone to be predicted. Needs mpi4py with Open MPI, Linux, root and
iproute2.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from acctsne.distributed import TSNE
from acctsne.distributed.plan import Job, descent, relabelling
from common import table
from datasets import NAMES_HELP
from processes import data_file, mpiexec, tell, told

PROCESSES = 2
# Over TCP, through the loopback device, which Open MPI leaves alone otherwise.
OVER_TCP = ["--mca", "pml", "ob1", "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo"]
UNLIMITED = 20000  # megabits a second that the model takes for no limit


def measure(path: Path, iterations: int) -> None:
    """Embed a file together with the other process, and print figures of this one."""
    tsne = TSNE(
        neighbors="approximate",
        n_jobs=1,
        random_state=0,
        callback=lambda *_: True,
        callback_every=iterations,
    )
    tsne.fit(path)
    figures = {
        "seconds": tsne.timings_["optimize"],
        "sent": tsne.timings_["optimize_bytes_sent"],
        "shape": list(tsne.gather().shape),
    }
    tell(figures)


def run(path: Path, iterations: int, mbit: int) -> list[dict[str, Any]]:
    """Run both processes behind a device of such a rate; return the figures of each."""
    program = [__file__, "--folder", ".", "--measure", str(path), "--iterations", str(iterations)]
    limit = f"tc qdisc add dev lo root tbf rate {mbit}mbit burst 512kb latency 200ms && "
    prepare = "ip link set lo up && " + (limit if mbit else "")
    fit = mpiexec(PROCESSES, *program, flags=OVER_TCP)
    return told(["unshare", "--net", "sh", "-c", prepare + 'exec "$@"', "sh", *fit])


def main() -> None:
    """Measure and predict."""
    parser = argparse.ArgumentParser(description="The descent over a slow network.")
    parser.add_argument("--folder", type=Path, required=True, help="where the data is written to")
    parser.add_argument("--dataset", default="synthetic:1000000x20", help=NAMES_HELP)
    parser.add_argument("--mbit", default="0,1000,200", help="megabits a second of the device")
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options.iterations)
        return
    path = data_file(options.dataset, options.folder)
    points, features = np.load(path, mmap_mode="r").shape
    rates = list(map(int, options.mbit.split(",")))
    figures = {mbit: run(path, options.iterations, mbit) for mbit in rates}
    alone = max(process["seconds"] for process in figures[rates[0]])
    rows = []
    for mbit, processes in figures.items():
        measured = max(process["seconds"] for process in processes)
        sent = max(process["sent"] for process in processes)
        each = (mbit or UNLIMITED) / PROCESSES
        job = Job(points, features, PROCESSES, 1, each / 1e3, iterations=options.iterations)
        # The first relabelling comes before the descent.
        whole = [relabelling(job, first=1), descent(job)]
        predicted = sum(stage.seconds(job) for stage in whole)
        network = alone + 8 * sum(stage.sent for stage in whole) / (each * 1e6)
        rows.append(
            [
                str(mbit or "none"),
                f"{sent / 1e6:.0f}",
                f"{sum(stage.sent for stage in whole) / 1e6:.0f}",
                f"{measured:.1f}",
                f"{predicted:.1f}",
                f"{predicted / measured - 1:+.0%}",
                f"{network / measured - 1:+.0%}" if mbit else "",
            ]
        )
    header = ["Mbit/s", "MB sent", "predicted", "s", "predicted", "off", "off, with its work"]
    print(f"{points} x {features}, {options.iterations} iterations, {PROCESSES} processes")
    print(table(header, rows))


if __name__ == "__main__":
    main()
