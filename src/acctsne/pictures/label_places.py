"""Where to write names on a map so that they can be read."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.ndimage import label

Array = npt.NDArray[Any]

# Most cells along each side of the grid on which islands are found: wider gaps part them.
_MAX_CELLS = 48

# Cells with less than this share of the category's fullest cell are strays, not land.
_STRAY = 0.1

_ROUNDS = 200


def island_medians(points: Array, codes: Array, n_categories: int) -> Array:
    """Median of each category's largest island: a category may have several, far apart.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_columns)
        The map.
    codes : ndarray of shape (n_points,)
        The category of each point, or -1.
    n_categories : int
        All of them have points.

    Returns
    -------
    places : ndarray of shape (n_categories, n_columns)

    Examples
    --------
    >>> import numpy as np
    >>> points = np.array([[0.0, 0.0], [0.1, 0.0], [0.3, 0.0], [9.0, 0.0], [5.0, 5.0]])
    >>> island_medians(points, np.array([0, 0, 0, 0, 1]), 2).tolist()
    [[0.1, 0.0], [5.0, 5.0]]
    """
    low = points.min(axis=0)
    side = (points.max(axis=0) - low).max() or 1.0
    n_cells = int(np.clip(math.sqrt(len(points)) / 2, 8, _MAX_CELLS))
    cells = np.minimum((points - low) * (n_cells / side), n_cells - 1).astype(np.int64)
    shape = (n_cells,) * points.shape[1]
    cell_of = np.ravel_multi_index(tuple(cells.T), shape)
    order = np.argsort(codes, kind="stable")
    borders = np.searchsorted(codes[order], np.arange(n_categories + 1))
    places = np.empty((n_categories, points.shape[1]))
    for code in range(n_categories):
        members = order[borders[code] : borders[code + 1]]
        counts = np.bincount(cell_of[members], minlength=math.prod(shape))
        land = counts >= _STRAY * counts.max()
        touching = np.ones((3,) * points.shape[1])  # also at corners
        island, _ = label(land.reshape(shape), structure=touching)
        sizes = np.bincount(island.ravel(), weights=counts)
        sizes[0] = 0  # the water
        on_largest = island.ravel()[cell_of[members]] == np.argmax(sizes)
        places[code] = np.median(points[members[on_largest]], axis=0)
    return places


def spread(centres: Array, sizes: Array) -> Array:
    """Move boxes apart as little as needed.

    Parameters
    ----------
    centres, sizes : ndarray of shape (n_boxes, 2)
        Where the boxes should be, and their widths and heights.

    Returns
    -------
    centres : ndarray of shape (n_boxes, 2)
        Where they overlap no more, or least after a fixed number of rounds.

    Examples
    --------
    >>> import numpy as np
    >>> spread(np.array([[0.0, 0.0], [4.0, 1.0]]), np.full((2, 2), [9.0, 3.0])).tolist()
    [[0.0, -1.0], [4.0, 2.0]]
    """
    centres = centres.astype(float)
    room = (sizes[:, None] + sizes[None]) / 2
    upper = np.triu(np.ones((len(centres), len(centres)), dtype=bool), k=1)
    for _ in range(_ROUNDS):
        overlaps = room - np.abs(centres[None] - centres[:, None])
        pairs = np.argwhere((overlaps > 1e-6).all(axis=-1) & upper)
        if len(pairs) == 0:
            break
        for i, j in pairs:
            offset = centres[j] - centres[i]
            overlap = room[i, j] - np.abs(offset)
            if overlap.min() <= 0:  # by an earlier move
                continue
            # Along the direction in which less has to be moved; half the way for each.
            axis = np.argmin(overlap)
            move = np.copysign(overlap[axis] / 2, offset[axis])
            centres[i, axis] -= move
            centres[j, axis] += move
    return centres
