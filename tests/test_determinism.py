"""The same bits for any number of threads; the same forces, to rounding, at any SIMD level."""

import itertools
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_matrix

from acctsne import TSNE, _core, build_info
from acctsne.affinities.affinities import Affinities, joint_probabilities
from acctsne.affinities.similarity import Similarity
from acctsne.neighbors.euclidean import exact_neighbors
from acctsne.neighbors.records import SearchSettings
from helpers import neighbors_by, optimizer_at

Array = npt.NDArray[Any]

THREADS = [1, 2, 3, 8]  # more than there are cores, too


def fit_bytes(X: Array, **parameters: Any) -> bytes:
    return bytes(TSNE(random_state=0, max_iter=250, **parameters).fit_transform(X).tobytes())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("method", "n", "dims"),
    # No multiple of a chunk or a vector; the first also larger than the update's chunks of 1024.
    [
        ("auto", 4517, 2),
        ("barnes_hut", 4517, 2),
        ("barnes_hut", 701, 3),
        ("barnes_hut", 701, 1),
        ("fft", 4517, 2),
        ("fft", 701, 1),
        ("exact", 523, 2),
    ],
)
def test_threads_do_not_change_a_bit(method: str, n: int, dims: int, dtype: npt.DTypeLike) -> None:
    X = np.random.default_rng(n).normal(size=(n, 7))
    found = {
        fit_bytes(
            X, n_components=dims, method=method, dtype=dtype, n_jobs=threads, perplexity=9,
            early_exaggeration_iter=100,
        )
        for threads in THREADS
    }  # fmt: skip
    assert len(found) == 1


@pytest.mark.parametrize("data", [np.float32, np.float64])
@pytest.mark.parametrize("method", ["barnes_hut", "exact"])
@pytest.mark.parametrize(
    ("metric", "params"),
    [("manhattan", None), ("cosine", None), ("mahalanobis", {"VI": np.diag(np.arange(1.0, 8.0))})],
)
def test_threads_do_not_change_a_bit_of_other_metrics(
    metric: str, params: dict[str, Any] | None, method: str, data: npt.DTypeLike
) -> None:
    # These run through scikit-learn, whose own answer may depend on its n_jobs.
    X = np.random.default_rng(0).normal(size=(307, 7)).astype(data)
    tsne = TSNE(metric=metric, metric_params=params, method=method, perplexity=30)
    seen = set()
    for threads in (1, 2, 3, 2, 3):
        found = neighbors_by(tsne.set_params(n_jobs=threads), X)
        seen.add(found.indices.tobytes() + found.squared_distances.tobytes())
    assert len(seen) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stages_on_more_points_than_any_chunk(dtype: npt.DTypeLike) -> None:
    # One evaluation on many points reaches the chunks of sort and tree that a short fit does not.
    rng = np.random.default_rng(0)
    n, k = 33_301, 5
    X = rng.normal(size=(n, 3)).astype(dtype)
    Y = 40 * rng.normal(size=(n, 2)).astype(dtype)
    expected: list[Array] | None = None
    for threads in THREADS:
        settings = SearchSettings(k, dtype=np.dtype(dtype), threads=threads)
        neighbors = exact_neighbors(X[:5003], settings)
        indices, squared = neighbors.indices, neighbors.squared_distances
        P = joint_probabilities(neighbors, Similarity("gaussian", (2.5,)), threads)
        optimizer = optimizer_at(P.to_scipy(), Y[:5003], "barnes_hut")
        nothing = csr_matrix((n, n), dtype=dtype)
        repulsive = optimizer_at(nothing, Y, "barnes_hut").forces(threads)[1:]
        found = [indices, squared, P.columns, P.values, *optimizer.forces(threads), *repulsive]
        found = [np.asarray(value) for value in found]
        if expected is None:
            expected = found
        for value, other in zip(found, expected, strict=True):
            assert value.tobytes() == other.tobytes()


@pytest.mark.parametrize("init", ["pca", "random"])
def test_runs_are_equal(some_digits: tuple[Array, Array], init: str) -> None:
    X = some_digits[0]
    assert fit_bytes(X, init=init) == fit_bytes(X, init=init)


def test_fit_does_not_remember(some_digits: tuple[Array, Array]) -> None:
    X = some_digits[0]
    tsne = TSNE(max_iter=250, random_state=3)
    first = tsne.fit_transform(X).copy()
    tsne.fit(X[:100])
    np.testing.assert_array_equal(tsne.fit_transform(X), first)


@pytest.fixture
def restored_level() -> Iterator[None]:
    level = build_info()["simd_level"]
    yield
    _core.use_simd_level(level)


@pytest.mark.usefixtures("restored_level")
class TestSimdLevels:
    """Forces on a fixed layout: a whole fit would amplify the last bit without limit."""

    LEVELS = build_info()["simd_levels_usable"]

    def forces(self, level: str, P: csr_matrix, Y: Array, method: str) -> list[Array]:
        _core.use_simd_level(level)
        assert build_info()["simd_level"] == level
        optimizer = optimizer_at(P, Y, method)
        return [np.asarray(value) for value in (*optimizer.forces(2), optimizer.kl_divergence(2))]

    # Where the CPU converts half-precision numbers, float32 layouts keep P in them: 11 bits.
    @pytest.mark.parametrize(
        ("method", "dims"),
        [*itertools.product(["exact", "barnes_hut"], [1, 2, 3]), ("fft", 1), ("fft", 2)],
    )
    @pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 2**-12), (np.float64, 1e-12)])
    @pytest.mark.parametrize("level", LEVELS)
    def test_forces(
        self,
        some_digits_P: csr_matrix,
        level: str,
        method: str,
        dtype: npt.DTypeLike,
        tolerance: float,
        dims: int,
    ) -> None:
        Y = (10 * np.random.default_rng(dims).normal(size=(400, dims))).astype(dtype)
        expected = self.forces("baseline", some_digits_P, Y, method)
        found = self.forces(level, some_digits_P, Y, method)
        for value, reference in zip(found, expected, strict=True):
            error = np.linalg.norm((value - reference).ravel())
            assert error <= tolerance * np.linalg.norm(reference.ravel())

    @pytest.mark.parametrize("level", LEVELS)
    def test_neighbors_and_affinities(self, level: str) -> None:
        X = np.random.default_rng(0).normal(size=(1201, 33))

        def affinities(level: str) -> tuple[Array, Affinities]:
            _core.use_simd_level(level)
            settings = SearchSettings(40, dtype=np.dtype(np.float64), threads=2)
            found = exact_neighbors(X, settings)
            return found.indices, joint_probabilities(found, Similarity("gaussian", (12.0,)), 2)

        expected_indices, expected = affinities("baseline")
        indices, P = affinities(level)
        # Neighbours are proven, not approximated: the level cannot change them.
        np.testing.assert_array_equal(indices, expected_indices)
        np.testing.assert_allclose(P.values, expected.values, rtol=1e-8)

    def test_unknown_level(self) -> None:
        with pytest.raises(ValueError, match="'sse9' is not part of this build; built: baseline"):
            _core.use_simd_level("sse9")


def import_with_level(level: str) -> subprocess.CompletedProcess[str]:
    code = "import acctsne; print(acctsne.build_info()['simd_level'])"
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "ACCTSNE_SIMD": level},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("level", build_info()["simd_levels_usable"])
def test_environment_chooses_the_level(level: str) -> None:
    process = import_with_level(level)
    assert process.returncode == 0, process.stderr
    assert process.stdout.strip() == level


def test_empty_variable_means_the_best_level() -> None:
    assert import_with_level("").stdout.strip() == build_info()["simd_levels_usable"][-1]


# A level the CPU lacks can only be asked for where there is one.
BAD_LEVELS = ["sse9", "AVX2 "] + [
    level
    for level in build_info()["simd_levels_built"]
    if level not in build_info()["simd_levels_usable"]
]


@pytest.mark.parametrize("level", BAD_LEVELS)
def test_environment_with_a_level_that_cannot_be(level: str) -> None:
    process = import_with_level(level)
    assert process.returncode == 1  # an exception, not a crash
    last_line = process.stderr.strip().splitlines()[-1]
    assert last_line.startswith(("ImportError", "ValueError"))
    assert f"'{level}'" in last_line
    assert "baseline" in last_line  # what there is


# What the C library and OpenBLAS are told so that they run as on a CPU without AVX and FMA. It has
# no effect, and the test no force, where they have no faster code to hold back.
OLDER_CPU = {
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX,-AVX2,-FMA,-AVX512F,-AVX_Usable,-AVX2_Usable,"
    "-FMA_Usable,-AVX512F_Usable",
    "OPENBLAS_CORETYPE": "Nehalem",
}
MAP_OF_DIGITS = """
import sys
from sklearn.datasets import load_digits
from acctsne import TSNE, nearest_neighbors
X = load_digits().data[:600] / 7
found = nearest_neighbors(X, 20)
for array in (found.indices, found.distances, TSNE(random_state=0).fit_transform(X)):
    sys.stdout.buffer.write(array.tobytes())
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="x86-64 alone has these")
def test_baseline_kernels_give_the_same_bits_on_an_older_cpu() -> None:
    baseline = {**os.environ, "ACCTSNE_SIMD": "baseline"}
    here, there = (
        subprocess.run(
            [sys.executable, "-c", MAP_OF_DIGITS], env=env, capture_output=True, check=True
        ).stdout
        for env in (baseline, {**baseline, **OLDER_CPU})
    )
    assert len(here) == 600 * (20 * 4 + 20 * 8 + 2 * 4)
    assert here == there
