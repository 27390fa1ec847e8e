"""The referee of the benchmarks: what a map is worth, whichever package made it.

The affinities come from exact neighbours in double precision, and sums go over all pairs.
"""

import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, load_npz, save_npz

from acctsne import Affinities, Embedding, quality
from contestants import CONTESTANTS

NEIGHBORS = 10  # of preservation and label agreement
# Up to so many points Z is summed over all pairs; beyond, a grid of a tenth of a percent gives it.
ALL_PAIRS = 150_000
FORCE_SAMPLE = 1000  # points at which forces are compared


def run_job(job: dict[str, Any]) -> dict[str, Any]:
    """Judge one embedding in a process of its own."""
    X = np.load(job["X"])
    labels = np.load(job["labels"]) if Path(job["labels"]).exists() else None
    Y = np.load(job["embedding"])
    P = exact_affinities(X, job["perplexity"], Path(job["X"]).parent)
    figures = judge(job["contestant"], X, labels, Y, P, job["threads"])
    return {"status": "ok", "kl_by": "grid" if len(Y) > ALL_PAIRS else "all pairs", **figures}


def judge(
    contestant: str,
    X: npt.NDArray[Any],
    labels: npt.NDArray[np.int32] | None,
    Y: npt.NDArray[Any],
    P: csr_matrix,
    threads: int,
    force_sample: int = FORCE_SAMPLE,
) -> dict[str, float | None]:
    """Return all figures of a contestant's map of X."""
    return {
        "exact_kl": exact_kl(P, Y, threads),
        "force_error": _own_force_error(contestant, Y, force_sample, threads),
        "neighbor_preservation": quality.neighbor_preservation(X, Y, NEIGHBORS, n_jobs=threads),
        "label_agreement": (
            None
            if labels is None
            else quality.label_agreement(Y, labels, NEIGHBORS, n_jobs=threads)
        ),
    }


def exact_kl(
    P: csr_matrix | Affinities, Y: npt.NDArray[Any], threads: int, dof: float = 1.0
) -> float:
    if len(Y) <= ALL_PAIRS:
        return quality.exact_kl(None, Y, P=P, dof=dof, n_jobs=threads)
    affinities = P if isinstance(P, Affinities) else Affinities.from_matrix(P)
    Y = np.ascontiguousarray(Y, dtype=np.float32)
    return Embedding(affinities, Y, method="fft", force_error=1e-3, dof=dof, n_jobs=threads).kl()


def exact_affinities(X: npt.NDArray[Any], perplexity: float, folder: Path) -> csr_matrix:
    """Compute P, or take it from the folder if it is there for the same data."""
    digest = hashlib.sha256(np.ascontiguousarray(X).data).hexdigest()[:16]
    path = folder / f"affinities-{perplexity:g}-{digest}.npz"
    if path.exists():
        return load_npz(path)
    P = quality.affinities(X, perplexity)
    save_npz(path, P, compressed=False)
    return P


def _own_force_error(
    contestant: str, Y: npt.NDArray[Any], force_sample: int, threads: int
) -> float | None:
    measure = CONTESTANTS[contestant].force_error
    if measure is None:
        return None
    try:
        return measure(Y, force_sample, threads)
    except (ImportError, AttributeError, TypeError) as error:
        # Peers' forces are behind private functions, which may change.
        print(f"{contestant}: forces cannot be had: {error}", file=sys.stderr)
        return None
