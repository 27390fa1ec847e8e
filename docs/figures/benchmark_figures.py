"""Figures of performance.md: what a benchmark measures, drawn by the benchmark itself."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from drawing import IMAGES

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"


def convergence(data: Path) -> None:
    """Measure how fast packages bring KL divergence down; the machine should be idle."""
    with tempfile.TemporaryDirectory() as folder:
        program = [sys.executable, str(BENCHMARKS / "convergence.py")]
        options = ["--dataset", "fashion_mnist", "--limit", "20000"]
        options += ["--data", str(data), "--output", folder]
        subprocess.run([*program, *options], check=True)
        shutil.copy(Path(folder) / "convergence.png", IMAGES)


FIGURES: list[Callable[..., None]] = []
FIGURES_OF_DATA = [convergence]
