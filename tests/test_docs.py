"""What the documentation shows must run."""

import doctest
import importlib
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import openTSNE
import pytest
import sklearn.manifold

import acctsne
import acctsne.html
import acctsne.io
import acctsne.movie
import acctsne.plot
import acctsne.scanpy

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

# Each file with examples, and how many of them are to be run.
EXAMPLES = {
    path.relative_to(ROOT / "src"): len(re.findall(r"^ *>>> ", path.read_text(), re.MULTILINE))
    for path in sorted((ROOT / "src").rglob("*.py"))
}
# Those of several processes are run by test_distributed.py: this process would be one of MPI's.
MODULES = [
    ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    for path, count in EXAMPLES.items()
    if count and "distributed" not in path.parts
]


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name: str) -> None:
    # What a module only imports is tested where it lives.
    module = importlib.import_module(name)
    result = doctest.testmod(module)
    assert result.failed == 0
    assert result.attempted > 0


def test_every_example_is_found() -> None:
    finder = doctest.DocTestFinder()
    for path, count in EXAMPLES.items():
        if count:
            name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
            module = importlib.import_module(name)
            found = sum(len(test.examples) for test in finder.find(module))
            assert found == count, name


FUNCTIONS_AND_CLASSES = [name for name in acctsne.__all__ if callable(getattr(acctsne, name))]
CONSTRUCTORS = [name for name in vars(acctsne.Affinities) if name.startswith("from_")]


@pytest.mark.parametrize(
    "name",
    [
        *FUNCTIONS_AND_CLASSES,
        *(f"Affinities.{name}" for name in CONSTRUCTORS),
        *(f"init.{name}" for name in acctsne.init.__all__),
        *(f"quality.{name}" for name in acctsne.quality.__all__),
        *(f"plot.{name}" for name in acctsne.plot.__all__),
        *(f"html.{name}" for name in acctsne.html.__all__),
        *(f"movie.{name}" for name in acctsne.movie.__all__),
        *(f"io.{name}" for name in acctsne.io.__all__ if name.islower()),
        *(f"scanpy.{name}" for name in acctsne.scanpy.__all__),
    ],
)
def test_every_public_name_has_an_example(name: str) -> None:
    documented: object = acctsne
    for part in name.split("."):
        documented = getattr(documented, part)
    examples = doctest.DocTestFinder(recurse=False).find(documented)
    assert any(test.examples for test in examples)


def test_every_parameter_and_attribute_is_documented() -> None:
    text = acctsne.TSNE.__doc__ or ""
    for name in acctsne.TSNE().get_params():
        assert re.search(rf"^    {name} : ", text, re.MULTILINE), name
    for name in acctsne.TSNE.__annotations__:
        if name.endswith("_"):
            assert re.search(rf"^    {name} : ", text, re.MULTILINE), name


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_a_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # In order and in one namespace, as a reader would type them; none at all is fine.
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for block in python_blocks(page):
        exec(compile(block, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_links_to_exists(page: Path) -> None:
    # Images and pages; Sphinx checks the headings.
    for path in re.findall(r"\]\(([^):#]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / path).is_file(), path


def test_every_picture_can_be_made_again(tmp_path: Path) -> None:
    # A name that is none makes the program say which there are.
    said = subprocess.run(
        [sys.executable, ROOT / "docs" / "figures", "--data", tmp_path, "none"],
        capture_output=True,
        text=True,
        check=False,
    ).stderr
    (names,) = re.findall(r"there are (.*)", said)
    pictures = {path.stem for path in (ROOT / "docs" / "images").glob("*.png")}
    assert set(names.split(", ")) == pictures


def test_the_gallery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "figures")
    gallery: Any = import_module("gallery")
    page = gallery.PAGE.read_text()
    before = gallery.PAGE.stat().st_mtime_ns
    for data_set in gallery.DATA_SETS:
        assert f"`{data_set.line}`" in page
    pictures = {path.stem for path in (ROOT / "docs" / "images" / "gallery").glob("*.png")}
    assert pictures == {data_set.name for data_set in gallery.DATA_SETS}
    # One of each kind is made again: named classes, and numbers on a scale.
    gallery.main(["iris", "--output", str(tmp_path)])
    assert (tmp_path / "iris.png").stat().st_size > 5_000
    X, y = gallery.load(gallery.DATA_SETS[4])
    gallery.draw(gallery.DATA_SETS[4], X[:, ::2], y, y, tmp_path / "roll.png")
    assert gallery.PAGE.stat().st_mtime_ns == before  # not by a part of it


FROM_OTHERS = ROOT / "docs" / "from-other-packages.md"


def mapped_names(column: int, heading: str) -> set[str]:
    """Names in a column of the tables of a package's parameters, without values."""
    (section,) = re.findall(
        rf"^## {heading}.*?(?=^## |\Z)", FROM_OTHERS.read_text(), re.MULTILINE | re.DOTALL
    )
    rows = [line.split("|") for line in section.splitlines() if line.count("|") == 4]
    return {name for row in rows for name in re.findall(r"`(\w+)(?:=[^`]*)?`", row[column])}


@pytest.mark.parametrize(
    ("heading", "peer"), [("scikit-learn", sklearn.manifold.TSNE), ("openTSNE", openTSNE.TSNE)]
)
def test_every_parameter_of_a_peer_is_mapped(heading: str, peer: type) -> None:
    assert set(inspect.signature(peer).parameters) <= mapped_names(1, heading)


@pytest.mark.parametrize(
    "heading", ["scikit-learn", "openTSNE", "FIt-SNE", "MulticoreTSNE", "cuML"]
)
def test_parameters_of_peers_are_mapped_to_ours(heading: str) -> None:
    ours = {
        *acctsne.TSNE().get_params(),
        *inspect.signature(acctsne.Affinities.from_data).parameters,
        "Affinities",
        "set_output",
    }
    assert mapped_names(2, heading) <= ours
