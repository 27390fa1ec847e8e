"""How the native core was built and what it runs on."""

from typing import Any

from acctsne import _core


def build_info() -> dict[str, Any]:
    """Tell how the native core was built and which SIMD level is in use.

    The level is the best one that both the build and the CPU have. The environment variable
    ``ACCTSNE_SIMD`` (``baseline``, ``avx2`` or ``avx512``; on arm64, whose baseline is NEON,
    ``baseline`` or ``dotprod``), read when the core is loaded, forces another.

    Returns
    -------
    info : dict
        ``compiler``, ``simd_levels_built``, ``simd_levels_usable`` and ``simd_level``, the one
        in use.

    Examples
    --------
    >>> from acctsne import build_info
    >>> "baseline" in build_info()["simd_levels_built"]
    True
    """
    return _core.build_info()
