"""Maps of more than three dimensions: all pairs, and every feature that the flatter ones have."""

import pickle
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import numpy.typing as npt
import pytest
from scipy.spatial.distance import pdist
from sklearn import manifold
from sklearn.datasets import load_iris

from acctsne import TSNE, Affinities, Embedding, init, plot, quality
from acctsne.cli.main import main
from acctsne.embedding.checkpoint import Checkpoint
from acctsne.estimator import fit_with_checkpoint
from acctsne.scanpy import tsne as scanpy_tsne
from helpers import optimizer_at, plain_gradient, plain_kl, relative_error, samples_of

Array = npt.NDArray[Any]

DIMS = pytest.mark.parametrize("dims", [4, 5, 10])
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def small(**parameters: Any) -> TSNE:
    given = {"n_components": 4, "perplexity": 10, "max_iter": 250, "random_state": 0}
    return TSNE(**{**given, "early_exaggeration_iter": 100, **parameters})


@DIMS
@DTYPES
@pytest.mark.parametrize("dof", [0.5, 1.0, 3.0, "sklearn"])
def test_gradient_is_the_derivative(X: Array, dims: int, dof: Any, dtype: npt.DTypeLike) -> None:
    P = quality.affinities(X[:30], perplexity=6.0)
    Y = np.random.default_rng(dims).normal(size=(30, dims)).astype(dtype)
    optimizer = optimizer_at(P, Y, "exact", dof=dof)
    attractive, repulsive, z = optimizer.forces(threads=2)
    expected = plain_gradient(P.toarray(), Y.astype(np.float64), dof)
    # In single precision P is kept in 11 bits.
    limit = 1e-6 if dtype == np.float64 else 2**-11
    assert relative_error(4 * (attractive - repulsive / z), expected) < limit
    assert optimizer.kl_divergence(2) == pytest.approx(plain_kl(P.toarray(), Y, dof), rel=1e-3)


@pytest.mark.parametrize("start", ["pca", "random"])
def test_scikit_learns_divergence_is_beaten(start: str) -> None:
    X = load_iris().data
    settings: dict[str, Any] = {
        "n_components": 4,
        "method": "exact",
        "init": start,
        "random_state": 0,
    }
    theirs = manifold.TSNE(**settings).fit_transform(X)
    ours = TSNE(**settings, dof="sklearn").fit_transform(X)
    P = Affinities.from_data(X, n_neighbors=149, dtype=np.float64)
    assert quality.exact_kl(X, ours, P=P, dof="sklearn") < quality.exact_kl(
        X, theirs, P=P, dof="sklearn"
    )


@DTYPES
def test_auto_takes_all_pairs_with_few_neighbors(X: Array, dtype: npt.DTypeLike) -> None:
    automatic = small(dtype=dtype)
    assert samples_of(automatic, X).search.n_neighbors == 31  # not all: memory grows with N alone
    automatic.fit(X)
    counts = {key: n for key, n in automatic.timings_.items() if key.startswith("iterations_")}
    assert counts == {"iterations_exact": automatic.n_iter_ + 1}
    exact = small(dtype=dtype, method="exact").fit(X)
    assert automatic.kl_divergence_ == pytest.approx(exact.kl_divergence_, rel=0.2)
    judged = quality.exact_kl(X, automatic.embedding_, 10)
    assert automatic.kl_divergence_ == pytest.approx(judged, rel=1e-3)


@DIMS
@DTYPES
@pytest.mark.parametrize("method", ["auto", "exact"])
def test_threads_do_not_change_a_bit(
    X: Array, dims: int, method: str, dtype: npt.DTypeLike
) -> None:
    tsne = small(n_components=dims, method=method, dtype=dtype, dof=0.8)
    found = {tsne.set_params(n_jobs=n).fit_transform(X).tobytes() for n in (1, 2, 3, 8)}
    assert len(found) == 1


@pytest.mark.parametrize("dims", [4, 7])
@pytest.mark.parametrize("start", ["pca", "random", "spectral", "multilevel"])
def test_every_start_uses_all_axes(dims: int, start: str) -> None:
    # Three features: more principal components than there are, which start from 1e-6.
    X = np.random.default_rng(0).normal(size=(120, 3))
    axes = np.ptp(small(n_components=dims, init=start).fit_transform(X), axis=0)
    assert axes.min() > 1e-2


def test_more_dimensions_than_samples() -> None:
    X = np.random.default_rng(0).normal(size=(5, 3))
    for start in ("pca", "spectral"):
        Y = small(n_components=9, perplexity=2, init=start).fit_transform(X)
        assert Y.shape == (5, 9)
        assert np.isfinite(Y).all()


def test_fixed_points_and_callbacks(X: Array) -> None:
    start = np.random.default_rng(0).normal(size=(200, 6))
    seen = []
    tsne = small(
        n_components=6, init=start, dtype=np.float64, callback=lambda *told: seen.append(told[2])
    )
    Y = tsne.fit_transform(X, fixed=np.arange(20))
    np.testing.assert_array_equal(Y[:20], start[:20])
    assert (Y[20:] != start[20:]).all()
    assert {one.shape for one in seen} == {(200, 6)}


def test_embedding_goes_on_from_anywhere(P: Affinities, tmp_path: Path) -> None:
    def begin() -> Embedding:
        return Embedding(P, "random", n_components=5, dof=2.0, random_state=0)

    whole = begin().optimize(70)
    part = begin().optimize(30)
    part.save(tmp_path / "part.npz")
    for other in (
        part.copy(),
        pickle.loads(pickle.dumps(part)),
        Embedding.load(tmp_path / "part.npz", n_jobs=3),
    ):
        np.testing.assert_array_equal(other.optimize(40).positions, whole.positions)
        assert other.kl() == whole.kl()
    # In single precision P is kept in 11 bits.
    assert whole.kl() == pytest.approx(whole.kl(exact=True), rel=1e-3)


def test_checkpoint_goes_on_to_the_same_bits(X: Array, tmp_path: Path) -> None:
    path = tmp_path / "fit.npz"

    def give_up(iteration: int, *_: Any) -> None:
        if iteration > 120:
            raise KeyboardInterrupt

    tsne = small(callback=give_up, callback_every=10)
    with pytest.raises(KeyboardInterrupt):
        fit_with_checkpoint(tsne, X, Checkpoint(path, 50, False))
    resumed = fit_with_checkpoint(tsne.set_params(callback=None), X, Checkpoint(path, 50, True))
    np.testing.assert_array_equal(resumed.embedding_, small().fit_transform(X))


@DTYPES
@pytest.mark.parametrize("method", ["auto", "exact"])
def test_new_points(digits: tuple[Array, Array], method: str, dtype: npt.DTypeLike) -> None:
    X, new = digits[0][:300], digits[0][300:330]
    tsne = small(n_components=5, method=method, dtype=dtype).fit(X)
    np.testing.assert_array_equal(tsne.transform(X[:9]), tsne.embedding_[:9])
    placed = tsne.transform(new)
    for n_jobs in (1, 3):
        np.testing.assert_array_equal(tsne.set_params(n_jobs=n_jobs).transform(new), placed)
    np.testing.assert_array_equal(tsne.transform(new[4:5]), placed[4:5])
    # Among those of its own digit: the nearest point of the map has the same label.
    nearest = np.square(placed[:, None] - tsne.embedding_[None]).sum(axis=-1).argmin(axis=1)
    assert (digits[1][nearest] == digits[1][300:330]).mean() > 0.8


@DIMS
def test_quality(X: Array, dims: int) -> None:
    Y = np.random.default_rng(dims).normal(size=(200, dims))
    similarities = 1 / (1 + pdist(Y, "sqeuclidean"))
    assert quality.exact_z(Y) == pytest.approx(2 * similarities.sum(), rel=1e-12)
    assert quality.force_error(Y, "exact") < 1e-5
    assert quality.force_error(Y, "auto", dtype=np.float64) < 1e-12
    assert quality.neighbor_preservation(Y, 2 * Y) == 1.0
    with pytest.raises(ValueError, match=f"inferior to 4 .* got n_components={dims}"):
        quality.force_error(Y)


def test_multilevel_start(P: Affinities) -> None:
    assert init.multilevel(P, 6).shape == (200, 6)


def test_anndata(X: Array) -> None:
    cells = anndata.AnnData(X)
    scanpy_tsne(cells, use_rep="X", n_components=4, perplexity=10, max_iter=250)
    assert cells.obsm["X_tsne"].shape == (200, 4)


def test_command_line(X: Array, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, found, picture = (str(tmp_path / name) for name in ("X.npy", "Y.csv", "Y.png"))
    np.save(data, X)
    given = ["embed", data, "--n-components", "5", "--max-iter", "250", "--quiet"]
    assert main([*given, "-o", found]) == 0
    assert Path(found).read_text().splitlines()[0] == "y0,y1,y2,y3,y4"
    assert main(["score", data, found]) == 0
    with pytest.raises(SystemExit):
        main([*given, "--plot", picture])
    said = capsys.readouterr().err
    assert "--plot: only maps of 2 and 3 dimensions can be drawn; got --n-components 5" in said


def test_what_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match=r"got shape \(9, 4\)\. Choose two or three columns"):
        plot.scatter(np.zeros((9, 4)))
