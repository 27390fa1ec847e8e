"""Several maps in one picture: which points are the same, and what is known of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image, ImageSequence

from acctsne import html, movie, plot
from acctsne.pictures.colors import categorical
from acctsne.pictures.maps import Maps

TWO = [np.array([[0.0, 0.0], [0.0, 10.0]]), np.array([[10.0, 10.0], [10.0, 0.0], [5.0, 0.0]])]
IDS = [["shared", "going"], np.array(["shared", "coming", "late"])]


def test_points_are_counted_once() -> None:
    maps = Maps.of(TWO, IDS, ["a", "b"])
    assert maps.ids == ["shared", "going", "coming", "late"]
    assert [rows.tolist() for rows in maps.rows] == [[0, 1], [0, 2, 3]]
    same = Maps.of([TWO[0], TWO[0] + 1])
    assert [rows.tolist() for rows in same.rows] == [[0, 1], [0, 1]]
    assert (same.ids, same.titles) == (None, ["map 1", "map 2"])
    alone = Maps.of([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])  # a map as a list, not three maps
    assert (len(alone), alone.n_points) == (1, 3)


def test_labels_of_all_points() -> None:
    maps = Maps.of(TWO, IDS)
    numbers = maps.labels([[10, 9], [10, None, 9]])
    assert numbers is not None
    assert (numbers.names, numbers.codes.tolist()) == (["9", "10"], [1, 0, -1, 0])
    ordered = maps.labels([pd.Categorical(["z", "y"], ["z", "y"]), pd.Categorical(["z", "a", "y"])])
    assert ordered is not None
    assert (ordered.names, ordered.codes.tolist()) == (["z", "y", "a"], [0, 1, 2, 1])


def test_columns_that_differ_have_one_for_each_map() -> None:
    maps = Maps.of(TWO, IDS)

    def equal(a: Any, b: Any) -> bool:
        return bool(a == b)

    assert maps.column([[1, 2], [1, 3, 4]], equal) == [(None, [1, 2, 3, 4])]
    assert maps.column([None, [1, 3, 4]], equal) == [(None, [1, None, 3, 4])]
    assert maps.column([[1, 2], [7, 3, 4]], equal) == [
        (0, [1, 2, None, None]),
        (1, [7, None, 3, 4]),
    ]


def test_pictures_are_those_of_the_first_map_that_has_a_point() -> None:
    shades = [np.array([10, 20]), np.array([11, 30, 40])]
    pictures = [shade[:, None, None] * np.ones((1, 2, 3)) for shade in shades]
    found = Maps.of(TWO, IDS).images(pictures)
    assert found.shape == (4, 2, 3)
    assert found[:, 0, 0].tolist() == [10, 20, 30, 40]


def shown(frame: Any, code: int) -> Any:
    """Centre of what has a category's colour on the map, in pixels; None where there is nothing."""
    map_only = np.asarray(frame.convert("RGB")).astype(float)[40:, :570] / 255
    near = np.abs(map_only - categorical(4)[code]).max(axis=-1) < 0.12
    return np.argwhere(near).mean(axis=0) if near.sum() >= 4 else None


def test_movie_moves_shared_points_and_fades_others(tmp_path: Path) -> None:
    labels = [["a", "b"], ["a", "c", "d"]]
    movie.write(TWO, tmp_path / "a.gif", labels, ids=IDS, titles=["first", "second"])
    with Image.open(tmp_path / "a.gif") as film:
        frames = [frame.copy() for frame in ImageSequence.Iterator(film)]
        milliseconds = [frame.info["duration"] for frame in frames]
    assert milliseconds[0] == milliseconds[-1] == 1000
    assert set(milliseconds[1:-1]) == {50}
    way = np.array([shown(frame, 0) for frame in frames])  # from the lower left to the upper right
    # A square of 564 pixels below the title, in the middle of 600, with room for 0.25 of 10.5.
    margin = 564 * 0.25 / 10.5
    assert way[0] == pytest.approx([600 - margin - 40, 18 + margin], abs=3)
    assert (np.diff(way[:, 0]) <= 0.3).all()
    assert (np.diff(way[:, 1]) >= -0.3).all()
    middle = way[len(way) // 2]
    np.testing.assert_allclose(middle, (way[0] + way[-1]) / 2, atol=3)
    assert np.ptp(way, axis=0).min() > 400
    for code, first, last in [(1, True, False), (2, False, True), (3, False, True)]:
        assert (shown(frames[0], code) is not None) == first
        assert (shown(frames[-1], code) is not None) == last
        assert shown(frames[len(frames) // 2], code) is None  # half its opacity


def test_maps_beside_each_other(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    maps = [rng.normal(size=(50, 2)), rng.normal(size=(50, 2)) + 100]
    labels = np.repeat(["x", "y"], 25)
    plot.save(maps, tmp_path / "a.png", labels, titles=["left", "right"], names=False, legend=False)
    picture = np.asarray(Image.open(tmp_path / "a.png").convert("RGB")).astype(int)
    inked = np.argwhere((picture.max(axis=-1) - picture.min(axis=-1)) > 60)
    half = picture.shape[1] // 2
    left, right = inked[inked[:, 1] < half], inked[inked[:, 1] >= half] - [0, half]
    # Seen through the same frame, one lies at its lower left and the other at its upper right.
    assert left[:, 0].min() > right[:, 0].max() + 300
    assert left[:, 1].max() < right[:, 1].min() - 300
    for name, code in (("x", 0), ("y", 1)):
        color = 255 * categorical(2)[code]
        for part in (picture[:, :half], picture[:, half:]):
            assert (np.abs(part - color).max(axis=-1) < 40).sum() > 20, name


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ids": None}, r"maps have \[2, 3\] points; give ids"),
        ({"ids": [["a", "b"]]}, "ids must be a list with the ids of each of the 2 maps"),
        ({"ids": [["a", "b"], ["a", "b"]]}, r"ids\[1\] has 2 entries for 3 points"),
        ({"ids": [["a", "a"], IDS[1]]}, r"ids\[0\] has 'a' 2 times"),
        ({"ids": [[0, 1], ["0", "1", "2"]]}, r"ids\[1\] has none of the ids before, such as 0"),
        (
            {"labels": ["a", "b", "c"]},
            "labels must be a list with one entry for each of the 2 maps",
        ),
        ({"labels": [["a", "b"], ["a"]]}, "labels must have one entry for each of the 3 points"),
        ({"labels": [["a", "b"], ["c"] * 3]}, "'shared' has the label 'a' in one map and 'c' in"),
        ({"hover": {"x": [1, 2]}}, "hover must be a list with one entry for each of the 2 maps"),
        ({"hover": [{"x": [1]}, {}]}, r"hover\[0\]\['x'\] must have one entry .* 2 points; got 1"),
        ({"images": [np.ones((2, 4, 4)), np.ones((3, 5, 4))]}, r"images\[1\] must be of shape"),
        ({"titles": ["a"]}, "titles must be a list of 2, one for each map"),
        ({"Y": [TWO[0], np.ones((3, 3))]}, r"same number of columns; got \[2, 3\]"),
        ({"Y": [TWO[0], np.full((3, 2), np.nan)]}, "map 2: Y has NaN"),
    ],
)
def test_wrong_input(tmp_path: Path, wrong: dict[str, Any], message: str) -> None:
    given = {"Y": TWO, "ids": IDS, **wrong}
    with pytest.raises(ValueError, match=message):
        html.write(given.pop("Y"), tmp_path / "map.html", **given)
    assert not list(tmp_path.iterdir())


def test_a_movie_needs_two_maps(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="list of two maps or more"):
        movie.write([TWO[0]], tmp_path / "a.gif")
