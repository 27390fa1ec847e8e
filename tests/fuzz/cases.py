"""Cases by kind and seed: inputs and calls that no sane user would make."""

import contextlib
import io as text_io
import json
import os
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp

from acctsne import TSNE, Affinities, Embedding, io, nearest_neighbors
from acctsne.cli import main as command
from acctsne.embedding.checkpoint import Checkpoint
from acctsne.estimator import fit_with_checkpoint
from acctsne.files.formats import read_columns, read_ids
from acctsne.interop import fitsne
from fuzz.files import (
    ROWS,
    SAMPLES,
    checkpointed,
    damaged,
    damaged_somehow,
    digits,
    put,
    whole_files,
)
from fuzz.harness import foreign_words

Array = npt.NDArray[Any]
Case = Callable[[], None]


# Files


def file_case(seed: int) -> Case:
    """Read a damaged file, by function or by command."""
    rng = np.random.default_rng(seed)
    name = str(rng.choice(sorted(whole_files())))
    content = damaged_somehow(name, whole_files()[name], rng)
    by_command = rng.random() < 0.3

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = put(Path(folder), name, content)
            if by_command and "." in name and not name.startswith(("labels", "ids", "hover")):
                output = Path(folder) / "map.npy"
                options = ["--max-iter", "250", "--perplexity", "5", "--quiet"]
                call(["embed", str(path), "-o", str(output), *options], {output})
            else:
                read_file(path)

    return run


def read_file(path: Path) -> None:
    """Read what `whole_files` made, however it is meant to be read."""
    name = path.name
    X = digits()[:ROWS, :12]
    if name == "embedding.archive.npz":
        assert_finite(Embedding.load(path).optimize(2).positions)
    elif name == "tsne.archive.npz":
        assert_finite(TSNE.load(path).transform(X[:3] + 0.25))
    elif name == "checkpoint.archive.npz":
        tsne = fit_with_checkpoint(checkpointed(), X, Checkpoint(path, 1000, True))
        assert_finite(tsne.embedding_)
    elif name == "checkpoints":
        from acctsne import distributed
        from acctsne.distributed.estimator import fit_with_checkpoint as fit_from_folder

        tsne = checkpointed(distributed.TSNE)
        fit_from_folder(tsne, X, path, every=1000, resume=True)
        assert_finite(tsne.gather())
    elif name.startswith("labels"):
        check(len(io.read_labels(path, ROWS)) == ROWS, "labels")
    elif name.startswith("ids"):
        check(len(read_ids(path, ROWS)) == ROWS, "ids")
    elif name.startswith("hover"):
        check(all(len(column) == ROWS for column in read_columns(path, ROWS).values()), "columns")
    else:
        read = io.read(path)
        assert_finite(read.X.data if sp.issparse(read.X) else np.asarray(read.X))


# Commands

# What a hand, a script or an unset variable puts in the place of a value.
ODD = ["", " ", "nan", "inf", "-inf", "-1", "0", "1.5", "1e309", "-0.0", "2147483648", "9" * 30,
       "0x10", "nothing", "None", "ä", "a,b", ",", "-", "--", ".", "/", "absent/x.npy", "map.npy",
       "[1,2]", "x.csv:f0", "x.csv:label", "x.csv:"]  # fmt: skip
# What may have a meaning, so that a command comes further than its options.
SENSIBLE = ["1", "2", "3", "0.5", "label", "kind", "f0", "f0,f1", "X", "X_pca", ";", "cosine",
            "exact", "auto", "random", "float64", "sklearn", "out.csv", "fit.npz",
            "checkpoint.archive.npz", "checkpoints"]  # fmt: skip

READING = ["--labels", "--key", "--columns", "--drop", "--delimiter"]
# The options of each command that take a value, and those that do not.
COMMANDS: dict[str, tuple[list[str], list[str]]] = {
    "embed": (
        [*READING, "--plot", "--html", "--map", "--checkpoint", "--checkpoint-every", "--init",
         "--write-neighbors", "--n-components", "--perplexity", "--early-exaggeration", "--dof",
         "--learning-rate", "--max-iter", "--metric", "--metric-params", "--seed", "--method",
         "--angle", "--threads", "--schedule", "--dtype", "--force-error", "--momentum",
         "--max-step", "--tol", "--neighbors", "--late-exaggeration-start"],
        ["--header", "--no-header", "--resume", "--json", "--keep-partial"],
    ),
    "transform": (READING, ["--header", "--no-header"]),
    "plot": (["--labels", "--values", "--title"], []),
    "view": (["--labels", "--ids", "--hover", "--title"], []),
    "score": (
        [*READING, "--perplexity", "--metric", "--dof", "--neighbors", "--method", "--by-point",
         "--threads"],
        ["--header", "--no-header", "--json"],
    ),
}  # fmt: skip


def command_case(seed: int) -> Case:
    """Call a command with files that may be damaged or of another kind, and odd values."""
    rng = np.random.default_rng(seed)
    files = dict(whole_files())
    names = sorted(files)

    def some(*usual: str) -> str:
        chosen = str(rng.choice(usual if rng.random() < 0.7 else names))
        if rng.random() < 0.2:
            files[chosen] = damaged_somehow(chosen, files[chosen], rng)
        return chosen

    name = str(rng.choice(sorted(COMMANDS)))
    valued, plain = COMMANDS[name]
    data = ("x.npy", "x.csv", "x.parquet", "x.h5ad", "sparse.npz", "x.zarr")
    output = {"plot": "out.png", "view": "out.html"}.get(name, "out.csv")
    arguments = {
        "embed": lambda: [some(*data), "-o", output, "--max-iter", "250", "--perplexity", "5"],
        "transform": lambda: [some("tsne.archive.npz"), some(*data), "-o", output],
        "plot": lambda: [some("map.npy", "map.csv"), "-o", output],
        "view": lambda: [
            *(some("map.npy", "map.csv") for _ in range(int(rng.integers(1, 3)))),
            *("-o", output, "--no-browser"),
        ],
        "score": lambda: [some(*data), some("map.npy", "map.csv"), "--perplexity", "5"],
    }[name]()
    for _ in range(int(rng.integers(0, 4))):
        if plain and rng.random() < 0.2:
            arguments.append(str(rng.choice(plain)))
            continue
        value = str(rng.choice(ODD if rng.random() < 0.5 else SENSIBLE))
        if rng.random() < 0.3:
            value = some("labels.txt", "labels.csv", "ids.txt", "hover.csv")
        arguments.append(f"{rng.choice(valued)}={value}")

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            for file, content in files.items():
                put(Path(folder), file, content)
            os.chdir(folder)
            call([name, *arguments], set() if name == "score" else {Path(output)})
            os.chdir("/")

    return run


def call(arguments: list[str], written: set[Path]) -> None:
    """Run a command, and check what it says and writes."""
    said = text_io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            code = command(arguments)
        except SystemExit as ended:  # of argparse
            check(ended.code == 2, f"{arguments}: exit code {ended.code}")
            code = 2
    words = said.getvalue()
    check(code in (0, 1, 2), f"{arguments}: exit code {code}")
    check("Traceback" not in words, f"{arguments}: {words}")
    check(code == 0 or "error: " in words, f"{arguments}: exit code {code} and {words!r}")
    check(not foreign_words(words), f"{arguments}: {words}")
    for path in written if code == 0 else ():
        check(path.exists(), f"{arguments}: no {path}")


# Arrays and parameters


def strange_data(rng: np.random.Generator) -> Any:
    """Make data of any kind."""
    n, d = int(rng.integers(1, 70)), int(rng.integers(1, 20))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-300, 300, endpoint=True)
    kind = rng.integers(15)
    if kind == 0:
        X[rng.integers(n), rng.integers(d)] = rng.choice([np.nan, np.inf, -np.inf])
    elif kind == 1:
        X = np.repeat(X[:1], n, axis=0)
    elif kind == 2:
        X = X.astype(rng.choice(["f2", "i1", "u8", "c16", "O", "U5", "?"]))
    elif kind == 3:
        X = X[:, 0]
    elif kind == 4:
        X = X[None]
    elif kind == 5:
        return sp.random(n, d, 0.3, format=str(rng.choice(["csr", "csc", "coo", "lil", "dok"])))
    elif kind == 6:
        return broken_sparse(rng, n, d)
    elif kind == 7:
        return pd.DataFrame(X)
    elif kind == 8:
        X = np.asfortranarray(X)[::2]
    elif kind == 9:
        return X.tolist()
    elif kind == 10:
        X = np.ma.masked_array(X, mask=rng.random(X.shape) < 0.1)
    elif kind == 11:
        X = np.sign(X) * rng.uniform(0.5, 1, size=X.shape)
        wide = np.dtype(rng.choice(["f4", "f8"]))
        X = (X * np.finfo(wide).max).astype(wide)
    elif kind == 12:
        return list(sp.csr_matrix(X)) if rng.random() < 0.5 else [dict(enumerate(x)) for x in X]
    else:
        X = rng.normal(size=(n, d))
    return X


def broken_sparse(rng: np.random.Generator, n: int, d: int) -> Any:
    """Make a sparse matrix whose parts do not fit."""
    X = sp.random(max(n, 3), max(d, 3), 0.5, format="csr", rng=rng)
    part = str(rng.choice(["indices", "indptr", "data"]))
    array = getattr(X, part)
    if part == "data":
        X.data = array[: len(array) // 2]
    else:
        array[rng.integers(len(array))] = rng.choice([-5, 10**6, 2**31 - 1])
    return X if rng.random() < 0.7 else X.T


PARAMETERS: dict[str, list[Any]] = {
    "n_components": [1, 2, 3, 4, 0, -1, 2.5, "2", 70],
    "perplexity": [1, 5, np.float16(5), 0.5, 1e-9, 1e9, 0, -1, np.nan, np.inf, "5", None],
    "early_exaggeration": [1, 4, 12, 1e6, 0.5, 0, -1, np.nan],
    "learning_rate": ["auto", 1e-9, 100, 1e30, np.inf, 0, (1, 2), (1,), "fast"],
    "max_iter": [250, 251, 300, 249, 0, -1, 2**31, "many"],
    "metric": ["euclidean", "cosine", "correlation", "manhattan", "precomputed", "sokalsneath",
               "mahalanobis", "nothing", 3, lambda a, b: float("nan"), lambda a, b: "x"],
    "init": ["pca", "random", "spectral", "multilevel", "nothing", np.zeros((3, 2)), None],
    "method": ["auto", "exact", "barnes_hut", "fft", "nothing", None],
    "angle": [0, 0.5, 1, 2, -1, np.nan],
    "n_jobs": [None, 1, 2, 3, -1, 0, 2**31, 2**70, 1.5],
    "dtype": [np.float32, np.float64, "float32", int, "x", None],
    "force_error": [0.02, 1e-4, 0.2, 0, 1, np.nan],
    "dof": [0.5, 1, 10, 1e3, 1e-3, 0, -1, "sklearn", np.nan],
    "late_exaggeration": [1, 2, 1e9, 0, np.nan],
    "late_exaggeration_start": [None, 0, 100, 10**9, -1],
    "momentum": ["auto", 0, 0.99, 1, -1, (0.5, 0.8), np.nan],
    "max_step": ["auto", 1e-9, 1e9, 0, np.nan],
    "tol": ["auto", 0, 0.5, 1, -1, np.nan],
    "neighbors": ["auto", "exact", "approximate", "nothing"],
    "schedule": ["fast", "sklearn", "nothing"],
    "random_state": [None, 0, -1, 2**40, "x"],
    "verbose": [0, 1, -1, "x"],
    "callback": [None, print, len, [], lambda *report: False, lambda *report: [report]],
    "callback_every": [50, np.int8(50), np.uint8(7), 0, 2.0, 10**12],
}  # fmt: skip


def fit_case(seed: int) -> Case:
    """Fit anything with any parameters."""
    rng = np.random.default_rng(seed)
    X = digits() if rng.random() < 0.4 else strange_data(rng)
    chosen = rng.choice(sorted(PARAMETERS), size=int(rng.integers(1, 5)), replace=False)
    given = {str(name): PARAMETERS[name][rng.integers(len(PARAMETERS[name]))] for name in chosen}

    def run() -> None:
        tsne = TSNE(**{"perplexity": 5, "max_iter": 250, **given})
        assert_finite(tsne.fit_transform(X))
        if rng.random() < 0.3:
            assert_finite(tsne.transform(strange_data(rng)))

    return run


def part_case(seed: int) -> Case:
    """Call the parts that TSNE is made of."""
    rng = np.random.default_rng(seed)
    X = strange_data(rng)
    kind = rng.integers(5)
    k = rng.choice([1, 3, 10, 0, -1, 10**6])

    def run() -> None:
        if kind == 0:
            found = nearest_neighbors(
                X, int(k), mode="auto" if rng.random() < 0.5 else "approximate"
            )
            assert_finite(found.distances)
        elif kind == 1:
            assert_finite(Affinities.from_matrix(X).values)
        elif kind == 2:
            assert_finite(Affinities.from_distances(X, perplexity=2).values)
        elif kind == 3:
            indices = rng.integers(-1, 12, size=(10, 3))
            distances = rng.normal(size=(10, int(rng.integers(2, 5))))
            assert_finite(Affinities.from_neighbors(indices, distances, perplexity=2).values)
        else:
            assert_finite(Affinities.from_data(X, perplexity=2, kind="uniform").values)

    return run


def embedding_case(seed: int) -> Case:
    """Call the methods of an Embedding in any order."""
    rng = np.random.default_rng(seed)

    def run() -> None:
        P = Affinities.from_data(digits(), perplexity=float(rng.choice([2, 5, 15])))
        embedding = Embedding(P, str(rng.choice(["random", "spectral"])), random_state=seed)
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(int(rng.integers(1, 8))):
                act = rng.integers(7)
                if act <= 2:
                    embedding.optimize(
                        int(rng.integers(1, 60)),
                        exaggeration=float(rng.choice([0.1, 1, 4, 12, 1e5])),
                        learning_rate=rng.choice([1e-3, 100, 1e6])
                        if rng.random() < 0.5
                        else "auto",
                        momentum=float(rng.choice([0, 0.5, 0.99])),
                        fixed=rng.integers(0, SAMPLES, size=3) if rng.random() < 0.3 else None,
                    )
                elif act == 3:
                    embedding = embedding.copy()
                elif act == 4:
                    embedding.save(f"{folder}/map.npz")
                    embedding = Embedding.load(f"{folder}/map.npz", n_jobs=int(rng.integers(1, 4)))
                elif act == 5:
                    check(np.isfinite(embedding.kl(exact=bool(rng.integers(2)))), "KL")
                else:
                    near = rng.integers(-1, SAMPLES + 1, size=(2, 5))
                    assert_finite(embedding.transform(near, abs(rng.normal(size=(2, 5)))))
                assert_finite(embedding.positions)

    return run


def protocol_case(seed: int) -> Case:
    """Run `fast_tsne` on a file whose fields are anything."""
    rng = np.random.default_rng(seed)
    X = digits()[:40, :5].copy()
    settings: dict[str, Any] = {
        "n": 40, "d": 5, "theta": 0.5, "perplexity": 5, "no_dims": 2, "max_iter": 60,
        "stop_early_exag_iter": 20, "momentum": 0.5, "final_momentum": 0.8, "learning_rate": 100,
        "max_step_norm": 5, "nbody_algo": 2, "early_exag_coeff": 12, "start_late_exag_iter": -1,
        "late_exag_coeff": -1, "df": 1,
    }  # fmt: skip
    kinds = {**fitsne.SIZES, **fitsne.SETTINGS, **fitsne.ENDING}
    for _ in range(int(rng.integers(1, 3))):
        name = str(rng.choice(sorted(kinds)))
        integers = [0, 1, 2, 3, -1, 40, 1000, 2**31 - 1, -(2**31)]
        reals = [0, 1, -1, 1e-300, 1e300, np.nan, np.inf, -np.inf, 0.5]
        settings[name] = rng.choice(integers if kinds[name] == "i" else reals)

    def packed(layout: dict[str, str]) -> bytes:
        values = [
            int(settings.get(name, 0)) if kind == "i" else float(settings.get(name, 0))
            for name, kind in layout.items()
        ]
        return struct.pack("=" + "".join(layout.values()), *values)

    parts = [packed(fitsne.SIZES), packed(fitsne.SETTINGS), X.tobytes(), packed(fitsne.ENDING)]
    content = b"".join(parts)
    if rng.random() < 0.3:
        content = damaged(content, rng)

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "data.dat", Path(folder) / "result.dat"
            source.write_bytes(content)
            code = fitsne.main(["1.2.1", str(source), str(target), "2"])
            check(code in (0, 1), f"exit code {code}")
            check((code == 0) == target.exists(), f"exit code {code} and the file do not agree")
            if code == 0:
                written = target.read_bytes()
                n, dims = struct.unpack("=ii", written[:8])
                assert_finite(np.frombuffer(written[8 : 8 + 8 * n * dims]))

    return run


def settings_case(seed: int) -> Case:
    """Change one value in the settings of one of our archives."""
    rng = np.random.default_rng(seed)
    name = str(rng.choice(["embedding.archive.npz", "tsne.archive.npz"]))
    with np.load(text_io.BytesIO(whole_files()[name])) as archive:
        arrays = {member: archive[member] for member in archive.files}
    header = json.loads(str(arrays.pop("header")))
    place = header["settings"]
    for _ in range(int(rng.integers(1, 4))):
        tables = [key for key, value in place.items() if isinstance(value, dict) and value]
        if not tables or rng.random() < 0.3:
            break
        place = place[str(rng.choice(tables))]
    key = str(rng.choice(sorted(place)))
    place[key] = [None, -1, 1e308, "text", [], {}, True, 2**70, 0.5][rng.integers(9)]

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "changed.npz"
            np.savez(path, header=np.array(json.dumps(header)), **arrays)
            if name.startswith("embedding"):
                assert_finite(Embedding.load(path).optimize(2).positions)
            else:
                assert_finite(TSNE.load(path).transform(digits()[:3, :12] + 0.25))

    return run


KINDS: dict[str, Callable[[int], Case]] = {
    "files": file_case,
    "commands": command_case,
    "settings": settings_case,
    "fits": fit_case,
    "parts": part_case,
    "embeddings": embedding_case,
    "protocol": protocol_case,
}


def run_one(kind: str, seed: int) -> None:
    """Make a case and run it here."""
    KINDS[kind](seed)()


class NonsenseError(Exception):
    """What came back cannot be."""


def check(condition: bool, what: str) -> None:
    if not condition:
        raise NonsenseError(what)


def assert_finite(values: Any) -> None:
    array = np.asarray(values)
    check(array.dtype.kind in "biuf", f"values of type {array.dtype}")
    check(bool(np.isfinite(array).all()), "values that are not finite")
