"""From R: docs/acctsne.R, and `fast_tsne` as Seurat and other wrappers written in R drive it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from acctsne import TSNE, quality

Array = npt.NDArray[Any]
ROOT = Path(__file__).parent.parent
# Where the programs are: those of the environment that the tests run in.
PATH = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}


@pytest.fixture(name="rscript", scope="module")
def _rscript() -> str:
    found = shutil.which("Rscript")
    if found is None:
        missing = "Rscript is not installed"
        if os.environ.get("ACCTSNE_R") == "required":
            pytest.fail(missing)
        pytest.skip(missing)  # and conftest.py says so at the end of the run
    return found


def run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **PATH}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


SCRIPT = """
source("{source}")
X <- as.matrix(read.csv("data.csv", row.names = 1))
Y <- acctsne(X, max_iter = 250, tol = 0, seed = 0, perplexity = 12.5)
write.csv(format(Y, digits = 17), "map.csv")
cat(attr(Y, "kl"), "\\n")
"""


def test_the_function_in_r(rscript: str, some_digits: tuple[Array, Array], tmp_path: Path) -> None:
    X = some_digits[0]
    names = [f"cell {i}" for i in range(len(X))]
    rows = [",".join([name, *map(str, row)]) for name, row in zip(names, X, strict=True)]
    header = ",".join(["", *(f"p{i}" for i in range(X.shape[1]))])
    (tmp_path / "data.csv").write_text("\n".join([header, *rows, ""]))
    script = SCRIPT.format(source=ROOT / "docs" / "acctsne.R")
    done = run(rscript, "-e", script, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    tsne = TSNE(max_iter=250, tol=0, random_state=0, perplexity=12.5).fit(X)
    lines = (tmp_path / "map.csv").read_text().replace('"', "").splitlines()
    assert lines[0] == ",tSNE_1,tSNE_2"
    assert [line.split(",")[0] for line in lines[1:]] == names
    Y = np.array([[float(cell) for cell in line.split(",")[1:]] for line in lines[1:]])
    np.testing.assert_array_equal(Y.astype(np.float32), tsne.embedding_)
    assert float(done.stdout) == pytest.approx(tsne.kl_divergence_, rel=1e-5)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("acctsne(matrix(0, 20, 3), perplexity = 40)", "perplexity (40) must be less than"),
        ("acctsne(matrix(NA_real_, 20, 3))", "missing value"),
        ("acctsne(iris)", "X must be a numeric matrix"),
        ("acctsne(matrix(0, 20, 3), 5)", "parameters of acctsne need names"),
        ("acctsne(matrix(0, 20, 3), program = '')", "not on the path"),
    ],
)
def test_errors_in_r(rscript: str, tmp_path: Path, call: str, said: str) -> None:
    done = run(rscript, "-e", f'source("{ROOT}/docs/acctsne.R"); {call}', folder=tmp_path)
    assert done.returncode != 0
    assert said in done.stderr


@pytest.mark.parametrize(("generation", "version"), [("early", "1.1.0"), ("late", "1.2.1")])
def test_fast_tsne_as_seurat_runs_it(
    rscript: str,
    some_digits: tuple[Array, Array],
    tmp_path: Path,
    generation: str,
    version: str,
) -> None:
    X, y = some_digits
    np.savetxt(tmp_path / "data.csv", X, delimiter=",")
    script = str(ROOT / "tests" / "run_fast_tsne.R")
    done = run(rscript, script, "data.csv", generation, "map.csv", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    spoken, cost = done.stdout.splitlines()[-1].split()
    assert spoken == version
    Y = np.loadtxt(tmp_path / "map.csv", delimiter=",")
    assert Y.shape == (len(X), 2)
    # Of these points and in this order, by a referee that knows nothing of the protocol.
    assert float(cost) == pytest.approx(quality.exact_kl(X, Y, 30), rel=0.02)
    assert quality.label_agreement(Y, y) > 0.9
