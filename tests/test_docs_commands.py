"""Every command line of the documentation is run."""

import re
import shlex
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anndata
import numpy as np
import numpy.typing as npt
import pytest
import scipy.io
from sklearn.datasets import load_digits, load_iris

from acctsne import cli, fitsne

PAGE = Path(__file__).parent.parent / "docs" / "command-line.md"
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
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line]


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


def run(line: str) -> int:
    """Run a line in this process if it is one of our programs, in a shell if it needs one."""
    programs: dict[str, Callable[[list[str]], int]] = {
        "acctsne": cli.main,
        "fast_tsne": fitsne.main,
    }
    words = shlex.split(line)
    if words[0] in programs and "|" not in words:
        return programs[words[0]](words[1:])
    environment = {"PATH": f"{BIN}:/usr/bin:/bin"}
    return subprocess.run(line, shell=True, env=environment, check=False).returncode


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # In order and in one folder, as a reader would type them.
    monkeypatch.chdir(tmp_path)
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    make_files()
    lines = commands(PAGE)
    assert len(lines) > 15
    for line in lines:
        assert run(line) == 0, line
    assert opened == [(tmp_path / "map.html").as_uri()]
    for name in re.findall(r"(?:-o|--plot|--html|--movie|--map) (\w[\w.]*)", "\n".join(lines)):
        assert Path(name).stat().st_size > 0, name


def test_every_command_is_on_the_page() -> None:
    shown = {shlex.split(line)[1] for line in commands(PAGE) if line.startswith("acctsne ")}
    subcommands = next(action.choices for action in cli.make_parser()._actions if action.choices)
    assert subcommands is not None
    assert shown == set(subcommands)
