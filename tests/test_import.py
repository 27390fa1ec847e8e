"""What `import acctsne` costs."""

import json
import subprocess
import sys

PROGRAM = """
import json, sys
import numpy, sklearn.manifold
before = set(sys.modules)
import acctsne
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_import_is_light() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    loaded = json.loads(done.stdout)
    packages = {name.partition(".")[0] for name in loaded}
    heavy = {"matplotlib", "plotly", "datashader", "pandas", "anndata", "scanpy", "pyarrow", "h5py"}
    assert not packages & heavy
    # What is only for the command line and files waits until it is used.
    ours = {name for name in loaded if name.startswith("acctsne.")}
    assert not ours & {f"acctsne.{name}" for name in ("cli", "io", "fitsne", "scanpy", "plot")}
    # A stopwatch would judge the machine; this many modules load in a tenth of a second.
    assert len(loaded) < 100
