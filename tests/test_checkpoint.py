"""Unfinished fits in files: they go on to the same bits, and only where they belong."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_matrix

from acctsne import TSNE
from acctsne.cli.main import main
from acctsne.embedding.checkpoint import Checkpoint
from acctsne.estimator import fit_with_checkpoint

Array = npt.NDArray[Any]
COMMAND = [sys.executable, "-m", "acctsne"]


@pytest.fixture(scope="module", name="X")
def samples(digits: tuple[Array, Array]) -> Array:
    return digits[0][:150]


@pytest.fixture(name="path")
def file_of_the_checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "fit.npz"


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, X: Array, monkeypatch: pytest.MonkeyPatch) -> Path:
    np.save(tmp_path / "data.npy", X)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def small(**parameters: Any) -> TSNE:
    return TSNE(**{"perplexity": 10, "random_state": 0, "max_iter": 400, "tol": 0, **parameters})


class PowerCut(Exception):  # noqa: N818
    """What ends a fit here."""


def cut_off(tsne: TSNE, X: Any, path: Path, *, every: int, at: int, resume: bool = False) -> None:
    """Fit with checkpoints until the power fails after so many iterations."""

    def fail(iteration: int, *_: Any) -> None:
        if iteration + 1 == at:
            raise PowerCut

    tsne.set_params(callback=fail, callback_every=1)
    with pytest.raises(PowerCut):
        fit_with_checkpoint(tsne, X, Checkpoint(path, every, resume))
    tsne.set_params(callback=None, callback_every=50)


def assert_same_fit(one: TSNE, other: TSNE) -> None:
    np.testing.assert_array_equal(one.embedding_, other.embedding_)
    assert one.kl_divergence_ == other.kl_divergence_
    assert one.n_iter_ == other.n_iter_


@pytest.mark.parametrize("parameters", [
    {},
    {"schedule": "sklearn"},
    {"dtype": np.float64, "n_components": 3, "method": "barnes_hut", "dof": 0.5},
    {"early_exaggeration_iter": 130, "max_iter": 600},
    {"init": "random", "momentum": 0.9, "learning_rate": 1e9},
    {"schedule": "sklearn", "learning_rate": (1e-20, 50.0), "min_grad_norm": 1.2e-3},
    {"late_exaggeration": 2.0, "late_exaggeration_start": 330, "schedule": "sklearn"},
    {"init": np.random.default_rng(0).normal(size=(150, 2)), "random_state": None},
    {"max_iter": 5000, "tol": 1e-6},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("every", [100, 37])
def test_goes_on_to_the_same_bits(
    X: Array, path: Path, parameters: dict[str, Any], every: int
) -> None:
    whole = small(**parameters).fit(X)
    tsne = small(**parameters)
    # Cut off in early exaggeration, at its end, after it, and never in the same place as a write.
    resume = False
    for at in (41, 120, 251, 349):
        cut_off(tsne, X, path, every=every, at=at, resume=resume)
        assert path.exists() == (at > every)
        resume = True
    assert_same_fit(fit_with_checkpoint(tsne, X, Checkpoint(path, every, True)), whole)
    # With other threads, and again from the same file.
    assert_same_fit(
        fit_with_checkpoint(tsne.set_params(n_jobs=3), X, Checkpoint(path, 5000, True)), whole
    )


def test_what_the_stopping_rules_have_seen_is_kept_too(X: Array, path: Path) -> None:
    # Steps too short to change a coordinate: no look is better than the first, after 120
    # iterations, and patience ends at the first look more than 250 later.
    still = {"learning_rate": 1e-20, "early_exaggeration_iter": 100, "min_grad_norm": 0}
    tsne = small(**still, n_iter_without_progress=250, max_iter=5000)
    cut_off(tsne, X, path, every=100, at=349)
    assert fit_with_checkpoint(tsne, X, Checkpoint(path, 100, True)).n_iter_ == 379


def test_that_the_data_are_flat_is_kept_too(path: Path) -> None:
    # A spiral, whose fit ends elsewhere by the rules of other data.
    turn = np.linspace(1, 20, 400)
    plane = np.stack([turn * np.cos(turn), turn * np.sin(turn)], 1)
    how: dict[str, Any] = {"perplexity": 20, "tol": 0.005, "max_iter": 1000}
    whole = small(**how).fit(plane)
    tsne = small(**how)
    for at, resume in ((120, False), (190, True)):
        cut_off(tsne, plane, path, every=20, at=at, resume=resume)
    assert_same_fit(fit_with_checkpoint(tsne, plane, Checkpoint(path, 5000, True)), whole)


def test_the_recall_of_the_neighbours_is_kept_too(path: Path) -> None:
    # Noise, in which an approximate search does not find all.
    noise = np.random.default_rng(0).uniform(size=(2000, 150))
    tsne = small(neighbors="approximate", max_iter=250)
    cut_off(tsne, noise, path, every=20, at=25)
    recall = tsne.timings_["recall"]
    assert recall < 1
    assert (
        fit_with_checkpoint(tsne, noise, Checkpoint(path, 1000, True)).timings_["recall"] == recall
    )


def test_all_kinds_of_data(X: Array, path: Path) -> None:
    D = np.abs(X[:, None, :8] - X[None, :, :8]).sum(axis=-1)
    for data, parameters in [
        (csr_matrix(X), {}),
        (X.astype(np.float32), {"metric": "cosine"}),
        (D, {"metric": "precomputed", "init": "random"}),
    ]:
        path.unlink(missing_ok=True)
        tsne = small(**parameters)
        cut_off(tsne, data, path, every=50, at=320)
        resumed = fit_with_checkpoint(tsne, data, Checkpoint(path, 50, True))
        assert_same_fit(resumed, small(**parameters).fit(data))
        if not parameters:
            np.testing.assert_array_equal(resumed.transform(data), resumed.embedding_)


def test_writing_changes_nothing(X: Array, path: Path) -> None:
    assert_same_fit(fit_with_checkpoint(small(), X, Checkpoint(path, 7, False)), small().fit(X))


def test_begins_anew_if_not_told_to_resume(X: Array, path: Path) -> None:
    cut_off(small(perplexity=20), X, path, every=100, at=320)
    assert_same_fit(fit_with_checkpoint(small(), X, Checkpoint(path, 1000, False)), small().fit(X))
    # And if there is nothing to go on from.
    path.unlink()
    assert_same_fit(fit_with_checkpoint(small(), X, Checkpoint(path, 1000, True)), small().fit(X))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("perplexity", 20, "perplexity=10, and now it is 20"),
        ("learning_rate", (10.0, 20.0), r"learning_rate='auto', and now it is \[10.0, 20.0\]"),
        ("max_iter", 500, "max_iter=400, and now it is 500"),
        ("dtype", np.float64, "dtype='float32', and now it is 'float64'"),
        ("random_state", 1, "random_state=0, and now it is 1"),
        ("init", np.ones((150, 2)), "init='pca', and now it is 'array "),
        ("metric", max, "metric='euclidean', and now it is '<built-in function max>'"),
        ("metric_params", {"p": np.float64(3)}, r"metric_params=None, and now it is \{'p': 3.0\}"),
    ],
)
def test_other_parameters_are_refused(
    X: Array, path: Path, name: str, value: Any, said: str
) -> None:
    base = {"metric": "minkowski"} if name == "metric_params" else {}  # which has parameters
    cut_off(small(**base), X, path, every=100, at=120)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=rf"fit\.npz is of a fit with {said}"):
        fit_with_checkpoint(small(**{**base, name: value}), X, Checkpoint(path, 100, True))
    assert path.read_bytes() == before


def test_parameters_that_do_not_matter(X: Array, path: Path) -> None:
    cut_off(small(), X, path, every=100, at=120)
    # Equal values of other types, and what a map does not depend on.
    tsne = small(perplexity=10.0, dtype="float32", n_jobs=1, verbose=1, callback=[])
    assert_same_fit(fit_with_checkpoint(tsne, X, Checkpoint(path, 100, True)), small().fit(X))


def test_other_data_is_refused(X: Array, path: Path) -> None:
    cut_off(small(), X, path, every=100, at=120)
    changed = X.copy()
    changed[77, 33] += 1
    for other in (changed, X[:-1], X[::-1], X.astype(np.float32), csr_matrix(X)):
        with pytest.raises(ValueError, match=r"fit\.npz is of a fit to other data"):
            fit_with_checkpoint(small(), other, Checkpoint(path, 100, True))
    # The same in another memory order is the same.
    tsne = fit_with_checkpoint(small(), np.asfortranarray(X), Checkpoint(path, 100, True))
    assert_same_fit(tsne, small().fit(X))


def test_other_files_are_refused(X: Array, path: Path) -> None:
    cut_off(small(), X, path, every=100, at=120)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ValueError, match=r"fit\.npz is not a complete acctsne file"):
        fit_with_checkpoint(small(), X, Checkpoint(path, 100, True))
    small().fit(X).save(path)
    with pytest.raises(ValueError, match=r"fit\.npz .* holds acctsne 'tsne'"):
        fit_with_checkpoint(small(), X, Checkpoint(path, 100, True))


def test_parameters_are_checked(X: Array, path: Path) -> None:
    with pytest.raises(ValueError, match="'perplexity' parameter of TSNE"):
        fit_with_checkpoint(small(perplexity=-1), X, Checkpoint(path, 100, True))


# The command line

LONG = [
    "--tol",
    "0",
    "--max-iter",
    "20000",
    "--n-iter-without-progress",
    "20000",
    "--min-grad-norm",
    "0",
]
CHECKPOINT = ["--checkpoint", "fit.npz", "--checkpoint-every", "130", "--quiet"]


def stop_in_the_fit(command: list[str], how: signal.Signals) -> tuple[int, str]:
    """Send a signal once there is a checkpoint; return the exit code and what was said."""
    for _ in range(10):
        with subprocess.Popen([*COMMAND, *command, *CHECKPOINT], stderr=subprocess.PIPE) as running:
            while not Path("fit.npz").exists() and running.poll() is None:
                time.sleep(0.001)
            running.send_signal(how)
            assert running.stderr is not None
            said = running.stderr.read().decode()
        if running.returncode != 0:
            return running.returncode, said
        # On a busy machine the whole fit may pass before this process is given its turn.
        Path("map.npy").unlink()
    raise AssertionError("the command ended ten times before it could be stopped")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_resume_a_command_that_was_stopped(folder: Path, how: signal.Signals) -> None:
    command = ["embed", "data.npy", "-o", "map.npy", *LONG]
    returncode, said = stop_in_the_fit(command, how)
    assert returncode == (1 if how == signal.SIGINT else -how)
    assert ("--resume goes on from fit.npz" in said) == (how == signal.SIGINT)
    assert not Path("map.npy").exists()

    assert main([*command, *CHECKPOINT, "--resume"]) == 0
    assert not Path("fit.npz").exists()  # done with
    resumed = Path("map.npy").read_bytes()
    assert main([*command, "--quiet"]) == 0
    assert Path("map.npy").read_bytes() == resumed


def test_resume_where_there_is_nothing_yet(folder: Path, X: Array) -> None:
    command = ["embed", "data.npy", "-o", "map.npy", "--max-iter", "250"]
    assert main([*command, *CHECKPOINT, "--resume"]) == 0
    np.testing.assert_array_equal(np.load("map.npy"), TSNE(max_iter=250).fit_transform(X))
    # The file is in nobody's way the next time.
    assert main([*command, *CHECKPOINT]) == 0


def test_a_map_that_cannot_be_written_costs_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    command = ["embed", "data.npy", "-o", "map.npy", "--max-iter", "250", *CHECKPOINT]
    with monkeypatch.context() as patched:
        patched.setattr("acctsne.files.formats.write", full)
        assert main(command) == 1
    assert "no space left" in capsys.readouterr().err
    assert main([*command, "--resume"]) == 0


def test_failures_come_before_the_fit(
    folder: Path, X: Array, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*arguments: str) -> str:
        assert main(["embed", "data.npy", "-o", "map.npy", "--quiet", *arguments]) == 1
        return capsys.readouterr().err.splitlines()[-1]

    assert "absent/fit.npz: no such folder" in said("--checkpoint", "absent/fit.npz")
    assert "fit.pkl: cannot write '.pkl'" in said("--checkpoint", "fit.pkl")
    cut_off(TSNE(max_iter=250), X, Path("fit.npz"), every=50, at=120)
    assert "fit.npz: exists, from a fit that did not end" in said("--checkpoint", "fit.npz")
    resume = ["--checkpoint", "fit.npz", "--resume", "--max-iter", "250"]
    assert "fit.npz is of a fit with perplexity=30.0, and now it is 20" in said(
        *resume, "--perplexity", "20"
    )
    np.save("data.npy", X + 1)
    assert "fit.npz is of a fit to other data" in said(*resume)


@pytest.mark.parametrize(
    "arguments",
    [
        ["-o", "map.npy", "--resume"],
        ["-o", "map.npy", "--checkpoint", "fit.npz", "--checkpoint-every", "0"],
        ["-o", "map.npy", "--checkpoint", "fit.npz", "--checkpoint-every", "often"],
        ["-o", "map.npy", "--checkpoint", "fit.npz", "--checkpoint-every", "2147483648"],
        ["-o", "map.npy", "--checkpoint-every", "0"],
        ["-o", "map.npz", "--checkpoint", "map.npz"],
        ["--map", "map.npz", "--checkpoint", "./map.npz"],
    ],
)
def test_usage_errors(
    folder: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["embed", "data.npy", *arguments])
    assert ended.value.code == 2
    assert "usage: acctsne embed" in capsys.readouterr().err


def test_files_of_the_user_stay_in_a_folder_of_checkpoints(folder: Path) -> None:
    pytest.importorskip("mpi4py")
    kept = {"state-of-the-art.csv", "manifest-2026.json", "affinities-old.npz", ".state-x.part.npz"}
    ours = {"state-20-0123456789ab-0.npz", ".state-40-0123456789a.0123456789ab.part.npz"}
    Path("fit").mkdir()
    for name in kept | ours:
        (Path("fit") / name).write_text("precious")
    command = ["embed", "data.npy", "-o", "map.npy", "--max-iter", "250", "--quiet"]
    # In a process of its own, as MPI begins there.
    arguments = [*command, "--checkpoint", "fit", "--resume"]
    subprocess.run([sys.executable, "-m", "acctsne", *arguments], check=True)
    assert {file.name for file in Path("fit").iterdir()} == kept


@pytest.mark.parametrize("content", [None, "notes.txt"])
def test_a_folder_of_the_user_is_not_taken_for_a_checkpoint(
    folder: Path, content: str | None
) -> None:
    pytest.importorskip("mpi4py")
    Path("mine").mkdir()
    if content is not None:
        (Path("mine") / content).write_text("precious")
    arguments = ["embed", "data.npy", "-o", "map.npy", "--checkpoint", "mine", "--resume"]
    ended = subprocess.run([*COMMAND, *arguments], check=False, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "mine: a folder that holds no checkpoint" in ended.stderr
    assert Path("mine").is_dir()
    assert not Path("map.npy").exists()
