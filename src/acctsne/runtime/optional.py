"""Optional dependencies."""

import importlib
from typing import Any


def require(module: str, extra: str) -> Any:
    """Import an optional module, or say in one line what to install."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise  # the package is there, but something that it needs is not
        raise ModuleNotFoundError(
            f"{package} is not installed; run: pip install 'acctsne[{extra}]'", name=package
        ) from None
