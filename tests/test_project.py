"""Facts that stand in several files agree, and the native module is what its stub says."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import pytest

import acctsne
from acctsne.cli.main import make_parser
from acctsne.files import formats

ROOT = Path(__file__).parent.parent
STUB = ROOT / "src" / "acctsne" / "_core.pyi"


def test_one_version() -> None:
    assert version("acctsne") == acctsne.__version__
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited
    assert cited[1].strip("\"'") == acctsne.__version__
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text()
    assert f'version: "{acctsne.__version__}"' in recipe
    for page in ("README.md", "docs/install.md"):
        wheels = re.findall(r"acctsne-(\d[^-]*)-cp", (ROOT / page).read_text())
        assert wheels == [acctsne.__version__], page
    changelog = (ROOT / "CHANGELOG.md").read_text()
    dated = rf"^## \[{acctsne.__version__}\] - \d{{4}}-\d\d-\d\d$"
    assert re.search(dated, changelog, re.MULTILINE)
    assert "version =" not in (ROOT / "pyproject.toml").read_text().split("[project.scripts]")[0]


def test_every_file_format_is_told_of() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text()
    in_help = re.findall(r"\w+", make_parser().description or "")
    for suffix in formats.FORMATS:
        assert f"``{suffix}``" in (formats.__doc__ or "")
        assert f"`{suffix}`" in page
        assert suffix[1:] in in_help


def test_the_stub_is_that_of_the_native_module(tmp_path: Path) -> None:
    """`make stub` would write what is there."""
    written = tmp_path / "_core.pyi"
    generate = ["nanobind.stubgen", "--quiet", "--module", "acctsne._core"]
    layout = ["ruff", "format", "--quiet", "--config", str(ROOT / "pyproject.toml")]
    for command in ([*generate, "--output-file", str(written)], [*layout, str(written)]):
        subprocess.run([sys.executable, "-m", *command], cwd=tmp_path, check=True)
    assert written.read_text() == STUB.read_text()


# Targets of the Makefile, in a folder with as much of the project as make looks at.


@pytest.fixture(name="project")
def _project(tmp_path: Path) -> Path:
    for name in ("Makefile", "pyproject.toml", "CMakeLists.txt", "CMakePresets.json"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "packaging", tmp_path / "packaging")
    for name in ("native/core.cpp", "src/acctsne/__init__.py", "build/installed"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('__version__ = "1.2.3"\n')
    return tmp_path


def would_do(project: Path, target: str) -> str:
    """What make would run; it does run itself for what is in a folder of its own."""
    command = ["make", "--dry-run", f"PYTHON={sys.executable}", target]
    return subprocess.run(
        command, cwd=project, capture_output=True, text=True, check=True
    ).stdout  # fmt: skip


def test_sanitized_tests_have_their_packages(project: Path) -> None:
    assert "--group dev" in would_do(project, "asan-python")


@pytest.mark.parametrize("source", ["native/core.cpp", "src/acctsne/__init__.py", "pyproject.toml"])
def test_wheels_are_as_new_as_their_sources(project: Path, source: str) -> None:
    build = "packaging/wheels.py linux-"
    assert build in would_do(project, "wheel-test")
    tag = runpy.run_path(str(ROOT / "packaging" / "wheel_tag.py"))["wheel_tag"]()
    wheel = project / "dist" / f"acctsne-1.2.3-{tag}-manylinux_2_17_{os.uname().machine}.whl"
    wheel.parent.mkdir()
    wheel.write_bytes(b"")
    assert build not in would_do(project, "wheel-test")
    later = wheel.stat().st_mtime + 10
    os.utime(project / source, (later, later))
    assert build in would_do(project, "wheel-test")


class Version(NamedTuple):
    """As much of it as is looked at."""

    major: int
    minor: int


@pytest.mark.parametrize(
    ("version", "free_threaded", "tag"),
    [
        ((3, 11), None, "cp311-cp311"),
        ((3, 12), 0, "cp312-abi3"),
        ((3, 14), 0, "cp312-abi3"),
        ((3, 13), 1, "cp313-cp313t"),
    ],
)
def test_tags_of_wheels(
    version: tuple[int, int],
    free_threaded: int | None,
    tag: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = runpy.run_path(str(ROOT / "packaging" / "wheel_tag.py"))
    monkeypatch.setattr(sys, "version_info", Version(*version))
    monkeypatch.setattr(sysconfig, "get_config_var", {"Py_GIL_DISABLED": free_threaded}.get)
    assert module["wheel_tag"]() == tag
    expected = "" if "abi3" in tag else f"left out: Windows, and every Python but that of {tag},"
    assert module["left_out"]()[: len(expected) or None] == expected


def test_the_wheel_for_arm64_is_refused_to_another_python(project: Path) -> None:
    for script, code in (("exec true", 0), ("exit 1", 2)):
        # One that is 3.11, or is not.
        python = project / "python"
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
        command = ["make", f"PYTHON={python}", "python-of-debian"]
        ended = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
        assert ended.returncode == code
        assert ("make arm64-python PYTHON=python3.11" in ended.stderr) == bool(code)
    first = "version_info[:2] != (3, 11)"
    commands = would_do(project, "arm64-python").splitlines()
    assert first in next(line for line in commands if not line.startswith("make"))


def test_wheels_by_a_python_that_does_not_run_are_refused(project: Path) -> None:
    command = ["make", "PYTHON=no-such-python", "wheel"]
    ended = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert ended.returncode
    assert "PYTHON=no-such-python does not run" in ended.stderr


# The message has no line of its own, for CMake breaks lines.
REFUSED = "acctsne is compiled by gcc 12, clang 16, Xcode 15 or later, and this is GNU 11."


@pytest.mark.skipif(
    not (shutil.which("cmake") and shutil.which("g++")), reason="cmake or g++ is not here"
)
def test_an_old_compiler_is_refused_in_a_sentence(tmp_path: Path) -> None:
    compiler = tmp_path / "g++-11"
    compiler.write_text('#!/bin/sh\nexec g++ -U__GNUC__ -D__GNUC__=11 "$@"\n')
    compiler.chmod(0o755)
    build = ["-B", str(tmp_path / "build"), "-G", "Unix Makefiles"]
    ended = subprocess.run(
        ["cmake", "-S", str(ROOT), *build, f"-DCMAKE_CXX_COMPILER={compiler}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode != 0
    said = " ".join(ended.stderr.split())
    assert REFUSED in said
    assert said.count("CMake Error") == 1
