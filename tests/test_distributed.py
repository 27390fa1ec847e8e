"""Several processes over MPI against one: the same bits, and no process that waits forever."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import acctsne
from acctsne.cli import main
from acctsne.distributed import TSNE

PROGRAMS = Path(__file__).parent / "mpi_programs.py"
MPIEXEC = Path(sys.prefix) / "bin" / "mpiexec"

# Nothing here takes so long unless processes wait for each other; then the launcher ends them.
HANGS = 240
FLAGS = ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--timeout", str(HANGS)]

# Looking for faster networks than memory takes each launch a second; processes that wait leave the
# cores to those of other tests.
MEMORY_ONLY = {
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "self,sm",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}

# By which process of a rank is found, and what each has read.
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/io").exists(), reason="the system has no /proc"
)


def mpiexec(
    processes: int, *command: str, cwd: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(MPIEXEC), *FLAGS, "-n", str(processes), *command],
        cwd=cwd,
        env={**os.environ, **MEMORY_ONLY, **environment},
        capture_output=True,
        text=True,
        timeout=HANGS + 60,
        check=False,
    )


def run_programs(processes: int, folder: Path, *names: str) -> subprocess.CompletedProcess[str]:
    """Start processes once for all of the programs."""
    return mpiexec(processes, sys.executable, str(PROGRAMS), *names, cwd=folder)


def check_content(processes: int, folder: Path, *names: str, at_last: str = "") -> str:
    """Run programs, and say of each that fails what it said.

    One that fails ends the processes, so that they are started again for those after it. Return
    what is said while a program runs at last that has to end them.
    """
    failed = {}
    left = list(names)
    while True:
        ended = run_programs(processes, folder, *left, *[at_last] * bool(at_last))
        content = [name for name in left if f"all are content with {name}\n" in ended.stdout]
        assert content == left[: len(content)]
        left = left[len(content) :]
        if not left:
            break
        failed[left.pop(0)] = ended.stderr
    if (ended.returncode == 0) == bool(at_last):
        failed[at_last or "the end"] = ended.stderr
    said = "".join(
        f"\n{name} failed with {processes} processes:\n{failed[name]}" for name in failed
    )
    assert not failed, said
    return ended.stderr


def alone(folder: Path, *command_lines: list[str]) -> list[tuple[int, str]]:
    """Run command lines in one process without a launcher; return exit codes and what is said.

    Not in this process, which would be one of MPI's from then on.
    """
    program = """
import contextlib, io, json, sys
from acctsne.cli import main
for line in json.loads(sys.argv[1]):
    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            code = main(line)
        except SystemExit as ended:
            code = ended.code
    print(json.dumps((code, said.getvalue())))
"""
    ended = subprocess.run(
        [sys.executable, "-c", program, json.dumps(command_lines)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS,
        env={**os.environ, **MEMORY_ONLY},
    )
    assert ended.returncode == 0, ended.stderr
    return [(code, said) for code, said in map(json.loads, ended.stdout.splitlines())]


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


def runs(process: int) -> bool:
    """Say whether a process is there, and more than an exit code that nobody has asked for."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] not in "ZX"


def test_the_example_runs(tmp_path: Path) -> None:
    # Not in this process, which would be one of MPI's from then on.
    program = (
        "import doctest, acctsne.distributed.estimator as module\n"
        "failed, attempted = doctest.testmod(module)\n"
        "assert attempted > 0 == failed"
    )
    subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        check=True,
        timeout=HANGS,
        env={**os.environ, **MEMORY_ONLY},
    )


@needs_proc
def test_each_process_reads_its_own_rows(tmp_path: Path) -> None:
    check_content(2, tmp_path, "files")


def test_two_processes(tmp_path: Path) -> None:
    said = check_content(
        2,
        tmp_path,
        "same_bits",
        "exact_neighbors",
        "column_names",
        "missed_perplexity",
        "bound_to_cores",
        "damaged_checkpoints",
        "interrupted",
        "array_of_a_file",
        "one_message",
        "interrupted_before_the_fit",
        at_last="unforeseen",
    )
    ends = "acctsne: rank 1 of 2 failed, which ends all: MemoryError: Each of 2 processes that"
    assert said.count("acctsne: rank") == said.count(ends) == 1


def test_three_processes(tmp_path: Path) -> None:
    names = ["same_bits", "exact_neighbors", "own_ways", "errors", "new_points"]
    said = check_content(3, tmp_path, *names, at_last="interrupted_at_first")
    ends = "acctsne: rank 1 of 3 failed, which ends all: KeyboardInterrupt\n"
    assert said.count("acctsne: rank") == said.count(ends) == 1


def test_four_processes(tmp_path: Path) -> None:
    check_content(4, tmp_path, "same_bits", "exact_neighbors", "checkpoints")


def test_an_error_before_the_fit_ends_all(tmp_path: Path) -> None:
    program = """
import atexit, sys
import numpy as np
from mpi4py import MPI
from acctsne.distributed import TSNE

atexit.register(print, "tidied up")
rank = MPI.COMM_WORLD.Get_rank()
rows = np.full((300, 4), np.nan if rank == 1 else 0.0)
try:
    TSNE(perplexity=5).fit(rows)
except ValueError as error:
    # What all raise, and what is only shown, ends nobody.
    atexit.register(sys.excepthook, ValueError, error, None)
    sys.excepthook(KeyError, KeyError(), None)
if rank == 1:
    raise FileNotFoundError("no part-1.npy")
TSNE(perplexity=5).fit(rows)
"""
    ended = mpiexec(2, sys.executable, "-c", program, cwd=tmp_path)
    assert ended.returncode != 0
    assert ended.stdout == "tidied up\n"
    assert "ValueError: rank 1: Input X contains NaN" in ended.stderr
    assert "KeyError" in ended.stderr
    assert "\nFileNotFoundError: no part-1.npy\n" in ended.stderr  # the traceback's last line
    said = "acctsne: rank 1 of 2 failed, which ends all: FileNotFoundError: no part-1.npy\n"
    assert ended.stderr.count("which ends all") == ended.stderr.count(said) == 1
    assert "MPI_ABORT was invoked on rank 1" in ended.stderr  # not the launcher's time limit


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

    @needs_proc
    def test_ctrl_c_and_a_killed_process_end_all_and_one_goes_on(self, tmp_path: Path) -> None:
        X = np.random.default_rng(0).normal(size=(5000, 6)).astype(np.float32)
        np.save(tmp_path / "data.npy", X)
        # So many iterations that a fit does not end while the launcher ends it.
        kept = ["embed", "data.npy", "-o", "map.npy", "--max-iter", "4000", "--perplexity", "5"]
        kept += ["--tol", "0", "--quiet", "--checkpoint", "fit", "--checkpoint-every"]
        seldom = [*kept, "1000", "--resume"]
        kept = [*kept, "20"]
        resume = [*kept, "--resume"]

        def cut_off(arguments: list[str], end: Callable[[int], None]) -> str:
            """Fit until there is another checkpoint; return what is said after that."""
            before = set(tmp_path.glob("fit/manifest-*"))
            with subprocess.Popen(
                [str(MPIEXEC), *FLAGS, "-n", "2", sys.executable, "-m", "acctsne", *arguments],
                cwd=tmp_path,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, **MEMORY_ONLY},
            ) as running:
                while set(tmp_path.glob("fit/manifest-*")) <= before:
                    assert running.poll() is None
                    time.sleep(0.001)
                children = [process_of_rank(rank, running.pid) for rank in (0, 1)]
                end(running.pid)
                _, said = running.communicate(timeout=HANGS)
            assert running.returncode != 0
            # The launcher may be gone a moment before them.
            for _ in range(1000):
                if not any(map(runs, children)):
                    break
                time.sleep(0.01)
            assert not any(map(runs, children))
            assert not (tmp_path / "map.npy").exists()
            return said

        cut_off(kept, lambda launcher: os.kill(launcher, signal.SIGINT))
        said = cut_off(
            resume, lambda launcher: os.kill(process_of_rank(1, launcher), signal.SIGKILL)
        )
        assert "rank 1" in said
        assert "signal 9" in said

        refused, labelled, spectral, resumed = alone(
            tmp_path, kept, [*resume, "--labels", "y"], [*resume, "--init", "spectral"], seldom
        )
        assert refused[0] == spectral[0] == 1
        assert labelled[0] == 2
        assert "fit: exists, from a fit that did not end" in refused[1]
        assert "--labels cannot be used with fit" in labelled[1]
        why = "--init: fit is a folder, in which several processes keep a fit: init="
        assert why in spectral[1]
        assert resumed[0] == 0, resumed[1]
        assert not (tmp_path / "fit").exists()  # done with
        expected = acctsne.TSNE(max_iter=4000, perplexity=5, tol=0).fit_transform(X)
        assert np.array_equal(np.load(tmp_path / "map.npy"), expected)

    def test_a_folder_and_one_process_without_mpi(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setitem(sys.modules, "mpi4py", None)
        monkeypatch.chdir(tmp_path)
        np.save("data.npy", np.random.default_rng(0).normal(size=(100, 4)))
        Path("fit").mkdir()
        assert main(["embed", "data.npy", "-o", "map.npy", "--checkpoint", "fit", "--resume"]) == 1
        found = capsys.readouterr().err
        assert "--checkpoint: fit is a folder, in which several processes keep a fit" in found
        assert "copies" not in found

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
        self,
        arguments: list[str],
        said: str,
        launcher: dict[str, str],
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setitem(sys.modules, "mpi4py", None)
        for name, value in launcher.items():
            monkeypatch.setenv(name, value)
        assert main(arguments) == 1
        assert said in capsys.readouterr().err

    def test_a_batch_script_of_slurm_is_one_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from acctsne.runtime.launch import launched_processes

        monkeypatch.setenv("SLURM_NTASKS", "4")
        assert launched_processes() == 1
        monkeypatch.setenv("SLURM_STEP_ID", "4294967291")
        assert launched_processes() == 1
        monkeypatch.setenv("SLURM_STEP_ID", "0")
        assert launched_processes() == 4
