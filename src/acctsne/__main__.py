"""Run the command line, or a program with acctsne in the place of scikit-learn's TSNE.

``python -m acctsne embed ...`` is the command ``acctsne embed ...``. A program is given as to
Python itself: ``python -m acctsne SCRIPT.py``, ``-m MODULE`` or ``-c COMMAND``, then its arguments.
"""

import runpy
import sys
from pathlib import Path
from types import ModuleType


def main(arguments: list[str]) -> int:
    """Tell a program from a command and run it."""
    what = arguments[0] if arguments else ""
    if what in ("-m", "-c") and len(arguments) > 1:
        run_program(what, arguments[1], arguments[2:])
    elif what.endswith(".py"):
        if not Path(what).is_file():
            print(f"acctsne: {what}: no such file", file=sys.stderr)
            return 2
        run_program("", what, arguments[1:])
    else:
        from acctsne.cli.main import main as run_command

        return run_command(arguments)
    return 0


def run_program(kind: str, program: str, arguments: list[str]) -> None:
    """Run a script, module (-m) or command (-c) as Python would, after the swap."""
    from acctsne.interop.sklearn_patch import patch_sklearn

    patch_sklearn()
    if kind == "-c":
        sys.argv = ["-c", *arguments]
        own = sys.modules["__main__"] = ModuleType("__main__")  # where pickle looks for its names
        exec(compile(program, "<string>", "exec"), vars(own))
    elif kind == "-m":
        sys.argv = [program, *arguments]
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        sys.argv = [program, *arguments]
        sys.path[0] = str(Path(program).resolve().parent)
        runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
