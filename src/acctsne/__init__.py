"""t-SNE for CPUs: fast, accurate, and the same result at any thread count.

`TSNE` is a drop-in for `sklearn.manifold.TSNE`. It is made of `Affinities`, what to embed, and
`Embedding`, the layout being optimised, which can be used by themselves; `init` says where layouts
start, and `quality` judges them, whoever made them.
"""

from acctsne import init, quality
from acctsne.affinities.affinities import Affinities
from acctsne.embedding.embedding import Embedding
from acctsne.estimator import TSNE
from acctsne.interop.sklearn_patch import patch_sklearn, unpatch_sklearn
from acctsne.neighbors.nearest import nearest_neighbors
from acctsne.runtime.build import build_info

__version__ = "0.1.0"

__all__ = [
    "TSNE",
    "Affinities",
    "Embedding",
    "__version__",
    "build_info",
    "init",
    "nearest_neighbors",
    "patch_sklearn",
    "quality",
    "unpatch_sklearn",
]
