"""t-SNE of AnnData objects: `scanpy.tl.tsne` with acctsne inside, and more."""

from acctsne.interop.scanpy import tsne

__all__ = ["tsne"]
