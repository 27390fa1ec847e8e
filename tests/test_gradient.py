"""The gradient: against finite differences of the objective, and Barnes-Hut against exact."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_matrix

from acctsne import quality
from helpers import gradient_at, optimizer_at, plain_gradient, plain_kl, relative_error

Array = npt.NDArray[Any]


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("spread", [1e-4, 1.0, 20.0])
def test_exact_gradient_is_the_derivative(
    some_digits: tuple[Array, Array], dims: int, spread: float
) -> None:
    X = some_digits[0][:40]
    P = quality.affinities(X, perplexity=8.0)
    Y = spread * np.random.default_rng(dims).normal(size=(40, dims))
    # In an initial layout the gradient is as small as the layout, and a difference quotient would
    # be all rounding: there the formula of the paper stands in.
    if spread == 1e-4:
        expected = analytic_gradient(P.toarray(), Y)
    else:
        expected = plain_gradient(P.toarray(), Y)
    assert relative_error(gradient_at(P, Y, "exact"), expected) < 1e-6


def analytic_gradient(P: Array, Y: Array) -> Array:
    """Equation 5 of the t-SNE paper, 4 sum_j (p - q) w (y_i - y_j)."""
    difference = Y[:, None, :] - Y[None, :, :]
    w = 1 / (1 + np.square(difference).sum(axis=-1))
    np.fill_diagonal(w, 0)
    gradient: Array = 4 * (((P - w / w.sum()) * w)[:, :, None] * difference).sum(axis=1)
    return gradient


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("method", ["exact", "barnes_hut"])
def test_float32_gradient_is_that_of_float64(
    some_digits_P: csr_matrix, method: str, dims: int
) -> None:
    # Positions that float32 holds exactly, so that both see the same layout; angle 0, so that no
    # rounding decides which cells are opened.
    Y = (10 * np.random.default_rng(dims).normal(size=(400, dims))).astype(np.float32)
    single = gradient_at(some_digits_P, Y, method, angle=0.0)
    double = gradient_at(some_digits_P, Y.astype(np.float64), method, angle=0.0)
    assert single.dtype == np.float32
    assert relative_error(single, double) < 2**-11  # the precision that P is kept in


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_barnes_hut_converges_to_exact(some_digits_P: csr_matrix, dims: int) -> None:
    Y = 20 * np.random.default_rng(3).normal(size=(400, dims))
    _, exact, exact_z = optimizer_at(some_digits_P, Y, "exact").forces(threads=2)
    errors = []
    for angle in [1.0, 0.5, 0.25, 0.1, 0.0]:
        _, repulsive, z = optimizer_at(some_digits_P, Y, "barnes_hut", angle=angle).forces(
            threads=2
        )
        errors.append(relative_error(repulsive, exact))
        assert z == pytest.approx(exact_z, rel=max(0.1 * angle, 1e-12))
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 1e-4  # wide angles do approximate, or there is nothing to converge
    assert errors[-1] < 1e-12  # nothing but the order of the sums is left


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["digits", "uniform", "clustered", "box_filling", "lattice"])
@pytest.mark.parametrize("method", ["barnes_hut", "fft"])
def test_force_error_at_the_defaults(
    layouts: dict[str, Array], name: str, method: str, dtype: npt.DTypeLike
) -> None:
    Y = layouts[name]
    error = quality.force_error(Y, method, dtype=dtype, n_samples=len(Y))
    assert 1e-5 < error < 0.03


@pytest.mark.parametrize("aim", [0.05, 0.02, 0.005, 0.001])
def test_grid_keeps_to_the_force_error_asked_for(layouts: dict[str, Array], aim: float) -> None:
    # Not on box_filling: points that line up along a face exceed the aim up to 1.6 times.
    for name in ("uniform", "clustered", "lattice", "digits"):
        Y = layouts[name]
        error = quality.force_error(Y, "fft", force_error=aim, dtype=np.float64, n_samples=len(Y))
        assert error < aim, name


@pytest.mark.parametrize("dims", [1, 3])
def test_force_error_in_other_dimensions(dims: int) -> None:
    Y = np.random.default_rng(dims).uniform(-20, 20, size=(3000, dims))
    assert 1e-5 < quality.force_error(Y, angle=0.5, n_samples=3000) < 0.03


@pytest.mark.parametrize("method", ["exact", "barnes_hut"])
def test_coincident_points_repel_nothing_but_count_in_z(method: str) -> None:
    # 20 points in one place, more than a leaf holds, and one apart.
    Y = np.zeros((21, 2))
    Y[20] = [3.0, 0.0]
    P = csr_matrix((21, 21))
    attractive, repulsive, z = optimizer_at(P, Y, method, angle=0.0).forces(threads=1)
    assert not attractive.any()
    w = 1 / (1 + 9.0)
    assert z == pytest.approx(20 * 19 + 2 * 20 * w)
    np.testing.assert_allclose(repulsive[:20], [[-3 * w * w, 0.0]] * 20, rtol=1e-12)
    np.testing.assert_allclose(repulsive[20], [20 * 3 * w * w, 0.0], rtol=1e-12)


def test_total_momentum_is_zero(some_digits_P: csr_matrix, layouts: dict[str, Array]) -> None:
    # Every exact force has its counterforce.
    Y = np.ascontiguousarray(layouts["uniform"][:400])
    attractive, repulsive, _ = optimizer_at(some_digits_P, Y, "exact").forces(threads=2)
    for forces in (attractive, repulsive):
        assert np.abs(forces.sum(axis=0)).max() < 1e-11 * np.abs(forces).sum()


def test_gradient_descends(some_digits_P: csr_matrix) -> None:
    # A short step against the gradient lowers the objective by step * |gradient|^2.
    Y = 5 * np.random.default_rng(0).normal(size=(400, 2))
    P = some_digits_P.toarray()
    gradient = gradient_at(some_digits_P, Y, "exact")
    step = 1e-3
    drop = plain_kl(P, Y) - plain_kl(P, Y - step * gradient)
    assert drop == pytest.approx(step * np.square(gradient).sum(), rel=1e-2)
