"""What takes minutes to see: `make soak`.

A checkpointed fit that is killed at random moments, again and again, ends at the same bits; and
hundreds of fits leave no memory, files or threads behind.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from tqdm import tqdm

from acctsne import TSNE
from test_distributed import FLAGS, MPIEXEC, process_of_rank

KILLS = 30
KILLS_TOGETHER = 12
FITS = 300
# What the allocator may keep of one fit, and the interpreter gather.
SPARE_BYTES = 8 << 20


def killed(folder: Path) -> str:
    """Kill a command until it was killed often enough, then let it end."""
    np.save(folder / "data.npy", load_digits().data[:600])
    command = [sys.executable, "-m", "acctsne", "embed", "data.npy", "-o", "map.npy", "--quiet"]
    command += ["--tol", "0", "--max-iter", "3000", "--min-grad-norm", "0", "--threads", "2"]
    command += ["--n-iter-without-progress", "3000"]
    whole = time.monotonic()
    subprocess.run(command, cwd=folder, check=True)
    whole = time.monotonic() - whole
    expected = (folder / "map.npy").read_bytes()
    (folder / "map.npy").unlink()
    chance = random.Random(0)
    resumable = [*command, "--checkpoint", "fit.npz", "--checkpoint-every", "40", "--resume"]
    kills = 0
    for _ in tqdm(range(KILLS), unit="kill"):
        with subprocess.Popen(resumable, cwd=folder) as running:
            time.sleep(chance.uniform(0.2, 1.0) * whole)
            running.send_signal(signal.SIGKILL)
        kills += running.returncode == -signal.SIGKILL
        if (folder / "map.npy").exists():  # it was done before
            if (folder / "map.npy").read_bytes() != expected:
                sys.exit("a killed fit ended at other bits")
            (folder / "map.npy").unlink()
    subprocess.run(resumable, cwd=folder, check=True)
    if (folder / "map.npy").read_bytes() != expected:
        sys.exit("a killed fit ended at other bits")
    return f"killed {kills} times, the same bits"


def killed_together(folder: Path) -> str:
    """Kill one of several processes, let another number of them go on, again and again."""
    np.save(folder / "data.npy", np.random.default_rng(0).normal(size=(9000, 6)))
    command = [sys.executable, "-m", "acctsne", "embed", "data.npy", "-o", "map.npy", "--quiet"]
    command += ["--perplexity", "5", "--tol", "0", "--max-iter", "600", "--threads", "1"]
    subprocess.run(command, cwd=folder, check=True)
    expected = (folder / "map.npy").read_bytes()
    whole = time.monotonic()
    subprocess.run([str(MPIEXEC), *FLAGS, "-n", "2", *command], cwd=folder, check=True)
    whole = time.monotonic() - whole
    if (folder / "map.npy").read_bytes() != expected:
        sys.exit("a fit of several processes ended at other bits")
    (folder / "map.npy").unlink()
    chance = random.Random(0)
    resumable = [*command, "--checkpoint", "fit", "--checkpoint-every", "20", "--resume"]
    kills = 0
    for _ in tqdm(range(KILLS_TOGETHER), unit="kill"):
        processes = chance.randint(2, 4)
        launched = [str(MPIEXEC), *FLAGS, "-n", str(processes), *resumable]
        with subprocess.Popen(launched, cwd=folder, stderr=subprocess.DEVNULL) as running:
            time.sleep(chance.uniform(0.3, 1.0) * whole)
            if running.poll() is None:
                os.kill(process_of_rank(chance.randrange(processes), running.pid), signal.SIGKILL)
        kills += running.returncode != 0
        if running.returncode == 0:
            if (folder / "map.npy").read_bytes() != expected:
                sys.exit("a killed fit of several processes ended at other bits")
            (folder / "map.npy").unlink()
    # By several, as one process alone goes on from a folder, but does not begin one.
    subprocess.run([str(MPIEXEC), *FLAGS, "-n", "2", *resumable], cwd=folder, check=True)
    if (folder / "map.npy").read_bytes() != expected:
        sys.exit("a killed fit of several processes ended at other bits")
    return f"one of several killed {kills} times, the same bits"


def left_behind() -> str:
    """Fit again and again; see what grows."""
    X = load_digits().data[:500]

    def resources() -> tuple[int, int, int]:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return (
            pages * os.sysconf("SC_PAGE_SIZE"),
            len(os.listdir("/proc/self/fd")),
            len(os.listdir("/proc/self/task")),
        )

    for method in ("barnes_hut", "fft", "exact") * 5:
        TSNE(perplexity=10, max_iter=250, method=method).fit(X)
    before = resources()
    for fit in tqdm(range(FITS), unit="fit"):
        method = ("barnes_hut", "fft", "exact")[fit % 3]
        tsne = TSNE(perplexity=10, max_iter=250, method=method, random_state=fit).fit(X)
        tsne.transform(X[:20] + 0.5)
    after = resources()
    if after[0] > before[0] + SPARE_BYTES or after[1:] != before[1:]:
        sys.exit(f"bytes, files, threads: {before} before {FITS} fits, {after} after")
    return f"{FITS} fits: {(after[0] - before[0]) / 1e6:+.1f} MB, no file and no thread more"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        print(killed(Path(name)))
    with tempfile.TemporaryDirectory() as name:
        print(killed_together(Path(name)))
    print(left_behind())
