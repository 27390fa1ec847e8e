"""What `import acctsne` and `acctsne --help` cost, and that every public name is there.

A stopwatch would judge the machine: the modules that are loaded are looked at instead.
"""

import json
import subprocess
import sys

import pytest

import acctsne

# Each takes a tenth of a second or more, or is only for some of the uses.
HEAVY = {"anndata", "dask", "h5py", "joblib", "matplotlib", "mpi4py", "numpy", "pandas"}
HEAVY |= {"plotly", "pyarrow", "scanpy", "scipy", "sklearn", "tqdm"}

IMPORT = "import acctsne"
HELP = """
from acctsne.cli import main
try:
    main(["--help"])
except SystemExit as ended:
    assert ended.code == 0
"""
VERSION = HELP.replace("--help", "--version")
MISTAKE = HELP.replace("--help", "frobnicate").replace("== 0", "== 2")


@pytest.mark.parametrize("program", [IMPORT, HELP, VERSION, MISTAKE])
def test_nothing_heavy_is_loaded(program: str) -> None:
    listing = "import json, sys; print('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\n{listing}"], capture_output=True, text=True, check=True
    )
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert "acctsne" in loaded
    assert not {name.partition(".")[0] for name in loaded} & HEAVY


def test_pictures_wait_until_they_are_used() -> None:
    listing = "import json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", f"from acctsne import TSNE; {listing}"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(json.loads(done.stdout))
    assert "acctsne.estimator" in loaded
    assert not loaded & {"matplotlib", "plotly", "datashader", "anndata", "h5py", "zarr"}
    assert not loaded & {"acctsne.cli", "acctsne.pictures", "acctsne.interop", "acctsne.io"}


def test_processes_and_dask_are_there_without_what_they_need() -> None:
    program = (
        "import sys; sys.modules.update(dask=None, distributed=None, mpi4py=None)\n"
        "import acctsne; acctsne.dask.fit_transform; acctsne.distributed.TSNE"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_public_name_is_there() -> None:
    assert set(acctsne.__all__) <= set(dir(acctsne))
    modules = ["dask", "distributed", "html", "init", "io", "movie", "plot", "quality", "scanpy"]
    for name in [*acctsne.__all__, *modules]:
        value = getattr(acctsne, name)
        assert getattr(value, "__name__", name) in (name, f"acctsne.{name}")
        assert getattr(acctsne, name) is value
    with pytest.raises(AttributeError, match="has no attribute 'frobnicate'"):
        _ = acctsne.frobnicate  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="cannot import name 'frobnicate'"):
        from acctsne import frobnicate  # type: ignore[attr-defined]  # noqa: F401
