"""The written pages in a real browser: what a user sees, hovers, clicks and finds."""

import csv
import io
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from acctsne import html
from acctsne.movie import Recorder
from acctsne.pictures.colors import categorical

Array = npt.NDArray[Any]

EVIL = "<b>hi</b></script><script>window.hacked = 1</script><img src=x onerror='hacked = 2'>&lt;"
NAMES = [EVIL, "<b>bold</b>", "<a href='javascript:x'>a</a>", "a&lt;b &amp; c", "H<sub>2</sub>O"]

# A grid of points far apart, so that each can be pointed at.
GRID = np.stack(np.meshgrid(np.arange(6.0), np.arange(4.0)), axis=-1).reshape(-1, 2)


# Two maps that share the points p12 to p23, the upper half of the first, which lie mirrored in the
# lower half of the second.
MAPS = [GRID, np.concatenate([GRID[11::-1], GRID[12:]])]
MAP_IDS = [[f"p{i}" for i in range(24)], [f"p{i}" for i in range(12, 36)]]


class Browser:
    """Chromium without a window."""

    def __init__(self, folder: Path, chromium: str, driver: str) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for flag in (
            "headless",
            "no-sandbox",  # needed where tests run as root
            "window-size=1000,800",
            f"user-data-dir={folder}",
            "use-angle=swiftshader",  # WebGL in software
            "enable-unsafe-swiftshader",
            "no-first-run",
            "disable-background-networking",
            "disable-component-update",
            "disable-sync",
        ):
            options.add_argument(f"--{flag}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(driver))

    def open(self, path: Path) -> None:
        self.driver.get(path.as_uri())

    def open_map(self, path: Path) -> None:
        self.open(path)
        self.wait_for("document.body.dataset.ready === 'yes'")

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def wait_for(self, condition: str) -> None:
        WebDriverWait(self.driver, 60).until(lambda _: self.run(f"return {condition}"))

    def text(self, selector: str) -> str:
        return str(self.run("return document.querySelector(arguments[0]).innerText", selector))

    def picture(self) -> Array:
        shot = Image.open(io.BytesIO(self.driver.get_screenshot_as_png()))
        return np.asarray(shot.convert("RGB")).astype(int)

    def place(self, x: float, y: float) -> tuple[int, int]:
        """Where a point of the map is in the window."""
        box = self.run(
            "return document.querySelector('#map .nsewdrag').getBoundingClientRect().toJSON()"
        )
        (left, right), (bottom, top) = self.run(
            "return [map.layout.xaxis.range, map.layout.yaxis.range]"
        )
        across = (x - left) / (right - left)
        up = (y - bottom) / (top - bottom)
        return (
            round(box["left"] + across * box["width"]),
            round(box["bottom"] - up * box["height"]),
        )

    def point_at(self, x: float, y: float) -> None:
        pointer: Any = ActionChains(self.driver).w3c_actions
        left, top = self.place(x, y)
        for step in (9, 0):  # a pointer that moves
            pointer.pointer_action.move_to_location(left + step, top + step)
        pointer.perform()

    def drag(self, places: list[tuple[float, float]], *, shift: bool = False) -> None:
        """Move the pointer, pressed, along places of the map."""
        if shift:
            ActionChains(self.driver).key_down(Keys.SHIFT).perform()
        actions: Any = ActionChains(self.driver).w3c_actions
        pointer = actions.pointer_action
        pointer.move_to_location(*self.place(*places[0]))
        pointer.pointer_down()
        for at in places[1:]:
            pointer.move_to_location(*self.place(*at))
        pointer.pointer_up()
        actions.perform()
        if shift:
            ActionChains(self.driver).key_up(Keys.SHIFT).perform()

    def press(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()

    def click(self, selector: str) -> None:
        self.driver.find_element(By.CSS_SELECTOR, selector).click()

    def color_by(self, name: str) -> None:
        Select(self.driver.find_element(By.ID, "color")).select_by_visible_text(name)

    def selected(self) -> list[int]:
        rows: list[int] = self.run("return selectedRows()")
        return rows

    def search(self, wanted: str) -> None:
        field = self.driver.find_element(By.ID, "search")
        field.clear()
        field.send_keys(wanted)

    def complaints(self) -> list[str]:
        """Errors on the console since the last look."""
        log = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [entry["message"] for entry in log if entry["level"] == "SEVERE"]

    def requests(self, path: Path) -> list[str]:
        """Addresses that a page has asked for since the last look, but for those inside it."""
        log = self.driver.get_log("performance")  # type: ignore[no-untyped-call]
        events = [json.loads(entry["message"])["message"] for entry in log]
        addresses = [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
            and event["params"]["documentURL"] == path.as_uri()
        ]
        return [address for address in addresses if not address.startswith(("data:", "blob:"))]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        missing = "Chromium and its driver are not installed"
        if os.environ.get("ACCTSNE_BROWSER") == "required":
            pytest.fail(missing)
        pytest.skip(missing)  # and conftest.py says so at the end of the run
    browser = Browser(tmp_path_factory.mktemp("browser"), chromium, driver)
    yield browser
    browser.driver.quit()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages, written once."""
    folder = tmp_path_factory.mktemp("pages")
    html.write(
        GRID,
        folder / "grid.html",
        labels=np.repeat(["left", "right"], 12),
        hover={"square": np.arange(24) ** 2},
        images=np.arange(24, dtype=np.uint8)[:, None, None] * 10 * np.ones((1, 8, 8), np.uint8),
        ids=[f"id{i}" for i in range(24)],
        title="A grid",
    )
    html.write(
        GRID,
        folder / "columns.html",
        hover={"height": GRID[:, 1] + GRID[:, 0] / 10, "odd": ["no", "yes"] * 12},
        ids=[f'a "{i}", b' for i in range(24)],
    )
    many = np.stack(np.meshgrid(np.arange(15.0), np.arange(14.0)), axis=-1).reshape(-1, 2)
    html.write(
        many,
        folder / "lacking.html",
        hover={
            "number": [-1e6, *range(1, 7), None, *range(8, 209), 1e6],
            "word": [*["x", "y"] * 3, "x", None, *["x", "y"] * 101],
        },
    )
    labels = [NAMES[i % 5] for i in range(24)]
    html.write(GRID, folder / "evil.html", labels=labels, hover={EVIL: [EVIL] * 24}, title=EVIL)
    html.write(
        MAPS,
        folder / "maps.html",
        ids=MAP_IDS,
        labels=[["a" if int(name[1:]) < 20 else "b" for name in ids] for ids in MAP_IDS],
        hover=[
            {"fit": np.full(24, m), "third": [int(name[1:]) % 3 for name in ids]}
            for m, ids in enumerate(MAP_IDS)
        ],
        titles=["first", "second, later"],
    )
    space = np.column_stack([GRID, GRID[:, 0]])
    html.write(space, folder / "space.html", labels=np.arange(24) % 3)
    return folder


def has_color(picture: Array, code: int) -> bool:
    """Whether many pixels have a category's colour, at the points' opacity on white."""
    expected = 255 * (0.85 * categorical(code + 1)[code] + 0.15)
    return bool((np.abs(picture - expected).max(axis=-1) < 4).sum() > 50)


def test_map(browser: Browser, folder: Path) -> None:
    browser.open_map(folder / "grid.html")
    assert browser.driver.title == "A grid"
    picture = browser.picture()
    for row in range(24):
        x, y = browser.place(*GRID[row])
        expected = 255 * (0.85 * categorical(2)[row // 12] + 0.15)
        np.testing.assert_allclose(picture[y, x], expected, atol=4)
    assert browser.complaints() == []
    page = folder / "grid.html"
    assert browser.requests(page) == [page.as_uri()]


def test_hover_shows_the_row_under_the_pointer(browser: Browser, folder: Path) -> None:
    browser.open_map(folder / "grid.html")
    for row in (0, 7, 13, 22):
        browser.point_at(*GRID[row])
        browser.wait_for(f"!card.hidden && card.dataset.row === '{row}'")
        label = "left" if row < 12 else "right"
        shown = browser.text("#card").split("\n")
        assert shown == ["id", f"id{row}", "label", label, "square", str(row**2)]
        box = browser.run(
            "return document.querySelector('#card .picture').getBoundingClientRect().toJSON()"
        )
        inside = browser.picture()[
            round(box["top"]) + 5 : round(box["bottom"]) - 5,
            round(box["left"]) + 5 : round(box["right"]) - 5,
        ]
        assert (inside == row * 10).all()
    browser.point_at(2.5, 1.5)  # between points
    browser.wait_for("card.hidden")
    assert browser.complaints() == []


def test_search_by_id(browser: Browser, folder: Path) -> None:
    browser.open_map(folder / "grid.html")
    browser.search("ID1")  # exactly, in whatever case, though id10 has it, too
    browser.wait_for("card.dataset.row === '1' && !card.hidden")
    assert browser.text("#found") == "1 found"
    x, y = browser.place(*GRID[1])  # now in the middle
    box = browser.run("return map.getBoundingClientRect().toJSON()")
    assert abs(y - box["y"] - box["height"] / 2) < 20
    ring = browser.picture()[y - 12 : y + 13, x - 12 : x + 13]
    assert (ring.max(axis=-1) < 60).sum() > 20
    browser.search("d2")
    browser.wait_for("document.getElementById('found').innerText === '5 found'")
    browser.search("nowhere")
    browser.wait_for("document.getElementById('found').innerText === '0 found'")
    assert browser.complaints() == []


def test_legend_wheel_and_drag(browser: Browser, folder: Path) -> None:
    browser.open_map(folder / "grid.html")
    before = browser.picture()[:, :800]  # without the legend
    assert has_color(before, 0)
    assert has_color(before, 1)
    left = browser.driver.find_elements(By.CSS_SELECTOR, "#legend button")[0]
    assert left.text.split() == ["left", "12"]
    left.click()
    browser.wait_for("map.data[0].visible === false")
    assert left.get_attribute("aria-pressed") == "false"
    after = browser.picture()[:, :800]
    assert not has_color(after, 0)
    assert has_color(after, 1)
    ActionChains(browser.driver).double_click(left).perform()
    browser.wait_for("map.data[0].visible === true && map.data[1].visible === false")
    ActionChains(browser.driver).double_click(left).perform()
    browser.wait_for("map.data[0].visible === true && map.data[1].visible === true")

    low, high = browser.run("return map.layout.xaxis.range")
    area = browser.driver.find_element(By.CSS_SELECTOR, "#map .nsewdrag")
    middle = ActionChains(browser.driver).move_to_element(area)
    middle.click_and_hold().move_by_offset(100, 0).release().perform()
    browser.wait_for(f"map.layout.xaxis.range[0] < {low}")
    moved = browser.run("return map.layout.xaxis.range")
    assert moved[1] - moved[0] == pytest.approx(high - low)
    ActionChains(browser.driver).scroll_from_origin(
        ScrollOrigin.from_element(area), 0, -200
    ).perform()
    browser.wait_for(f"map.layout.xaxis.range[1] - map.layout.xaxis.range[0] < {high - low} - 0.1")
    assert browser.complaints() == []


def test_markup_is_shown_as_text(browser: Browser, folder: Path) -> None:
    browser.open_map(folder / "evil.html")
    assert browser.text("h1") == EVIL
    assert browser.driver.title == EVIL
    legend = browser.run(
        "return Array.from(document.querySelectorAll('#legend span'), (name) => name.textContent)"
    )
    assert sorted(legend) == sorted(NAMES)
    assert browser.run("return document.querySelectorAll('#legend a, #legend b').length") == 0
    assert browser.run("return Array.from(menu.options, (o) => o.text)") == ["label", EVIL]
    browser.color_by(EVIL)
    browser.wait_for("legend.hidden")  # which of one category says nothing
    browser.point_at(*GRID[5])
    browser.wait_for("card.dataset.row === '5' && !card.hidden")
    assert browser.text("#card").split("\n") == ["row", "5", "label", EVIL, EVIL, EVIL]
    assert browser.run("return document.querySelectorAll('#card b, #card img').length") == 0
    assert browser.run("return typeof window.hacked") == "undefined"
    assert browser.complaints() == []


def test_box_and_lasso(browser: Browser, folder: Path) -> None:
    browser.open_map(folder / "grid.html")
    browser.click("[data-tool=box]")
    before = browser.run("return map.layout.xaxis.range")
    browser.drag([(0.5, 0.5), (2.0, 1.0), (3.5, 2.5)])
    browser.wait_for("!bar.hidden")
    inside = (np.abs(GRID - [2.0, 1.5]) < [1.5, 1.0]).all(axis=1)
    assert browser.selected() == np.flatnonzero(inside).tolist()
    assert browser.text("#chosen") == "6 selected"
    assert browser.run("return map.layout.xaxis.range") == before  # nothing was panned
    picture = browser.picture()
    for row in range(24):  # all but the selected have paled
        x, y = browser.place(*GRID[row])
        pale = bool((picture[y, x] > 200).all())
        assert pale == (not inside[row])

    browser.click("[data-tool=lasso]")
    # A hook around (1, 0), (2, 0), (3, 0) and (3, 1), not around (2, 1).
    hook = [(0.5, -0.15), (3.5, -0.15), (3.5, 1.4), (2.6, 1.4), (2.6, 0.4), (0.5, 0.4)]
    browser.drag(hook)
    assert browser.selected() == [1, 2, 3, 9]
    browser.drag([(3.6, 2.6), (5.15, 2.6), (5.15, 3.15), (3.6, 3.15)], shift=True)
    assert browser.selected() == [1, 2, 3, 9, 22, 23]
    browser.drag([(0.5, -0.15), (3.5, -0.15), (3.5, 2.6)])  # closed by a slanted line
    assert browser.selected() == [1, 2, 3, 8, 9, 15]
    # What is hidden cannot be meant: "left" is the rows before 12.
    browser.click("#legend button")
    browser.drag([(-0.15, -0.15), (5.15, -0.15), (5.15, 3.15), (-0.15, 3.15)])
    assert browser.selected() == list(range(12, 24))
    browser.press(Keys.ESCAPE)
    browser.wait_for("bar.hidden")
    assert browser.selected() == []
    browser.drag([(0.5, 0.5), (0.5, 0.5)])  # a click selects nothing
    assert browser.selected() == []
    assert browser.complaints() == []


def test_ids_of_the_selected_rows(browser: Browser, folder: Path, tmp_path: Path) -> None:
    browser.driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    browser.driver.execute_cdp_cmd(
        "Browser.grantPermissions",
        {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]},
    )
    browser.open_map(folder / "columns.html")
    browser.click("[data-tool=box]")
    browser.drag([(0.5, -0.15), (1.0, 1.0), (2.5, 1.5)])
    browser.click("[data-action=download]")
    file = tmp_path / "selected.csv"
    WebDriverWait(browser.driver, 60).until(lambda _: file.exists())
    with open(file, newline="") as lines:
        written = list(csv.reader(lines))
    assert written == [["row", "id"], *([str(i), f'a "{i}", b'] for i in (1, 2, 7, 8))]
    browser.click("[data-action=copy]")
    browser.wait_for("document.getElementById('chosen').innerText === '4 copied'")
    copied = browser.driver.execute_async_script(
        "navigator.clipboard.readText().then(arguments[0], (e) => arguments[0](String(e)))"
    )
    assert copied == file.read_text()
    browser.run("document.getElementById('chosen').textContent = ''")
    browser.press("c")
    browser.wait_for("document.getElementById('chosen').innerText === '4 copied'")
    file.unlink()
    browser.press("s")
    WebDriverWait(browser.driver, 60).until(lambda _: file.exists())
    browser.open_map(folder / "evil.html")  # without ids: rows
    browser.run("select([5, 3])")
    assert browser.run("return csv()") == "row\n3\n5\n"
    assert browser.complaints() == []


def test_colour_by_a_column(browser: Browser, folder: Path) -> None:
    browser.open_map(folder / "columns.html")
    assert browser.run("return legend.hidden") is True
    browser.color_by("odd")
    browser.wait_for("layers.length === 2")
    assert browser.text("#legend").split() == ["no", "12", "yes", "12"]
    picture = browser.picture()
    for row in range(24):
        x, y = browser.place(*GRID[row])
        expected = 255 * (0.85 * categorical(2)[row % 2] + 0.15)
        np.testing.assert_allclose(picture[y, x], expected, atol=4)
    browser.run("select([0, 1, 2])")
    browser.color_by("height")
    browser.wait_for("layers.length === 1")
    assert browser.text("#legend").split() == ["0", "3.5"]
    assert browser.selected() == [0, 1, 2]  # a selection outlives its colours
    browser.press(Keys.ESCAPE, Keys.ESCAPE)  # out of the menu, then out of the selection
    browser.wait_for("bar.hidden")
    picture = browser.picture()
    lowest, highest = (browser.place(*GRID[row]) for row in (0, 23))
    purple, yellow = (picture[y, x] for x, y in (lowest, highest))
    assert purple[2] > purple[1] + 40
    assert yellow[0] > yellow[2] + 100
    # The card names the right row whatever the layers are.
    browser.point_at(*GRID[7])
    browser.wait_for("!card.hidden && card.dataset.row === '7'")
    assert browser.complaints() == []


def test_what_is_lacking_and_what_lies_far_out(browser: Browser, folder: Path) -> None:
    browser.open_map(folder / "lacking.html")
    layers = "return layers.map(({ name, rows }) => [name, rows.length])"
    browser.color_by("number")
    browser.wait_for("layers.length === 2")
    assert browser.run(layers) == [["none", 1], ["number", 209]]
    assert browser.text("#legend").split() == ["1", "208"]  # one in 200 at either end is left out
    browser.color_by("word")
    browser.wait_for("layers.length === 3")
    assert browser.run(layers) == [["x", 105], ["y", 104], ["none", 1]]
    assert browser.run("return Array.from(layers[2].rows)") == [7]
    assert browser.complaints() == []


def test_dark_and_light(browser: Browser, folder: Path) -> None:
    page = folder / "grid.html"
    browser.open_map(page)
    assert browser.picture()[-5, 5].min() > 240
    browser.click("[data-action=theme]")
    browser.wait_for("map.layout.paper_bgcolor === '#14171c'")
    picture = browser.picture()
    assert picture[-5, 5].max() < 40  # the map
    assert picture[5, 500].max() < 40  # the page
    x, y = browser.place(*GRID[0])
    assert picture[y, x].max() > 100  # a point
    browser.search("id1")
    browser.wait_for("!card.hidden && card.dataset.row === '1'")
    x, y = browser.place(*GRID[1])
    ring = browser.picture()[y - 12 : y + 13, x - 12 : x + 13]
    assert (ring.min(axis=-1) > 200).sum() > 20
    browser.click("#legend button")
    browser.wait_for("map.data[0].visible === false")
    browser.press("d")
    browser.wait_for("map.layout.paper_bgcolor === '#fff'")
    assert browser.run("return map.data[0].visible") is False  # what was hidden stays hidden
    setting = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", setting)
    browser.open_map(page)
    assert browser.picture()[-5, 5].max() < 40  # as the reader's machine prefers
    # What it turns to while the page is open is followed, also if the reader has turned the page.
    browser.press("d")
    browser.wait_for("map.layout.paper_bgcolor === '#fff'")
    browser.run(
        "window.turned = 0;"
        "matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => turned++);"
    )
    for turned, (value, color) in enumerate([("light", "#fff"), ("dark", "#14171c")]):
        setting = {"features": [{"name": "prefers-color-scheme", "value": value}]}
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", setting)
        browser.wait_for(f"turned === {turned + 1}")
        assert browser.run("return document.documentElement.dataset.theme") == value
        browser.wait_for(f"map.layout.paper_bgcolor === '{color}'")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert browser.complaints() == []


def test_keyboard(browser: Browser, folder: Path) -> None:
    browser.open_map(folder / "grid.html")
    low, high = browser.run("return map.layout.xaxis.range")
    browser.press("+")
    browser.wait_for(f"map.layout.xaxis.range[0] > {low} && map.layout.xaxis.range[1] < {high}")
    closer = browser.run("return map.layout.xaxis.range")
    browser.press(Keys.ARROW_RIGHT)
    browser.wait_for(f"map.layout.xaxis.range[0] > {closer[0]}")
    browser.press(Keys.ARROW_LEFT)
    browser.wait_for(f"Math.abs(map.layout.xaxis.range[0] - {closer[0]}) < 1e-6")
    bottom = browser.run("return map.layout.yaxis.range[0]")
    browser.press(Keys.ARROW_UP)
    browser.wait_for(f"map.layout.yaxis.range[0] > {bottom} + 0.1")
    assert browser.run("return map.layout.xaxis.range[0]") == pytest.approx(closer[0], abs=1e-6)
    browser.press(Keys.ARROW_DOWN)
    browser.wait_for(f"Math.abs(map.layout.yaxis.range[0] - {bottom}) < 1e-6")
    browser.press("-")
    browser.wait_for(f"Math.abs(map.layout.xaxis.range[0] - {low}) < 1e-6")
    browser.press("=")
    browser.wait_for(f"Math.abs(map.layout.xaxis.range[0] - {closer[0]}) < 1e-6")
    browser.press("0")
    browser.wait_for(f"Math.abs(map.layout.xaxis.range[0] - {low}) < 1e-6")
    for key, tool in {"b": "box", "p": "pan", "l": "lasso"}.items():
        browser.press(key)
        assert browser.run("return document.body.dataset.tool") == tool
    # With Control they are the browser's own.
    chord = ActionChains(browser.driver).key_down(Keys.CONTROL).send_keys("b")
    chord.key_up(Keys.CONTROL).perform()
    assert browser.run("return document.body.dataset.tool") == "lasso"
    browser.press("/", "id7", Keys.ENTER)
    browser.wait_for("!card.hidden && card.dataset.row === '7'")
    # Keys that are typed into the field do nothing else.
    assert browser.run("return document.body.dataset.tool") == "lasso"
    assert browser.run("return document.activeElement.id") == "map"
    # Every tool can be reached by Tab and pressed by Enter.
    browser.run("document.querySelector('[data-tool=pan]').focus()")
    browser.press(Keys.TAB, Keys.SPACE)
    assert browser.run("return document.body.dataset.tool") == "box"
    assert browser.complaints() == []


def test_phone(browser: Browser, folder: Path) -> None:
    screen = {"width": 360, "height": 700, "deviceScaleFactor": 1, "mobile": True}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.open_map(folder / "grid.html")
    browser.run("select([0, 1, 2])")
    outside = browser.run(
        """return Array.from(document.querySelectorAll("header *, #stage > *, #selection *"))
        .filter((e) => e.checkVisibility() && e.getBoundingClientRect().width)
        .filter((e) => {
          const box = e.getBoundingClientRect();
          return box.left < 0 || box.right > 361 || box.bottom > 701;
        }).map((e) => e.outerHTML.slice(0, 80))"""
    )
    assert outside == []
    box = browser.run("return map.getBoundingClientRect().toJSON()")
    assert box["width"] == 360
    assert box["height"] > 400
    assert browser.run("return document.documentElement.scrollWidth") == 360

    # Two fingers that move apart zoom in, and what lies between them stays there.
    browser.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    low, high = browser.run("return map.layout.xaxis.range")
    x, y = browser.place(*GRID[8])

    def touch(kind: str, *offsets: int) -> None:
        points = [{"x": x + offset, "y": y, "id": i} for i, offset in enumerate(offsets)]
        browser.driver.execute_cdp_cmd(
            "Input.dispatchTouchEvent", {"type": kind, "touchPoints": points}
        )

    touch("touchStart", -20, 20)
    touch("touchMove", -40, 40)
    browser.wait_for(f"map.layout.xaxis.range[0] > {low} + 0.5")
    touch("touchEnd")
    closer = browser.run("return map.layout.xaxis.range")
    assert closer[1] - closer[0] == pytest.approx((high - low) / 2, rel=1e-3)
    assert browser.place(*GRID[8]) == pytest.approx((x, y), abs=2)
    browser.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
    browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert browser.complaints() == []


def test_many_points_open_and_pan(browser: Browser, tmp_path: Path) -> None:
    # In software, a picture of so many points takes a second or so; nothing here is timed.
    rng = np.random.default_rng(0)
    n_points = 600_000
    Y = rng.normal(size=(n_points, 2)) + 20 * rng.integers(4, size=(n_points, 1))
    html.write(Y, tmp_path / "many.html", labels=rng.integers(10, size=n_points))
    browser.open_map(tmp_path / "many.html")
    low, high = browser.run("return map.layout.xaxis.range")
    browser.drag([(30.0, 30.0), (25.0, 30.0), (20.0, 30.0)])
    browser.wait_for(f"map.layout.xaxis.range[0] > {low} + 5")
    moved = browser.run("return map.layout.xaxis.range")
    assert moved[1] - moved[0] == pytest.approx(high - low)
    browser.press("b")
    browser.drag([(10.0, 10.0), (20.0, 20.0), (30.0, 30.0)])
    browser.wait_for("!bar.hidden")
    step = (Y.max(axis=0) - Y.min(axis=0)).max() / 65535
    inside = (np.abs(Y - 20) < 10 - step).all(axis=1).sum()
    pixel = (high - low) / 700
    around = (np.abs(Y - 20) < 10 + 2 * pixel).all(axis=1).sum()
    assert inside - 50 <= browser.run("return selectedCount") <= around
    assert browser.complaints() == []


def drag_slider_to(browser: Browser, moment: float) -> None:
    """Hold the slider somewhere, without letting it go."""
    browser.run("slider.value = arguments[0]; slider.dispatchEvent(new Event('input'))", moment)
    browser.wait_for(f"moment === {moment}")


def opacity_at(browser: Browser, picture: Array, place: Array, code: int) -> float:
    """How much of a category's colour there is on the white page."""
    x, y = browser.place(*place)
    ink = 1 - categorical(2)[code]
    return float((1 - picture[y, x] / 255) @ ink / (ink @ ink))


def test_between_two_maps(browser: Browser, folder: Path) -> None:
    browser.open_map(folder / "maps.html")
    for moment in (0.0, 0.25, 1.0):
        drag_slider_to(browser, moment)
        picture = browser.picture()
        for i in range(36):
            if i < 12:  # fades where it was
                place, fade = MAPS[0][i], 1 - moment
            elif i >= 24:  # appears where it will be
                place, fade = MAPS[1][i - 12], moment
            else:
                place, fade = (1 - moment) * MAPS[0][i] + moment * MAPS[1][i - 12], 1.0
            if fade > 0:  # else there may be another point
                found = opacity_at(browser, picture, place, int(i >= 20))
                assert found == pytest.approx(0.85 * fade, abs=0.03), (moment, i)
    # What is on its way can be pointed at and selected.
    drag_slider_to(browser, 0.25)
    browser.point_at(*(0.75 * MAPS[0][14] + 0.25 * MAPS[1][2]))
    browser.wait_for("!card.hidden && card.dataset.row === '14'")
    browser.press("b")
    browser.drag([(0.0, 1.5), (1.5, 1.6), (2.5, 2.1)])
    assert browser.selected() == [12, 13, 14, 24 + 1, 24 + 2]
    browser.run("slider.dispatchEvent(new Event('change'))")  # let go, nearer to the first
    browser.wait_for("moment === 0")
    assert browser.complaints() == []


def test_flip_to_another_map(browser: Browser, folder: Path) -> None:
    browser.open_map(folder / "maps.html")
    assert browser.text("#shown") == "first (1 of 2)"
    assert browser.text("#legend").split() == ["a", "20", "b", "4"]
    browser.press("+")  # the view stays where it is
    browser.wait_for("map.layout.xaxis.range[0] > 0")
    view = browser.run("return map.layout.xaxis.range")
    browser.run(
        """window.way = [];
        map.on("plotly_afterplot", () => {
          const trace = drawn.findIndex(({ rows }) => rows.includes(13));
          const at = drawn[trace].rows.indexOf(13);
          way.push([moment, map.data[trace].x[at], map.data[trace].y[at]]);
        })"""
    )
    browser.press(".")
    browser.wait_for("moment === 1")
    way = np.array(browser.run("return way"))
    assert ((way[:, 0] > 0) & (way[:, 0] < 1)).any()
    expected = MAPS[0][13] + way[:, :1] * (MAPS[1][1] - MAPS[0][13])
    np.testing.assert_allclose(way[:, 1:], expected, atol=1e-3)
    assert browser.run("return map.layout.xaxis.range") == pytest.approx(view)
    assert browser.text("#shown") == "second, later (2 of 2)"
    assert browser.text("#legend").split() == ["a", "8", "b", "16"]
    browser.press(".")  # there is none after it
    browser.press("0")
    browser.wait_for("map.layout.xaxis.range[0] < 0 && moment === 1")
    for i in (12, 17, 30):
        browser.point_at(*MAPS[1][i - 12])
        browser.wait_for(f"!card.hidden && card.dataset.row === '{i}'")
        shown = browser.run("return Array.from(card.querySelectorAll('dd'), (d) => d.textContent)")
        both = ["0", "1", str(i % 3), "first, second, later"]
        late = ["", "1", str(i % 3), "second, later"]
        assert shown == [f"p{i}", "a" if i < 20 else "b", *(both if i < 24 else late)]
    assert browser.run("return Array.from(menu.options, (o) => o.text)") == [
        "label",
        "fit, first",
        "fit, second, later",
        "third",
    ]
    # A selection is of points, whatever map shows them, and csv says where each map has them.
    browser.press("b")
    browser.drag([(-0.15, 0.5), (1.0, 1.0), (1.5, 2.5)])
    assert browser.selected() == [16, 17, 24, 25]
    assert list(csv.reader(io.StringIO(browser.run("return csv()")))) == [
        ["id", "first", "second, later"],
        ["p16", "16", "4"],
        ["p17", "17", "5"],
        ["p24", "", "12"],
        ["p25", "", "13"],
    ]
    browser.click("[data-action=earlier]")
    browser.wait_for("moment === 0")
    assert browser.selected() == [16, 17, 24, 25]
    picture = browser.picture()
    dark = [i for i in range(24) if opacity_at(browser, picture, MAPS[0][i], int(i >= 20)) > 0.5]
    assert dark == [16, 17]
    # A point that is found is shown in a map that has it.
    browser.press(Keys.ESCAPE)
    browser.search("p30")
    browser.wait_for("moment === 1 && !card.hidden && card.dataset.row === '30'")
    x, y = browser.place(*MAPS[1][18])
    ring = browser.picture()[y - 12 : y + 13, x - 12 : x + 13]
    assert (ring.max(axis=-1) < 60).sum() > 20
    assert browser.complaints() == []


def test_maps_on_a_phone_without_motion_in_the_dark(browser: Browser, folder: Path) -> None:
    screen = {"width": 360, "height": 700, "deviceScaleFactor": 1, "mobile": True}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    features = [
        {"name": "prefers-reduced-motion", "value": "reduce"},
        {"name": "prefers-color-scheme", "value": "dark"},
    ]
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.open_map(folder / "maps.html")
    assert browser.run("return document.documentElement.scrollWidth") == 360
    boxes = browser.run(
        "return Array.from(document.querySelectorAll('#maps > :not(datalist)'), "
        "(e) => e.getBoundingClientRect().toJSON())"
    )
    assert len(boxes) == 4
    assert all(box["left"] >= 0 and box["right"] <= 360 and box["width"] > 20 for box in boxes)
    bar = boxes[0]
    assert browser.picture()[round(bar["top"]) - 2, 5].max() < 60
    browser.run("window.way = []; map.on('plotly_afterplot', () => way.push(moment))")
    slider = browser.driver.find_element(By.ID, "moment")
    slider.send_keys(Keys.ARROW_RIGHT)  # a whole map
    browser.wait_for("moment === 1")
    assert set(browser.run("return way")) == {1}
    slider.send_keys(Keys.ARROW_LEFT)
    browser.wait_for("moment === 0")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert browser.complaints() == []


def test_three_dimensions(browser: Browser, folder: Path) -> None:
    browser.open_map(folder / "space.html")
    picture = browser.picture()[:, :900]
    assert all(has_color(picture, code) for code in range(3))
    browser.search("7")
    browser.wait_for("card.dataset.row === '7' && !card.hidden")
    assert browser.text("#card").split("\n") == ["row", "7", "label", "1"]
    assert browser.complaints() == []


def test_movie(browser: Browser, tmp_path: Path) -> None:
    recorder = Recorder(every=1)
    for i in range(4):
        recorder(i, 1.0, GRID * (i + 1))
    recorder.write(tmp_path / "movie.html", np.arange(24) % 3, title=EVIL)
    browser.open(tmp_path / "movie.html")
    browser.wait_for("slider.value === '3' && !playing")  # has played to the end
    assert browser.run("return picture.naturalWidth") > 500
    last = browser.run("return picture.src")
    slider = browser.driver.find_element(By.ID, "slider")
    ActionChains(browser.driver).move_to_element(slider).click().perform()
    browser.wait_for("slider.value !== '3'")
    assert browser.run("return picture.src") != last
    assert browser.driver.title == EVIL
    assert browser.run("return typeof window.hacked") == "undefined"
    assert browser.complaints() == []
    page = tmp_path / "movie.html"
    assert browser.requests(page) == [page.as_uri()]
