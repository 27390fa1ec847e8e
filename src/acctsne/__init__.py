"""t-SNE for CPUs: fast, accurate, and the same result at any thread count.

`TSNE` is a drop-in for `sklearn.manifold.TSNE`; `quality` judges embeddings, whoever made them.
"""

from acctsne import quality
from acctsne._build import build_info
from acctsne._neighbors import nearest_neighbors
from acctsne._patch import patch_sklearn, unpatch_sklearn
from acctsne._tsne import TSNE

__version__ = "0.1.0"

__all__ = [
    "TSNE",
    "__version__",
    "build_info",
    "nearest_neighbors",
    "patch_sklearn",
    "quality",
    "unpatch_sklearn",
]
