"""Colours of categories: as different as can be, for colour-blind readers too."""

import colorsys

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.colors import to_hex, to_rgb

from acctsne.pictures import colors


def smallest_distance(palette: colors.Colors, view: colors.Colors | None = None) -> float:
    lab = colors.oklab(palette, view)
    distances = np.linalg.norm(lab[:, None] - lab[None], axis=-1)
    return float(distances[~np.eye(len(palette), dtype=bool)].min())


def test_known_colors_of_oklab() -> None:
    # The table of examples in Ottosson's text, from CIE XYZ of pure sRGB red, green and blue.
    found = colors.oklab(np.eye(3))
    expected = [[0.628, 0.225, 0.126], [0.866, -0.234, 0.179], [0.452, -0.032, -0.312]]
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("name", ["tab10", "tab20", "Set3", "Paired"])
def test_farther_apart_than_common_palettes(name: str) -> None:
    theirs = np.array([to_rgb(color) for color in colormaps[name].colors])  # type: ignore[attr-defined]
    assert smallest_distance(colors.categorical(len(theirs))) > smallest_distance(theirs)


@pytest.mark.parametrize("view", colors._COLOR_BLIND_VIEWS)
def test_color_blind_readers_can_tell_ten(view: colors.Colors) -> None:
    tab10 = np.array([to_rgb(color) for color in colormaps["tab10"].colors])  # type: ignore[attr-defined]
    assert smallest_distance(colors.categorical(10), view) > smallest_distance(tab10, view)
    assert smallest_distance(colors.categorical(10), view) > 0.05


def test_colors_can_be_seen_on_white_and_are_not_grey() -> None:
    palette = colors.categorical(colors.MAX_DISTINCT)
    assert len(np.unique(palette, axis=0)) == colors.MAX_DISTINCT
    assert smallest_distance(np.vstack([palette, [1, 1, 1]])) > 0.02
    saturation = [colorsys.rgb_to_hsv(*color)[1] for color in palette.tolist()]
    assert min(saturation) > 0.15


def test_a_color_does_not_depend_on_how_many_more_there_are() -> None:
    np.testing.assert_array_equal(colors.categorical(5), colors.categorical(500)[:5])
    np.testing.assert_array_equal(colors.categorical(0), np.empty((0, 3)))
    repeated = colors.categorical(colors.MAX_DISTINCT + 3)
    np.testing.assert_array_equal(repeated[-3:], repeated[:3])


def test_hex_codes_are_matplotlibs() -> None:
    palette = colors.categorical(20)
    assert colors.hex_codes(palette) == [to_hex(color) for color in palette]
    np.testing.assert_allclose(colors.from_hex("#2f72b8"), to_rgb("#2f72b8"))
