"""Data, labels and embeddings in files, the format chosen by the suffix."""

from acctsne.files.formats import (
    Data,
    DataError,
    StoredRows,
    open_rows,
    read,
    read_labels,
    write,
)

__all__ = ["Data", "DataError", "StoredRows", "open_rows", "read", "read_labels", "write"]
