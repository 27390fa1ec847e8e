"""A fitted estimator as plain arrays and numbers, for a file."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse

from acctsne.files.archive import incomplete, read_archive, write_archive

ARCHIVE_KIND = "tsne"


@dataclass
class FittedEstimator:
    """What is kept of a fitted estimator."""

    parameters: dict[str, Any]
    attributes: dict[str, Any]  # those that JSON can hold
    embedding: npt.NDArray[Any]
    X: Any = None  # the data that the map is of; None if it was made of affinities
    feature_names: npt.NDArray[Any] | None = None


def write_estimator(path: str | os.PathLike[str], fitted: FittedEstimator) -> None:
    """Write a fitted estimator."""
    parameters = dict(fitted.parameters)
    arrays: dict[str, npt.NDArray[Any]] = {"embedding": fitted.embedding}
    parameters["dtype"] = np.dtype(parameters["dtype"]).name
    # What serves a fit alone need not be kept.
    parameters["callback"] = None
    if not isinstance(parameters["random_state"], int | None):
        parameters["random_state"] = None
    if isinstance(parameters["init"], np.ndarray):
        arrays["init"] = parameters.pop("init")
    if fitted.feature_names is not None:
        arrays["feature_names_in"] = np.asarray(fitted.feature_names, dtype=str)
    X = fitted.X
    if issparse(X):
        shape = np.asarray(X.shape)
        arrays |= {"X": X.data, "X_indices": X.indices, "X_indptr": X.indptr, "X_shape": shape}
    elif X is not None:
        arrays["X"] = X
    try:
        settings = {"parameters": parameters, "fitted": fitted.attributes}
        write_archive(path, ARCHIVE_KIND, settings, arrays)
    except TypeError as error:
        raise ValueError(
            f"{path} cannot be written, a parameter cannot be kept in a file: {error}. metric must "
            "be a name, metric_params plain numbers"
        ) from error


def read_estimator(path: str | os.PathLike[str]) -> FittedEstimator:
    """Read what write_estimator wrote."""
    settings, arrays = read_archive(path, ARCHIVE_KIND)
    with incomplete(path):
        parameters = settings["parameters"]
        parameters["dtype"] = np.dtype(parameters["dtype"]).type
        if "init" in arrays:
            parameters["init"] = arrays["init"]
        X: Any = arrays.get("X")
        if "X_shape" in arrays:
            parts = (X, arrays["X_indices"], arrays["X_indptr"])
            X = csr_matrix(parts, shape=tuple(arrays["X_shape"]))
        embedding = arrays["embedding"]
        if X is not None and X.shape[0] != len(embedding):
            raise ValueError(f"{X.shape[0]} samples for {len(embedding)} points")
        names = arrays.get("feature_names_in")
        return FittedEstimator(
            parameters,
            settings["fitted"],
            embedding,
            X,
            None if names is None else names.astype(object),
        )
