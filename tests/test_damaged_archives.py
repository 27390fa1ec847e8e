"""Our own archives after something happened to them: one clear error, or all is well."""

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_matrix

from acctsne import TSNE, Affinities, Embedding
from acctsne.embedding import optimizer_archive
from acctsne.embedding.checkpoint import Checkpoint
from acctsne.estimator import fit_with_checkpoint
from acctsne.files.archive import write_archive

Array = npt.NDArray[Any]
Members = dict[str, Array]


def small(**parameters: Any) -> TSNE:
    return TSNE(perplexity=10, max_iter=250, random_state=0, **parameters)


def write_embedding(X: Array, path: Path) -> None:
    Embedding(Affinities.from_data(X, perplexity=10), "random", random_state=0).optimize(5).save(
        path
    )


def write_matrix_embedding(X: Array, path: Path) -> None:
    P = Affinities.from_data(X, perplexity=10, dtype=np.float64).to_scipy()
    given = Affinities.from_matrix(P, dtype=np.float64)
    Embedding(given, "random", random_state=0, method="barnes_hut").optimize(5).save(path)


def write_checkpoint(X: Array, path: Path) -> None:
    def stop(iteration: int, _kl: float, _positions: Array) -> bool:
        return iteration >= 120

    fit_with_checkpoint(small(callback=stop), X, Checkpoint(path, 100, False))


def use_embedding(path: Path, X: Array) -> Array:
    return Embedding.load(path).optimize(3).positions


def use_estimator(path: Path, X: Array) -> Array:
    return TSNE.load(path).transform(X[:5] + 0.5)


def use_checkpoint(path: Path, X: Array) -> Array:
    return fit_with_checkpoint(small(), X, Checkpoint(path, 100, True)).embedding_


WRITERS: dict[str, tuple[Callable[[Array, Path], None], Callable[[Path, Array], Array]]] = {
    "embedding": (write_embedding, use_embedding),
    "embedding of a matrix": (write_matrix_embedding, use_embedding),
    "checkpoint": (write_checkpoint, use_checkpoint),
    "estimator": (lambda X, path: small().fit(X).save(path), use_estimator),
    "estimator of sparse data": (
        lambda X, path: small(init="random").fit(csr_matrix(X)).save(path),
        use_estimator,
    ),
}


def with_one(value: Any) -> Callable[[Array], Array]:
    def change(array: Array) -> Array:
        changed = array.astype(array.dtype if array.dtype.kind in "fi" else np.float64)
        if changed.size:
            if changed.dtype.kind == "i":
                limits = np.iinfo(changed.dtype)
                changed.flat[0] = int(np.clip(np.nan_to_num(value), limits.min, limits.max - 1024))
            else:
                changed.flat[0] = value
        return changed

    return change


ARRAY_DAMAGE: dict[str, Callable[[Array], Any]] = {
    "NaN": with_one(np.nan),
    "infinite": with_one(np.inf),
    "huge": with_one(1e30),
    "negative": with_one(-7),
    "1-D": lambda array: array.reshape(-1),
    "3-D": lambda array: array[..., None],
    "no rows": lambda array: array[:0],
    "one row less": lambda array: array[:-1],
    "complex": lambda array: array.astype(complex) if array.dtype.kind in "fi" else array,
    "half": lambda array: array.astype(np.float16) if array.dtype.kind in "fi" else array,
    "text": lambda array: np.array(["a", "b"]),
    "a scalar": lambda array: np.array(1.0),
    "backwards": lambda array: array[::-1].copy(),
    "all equal": np.zeros_like,
    "missing": lambda array: None,
}
VALUES: tuple[Any, ...] = (
    None,
    -1,
    1e308,
    float("nan"),
    "text",
    [],
    [1],
    {},
    True,
    2**70,
    10**400,
    [None],
)


@pytest.fixture(scope="module", params=WRITERS)
def archive(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, X: Array
) -> tuple[Members, Path, Callable[[Path, Array], Array]]:
    write, use = WRITERS[request.param]
    path = tmp_path_factory.mktemp("archive") / "kept.npz"
    write(X, path)
    with np.load(path) as members:
        return {name: members[name] for name in members.files}, path, use


def assert_clear(path: Path, X: Array, use: Callable[[Path, Array], Array], what: str) -> bool:
    """Use a changed archive; tells whether it was refused."""
    said = ""
    try:
        result = use(path, X)
    except ValueError as error:
        said = str(error) or "nothing"
    except Exception as error:
        raise AssertionError(what) from error
    assert "incompatible function arguments" not in said, what
    assert said or np.isfinite(result).all(), what
    return bool(said)


@pytest.mark.filterwarnings("ignore")
def test_arrays(
    archive: tuple[Members, Path, Callable[[Path, Array], Array]], tmp_path: Path, X: Array
) -> None:
    members, _, use = archive
    path = tmp_path / "damaged.npz"
    refused = 0
    for name in members:
        if name == "header":
            continue
        for what, damage in ARRAY_DAMAGE.items():
            changed = damage(members[name])
            rest: dict[str, Any] = {key: array for key, array in members.items() if key != name}
            if changed is not None:
                rest[name] = changed
            np.savez(path, **rest)
            refused += assert_clear(path, X, use, f"{name}: {what}")
    # Most of it cannot go unnoticed.
    assert refused > 5 * (len(members) - 1)


def settings_with(settings: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Change one value at a time, or leave it out."""
    if isinstance(settings, dict):
        for name, value in settings.items():
            rest = {other: one for other, one in settings.items() if other != name}
            yield f"{name} missing", rest
            for other_value in VALUES:
                yield f"{name}={other_value!r}", {**settings, name: other_value}
            for what, changed in settings_with(value):
                yield f"{name}.{what}", {**settings, name: changed}


@pytest.mark.filterwarnings("ignore")
def test_settings(
    archive: tuple[Members, Path, Callable[[Path, Array], Array]], tmp_path: Path, X: Array
) -> None:
    members, _, use = archive
    path = tmp_path / "damaged.npz"
    header = json.loads(str(members["header"]))
    arrays: dict[str, Any] = {key: array for key, array in members.items() if key != "header"}
    refused = 0
    for what, changed in settings_with(header):
        if what.startswith(("settings.fitted", "settings.of.parameters")):
            continue  # told to the user or compared, never computed with
        np.savez(path, header=np.array(json.dumps(changed)), **arrays)
        refused += assert_clear(path, X, use, what)
    assert refused > 50


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ({"phase": 7}, "phase is 7; there are 2"),
        ({"phase": -1}, "phase is -1"),
        ({"phase": -(10**400)}, "phase is -1000"),
        ({"phase": 0}, "iterations are 100, and phase 0 has those from 0 to 50"),
        ({"recall": 10**400}, "recall is an integer of 401 digits"),
        ({"recall": float("nan")}, "recall is nan"),
        ({"watch": {"kls": [1.0, None]}}, r"kls\[1\] is None"),
        ({"watch": {"kls": [10**400]}}, r"kls\[0\] is an integer of 401 digits"),
        ({"watch": {"best_kl": 10**400}}, "best_kl is an integer of 401 digits"),
        ({"state": {"friction": 10**400}}, "friction is an integer of 401 digits"),
        ({"state": {"work": -(10**400)}}, "work is an integer of 401 digits"),
    ],
)
def test_a_checkpoint_at_a_place_that_is_not_there(
    tmp_path: Path, X: Array, kept: dict[str, Any], said: str
) -> None:
    path = tmp_path / "kept.npz"
    write_checkpoint(X, path)
    with np.load(path) as archive:
        members: dict[str, Any] = {name: archive[name] for name in archive.files}
    header = json.loads(str(members.pop("header")))
    for name, value in kept.items():
        settings = header["settings"]
        settings[name] = {**settings[name], **value} if isinstance(value, dict) else value
    np.savez(path, header=np.array(json.dumps(header)), **members)
    with pytest.raises(ValueError, match=rf"kept\.npz is not a complete acctsne file: {said}"):
        use_checkpoint(path, X)


def test_not_json(tmp_path: Path, X: Array) -> None:
    path = tmp_path / "damaged.npz"
    for text in ("", "{", "[]", "3", '"text"', "null", '{"format": {}}'):
        np.savez(path, header=np.array(text))
        with pytest.raises(ValueError, match=r"damaged\.npz is not a complete acctsne file"):
            Embedding.load(path)


def test_members_that_are_no_arrays(tmp_path: Path, X: Array) -> None:
    whole, path = tmp_path / "whole.npz", tmp_path / "damaged.npz"
    write_embedding(X, whole)
    contents = {
        name: zipfile.ZipFile(whole).read(name) for name in zipfile.ZipFile(whole).namelist()
    }
    for name, content in contents.items():
        for damaged in (
            b"",
            b"\x93NUMPY\x01\x00",
            content[:30],
            b"x" * 200,
            content[:10] + b"{" * 50,
        ):
            with zipfile.ZipFile(path, "w") as archive:
                for other, whole_content in contents.items():
                    archive.writestr(other, damaged if other == name else whole_content)
            with pytest.raises(ValueError, match=r"damaged\.npz is not a complete acctsne file"):
                Embedding.load(path)


def test_programming_errors_are_not_taken_for_damage(
    tmp_path: Path, X: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*_: Any) -> None:
        raise AttributeError("a mistake of ours")

    path = tmp_path / "kept.npz"
    write_embedding(X, path)
    monkeypatch.setattr(optimizer_archive, "read_affinities", wrong)
    with pytest.raises(AttributeError, match="a mistake of ours"):
        Embedding.load(path)


def test_an_archive_holds_what_it_is_given_and_no_pickles(tmp_path: Path) -> None:
    path = tmp_path / "some.npz"
    write_archive(path, "some", {}, {"rows": np.eye(2)})
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        write_archive(path, "some", {}, {"rows": np.array([{}], dtype=object)})
    with np.load(path) as archive:
        assert sorted(archive) == ["header", "rows"]
        assert np.array_equal(archive["rows"], np.eye(2))
