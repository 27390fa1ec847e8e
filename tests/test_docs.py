"""What the documentation shows must run."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import acctsne
import acctsne.io
import acctsne.scanpy

README = Path(__file__).parent.parent / "README.md"

MODULES = sorted(
    module.name
    for module in pkgutil.iter_modules(acctsne.__path__, "acctsne.")
    if module.name != "acctsne._core"  # native: its documentation is _core.pyi
)


@pytest.mark.parametrize("name", ["acctsne", *MODULES])
def test_doctests(name: str) -> None:
    module = importlib.import_module(name)
    result = doctest.testmod(module)
    assert result.failed == 0


@pytest.mark.parametrize(
    "name",
    [
        "TSNE",
        "build_info",
        "patch_sklearn",
        "unpatch_sklearn",
        *(f"quality.{name}" for name in acctsne.quality.__all__),
        *(f"io.{name}" for name in ("read", "read_labels", "write")),
        "scanpy.tsne",
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


def python_blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)


def test_readme_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # In order and in one namespace, as a reader would type them; none at all is fine.
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for block in python_blocks():
        exec(compile(block, str(README), "exec"), namespace)


def test_readme_images_exist() -> None:
    for path in re.findall(r"!\[[^]]*\]\(([^):]+)\)", README.read_text()):
        assert (README.parent / path).is_file(), path
