"""Files that keep an embedding or a fitted estimator: npz archives of plain arrays.

Nothing in them is ever unpickled.
"""

import json
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite, isnan
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from acctsne.files.replacing import replacing

# Told apart from other npz files, and from later layouts of this one.
FORMAT = "acctsne"
FORMAT_VERSION = 1

# What reading a file that is damaged, or none of ours, can raise: zip, its members, numpy's headers
# and JSON.
DAMAGE = (
    EOFError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    ValueError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


@contextmanager
def incomplete(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name the file in the ValueError that its contents lead to."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)} is not a complete acctsne file: {error}") from error


class Contents:
    """What an archive holds, each part checked as it is taken out."""

    def __init__(self, settings: Any, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        if not isinstance(settings, dict):
            raise ValueError("its settings are no table")
        self.settings: dict[str, Any] = settings
        self.arrays = dict(arrays)

    def setting(self, name: str, *kinds: type) -> Any:
        """Return a setting of one of these types."""
        if name not in self.settings:
            raise ValueError(f"it has no {name!r}")
        value = self.settings[name]
        if type(value) not in kinds:
            raise ValueError(f"{name} is {value!r:.50}")
        return value

    def number(self, name: str, *, finite: bool = True) -> float:
        """Return a number that floating point can hold; without `finite`, infinite ones too."""
        return _number(name, self.setting(name, float, int), finite)

    def numbers(self, name: str) -> list[float]:
        """Return a list of finite numbers."""
        return [
            _number(f"{name}[{i}]", value, True) for i, value in enumerate(self.setting(name, list))
        ]

    def part(self, name: str) -> "Contents":
        """Return a table among the settings, with all arrays."""
        return Contents(self.setting(name, dict), self.arrays)

    def array(self, name: str, kinds: str, ndim: int) -> npt.NDArray[Any]:
        """Return an array of finite numbers of one of these types and so many dimensions."""
        if name not in self.arrays:
            raise ValueError(f"it has no {name!r}")
        values = self.arrays[name]
        if values.dtype.str[1:] not in kinds.split() or values.ndim != ndim:
            raise ValueError(f"{name} has {values.ndim} dimensions of {values.dtype}")
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ValueError(f"{name} has values that are not finite")
        return np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))


def _number(name: str, value: Any, finite: bool) -> float:
    if type(value) not in (float, int):
        raise ValueError(f"{name} is {value!r:.50}")
    try:
        number = float(value)
    except OverflowError:  # JSON's integers have any number of digits
        raise ValueError(f"{name} is an integer of {len(str(abs(value)))} digits") from None
    if isnan(number) or (finite and not isfinite(number)):
        raise ValueError(f"{name} is {number}")
    return number


@dataclass(frozen=True)
class RowsInParts:
    """An array that is not in one place: its rows come block by block."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    blocks: Iterable[npt.NDArray[Any]]

    def write(self, member: IO[bytes]) -> None:
        """Write it as numpy would."""
        form = np.lib.format
        header = {
            "descr": form.dtype_to_descr(self.dtype),
            "fortran_order": False,
            "shape": self.shape,
        }
        form.write_array_header_1_0(member, header)
        for block in self.blocks:
            member.write(np.ascontiguousarray(block).data)


def file_name(path: Any) -> str:
    """Return the name of a file, which may be given as bytes."""
    try:
        return os.fsdecode(path)
    except TypeError:
        raise TypeError(f"path must be a str, bytes or os.PathLike; got {path!r:.100}") from None


def write_archive(
    path: str | os.PathLike[str],
    kind: str,
    settings: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any] | RowsInParts],
) -> None:
    """Write arrays and JSON settings; whatever was at `path` stays until all is written."""
    header = {"format": FORMAT, "version": FORMAT_VERSION, "kind": kind, "settings": settings}
    header_json = np.array(json.dumps(header, default=_plain_number))
    # Not by numpy.savez, which can be told not to pickle from NumPy 2.2 on only.
    with replacing(Path(file_name(path))) as beside, zipfile.ZipFile(beside, "w") as archive:
        for name, array in {"header": header_json, **arrays}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                if isinstance(array, RowsInParts):
                    array.write(member)
                else:
                    np.lib.format.write_array(member, array, allow_pickle=False)


def _plain_number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is neither text nor a number")


def read_archive(
    path: str | os.PathLike[str], kind: str, arrays: Collection[str] | None = None
) -> Contents:
    """Read what write_archive wrote; ValueError, with the file named, for anything else.

    Only the arrays that `arrays` names are read, or all if it is None.
    """
    with open(path, "rb") as file, incomplete(path):
        # Bytes before the archive would have numpy take it for a pickle.
        if file.read(2) != b"PK" or not zipfile.is_zipfile(file):
            raise ValueError("it is no npz archive, or it was cut off")
        file.seek(0)
        try:
            with np.load(file, allow_pickle=False) as archive:
                members = {
                    name: archive[name]
                    for name in archive.files
                    if arrays is None or name in arrays or name == "header"
                }
            header = json.loads(str(members.pop("header", "null")))
        except MemoryError as error:
            raise MemoryError(f"{os.fspath(path)} cannot be read: {error}") from error
        except DAMAGE as error:
            raise ValueError(str(error)) from error
        if not isinstance(header, dict):
            raise ValueError("it has no header")
        found = tuple(header.get(name) for name in ("format", "version", "kind"))
        if found != (FORMAT, FORMAT_VERSION, kind):
            raise ValueError(
                f"it holds {found[0]} {found[2]!r} in version {found[1]} of the format; "
                f"expected {FORMAT} {kind!r} in version {FORMAT_VERSION}"
            )
        return Contents(
            header.get("settings"),
            {name: array for name, array in members.items() if isinstance(array, np.ndarray)},
        )
