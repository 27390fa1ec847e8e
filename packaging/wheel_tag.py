"""Which wheels this Python makes: prints their tags of Python and ABI."""

import sys
import sysconfig


def has_stable_abi() -> bool:
    """Return whether this Python makes wheels of the stable ABI, which free-threaded ones lack."""
    return sys.version_info >= (3, 12) and not sysconfig.get_config_var("Py_GIL_DISABLED")


def wheel_tag() -> str:
    """Return the tags of Python and ABI."""
    if has_stable_abi():
        return "cp312-abi3"
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    free_threaded = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    return f"{version}-{version}{free_threaded}"


def left_out() -> str:
    """Return what wheels for all systems are made without, and why; nothing if all are made."""
    if has_stable_abi():
        return ""
    return (
        f"left out: Windows, and every Python but that of {wheel_tag()}, for one wheel for all "
        "later versions is of the stable ABI, which Python 3.12 and later have unless they are "
        "free-threaded. It is made by: make wheel PYTHON=python3.12"
    )


if __name__ == "__main__":
    print(wheel_tag())
