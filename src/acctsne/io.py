"""Data, labels and embeddings in files, the format chosen by the suffix."""

from acctsne.files.formats import Data, DataError, read, read_labels, write

__all__ = ["Data", "DataError", "read", "read_labels", "write"]
