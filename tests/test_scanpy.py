"""AnnData in, AnnData out: the same places as scanpy's own t-SNE, and its plots work."""

from pathlib import Path
from typing import Any

import anndata
import matplotlib as mpl
import numpy as np
import pytest
import scanpy as sc
from scipy.sparse import csr_matrix
from sklearn import config_context
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA

import acctsne
from acctsne import TSNE, init, quality
from acctsne.scanpy import tsne

# 250 iterations are the fewest allowed, and enough to part five blobs.
FAST: dict[str, Any] = {"max_iter": 250}

# Ways to scanpy's graph that leave out UMAP, whose compilation takes ten seconds.
QUICK: dict[str, Any] = {"use_rep": "X", "method": "gauss", "transformer": "sklearn"}


@pytest.fixture(name="cells")
def _cells() -> anndata.AnnData:
    X, kinds = make_blobs(200, 60, centers=5, random_state=1)
    made = anndata.AnnData(X.astype(np.float32))
    made.obs["kind"] = kinds.astype(str)
    made.obs["kind"] = made.obs["kind"].astype("category")
    return made


def test_results_are_where_scanpy_puts_them(cells: anndata.AnnData) -> None:
    cells.obsm["X_pca"] = PCA(30, random_state=0).fit_transform(cells.X)
    theirs = cells.copy()
    acctsne.patch_sklearn()  # for speed; it is scanpy that stores the results
    try:
        sc.tl.tsne(theirs, n_pcs=20, perplexity=20)
    finally:
        acctsne.unpatch_sklearn()
    assert tsne(cells, n_pcs=20, perplexity=20, **FAST) is None

    assert set(cells.obsm) == set(theirs.obsm)
    assert set(cells.uns) == set(theirs.uns)
    assert cells.obsm["X_tsne"].shape == theirs.obsm["X_tsne"].shape
    params = cells.uns["tsne"]["params"]
    assert params["perplexity"] == theirs.uns["tsne"]["params"]["perplexity"] == 20
    assert params["metric"] == "euclidean"
    # What was embedded is what scanpy would have taken.
    direct = TSNE(perplexity=20, random_state=0, **FAST).fit_transform(cells.obsm["X_pca"][:, :20])
    np.testing.assert_array_equal(cells.obsm["X_tsne"], direct)


@pytest.mark.filterwarnings("ignore:The set_bad function:PendingDeprecationWarning")
def test_scanpy_plots_it(cells: anndata.AnnData) -> None:
    tsne(cells, use_rep="X", **FAST)
    with mpl.rc_context({"backend": "agg"}):
        axes = sc.pl.tsne(cells, color="kind", show=False)
    drawn = np.asarray(axes.collections[0].get_offsets())
    assert len(drawn) == 200
    np.testing.assert_allclose(np.sort(drawn, 0), np.sort(cells.obsm["X_tsne"], 0), rtol=1e-6)


def test_key_added_and_copy(cells: anndata.AnnData, tmp_path: Path) -> None:
    made = tsne(cells, use_rep="X", key_added="map", copy=True, early_exaggeration=6.0, **FAST)
    assert made is not None
    assert "map" not in cells.obsm
    assert made.obsm["map"].shape == (200, 2)
    assert made.uns["map"]["params"]["early_exaggeration"] == 6.0
    assert "X_tsne" not in made.obsm
    made.write_h5ad(tmp_path / "cells.h5ad")
    assert anndata.read_h5ad(tmp_path / "cells.h5ad").uns["map"]["params"]["use_rep"] == "X"


def test_representations(cells: anndata.AnnData) -> None:
    # Missing principal components are computed, by scanpy.
    tsne(cells, n_pcs=7, **FAST)
    assert cells.obsm["X_pca"].shape == (200, 7)
    with pytest.raises(ValueError, match="n_pcs=9, but X_pca has only 7 columns"):
        tsne(cells, n_pcs=9)
    with pytest.raises(ValueError, match="no 'X_scvi' in obsm; there are X_pca, X_tsne"):
        tsne(cells, use_rep="X_scvi")
    # Few variables are embedded as they are, also sparse.
    few = anndata.AnnData(csr_matrix(np.asarray(cells.X)[:, :50]))
    tsne(few, **FAST)
    np.testing.assert_array_equal(
        few.obsm["X_tsne"], TSNE(random_state=0, **FAST).fit_transform(few.X)
    )


def test_reuses_the_graph(cells: anndata.AnnData) -> None:
    # Enough neighbours for the perplexity, and exact ones: the same as searching.
    sc.pp.neighbors(cells, n_neighbors=62, **QUICK)
    tsne(cells, use_rep="X", perplexity=20, **FAST)
    searched = cells.obsm["X_tsne"].copy()
    tsne(cells, use_rep="X", perplexity=20, neighbors_key="neighbors", **FAST)
    assert cells.uns["tsne"]["params"]["neighbors_key"] == "neighbors"
    X = np.asarray(cells.X)
    kl = [quality.exact_kl(X, Y, perplexity=20) for Y in (searched, cells.obsm["X_tsne"])]
    assert kl[1] == pytest.approx(kl[0], rel=0.05)
    # It is the graph that counts, not the data.
    cells.obsp["distances"] = cells.obsp["distances"][::-1, ::-1].tocsr()
    tsne(cells, use_rep="X", perplexity=20, neighbors_key="neighbors", **FAST)
    assert quality.exact_kl(X, cells.obsm["X_tsne"], perplexity=20) > 2 * kl[0]


def test_starts_beside_a_graph(cells: anndata.AnnData) -> None:
    sc.pp.neighbors(cells, n_neighbors=32, **QUICK)
    how: dict[str, Any] = {"use_rep": "X", "perplexity": 10, "neighbors_key": "neighbors", **FAST}
    tsne(cells, **how)
    usual = cells.obsm["X_tsne"].copy()
    layout = init.pca(cells.X, dtype=np.float64)
    tsne(cells, init=layout, **how)
    np.testing.assert_array_equal(cells.obsm["X_tsne"], usual)
    tsne(cells, init=layout[::-1], **how)
    assert not np.array_equal(cells.obsm["X_tsne"], usual)


@pytest.mark.parametrize("neighbors_key", [None, "neighbors"])
def test_while_scikit_learn_gives_data_frames(
    cells: anndata.AnnData, neighbors_key: str | None
) -> None:
    sc.pp.neighbors(cells, n_neighbors=32, **QUICK)
    how: dict[str, Any] = {"n_pcs": 7, "perplexity": 10, "neighbors_key": neighbors_key, **FAST}
    usual = tsne(cells, copy=True, **how)
    assert usual is not None
    with config_context(transform_output="pandas"):
        tsne(cells, **how)
    np.testing.assert_array_equal(cells.obsm["X_tsne"], usual.obsm["X_tsne"])


def test_a_graph_with_few_neighbours_lowers_the_perplexity(cells: anndata.AnnData) -> None:
    sc.pp.neighbors(cells, key_added="default", **QUICK)
    with pytest.warns(UserWarning, match=r"perplexity 4\.33 is used instead of 30: .* 14 neigh"):
        tsne(cells, use_rep="X", neighbors_key="default", **FAST)
    assert cells.uns["tsne"]["params"]["perplexity"] == pytest.approx(13 / 3)
    kinds = cells.obs["kind"].to_numpy()
    assert quality.label_agreement(cells.obsm["X_tsne"], kinds) > 0.95
    with pytest.raises(ValueError, match="no 'absent' in uns; run scanpy"):
        tsne(cells, neighbors_key="absent")


def test_what_is_no_object_and_no_key(cells: anndata.AnnData) -> None:
    no_cells: Any = cells.X
    with pytest.raises(TypeError, match="adata must be an AnnData object; got ndarray"):
        tsne(no_cells)
    for name in ("use_rep", "neighbors_key", "key_added"):
        no_key: dict[str, Any] = {name: ["X_pca"]}
        with pytest.raises(TypeError, match=rf"{name} must be a string or None; got \['X_pca'\]"):
            tsne(cells, **no_key)


def test_scanpys_own_tsne_runs_on_acctsne(cells: anndata.AnnData) -> None:
    acctsne.patch_sklearn()
    try:
        sc.tl.tsne(cells, use_rep="X", perplexity=20, learning_rate=200)
    finally:
        acctsne.unpatch_sklearn()
    ours = TSNE(perplexity=20, learning_rate=200, random_state=0, n_jobs=1)
    np.testing.assert_array_equal(cells.obsm["X_tsne"], ours.fit_transform(cells.X))


@pytest.mark.parametrize("kind", ["mapped", "compressed", "sparse"])
def test_objects_that_stay_in_their_file(
    cells: anndata.AnnData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    if kind == "sparse":
        cells.X = csr_matrix(np.where(cells.X > 3, cells.X, 0))
    cells.write_h5ad(tmp_path / "cells.h5ad", compression="gzip" if kind == "compressed" else None)
    tsne(cells, use_rep="X", perplexity=20, **FAST)
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    if kind == "mapped":  # nothing may ask the file for the table

        def refuse(*_: Any, **__: Any) -> None:
            raise AssertionError("X was read")

        for reading in ("__getitem__", "__array__", "read_direct"):
            monkeypatch.setattr(type(backed.X), reading, refuse)
    tsne(backed, use_rep="X", perplexity=20, **FAST)
    np.testing.assert_array_equal(backed.obsm["X_tsne"], cells.obsm["X_tsne"])
    backed.file.close()
