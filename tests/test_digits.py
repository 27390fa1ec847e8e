"""The whole of the handwritten digits, against scikit-learn's own t-SNE, judged by the referee."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_matrix
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE as SklearnTSNE  # noqa: N811
from threadpoolctl import threadpool_limits

from acctsne import TSNE, quality

Array = npt.NDArray[Any]
Digits = tuple[Array, Array]


@pytest.fixture(scope="module", name="P")
def affinities(digits: Digits) -> csr_matrix:
    return quality.affinities(digits[0], perplexity=30.0)


@pytest.fixture(scope="module")
def start(digits: Digits) -> Array:
    """One initial layout for all, so that only the optimisation is compared."""
    components = PCA(n_components=2, random_state=0).fit_transform(digits[0])
    layout: Array = (components / components[:, 0].std() * 1e-4).astype(np.float32)
    return layout


@pytest.fixture(scope="module")
def sklearn_kl(digits: Digits, start: Array, P: csr_matrix) -> float:
    # On a busy machine its OpenMP threads wait for each other longer than one alone takes.
    with threadpool_limits(limits=1):
        embedding = SklearnTSNE(init=start.copy()).fit_transform(digits[0])
    return quality.exact_kl(None, embedding, P=P)


@pytest.fixture(scope="module", params=["fast", "sklearn"])
def fitted(request: pytest.FixtureRequest, digits: Digits, start: Array) -> TSNE:
    return TSNE(init=start, schedule=request.param).fit(digits[0])


def test_kl_against_scikit_learn(fitted: TSNE, P: csr_matrix, sklearn_kl: float) -> None:
    kl = quality.exact_kl(None, fitted.embedding_, P=P)
    # The same schedule must do as well up to chance; the faster one must do better.
    assert kl <= sklearn_kl * (1.01 if fitted.schedule == "sklearn" else 1.0)


def test_reported_kl_is_close_to_the_exact_one(fitted: TSNE, P: csr_matrix) -> None:
    exact = quality.exact_kl(None, fitted.embedding_, P=P)
    assert fitted.kl_divergence_ == pytest.approx(exact, rel=0.02)


def test_labels_agree(fitted: TSNE, digits: Digits) -> None:
    # Of the two principal components the neighbours agree for 64 %.
    assert quality.label_agreement(fitted.embedding_, digits[1]) > 0.97


def test_neighbors_are_preserved(fitted: TSNE, digits: Digits) -> None:
    # A random map would keep 10 of 1796, 0.6 %; the two principal components keep 12 %.
    assert quality.neighbor_preservation(digits[0], fitted.embedding_) > 0.4


def test_exact_method(digits: Digits, start: Array) -> None:
    # Other affinities (all pairs) and other forces, the same problem: a map of the same quality.
    exact = TSNE(init=start, method="exact", max_iter=500).fit(digits[0])
    assert quality.label_agreement(exact.embedding_, digits[1]) > 0.97


@pytest.mark.parametrize("dims", [1, 3])
def test_other_dimensions(digits: Digits, P: csr_matrix, dims: int, sklearn_kl: float) -> None:
    tsne = TSNE(dims, random_state=0, max_iter=500).fit(digits[0])
    exact = quality.exact_kl(None, tsne.embedding_, P=P)
    assert tsne.embedding_.shape == (1797, dims)
    assert tsne.kl_divergence_ == pytest.approx(exact, rel=0.02)
    # Three dimensions have room for what two have, one has not.
    assert (exact < sklearn_kl) == (dims == 3)
