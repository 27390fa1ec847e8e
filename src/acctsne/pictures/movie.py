"""Movies as gif, mp4 or html: of a fit, collected as it runs, and from one map to another."""

import base64
import errno
import io
import json
import math
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from operator import index
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.ndimage import gaussian_filter1d

from acctsne.files.replacing import replacing, suffix_of
from acctsne.pictures.html import fill
from acctsne.pictures.inputs import Categories, Quantized, categories, check_points
from acctsne.pictures.maps import Maps
from acctsne.pictures.plot import MAX_NAMES, marker, scatter
from acctsne.runtime.interrupts import lost_interrupts
from acctsne.runtime.optional import require

Array = npt.NDArray[Any]

_SMOOTHING = 3  # frames, the standard deviation of the window that the camera's way is averaged in
_FRAMES_A_SECOND = 20
_LAST_FRAME_SECONDS = 2.0
_MAP_SECONDS = 1.0  # that a map of several is shown
_FRAMES_OF_A_FLIP = 24  # from one map to the next
_INCHES, _DPI = 6.0, 100

# The rate factor of the encoder of mp4, whose own default is 23: with a higher one films are
# smaller, and coarser.
_RATE_FACTOR = 25


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
    >>> from acctsne import TSNE, movie
    >>> X, y = load_digits(return_X_y=True)
    >>> recorder = movie.Recorder(every=20)
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
            The file: .gif, .mp4, or .html for a page with a slider that needs no network. It is
            replaced whole or not at all.
        labels : array-like of shape (n_points,), default=None
            Categories to colour points by, as for `acctsne.plot.scatter`.
        title : str, default=None
            Text above the map.
        """
        save = _writer(path)
        if not self._frames:
            raise ValueError(
                "no frame was collected: pass the recorder as callback, with "
                f"callback_every={self.every} or a divisor of it"
            )
        shapes = {frame.positions.steps.shape for frame in self._frames}
        if len(shapes) > 1:
            raise ValueError(
                f"the recorder has frames of maps of shapes {sorted(shapes)}; use one for each fit"
            )
        _write_film(_Film(_Growth(self._frames, labels), title), save, path)


def write(
    Y: Sequence[npt.ArrayLike],
    path: str | Path,
    labels: Any = None,
    *,
    ids: Any = None,
    title: str | None = None,
    titles: Sequence[str] | None = None,
) -> None:
    """Write a movie that goes from map to map.

    Points that two maps share move from their place in the first to that in the second; the others
    fade.

    Parameters
    ----------
    Y : list of array-like of shape (n_points, 2) or (n_points, 3)
        The maps, such as those of :class:`AlignedTSNE`.
    path : str or Path
        The file: .gif, .mp4, or .html for a page with a slider that needs no network. It is
        replaced whole or not at all.
    labels : array-like of shape (n_points,), default=None
        Categories to colour points by; with ids, a list with those of each map.
    ids : list of array-like of shape (n_points,), default=None
        Names of the points of each map: equal ones are the same point. With None, a row is the same
        point in every map.
    title : str, default=None
        Text above the maps.
    titles : list of str, default=None
        What each map is called.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_digits
    >>> from acctsne import AlignedTSNE, movie
    >>> X, y = load_digits(return_X_y=True)
    >>> rows = [list(range(200)), list(range(100, 300))]
    >>> maps = AlignedTSNE().fit_transform([X[each] for each in rows], ids=rows)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     movie.write(maps, f"{folder}/maps.gif", [y[each] for each in rows], ids=rows)
    ...     os.listdir(folder)
    ['maps.gif']
    """
    save = _writer(path)
    maps = Maps.of(Y, ids, titles)
    if len(maps) < 2:
        raise ValueError("a movie goes from map to map: Y must be a list of two maps or more")
    _write_film(_Film(_Flips(maps, maps.labels(labels)), title), save, path)


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


@dataclass(frozen=True)
class _Scene:
    """What one frame shows."""

    points: Array
    labels: Categories | None
    fade: Array | float  # how much of its opacity each point has
    caption: str
    centre: Array
    radius: float  # that the camera sees from the centre
    seconds: float


class _Script(Protocol):
    """What a film shows: scenes, made when asked for; by the last, sizes of markers are chosen."""

    def __len__(self) -> int: ...

    def scene(self, number: int) -> _Scene: ...


class _Growth:
    """A fit: the map forms and grows."""

    def __init__(self, frames: list[_Frame], labels: Any) -> None:
        self.frames = frames
        n_points = len(frames[-1].positions.steps)
        self.labels = None if labels is None else categories(labels, n_points)
        self.sight = camera([_radius(frame.positions.points()) for frame in frames])

    def __len__(self) -> int:
        return len(self.frames)

    def scene(self, number: int) -> _Scene:
        frame = self.frames[number]
        points = frame.positions.points()
        caption = f"iteration {frame.iteration + 1}, KL divergence {frame.kl:.3f}"
        last = number == len(self) - 1
        return _Scene(
            points,
            self.labels,
            1.0,
            caption,
            points.mean(axis=0),
            self.sight[number],
            _LAST_FRAME_SECONDS if last else 1 / _FRAMES_A_SECOND,
        )


class _Flips:
    """Several maps: each for a while, and on the way to the next, points between both."""

    def __init__(self, maps: Maps, labels: Categories | None) -> None:
        self.maps = maps
        self.labels = labels
        every = np.concatenate(maps.layouts)
        low, high = every.min(axis=0), every.max(axis=0)
        self.centre = (low + high) / 2
        self.radius = 1.05 * float((high - low).max()) / 2 or 1.0

    def __len__(self) -> int:
        return (len(self.maps) - 1) * _FRAMES_OF_A_FLIP + 1

    def scene(self, number: int) -> _Scene:
        before, step = divmod(number, _FRAMES_OF_A_FLIP)
        part = step / _FRAMES_OF_A_FLIP
        part = part * part * (3 - 2 * part)  # away and home slowly
        after = before + (step > 0)
        here, there = self._places(before), self._places(after)
        had, has = ~np.isnan(here[:, 0]), ~np.isnan(there[:, 0])
        places = np.where(
            (had & has)[:, None],
            (1 - part) * here + part * there,
            np.where(had[:, None], here, there),
        )
        fade = np.where(had & has, 1.0, np.where(had, 1 - part, part))
        shown = np.flatnonzero(had | has)
        labels = self.labels
        if labels is not None:
            labels = Categories(labels.names, labels.codes[shown])
        titles = self.maps.titles
        return _Scene(
            places[shown],
            labels,
            fade[shown],
            titles[before] if step == 0 else f"{titles[before]} \u2192 {titles[after]}",
            self.centre,
            self.radius,
            _MAP_SECONDS if step == 0 else 1 / _FRAMES_A_SECOND,
        )

    def _places(self, m: int) -> Array:
        """Where a map has each point; nan where it has not."""
        places = np.full((self.maps.n_points, self.maps.layouts[m].shape[1]), np.nan)
        places[self.maps.rows[m]] = self.maps.layouts[m]
        return places


class _Film:
    """The scenes as images, drawn when asked for."""

    def __init__(self, script: _Script, title: str | None) -> None:
        self.script = script
        self.title = title
        self.before_a_frame: Callable[[], None] = lambda: None
        last = script.scene(len(script) - 1)

        figure = require("matplotlib.figure", "plot").Figure(figsize=(_INCHES, _INCHES), dpi=_DPI)
        self.canvas = require("matplotlib.backends.backend_agg", "plot").FigureCanvasAgg(figure)
        projection = "3d" if last.points.shape[1] == 3 else None
        self.ax = figure.add_axes((0, 0, 1, 0.94), projection=projection)
        self.size, self.alpha = marker(self.ax, last.points)
        self._draw(last)
        legend = self.ax.get_legend()
        if legend is not None:
            # Pixels on either side must be even for mp4.
            width = 2 * math.ceil(legend.get_window_extent().x1 / 2) / _DPI
            figure.set_size_inches(width, _INCHES)
            self.ax.set_position((0, 0, _INCHES / width, 0.94))

    def __len__(self) -> int:
        return len(self.script)

    def seconds(self, number: int) -> float:
        """How long a frame is shown."""
        return self.script.scene(number).seconds

    def image(self, number: int) -> Array:
        """Red, green and blue of one frame."""
        self.before_a_frame()
        self._draw(self.script.scene(number))
        self.canvas.draw()
        return np.array(self.canvas.buffer_rgba())[..., :3]

    def _draw(self, scene: _Scene) -> None:
        self.ax.clear()
        scatter(
            scene.points,
            scene.labels,
            ax=self.ax,
            size=self.size,
            alpha=self.alpha * scene.fade,
            names=False,  # they would jump about
            legend=scene.labels is not None and len(scene.labels.names) <= MAX_NAMES,
            title=scene.caption if self.title is None else f"{self.title}: {scene.caption}",
        )
        for axis, middle in zip("xyz", scene.centre, strict=False):
            self.ax.set(**{f"{axis}lim": (middle - scene.radius, middle + scene.radius)})


def _radius(points: Array) -> float:
    """Half the side of a square around all points, with some room."""
    return 1.05 * float(np.abs(points - points.mean(axis=0)).max()) or 1.0


def _with_palette(pixels: Array) -> Any:
    """Give an image of 256 colours, chosen so that rare ones, as of text, are kept."""
    Image = require("PIL.Image", "plot")
    return Image.fromarray(pixels).quantize(256, Image.Quantize.MAXCOVERAGE)


def _writer(path: str | Path) -> Callable[[Path, _Film], None]:
    if suffix_of(path) not in WRITERS:
        raise ValueError(f"a movie is written as .gif, .mp4 or .html; got {str(path)!r}")
    return WRITERS[suffix_of(path)]


def _write_film(film: _Film, save: Callable[[Path, _Film], None], path: str | Path) -> None:
    with lost_interrupts() as film.before_a_frame, replacing(Path(path)) as beside:
        save(beside, film)
        film.before_a_frame()


def _milliseconds(film: _Film) -> list[int]:
    return [round(1000 * film.seconds(k)) for k in range(len(film))]


def _write_gif(path: Path, film: _Film) -> None:
    images = (_with_palette(film.image(k)) for k in range(len(film)))
    durations = _milliseconds(film)
    next(images).save(
        path, format="gif", save_all=True, append_images=images, duration=durations, loop=0
    )


def _write_mp4(path: Path, film: _Film) -> None:
    # Not by imageio_ffmpeg's own writer, which does not look at how the encoder ended: a full disk
    # would leave part of a movie and no word of it.
    program = require("imageio_ffmpeg", "movie").get_ffmpeg_exe()
    width, height = film.canvas.get_width_height()
    frames = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}"]
    frames += ["-r", str(_FRAMES_A_SECOND), "-i", "-"]
    coded = ["-vcodec", "libx264", "-pix_fmt", "yuv420p", "-crf", str(_RATE_FACTOR)]
    command = [program, "-y", "-v", "error", *frames, *coded]
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen([*command, path], stdin=subprocess.PIPE, stderr=said) as encoder,
    ):
        assert encoder.stdin is not None  # it was asked for
        with suppress(BrokenPipeError):  # it has ended, and says why
            for k in range(len(film)):
                image = np.ascontiguousarray(film.image(k))
                for _ in range(round(_FRAMES_A_SECOND * film.seconds(k))):
                    encoder.stdin.write(image.data)
            encoder.stdin.close()
        if encoder.wait() != 0:
            said.seek(0)
            lines = said.read().decode(errors="replace").splitlines()
            first = next((line for line in lines if line.strip()), "no reason given")
            raise OSError(errno.EIO, f"the encoder ffmpeg failed: {first.rpartition('] ')[2]}")


def _write_html(path: Path, film: _Film) -> None:
    frames = []
    for k in range(len(film)):
        written = io.BytesIO()
        _with_palette(film.image(k)).save(written, format="png", optimize=True)
        frames.append(base64.b64encode(written.getvalue()).decode())
    page = fill(
        "movie.html",
        title=escape("" if film.title is None else str(film.title)) or "t-SNE",
        frames=json.dumps(frames),
        milliseconds=json.dumps(_milliseconds(film)),
    )
    path.write_text(page, encoding="utf-8", errors="replace")


# Formats of movies.
WRITERS = {".gif": _write_gif, ".mp4": _write_mp4, ".html": _write_html}
