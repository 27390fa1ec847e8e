"""What tests run under mpiexec, by name. Every process checks what it sees."""

import os
import signal
import sys
import time
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from mpi4py import MPI
from scipy.sparse import csr_matrix

import acctsne
from acctsne.affinities.similarity import Similarity
from acctsne.distributed import TSNE

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.Get_rank(), COMM.Get_size()

# More than two blocks of rows, so that three processes have some each.
N_SAMPLES = 8500


def clusters(n_samples: int, n_features: int, dtype: Any = np.float32) -> npt.NDArray[Any]:
    random = np.random.default_rng(1)
    X = random.normal(size=(n_samples, n_features)) + 4 * random.integers(0, 6, (n_samples, 1))
    return X.astype(dtype)


def part(X: npt.NDArray[Any]) -> slice:
    """Return rows of uneven number, none for the first of three."""
    ends = [len(X) // 3, len(X)] if SIZE == 2 else [0, len(X) // 7, len(X)]
    return slice([0, *ends][RANK], ends[RANK])


def check_same_bits(X: npt.NDArray[Any], **parameters: Any) -> None:
    how = {"random_state": 0, "max_iter": 250, "n_jobs": 1 + RANK % 2, **parameters}
    here = part(X)
    given = {**how, "init": how["init"][here]} if isinstance(how.get("init"), np.ndarray) else how
    seen = []
    tsne = TSNE(**given, callback=lambda *report: seen.append(report), callback_every=100)
    assert np.array_equal(tsne.fit_transform(X[here]), tsne.embedding_)
    everything = tsne.gather()
    assert np.array_equal(everything[here], tsne.embedding_)
    assert tsne.timings_["optimize_bytes_sent"] > 0
    if RANK > 0:
        assert not seen
        return
    expected = acctsne.TSNE(
        **how, callback=lambda *report: seen.append(report), callback_every=100
    ).fit(X)
    assert everything.dtype == expected.embedding_.dtype
    assert np.array_equal(everything, expected.embedding_)
    assert tsne.kl_divergence_ == expected.kl_divergence_
    assert tsne.n_iter_ == expected.n_iter_
    assert tsne.timings_["recall"] == expected.timings_["recall"]
    half = len(seen) // 2
    assert half >= 1
    for (iteration, kl, positions), (other, other_kl, other_positions) in zip(
        seen[:half], seen[half:], strict=True
    ):
        assert (iteration, kl) == (other, other_kl)
        assert np.array_equal(positions, other_positions)


def same_bits() -> None:
    X = clusters(N_SAMPLES, 8)
    if SIZE == 2:
        # In double precision, whose last bits show in what order the two blocks of one were added.
        check_same_bits(X.astype(np.float64), dtype=np.float64)
        return
    check_same_bits(X, init="random", neighbors="approximate")
    X[7] = 0
    check_same_bits(X, metric="cosine", n_components=3, init=acctsne.init.pca(X, 3))
    check_same_bits(clusters(4500, 300), schedule="sklearn", perplexity=5)
    check_same_bits(clusters(300, 5), perplexity="auto")
    # A file that all read from, of which each has its rows.
    if RANK == 0:
        np.save("data.npy", X)
    COMM.Barrier()
    everything = TSNE(max_iter=250, perplexity=5).fit("data.npy").gather()
    if RANK == 0:
        expected = acctsne.TSNE(max_iter=250, perplexity=5).fit_transform(X)
        assert np.array_equal(everything, expected)


def raised(X: Any, **parameters: Any) -> str:
    """Fit, and return what all processes say went wrong."""
    said = ""
    try:
        TSNE(**{"max_iter": 250, "perplexity": 5, **parameters}).fit(X)
    except (ValueError, TypeError, ZeroDivisionError, OSError) as error:
        said = f"{type(error).__name__}: {error}"
    everyone = COMM.allgather(said)
    assert len(set(everyone)) == 1, everyone
    return said


def errors() -> None:
    X = clusters(600, 4)
    mine = X[RANK::SIZE].copy()
    last = SIZE - 1
    bad = mine.copy()
    if last == RANK:
        bad[3, 1] = np.nan
    assert raised(bad).startswith(f"ValueError: rank {last}: Input X contains NaN")
    assert "rows of 3 and 4 features" in raised(mine[:, 1:] if last == RANK else mine)
    assert f"rank {last}: perplexity is" in raised(mine, perplexity=7 if last == RANK else 5)
    assert raised(csr_matrix(mine)).startswith("TypeError: several processes take dense rows")
    assert raised(mine, init="spectral").startswith("ValueError: init='spectral'")
    assert raised(mine, method="exact").startswith("ValueError: method='exact'")
    assert raised(mine, metric="manhattan").startswith("ValueError: metric='manhattan'")
    assert raised(mine, perplexity=600).startswith("ValueError: perplexity (600")
    assert raised(mine, n_components=0).startswith("InvalidParameterError")
    assert "init has shape (1, 2)" in raised(mine, init=np.zeros((1, 2)))
    assert "No such file" in raised("no.npy")
    assert "npy files only" in raised("data.csv")

    def divide(*_: Any) -> None:
        raise ZeroDivisionError("in a callback")

    found = raised(mine, callback=divide if RANK == 0 else None)
    assert found == "ZeroDivisionError: rank 0: in a callback"
    # After all that, they still work together, and a callback ends a fit for all.
    tsne = TSNE(max_iter=250, perplexity=5, callback=lambda *_: True).fit(mine)
    assert tsne.n_iter_ == 49
    try:
        tsne.transform(mine)
    except NotImplementedError:
        return
    raise AssertionError("transform was not refused")


def unforeseen() -> None:
    """An error that the other processes cannot know of."""

    def fail(*_: Any) -> Any:
        raise MemoryError("no room for probabilities")

    if RANK == 1:
        setattr(Similarity, "conditional", fail)  # noqa: B010
    TSNE(max_iter=250, perplexity=5).fit(clusters(600, 4)[RANK::SIZE])
    time.sleep(600)


def interrupted() -> None:
    """One process is told to stop in the middle of a descent."""

    def stop(*_: Any) -> None:
        os.kill(others[1], signal.SIGINT)

    others = COMM.allgather(os.getpid())
    tsne = TSNE(max_iter=100_000, perplexity=5, tol=0, min_grad_norm=0, callback=stop)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        tsne.fit(clusters(5000, 4)[RANK::SIZE])
    except KeyboardInterrupt:
        iterations = COMM.allgather(tsne.n_iter_)
        assert len(set(iterations)) == 1
        assert 49 <= iterations[0] < 90_000
        assert len(tsne.gather()) == 5000
        return
    raise AssertionError("nobody stopped")


if __name__ == "__main__":
    warnings.simplefilter("error")
    program = {
        "same_bits": same_bits,
        "errors": errors,
        "unforeseen": unforeseen,
        "interrupted": interrupted,
    }[sys.argv[1]]
    try:
        program()
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        COMM.Abort(3)
    print(f"process {RANK} is content")
