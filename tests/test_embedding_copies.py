"""Embeddings in files, pickled and copied: they go on, and what is no such file is refused."""

import copy
import pickle
import re
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from acctsne import TSNE, Affinities, Embedding
from helpers import assert_same_bits, start

Array = npt.NDArray[Any]


class TestCopies:
    # Before the first iteration, and about where points are numbered anew.
    @pytest.mark.parametrize("at", [0, 1, 49, 50, 51])
    @pytest.mark.parametrize("double", [False, True])
    @pytest.mark.parametrize("how", ["file", "pickle", "copy", "copy.copy"])
    def test_goes_on_with_the_same_bits(
        self, P: Affinities, P64: Affinities, tmp_path: Path, at: int, double: bool, how: str
    ) -> None:
        def through_a_file(embedding: Embedding) -> Embedding:
            embedding.save(tmp_path / "embedding.npz")
            return Embedding.load(tmp_path / "embedding.npz", n_jobs=2)

        ways: dict[str, Callable[[Embedding], Embedding]] = {
            "file": through_a_file,
            "pickle": lambda embedding: pickle.loads(pickle.dumps(embedding)),
            "copy": Embedding.copy,
            "copy.copy": copy.copy,
        }
        original = start(P64 if double else P, dof=0.5, n_jobs=1)
        if at:
            original.optimize(at, exaggeration=4)
        copied = ways[how](original)
        assert_same_bits(copied, original)
        # Independent: what is done to one leaves the other.
        before = original.positions
        copied.optimize(20)
        np.testing.assert_array_equal(original.positions, before)
        assert_same_bits(original.optimize(20), copied)

    def test_a_file_keeps_everything(self, P: Affinities, tmp_path: Path) -> None:
        path = tmp_path / "embedding"  # the name is the user's: no suffix is added
        settings = {"method": "barnes_hut", "angle": 0.3, "force_error": 0.05, "dof": 2.0}
        start(P, n_components=3, **settings).optimize(5).save(path)
        loaded = Embedding.load(path)
        assert asdict(loaded._optimizer.repulsion) == settings
        assert repr(loaded.affinities) == repr(P)
        assert loaded.affinities.similarity == P.similarity
        np.testing.assert_array_equal(loaded.affinities.perplexities, P.perplexities)
        assert [file.name for file in tmp_path.iterdir()] == ["embedding"]

    def test_given_affinities(self, P: Affinities, tmp_path: Path) -> None:
        given = Affinities.from_matrix(2 * P.to_scipy())
        start(given).optimize(5).save(tmp_path / "embedding.npz")
        loaded = Embedding.load(tmp_path / "embedding.npz")
        assert loaded.affinities.changes == given.changes != ()
        assert_same_bits(loaded, start(given).optimize(5))

    def test_saves_over_an_older_file(self, P: Affinities, tmp_path: Path) -> None:
        path = tmp_path / "embedding.npz"
        for iterations in (3, 4):
            start(P).optimize(iterations).save(path)
            assert Embedding.load(path).n_iter == iterations


class TestFilesThatAreNone:
    @pytest.fixture(name="path")
    def a_path(self, tmp_path: Path) -> Path:
        return tmp_path / "embedding.npz"

    @staticmethod
    def refused(path: Path) -> str:
        with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
            Embedding.load(path)
        return str(caught.value)

    def test_truncated_or_damaged_anywhere(self, P: Affinities, path: Path) -> None:
        start(P).save(path)
        whole = path.read_bytes()
        random = np.random.default_rng(0)
        for size in [0, 1, 100, *random.integers(len(whole), size=20), len(whole) - 1]:
            path.write_bytes(whole[:size])
            self.refused(path)
        # A bit flipped in an array is seen by its checksum; where it is not seen, it does no harm.
        unseen = 0
        for at in random.integers(len(whole), size=100):
            damaged = bytearray(whole)
            damaged[at] ^= 0x10
            path.write_bytes(damaged)
            with suppress(ValueError):
                Embedding.load(path)
                unseen += 1
        assert unseen < 5

    def test_other_files(self, P: Affinities, X: Array, path: Path) -> None:
        path.write_text("x,y\n1,2\n")
        assert "no npz archive" in self.refused(path)
        with path.open("wb") as file:
            np.save(file, X)
        assert "no npz archive" in self.refused(path)
        np.savez(path, X=X)
        assert "no header" in self.refused(path)
        np.savez(path, header=np.array("{}"))
        self.refused(path)
        TSNE(max_iter=250).fit(X).save(path)
        assert "holds acctsne 'tsne' in version 1 of the format; expected acctsne 'embedding'" in (
            self.refused(path)
        )

    def test_bytes_before_the_archive(self, P: Affinities, path: Path) -> None:
        start(P).save(path)
        path.write_bytes(b"0" * 100 + path.read_bytes())
        assert "no npz archive" in self.refused(path)

    def test_an_array_that_asks_for_more_memory_than_there_is(self, path: Path) -> None:
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**5, 10**9)}
        with zipfile.ZipFile(path, "w") as archive, archive.open("points.npy", "w") as member:
            np.lib.format.write_array_header_1_0(member, header)
        with pytest.raises(MemoryError, match=re.escape(f"{path} cannot be read: Unable")):
            Embedding.load(path)

    def test_nothing_is_unpickled(self, path: Path) -> None:
        class Trap:
            def __reduce__(self) -> tuple[Any, ...]:
                return pytest.fail, ("unpickled",)

        trap = np.array([Trap()], dtype=object)
        path.write_bytes(pickle.dumps(Trap()))
        self.refused(path)
        with path.open("wb") as file:
            np.save(file, trap, allow_pickle=True)
        self.refused(path)
        np.savez(path, allow_pickle=True, header=trap)
        self.refused(path)
        np.savez(path, allow_pickle=True, header=np.array("{}"), points=trap)
        self.refused(path)

    @pytest.mark.parametrize(
        ("name", "as_matrix"),
        [
            ("points", False),
            ("order", False),
            ("gains", False),
            ("indices", False),
            ("values", False),
            ("values", True),
            ("columns", True),
        ],
    )
    def test_arrays_that_do_not_fit(self, X: Array, path: Path, name: str, as_matrix: bool) -> None:
        P = Affinities.from_data(X, perplexity=10)
        if as_matrix:
            P.to_scipy()
        start(P).save(path)
        with np.load(path) as archive:
            arrays = dict(archive)
        np.savez(path, **{**arrays, name: arrays[name][:-1]})
        self.refused(path)
        np.savez(path, **{**arrays, name: np.full_like(arrays[name], -1)})
        if name in ("order", "indices", "columns"):
            self.refused(path)
        del arrays[name]
        np.savez(path, **arrays)
        # Without indices it looks like the form of a matrix.
        assert repr("columns" if name == "indices" else name) in self.refused(path)

    def test_positions_that_are_not_finite(self, P: Affinities, path: Path) -> None:
        start(P).save(path)
        with np.load(path) as archive:
            arrays = dict(archive)
        arrays["points"][3, 1] = np.nan
        np.savez(path, **arrays)
        assert "points has values that are not finite" in self.refused(path)

    def test_absent(self, path: Path) -> None:
        with pytest.raises(FileNotFoundError, match=re.escape(str(path))):
            Embedding.load(path)
        with pytest.raises(IsADirectoryError):
            Embedding.load(path.parent)

    def test_a_failed_write_leaves_the_old_file(
        self, P: Affinities, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        start(P).optimize(3).save(path)

        def full(*_: Any, **__: Any) -> None:
            raise OSError("no space left on device")

        monkeypatch.setattr(np.lib.format, "write_array", full)
        with pytest.raises(OSError, match="no space left"):
            start(P).optimize(4).save(path)
        monkeypatch.undo()
        assert Embedding.load(path).n_iter == 3
        assert list(path.parent.iterdir()) == [path]
