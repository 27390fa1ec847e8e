"""Files that commands write: which can be written, checked before the work, and the writing."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from acctsne.files import formats as io
from acctsne.files.replacing import replacing
from acctsne.files.tables import write_delimited
from acctsne.runtime.optional import require

Array = npt.NDArray[Any]

PICTURES = (".png", ".pdf", ".svg")
PAGES = (".html",)
MOVIES = (".gif", ".mp4", ".html")
ARCHIVES = (".npz",)


def check_picture(path: Path, suffixes: Sequence[str]) -> None:
    """Check, before any work is done for it, that a picture can be made."""
    suffix = io.check_output(path, suffixes)
    if suffixes == PAGES:
        require("plotly", "html")
    elif suffix == ".mp4":
        require("imageio_ffmpeg", "movie")
    elif suffix in (*PICTURES, ".gif"):
        require("matplotlib", "plot")


def write_embedding(output: str | None, Y: Array, labels: Array | None, **more: Any) -> None:
    """Write a map to a file, or to stdout."""
    if output == "-":
        write_delimited(sys.stdout, Y, labels)
    elif output is not None:
        io.write(output, Y, labels=labels, **more)


def draw(Y: Array, path: Path, **how: Any) -> None:
    """Write a picture of a map."""
    from acctsne.pictures import plot as pictures

    with replacing(path) as beside:
        pictures.save(Y, beside, **how)


def write_page(Y: Array | list[Array], path: Path, **how: Any) -> None:
    """Write the interactive page of a map, or of several."""
    from acctsne.pictures import html

    with replacing(path) as beside:
        html.write(Y, beside, **how)
