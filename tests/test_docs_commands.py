"""Every command line of the documentation is run, or as much of it as a test can afford."""

import os
import re
import runpy
import shlex
import struct
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import metadata
from pathlib import Path

import anndata
import numpy as np
import numpy.typing as npt
import pytest
import scipy.io
from sklearn.datasets import load_digits, load_iris

from acctsne import cli
from acctsne.cli.main import make_parser
from acctsne.interop import fitsne

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "benchmarks" / "README.md", *sorted(ROOT.glob("docs/*.md"))]
PAGE = ROOT / "docs" / "command-line.md"
BIN = Path(sys.executable).parent

SCRIPT = """
import sys
from sklearn.datasets import load_iris
from sklearn.manifold import TSNE
assert TSNE.__module__.startswith("acctsne"), TSNE
assert sys.argv[1:] == ["--input", "flowers.csv"]
TSNE(max_iter=250).fit(load_iris().data)
"""


def commands(page: Path) -> list[str]:
    text = page.read_text()
    blocks = re.findall(r"^```(\S*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for kind, block in blocks if kind in ("", "sh") for line in block.splitlines()]
    in_tables = re.findall(r"`(python benchmarks/[^`]+)`", text)
    return [line for line in (*lines, *in_tables) if line]


def make_files() -> None:
    """Make the files that the page speaks of, in the working folder."""
    iris = load_iris(as_frame=True)
    flowers = iris.data.rename(columns=lambda name: name.removesuffix(" (cm)"))
    flowers["species"] = iris.target_names[iris.target]
    flowers.to_csv("flowers.csv", index=False)
    X, y = load_digits(return_X_y=True)
    np.savez("digits.npz", X=X[:200], y=y[:200])
    np.save("digits.npy", X[:200])
    np.save("new_digits.npy", X[200:220])
    Path("digits_labels.txt").write_text("".join(f"{label}\n" for label in y[:200]))
    cells = anndata.AnnData(X[:200], obsm={"X_pca": X[:200, :10]})
    cells.obs["cell_type"] = y[:200].astype(str)
    cells.write_h5ad("cells.h5ad")
    scipy.io.mmwrite("counts.mtx", X[:200])
    Path("analysis.py").write_text(SCRIPT)
    write_fitsne_input(Path("data.dat"), X[:200])


def write_fitsne_input(path: Path, X: npt.NDArray[np.float64]) -> None:
    settings = {
        "n": len(X),
        "d": X.shape[1],
        "theta": 0.5,
        "perplexity": 30,
        "no_dims": 2,
        "max_iter": 250,
        "stop_early_exag_iter": 100,
        "momentum": 0.8,
        "learning_rate": 200,
        "nbody_algo": 2,
        "early_exag_coeff": 12,
        "start_late_exag_iter": -1,
        "df": 1,
    }

    def packed(layout: dict[str, str]) -> bytes:
        form = "=" + "".join(layout.values())
        return struct.pack(form, *(settings.get(name, 0) for name in layout))

    parts = [packed(fitsne.SIZES), packed(fitsne.SETTINGS), X.tobytes(), packed(fitsne.ENDING)]
    path.write_bytes(b"".join(parts))


def run_module(path: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> object:
    """Run a program of the repository in this process; returns what it exits with."""
    program = ROOT / path
    monkeypatch.syspath_prepend(program if program.is_dir() else program.parent)
    monkeypatch.setattr(sys, "argv", [path, *arguments])
    try:
        runpy.run_path(str(program), run_name="__main__")
    except SystemExit as stop:
        return stop.code
    return 0


# What makes benchmarks small that make their own data.
SMALL = {
    "benchmarks/force_error.py": ["--points", "300"],
    "benchmarks/methods.py": ["--sizes", "300"],
    "benchmarks/paper.py": ["--plan"],
    "benchmarks/restraint.py": ["--points", "150"],
    "benchmarks/frame.py": ["--datasets", "digits", "--rounds", "1"],
    "benchmarks/sparse_rows.py": ["--samples", "300", "--features", "90", "--alone"],
    "benchmarks/overhead.py": ["--sizes", "100", "--rounds", "1", "--fresh", "1"],
    "benchmarks/memory.py": ["--samples", "300", "--features", "40", "--folder", "."],
}


def run_benchmark(words: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """Run a benchmark up to its data: by then it has understood its arguments."""
    if words[1] == "benchmarks/avx2.py":  # which runs another in a process of its own
        command = [sys.executable, *words[1:], "--dataset", "missing.npy"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        return 0 if "missing.npy" in done.stderr else 1
    if words[1] in SMALL:
        return 0 if run_module(words[1], [*words[2:], *SMALL[words[1]]], monkeypatch) == 0 else 1
    code = run_module(words[1], [*words[2:], "--dataset", "missing.npy"], monkeypatch)
    return 0 if "missing.npy" in str(code) else 1


def run_figures(words: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """Make one of the figures, in the working folder."""
    monkeypatch.syspath_prepend(ROOT / words[1])
    import drawing

    monkeypatch.setattr(drawing, "IMAGES", Path.cwd())
    code = run_module(words[1], [*words[2:], "descent"], monkeypatch)
    return 0 if code == 0 and Path("descent.png").stat().st_size > 0 else 1


def check_extras(words: list[str], _: pytest.MonkeyPatch) -> int:
    """Check that what is to be installed exists, without installing it."""
    ours = [word for word in words if word.startswith((".", "acctsne"))]
    wanted = {
        name for word in ours for part in re.findall(r"\[(.+)\]", word) for name in part.split(",")
    }
    return 0 if wanted <= set(metadata("acctsne").get_all("Provides-Extra") or ()) else 1


def run_together(words: list[str], _: pytest.MonkeyPatch) -> int:
    """Run processes, more than there are cores, whoever the user is."""
    flags = ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
    command = [str(BIN / words[0]), *flags, *words[1:]]
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    return subprocess.run(command, env=environment, check=False).returncode


# Commands that would install, take long or run these tests again: how much of them is run.
Partly = Callable[[list[str], pytest.MonkeyPatch], int]
PARTLY: dict[str, Partly] = {
    r"pip install ": check_extras,
    r"python benchmarks/": run_benchmark,
    r"mpiexec ": run_together,
    r"python docs/figures": run_figures,
}
# Likewise, by an argument at their end.
PARTLY_BY_ARGUMENT = {r"make ": "--dry-run", r".*-m pytest ": "--collect-only --quiet"}


def run(line: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run a line in this process if it is one of our programs, in a shell otherwise."""
    programs: dict[str, Callable[[list[str]], int]] = {
        "acctsne": cli.main,
        "fast_tsne": fitsne.main,
    }
    words = shlex.split(line, comments=True)
    if words[0] in programs and "|" not in words:
        return programs[words[0]](words[1:])
    for pattern, partly in PARTLY.items():
        if re.match(pattern, line):
            return partly(words, monkeypatch)
    folder = Path.cwd()
    for pattern, argument in PARTLY_BY_ARGUMENT.items():
        if re.match(pattern, line):
            line = f"{line.split('#')[0]} {argument}"
            folder = ROOT
    environment = {"PATH": f"{BIN}:/usr/bin:/bin"}
    line = line.replace(".venv/bin/python", sys.executable)
    return subprocess.run(line, shell=True, cwd=folder, env=environment, check=False).returncode


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if commands(page)],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_commands(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # In order and in one folder, as a reader would type them.
    monkeypatch.chdir(tmp_path)
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    make_files()
    lines = commands(page)
    for line in lines:
        assert run(line, monkeypatch) == 0, line
    if "acctsne view map.npz" in lines:
        assert opened == [(tmp_path / "map.html").as_uri()]
    for name in re.findall(r"(?:-o|--plot|--html|--movie|--map) (\w[\w.]*)", "\n".join(lines)):
        assert Path(name).stat().st_size > 0, name


def test_every_command_is_on_the_page() -> None:
    shown = {shlex.split(line)[1] for line in commands(PAGE) if line.startswith("acctsne ")}
    subcommands = next(action.choices for action in make_parser()._actions if action.choices)
    assert subcommands is not None
    assert shown == set(subcommands)
