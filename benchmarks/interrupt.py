"""How soon Ctrl-C ends a fit: in each native stage, and wherever Python and numpy are at work.

The first table is of real interrupts, from the signal to the exception. The second is of whole fits
during which a timer rings every 10 ms: Ctrl-C would have waited at that place for as long as the
timer's handler did, at most. 0.2 s is promised of native code, 0.3 s aimed at elsewhere.
"""

import argparse
import json
import subprocess
import sys

from tqdm import tqdm

from common import table

INTERRUPTED = """
import os, signal, threading, time
import numpy as np
from acctsne import TSNE

def send():
    time.sleep({delay})
    global sent
    sent = time.perf_counter()
    os.kill(os.getpid(), signal.SIGINT)

# A shell has programs that it starts in the background ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
X = np.random.default_rng(0).normal(size=({n}, {features}))
threading.Thread(target=send, daemon=True).start()
try:
    TSNE({parameters}).fit(X)
except KeyboardInterrupt:
    print(time.perf_counter() - sent)
"""

# Samples, features, parameters, and after how many seconds the signal comes.
STAGES = {
    "neighbours, exact": (60_000, 400, "init='random'", 1.5),
    "neighbours, approximate": (200_000, 50, "neighbors='approximate'", 3.0),
    "neighbours, manhattan": (20_000, 60, "metric='manhattan', init='random'", 3.0),
    "neighbours, canberra, a tree": (20_000, 8, "metric='canberra', init='random'", 2.0),
    "neighbours, a function": (
        2000,
        5,
        "metric=lambda a, b: abs(a - b).max(), init='random'",
        2.0,
    ),
    "distances, all pairs": (9000, 60, "metric='braycurtis', method='exact', init='random'", 3.0),
    "perplexity": (12_000, 3, "method='exact', init='random', n_jobs=1", 4.0),
    "descent, all pairs": (4000, 5, "method='exact', tol=0, max_iter=100_000", 3.0),
    "descent, tree": (20_000, 5, "method='barnes_hut', tol=0, max_iter=100_000", 3.0),
    "descent, grid": (50_000, 5, "method='fft', tol=0, max_iter=100_000", 4.0),
}

WATCHED = """
import json, signal, time
import numpy as np
from scipy.sparse import random as random_matrix
from acctsne import TSNE

X = {data}
waits = {{}}

def ring(signum, frame):
    global last
    now = time.perf_counter()
    while frame is not None and "acctsne" not in frame.f_code.co_filename:
        frame = frame.f_back
    place = "elsewhere"
    if frame is not None:
        file = frame.f_code.co_filename.rpartition("acctsne/")[2]
        place = f"{{file}}, {{frame.f_code.co_name}}"
    waits[place] = max(waits.get(place, 0), now - last)
    last = time.perf_counter()

signal.signal(signal.SIGALRM, ring)
last = time.perf_counter()
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
TSNE(max_iter=250, callback=lambda *progress: True, callback_every=20, {parameters}).fit(X)
signal.setitimer(signal.ITIMER_REAL, 0)
print(json.dumps(waits))
"""

DENSE = "np.random.default_rng(0).normal(size=({}, {})).astype(np.float32)"
SPARSE = "random_matrix({}, {}, density={}, format='csr', random_state=0)"
FITS = {
    "200000 x 200": (DENSE.format(200_000, 200), "neighbors='approximate'"),
    "70000 x 784": (DENSE.format(70_000, 784), ""),
    "70000 x 784, float64, 1 thread": (
        DENSE.format(70_000, 784) + ".astype(float)",
        "n_jobs=1, neighbors='approximate'",
    ),
    "20000 x 20000, sparse": (SPARSE.format(20_000, 20_000, 0.002), "init='pca'"),
    "8000 x 50, cosine, all pairs": (DENSE.format(8000, 50), "metric='cosine', method='exact'"),
    "50000 x 20, spectral": (DENSE.format(50_000, 20), "init='spectral'"),
    "50000 x 20, multilevel": (DENSE.format(50_000, 20), "init='multilevel'"),
}


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="interrupts of each stage")
    args = parser.parse_args()
    rows = []
    for stage, (n, features, parameters, delay) in tqdm(STAGES.items(), unit="stage"):
        code = INTERRUPTED.format(n=n, features=features, parameters=parameters, delay=delay)
        seconds = [float(told) for told in (run(code) for _ in range(args.rounds)) if told]
        shown = f"{max(seconds):.3f}" if seconds else "the fit was over before"
        rows.append([stage, str(len(seconds)), shown])
    watched = []
    for name, (data, parameters) in tqdm(FITS.items(), unit="fit"):
        waits = json.loads(run(WATCHED.format(data=data, parameters=parameters)) or "{}")
        longest = sorted(waits, key=waits.__getitem__, reverse=True)[:3]
        watched += [[name, place, f"{waits[place]:.3f}"] for place in longest]
    print(table(["stage", "rounds", "longest, s"], rows))
    print()
    print(table(["fit", "place", "longest wait, s"], watched))
    return 0


if __name__ == "__main__":
    sys.exit(main())
