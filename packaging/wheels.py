"""Wheels for every system, by zig's cross compiler: `make wheel`.

Needs what the group "wheel" of pyproject.toml has. Python 3.12 or later makes one wheel for all
later versions by the stable ABI, Python 3.11 and free-threaded ones one each for themselves, except
on Windows. Wheels go to dist/.
"""

import argparse
import io
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import ziglang
from elftools.elf.elffile import ELFFile
from wheel_tag import has_stable_abi, left_out

ROOT = Path(__file__).parent.parent
ZIG = Path(ziglang.__file__).parent / ("zig.exe" if os.name == "nt" else "zig")
LARGEST = 3_000_000  # bytes


@dataclass(frozen=True)
class System:
    """A system as zig, as wheels and as the processor names it."""

    target: str
    platform: str
    levels: tuple[str, ...]


X86_LEVELS = ("baseline", "avx2", "avx512")
ARM64_LEVELS = ("baseline", "dotprod")
SYSTEMS = {
    "linux-x86_64": System(
        "x86_64-linux-gnu.2.17", "manylinux_2_17_x86_64.manylinux2014_x86_64", X86_LEVELS
    ),
    "linux-aarch64": System(
        "aarch64-linux-gnu.2.17", "manylinux_2_17_aarch64.manylinux2014_aarch64", ARM64_LEVELS
    ),
    "musl-x86_64": System("x86_64-linux-musl", "musllinux_1_2_x86_64", X86_LEVELS),
    "macos-arm64": System("aarch64-macos.11.0", "macosx_11_0_arm64", ("baseline",)),
    "macos-x86_64": System("x86_64-macos.11.0", "macosx_11_0_x86_64", X86_LEVELS),
    "windows-x86_64": System("x86_64-windows-gnu", "win_amd64", X86_LEVELS),
}


def main() -> None:
    """Build the wheels that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help=", ".join(SYSTEMS))
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    for name in options.systems or systems_here():
        if name not in SYSTEMS:
            parser.error(f"no system {name!r}; there are {', '.join(SYSTEMS)}")
        print(f"{name}: compiling", flush=True)
        wheel = build(name, SYSTEMS[name], options.output)
        check(wheel, SYSTEMS[name])
        print(f"{name}: {wheel.name}, {wheel.stat().st_size / 1e6:.2f} MB", flush=True)


def systems_here() -> list[str]:
    """Return the systems that this Python makes wheels for, and say what is left out."""
    if said := left_out():
        print(said, flush=True)
    return [name for name in SYSTEMS if has_stable_abi() or "windows" not in name]


def build(name: str, system: System, output: Path) -> Path:
    """Compile for a system and name the wheel after it."""
    settings = {
        "CMAKE_TOOLCHAIN_FILE": ROOT / "packaging" / "zig.cmake",
        "ACCTSNE_ZIG": ZIG,
        "ACCTSNE_TARGET": system.target,
        "ACCTSNE_WERROR": "ON",
    }
    version = sysconfig.get_python_version() + sys.abiflags  # 3.13t is not 3.13
    folder = ROOT / "build" / "wheels" / f"{name}-{version}"
    if "windows" in system.target:
        settings |= windows_python(folder / "python")
    defines = [f"--config-settings=cmake.define.{key}={value}" for key, value in settings.items()]
    with tempfile.TemporaryDirectory() as made:
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        command += ["--no-build-isolation", f"--wheel-dir={made}"]
        command += [f"--config-settings=build-dir={folder}", *defines, str(ROOT)]
        subprocess.run(command, check=True)
        tags = [sys.executable, "-m", "wheel", "tags", "--remove"]
        tags += [f"--platform-tag={system.platform}", str(next(Path(made).glob("*.whl")))]
        subprocess.run(tags, check=True, stdout=subprocess.DEVNULL)
        output.mkdir(exist_ok=True)
        wheel = next(Path(made).glob("*.whl"))
        # By its name there, which takes the place of an earlier one.
        return Path(shutil.move(wheel, output / wheel.name))


def windows_python(folder: Path) -> dict[str, object]:
    """Make headers and an import library of Python for Windows.

    The stable ABI has the same headers everywhere but for pyconfig.h, and its library is a list of
    names.
    """
    if not has_stable_abi():
        raise SystemExit("Windows needs Python 3.12 or later: its wheel is of the stable ABI")
    import abi3info

    headers = folder / "include"
    shutil.copytree(sysconfig.get_path("include"), headers, dirs_exist_ok=True)
    shutil.copy(ROOT / "packaging" / "windows_pyconfig.h", headers / "pyconfig.h")
    names = [symbol.name for symbol in abi3info.FUNCTIONS]
    names += [f"{symbol.name} DATA" for symbol in abi3info.DATAS]
    definition = folder / "python3.def"
    definition.write_text("LIBRARY python3.dll\nEXPORTS\n" + "".join(f"  {n}\n" for n in names))
    library = folder / "python3.lib"
    command = [str(ZIG), "dlltool", "-m", "i386:x86-64", "-d", str(definition), "-l", str(library)]
    subprocess.run(command, check=True)
    # CMake asks for the library of one version too, and reads the version from its name.
    of_version = folder / f"python{sys.version_info.major}{sys.version_info.minor}.lib"
    shutil.copy(library, of_version)
    return {
        "Python_INCLUDE_DIR": headers,
        "Python_LIBRARY": of_version,
        "Python_SABI_LIBRARY": library,
    }


def check(wheel: Path, system: System) -> None:
    """Look into a wheel: its size, the kernels, the licence, the symbols that it has and needs."""
    assert wheel.stat().st_size < LARGEST, f"{wheel.name} is larger than {LARGEST} bytes"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [module] = [
            name for name in names if Path(name).name.startswith("_core.") and name[-1] != "i"
        ]
        assert any(name.endswith("licenses/LICENSE") for name in names), names
        data = archive.read(module)
    # Any other name is that of one system's Python, which need not be the wheel's.
    assert Path(module).name in {"_core.abi3.so", "_core.so", "_core.pyd"}, module
    for level in system.levels:
        assert level.encode() + b"\0" in data, f"{module} has no kernels for {level}"
    if "-abi3-" in wheel.name:
        audit = [sys.executable, "-m", "abi3audit", "--strict", "--summary", str(wheel)]
        subprocess.run(audit, check=True)
    if "linux" in system.platform:
        with io.BytesIO(data) as file:
            symbols = ELFFile(file).get_section_by_name(".symtab")
        assert symbols is None, f"{module} is not stripped"
    if "musllinux" in system.platform:
        # auditwheel looks for musl's library on the machine, where it need not be.
        with io.BytesIO(data) as file:
            needed = [
                tag.needed
                for tag in ELFFile(file).get_section_by_name(".dynamic").iter_tags("DT_NEEDED")
            ]
        assert needed == ["libc.so"], f"{module} needs {needed}, not musl's library alone"
    elif "linux" in system.platform:
        show = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
        report = subprocess.run(show, check=True, capture_output=True, text=True).stdout
        tag = system.platform.split(".")[0]
        assert f'"{tag}"' in report.replace("\n", " "), report


if __name__ == "__main__":
    main()
