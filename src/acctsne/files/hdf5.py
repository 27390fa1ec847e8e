"""HDF5 files from strangers: only what is in the file itself is read and written.

A dataset may keep its numbers in any other file, be put together from those of other files, or be
a link into one; whoever opened it would read them, and perhaps pass them on with the map.
"""

from pathlib import Path
from typing import Any

from acctsne.files.errors import DataError
from acctsne.runtime.optional import require

# Links that lead to links, and groups in groups: far more than any file of AnnData has.
MOST_STEPS = 32


def find_inside(path: Path, group: Any, name: str) -> Any:
    """Return a dataset or group of this name, refused if any part of it is in another file."""
    node = _follow(path, group, name, MOST_STEPS)
    _check_inside(path, node, MOST_STEPS)
    return node


def group_inside(path: Path, file: Any, name: str) -> Any:
    """Return a group of this name, whose members are yet to be looked at."""
    node = _follow(path, file, name, MOST_STEPS)
    if not isinstance(node, require("h5py", "anndata").Group):
        raise DataError(f"{path}: {name} is a dataset; a group is needed, as AnnData writes it")
    return node


def _follow(path: Path, group: Any, name: str, steps: int) -> Any:
    """Walk from group to group, without HDF5 opening other files on the way."""
    h5py = require("h5py", "anndata")
    node = group.file["/"] if name.startswith("/") else group
    for part in filter(None, name.split("/")):
        link = node.get(part, getlink=True) if isinstance(node, h5py.Group) else None
        if link is None:
            raise DataError(f"{path}: no {part!r} in {node.name}")
        if isinstance(link, h5py.ExternalLink):
            raise DataError(
                f"{path}: {part!r} in {node.name} is a link to another file, {link.filename!r}, "
                "which is not read"
            )
        if not isinstance(link, h5py.SoftLink):
            node = node[part]
        elif steps:
            node = _follow(path, node, link.path, steps - 1)
        else:
            raise DataError(f"{path}: {part!r} in {node.name} is a link that leads nowhere")
    return node


def _check_inside(path: Path, node: Any, steps: int) -> None:
    h5py = require("h5py", "anndata")
    if isinstance(node, h5py.Dataset):
        if node.external is not None or node.is_virtual:
            raise DataError(f"{path}: the numbers of {node.name} are in another file, not read")
        # Older versions of AnnData keep the categories of a column in a dataset that it refers to.
        categories = node.attrs.get("categories")
        if isinstance(categories, h5py.Reference) and categories and steps:
            _check_inside(path, node.file[categories], steps - 1)
    elif isinstance(node, h5py.Group):
        if not steps:
            raise DataError(f"{path}: groups in groups without end in {node.name}")
        for name in node:
            _check_inside(path, _follow(path, node, name, steps - 1), steps - 1)
