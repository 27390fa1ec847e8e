"""Two builds of acctsne against each other, each in an environment of its own, fit by fit in turn.

    python benchmarks/builds.py .venv/bin/python build/wheel-test/bin/python --dataset digits

Whatever else the machine does falls on both. The first fit of each only warms up. Seconds are
medians; a ratio below 1 says that the second build is faster.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from common import load_or_exit, make_parser, median, positive, table

WORKER = """
import json, sys
import numpy as np
from acctsne import TSNE, build_info
X = np.load(sys.argv[1])
threads = int(sys.argv[2]) or None
print(build_info()["compiler"], flush=True)
for _ in sys.stdin:
    timings = TSNE(random_state=0, n_jobs=threads).fit(X).timings_
    print(json.dumps(timings), flush=True)
"""


class Build:
    """A process that fits whenever it is told to."""

    def __init__(self, python: str, data: Path, threads: int | None) -> None:
        command = [python, "-c", WORKER, str(data), str(threads or 0)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.compiler = self._answer().strip()
        self.timings: list[dict[str, float]] = []

    def fit(self) -> None:
        to: IO[str] | None = self._process.stdin
        assert to is not None
        to.write("fit\n")
        to.flush()
        self.timings.append(json.loads(self._answer()))

    def seconds(self, step: str) -> float:
        return median([timings[step] for timings in self.timings[1:]])

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"{self._process.args!r} ended")
        return line


def main() -> int:
    parser = make_parser(__doc__ or "", dataset="digits")
    parser.add_argument("pythons", nargs="*", help="two interpreters that have acctsne")
    parser.add_argument("--repeats", type=positive, default=15, help="fits of each build")
    args = parser.parse_args()
    dataset = load_or_exit(args)
    if len(args.pythons) != 2:
        parser.error("name two interpreters")
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "X.npy")
        np.save(data, dataset.X)
        builds = [Build(python, data, args.threads) for python in args.pythons]
        for _ in range(args.repeats + 1):
            for build in builds:
                build.fit()
    first, second = builds
    steps = [name for name in first.timings[0] if not name.startswith(("recall", "iterations"))]
    rows: list[list[Any]] = [
        [
            step,
            f"{first.seconds(step):.4f}",
            f"{second.seconds(step):.4f}",
            f"{second.seconds(step) / max(first.seconds(step), 1e-9):.3f}",
        ]
        for step in steps
    ]
    print(table(["step", first.compiler, second.compiler, "ratio"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
