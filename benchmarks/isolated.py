"""The process in which one measurement is made; it gets the path of its job, a JSON file.

The job names the module of this folder whose `run_job` makes the measurement. Nothing else is
imported, so that a package has the process to itself.
"""

import importlib
import json
import sys
from pathlib import Path

if __name__ == "__main__":
    job = json.loads(Path(sys.argv[1]).read_text())
    report = importlib.import_module(job["module"]).run_job(job)
    Path(job["report"]).write_text(json.dumps(report, default=float))
