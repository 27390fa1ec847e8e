"""Programs written for scikit-learn run on acctsne, unchanged."""

import subprocess
import sys
from pathlib import Path

import pytest
import sklearn.manifold

import acctsne
from acctsne.__main__ import main

# A pool of processes finds the program's functions by their names.
PROGRAM = """
import pickle, sys
from sklearn.manifold import TSNE
def own(): pass
print(TSNE.__module__, sys.argv[1:], __name__, pickle.loads(pickle.dumps(own)) is own)
"""


def test_swap_and_back() -> None:
    original = sklearn.manifold.TSNE
    assert original is not acctsne.TSNE
    for _ in range(2):
        acctsne.patch_sklearn()
    assert sklearn.manifold.TSNE is acctsne.TSNE
    assert sklearn.manifold._t_sne.TSNE is acctsne.TSNE
    for _ in range(2):
        acctsne.unpatch_sklearn()
    assert sklearn.manifold.TSNE is original
    assert sklearn.manifold._t_sne.TSNE is original


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "acctsne", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_programs(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("value = 7\n")
    (tmp_path / "program.py").write_text("import beside\n" + PROGRAM)
    expected = "acctsne.estimator ['a', '-b'] __main__ True\n"
    for how in (["program.py"], ["-m", "program"], ["-c", PROGRAM]):
        done = run(tmp_path, *how, "a", "-b")
        assert (done.stdout, done.stderr) == (expected, ""), how


def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "fails.py").write_text("import sys; sys.exit(3)\n")
    assert run(tmp_path, "fails.py").returncode == 3
    assert main([str(tmp_path / "absent.py")]) == 2
    assert "absent.py: no such file" in capsys.readouterr().err
    # Anything else is a command.
    assert main(["info"]) == 0
    assert "simd_level" in capsys.readouterr().out
