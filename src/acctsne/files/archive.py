"""Files that keep an embedding or a fitted estimator: npz archives of plain arrays.

Nothing in them is ever unpickled.
"""

import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne.files.replacing import replacing

# Told apart from other npz files, and from later layouts of this one.
FORMAT = "acctsne"
FORMAT_VERSION = 1

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
