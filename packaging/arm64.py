"""The wheel for Linux on arm64, run by Python on an emulated CPU: `make arm64-python`.

Debian's Python for arm64 and what it needs are unpacked into a folder, not installed; wheels come
from the index. Needs apt-get and dpkg with Debian's sources, qemu-user-static, and beside the wheel
an acctsne for this machine, whose results are compared with those of the emulated one.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("python3", "libstdc++6")
PLATFORMS = [f"manylinux_2_{minor}_aarch64" for minor in range(17, 29)] + ["manylinux2014_aarch64"]
# The level that each CPU gets: the first has dot products, the second is older than they are.
LEVELS = {"neoverse-n1": "dotprod", "cortex-a72": "baseline"}
TESTS = ("tests/test_minimal.py", "tests/test_determinism.py::TestSimdLevels")


def main() -> None:
    """Make the emulated machine, and run on it what the wheel is to be trusted for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "arm64-python")
    options = parser.parse_args()
    machine = Machine(options.folder.resolve())
    machine.unpack_python()
    machine.install(options.wheel, "pytest>=8")
    for cpu, level in LEVELS.items():
        info = json.loads(machine.run("-m", "acctsne", "info", "--json", cpu=cpu))
        print(f"CPU {cpu}: {info}", flush=True)
        assert info["simd_level"] == level, f"{level} is the level of {cpu}"
    began = time.monotonic()
    machine.run("-m", "pytest", "-p", "no:cacheprovider", *TESTS, show=True)
    compare_with_this_machine(machine)
    print(f"tests and comparison on the emulated CPU: {time.monotonic() - began:.0f} s")


@dataclass(frozen=True)
class Machine:
    """A folder with the files of an arm64 system, and a CPU that runs them."""

    folder: Path

    @property
    def system(self) -> Path:
        """Where Debian's packages are unpacked."""
        return self.folder / "system"

    @property
    def python(self) -> Path:
        """The interpreter, by the name that has its version."""
        link = self.system / "usr" / "bin" / "python3"
        return link.with_name(os.readlink(link))

    def unpack_python(self) -> None:
        """Unpack Debian's Python for arm64, unless that was done before."""
        done = self.folder / "unpacked"
        if done.exists():
            return
        apt = self.folder / "apt"
        for name in ("lists/partial", "cache/archives/partial"):
            (apt / name).mkdir(parents=True, exist_ok=True)
        # Lists and a cache of its own, and nothing installed: this machine's packages stay as they
        # are, and apt names all that Python needs.
        settings = {
            "APT::Architecture": "arm64",
            "APT::Architectures": "arm64",
            "APT::Sandbox::User": "",
            "Dir::State": apt,
            "Dir::State::Lists": apt / "lists",
            "Dir::State::status": "/dev/null",
            "Dir::Cache": apt / "cache",
            "Dir::Log": apt,
        }
        apt_get = ["apt-get", "--quiet=2", *(f"-o{key}={value}" for key, value in settings.items())]
        subprocess.run([*apt_get, "update"], check=True)
        download = ["install", "--download-only", "--no-install-recommends", *PACKAGES]
        subprocess.run([*apt_get, *download], check=True)
        for package in sorted((apt / "cache" / "archives").glob("*.deb")):
            subprocess.run(["dpkg", "--extract", str(package), str(self.system)], check=True)
        done.touch()

    def install(self, *requirements: Path | str) -> None:
        """Let this machine's pip put wheels for the other one into its folder."""
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade"]
        command += [f"--target={self.folder / 'site'}", "--only-binary=:all:"]
        command += [f"--python-version={self.python.name.removeprefix('python')}"]
        command += [f"--platform={platform}" for platform in PLATFORMS]
        subprocess.run([*command, *map(str, requirements)], check=True)

    def run(self, *arguments: str, cpu: str = "neoverse-n1", show: bool = False) -> str:
        """Run Python there and return what it prints, or show it."""
        command = ["qemu-aarch64-static", "-cpu", cpu, "-L", str(self.system), str(self.python)]
        return subprocess.run(
            [*command, *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(self.folder / "site")},
            stdout=None if show else subprocess.PIPE,
            text=True,
            check=True,
        ).stdout


def compare_with_this_machine(machine: Machine) -> None:
    """Compare the steps' results with those of this machine's lowest level."""
    program = str(ROOT / "tests" / "steps_of_cpus.py")
    here, there = (str(machine.folder / name) for name in ("here.npz", "there.npz"))
    lowest = {**os.environ, "ACCTSNE_SIMD": "baseline"}
    subprocess.run([sys.executable, program, "write", here], env=lowest, check=True)
    machine.run(program, "write", there, show=True)
    subprocess.run([sys.executable, program, "compare", here, there], check=True)


if __name__ == "__main__":
    main()
