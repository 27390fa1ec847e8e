"""t-SNE of Dask arrays, by workers that are processes of MPI."""

from acctsne.interop.dask import fit_transform

__all__ = ["fit_transform"]
