"""Results of the steps for given input, to be compared between kinds of CPUs: `make arm64-python`.

`write FILE` on each, then `compare FILE FILE` on one. Whole maps cannot be compared: a fit would
amplify the last bit without limit.
"""

import itertools
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from acctsne import build_info
from acctsne.affinities.affinities import joint_probabilities
from acctsne.affinities.similarity import Similarity
from acctsne.neighbors.euclidean import exact_neighbors
from acctsne.neighbors.records import SearchSettings
from helpers import optimizer_at

Array = npt.NDArray[Any]

# As for the levels of one CPU, in test_determinism.py.
OF_FORCES = {"float32": 2**-12, "float64": 1e-12}
OF_AFFINITIES = 1e-8


def results() -> dict[str, Array]:
    """Run every step once, on input that does not depend on what another step rounds."""
    rng = np.random.default_rng(0)
    data = {
        "numbers": rng.normal(size=(1201, 33)),
        "bytes": rng.integers(256, size=(1201, 100)).astype(np.float64),
    }
    made: dict[str, Array] = {}
    for name, X in data.items():
        found = exact_neighbors(X, SearchSettings(40, dtype=np.dtype(np.float64), threads=2))
        P = joint_probabilities(found, Similarity("gaussian", (12.0,)), 2)
        made[f"neighbors {name}"] = found.indices
        made[f"affinities {name}"] = P.values
    indices = made["neighbors numbers"]
    starts = np.arange(0, indices.size + 1, indices.shape[1])
    graph = csr_matrix((np.ones(indices.size), indices.ravel(), starts), (len(indices),) * 2)
    joint = (graph + graph.T) / (2 * graph.sum())
    ways = [*itertools.product(["exact", "barnes_hut"], [1, 2, 3]), ("fft", 1), ("fft", 2)]
    for (method, dims), dtype in itertools.product(ways, OF_FORCES):
        Y = (10 * np.random.default_rng(dims).normal(size=(len(indices), dims))).astype(dtype)
        optimizer = optimizer_at(joint.tocsr(), Y, method)
        values = (*optimizer.forces(2), optimizer.kl_divergence(2))
        for what, value in zip(("attraction", "repulsion", "Z", "KL"), values, strict=True):
            made[f"forces {method} {dims} {what} {dtype}"] = np.asarray(value)
    return made


def compare(one: dict[str, Array], other: dict[str, Array]) -> None:
    """Check that results agree, and print how well."""
    assert one.keys() == other.keys()
    worst: dict[str, float] = {}
    for name, expected in one.items():
        step, *_, kind = name.split()
        if step == "neighbors":
            # They are proven, not approximated.
            np.testing.assert_array_equal(other[name], expected, err_msg=name)
            continue
        if step == "affinities":
            error = float(np.max(np.abs(other[name] / expected - 1)))
            group, tolerance = step, OF_AFFINITIES
        else:
            error = float(np.linalg.norm(other[name] - expected) / np.linalg.norm(expected))
            group, tolerance = f"{step} {kind}", OF_FORCES[kind]
        assert error <= tolerance, f"{name}: {error:.1e}, more than {tolerance:.1e}"
        worst[group] = max(worst.get(group, 0), error)
    errors = ", ".join(f"{group} to {error:.1e}" for group, error in worst.items())
    print(f"neighbors are the same; {errors}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["write", file]:
            print(f"SIMD level {build_info()['simd_level']}")
            np.savez(file, **results())  # type: ignore[arg-type]
        case ["compare", one, other]:
            compare(dict(np.load(one)), dict(np.load(other)))
        case _:
            sys.exit(__doc__)
