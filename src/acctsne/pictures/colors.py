"""Colours for any number of categories, each as unlike all earlier ones as can be.

1. Candidates are a grid of sRGB colours, neither too light nor too dark nor greyish.
2. Colours are compared in OKLab (Ottosson 2020), where equal distances look about equally large.
3. Each next colour is the candidate farthest from all colours taken so far, as in Glasbey et al.
   2007; the first ones are compared as people with red-green colour blindness see them, too.

A category's colour does not depend on how many more there are.
"""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Colors = npt.NDArray[np.float64]  # (n, 3), sRGB in 0..1

# Points without a label: a light grey, which no category comes near.
MISSING = "#c8c8c8"

# Points where there is nothing to tell apart, and the colour that all others are measured from.
SINGLE = "#2f72b8"

# Beyond this many categories nobody can tell them by colour alone: colours begin anew.
MAX_DISTINCT = 256

# So many colours are kept apart for colour-blind readers, too; many more cannot be. Those readers'
# distances are scaled up, for fewer colours lie within them: 2.5 leaves both kinds of readers about
# equally well served.
_COLOR_BLIND_SAFE = 10
_COLOR_BLIND_SCALE = 2.5

# OKLab's published matrices: linear sRGB to cone responses, their cube roots to lightness and hue.
_TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)

# How linear sRGB looks without red (protanopia) or green (deuteranopia) cones: Machado, Oliveira
# and Fernandes 2009, severity 1.
_COLOR_BLIND_VIEWS = (
    np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
)


def categorical(n: int) -> Colors:
    """Colours of n categories.

    Examples
    --------
    >>> categorical(3).shape
    (3, 3)
    >>> bool((categorical(20)[:3] == categorical(3)).all())
    True
    """
    return _palette()[np.arange(n) % MAX_DISTINCT]


def hex_codes(colors: Colors) -> list[str]:
    """Write colours as browsers read them.

    Examples
    --------
    >>> hex_codes(np.array([[1.0, 0.5, 0.0]]))
    ['#ff8000']
    """
    return ["#{:02x}{:02x}{:02x}".format(*row) for row in np.rint(colors * 255).astype(int)]


def from_hex(code: str) -> Colors:
    """Read one colour written as #rrggbb.

    Examples
    --------
    >>> from_hex("#ff8000").round(2).tolist()
    [1.0, 0.5, 0.0]
    """
    return np.array([int(code[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def oklab(colors: Colors, view: npt.NDArray[Any] | None = None) -> Colors:
    """Perceptual coordinates of sRGB colours, optionally as seen with a kind of colour blindness.

    Examples
    --------
    >>> oklab(np.array([[1.0, 1.0, 1.0]])).round(3).tolist()  # white: lightness 1, no hue
    [[1.0, 0.0, 0.0]]
    """
    linear = np.where(colors <= 0.04045, colors / 12.92, ((colors + 0.055) / 1.055) ** 2.4)
    if view is not None:
        linear = np.clip(linear @ view.T, 0, 1)
    lab: Colors = np.cbrt(linear @ _TO_CONES.T) @ _TO_LAB.T
    return lab


@cache
def _palette() -> Colors:
    steps = np.linspace(0, 1, 18)
    candidates = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(-1, 3)
    lightness, *hue = oklab(candidates).T
    chroma = np.hypot(*hue)
    # Lighter than 0.82 is lost on white, darker than 0.5 looks black in small points; less chroma
    # than 0.09 looks grey, more than 0.19 is neon.
    good = (lightness > 0.5) & (lightness < 0.82) & (chroma > 0.09) & (chroma < 0.19)
    candidates = candidates[good]

    chosen = [from_hex(SINGLE)]
    apart = _distance(candidates, from_hex(MISSING))
    blind_apart = np.full_like(apart, np.inf)
    while len(chosen) < MAX_DISTINCT:
        np.minimum(apart, _distance(candidates, chosen[-1]), out=apart)
        score = apart
        if len(chosen) < _COLOR_BLIND_SAFE:
            for view in _COLOR_BLIND_VIEWS:
                np.minimum(blind_apart, _distance(candidates, chosen[-1], view), out=blind_apart)
            score = np.minimum(apart, _COLOR_BLIND_SCALE * blind_apart)
        chosen.append(candidates[np.argmax(score)])
    return np.array(chosen)


def _distance(colors: Colors, color: Colors, view: npt.NDArray[Any] | None = None) -> Colors:
    distance: Colors = np.linalg.norm(oklab(colors, view) - oklab(color, view), axis=-1)
    return distance
