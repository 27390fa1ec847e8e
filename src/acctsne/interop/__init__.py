"""acctsne with other packages, or in their place: scanpy, Dask, scikit-learn, FIt-SNE."""
