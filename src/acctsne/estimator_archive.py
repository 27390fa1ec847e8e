"""A fitted estimator as plain arrays and numbers, for a file."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse

from acctsne.files.archive import (
    Contents,
    RowsInParts,
    file_name,
    incomplete,
    read_archive,
    write_archive,
)
from acctsne.files.numpy_arrays import MAP_NAME
from acctsne.runtime.checks import check_sparse

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
    path = file_name(path)
    parameters = dict(fitted.parameters)
    arrays: dict[str, npt.NDArray[Any] | RowsInParts] = {MAP_NAME: fitted.embedding}
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
    contents = read_archive(path, ARCHIVE_KIND)
    with incomplete(path):
        parameters = contents.setting("parameters", dict)
        if parameters.get("dtype") not in ("float32", "float64"):
            raise ValueError(f"dtype is {parameters.get('dtype')!r:.50}")
        parameters["dtype"] = np.dtype(parameters["dtype"]).type
        if "init" in contents.arrays:
            parameters["init"] = contents.arrays["init"]
        embedding = contents.array(MAP_NAME, "f4 f8", 2)
        X = _data(contents)
        if X is not None and X.shape[0] != len(embedding):
            raise ValueError(f"{X.shape[0]} samples for {len(embedding)} points")
        names = contents.arrays.get("feature_names_in")
        return FittedEstimator(
            parameters,
            contents.setting("fitted", dict),
            embedding,
            X,
            None if names is None else names.astype(object),
        )


def _data(contents: Contents) -> Any:
    """Return the data that the map is of, None if the file has none."""
    if "X" not in contents.arrays:
        return None
    if "X_shape" not in contents.arrays:
        return contents.array("X", "f4 f8 f2 u1", 2)
    shape = contents.array("X_shape", "i8 i4", 1)
    if len(shape) != 2 or shape.min() < 1:
        raise ValueError(f"X has shape {shape.tolist()}")
    parts = (
        contents.array("X", "f4 f8", 1),
        contents.array("X_indices", "i4 i8", 1),
        contents.array("X_indptr", "i4 i8", 1),
    )
    return check_sparse(csr_matrix(parts, shape=tuple(shape.tolist())))
