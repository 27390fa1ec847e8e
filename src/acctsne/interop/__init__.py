"""acctsne in the place of other packages: scanpy, scikit-learn's TSNE, FIt-SNE's program."""
