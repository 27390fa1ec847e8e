"""Memory of the neighbour stage beyond the data, which stays in a file.

    python benchmarks/memory.py --samples 500000 --features 768 --folder FOLDER

Writes synthetic float16 data of that size to FOLDER, finds approximate neighbours of it, memory-
mapped, in a process of its own, and reports the largest anonymous memory of that process: what it
allocated, without the pages of the file, which the system takes back when it needs them.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Thread

import numpy as np

from acctsne import nearest_neighbors

BLOCK = 50_000


def write_data(path: Path, n: int, features: int) -> None:
    """Write clusters on a few axes and noise, block by block."""
    rng = np.random.default_rng(0)
    axes = rng.normal(size=(30, features)).astype(np.float32)
    centers = 3 * rng.normal(size=(200, 30)).astype(np.float32)
    out = np.lib.format.open_memmap(path, "w+", np.float16, (n, features))
    for start in range(0, n, BLOCK):
        count = min(BLOCK, n - start)
        near = centers[rng.integers(200, size=count)]
        near = near + rng.standard_normal((count, 30), dtype=np.float32)
        noise = rng.standard_normal((count, features), dtype=np.float32)
        out[start : start + count] = near @ axes + noise
    out.flush()


def anonymous_bytes() -> int:
    """Return the memory that is this process's own, as Linux counts it."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["RssAnon"].split()[0]) * 1024


def find(path: Path, k: int) -> None:
    """Find neighbours and print what it took."""
    X = np.load(path, mmap_mode="r")
    largest = anonymous_bytes()

    def watch() -> None:
        nonlocal largest
        while not done.is_set():
            largest = max(largest, anonymous_bytes())
            done.wait(0.1)

    done = Event()
    watcher = Thread(target=watch)
    watcher.start()
    start = time.perf_counter()
    found = nearest_neighbors(X, k, mode="approximate", random_state=0)
    seconds = time.perf_counter() - start
    done.set()
    watcher.join()
    figures = {"seconds": seconds, "recall": found.recall, "anonymous_bytes": largest}
    print(json.dumps(figures))


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description="Memory of the neighbour stage.")
    parser.add_argument("--samples", type=int, default=500_000)
    parser.add_argument("--features", type=int, default=768)
    parser.add_argument("--neighbors", type=int, default=91)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--find", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.find:
        find(options.find, options.neighbors)
        return
    path = options.folder / f"synthetic-{options.samples}x{options.features}.npy"
    if not path.exists():
        write_data(path, options.samples, options.features)
    command = [sys.executable, __file__, "--folder", str(options.folder), "--find", str(path)]
    command += ["--neighbors", str(options.neighbors)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures = json.loads(done.stdout)
    n, k = options.samples, options.neighbors
    print(f"{n} x {options.features} float16, {path.stat().st_size / 2**30:.2f} GiB in a file")
    print(f"{figures['seconds']:.1f} s, recall {figures['recall']:.4f}")
    own = figures["anonymous_bytes"]
    print(f"{own / 2**30:.2f} GiB allocated: {own / n:.0f} bytes a sample, {8 * k} of them results")


if __name__ == "__main__":
    main()
