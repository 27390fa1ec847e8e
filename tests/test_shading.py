"""Shading of maps with more points than pixels, against datashader."""

from typing import Any

import datashader as ds
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from acctsne.pictures.shading import opacity, pixel_of, shade

SIZE = 40
LOW, HIGH = np.array([-4.0, -5.0]), np.array([6.0, 5.0])


@pytest.fixture(scope="module")
def points() -> npt.NDArray[Any]:
    return np.clip(np.random.default_rng(0).normal(size=(20000, 2)), LOW, HIGH)


def aggregate(points: npt.NDArray[Any], **column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """datashader's count of points on each pixel, or mean of the column there."""
    canvas = ds.Canvas(SIZE, SIZE, x_range=(LOW[0], HIGH[0]), y_range=(LOW[1], HIGH[1]))
    table = pd.DataFrame({"x": points[:, 0], "y": points[:, 1], **column})
    how = ds.mean(next(iter(column))) if column else ds.count()
    return np.asarray(canvas.points(table, "x", "y", how))


def test_counts_are_datashaders(points: npt.NDArray[Any]) -> None:
    counts = np.bincount(pixel_of(points, LOW, HIGH, SIZE), minlength=SIZE**2)
    np.testing.assert_array_equal(counts.reshape(SIZE, SIZE), aggregate(points))


def test_colors_are_means(points: npt.NDArray[Any]) -> None:
    rng = np.random.default_rng(1)
    table = rng.random((5, 3))
    rows = rng.integers(5, size=len(points))
    image = shade(points, LOW, HIGH, SIZE, rows, table)
    for channel in range(3):
        mean = aggregate(points, tint=table[rows, channel])
        np.testing.assert_allclose(image[..., channel], np.nan_to_num(mean))


def test_points_without_a_label_lie_below(points: npt.NDArray[Any]) -> None:
    rows = np.where(points[:, 0] > 0, 0, -1)
    rows[0] = 0
    blue_and_grey = np.array([[0.0, 0.0, 1.0], [0.5, 0.5, 0.5]])
    image = shade(points, LOW, HIGH, SIZE, rows, blue_and_grey).reshape(-1, 4)
    pixels = pixel_of(points, LOW, HIGH, SIZE)
    labelled = np.zeros(SIZE**2, dtype=bool)
    labelled[pixels[rows >= 0]] = True
    occupied = np.zeros(SIZE**2, dtype=bool)
    occupied[pixels] = True
    assert (image[labelled, :3] == blue_and_grey[0]).all()
    assert (image[occupied & ~labelled, :3] == blue_and_grey[1]).all()
    assert ((image[:, 3] > 0) == occupied).all()


def test_more_points_are_never_less_opaque() -> None:
    counts = np.random.default_rng(0).geometric(0.1, size=1000) - 1
    order = np.argsort(counts, kind="stable")
    found = opacity(counts)[order]
    assert (np.diff(found) >= 0).all()
    assert found[-1] == 1
    assert (found[counts[order] == 0] == 0).all()
    assert found[counts[order] > 0].min() >= 0.4
    # Equalised: half of the occupied pixels lie in either half of the range, but for ties.
    assert abs((found[found > 0] < 0.7).mean() - 0.5) < 0.1
