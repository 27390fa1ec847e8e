"""Several processes over MPI against one: the same bits, and no process that waits forever."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import acctsne
from acctsne.cli import main
from acctsne.distributed import TSNE

PROGRAMS = Path(__file__).parent / "mpi_programs.py"
MPIEXEC = Path(sys.prefix) / "bin" / "mpiexec"
FLAGS = ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]

# Nothing here takes so long unless processes wait for each other.
HANGS = 240


def mpiexec(
    processes: int, *command: str, cwd: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(MPIEXEC), *FLAGS, "-n", str(processes), *command],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )


def run_programs(processes: int, folder: Path, *names: str) -> subprocess.CompletedProcess[str]:
    """Start processes once for all of the programs."""
    return mpiexec(processes, sys.executable, str(PROGRAMS), *names, cwd=folder)


def process_of_rank(rank: int, launcher: int) -> int:
    """Find one of the processes that a launcher has started."""
    found = [launcher]
    for process in found:
        for task in Path(f"/proc/{process}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    for process in found[1:]:
        variables = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        if b"OMPI_COMM_WORLD_RANK=%d" % rank in variables:
            return process
    raise AssertionError(f"no rank {rank} among {found}")


def check_content(processes: int, folder: Path, *names: str) -> None:
    ended = run_programs(processes, folder, *names)
    assert ended.returncode == 0, ended.stderr
    for rank in range(processes):
        assert f"process {rank} is content" in ended.stdout


def test_the_example_runs(tmp_path: Path) -> None:
    # Not in this process, which would be one of MPI's from then on.
    program = (
        "import doctest, acctsne.distributed.estimator as module\n"
        "failed, attempted = doctest.testmod(module)\n"
        "assert attempted > 0 == failed"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=HANGS)


@pytest.mark.parametrize("processes", [2, 3])
def test_same_bits_as_one_process(processes: int, tmp_path: Path) -> None:
    check_content(processes, tmp_path, "same_bits", "exact_neighbors")


def test_each_reads_its_own_rows_of_a_file(tmp_path: Path) -> None:
    check_content(2, tmp_path, "files")


def test_an_error_of_one_is_an_error_of_all_but_ways_may_differ(tmp_path: Path) -> None:
    check_content(3, tmp_path, "own_ways", "errors")


def test_four_make_the_same_and_any_number_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    check_content(4, tmp_path, "same_bits", "exact_neighbors", "checkpoints")


def test_damaged_checkpoints_and_failing_processes(tmp_path: Path) -> None:
    check_content(2, tmp_path, "damaged_checkpoints")


def test_new_points_and_files(tmp_path: Path) -> None:
    check_content(3, tmp_path, "new_points")


def test_they_are_interrupted_together(tmp_path: Path) -> None:
    check_content(2, tmp_path, "interrupted")


def test_an_unforeseen_error_ends_all(tmp_path: Path) -> None:
    ended = run_programs(2, tmp_path, "unforeseen")
    assert ended.returncode != 0
    said = "acctsne: rank 1 of 2 failed, which ends all: MemoryError: A fit of 600 samples"
    assert ended.stderr.count("acctsne: rank") == 1
    assert said in ended.stderr


def test_not_fitted(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        TSNE().transform(np.ones((3, 2)))
    with pytest.raises(NotFittedError):
        TSNE().save(tmp_path / "map.npz")
    with pytest.raises(NotFittedError):
        TSNE().gather()


class TestCommandLine:
    def test_embed(self, tmp_path: Path) -> None:
        X = np.random.default_rng(0).normal(size=(5000, 6)).astype(np.float32)
        np.save(tmp_path / "data.npy", X)
        arguments = ["-o", "map.npy", "--map", "fit.npz", "--max-iter", "250"]
        arguments += ["--perplexity", "5", "--json"]
        ended = mpiexec(
            2, sys.executable, "-m", "acctsne", "embed", "data.npy", *arguments, cwd=tmp_path
        )
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout.count('"processes": 2') == 1
        assert ended.stderr.count("5000 samples, 6 features, 2 processes") == 1
        expected = acctsne.TSNE(max_iter=250, perplexity=5).fit_transform(X)
        assert np.array_equal(np.load(tmp_path / "map.npy"), expected)
        assert np.array_equal(acctsne.TSNE.load(tmp_path / "fit.npz").transform(X), expected)

    def test_a_killed_process_ends_all_and_one_goes_on(self, tmp_path: Path) -> None:
        X = np.random.default_rng(0).normal(size=(5000, 6)).astype(np.float32)
        np.save(tmp_path / "data.npy", X)
        command = [sys.executable, "-m", "acctsne", "embed", "data.npy", "-o", "map.npy"]
        command += ["--max-iter", "400", "--perplexity", "5", "--tol", "0", "--quiet"]
        kept = [*command, "--checkpoint", "fit", "--checkpoint-every", "20"]
        with subprocess.Popen(
            [str(MPIEXEC), *FLAGS, "-n", "2", *kept],
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        ) as running:
            while not list(tmp_path.glob("fit/manifest-*")):
                assert running.poll() is None
                time.sleep(0.001)
            os.kill(process_of_rank(1, running.pid), signal.SIGKILL)
            _, said = running.communicate(timeout=HANGS)
        assert running.returncode != 0
        assert "rank 1" in said
        assert "signal 9" in said
        assert not (tmp_path / "map.npy").exists()

        def run(*arguments: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                arguments, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=HANGS
            )

        refused = run(*kept)
        assert refused.returncode == 1
        assert "fit: exists, from a fit that did not end" in refused.stderr
        assert "--labels cannot be used with fit" in run(*kept, "--resume", "--labels", "y").stderr
        resumed = run(*kept, "--resume")
        assert resumed.returncode == 0, resumed.stderr
        assert not (tmp_path / "fit").exists()  # done with
        expected = acctsne.TSNE(max_iter=400, perplexity=5, tol=0).fit_transform(X)
        assert np.array_equal(np.load(tmp_path / "map.npy"), expected)

    def test_a_folder_and_one_process(self, tmp_path: Path) -> None:
        np.save(tmp_path / "data.npy", np.random.default_rng(0).normal(size=(100, 4)))
        (tmp_path / "fit").mkdir()
        embed = ["embed", "data.npy", "-o", "map.npy", "--perplexity", "5"]
        embed += ["--checkpoint", "fit", "--resume"]

        def said(*more: str, before: str = "") -> str:
            program = f"{before}\nfrom acctsne.cli import main; sys.exit(main({[*embed, *more]}))"
            ended = subprocess.run(
                [sys.executable, "-c", f"import sys; {program}"],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=False,
                timeout=HANGS,
            )
            assert ended.returncode == 1
            return ended.stderr

        found = said("--init", "spectral")
        assert "--init: fit is a folder, in which several processes keep a fit: init=" in found
        found = said(before="sys.modules['mpi4py'] = None")
        assert "--checkpoint: fit is a folder, in which several processes keep a fit" in found
        assert "copies" not in found

    def test_array_of_a_file(self, tmp_path: Path) -> None:
        X = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
        anndata.AnnData(np.zeros((300, 1)), obsm={"rows": X}).write_h5ad(tmp_path / "x.h5ad")
        embed = [sys.executable, "-m", "acctsne", "embed", "x.h5ad", "-o", "map.npy"]
        ended = mpiexec(2, *embed, "--key", "rows", "--perplexity", "5", cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        expected = acctsne.TSNE(perplexity=5).fit_transform(X)
        assert np.array_equal(np.load(tmp_path / "map.npy"), expected)
        ended = mpiexec(2, *embed, "--key", "lines", cwd=tmp_path)
        said = "acctsne: error: --key: x.h5ad: no 'lines' in obsm; there are rows"
        assert ended.stderr.count(said) == 1

    def test_one_message(self, tmp_path: Path) -> None:
        X = np.zeros((5000, 3))
        X[4999, 1] = np.inf  # a row of the second process
        np.save(tmp_path / "data.npy", X)
        embed = [sys.executable, "-m", "acctsne", "embed", "data.npy", "-o", "map.npy"]
        ended = mpiexec(2, *embed, cwd=tmp_path)
        assert ended.returncode != 0
        assert ended.stderr.count("acctsne: error: rank 1: Input X contains infinity") == 1
        assert "Traceback" not in ended.stderr
        assert not (tmp_path / "map.npy").exists()
        np.save(tmp_path / "start.npy", np.zeros((5001, 2)))
        ended = mpiexec(2, *embed, "--init", "start.npy", cwd=tmp_path)
        assert ended.returncode != 0
        assert ended.stderr.count("acctsne: error: --init: init has 5001 rows; expected 5000") == 1
        np.save(tmp_path / "start.npy", np.zeros((5000, 3)))
        ended = mpiexec(2, *embed, "--init", "start.npy", cwd=tmp_path)
        said = "acctsne: error: --init: init has shape (5000, 3); expected (5000, 2)"
        assert ended.stderr.count(said) == 1

    def test_one_usage_error(self, tmp_path: Path) -> None:
        np.save(tmp_path / "data.npy", np.zeros((20, 3)))
        embed = [sys.executable, "-m", "acctsne", "embed", "data.npy", "-o", "map.npy"]
        ended = mpiexec(2, *embed, "--labels", "y", cwd=tmp_path)
        assert ended.returncode == 2
        assert ended.stderr.count("error: --labels cannot be used by several processes") == 1
        # What is wrong for one process alone, it does not keep to itself.
        ended = mpiexec(1, *embed, ":", "-n", "1", *embed, "--init", "absent.npy", cwd=tmp_path)
        assert ended.returncode != 0
        assert ended.stderr.count("error: rank 1: argument --init: must be") == 1
        assert not (tmp_path / "map.npy").exists()

    @pytest.mark.parametrize("rank", [0, 1])
    @pytest.mark.parametrize(
        ("size_name", "rank_name"),
        [
            ("PMI_SIZE", "PMI_RANK"),
            ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
            ("SLURM_NTASKS", "SLURM_PROCID"),
        ],
    )
    def test_the_first_process_speaks(
        self,
        size_name: str,
        rank_name: str,
        rank: int,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setitem(sys.modules, "mpi4py", None)  # lest it be started here
        monkeypatch.setenv("SLURM_STEP_ID", "0")
        monkeypatch.setenv(size_name, "2")
        monkeypatch.setenv(rank_name, str(rank))

        def said(*arguments: str) -> tuple[int, str]:
            try:
                code: Any = main([*arguments])
            except SystemExit as ended:
                code = ended.code
            written = capsys.readouterr()
            return code, written.out + written.err

        first = rank == 0
        code, text = said("embed", "data.npy", "--perplexity", "many")
        assert code == 2
        assert ("error: argument --perplexity: must be" in text) == bool(text) == first
        code, text = said("info")
        assert code == 1
        assert ("info is for one process" in text) == bool(text) == first
        code, text = said("--version")
        assert code == 0
        assert bool(text) == first

    @pytest.mark.parametrize("step", ["_started", "_check_options"])
    def test_interrupted_before_the_fit(self, step: str, tmp_path: Path) -> None:
        np.save(tmp_path / "data.npy", np.zeros((20, 3)))
        program = f"""
import os, signal, sys
from acctsne.cli import main, together

def interrupted(options, then=together.{step}):
    if os.environ["OMPI_COMM_WORLD_RANK"] == "1":
        os.kill(os.getpid(), signal.SIGINT)
    return then(options)

together.{step} = interrupted
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main(["embed", "data.npy", "-o", "map.npy"]))
"""
        ended = mpiexec(2, sys.executable, "-c", program, cwd=tmp_path)
        assert ended.returncode != 0
        assert ended.stderr.count("acctsne: interrupted") == 1, ended.stderr
        assert "Traceback" not in ended.stderr

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["embed", "data.csv", "-o", "map.csv"], "need mpi4py"),
            (["plot", "map.npy", "-o", "map.png"], "plot is for one process"),
        ],
    )
    @pytest.mark.parametrize(
        "launcher",
        [
            {"PMI_SIZE": "4"},
            {"OMPI_COMM_WORLD_SIZE": "4"},
            {"SLURM_STEP_ID": "0", "SLURM_NTASKS": "4"},
        ],
        ids=lambda launcher: next(iter(launcher)),
    )
    def test_copies_that_know_nothing_of_each_other(
        self, arguments: list[str], said: str, launcher: dict[str, str], tmp_path: Path
    ) -> None:
        program = (
            "import sys; sys.modules['mpi4py'] = None\n"
            f"from acctsne.cli import main; sys.exit(main({arguments!r}))"
        )
        ended = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env={**os.environ, **launcher},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 1
        assert said in ended.stderr

    def test_a_batch_script_of_slurm_is_one_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from acctsne.runtime.launch import launched_processes

        monkeypatch.setenv("SLURM_NTASKS", "4")
        assert launched_processes() == 1
        monkeypatch.setenv("SLURM_STEP_ID", "4294967291")
        assert launched_processes() == 1
        monkeypatch.setenv("SLURM_STEP_ID", "0")
        assert launched_processes() == 4
