"""The page's file: what it holds, how it is escaped, and clear errors for what is wrong."""

import base64
import io
import json
import re
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from PIL import Image

from acctsne import html
from acctsne.pictures.hover import MAX_CATEGORIES

MAP = np.random.default_rng(0).normal(size=(40, 2))
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&lt;b&gt;{{data}}"


class Scripts(HTMLParser):
    """The page as a browser splits it: tags, and the text of each script."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.scripts: dict[str, str] = {}
        self.heading = ""
        self._inside: str | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._inside = dict(attrs).get("id") or tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside == "h1":
            self.heading += data
        elif self._inside:
            self.scripts[self._inside] = self.scripts.get(self._inside, "") + data


def written(tmp_path: Path, Y: Any = MAP, **options: Any) -> tuple[Scripts, dict[str, Any]]:
    html.write(Y, tmp_path / "map.html", **options)
    page = Scripts((tmp_path / "map.html").read_text(encoding="utf-8"))
    return page, json.loads(page.scripts["about"])


def decoded(page: Scripts, name: str, kind: Any) -> Any:
    return np.frombuffer(base64.b64decode(page.scripts[name]), np.dtype(kind).newbyteorder("<"))


@pytest.mark.parametrize("n_columns", [2, 3])
def test_positions_are_kept_to_16_bits(tmp_path: Path, n_columns: int) -> None:
    points = np.random.default_rng(0).normal(size=(40, n_columns)) * [[9.0, 1.0, 3.0][:n_columns]]
    page, about = written(tmp_path, points)
    steps = decoded(page, "positions0", np.uint16).reshape(n_columns, 40)
    found = np.array(about["low"])[:, None] + about["step"] * steps
    np.testing.assert_allclose(found.T, points, atol=np.ptp(points) / 65535)


def test_categories(tmp_path: Path) -> None:
    labels = pd.Categorical(["x", "y", None, "x"] * 10, ["y", "x"])
    page, about = written(tmp_path, labels=labels)
    assert about["names"] == ["y", "x", "none"]
    assert decoded(page, "codes", np.uint16).tolist() == [1, 0, 2, 1] * 10
    assert len(set(about["colors"])) == 3


def test_smallest_of_very_many_categories_share_one(tmp_path: Path) -> None:
    labels = np.r_[np.arange(500), 3, 3, 4, [None]]
    points = np.random.default_rng(0).normal(size=(504, 2))
    page, about = written(tmp_path, points, labels=labels)
    names = np.array(about["names"])[decoded(page, "codes", np.uint16)]
    assert len(about["names"]) == MAX_CATEGORIES + 1
    assert names[[3, 500, 501, 4, 503]].tolist() == ["3", "3", "3", "4", "none"]
    assert names[499] == "301 smaller categories"
    assert about["columns"] == [
        {"name": "label", "texts": [*map(str, labels[:-1]), ""], "kind": "text"}
    ]


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame])
def test_hover_columns(tmp_path: Path, kind: Any) -> None:
    columns = {
        "unique": [f"name {i}" for i in range(40)],
        "few": ["a", "b"] * 20,
        "number": np.arange(40) / 3,
        "count": np.arange(40),
        "lacking": [None, 1.5] * 20,
    }
    page, about = written(tmp_path, hover=kind(columns))
    found = {}
    for i, column in enumerate(about["columns"]):
        texts = column["texts"]
        if len(texts) < 40:
            texts = [texts[k] for k in decoded(page, f"column{i}", np.uint32)]
        found[column["name"]] = texts
    assert found == {
        "unique": columns["unique"],
        "few": columns["few"],
        "number": [str(i // 3) if i % 3 == 0 else repr(i / 3) for i in range(40)],
        "count": [str(i) for i in range(40)],
        "lacking": ["", "1.5"] * 20,
    }


def test_what_columns_can_be_coloured_by(tmp_path: Path) -> None:
    columns = {
        "text": [f"name {i}" for i in range(40)],
        "words": ["b", "a"] * 20,
        "measured": np.arange(40) / 3,
        "counted": np.arange(40),
        "lacking": [None, *range(39)],
        "numbered": np.arange(40) % 12,
        "yes or no": [True, False] * 20,
        "endless": [np.inf, *range(39)],
        "nothing": [None] * 40,
    }
    _, about = written(tmp_path, hover=columns)
    assert {column["name"]: column["kind"] for column in about["columns"]} == {
        "text": "category",
        "words": "category",
        "measured": "number",
        "counted": "number",
        "lacking": "number",
        "numbered": "category",
        "yes or no": "category",
        "endless": "category",
        "nothing": "text",
    }
    numbered = about["columns"][5]["texts"]
    assert numbered == [str(i) for i in range(12)]  # 10 after 9
    assert len(set(about["palette"])) == 40
    many = np.random.default_rng(0).normal(size=(MAX_CATEGORIES + 1, 2))
    _, about = written(tmp_path, many, hover={"id": [f"cell {i}" for i in range(len(many))]})
    assert about["columns"][0]["kind"] == "text"


def test_missing_fields_are_empty(tmp_path: Path) -> None:
    counts = pd.Series([1, None] * 20, dtype="Int64")
    page, about = written(tmp_path, hover=pd.DataFrame({"count": counts, "size": [np.nan] * 40}))
    assert [column["texts"] for column in about["columns"]] == [["", "1"], [""]]
    assert decoded(page, "column0", np.uint32).tolist() == [1, 0] * 20


def test_ids_and_numbers_can_be_read_back(tmp_path: Path) -> None:
    ids = 20_000_000.0 + np.arange(40)
    halves = np.linspace(0, 1, 40, dtype=np.float32)
    _, about = written(tmp_path, ids=ids, hover={"measured": np.pi * ids, "single": halves})
    assert about["ids"] == [str(20_000_000 + i) for i in range(40)]
    measured, single = (np.array(column["texts"], dtype=float) for column in about["columns"])
    np.testing.assert_array_equal(measured, np.pi * ids)
    np.testing.assert_array_equal(single.astype(np.float32), halves)
    assert max(map(len, about["columns"][1]["texts"])) <= 12  # of single precision
    _, about = written(tmp_path, ids=ids + 0.5)
    assert about["ids"][0] == "20000000.5"


@pytest.mark.parametrize("kind", [np.asarray, pd.Series, pd.Index, list])
def test_dates_are_shown_as_such(tmp_path: Path, kind: Any) -> None:
    days = np.datetime64("2026-01-31", "ns") + np.arange(40) * np.timedelta64(24, "h")
    days[1] = np.datetime64("NaT")
    days[2] += np.timedelta64(90, "m")
    _, about = written(tmp_path, hover={"day": kind(days)})
    texts = about["columns"][0]["texts"]
    assert texts[0][:10] == "2026-01-31"
    assert texts[1] == ""
    assert texts[2][:16].replace("T", " ") == "2026-02-02 01:30"
    if kind is not list:
        assert texts[0] == "2026-01-31"


def test_missing_numbers_of_numpy(tmp_path: Path) -> None:
    single = np.array([np.nan, 1.5] * 20, dtype=np.float32)
    _, about = written(tmp_path, hover={"array": single, "list": list(single)})
    assert [column["texts"] for column in about["columns"]] == [["", "1.5"]] * 2
    assert [column["kind"] for column in about["columns"]] == ["category"] * 2


@pytest.mark.parametrize("several", [False, True])
def test_columns_of_one_name(tmp_path: Path, several: bool) -> None:
    frame = pd.DataFrame(np.arange(80).reshape(40, 2), columns=["a", "a"])
    given = [frame, frame] if several else frame
    maps = [MAP, MAP] if several else MAP
    ids = [range(40), range(40)] if several else None
    _, about = written(tmp_path, maps, hover=given, ids=ids)
    assert [column["name"] for column in about["columns"]] == ["a", "a (2)"]
    assert about["columns"][1]["texts"][:2] == ["1", "3"]


@pytest.mark.parametrize("shape", [(8, 8), (20, 10), (5, 7, 3), (6, 6, 4), (300, 200)])
def test_thumbnails(tmp_path: Path, shape: tuple[int, ...]) -> None:
    pictures = np.zeros((40, *shape), dtype=np.uint8)
    pictures += np.arange(40, dtype=np.uint8).reshape(40, *[1] * len(shape))
    page, about = written(tmp_path, images=pictures)
    width, height = about["images"]["width"], about["images"]["height"]
    assert max(width, height) == min(max(shape[:2]), 64)
    assert width / height == pytest.approx(shape[1] / shape[0], rel=0.02)
    sheet = np.asarray(Image.open(io.BytesIO(base64.b64decode(page.scripts["sheet0"]))))
    for i in range(40):
        y, x = divmod(i, about["images"]["across"])
        tile = sheet[y * height : (y + 1) * height, x * width : (x + 1) * width]
        assert (tile == i).all()


def test_many_thumbnails_fill_several_sheets(tmp_path: Path) -> None:
    points = np.random.default_rng(0).normal(size=(1500, 2))
    pictures = np.zeros((1500, 64, 64), dtype=np.uint8)
    page, about = written(tmp_path, points, images=pictures)
    assert about["images"]["perSheet"] == 32 * 32
    sheets = [name for name in page.scripts if name.startswith("sheet")]
    assert sheets == ["sheet0", "sheet1"]


def test_pictures_of_other_types_span_black_to_white(tmp_path: Path) -> None:
    pictures = np.linspace(-1, 3, 40)[:, None, None] * np.ones((1, 4, 4))
    page, _ = written(tmp_path, images=pictures)
    sheet = np.asarray(Image.open(io.BytesIO(base64.b64decode(page.scripts["sheet0"]))))
    assert (sheet[0, 0], sheet[0, 39 * 4]) == (0, 255)


def test_markup_stays_text(tmp_path: Path) -> None:
    harmless, _ = written(tmp_path, labels=["a"] * 40, hover={"b": ["c"] * 40}, ids=["d"] * 40)
    page, about = written(
        tmp_path, labels=[EVIL] * 40, hover={EVIL: [EVIL] * 40}, ids=[EVIL] * 40, title=EVIL
    )
    assert page.tags == harmless.tags
    assert page.heading == EVIL
    assert about["names"] == [EVIL]
    assert about["columns"] == [{"name": EVIL, "texts": [EVIL], "kind": "category"}]
    assert about["ids"] == [EVIL] * 40


def test_nothing_is_fetched_from_elsewhere(tmp_path: Path) -> None:
    html.write(MAP, tmp_path / "map.html")
    page = (tmp_path / "map.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in page
    outside = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert "http:" not in outside
    assert "https:" not in outside


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"labels": ["a"]}, "labels must have one entry for each of the 40 points"),
        ({"ids": ["a"]}, "ids must have one entry for each of the 40 points; got 1"),
        ({"hover": {"size": [1, 2]}}, r"hover\['size'\] must have one entry .* got 2"),
        ({"hover": [1] * 40}, "DataFrame or a mapping of names to columns; got list"),
        ({"images": np.zeros((40, 64))}, r"shape \(40, height, width\).*got shape \(40, 64\)"),
        ({"images": np.zeros((39, 8, 8))}, r"got shape \(39, 8, 8\)"),
        ({"images": np.zeros((40, 8, 8, 2))}, r"got shape \(40, 8, 8, 2\)"),
        ({"images": np.full((40, 8, 8), np.nan)}, "finite numbers"),
        ({"Y": MAP[:, :1]}, r"got shape \(40, 1\)"),
    ],
)
def test_wrong_input(tmp_path: Path, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        html.write(wrong.pop("Y", MAP), tmp_path / "map.html", **wrong)
    assert not list(tmp_path.iterdir())


def test_hover_of_integers_beyond_floats(tmp_path: Path) -> None:
    html.write(np.eye(2), tmp_path / "map.html", hover={"n": [10**400, 1]})
    assert str(10**400) in (tmp_path / "map.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("title", [5, ["<b>"]])
def test_title_that_is_no_text(title: Any, tmp_path: Path) -> None:
    html.write(np.eye(2), tmp_path / "map.html", title=title)
    page = (tmp_path / "map.html").read_text(encoding="utf-8")
    assert f"<title>{escape(str(title))}</title>" in page


def test_odd_columns_and_images(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must be a column of 2 entries; got 5"):
        html.write(np.eye(2), tmp_path / "map.html", hover={"n": 5})
    with pytest.raises(ValueError, match="images has numbers beyond"):
        html.write(np.eye(2), tmp_path / "map.html", images=np.full((2, 3, 3), 1e300))


def test_pages_have_their_suffix(tmp_path: Path) -> None:
    for name in ("map.txt", "map"):
        with pytest.raises(ValueError, match=r"a page is written as \.html or \.htm; got '.*map"):
            html.write(np.eye(2), tmp_path / name)
    html.write(np.eye(2), tmp_path / "map.HTM")
    assert [file.name for file in tmp_path.iterdir()] == ["map.HTM"]
