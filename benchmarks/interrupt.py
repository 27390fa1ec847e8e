"""How soon Ctrl-C ends a fit, in each stage: 0.2 s is promised."""

import subprocess
import sys

from tqdm import tqdm

from common import table

CHILD = """
import os, signal, threading, time
import numpy as np
from acctsne import TSNE, _core

def send():
    time.sleep({delay})
    global sent
    sent = time.perf_counter()
    os.kill(os.getpid(), signal.SIGINT)

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
    "perplexity": (12_000, 3, "method='exact', init='random', n_jobs=1", 4.0),
    "descent, all pairs": (4000, 5, "method='exact', tol=0, max_iter=100_000", 3.0),
    "descent, tree": (20_000, 5, "method='barnes_hut', tol=0, max_iter=100_000", 3.0),
    "descent, grid": (50_000, 5, "method='fft', tol=0, max_iter=100_000", 4.0),
}
ROUNDS = 5


def main() -> int:
    rows = []
    for stage, (n, features, parameters, delay) in tqdm(STAGES.items(), unit="stage"):
        code = CHILD.format(n=n, features=features, parameters=parameters, delay=delay)
        seconds = []
        for _ in range(ROUNDS):
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            seconds += [float(done.stdout)] if done.stdout else []
        shown = f"{max(seconds):.3f}" if seconds else "the fit was over before"
        rows.append([stage, str(len(seconds)), shown])
    print(table(["stage", "rounds", "longest, s"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
