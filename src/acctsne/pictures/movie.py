"""Movies of the optimisation: frames collected while a fit runs, written as gif, mp4 or html."""

import base64
import io
import json
import math
from dataclasses import dataclass
from html import escape
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.ndimage import gaussian_filter1d

from acctsne.pictures.html import fill
from acctsne.pictures.inputs import Quantized, categories, check_points
from acctsne.pictures.plot import MAX_NAMES, marker, scatter
from acctsne.runtime.optional import require

__all__ = ["Recorder"]

Array = npt.NDArray[Any]

_SMOOTHING = 3  # frames, the standard deviation of the window that the camera's way is averaged in
_FRAMES_A_SECOND = 20
_LAST_FRAME_SECONDS = 2
_INCHES, _DPI = 6.0, 100


@dataclass(frozen=True)
class _Frame:
    iteration: int
    kl: float
    positions: Quantized


class Recorder:
    """Collect the layout every so many iterations, then write a movie.

    Coordinates are kept in 16 bits: a frame of a million points takes 4 MB.

    Parameters
    ----------
    every : int, default=10
        Iterations between frames. The estimator must call as often: `callback_every=every`.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_digits
    >>> from acctsne import TSNE
    >>> from acctsne.pictures.movie import Recorder
    >>> X, y = load_digits(return_X_y=True)
    >>> recorder = Recorder(every=20)
    >>> tsne = TSNE(callback=recorder, callback_every=20).fit(X)
    >>> len(recorder) == (tsne.n_iter_ + 1) // 20
    True
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     recorder.write(f"{folder}/digits.gif", labels=y)
    ...     os.listdir(folder)
    ['digits.gif']
    """

    def __init__(self, every: int = 10) -> None:
        self.every = index(every)
        if self.every < 1:
            raise ValueError(f"every must be a positive number of iterations; got {every}")
        self._frames: list[_Frame] = []

    def __len__(self) -> int:
        return len(self._frames)

    def __call__(self, iteration: int, kl: float, positions: Array) -> None:
        """Keep the layout if it is time; a callback of `acctsne.TSNE`."""
        if (iteration + 1) % self.every == 0:
            self._frames.append(_Frame(iteration, kl, Quantized.of(check_points(positions))))

    def write(self, path: str | Path, labels: Any = None, *, title: str | None = None) -> None:
        """Write what was collected.

        Parameters
        ----------
        path : str or Path
            The file: .gif, .mp4, or .html for a page with a slider that needs no network.
        labels : array-like of shape (n_points,), default=None
            Categories to colour points by, as for `acctsne.plot.scatter`.
        title : str, default=None
            Text above the map.
        """
        path = Path(path)
        writers = {".gif": _write_gif, ".mp4": _write_mp4, ".html": _write_html}
        if path.suffix.lower() not in writers:
            raise ValueError(f"a movie is written as .gif, .mp4 or .html; got {str(path)!r}")
        if not self._frames:
            raise ValueError(
                "no frame was collected: pass the recorder as callback, with "
                f"callback_every={self.every} or a divisor of it"
            )
        writers[path.suffix.lower()](path, _Film(self._frames, labels, title))


def camera(radii: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """How far the camera sees from the centre in each frame: only ever farther, and smoothly.

    A map begins at 1e-4 and ends at 100, so it is the logarithm that is smoothed.

    Examples
    --------
    >>> camera([2.0, 2.0, 1.0]).round(6).tolist()
    [2.0, 2.0, 2.0]
    """
    largest = np.maximum.accumulate(np.asarray(radii, dtype=float))
    # Some frames ahead of the map, so that smoothing does not leave it behind.
    ahead = largest[np.minimum(np.arange(len(largest)) + 2 * _SMOOTHING, len(largest) - 1)]
    smooth = np.exp(gaussian_filter1d(np.log(ahead), _SMOOTHING, mode="nearest"))
    farthest: npt.NDArray[np.float64] = np.maximum(smooth, largest)
    return farthest


class _Film:
    """The frames as images, drawn when asked for."""

    def __init__(self, frames: list[_Frame], labels: Any, title: str | None) -> None:
        self.frames = frames
        self.title = title
        last = frames[-1].positions.points()
        self.labels = None if labels is None else categories(labels, len(last))
        self.sight = camera([_radius(frame.positions.points()) for frame in frames])

        figure = require("matplotlib.figure", "plot").Figure(figsize=(_INCHES, _INCHES), dpi=_DPI)
        self.canvas = require("matplotlib.backends.backend_agg", "plot").FigureCanvasAgg(figure)
        projection = "3d" if last.shape[1] == 3 else None
        self.ax = figure.add_axes((0, 0, 1, 0.94), projection=projection)
        self.size, self.alpha = marker(self.ax, last)
        self._draw(len(frames) - 1)
        legend = self.ax.get_legend()
        if legend is not None:
            # Pixels on either side must be even for mp4.
            width = 2 * math.ceil(legend.get_window_extent().x1 / 2) / _DPI
            figure.set_size_inches(width, _INCHES)
            self.ax.set_position((0, 0, _INCHES / width, 0.94))

    def __len__(self) -> int:
        return len(self.frames)

    def image(self, number: int) -> Array:
        """Red, green and blue of one frame."""
        self._draw(number)
        self.canvas.draw()
        return np.array(self.canvas.buffer_rgba())[..., :3]

    def _draw(self, number: int) -> None:
        frame = self.frames[number]
        progress = f"iteration {frame.iteration + 1}, KL divergence {frame.kl:.3f}"
        points = frame.positions.points()
        self.ax.clear()
        scatter(
            points,
            self.labels,
            ax=self.ax,
            size=self.size,
            alpha=self.alpha,
            names=False,  # they would jump about
            legend=self.labels is not None and len(self.labels.names) <= MAX_NAMES,
            title=progress if self.title is None else f"{self.title}: {progress}",
        )
        center, radius = points.mean(axis=0), self.sight[number]
        for axis, middle in zip("xyz", center, strict=False):
            self.ax.set(**{f"{axis}lim": (middle - radius, middle + radius)})


def _radius(points: Array) -> float:
    """Half the side of a square around all points, with some room."""
    return 1.05 * float(np.abs(points - points.mean(axis=0)).max()) or 1.0


def _with_palette(pixels: Array) -> Any:
    """Give an image of 256 colours, chosen so that rare ones, as of text, are kept."""
    Image = require("PIL.Image", "plot")
    return Image.fromarray(pixels).quantize(256, Image.Quantize.MAXCOVERAGE)


def _write_gif(path: Path, film: _Film) -> None:
    images = (_with_palette(film.image(k)) for k in range(len(film)))
    durations = [1000 // _FRAMES_A_SECOND] * len(film)
    durations[-1] = 1000 * _LAST_FRAME_SECONDS
    next(images).save(
        path, format="gif", save_all=True, append_images=images, duration=durations, loop=0
    )


def _write_mp4(path: Path, film: _Film) -> None:
    ffmpeg = require("imageio_ffmpeg", "movie")
    size = film.canvas.get_width_height()
    writer = ffmpeg.write_frames(str(path), size, fps=_FRAMES_A_SECOND, macro_block_size=2)
    writer.send(None)  # starts the encoder
    for k in range(len(film)):
        image = np.ascontiguousarray(film.image(k))
        writer.send(image)
    for _ in range(_FRAMES_A_SECOND * _LAST_FRAME_SECONDS):
        writer.send(image)
    writer.close()


def _write_html(path: Path, film: _Film) -> None:
    frames = []
    for k in range(len(film)):
        written = io.BytesIO()
        _with_palette(film.image(k)).save(written, format="png", optimize=True)
        frames.append(base64.b64encode(written.getvalue()).decode())
    page = fill(
        "movie.html",
        title=escape(film.title or "t-SNE"),
        frames=json.dumps(frames),
        milliseconds=str(1000 // _FRAMES_A_SECOND),
    )
    path.write_text(page, encoding="utf-8", errors="replace")
