"""The command `acctsne`, run as a user would, mostly in this process to save time."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from functools import partial
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy.sparse import csr_matrix, save_npz
from sklearn.neighbors import NearestNeighbors

import acctsne
from acctsne import TSNE, io, quality
from acctsne.cli.inputs import read_embedding
from acctsne.cli.main import COMMANDS, main, make_parser
from acctsne.cli.messages import blaming
from acctsne.pictures import plot

Array = npt.NDArray[Any]
COMMAND = [sys.executable, "-m", "acctsne"]
# The fewest iterations allowed, not all of them exaggerated.
FAST = ["--max-iter", "250", "--tol", "0", "--early-exaggeration-iter", "100", "--seed", "0"]
FAST += ["--quiet"]


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, digits: tuple[Array, Array], monkeypatch: pytest.MonkeyPatch) -> Path:
    X, y = digits[0][:150], digits[1][:150]
    np.save(tmp_path / "data.npy", X)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    np.save(tmp_path / "y.npy", y)
    names = ",".join([*(f"p{i}" for i in range(64)), "digit"])
    text = "\n".join(
        ",".join(f"{v:g}" for v in (*row, label)) for row, label in zip(X, y, strict=True)
    )
    (tmp_path / "data.csv").write_text(f"{names}\n{text}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def expected(X: Array, **parameters: Any) -> Array:
    tsne = TSNE(max_iter=250, tol=0, early_exaggeration_iter=100, random_state=0, **parameters)
    fitted: Array = tsne.fit_transform(X)
    return fitted


def failure(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run what must fail; return what was said about it, one line."""
    assert main([*arguments]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Traceback" not in printed.err
    line = printed.err.splitlines()[-1]
    assert line.startswith("acctsne: error: ")
    return line


# embed


@pytest.mark.parametrize("output", ["map.npy", "map.csv", "map.parquet"])
def test_embed(folder: Path, digits: tuple[Array, Array], output: str) -> None:
    assert main(["embed", "data.npz", "-o", output, *FAST]) == 0
    written = io.read(output)
    np.testing.assert_array_equal(written.X.astype(np.float32), expected(digits[0][:150]))
    if output != "map.npy":
        assert written.labels is not None
        np.testing.assert_array_equal(written.labels, digits[1][:150])


def test_embed_on_stdout(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embed", "data.csv", "--labels", "digit", "-o", "-", *FAST]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0] == "x,y,label"
    assert len(lines) == 151
    assert printed.err == ""


def test_stdout_has_the_bytes_of_a_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("names.txt").write_text("Käfer\n日本\n" * 75, encoding="utf-8")
    command = ["embed", "data.npy", "--labels", "names.txt", *FAST]
    written = BytesIO()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(written, encoding="ascii", newline="\r\n"))
    assert main([*command, "-o", "-"]) == 0
    assert main([*command, "-o", "map.csv"]) == 0
    assert written.getvalue() == Path("map.csv").read_bytes()


def test_notes_are_on_stderr(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embed", "data.npz", "-o", "map.npy", "--max-iter", "250"]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "150 samples, 64 features" in printed.err
    assert "labels: y, 10 different" in printed.err


def test_json_summary(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embed", "data.npz", "-o", "map.npy", "--json", "--perplexity", "20", *FAST]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["n_samples"] == 150
    assert summary["n_features"] == 64
    assert summary["labels"] == "y"
    assert summary["iterations"] == 250
    assert summary["interrupted"] is False
    assert summary["parameters"] == {
        "perplexity": 20,
        "max_iter": 250,
        "tol": 0,
        "early_exaggeration_iter": 100,
        "random_state": 0,
    }
    assert summary["files"] == ["map.npy"]
    exact = quality.exact_kl(np.load("data.npy"), np.load("map.npy"), 20)
    assert summary["kl_divergence"] == pytest.approx(exact, rel=1e-3)
    assert summary["seconds"] > 0


def test_every_parameter_of_the_estimator_is_an_option() -> None:
    # Defined by the estimator alone: whoever adds a parameter has added the option.
    commands: Any = next(a.choices for a in make_parser("embed")._actions if a.choices)
    embed = commands["embed"]
    offered = {flag for action in embed._actions for flag in action.option_strings}
    for name in TSNE().get_params():
        if name not in ("verbose", "callback", "callback_every"):
            assert f"--{name.replace('_', '-')}" in offered
    assert {"--threads", "--seed"} <= offered
    assert all(action.help for action in embed._actions)


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        ("perplexity", "12.5", 12.5),
        ("learning-rate", "auto", "auto"),
        ("learning-rate", "80", 80),
        ("learning-rate", "10,20", (10, 20)),
        ("momentum", "0.5, 0.8", (0.5, 0.8)),
        ("metric", "cosine", "cosine"),
        ("metric-params", '{"p": 3}', {"p": 3}),
        ("metric-params", "none", None),
        ("method", "barnes_hut", "barnes_hut"),
        ("dtype", "float64", "float64"),
        ("threads", "2", 2),
        ("seed", "7", 7),
    ],
)
def test_values_of_options(option: str, text: str, value: Any) -> None:
    arguments = ["embed", "x.npy", "-o", "y.npy", f"--{option}", text]
    options = vars(make_parser("embed").parse_args(arguments))
    name = {"threads": "n_jobs", "seed": "random_state"}.get(option, option.replace("-", "_"))
    assert options[f"tsne_{name}"] == value


def test_initial_layout_from_a_file(folder: Path, digits: tuple[Array, Array]) -> None:
    init = np.random.default_rng(0).normal(size=(150, 2))
    np.save("init.npy", init)
    arguments = ["--init", "init.npy", "--metric", "cosine", "--dtype", "float64"]
    assert main(["embed", "data.npy", "-o", "map.npy", *arguments, *FAST]) == 0
    ours = expected(digits[0][:150], init=init, metric="cosine", dtype=np.float64)
    np.testing.assert_array_equal(np.load("map.npy"), ours)


def test_labels_from_anywhere(folder: Path) -> None:
    for arguments in (["data.csv", "--labels", "digit"], ["data.npy", "--labels", "y.npy"]):
        assert main(["embed", *arguments, "-o", "map.csv", *FAST]) == 0
        labels = io.read("map.csv").labels
        assert labels is not None
        np.testing.assert_array_equal(labels, np.load("y.npy"))


def test_columns(folder: Path, digits: tuple[Array, Array]) -> None:
    chosen = "p10,p20,p30"
    assert main(["embed", "data.csv", "--columns", chosen, "-o", "map.npy", *FAST]) == 0
    three = np.ascontiguousarray(digits[0][:150, [10, 20, 30]])
    np.testing.assert_array_equal(np.load("map.npy"), expected(three))


def test_h5ad(folder: Path, digits: tuple[Array, Array]) -> None:
    cells = anndata.AnnData(digits[0][:150], obsm={"X_pca": digits[0][:150, :10]})
    cells.obs["kind"] = digits[1][:150].astype(str)
    cells.write_h5ad("cells.h5ad")
    given = ["cells.h5ad", "--key", "X_pca", "--labels", "kind"]
    assert main(["embed", *given, "-o", "cells.h5ad", *FAST]) == 0
    made = anndata.read_h5ad("cells.h5ad")
    np.testing.assert_array_equal(made.obsm["X_tsne"], expected(cells.obsm["X_pca"]))
    np.testing.assert_array_equal(made.X, cells.X)


@pytest.mark.parametrize(
    ("data", "guess"), [("data.csv", "data_map.csv"), ("d.CSV.gz", "d_map.csv")]
)
def test_the_output_is_guessed_and_said(
    folder: Path, capsys: pytest.CaptureFixture[str], data: str, guess: str
) -> None:
    text = Path("data.csv").read_bytes().replace(b"digit", b"label")
    Path(data).write_bytes(gzip.compress(text) if data.endswith("gz") else text)
    assert main(["embed", data, "--max-iter", "250"]) == 0
    said = capsys.readouterr().err
    assert f"no output given: the map goes to {guess} (-o chooses another)" in said
    assert "labels: label, 10 different (guessed; --labels chooses another)" in said
    assert io.read(guess).X.shape == (150, 2)
    # A guess overwrites nothing.
    before = Path(guess).read_bytes()
    assert f"{guess}: exists" in failure(capsys, "embed", data, *FAST)
    assert Path(guess).read_bytes() == before


def test_whatever_is_guessed_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X = np.load("data.npy")[:, :3]
    cells = [",".join(f"{v:g}" for v in (i, *row)) for i, row in enumerate(X)]
    names = "id,a,b,c"
    Path("table.csv").write_text("\n".join([names, *cells]).replace(",", ";"))
    fast = [flag for flag in FAST if flag != "--quiet"]
    assert main(["embed", "table.csv", "-o", "map.csv", *fast]) == 0
    said = capsys.readouterr().err
    for line in (
        "table.csv: cells are separated by semicolons (guessed; --delimiter decides)",
        "table.csv: the first row names the columns (guessed; --header or --no-header decides)",
        "table.csv: column 'id' numbers the rows and is left out (guessed; --columns decides)",
        "table.csv: 150 samples, 3 features",
    ):
        assert f"acctsne: {line}\n" in said
    told = ["--delimiter", ";", "--header", "--columns", "a,b,c"]
    assert main(["embed", "table.csv", "-o", "map.csv", *told, *fast]) == 0
    assert "guessed" not in capsys.readouterr().err
    assert main(["embed", "table.csv", "-o", "map.csv", *FAST]) == 0
    assert capsys.readouterr().err == ""
    np.savez("both.npz", X=X, y=np.arange(150), target=np.arange(150))
    assert main(["score", "both.npz", "map.csv"]) == 0
    said = capsys.readouterr().err
    assert "of the arrays X, y, target, X is the data (guessed; --key decides)" in said
    assert "of the arrays target, y, none is taken for labels (guessed; --labels" in said
    with pytest.raises(SystemExit):
        main(["embed", "table.csv", "--delimiter", "ab"])
    assert "--delimiter must be one character; got 'ab'" in capsys.readouterr().err


def test_neighbors_for_viewers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["-o", "map.parquet", "--write-neighbors", "4", "--metric", "cosine"]
    assert main(["embed", "data.npz", *arguments, *FAST]) == 0
    written = pd.read_parquet("map.parquet")
    ids = np.stack([row["ids"] for row in written.neighbors])
    distances = np.stack([row["distances"] for row in written.neighbors])
    for wrong in ("0", "150"):
        said = failure(capsys, "embed", "data.npz", "-o", "m.parquet", "--write-neighbors", wrong)
        assert f"--write-neighbors: {wrong} of 150 samples" in said
    search = NearestNeighbors(n_neighbors=4, metric="cosine").fit(np.load("data.npy"))
    expected_distances, expected_ids = search.kneighbors()
    np.testing.assert_allclose(distances, expected_distances, atol=1e-6)
    assert (ids == expected_ids).mean() > 0.99  # ties may be in another order


def test_neighbors_are_searched_before_the_fit(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    search = NearestNeighbors(n_neighbors=91).fit(np.load("data.npy"))
    save_npz("graph.npz", search.kneighbors_graph(mode="distance"))

    def too_late(*_: Any) -> None:
        raise AssertionError("the fit began")

    monkeypatch.setattr(TSNE, "fit", too_late)
    arguments = ["--metric", "precomputed", "--init", "random", "--write-neighbors", "100"]
    said = failure(capsys, "embed", "graph.npz", "-o", "map.parquet", *arguments)
    assert "error: --write-neighbors: 101 neighbors per samples are required" in said


# Mistakes: one line, exit code 1 or 2, nothing overwritten.


def test_failures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("map.npy").write_text("precious")
    Path("holed.csv").write_text("a,b\n1,2\n3,\n")
    np.save("short.npy", np.zeros(7))
    np.save("few.npy", np.eye(20))
    Path("holes.csv").write_text("a,b\nnan,2\n" + "1,2\n" * 149)
    Path("words.csv").write_text("a,b,c\n1,x,y\n3,x,z\n")
    for arguments, said in [
        (["absent.npy"], "absent.npy: no such file"),
        (["holed.csv"], "holed.csv: row 3, column 'b': missing value"),
        (
            ["data.npy", "--perplexity", "150"],
            "error: --perplexity: perplexity (150) must be less than n_samples (150)",
        ),
        (["few.npy"], "error: --perplexity: perplexity (30.0) must be less than n_samples (20)"),
        (["data.npy", "--labels", "short.npy"], "--labels: short.npy: 7 labels for 150 samples"),
        (["data.csv", "--labels", "colour"], "--labels: data.csv: no column 'colour'"),
        (["data.csv", "--drop", "p1,colour"], "--drop: data.csv: no column 'colour'"),
        (["data.csv", "--columns", "colour"], "--columns: data.csv: no column 'colour'"),
        (["data.npz", "--key", "Z"], "--key: data.npz: no array 'Z'"),
        (["words.csv"], "name the column of labels (--labels), or leave out what is no feature"),
        (
            ["data.npy", "--init", "pca", "--metric", "precomputed"],
            'error: --metric and --init: The parameter init="pca" cannot be used',
        ),
        (["data.npy", "--dtype", "int8"], "--dtype: dtype must be numpy.float32 or numpy.float64"),
    ]:
        assert said in failure(capsys, "embed", *arguments, "-o", "map.npy", *FAST)
        assert Path("map.npy").read_text() == "precious"


def test_outputs_are_checked_before_the_fit(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, said in [
        (["-o", "map.xls"], "error: -o: map.xls: cannot write '.xls'"),
        (["-o", "absent/map.npy"], "absent/map.npy: no such folder"),
        (["-o", "map.csv", "--write-neighbors", "5"], "cannot write neighbours in '.csv'"),
        (
            ["--plot", "map.jpg"],
            "error: --plot: map.jpg: cannot write '.jpg'; choose one of .png, .pdf, .svg",
        ),
        (["--html", "map.png"], "map.png: cannot write '.png'; choose one of .html"),
        (["--movie", "map.avi"], "choose one of .gif, .mp4, .html"),
        (["--map", "map.pkl"], "choose one of .npz"),
    ]:
        # The data does not exist either: it is not looked at.
        assert said in failure(capsys, "embed", "absent.npy", *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["frobnicate"],
        ["embed"],
        ["embed", "data.npy", "-o", "-", "--json"],
        ["embed", "data.npy", "-o", "-", "--write-neighbors", "5"],
        ["embed", "data.npy", "-o", "map.npy", "--perplexity", "-3"],
        ["embed", "data.npy", "-o", "map.npy", "--max-iter", "10"],
        ["embed", "data.npy", "-o", "map.npy", "--method", "magic"],
        ["plot", "map.npy"],
    ],
)
def test_usage_errors(
    folder: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: acctsne" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["embed", "data.npy", "-o", "data.npy"], "DATA and -o are the same file, data.npy"),
        (["embed", "data.npy", "-o", "link.npy"], "DATA and -o are the same file, link.npy"),
        (["embed", "data.npy", "-o", "./m.npz", "--map", "m.npz"], "-o and --map are the same"),
        (["embed", "data.npz", "--map", "data.npz"], "DATA and --map are the same file"),
        (
            ["embed", "data.npz", "-o", "y.npy", "--labels", "y.npy"],
            "--labels and -o are the same file",
        ),
        (["embed", "data.npy", "--html", "m.html", "--movie", "m.html"], "--html and --movie are"),
        (["embed", "data.npz", "-o", "m.npy", "--checkpoint", "data.npz"], "DATA and --checkpoint"),
        (["embed", "data.npy", "-o", "m.npz", "--checkpoint", "m.npz"], "-o and --checkpoint are"),
        (["transform", "data.npz", "data.npy", "-o", "data.npy"], "NEW and -o are the same file"),
        (["transform", "data.npz", "data.npy", "-o", "data.npz"], "MAP and -o are the same file"),
        (["score", "data.npy", "data.csv", "--by-point", "data.csv"], "EMBEDDING and --by-point"),
    ],
)
def test_nothing_is_written_over_what_is_read(
    folder: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("link.npy").symlink_to("data.npy")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_an_error_of_any_type_names_its_flag() -> None:
    said = "--labels: 'utf-8' codec can't decode"
    with pytest.raises(UnicodeError, match=said), blaming("--labels"):
        b"\xe9".decode()


def test_labels_that_are_missing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [str(label) for label in np.load("y.npy")]
    lines[3] = lines[7] = ""
    Path("y.txt").write_text("\n".join(["digit", *lines]))
    outputs = ["-o", "map.csv", "--html", "map.html", "--plot", "map.png"]
    arguments = ["data.npy", "--labels", "y.txt", *outputs, "--max-iter", "250"]
    assert main(["embed", *arguments]) == 0
    assert "labels: y.txt, 10 different, 2 samples without" in capsys.readouterr().err
    labels = io.read("map.csv").labels
    assert labels is not None
    assert labels.tolist() == [int(line) if line else None for line in lines]
    (about,) = re.findall(r'id="about">(.*?)</script>', Path("map.html").read_text())
    assert json.loads(about)["names"] == [*map(str, range(10)), "none"]


def test_a_map_of_cells_in_capitals(folder: Path) -> None:
    io.write("MAP.H5AD", np.eye(3, 2))
    np.testing.assert_array_equal(read_embedding(Path("MAP.H5AD"), None).X, np.eye(3, 2))


def test_a_fitted_estimator_is_a_map(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Its data has as many columns as its map.
    np.save("flat.npy", np.load("data.npy")[:, 20:22])
    assert main(["embed", "flat.npy", "-o", "map.npy", "--map", "fitted.npz", *FAST]) == 0
    np.testing.assert_array_equal(read_embedding(Path("fitted.npz"), None).X, np.load("map.npy"))
    said = []
    for each in ("map.npy", "fitted.npz"):
        assert main(["score", "flat.npy", each, "--quiet"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    for each in ("map.npy", "fitted.npz"):
        arguments = ["--init", each, "--schedule", "sklearn", *FAST]
        assert main(["embed", "data.npy", "-o", f"from_{each[:3]}.npy", *arguments]) == 0
    np.testing.assert_array_equal(np.load("from_fit.npy"), np.load("from_map.npy"))
    assert failure(capsys, "plot", "absent.npz", "-o", "a.png").endswith("absent.npz: no such file")


@pytest.mark.parametrize("rest", [["plot", "-o", "a.png"], ["view"], ["score", "data.npy"]])
def test_a_sparse_matrix_is_no_map(
    folder: Path, capsys: pytest.CaptureFixture[str], rest: list[str]
) -> None:
    save_npz("sparse.npz", csr_matrix(np.eye(150, 2)))
    assert "sparse.npz: a sparse matrix; a map is dense" in failure(capsys, *rest, "sparse.npz")
    with pytest.raises(ValueError, match=r"Y is a sparse matrix.* give Y\.toarray"):
        plot.save(csr_matrix(np.eye(3, 2)), "a.png")


def test_a_missing_extra_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = failure(capsys, "embed", "data.npy", "-o", "map.parquet")
    assert said.endswith("pyarrow is not installed; run: pip install 'acctsne[parquet]'")


def test_ctrl_c_keeps_the_map_if_asked(folder: Path) -> None:
    arguments = ["embed", "data.npy", "-o", "map.npy", "--keep-partial", "--json"]
    endless = ["--tol", "0", "--max-iter", "100000000", "--n-iter-without-progress", "100000000"]
    with subprocess.Popen(
        [*COMMAND, *arguments, *endless, "--min-grad-norm", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stderr is not None
        # Progress is on stderr, every 50 iterations; then it is well on its way.
        while "iteration 100" not in running.stderr.readline():
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert running.returncode == 1
    assert "writing the map so far" in err
    assert "Traceback" not in err
    summary = json.loads(out)
    assert summary["interrupted"] is True
    assert summary["iterations"] >= 100
    Y = np.load("map.npy")
    assert Y.shape == (150, 2)
    assert np.isfinite(Y).all()


@pytest.mark.parametrize(
    ("command", "written"),
    [
        (["embed", "data.npy", "-o", "map.csv", *FAST], "map.csv"),
        (["transform", "fit.npz", "data.npy", "-o", "new.npy"], "new.npy"),
        (["plot", "map.npy", "-o", "map.png"], "map.png"),
        (["view", "map.npy", "-o", "map.html", "--no-browser"], "map.html"),
        (["score", "data.npy", "map.npy", "--by-point", "points.csv", "--quiet"], "points.csv"),
    ],
)
def test_ctrl_c_while_a_file_is_written(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    written: str,
) -> None:
    X = np.load("data.npy")
    np.save("map.npy", X[:, 20:22].astype(np.float64))
    if command[0] == "transform":
        TSNE(max_iter=250, tol=0.5).fit(X[:100]).save("fit.npz")
    Path(written).write_text("old")
    there = sorted(folder.iterdir())
    # On its way to the disk, after all was written.
    monkeypatch.setattr(
        "acctsne.files.replacing._flush", lambda _: os.kill(os.getpid(), signal.SIGINT)
    )
    assert main(command) == 1
    printed = capsys.readouterr()
    assert printed.err.splitlines()[-1] == "acctsne: interrupted"
    assert "Traceback" not in printed.err
    assert Path(written).read_text() == "old"
    assert sorted(folder.iterdir()) == there


def test_a_reader_that_stops_is_no_failure_to_shout_about(folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        done = subprocess.run(
            [*COMMAND, "info"], stdout=closed, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == ""


@pytest.mark.skipif(os.name == "nt", reason="closes what it inherits by a POSIX shell")
@pytest.mark.parametrize(
    ("closed", "output", "code", "said"),
    [
        (">&-", "map.npy", 0, ""),
        ("2>&-", "map.npy", 0, ""),
        ("<&- >&- 2>&-", "map.npy", 0, ""),
        (">&-", "-", 1, "acctsne: error: [Errno 9] stdout is closed\n"),
    ],
)
def test_streams_that_are_closed(
    folder: Path, closed: str, output: str, code: int, said: str
) -> None:
    command = ["embed", "data.npy", "-o", output, "--perplexity", "10", "--max-iter", "250"]
    if closed == ">&-":  # notes would be in what is compared
        command.append("--quiet")
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, *command]
    done = subprocess.run(shell, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)
    if not code:
        assert np.load("map.npy").shape == (150, 2)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_notes_that_cannot_be_written_are_lost(folder: Path) -> None:
    command = [*COMMAND, "embed", "data.npy", "-o", "map.npy", "--max-iter", "250"]
    # Python keeps what a buffer could not write, and tries once more when it ends.
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        subprocess.run(command, stderr=full, check=True, env=buffered)
    assert np.load("map.npy").shape == (150, 2)


# The other commands


def test_score(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embed", "data.npz", "-o", "map.csv", *FAST]) == 0
    assert main(["score", "data.npz", "map.csv", "--json", "--neighbors", "5"]) == 0
    figures = json.loads(capsys.readouterr().out)
    X, Y, y = np.load("data.npy"), io.read("map.csv").X, np.load("y.npy")
    assert figures == pytest.approx(
        {
            "exact KL divergence": quality.exact_kl(X, Y),
            "force error, auto": quality.force_error(Y, "auto"),
            "5-neighbour preservation": quality.neighbor_preservation(X, Y, 5),
            "5-neighbour label agreement": quality.label_agreement(Y, y, 5),
        },
        abs=1e-5,
    )
    assert main(["score", "data.npy", "map.csv"]) == 0
    assert "10-neighbour label agreement" in capsys.readouterr().out
    np.save("few.npy", Y[:100])
    assert "100 points for the 150 samples" in failure(capsys, "score", "data.npy", "few.npy")


def test_score_by_point(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embed", "data.npz", "-o", "map.csv", *FAST]) == 0
    arguments = ["score", "data.npy", "map.csv", "--perplexity", "20", "--json"]
    assert main([*arguments, "--by-point", "points.csv"]) == 0
    figures = json.loads(capsys.readouterr().out)
    expected = quality.report(np.load("data.npy"), io.read("map.csv").X, perplexity=20)
    assert figures["trustworthiness_10"] == pytest.approx(
        expected.means["trustworthiness_10"], abs=1e-6
    )
    header, *rows = Path("points.csv").read_text().splitlines()
    assert header.split(",") == list(expected.columns())
    assert float(rows[3].split(",")[0]) == pytest.approx(expected.kept[3, 0])
    assert len(rows) == 150
    assert "cannot write '.png'" in failure(capsys, *arguments, "--by-point", "points.png")


def test_score_in_other_terms(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X = np.load("data.npy")
    Y = X[:, 20:22] + np.random.default_rng(0).normal(size=(150, 2))
    np.save("map.npy", Y)
    arguments = ["score", "data.npy", "map.npy", "--json", "--quiet"]
    terms = ["--metric", "cosine", "--dof", "0.5", "--perplexity", "auto", "--neighbors", "7"]
    assert main([*arguments, *terms, "--by-point", "points.csv"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "acctsne: wrote points.csv\n"
    how: dict[str, Any] = {"metric": "cosine", "dof": 0.5, "perplexity": "auto"}
    found = quality.report(X, Y, n_neighbors=7, **how)
    assert json.loads(printed.out) == pytest.approx(
        {
            "exact KL divergence": quality.exact_kl(X, Y, **how),
            "force error, auto": quality.force_error(Y, "auto", dof=0.5),
            "7-neighbour preservation": quality.neighbor_preservation(X, Y, 7, metric="cosine"),
            **found.means,
        },
        abs=1e-5,
    )
    assert Path("points.csv").read_text().startswith("kept_7,trustworthiness_7,")


def test_errors_of_score_name_the_flag(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save("map.npy", np.load("data.npy")[:, 20:22])

    def never(*_: Any, **__: Any) -> float:
        raise AssertionError("computed before all is checked")

    monkeypatch.setattr(quality, "exact_kl", never)
    monkeypatch.setattr(quality, "force_error", never)
    by_point = ["--by-point", "points.csv"]
    for flags, said in [
        (["--neighbors", "75", *by_point], "--neighbors: n_neighbors must be between 1 and half"),
        (["--perplexity", "150", *by_point], "--perplexity: perplexity must be between 0 and n_s"),
        (["--perplexity", "few", *by_point], "--perplexity: perplexity must be a number, 'auto'"),
        (["--metric", "hamming", *by_point], "--metric: metric must be one of euclidean"),
        (["--by-point", "points.png"], "--by-point: points.png: cannot write '.png'"),
        (["--by-point", "no/points.csv"], "--by-point: no/points.csv: no such folder"),
        (["--columns", "a"], "only tables have columns to choose"),
    ]:
        assert said in failure(capsys, "score", "data.npy", "map.npy", *flags)
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    for flags, said in [
        (["--dof", "none"], "--dof: The 'dof' parameter"),
        (["--method", "magic"], "--method: The 'method' parameter of force_error must be"),
        (["--neighbors", "150"], "--neighbors: n_neighbors must be between 1 and n_samples - 1"),
        (["--threads", "0"], "--threads: "),
    ]:
        assert said in failure(capsys, "score", "data.npy", "map.npy", *flags)


def test_what_is_known_of_points_can_be_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X = np.load("data.npy")
    np.save("map.npy", X[:, 20:22])
    assert main(["score", "data.npy", "map.npy", "--by-point", "points.csv"]) == 0
    columns = quality.report(X, X[:, 20:22]).columns()
    # Stretch is missing where all nearest neighbours are in the same place.
    with pytest.MonkeyPatch.context() as patched:
        drawn: list[Any] = []
        patched.setattr(
            "acctsne.cli.plot.plot.save", lambda Y, path, **how: drawn.append(how["values"])
        )
        for name in ("kept_10", "stretch"):
            assert main(["plot", "map.npy", "-o", "a.png", "--values", f"points.csv:{name}"]) == 0
            np.testing.assert_allclose(drawn.pop(), columns[name], rtol=1e-8)
    assert main(["plot", "map.npy", "-o", "a.png", "--values", "points.csv:kl"]) == 0
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    view = ["view", "map.npy", "-o", "page.html", "--no-browser"]
    assert main([*view, "--hover", "points.csv"]) == 0
    about = json.loads(re.findall(r'id="about">(.*?)</script>', Path("page.html").read_text())[0])
    assert [column["name"] for column in about["columns"]] == list(columns)
    assert about["columns"][list(columns).index("kl")]["kind"] == "number"
    assert main(["view", "map.npy", *view[1:], "--hover", "points.csv"]) == 0  # two maps, same rows
    Path("few.csv").write_text("a\n1\n")
    Path("holes.csv").write_text("a,b\nnan,2\n" + "1,2\n" * 149)
    Path("words.csv").write_text("a,b\n" + "x,1\n" * 150)
    np.save("few.npy", X[:20, :2])
    capsys.readouterr()
    plot = ["plot", "map.npy", "-o", "a.png", "--values"]
    for command, said in [
        ([*plot, "points.csv"], "--values: points.csv: 13 columns; choose one, as points.csv:kept"),
        ([*plot, "holes.csv"], "--values: holes.csv: 2 columns; choose one, as holes.csv:a"),
        ([*plot, "points.csv:no"], "--values: points.csv: no column 'no'; there are kept_10, "),
        ([*plot, "few.csv:a"], "--values: few.csv: 1 rows for 150 points"),
        ([*plot, "words.csv:a"], "--values: words.csv: column 'a' holds text"),
        ([*plot, "absent.csv:a"], "--values: absent.csv: no such file"),
        ([*plot, "data.npy:a"], "--values: data.npy: no table of named columns"),
        ([*view, "--hover", "few.csv"], "--hover: few.csv: 1 rows for 150 points"),
        ([*view, "--hover", "few.csv", "few.csv"], "--hover: 2 tables for 1 maps; give one"),
        ([*view, "--labels", "kind"], "--labels: map.npy: holds no labels"),
        (["plot", "map.npy", "-o", "a.png", "--labels", "kind"], "--labels: map.npy: holds no"),
        ([*view, "--ids", "few.csv"], "--ids: "),
        (["view", "map.npy", "few.npy", *view[2:]], "--ids: maps have [150, 20] points"),
    ]:
        assert said in failure(capsys, *command), command


def test_info(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["acctsne"] == acctsne.__version__
    assert told["simd_level"] == acctsne.build_info()["simd_level"]
    assert main(["info"]) == 0
    assert "simd_level" in capsys.readouterr().out


def test_demo(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--output", "out"]) == 0
    said = capsys.readouterr().out
    assert "KL divergence, exact" in said
    assert "pip install" not in said
    names = sorted(file.name for file in Path("out").iterdir())
    assert names == ["digits.html", "digits.npy", "digits.png"]
    assert all(f"out/{name}" in said for name in names)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"usage: acctsne {name} ")
    assert len(printed.splitlines()) > 4  # more than -h itself


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"acctsne {acctsne.__version__}\n"


# Pictures and maps for new points: that the commands hand over what they should.


def test_pictures(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = ["--plot", "map.png", "--html", "map.html", "--movie", "fit.gif"]
    assert main(["embed", "data.npz", "-o", "map.csv", *pictures, *FAST]) == 0
    assert Path("map.png").read_bytes().startswith(b"\x89PNG")
    assert Path("fit.gif").read_bytes().startswith(b"GIF8")
    assert "<html" in Path("map.html").read_text()

    assert main(["plot", "map.csv", "-o", "other.svg", "--title", "Digits"]) == 0
    assert "<svg" in Path("other.svg").read_text()
    np.save("weights.npy", np.linspace(0, 1, 150))
    assert main(["plot", "map.csv", "-o", "weights.pdf", "--values", "weights.npy"]) == 0
    assert Path("weights.pdf").read_bytes().startswith(b"%PDF")

    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert main(["view", "map.csv", "-o", "page.html", "--no-browser"]) == 0
    assert opened == []
    assert main(["view", "map.csv"]) == 0
    assert opened == [(folder / "map.html").as_uri()]


def test_view_replaces_pages_alone_without_being_asked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    io.write("map.csv", np.random.default_rng(0).normal(size=(20, 2)))
    for _ in range(2):
        assert main(["view", "map.csv", "--no-browser"]) == 0
    Path("map.html").write_text("<!DOCTYPE html>\nprecious")
    capsys.readouterr()
    said = failure(capsys, "view", "map.csv", "--no-browser")
    assert "error: -o: map.html: exists, and is no page that acctsne has written" in said
    assert Path("map.html").read_text() == "<!DOCTYPE html>\nprecious"
    assert main(["view", "map.csv", "-o", "map.html", "--no-browser"]) == 0


def test_view_of_several_maps(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Y = np.random.default_rng(0).normal(size=(30, 2))
    io.write("old.csv", Y[:20], labels=np.arange(20) % 2)
    io.write("new.csv", Y[10:], labels=np.arange(10, 30) % 2)
    Path("old.txt").write_text("".join(f"cell {i}\n" for i in range(20)))
    Path("new.txt").write_text("".join(f"cell {i}\n" for i in range(10, 30)))
    ids = ["--ids", "old.txt", "new.txt"]
    assert main(["view", "old.csv", "new.csv", *ids, "-o", "both.html", "--no-browser"]) == 0
    page = Path("both.html").read_text()
    about = json.loads(re.findall(r'id="about">(.*?)</script>', page)[0])
    assert about["maps"] == ["old", "new"]
    assert about["ids"] == [f"cell {i}" for i in range(30)]
    assert about["names"] == ["0", "1"]
    Path("old.txt").write_text("".join(f"{i:02}\n" for i in range(20)))  # 01 is not 1
    Path("new.txt").write_text("".join(f"{i}\n" for i in range(10, 30)))
    assert main(["view", "old.csv", "new.csv", *ids, "-o", "both.html", "--no-browser"]) == 0
    about = json.loads(re.findall(r'id="about">(.*?)</script>', Path("both.html").read_text())[0])
    assert about["ids"][:2] == ["00", "01"]
    assert main(["view", "old.csv", "new.csv", "-o", "same.html", "--no-browser"]) == 0
    about = json.loads(re.findall(r'id="about">(.*?)</script>', Path("same.html").read_text())[0])
    assert (about["maps"], about["ids"]) == (["old", "new"], None)
    capsys.readouterr()
    assert main(["view", "old.csv", "new.csv", "--ids", "old.txt", "--no-browser"]) != 0
    assert "--ids: 1 files of ids for 2 maps" in capsys.readouterr().err


def test_transform(folder: Path) -> None:
    assert main(["embed", "data.npy", "-o", "map.npy", "--map", "fitted.npz", *FAST]) == 0
    assert main(["transform", "fitted.npz", "data.npy", "-o", "again.npy"]) == 0
    np.testing.assert_allclose(np.load("again.npy"), np.load("map.npy"), atol=1e-5)
    X = np.load("data.npy")
    np.save("new.npy", X[:20] + 0.01)
    assert main(["transform", "fitted.npz", "new.npy", "-o", "new_map.csv"]) == 0
    assert io.read("new_map.csv").X.shape == (20, 2)


@pytest.mark.parametrize("name", ["new.csv", "new.parquet"])
def test_transform_finds_columns_by_name(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.read_csv("data.csv")
    write = (
        pd.DataFrame.to_parquet
        if name == "new.parquet"
        else partial(pd.DataFrame.to_csv, index=False)
    )
    fit = ["embed", "data.csv", "--labels", "digit", "--map", "fitted.npz", "-o", "map.npy"]
    assert main([*fit, *FAST]) == 0
    write(frame[frame.columns[::-1]].assign(extra=1.5, note="x"), name)
    assert main(["transform", "fitted.npz", name, "-o", "again.npy"]) == 0
    np.testing.assert_array_equal(np.load("again.npy"), np.load("map.npy"))
    assert "warning" not in capsys.readouterr().err
    write(frame.rename(columns={"p7": "q7"}), name)
    said = failure(capsys, "transform", "fitted.npz", name, "-o", "again.npy")
    assert f"MAP has columns of names: --columns: {name}: no column 'p7'; there are 'p0'" in said
    # Whoever names the columns knows which they are, and arrays have none.
    given = ["--columns", ",".join(frame.columns[:-1]).replace("p7", "q7")]
    np.save("new.npy", frame.to_numpy()[:, :-1])
    for arguments in ([name, *given], ["new.npy"]):
        assert main(["transform", "fitted.npz", *arguments, "-o", "again.npy"]) == 0
        np.testing.assert_array_equal(np.load("again.npy"), np.load("map.npy"))


def test_transform_without_a_map(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = failure(capsys, "transform", "absent.npz", "data.npy", "-o", "new.npy")
    assert "absent.npz: no such file" in said


@pytest.mark.parametrize(
    ("absent", "written", "said"),
    [
        (["matplotlib"], ["digits.html", "digits.npy"], "'acctsne[plot]' adds a picture"),
        (
            ["matplotlib", "plotly"],
            ["digits.npy"],
            "'acctsne[plot,html]' adds a picture and a page for the browser",
        ),
    ],
)
def test_demo_without_what_draws(
    absent: list[str],
    written: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in absent]:
        monkeypatch.delitem(sys.modules, name)
    for name in absent:
        monkeypatch.setitem(sys.modules, name, None)
    assert main(["demo", "--output", str(tmp_path / "demo")]) == 0
    found = capsys.readouterr()
    assert found.out.endswith(f"\npip install {said}\n")
    assert not found.err
    assert sorted(file.name for file in (tmp_path / "demo").iterdir()) == written
    assert np.load(tmp_path / "demo" / "digits.npy").shape == (1797, 2)


def test_values_of_options_that_are_none(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["embed", "data.npy", "--momentum", "0.5,x"])
    said = capsys.readouterr().err
    assert "two numbers with a comma between them; got '0.5,x'" in said
    assert "tuple" not in said


def test_an_initial_layout_that_is_not_there(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["embed", "data.npy", "--init", "absent.npy"])
    said = capsys.readouterr().err
    assert "or a file that holds positions; got 'absent.npy'" in said
    assert "ndarray" not in said


def test_help_is_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["embed", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert not re.search(r":\w+:", said)
    assert said.count("two with a comma are for early exaggeration and for the rest") == 2


def test_demo_needs_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = failure(capsys, "demo", "--output", "data.npy")
    assert "--output: data.npy is a file; name a folder" in said
