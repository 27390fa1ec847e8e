"""t-SNE of AnnData objects: `scanpy.tl.tsne` with acctsne inside, and more.

The import of this module needs neither scanpy nor anndata; an AnnData object brings the one, and
scanpy is only called if principal components have to be computed first.
"""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix
from sklearn import config_context
from sklearn.neighbors import sort_graph_by_row_values

from acctsne.affinities.similarity import perplexities_for
from acctsne.estimator import TSNE
from acctsne.files.backed import in_reach
from acctsne.init import pca
from acctsne.runtime.optional import require

if TYPE_CHECKING:
    from anndata import AnnData

# As scanpy: with no more variables than this, X itself is embedded.
MOST_VARIABLES = 50


def tsne(
    adata: "AnnData",
    n_pcs: int | None = None,
    *,
    use_rep: str | None = None,
    perplexity: float | str = 30,
    neighbors_key: str | None = None,
    key_added: str | None = None,
    copy: bool = False,
    metric: str = "euclidean",
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = None,
    **parameters: Any,
) -> "AnnData | None":
    """Embed the cells of an AnnData object, as `scanpy.tl.tsne` does.

    Parameters
    ----------
    adata : AnnData
        Cells in rows. Of an object that is backed by a file, a dense `X` that was written without
        compression is read where it lies, never whole.
    n_pcs : int, default=None
        Use so many columns of the representation; 0 is `X` itself.
    use_rep : str, default=None
        "X" or a key of `obsm`. None is "X_pca", computed by scanpy if it is missing, or `X` if it
        has no more than 50 variables.
    perplexity : float, "auto" or "multiscale", default=30
        The effective number of neighbours of each cell.
    neighbors_key : str, default=None
        Take the neighbours that ``scanpy.pp.neighbors`` has found instead of searching:
        "neighbors", or the `key_added` that it was given. t-SNE wants three neighbours for each
        unit of perplexity: ``n_neighbors=92`` serves 30. If the graph has fewer, as scanpy's
        default has, the perplexity that it does serve is used, and a warning names both.
    key_added : str, default=None
        Key of `obsm` and `uns` for the results, instead of "X_tsne" and "tsne".
    copy : bool, default=False
        Return a changed copy of `adata` instead of changing it.
    metric : str, default="euclidean"
        Distance between cells; not used with `neighbors_key`.
    random_state : int, RandomState instance or None, default=0
        Seed.
    n_jobs : int, default=None
        Threads; None for all cores.
    **parameters
        More parameters of :class:`acctsne.TSNE`, such as `learning_rate`, `early_exaggeration` or
        `max_iter`. They default to those of `TSNE`, not to scanpy's.

    Returns
    -------
    adata : AnnData or None
        The copy, or None. ``obsm["X_tsne"]`` holds the embedding and ``uns["tsne"]["params"]`` the
        parameters.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> from acctsne.scanpy import tsne
    >>> cells = anndata.AnnData(np.random.default_rng(0).normal(size=(60, 20)))
    >>> tsne(cells, perplexity=10, max_iter=250)
    >>> cells.obsm["X_tsne"].shape
    (60, 2)
    >>> cells.uns["tsne"]["params"]["perplexity"]
    10
    """
    if not all(hasattr(adata, part) for part in ("X", "n_vars", "obsm", "obsp", "uns")):
        raise TypeError(f"adata must be an AnnData object; got {type(adata).__name__}")
    keys = {"use_rep": use_rep, "neighbors_key": neighbors_key, "key_added": key_added}
    for name, key in keys.items():
        if key is not None and not isinstance(key, str):
            raise TypeError(f"{name} must be a string or None; got {key!r}")
    adata = adata.copy() if copy else adata
    X = _representation(adata, use_rep, n_pcs)
    chosen = {"metric": metric, "random_state": random_state, "n_jobs": n_jobs, **parameters}
    if neighbors_key is None:
        fitted = TSNE(perplexity=perplexity, **chosen).fit(X)
    else:
        graph = _graph(adata, neighbors_key)
        if isinstance(perplexity, str):
            perplexity = _perplexity_of(perplexity, graph.shape[0])
        perplexity = _served_perplexity(graph, perplexity)
        init = chosen.get("init", "pca")
        if isinstance(init, str) and init == "pca":  # for which distances alone are not enough
            n_components = chosen.get("n_components", 2)
            chosen["init"] = pca(X, n_components, dtype=np.float64, n_jobs=n_jobs)
        chosen["metric"] = "precomputed"
        fitted = TSNE(perplexity=perplexity, **chosen).fit(graph)

    key_uns, key_obsm = ("tsne", "X_tsne") if key_added is None else (key_added, key_added)
    adata.obsm[key_obsm] = fitted.embedding_
    said = {"perplexity": perplexity, "metric": metric, "n_jobs": n_jobs, **parameters}
    said |= {"use_rep": use_rep, "neighbors_key": neighbors_key}
    # What an h5ad file can hold.
    adata.uns[key_uns] = {
        "params": {
            key: value for key, value in said.items() if isinstance(value, int | float | str)
        }
    }
    return adata if copy else None


def _representation(adata: "AnnData", use_rep: str | None, n_pcs: int | None) -> Any:
    """Choose what is embedded, by scanpy's rules."""
    if use_rep == "X" or (use_rep is None and (n_pcs == 0 or adata.n_vars <= MOST_VARIABLES)):
        return in_reach(adata.X)
    key = use_rep or "X_pca"
    if key not in adata.obsm:
        if use_rep is not None:
            raise ValueError(f"no {key!r} in obsm; there are {', '.join(adata.obsm) or 'none'}")
        with config_context(transform_output="default"):  # scanpy knows arrays alone
            require("scanpy", "scanpy").pp.pca(adata, n_comps=n_pcs or MOST_VARIABLES)
    X = adata.obsm[key]
    if n_pcs is not None and n_pcs > X.shape[1]:
        raise ValueError(f"n_pcs={n_pcs}, but {key} has only {X.shape[1]} columns")
    return np.asarray(X)[:, :n_pcs]


def _graph(adata: "AnnData", neighbors_key: str) -> csr_matrix:
    """Give scanpy's graph of distances in scikit-learn's form: rows sorted, each cell its first."""
    if neighbors_key not in adata.uns:
        raise ValueError(
            f"no {neighbors_key!r} in uns; run scanpy.pp.neighbors first, or leave out "
            "neighbors_key to have the neighbours searched"
        )
    graph = coo_matrix(adata.obsp[adata.uns[neighbors_key]["distances_key"]])
    others = graph.row != graph.col
    cells = np.arange(graph.shape[0])
    rows = np.concatenate([cells, graph.row[others]])
    columns = np.concatenate([cells, graph.col[others]])
    distances = np.concatenate([np.zeros(len(cells)), graph.data[others]])
    found = csr_matrix((distances, (rows, columns)), shape=graph.shape)
    return sort_graph_by_row_values(found, warn_when_not_sorted=False)


def _perplexity_of(word: str, n_cells: int) -> float:
    if word != "auto":
        raise ValueError(
            f"perplexity must be a number or 'auto' with neighbors_key; got {word!r}. A graph of "
            "neighbours serves one scale: leave out neighbors_key"
        )
    return perplexities_for(word, n_cells)[0]


def _served_perplexity(graph: csr_matrix, perplexity: float) -> float:
    """Lower the perplexity to what the cell with the fewest neighbours can serve."""
    n_neighbors = int(np.diff(graph.indptr).min()) - 1  # without the cell itself
    served = (n_neighbors - 1) / 3
    if perplexity <= served or n_neighbors == graph.shape[0] - 1:
        return perplexity
    if served <= 0:
        raise ValueError(
            f"a cell with {n_neighbors} neighbours; t-SNE needs more for any perplexity"
        )
    warnings.warn(
        f"perplexity {served:.3g} is used instead of {perplexity:g}: the graph has {n_neighbors} "
        f"neighbours a cell. For {perplexity:g}, run scanpy.pp.neighbors with "
        f"n_neighbors={int(3 * perplexity + 2)}, or leave out neighbors_key",
        stacklevel=3,
    )
    return served
