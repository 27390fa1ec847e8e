"""Files that keep an Embedding or a fitted TSNE: npz archives of plain arrays, never unpickled."""

import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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

# What reading a file that is damaged, or none of ours, can raise.
DAMAGE = (
    AttributeError,
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)

# Fitted attributes that JSON can hold.
FITTED = ("kl_divergence_", "n_iter_", "learning_rate_", "n_features_in_", "timings_")


@contextmanager
def incomplete(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name the file in whatever error it leads to if it is damaged or another one."""
    try:
        yield
    except DAMAGE as error:
        raise ValueError(f"{os.fspath(path)} is not a complete acctsne file: {error}") from error


def write_archive(
    path: str | os.PathLike[str],
    kind: str,
    settings: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
) -> None:
    """Write arrays and JSON settings; whatever was at `path` stays until all is written."""
    header = {"format": FORMAT, "version": FORMAT_VERSION, "kind": kind, "settings": settings}
    header_json = np.array(json.dumps(header, default=_plain_number))
    with replacing(Path(path)) as beside, beside.open("wb") as file:
        np.savez(file, allow_pickle=False, header=header_json, **arrays)


def _plain_number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is neither text nor a number")


def read_archive(
    path: str | os.PathLike[str], kind: str
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Read what write_archive wrote; ValueError, with the file named, for anything else."""
    with open(path, "rb") as file, incomplete(path):
        if not zipfile.is_zipfile(file):
            raise ValueError("it is no npz archive, or it was cut off")
        file.seek(0)
        with np.load(file, allow_pickle=False) as archive:
            if "header" not in archive.files:
                raise ValueError("it has no header")
            header = json.loads(str(archive["header"]))
            found = header["format"], header["version"], header["kind"]
            if found != (FORMAT, FORMAT_VERSION, kind):
                raise ValueError(
                    f"it holds {found[0]} {found[2]!r} in version {found[1]} of the format; "
                    f"expected {FORMAT} {kind!r} in version {FORMAT_VERSION}"
                )
            settings: dict[str, Any] = header["settings"]
            return settings, {name: archive[name] for name in archive.files if name != "header"}


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
    X: Any = estimator._fit_X
    if issparse(X):
        shape = np.asarray(X.shape)
        arrays |= {"X": X.data, "X_indices": X.indices, "X_indptr": X.indptr, "X_shape": shape}
    elif X is not None:
        arrays["X"] = X
    try:
        write_archive(path, ESTIMATOR_KIND, {"parameters": parameters, "fitted": fitted}, arrays)
    except TypeError as error:
        raise ValueError(
            f"{path} cannot be written, a parameter cannot be kept in a file: {error}. metric must "
            "be a name, metric_params plain numbers"
        ) from error


def load_estimator(cls: type["TSNE"], path: str | os.PathLike[str]) -> "TSNE":
    """Read what save_estimator wrote."""
    settings, arrays = read_archive(path, ESTIMATOR_KIND)
    with incomplete(path):
        parameters, fitted = settings["parameters"], settings["fitted"]
        parameters["dtype"] = np.dtype(parameters["dtype"]).type
        if "init" in arrays:
            parameters["init"] = arrays["init"]
        estimator = cls(**parameters)
        for name in FITTED:
            if name in fitted:
                setattr(estimator, name, fitted[name])
        estimator.embedding_ = arrays["embedding"]
        if "feature_names_in" in arrays:
            estimator.feature_names_in_ = arrays["feature_names_in"].astype(object)
        X: Any = arrays.get("X")
        if "X_shape" in arrays:
            parts = (X, arrays["X_indices"], arrays["X_indptr"])
            X = csr_matrix(parts, shape=tuple(arrays["X_shape"]))
        if X is not None and X.shape[0] != len(estimator.embedding_):
            raise ValueError(f"{X.shape[0]} samples for {len(estimator.embedding_)} points")
        estimator._fit_X = X
    return estimator
