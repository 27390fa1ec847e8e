"""Files that keep an Embedding or a fitted TSNE: npz archives of plain arrays, never unpickled."""

import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse

from acctsne._files import replacing

if TYPE_CHECKING:
    from acctsne._tsne import TSNE

# Told apart from other npz files, and from later layouts of this one.
FORMAT = "acctsne"
FORMAT_VERSION = 1

ESTIMATOR_KIND = "tsne"

# Fitted attributes that JSON can hold.
FITTED = ("kl_divergence_", "n_iter_", "learning_rate_", "n_features_in_", "timings_")


def write_archive(
    path: str | os.PathLike[str],
    kind: str,
    settings: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
) -> None:
    """Write arrays and JSON settings; whatever was at `path` stays until all is written."""
    header = {"format": FORMAT, "version": FORMAT_VERSION, "kind": kind, "settings": settings}
    header_json = np.array(json.dumps(header))
    with replacing(Path(path)) as beside, beside.open("wb") as file:
        np.savez(file, allow_pickle=False, header=header_json, **arrays)


def read_archive(
    path: str | os.PathLike[str], kind: str
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Read what write_archive wrote; ValueError, with the file named, for anything else."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(str(arrays.pop("header")))
        found = header["format"], header["version"], header["kind"]
        settings: dict[str, Any] = header["settings"]
    except (OSError, EOFError) as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        raise ValueError(f"{os.fspath(path)} is not a complete acctsne file: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise ValueError(f"{os.fspath(path)} is not a complete acctsne file: {error}") from error
    if found != (FORMAT, FORMAT_VERSION, kind):
        raise ValueError(
            f"{os.fspath(path)} holds {found[2]!r} in version {found[1]} of the format; expected "
            f"{kind!r} in version {FORMAT_VERSION}"
        )
    return settings, arrays


def save_estimator(estimator: "TSNE", path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator."""
    parameters = dict(estimator.get_params(deep=False))
    arrays: dict[str, npt.NDArray[Any]] = {"embedding": estimator.embedding_}
    parameters["dtype"] = np.dtype(parameters["dtype"]).name
    # What serves a fit alone need not be kept.
    parameters["callback"] = None
    if not isinstance(parameters["random_state"], int | None):
        parameters["random_state"] = None
    if isinstance(parameters["init"], np.ndarray):
        arrays["init"] = parameters.pop("init")
    fitted: dict[str, Any] = {
        name: getattr(estimator, name) for name in FITTED if hasattr(estimator, name)
    }
    if hasattr(estimator, "feature_names_in_"):
        arrays["feature_names_in"] = np.asarray(estimator.feature_names_in_, dtype=str)
    X = estimator._fit_X
    if X is None:
        fitted["data"] = "none"
    elif issparse(X):
        fitted["data"] = "sparse"
        shape = np.asarray(X.shape)
        arrays |= {"X": X.data, "X_indices": X.indices, "X_indptr": X.indptr, "X_shape": shape}
    else:
        fitted["data"] = "dense"
        arrays["X"] = X
    try:
        write_archive(path, ESTIMATOR_KIND, {"parameters": parameters, "fitted": fitted}, arrays)
    except TypeError as error:
        raise ValueError(
            f"a parameter cannot be saved: {error}. metric and metric_params must be names and "
            "plain numbers"
        ) from error


def load_estimator(cls: type["TSNE"], path: str | os.PathLike[str]) -> "TSNE":
    """Read what save_estimator wrote."""
    settings, arrays = read_archive(path, ESTIMATOR_KIND)
    try:
        parameters, fitted = settings["parameters"], settings["fitted"]
        parameters["dtype"] = np.dtype(parameters["dtype"]).type
        if "init" in arrays:
            parameters["init"] = arrays["init"]
        estimator = cls(**parameters)
        data = fitted.pop("data")
        for name, value in fitted.items():
            setattr(estimator, name, value)
        estimator.embedding_ = arrays["embedding"]
        if "feature_names_in" in arrays:
            estimator.feature_names_in_ = arrays["feature_names_in"].astype(object)
        if data == "sparse":
            parts = (arrays["X"], arrays["X_indices"], arrays["X_indptr"])
            estimator._fit_X = csr_matrix(parts, shape=tuple(arrays["X_shape"]))
        else:
            estimator._fit_X = arrays["X"] if data == "dense" else None
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)} is not a complete acctsne file: {error}") from error
    return estimator
