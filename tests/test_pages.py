"""The written pages in a real browser: what a user sees, hovers, clicks and finds."""

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
from selenium.webdriver.support.ui import WebDriverWait

from acctsne import html
from acctsne.movie import Recorder
from acctsne.pictures.colors import categorical

Array = npt.NDArray[Any]

EVIL = "<b>hi</b></script><script>window.hacked = 1</script><img src=x onerror='hacked = 2'>&lt;"
NAMES = [EVIL, "<b>bold</b>", "<a href='javascript:x'>a</a>", "a&lt;b &amp; c", "H<sub>2</sub>O"]

# A grid of points far apart, so that each can be pointed at.
GRID = np.stack(np.meshgrid(np.arange(6.0), np.arange(4.0)), axis=-1).reshape(-1, 2)


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
    labels = [NAMES[i % 5] for i in range(24)]
    html.write(GRID, folder / "evil.html", labels=labels, hover={EVIL: [EVIL] * 24}, title=EVIL)
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
    toggle = browser.driver.find_elements(By.CSS_SELECTOR, ".legendtoggle")[0]
    ActionChains(browser.driver).move_to_element(toggle).click().perform()
    browser.wait_for("map.data[0].visible === 'legendonly'")
    after = browser.picture()[:, :800]
    assert not has_color(after, 0)
    assert has_color(after, 1)

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
        "return Array.from(document.querySelectorAll('.legendtext'), (text) => text.textContent)"
    )
    assert sorted(legend) == sorted([EVIL[:31] + "…", *NAMES[1:]])
    assert browser.run("return document.querySelectorAll('.legend a').length") == 0
    browser.point_at(*GRID[5])
    browser.wait_for("card.dataset.row === '5' && !card.hidden")
    assert browser.text("#card").split("\n") == ["row", "5", "label", EVIL, EVIL, EVIL]
    assert browser.run("return document.querySelectorAll('#card b, #card img').length") == 0
    assert browser.run("return typeof window.hacked") == "undefined"
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
