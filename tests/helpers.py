"""What several test files share: plain definitions to compare with, and ways to start."""

import os
import pty
import subprocess
import sys
import termios
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from acctsne import TSNE, Affinities, Embedding, _core
from acctsne.affinities.affinities import csr_arrays, joint_probabilities
from acctsne.affinities.similarity import Similarity
from acctsne.forces.repulsion import RepulsionOptions
from acctsne.neighbors.records import Neighbors
from acctsne.problem import Samples
from acctsne.stages import BY_ONE_PROCESS

Array = npt.NDArray[Any]


# Definitions, all pairs, nothing of acctsne


def plain_similarity(Y: Array, dof: Any = 1.0) -> Array:
    """Unnormalised similarities of all pairs, from the documentation of `TSNE`."""
    Y = Y.astype(np.float64)
    d2 = np.square(Y[:, None, :] - Y[None, :, :]).sum(axis=-1)
    if dof == "sklearn":
        student = max(Y.shape[1] - 1, 1)
        q = (1 + d2 / student) ** (-(student + 1) / 2)
    else:
        q = (1 + d2 / dof) ** -dof
    np.fill_diagonal(q, 0)
    return np.asarray(q)


def plain_kl(P: Array, Y: Array, dof: Any = 1.0) -> float:
    q = plain_similarity(Y, dof)
    some = P > 0
    return float((P[some] * np.log(P[some] * q.sum() / q[some])).sum())


def derivatives(function: Callable[[Array], float], Y: Array) -> Array:
    """Finite differences of a function of a map, by every coordinate."""
    h = 1e-5  # truncation h^2 and rounding eps / h are both far below the 1e-6 asked for
    gradient = np.empty_like(Y)
    for at in np.ndindex(Y.shape):
        forward, backward = Y.copy(), Y.copy()
        forward[at] += h
        backward[at] -= h
        gradient[at] = (function(forward) - function(backward)) / (2 * h)
    return gradient


def plain_gradient(P: Array, Y: Array, dof: Any = 1.0) -> Array:
    """Derivatives of the KL divergence."""
    return derivatives(lambda moved: plain_kl(P, moved, dof), Y)


def row_perplexities(conditional: Array) -> Array:
    p = conditional.astype(np.float64)
    logs = np.log(p, where=p > 0, out=np.zeros_like(p))
    perplexities: Array = np.exp(-(p * logs).sum(axis=1))
    return perplexities


def relative_error(found: Array, expected: Array) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


# Steps of acctsne at a point of one's choice


def samples_of(tsne: TSNE, X: Any) -> Samples:
    """The data as a fit of this estimator would have it after all checks."""
    given = tsne._problem(X).given
    assert isinstance(given, Samples)
    return given


def neighbors_by(tsne: TSNE, X: Any) -> Neighbors:
    """The neighbours that a fit of this estimator would find."""
    problem = tsne._problem(X)
    assert isinstance(problem.given, Samples)
    return BY_ONE_PROCESS.neighbors(problem, problem.given)


def affinities_by(tsne: TSNE, X: Any) -> Array:
    """P as a fit of this estimator would have it, all pairs."""
    similarity = Similarity("gaussian", (float(tsne.perplexity),))
    P = joint_probabilities(neighbors_by(tsne, X), similarity, 2)
    dense: Array = P.to_scipy().toarray()
    return dense


def optimizer_at(
    P: csr_matrix, Y: Array, method: str, *, angle: float = 0.5, dof: Any = 1.0
) -> Any:
    """Make an optimiser with these positions, in the precision of Y."""
    kind = _core.Optimizer64 if Y.dtype == np.float64 else _core.Optimizer32
    options = RepulsionOptions(method, angle, dof=dof).native(Y.shape[1])
    return kind(*csr_arrays(P.astype(Y.dtype)), Y, options)


def gradient_at(
    P: csr_matrix, Y: Array, method: str, *, angle: float = 0.5, dof: Any = 1.0
) -> Array:
    optimizer = optimizer_at(P, Y, method, angle=angle, dof=dof)
    attractive, repulsive, z = optimizer.forces(threads=2)
    gradient: Array = 4 * (attractive - repulsive / z)
    return gradient


# Embeddings


def start(P: Affinities, **parameters: Any) -> Embedding:
    return Embedding(P, "random", random_state=0, **parameters)


def assert_same_bits(one: Embedding, other: Embedding) -> None:
    assert one.n_iter == other.n_iter
    np.testing.assert_array_equal(one.positions, other.positions)
    assert one.kl() == other.kl()


# What a user sees


def on_a_terminal(program: str, *arguments: str, size: tuple[int, int] = (24, 80)) -> str:
    """Run a program whose stderr is a terminal; return what was written on it."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, size)
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(command, stderr=theirs) as running:
        os.close(theirs)
        written = b""
        while True:
            try:
                read = os.read(ours, 4096)
            except OSError:  # how a terminal ends on Linux
                break
            if not read:
                break
            written += read
    os.close(ours)
    assert running.returncode == 0
    return written.decode()
