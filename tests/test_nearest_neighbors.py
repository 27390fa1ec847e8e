"""The public search for nearest neighbours."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.neighbors import NearestNeighbors

from acctsne import nearest_neighbors

Array = npt.NDArray[Any]


def adversarial() -> dict[str, Array]:
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(700, 200))
    return {
        # The leading axes hold nearly everything.
        "falling variance": normal * np.linspace(3, 0.01, 200),
        # No axis leads: the filter buys nothing.
        "isotropic": normal,
        "equal norms": normal / np.linalg.norm(normal, axis=1)[:, None],
        "all equal": np.ones((600, 30)),
        "duplicates": np.repeat(rng.normal(size=(30, 40)), 20, axis=0),
        "one huge coordinate": np.column_stack([normal[:, :50], 1e8 * rng.integers(0, 2, 700)]),
        "two dimensions": rng.normal(size=(1000, 2)),
        "many dimensions": rng.normal(size=(300, 5000)),
        "tight clusters far apart": normal[:, :3] * 1e-3 + 1e3 * rng.integers(0, 3, (700, 1)),
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", adversarial())
def test_equals_brute_force(name: str, dtype: npt.DTypeLike) -> None:
    X = adversarial()[name].astype(dtype)
    found = nearest_neighbors(X, 25)
    assert found.mode == "exact"
    assert found.recall == 1.0
    assert found.distances.dtype == X.dtype
    # Distances by differences, in double: brute force by products would round too much.
    exact = np.empty((len(X), 25))
    for i, row in enumerate(X.astype(np.float64)):
        squared = np.square(X.astype(np.float64) - row).sum(axis=1)
        squared[i] = np.inf
        exact[i] = np.sqrt(np.partition(squared, 24)[:25])
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found.distances, np.sort(exact, axis=1), rtol=tolerance, atol=0)
    rows = np.arange(len(X))[:, None]
    assert (found.indices != rows).all()
    assert all(len(set(row)) == 25 for row in found.indices.tolist())
    given = np.linalg.norm(
        X.astype(np.float64)[found.indices] - X.astype(np.float64)[:, None], axis=2
    )
    np.testing.assert_allclose(found.distances, given, rtol=tolerance, atol=0)


def test_equals_scikit_learn(digits: tuple[Array, Array]) -> None:
    X = np.ascontiguousarray(digits[0])
    distances, _ = NearestNeighbors(n_neighbors=90, algorithm="brute").fit(X).kneighbors()
    np.testing.assert_allclose(nearest_neighbors(X, 90).distances, distances, rtol=1e-6)


def test_same_bytes_at_any_thread_count() -> None:
    X = np.random.default_rng(1).normal(size=(3001, 60)).astype(np.float32)
    results = [nearest_neighbors(X, 20, n_jobs=threads) for threads in (1, 2, 3, 8)]
    for result in results[1:]:
        assert result.indices.tobytes() == results[0].indices.tobytes()
        assert result.distances.tobytes() == results[0].distances.tobytes()


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e200])
def test_distances_are_in_the_unit_of_the_data(scale: float) -> None:
    X = np.random.default_rng(2).normal(size=(300, 30))
    expected = nearest_neighbors(X, 10)
    found = nearest_neighbors(scale * X, 10)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.distances, scale * expected.distances, rtol=1e-12)


@pytest.mark.parametrize("n_neighbors", [0, -1, 50])
def test_n_neighbors_is_checked(n_neighbors: int) -> None:
    with pytest.raises(ValueError, match=rf"n_samples - 1 \(49\); got {n_neighbors}"):
        nearest_neighbors(np.zeros((50, 3)), n_neighbors)


def test_mode_is_checked() -> None:
    with pytest.raises(ValueError, match="hopeful"):
        nearest_neighbors(np.zeros((50, 3)), 5, mode="hopeful")  # type: ignore[arg-type]


def test_not_finite() -> None:
    X = np.zeros((50, 3))
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        nearest_neighbors(X, 5)
