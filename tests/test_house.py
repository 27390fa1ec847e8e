"""The rooms of the house: who may import whom, and that the page that lists them is true."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HOUSE = ROOT / "src" / "acctsne"
MODULES = sorted(HOUSE.rglob("*.py"))

# From the door to the cellar. A room may import from those after it.
LAYERS = (
    "cli",
    "interop",
    "pictures",
    "quality",
    "distributed",
    "aligned_estimator",
    "estimator",
    "estimator_archive",
    "stages",
    "problem",
    "embedding",
    "init",
    "optimize",
    "affinities",
    "neighbors",
    "forces",
    "files",
    "runtime",
    "compat",
    "_core",
)
# They only give names to what lives in the rooms.
DOORS = {"__init__", "__main__", "plot", "html", "movie", "io", "scanpy", "dask"}


def room_of(path: Path) -> str:
    first = path.relative_to(HOUSE).parts[0]
    return first.removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    """Name the rooms that a file imports from, whether at its top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path} has a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "acctsne" and len(parts) > 1:
                yield parts[1]


def test_every_file_has_a_room() -> None:
    assert {room_of(path) for path in MODULES} == {*LAYERS, *DOORS} - {"_core"}


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if room_of(path) not in DOORS],
    ids=lambda path: str(path.relative_to(HOUSE)),
)
def test_imports_go_down(path: Path) -> None:
    depth = LAYERS.index(room_of(path))
    for room in imported(path):
        # The package's own names, such as its version.
        assert room in LAYERS, f"{path} imports acctsne.{room}"
        assert LAYERS.index(room) >= depth, f"{path} imports from {room}, which is above it"


def test_the_referee_is_independent() -> None:
    sources = sorted((HOUSE / "quality").glob("*.py"))
    assert len(sources) > 1
    rooms = {room for path in sources for room in imported(path)} - {"quality"}
    assert rooms <= {"affinities", "neighbors", "forces", "files", "runtime", "compat", "_core"}
    below = [path for path in MODULES if room_of(path) in LAYERS[LAYERS.index("quality") + 1 :]]
    assert not any("quality" in imported(path) for path in below)
    assert not any("Optimizer" in path.read_text() for path in sources)


# The native rooms, from the door to the cellar, and which others each may include. Every room may
# include native/include, which the files beside the rooms implement.
NATIVE = ROOT / "native"
NATIVE_ROOMS: dict[str, set[str]] = {
    "bind": {"quality", "optimize", "forces", "affinities", "neighbors", "tree", "kernels"},
    # The referee takes nothing from the optimiser; what else it takes is named below.
    "quality": {"forces", "neighbors", "kernels"},
    "optimize": {"forces", "affinities", "tree", "kernels"},
    "forces": {"affinities", "tree", "kernels"},
    "affinities": {"kernels"},
    "neighbors": {"linear", "kernels"},
    "tree": {"kernels"},
    "linear": {"kernels"},
    # Compiled once per instruction set: an inline function that they shared with other files could
    # be linked as the copy that not every CPU can run.
    "kernels": set(),
    "include": set(),
}
# Programs, which may include whatever they try.
NATIVE_PROGRAMS = {"tests", "fuzz"}


def included(path: Path) -> set[Path]:
    """Find the files of ours that a native file includes."""
    names = re.findall(r'^#include "(.+)"', path.read_text(), re.MULTILINE)
    folders = (path.parent, NATIVE, NATIVE / "include")
    found = {
        name: [folder / name for folder in folders if (folder / name).exists()] for name in names
    }
    assert [name for name, paths in found.items() if not paths] == [], path
    return {paths[0].relative_to(NATIVE) for paths in found.values()}


def test_every_native_folder_is_a_room() -> None:
    folders = {path.name for path in NATIVE.iterdir() if path.is_dir()}
    assert folders == {*NATIVE_ROOMS, *NATIVE_PROGRAMS}
    rooms = list(NATIVE_ROOMS)
    for depth, room in enumerate(rooms):
        assert NATIVE_ROOMS[room] <= set(rooms[depth + 1 :]), f"{room} may include one above it"


@pytest.mark.parametrize("room", [*NATIVE_ROOMS, "."])
def test_native_includes_go_down(room: str) -> None:
    files = NATIVE.glob("*.?pp") if room == "." else (NATIVE / room).rglob("*.?pp")
    allowed = {room, "include"} | NATIVE_ROOMS.get(room, set())
    wrong = [
        f"{path.relative_to(NATIVE)} includes {other}"
        for path in sorted(files)
        for other in sorted(included(path))
        if other.parts[0] not in allowed
    ]
    assert wrong == []


def test_the_native_referee_is_independent() -> None:
    """Beside the sum over all pairs, it takes what the map's kernel and a row of the data are."""
    others = {other for path in (NATIVE / "quality").glob("*.?pp") for other in included(path)}
    assert {str(other) for other in others if other.parts[0] in ("forces", "neighbors")} == {
        "forces/output_kernel.hpp",
        "forces/repulsive_exact.hpp",
        "neighbors/points.hpp",
    }


def test_kernels_name_the_files_that_call_them() -> None:
    """A kernel is called by the files that the comment above it begins with."""
    file = r"\w+/\w+\.[ch]pp"
    told = rf"^ +// ({file}(?:,\s+(?:// )?{file})*)[.:].*\n((?:(?! +// {file}|\n).*\n)*)"
    member = re.compile(r"\(\*(\w+)\)\(|^  [\w:<>, ]+ (\w+)(?:\[\w+\])?;", re.MULTILINE)
    lost, found = [], 0
    for header in (NATIVE / "kernels").glob("*.hpp"):
        for callers, members in re.findall(told, header.read_text(), re.MULTILINE):
            kernels = [function or name for function, name in member.findall(members)]
            assert kernels, f"{header.name} names {callers} for nothing"
            found += len(kernels)
            for caller in re.findall(file, callers):
                text = (NATIVE / caller).read_text()
                lost += [(header.name, caller, kernel) for kernel in kernels if kernel not in text]
    assert found > 30
    assert lost == []


def test_private_names_of_scikit_learn_are_in_one_place() -> None:
    private = re.compile(r"^\s*(?:from|import) sklearn[\w.]*(?:\._| import _)", re.MULTILINE)
    found = {room_of(path) for path in MODULES if private.search(path.read_text())}
    assert found == {"compat"}


def test_no_names_that_differ_by_an_underscore() -> None:
    for folder in {path.parent for path in MODULES}:
        names = [path.stem.strip("_") for path in folder.glob("*.py") if path.stem != "__init__"]
        assert len(set(names)) == len(names)


def test_the_page_lists_every_file() -> None:
    page = (ROOT / "docs" / "developing.md").read_text()
    block = re.search(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert block
    listed: set[str] = set()
    room = ""
    for line in block[1].splitlines():
        if folder := re.match(r"(\w+/)", line):
            room = folder[1]
            continue
        if not line.startswith(" "):
            room = ""
        names = re.match(r" {0,2}((?:\w+\.py ?)+)", line)
        listed |= {room + name for name in names[1].split()} if names else set()
    files = {str(path.relative_to(HOUSE)) for path in MODULES}
    # A room's own __init__ says what the room is for; it is listed where it is more than that.
    rooms = {name for name in files if name.endswith("/__init__.py")}
    assert listed | rooms == files


def test_the_page_leads_to_files_and_names() -> None:
    """A fit's way and the places of changes name files that are there, and what is in them."""
    page = (ROOT / "docs" / "developing.md").read_text()
    told = page[page.index("**One fit**") : page.index("## Words")]
    paths = [*MODULES, *(ROOT / "native").rglob("*.[ch]pp")]
    file = r"`([\w/*-]+\.(?:py|cpp|hpp))`"

    def found(name: str) -> list[Path]:
        return [path for path in paths if path.match(name)]

    names = re.findall(file, told)
    assert len(names) > 50
    assert [name for name in names if not found(name)] == []
    places = re.findall(rf"`(\w+)` \({file}\)", told)
    assert len(places) > 8
    lost = [
        (word, name)
        for word, name in places
        if not any(re.search(rf"\b{word}\b", path.read_text()) for path in found(name))
    ]
    assert lost == []


# How a file begins that says what it is for. A page's first line must be its doctype, lest old
# browsers take it for one of the time before standards.
OPENINGS = {
    **dict.fromkeys(("cpp", "hpp", "h", "js"), "//"),
    **dict.fromkeys(("cmake", "yaml", "R"), "# "),
    "py": '"""',
    "css": r"/\*",
    "html": r"<!DOCTYPE html>\n<!--",
}


@pytest.mark.parametrize("folder", ["native", "src", "tests", "benchmarks", "docs", "packaging"])
def test_every_file_begins_with_what_it_is_for(folder: str) -> None:
    paths = {kind: list((ROOT / folder).rglob(f"*.{kind}")) for kind in OPENINGS}
    assert any(paths.values())
    silent = [
        path
        for kind, opening in OPENINGS.items()
        for path in paths[kind]
        if not re.match(opening, path.read_text())
    ]
    assert not silent


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def own_names(tree: ast.AST) -> set[str]:
    """Name all functions, variables and attributes that a file defines."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names |= {node.attr} if ast.unparse(node.value) in ("self", "cls") else set()
    return names


def others_names(tree: ast.AST) -> Iterator[str]:
    """Name what a file takes of objects and modules that may be defined elsewhere."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            # What a class has from those above it is its own.
            owner = ast.unparse(node.value)
            if owner not in ("self", "cls", "super()"):
                yield node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if alias.name != "_core")


# The room compat/ is there for the private names of others.
@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if room_of(path) != "compat"],
    ids=lambda path: str(path.relative_to(HOUSE)),
)
def test_private_names_stay_in_their_file(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert {name for name in others_names(tree) if private(name)} <= own_names(tree)
