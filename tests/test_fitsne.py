"""`fast_tsne` takes FIt-SNE's files and gives FIt-SNE's answers."""

import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from acctsne import quality
from acctsne.interop import fitsne

Array = npt.NDArray[Any]
PROGRAM = [
    sys.executable,
    "-c",
    "from acctsne.interop.fitsne import main; raise SystemExit(main())",
]

DEFAULTS: dict[str, Any] = {
    "theta": 0.5,
    "perplexity": 30.0,
    "perplexity_list": None,
    "no_dims": 2,
    "max_iter": 300,
    "stop_early_exag_iter": 250,
    "mom_switch_iter": 250,
    "momentum": 0.5,
    "final_momentum": 0.8,
    "learning_rate": 200.0,
    "max_step_norm": 5.0,
    "K": -1,
    "sigma": -1.0,
    "nbody_algo": 2,
    "knn_algo": 1,
    "early_exag_coeff": 12.0,
    "no_momentum_during_exag": 0,
    "n_trees": 50,
    "search_k": 4500,
    "start_late_exag_iter": -1,
    "late_exag_coeff": -1.0,
    "nterms": 3,
    "intervals_per_integer": 1.0,
    "min_num_intervals": 50,
    "seed": 1,
    "df": 1.0,
    "load_affinities": 0,
    "init": None,
}


def write_input(path: Path, X: Array, version: str = "1.2.1", **changed: Any) -> dict[str, Any]:
    """Write what FIt-SNE's wrappers write, one number after the other."""
    s = DEFAULTS | changed
    if s["perplexity_list"] is not None:
        s["perplexity"] = 0.0
    with open(path, "wb") as f:
        f.write(struct.pack("=iidd", *X.shape, s["theta"], s["perplexity"]))
        if s["perplexity_list"] is not None:
            f.write(struct.pack("=i", len(s["perplexity_list"])))
            f.write(np.array(s["perplexity_list"], dtype=float).tobytes())
        for key in ("no_dims", "max_iter", "stop_early_exag_iter", "mom_switch_iter"):
            f.write(struct.pack("=i", s[key]))
        f.write(struct.pack("=ddd", s["momentum"], s["final_momentum"], s["learning_rate"]))
        if version != "1.1.0":
            f.write(struct.pack("=d", s["max_step_norm"]))
        f.write(struct.pack("=id", s["K"], s["sigma"]))
        f.write(struct.pack("=iid", s["nbody_algo"], s["knn_algo"], s["early_exag_coeff"]))
        f.write(struct.pack("=iii", s["no_momentum_during_exag"], s["n_trees"], s["search_k"]))
        f.write(struct.pack("=id", s["start_late_exag_iter"], s["late_exag_coeff"]))
        f.write(struct.pack("=i", s["nterms"]))
        f.write(struct.pack("=di", s["intervals_per_integer"], s["min_num_intervals"]))
        f.write(np.ascontiguousarray(X, dtype=float).tobytes())
        f.write(struct.pack("=idi", s["seed"], s["df"], s["load_affinities"]))
        if s["init"] is not None:
            f.write(np.ascontiguousarray(s["init"], dtype=float).tobytes())
    return s


def read_output(path: Path) -> tuple[Array, Array]:
    content = path.read_bytes()
    n, dimensions = struct.unpack_from("=ii", content)
    Y = np.frombuffer(content, count=n * dimensions, offset=8).reshape(n, dimensions)
    after = 8 + Y.nbytes
    (iterations,) = struct.unpack_from("=i", content, after)
    costs = np.frombuffer(content, count=iterations, offset=after + 4)
    assert len(content) == after + 4 + costs.nbytes
    return Y, costs


def embed(folder: Path, X: Array, version: str = "1.2.1", **changed: Any) -> tuple[Array, Array]:
    """Write, run in this process, read."""
    source, target = folder / "data.dat", folder / "result.dat"
    write_input(source, X, version, **changed)
    assert fitsne.main([version, str(source), str(target), "2"]) == 0
    return read_output(target)


@pytest.fixture(name="X", scope="module")
def _few_digits(digits: tuple[Array, Array]) -> Array:
    return np.ascontiguousarray(digits[0][:200])


def test_the_program_as_the_wrappers_run_it(tmp_path: Path, X: Array) -> None:
    # In the working folder, as the Python and Matlab wrappers do.
    write_input(tmp_path / "data.dat", X)
    done = subprocess.run(
        [*PROGRAM, "1.2.1", "data.dat", "result.dat", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("=============== t-SNE v1.2.1 ===============")
    assert "knn_algo, n_trees and search_k are ignored" in done.stderr
    Y, costs = read_output(tmp_path / "result.dat")
    assert Y.shape == (200, 2)
    np.testing.assert_array_equal(np.flatnonzero(costs), np.arange(49, 300, 50))
    assert costs[-1] == pytest.approx(quality.exact_kl(X, Y), rel=0.03)


def test_seurat_asks_for_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert fitsne.main([]) != 0
    greeting = capsys.readouterr().out.splitlines()[0]
    assert greeting.startswith("=============== t-SNE v1.2.1 ===============")


@pytest.mark.parametrize("version", fitsne.VERSIONS)
@pytest.mark.parametrize("listed", [None, [5.0, 20.0]])
@pytest.mark.parametrize("with_init", [False, True])
def test_every_field_is_read_where_it_is_written(
    tmp_path: Path, version: str, listed: list[float] | None, with_init: bool
) -> None:
    X = np.arange(12.0).reshape(6, 2)
    init = X[:, ::-1] / 7 if with_init else None
    # Every field another value, so that none can be taken for its neighbour.
    changed = {
        key: type(value)(number)
        for number, (key, value) in enumerate(DEFAULTS.items(), start=2)
        if isinstance(value, int | float) and key not in ("no_dims", "perplexity")
    }
    written = write_input(
        tmp_path / "data.dat", X, version, perplexity_list=listed, init=init, **changed
    )
    request = fitsne.read_request(tmp_path / "data.dat", version)
    np.testing.assert_array_equal(request.X, X)
    assert request.perplexities == (listed or [30.0])
    np.testing.assert_array_equal(np.array(request.init), np.array(init))
    if version == "1.1.0":
        written["max_step_norm"] = -1.0
    for key, value in request.settings.items():
        if key not in ("n", "d"):
            assert value == written[key], key


def test_methods_and_dimensions(tmp_path: Path, X: Array) -> None:
    for changed in (
        {"theta": 0.0},
        {"nbody_algo": 1},
        {"nbody_algo": 1, "no_dims": 3},
        {"no_dims": 1},
        {"no_dims": 4, "theta": 0.0},
    ):
        Y, _ = embed(tmp_path, X, **changed)
        assert Y.shape == (200, changed.get("no_dims", 2))
        assert quality.exact_kl(X, Y) < 1.7


def test_seed_and_initial_layout(tmp_path: Path, X: Array) -> None:
    first, second = embed(tmp_path, X, seed=3)[0], embed(tmp_path, X, seed=3)[0]
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, embed(tmp_path, X, seed=4)[0])
    # One iteration with a tiny learning rate stays where it began.
    init = np.random.default_rng(0).normal(size=(200, 2))
    Y, costs = embed(tmp_path, X, init=init, max_iter=1, learning_rate=1e-9)
    np.testing.assert_allclose(Y - Y.mean(0), init - init.mean(0), atol=1e-6)
    assert len(costs) == 1


def test_schedule() -> None:
    settings = DEFAULTS | {
        "max_iter": 750,
        "mom_switch_iter": 100,
        "start_late_exag_iter": 400,
        "late_exag_coeff": 2.0,
    }
    phases = list(fitsne.schedule(settings))
    assert [phase.end for phase in phases] == [100, 250, 400, 750]
    assert [phase.exaggeration for phase in phases] == [(12, 12), (12, 12), (1, 1), (2, 2)]
    assert [phase.momentum for phase in phases] == [0.5, 0.8, 0.8, 0.8]
    assert {phase.learning_rate for phase in phases} == {(50.0, 50.0)}
    assert {phase.rule for phase in phases} == {"delta_bar_delta"}
    assert {phase.max_step for phase in phases} == {5.0}


def test_late_exaggeration_tightens(tmp_path: Path, X: Array) -> None:
    plain, _ = embed(tmp_path, X)
    tight, _ = embed(tmp_path, X, start_late_exag_iter=250, late_exag_coeff=4.0)
    assert tight.std() < 0.8 * plain.std()


def conditional_row(distances: Array, perplexity: float) -> Array:
    """Bisect the width of a row's Gaussian until it has the perplexity."""
    low, high = 0.0, 1.0
    for _ in range(200):
        beta = (low + high) / 2
        p = np.exp(-beta * (distances - distances.min()))
        p /= p.sum()
        if np.exp(-(p * np.log(np.maximum(p, 1e-300))).sum()) > perplexity:
            low = beta
        else:
            high = beta
    return np.asarray(p)


def test_affinities(X: Array) -> None:
    """Against plain sums, as the papers write them."""
    n = len(X)
    distances = np.square(X[:, None] - X[None]).sum(axis=2)
    np.fill_diagonal(distances, np.inf)

    def ours(**changed: Any) -> Array:
        settings = DEFAULTS | {"n": n, "d": X.shape[1]} | changed
        listed = settings["perplexity_list"] or [settings["perplexity"]]
        P = fitsne._affinities(fitsne.Request(settings, listed, X, None), 1)
        return np.asarray(P.to_scipy().toarray())

    def joint(conditional: Array) -> Array:
        return np.asarray(conditional + conditional.T) / (2 * n)

    fixed = np.exp(-distances / (2 * 20.0**2))
    fixed /= fixed.sum(axis=1, keepdims=True)
    given = {"perplexity": -1.0, "sigma": 20.0, "K": 10}
    np.testing.assert_allclose(ours(theta=0.0, **given), joint(fixed), rtol=1e-6)

    nearest = np.argsort(distances, axis=1, kind="stable")[:, :10]
    few = np.zeros((n, n))
    np.put_along_axis(few, nearest, np.take_along_axis(fixed, nearest, 1), 1)
    few /= few.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ours(**given).sum(axis=1), joint(few).sum(axis=1), rtol=1e-4)

    # The mean over the perplexities, each on the neighbours of the largest.
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :60]
    both = np.zeros((n, n))
    for i in range(n):
        rows = [conditional_row(distances[i, nearest[i]], p) for p in (5.0, 20.0)]
        both[i, nearest[i]] = np.mean(rows, axis=0)
    computed = ours(perplexity=0.0, perplexity_list=[5.0, 20.0])
    np.testing.assert_allclose(computed.sum(axis=1), joint(both).sum(axis=1), rtol=1e-3)
    np.testing.assert_allclose(computed, joint(both), atol=2e-6)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"no_dims": 3}, "no_dims is 3; it must be at least 1, and at most 2 with the grid"),
        (
            {"no_dims": 4, "nbody_algo": 1},
            "no_dims is 4; it must be at least 1, and at most 2 with the grid and 3",
        ),
        ({"perplexity": 80.0}, "perplexity 80: it must be positive and at most 66.3333"),
        ({"perplexity": -1.0}, "perplexity is negative, so sigma (-1) must be positive"),
        ({"perplexity_list": [10.0, 90.0]}, "perplexity 90"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"early_exag_coeff": 0.0}, "early_exag_coeff is 0"),
        ({"df": -0.5}, "df is -0.5"),
        ({"theta": 2.0}, "theta is 2"),
    ],
)
def test_what_cannot_be_done(
    tmp_path: Path, X: Array, capsys: pytest.CaptureFixture[str], changed: Any, said: str
) -> None:
    source, target = tmp_path / "data.dat", tmp_path / "result.dat"
    write_input(source, X, **changed)
    assert fitsne.main(["1.2.1", str(source), str(target), "1"]) == 1
    assert said in capsys.readouterr().err.splitlines()[-1]
    assert not target.exists()


def test_what_is_ignored_is_said(
    tmp_path: Path, X: Array, capsys: pytest.CaptureFixture[str]
) -> None:
    embed(tmp_path, X, no_momentum_during_exag=1, load_affinities=1, K=5)
    said = capsys.readouterr().err
    for field in (
        *("knn_algo", "n_trees", "search_k", "nterms", "intervals_per_integer"),
        *(
            "min_num_intervals",
            "theta",
            "no_momentum_during_exag",
            "load_affinities",
            "K and sigma",
        ),
    ):
        assert field in said


def test_bad_files(tmp_path: Path, X: Array, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "data.dat"
    write_input(source, X)
    whole = source.read_bytes()
    for length in (0, 10, 50, 200, len(whole) - 1):
        source.write_bytes(whole[:length])
        assert fitsne.main(["1.2.1", str(source), os.devnull, "1"]) == 1
        assert "data.dat: " in capsys.readouterr().err
    assert fitsne.main(["1.2.1", str(tmp_path / "absent.dat"), os.devnull, "1"]) == 1
    assert fitsne.main(["0.9", str(source), os.devnull, "1"]) == 2
    assert "VERSION 1.1.0, 1.2.0, 1.2.1" in capsys.readouterr().err
