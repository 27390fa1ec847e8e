"""Degrees of freedom: every method and dimension against the objective's definition and peers."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_matrix
from scipy.spatial.distance import squareform
from sklearn.manifold import _t_sne as sklearn_tsne

from acctsne import TSNE, quality
from helpers import (
    gradient_at,
    optimizer_at,
    plain_gradient,
    plain_kl,
    plain_similarity,
    relative_error,
)

Array = npt.NDArray[Any]

DOFS = pytest.mark.parametrize("dof", [0.5, 0.8, 1.0, 2.0, 10.0, "sklearn"])
METHODS_AND_DIMENSIONS = pytest.mark.parametrize(
    ("method", "dims"),
    [
        (method, dims)
        for method in ("exact", "barnes_hut", "fft")
        for dims in (1, 2, 3)
        if (method, dims) != ("fft", 3)
    ],
)


@DOFS
@METHODS_AND_DIMENSIONS
def test_gradient_is_the_derivative(
    some_digits: tuple[Array, Array], method: str, dims: int, dof: Any
) -> None:
    P = quality.affinities(some_digits[0][:40], perplexity=8.0)
    Y = 3 * np.random.default_rng(dims).normal(size=(40, dims))
    optimizer = optimizer_at(P, Y, method, angle=0.0, dof=dof)
    attractive, repulsive, z = optimizer.forces(threads=2)
    expected = plain_gradient(P.toarray(), Y, dof)
    # A tree whose every cell is opened is exact; the grid has its own error, of the repulsion.
    allowed = 1e-6 * np.linalg.norm(expected)
    if method == "fft":
        allowed += 0.02 * 4 * np.linalg.norm(repulsive) / z
    assert np.linalg.norm(4 * (attractive - repulsive / z) - expected) < allowed
    kl = plain_kl(P.toarray(), Y, dof)
    assert optimizer.kl_divergence(threads=2) == pytest.approx(
        kl, rel=1e-3 if method == "fft" else 1e-10
    )


@DOFS
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("method", ["exact", "barnes_hut"])
def test_float32_gradient_is_that_of_float64(
    some_digits_P: csr_matrix, method: str, dims: int, dof: Any
) -> None:
    Y = (10 * np.random.default_rng(dims).normal(size=(400, dims))).astype(np.float32)
    single = gradient_at(some_digits_P, Y, method, angle=0.0, dof=dof)
    double = gradient_at(some_digits_P, Y.astype(np.float64), method, angle=0.0, dof=dof)
    assert single.dtype == np.float32
    assert relative_error(single, double) < 2**-11  # the precision that P is kept in


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["digits", "uniform", "clustered"])
@pytest.mark.parametrize("method", ["barnes_hut", "fft"])
@pytest.mark.parametrize("dof", [0.5, 0.8, 2.0, 5.0, 10.0])
def test_force_error_at_the_defaults(
    layouts: dict[str, Array], name: str, method: str, dof: float, dtype: npt.DTypeLike
) -> None:
    Y = layouts[name]
    error = quality.force_error(Y, method, dof=dof, dtype=dtype, n_samples=len(Y))
    assert 1e-8 < error < 0.02


def test_quality_follows_the_definition(some_digits_P: csr_matrix) -> None:
    for dims in (1, 2, 3):
        Y = 5 * np.random.default_rng(dims).normal(size=(400, dims))
        for dof in (0.5, 2.0, "sklearn"):
            z = plain_similarity(Y, dof).sum()
            assert quality.exact_z(Y, dof=dof) == pytest.approx(z, rel=1e-12)
            kl = plain_kl(some_digits_P.toarray(), Y, dof)
            assert quality.exact_kl(None, Y, P=some_digits_P, dof=dof) == pytest.approx(kl)


@pytest.mark.parametrize("dims", [1, 2])
@pytest.mark.parametrize("dof", [0.5, 0.8, 2.0, 10.0])
def test_gradient_is_that_of_opentsne(some_digits_P: csr_matrix, dof: float, dims: int) -> None:
    opentsne = pytest.importorskip("openTSNE.tsne")
    # Close enough that the 2e-16 they add to every similarity plays no part in KL.
    Y = 2 * np.random.default_rng(dims).normal(size=(400, dims))
    kl, gradient = opentsne.kl_divergence_bh(
        Y, some_digits_P, dof, {"theta": 0.0}, should_eval_error=True
    )
    # Their gradient lacks the factor 4.
    assert relative_error(gradient_at(some_digits_P, Y, "exact", dof=dof), 4 * gradient) < 1e-6
    assert optimizer_at(some_digits_P, Y, "exact", dof=dof).kl_divergence(2) == pytest.approx(
        kl, rel=1e-6
    )


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_objective_is_that_of_scikit_learn(some_digits_P: csr_matrix, dims: int) -> None:
    # Positions close enough that its floor under Q plays no part.
    Y = np.random.default_rng(dims).normal(size=(400, dims))
    P = squareform(some_digits_P.toarray(), checks=False)
    kl, _ = sklearn_tsne._kl_divergence(Y.ravel(), P, max(dims - 1, 1), 400, dims)
    assert quality.exact_kl(None, Y, P=some_digits_P, dof="sklearn") == pytest.approx(kl, rel=1e-9)


@pytest.mark.parametrize("dims", [1, 2])
def test_sklearn_is_1_but_for_3d(some_digits: tuple[Array, Array], dims: int) -> None:
    X = some_digits[0][:100]
    default = TSNE(dims, perplexity=10, max_iter=250).fit_transform(X)
    theirs = TSNE(dims, perplexity=10, max_iter=250, dof="sklearn").fit_transform(X)
    np.testing.assert_array_equal(theirs, default)


@METHODS_AND_DIMENSIONS
def test_each_map_is_best_at_its_own_dof(
    some_digits: tuple[Array, Array], some_digits_P: csr_matrix, method: str, dims: int
) -> None:
    dofs = (0.5, 3.0)
    maps = [
        TSNE(dims, dof=dof, method=method, max_iter=500, random_state=0).fit(some_digits[0])
        for dof in dofs
    ]
    divergences = [
        [quality.exact_kl(None, m.embedding_, P=some_digits_P, dof=dof) for m in maps]
        for dof in dofs
    ]
    assert divergences[0][0] < divergences[0][1]
    assert divergences[1][1] < divergences[1][0]
    if method != "exact":  # its P has all pairs
        for i, fitted in enumerate(maps):
            assert fitted.kl_divergence_ == pytest.approx(divergences[i][i], rel=0.01)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dof", [1e-3, 1e3])
@METHODS_AND_DIMENSIONS
def test_extremes(
    some_digits: tuple[Array, Array], method: str, dims: int, dof: float, dtype: npt.DTypeLike
) -> None:
    tsne = TSNE(
        dims, dof=dof, method=method, perplexity=10, max_iter=300, random_state=0, dtype=dtype
    )
    embedding = tsne.fit_transform(some_digits[0][:100])
    assert np.isfinite(embedding).all()
    assert np.isfinite(tsne.kl_divergence_)
    # In float32, two of a crowd may come to lie in the very same place.
    assert len(np.unique(embedding, axis=0)) > 95


BAD = pytest.mark.parametrize(
    "dof", [0, -1.0, float("nan"), float("inf"), 1e-4, 1e4, "x", None, [1.0]]
)


@BAD
def test_bad_dof(dof: Any) -> None:
    X = np.random.default_rng(0).normal(size=(60, 5))
    with pytest.raises(ValueError, match=r"'dof' parameter of TSNE must be .*0\.001.*1000.*Got"):
        TSNE(dof=dof).fit(X)


@BAD
def test_bad_dof_of_quality(dof: Any) -> None:
    Y = np.random.default_rng(0).normal(size=(60, 2))
    P = csr_matrix((60, 60))
    with pytest.raises(ValueError, match="'dof' parameter of exact_z must be"):
        quality.exact_z(Y, dof=dof)
    with pytest.raises(ValueError, match="'dof' parameter of exact_kl must be"):
        quality.exact_kl(None, Y, P=P, dof=dof)
    with pytest.raises(ValueError, match="'dof' parameter of force_error must be"):
        quality.force_error(Y, dof=dof)
