"""A picture of more points than pixels: how many fall on each pixel, and of which colour.

1. Points are counted on a grid.
2. A pixel's colour is the mean of its points' colours.
3. Its opacity grows with the rank of its count among all pixels' counts, so that both sparse and
   dense regions show structure.

Counting and equalising follow datashader.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# A pixel with a single point must still be seen.
_MIN_OPACITY = 0.4


def shade(points: Array, low: Array, high: Array, size: int, rows: Array, colors: Array) -> Array:
    """Draw points of two columns as an image of size x size pixels.

    Parameters
    ----------
    points : ndarray of shape (n_points, 2)
        All of them within `low` and `high`.
    low, high : ndarray of shape (2,)
        Corners of the image.
    size : int
        Pixels along each side.
    rows : ndarray of shape (n_points,)
        Each point's row of `colors`; points of row -1 count only where there are no others.
    colors : ndarray of shape (n_colors, 3)
        sRGB.

    Returns
    -------
    image : ndarray of shape (size, size, 4)
        Red, green, blue and opacity; the first row is the lowest.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.array([[0.1, 0.1], [0.2, 0.2], [0.9, 0.9]])
    >>> red_blue = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> image = shade(points, np.zeros(2), np.ones(2), 2, np.array([0, 1, 1]), red_blue)
    >>> image[0, 0].tolist(), image[1, 1].tolist(), image[0, 1].tolist()
    ([0.5, 0.0, 0.5, 1.0], [0.0, 0.0, 1.0, 0.4], [0.0, 0.0, 0.0, 0.0])
    """
    pixels = pixel_of(points, low, high, size)
    image = np.zeros((size * size, 4))
    for shown in (rows < 0, rows >= 0):
        here = pixels[shown]
        counts = np.bincount(here, minlength=size * size)
        taken = counts > 0
        for channel in range(3):
            tint = colors[rows[shown], channel]
            total = np.bincount(here, weights=tint, minlength=size * size)
            image[taken, channel] = total[taken] / counts[taken]
    image[:, 3] = opacity(np.bincount(pixels, minlength=size * size))
    return image.reshape(size, size, 4)


def pixel_of(points: Array, low: Array, high: Array, size: int) -> Array:
    """Index of the pixel that each point falls on, row by row from the lower left corner."""
    cells = ((points - low) * (size / (high - low))).astype(np.int64)
    np.clip(cells, 0, size - 1, out=cells)  # the upper borders belong to the last pixels
    pixels: Array = cells[:, 1] * size + cells[:, 0]
    return pixels


def opacity(counts: Array) -> Array:
    """Opacity by rank of the count: 0 for no point, then from the least one up to 1."""
    found = np.zeros(counts.shape)
    occupied = counts > 0
    levels, level, pixels = np.unique(counts[occupied], return_inverse=True, return_counts=True)
    fewer = np.cumsum(pixels) - pixels  # pixels with fewer points
    rank = fewer / fewer[-1] if len(levels) > 1 else np.ones(1)
    found[occupied] = (_MIN_OPACITY + (1 - _MIN_OPACITY) * rank)[level]
    return found
