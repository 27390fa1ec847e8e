"""Pictures: what is drawn, where, in which colour, and that nothing else changes."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.dom import minidom

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

from acctsne import plot
from acctsne.pictures.colors import MISSING, categorical
from acctsne.pictures.label_places import island_medians, spread
from acctsne.pictures.plot import MAX_LEGEND

Array = npt.NDArray[Any]

rng = np.random.default_rng(0)
CENTERS = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]])
CODES = np.repeat([0, 1, 2], 100)
MAP = CENTERS[CODES] + rng.normal(size=(300, 2))
NAMES = np.array(["ant", "bee", "cat"], dtype=object)


@pytest.fixture
def ax() -> Any:
    return Figure(figsize=(6, 6)).add_axes((0, 0, 1, 1))


def drawn(ax: Any) -> tuple[Array, Array]:
    """Positions and colours of the points, in the order they are drawn."""
    (points,) = ax.collections
    colors = points.get_facecolors()[:, :3]
    return np.asarray(points.get_offsets()), np.broadcast_to(colors, (len(colors), 3))


def texts(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


def legend(ax: Any) -> list[str]:
    found = ax.get_legend()
    return [] if found is None else [text.get_text() for text in found.get_texts()]


def test_every_point_is_drawn_in_its_category_color(ax: Any) -> None:
    assert plot.scatter(MAP, NAMES[CODES], ax=ax) is ax
    positions, colors = drawn(ax)
    expected = {
        tuple(point): tuple(categorical(3)[code]) for point, code in zip(MAP, CODES, strict=True)
    }
    assert {tuple(p): tuple(c) for p, c in zip(positions, colors, strict=True)} == expected
    # Not one category after the other: each is among the last third drawn.
    assert len(np.unique(colors[-100:], axis=0)) == 3


def test_the_same_picture_twice(tmp_path: Path) -> None:
    for name in ("one.png", "two.png"):
        plot.save(MAP, tmp_path / name, NAMES[CODES])
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_frame_is_square_with_all_points_and_without_ticks(ax: Any) -> None:
    plot.scatter(MAP * [1, 0.3], ax=ax)
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    assert right - left == pytest.approx(top - bottom)
    assert left < MAP[:, 0].min() < MAP[:, 0].max() < right
    assert ax.get_aspect() == 1
    assert not ax.axison


def test_points_without_label_are_grey_and_drawn_first(ax: Any) -> None:
    labels = NAMES[CODES]
    labels[::3] = None
    plot.scatter(MAP, labels, ax=ax, legend=True)
    positions, colors = drawn(ax)
    assert np.allclose(colors[:100], to_rgb(MISSING))
    assert not np.isclose(colors[100:], to_rgb(MISSING)).all(axis=1).any()
    np.testing.assert_array_equal(np.unique(positions[:100]), np.unique(MAP[::3]))
    assert legend(ax) == ["ant", "bee", "cat", "none"]


def test_names_stand_on_their_categories(ax: Any) -> None:
    plot.scatter(MAP, NAMES[CODES], ax=ax)
    assert texts(ax) == ["ant", "bee", "cat"]
    for text, center in zip(ax.texts, CENTERS, strict=True):
        np.testing.assert_allclose(text.get_position(), center, atol=1)
    assert legend(ax) == []  # it would say the same again


def test_a_name_stands_on_the_largest_island() -> None:
    points = np.vstack([MAP, MAP[:60] + 50])
    codes = np.concatenate([CODES, np.zeros(60, dtype=int)])
    np.testing.assert_allclose(island_medians(points, codes, 3), CENTERS, atol=1)


def test_names_do_not_overlap() -> None:
    many = np.random.default_rng(1).normal(scale=80, size=(30, 2))
    sizes = np.tile([60.0, 10.0], (30, 1))
    moved = spread(many, sizes)
    gaps = np.abs(moved[:, None] - moved[None]) - sizes[0]
    assert (gaps.max(axis=-1)[~np.eye(30, dtype=bool)] > -0.01).all()
    far = np.arange(30)[:, None] * [100.0, 0.0]
    np.testing.assert_array_equal(spread(far, sizes), far)


def test_many_long_names_have_a_legend_that_fits(tmp_path: Path) -> None:
    labels = [f"a category with a very long name, number {i % 60:02}" for i in range(300)]
    ax = plot.scatter(MAP, labels)
    figure: Any = ax.figure
    assert texts(ax) == []
    assert len(legend(ax)) == 60
    assert all(len(name) <= 32 for name in legend(ax))
    figure.canvas.draw()
    found: Any = ax.get_legend()
    box = found.get_window_extent()
    assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1
    assert ax.get_window_extent().width > 5 * figure.dpi  # and the map has not shrunk
    plt.close(figure)


def test_a_legend_lists_the_largest_categories(ax: Any) -> None:
    labels = np.arange(300)
    labels[150:] = 149
    plot.scatter(MAP, labels, ax=ax)
    assert len(legend(ax)) == MAX_LEGEND + 1
    assert "149" in legend(ax)
    assert legend(ax)[-1] == "and 30 smaller ones"


def test_text_is_not_read_as_mathematics(tmp_path: Path) -> None:
    plot.save(MAP, tmp_path / "a.png", ["$\\nonsense$"] * 300, title="$\\bad$", legend=True)


def test_values_have_colors_of_the_map_and_a_bar(ax: Any) -> None:
    values = np.arange(300.0)
    values[:5] = np.nan
    plot.scatter(MAP, values=values, ax=ax, cmap="magma")
    positions, colors = drawn(ax)
    where = {tuple(point): color for point, color in zip(positions, colors, strict=True)}
    magma = mpl.colormaps["magma"]
    np.testing.assert_allclose(where[tuple(MAP[0])], to_rgb(MISSING), atol=1e-6)
    np.testing.assert_allclose(where[tuple(MAP[-1])], magma(1.0)[:3])
    np.testing.assert_allclose(where[tuple(MAP[5])], magma(0.0)[:3])
    middle = (152 - 6.47) / (297.53 - 6.47)  # percentiles 0.5 and 99.5 of 5 to 299
    np.testing.assert_allclose(where[tuple(MAP[152])], magma(middle)[:3], atol=0.01)
    assert len(ax.figure.axes) == 2


def test_constant_values(ax: Any) -> None:
    plot.scatter(MAP, values=np.ones(300), ax=ax)


@pytest.mark.parametrize(
    ("kinds", "keys"),
    [(NAMES, NAMES), (np.arange(3), "012"), (np.arange(3), range(3)), (np.arange(3.0), range(3))],
)
def test_own_colors(ax: Any, kinds: Array, keys: Any) -> None:
    colors = dict(zip(keys, ("red", "lime", "blue"), strict=True))
    plot.scatter(MAP, kinds[CODES], ax=ax, colors=colors)
    assert set(map(tuple, drawn(ax)[1])) == {(1, 0, 0), (0, 1, 0), (0, 0, 1)}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"labels": CODES, "values": CODES}, "got both"),
        ({"values": np.full(300, np.nan)}, "all missing"),
        ({"labels": CODES, "colors": ["red"]}, "colors has 1 for 3 categories"),
        ({"labels": CODES, "colors": {"0": "red", "1": "red"}}, "none for '2'"),
        ({"labels": CODES[:9]}, "one entry for each of the 300 points"),
    ],
)
def test_wrong_input(ax: Any, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot.scatter(MAP, **wrong, ax=ax)


def test_wrong_axes(ax: Any) -> None:
    with pytest.raises(ValueError, match="needs axes with projection=\"3d\"; got 'rectilinear'"):
        plot.scatter(np.zeros((3, 3)), ax=ax)


@pytest.mark.parametrize("n_points", [1, 2, 100, 30_000])
def test_points_are_smaller_the_more_there_are(ax: Any, n_points: int) -> None:
    plot.scatter(np.random.default_rng(0).normal(size=(n_points, 2)), ax=ax)
    (points,) = ax.collections
    area = points.get_sizes()[0] * n_points / (6 * 72) ** 2
    assert 0 < area < 0.7  # of the axes
    assert (points.get_sizes()[0] > 10) == (n_points <= 100)
    assert 0.2 <= points.get_alpha() <= 0.9


def test_more_than_a_million_points_are_an_image(ax: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acctsne.pictures.plot.SHADE_ABOVE", 299)
    plot.scatter(MAP, NAMES[CODES], ax=ax)
    assert not ax.collections
    (image,) = ax.images
    pixels = np.asarray(image.get_array())
    assert texts(ax) == ["ant", "bee", "cat"]
    left, right, bottom, top = image.get_extent()
    # The colour at the place of a point is that of its category.
    column = ((MAP[:, 0] - left) / (right - left) * pixels.shape[1]).astype(int)
    row = ((MAP[:, 1] - bottom) / (top - bottom) * pixels.shape[0]).astype(int)
    np.testing.assert_allclose(pixels[row, column, :3], categorical(3)[CODES])


def test_three_dimensions(tmp_path: Path) -> None:
    points = np.column_stack([MAP, MAP[:, 0] - MAP[:, 1]])
    ax: Any = plot.scatter(points, NAMES[CODES])
    assert ax.name == "3d"
    assert texts(ax) == ["ant", "bee", "cat"]
    plt.close(ax.figure)
    plot.save(points, tmp_path / "a.png", NAMES[CODES])
    assert np.asarray(Image.open(tmp_path / "a.png").convert("RGB")).std() > 5


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg", "PNG"])
def test_formats(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"map.{suffix}"
    plot.save(np.random.default_rng(0).normal(size=(20_000, 2)), path, title="A map")
    start = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[suffix.lower()]
    assert path.read_bytes().startswith(start)
    assert path.stat().st_size < 1_000_000  # the points are an image, not 20000 paths


def test_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.png, \.pdf or \.svg; got '.*map\.bmp'"):
        plot.save(MAP, tmp_path / "map.bmp")
    for maps in (MAP, [MAP, MAP]):
        with pytest.raises(TypeError, match=r"save draws into a figure of its own.* use scatter"):
            plot.save(maps, tmp_path / "map.png", ax=plt.gca())
    assert not list(tmp_path.iterdir())


def test_global_state_stays(ax: Any, tmp_path: Path) -> None:
    figures, parameters = plt.get_fignums(), dict(mpl.rcParams)
    plot.scatter(MAP, NAMES[CODES], ax=ax)
    plot.save(MAP, tmp_path / "map.png", pd.Series(CODES))
    assert plt.get_fignums() == figures
    assert dict(mpl.rcParams) == parameters


def test_importing_acctsne_imports_no_plotting_package() -> None:
    program = (
        "import sys, acctsne, acctsne.plot, acctsne.html, acctsne.movie; "
        "sys.exit(str({'matplotlib', 'plotly', 'PIL', 'IPython'} & set(sys.modules) or ''))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (result.returncode, result.stderr.strip()) == (1, ""), result.stderr


def test_live_plot_without_notebook_or_window_does_nothing() -> None:
    figures = plt.get_fignums()
    plot.LivePlot(CODES)(49, 1.5, MAP)
    assert plt.get_fignums() == figures


def test_live_plot_in_a_notebook() -> None:
    nbformat: Any = import_module("nbformat")
    nbclient: Any = import_module("nbclient")
    program = """
from sklearn.datasets import load_digits
from acctsne import TSNE, plot
X, y = load_digits(return_X_y=True)
TSNE(callback=plot.LivePlot(y), callback_every=125, max_iter=250).fit(X);
"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(program)])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    (output,) = notebook.cells[0].outputs  # one picture, changed in place
    assert output.output_type == "display_data"
    assert len(output.data["image/png"]) > 10_000


class TestOddArguments:
    """What matplotlib would stumble over, or draw for ever."""

    Y = np.random.default_rng(0).normal(size=(30, 2))

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"ax": 5}, TypeError, "ax must be axes of matplotlib"),
            ({"size": -1}, ValueError, "size must be a number from 0 to"),
            ({"size": 1e308}, ValueError, "size must be a number from 0 to"),
            ({"size": [1, 2]}, ValueError, "one for each of the 30 points"),
            ({"alpha": "a"}, ValueError, "alpha must be a number from 0 to 1"),
            ({"alpha": np.nan}, ValueError, "alpha must be a number from 0 to 1"),
            ({"values": range(30), "cmap": "Viridis"}, ValueError, "did you mean viridis"),
            ({"values": range(30), "cmap": None}, TypeError, "cmap must be the name"),
            ({"values": np.full(30, 1j)}, ValueError, "values must be numbers"),
            ({"values": [10**400] * 30}, ValueError, "values must be numbers"),
            ({"labels": ["a", "b"] * 15, "colors": "red"}, TypeError, "a list of colours; got"),
            ({"labels": ["a", "b"] * 15, "colors": ["red", "xx"]}, ValueError, "'xx' for 'b'"),
        ],
    )
    def test_are_refused(self, options: dict[str, Any], error: type, message: str) -> None:
        with pytest.raises(error, match=message):
            plot.scatter(self.Y, **options)

    def test_maps_that_cannot_be_drawn(self) -> None:
        for wide in ([[1e308, 0], [-1e308, 0]], np.array([[3e38, 0], [-3e38, 0]], np.float32)):
            with pytest.raises(ValueError, match=r"coordinate of size .* can be drawn"):
                plot.scatter(wide)
        with pytest.raises(ValueError, match="masked values"):
            plot.scatter(np.ma.masked_array(self.Y, mask=self.Y > 0))
        with pytest.raises(ValueError, match="real numbers"):
            plot.scatter([[10**400, 0], [0, 1]])

    @pytest.mark.parametrize("text", ["bell \x07", "\ud800", "\x00", "a\tb", "--></svg><script>"])
    def test_text_that_no_file_can_hold(self, text: str, tmp_path: Path) -> None:
        path = tmp_path / "map.svg"
        for legend in (False, True):
            labels = [text, "b", "c"] * 10
            plot.save(self.Y, path, labels, title=text, legend=legend, names=not legend)
            minidom.parse(str(path))
            assert "<script" not in path.read_text(encoding="utf-8")
