"""t-SNE for CPUs: fast, accurate, and the same result at any thread count.

`TSNE` is a drop-in for `sklearn.manifold.TSNE`. It is made of `Affinities`, what to embed, and
`Embedding`, the layout being optimised, which can be used by themselves; `init` says where layouts
start, and `quality` judges them, whoever made them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what type checkers and editors see; at run time `__getattr__` gives the same
    from acctsne import dask as dask
    from acctsne import distributed as distributed
    from acctsne import html as html
    from acctsne import init, quality
    from acctsne import io as io
    from acctsne import movie as movie
    from acctsne import plot as plot
    from acctsne import scanpy as scanpy
    from acctsne.affinities.affinities import Affinities
    from acctsne.aligned_estimator import AlignedTSNE
    from acctsne.embedding.embedding import Embedding
    from acctsne.estimator import TSNE
    from acctsne.interop.sklearn_patch import patch_sklearn, unpatch_sklearn
    from acctsne.neighbors.nearest import nearest_neighbors
    from acctsne.runtime.build import build_info

__version__ = "0.2.0"

__all__ = [
    "TSNE",
    "Affinities",
    "AlignedTSNE",
    "Embedding",
    "__version__",
    "build_info",
    "init",
    "nearest_neighbors",
    "patch_sklearn",
    "quality",
    "unpatch_sklearn",
]

# Where a name is defined. It is fetched when it is first asked for: scikit-learn takes seconds to
# import, which neither `import acctsne` nor `acctsne --help` should cost.
_PLACES = {
    "TSNE": "estimator",
    "Affinities": "affinities.affinities",
    "AlignedTSNE": "aligned_estimator",
    "Embedding": "embedding.embedding",
    "build_info": "runtime.build",
    "nearest_neighbors": "neighbors.nearest",
    "patch_sklearn": "interop.sklearn_patch",
    "unpatch_sklearn": "interop.sklearn_patch",
}
_MODULES = ("dask", "distributed", "html", "init", "io", "movie", "plot", "quality", "scanpy")


if not TYPE_CHECKING:  # which must complain about names that are not there

    def __getattr__(name):
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")  # which keeps it as an attribute
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
        globals()[name] = value  # so that the next access does not come here
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES, *_MODULES})
