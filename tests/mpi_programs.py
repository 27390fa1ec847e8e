"""What tests run under mpiexec, by name, one after the other in one launch.

Every process checks what it sees. What only some programs need is imported by these: to start and
import takes longer than most of what is checked.
"""

import logging
import os
import pickle
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from copy import deepcopy
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt
from mpi4py import MPI
from scipy.sparse import csr_matrix
from sklearn.base import clone

import acctsne
from acctsne import io
from acctsne._core import BLOCK_ROWS, use_simd_level
from acctsne.affinities.similarity import Similarity
from acctsne.cli import main, together
from acctsne.distributed import TSNE, checkpoint, processes, transform
from acctsne.distributed.estimator import fit_with_checkpoint
from acctsne.distributed.neighbors import find_neighbors
from acctsne.distributed.processes import Processes
from acctsne.distributed.rows import share_rows
from acctsne.neighbors import nearest
from acctsne.neighbors.records import Neighbors, SearchSettings

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.Get_rank(), COMM.Get_size()

# More than two blocks of rows, so that three processes have some each.
N_SAMPLES = 8500


@contextmanager
def changed(place: Any, name: str, value: Any) -> Iterator[None]:
    """Give something another value, which the next program does not see."""
    before = getattr(place, name)
    setattr(place, name, value)
    yield
    setattr(place, name, before)


def meet(comm: Any = COMM) -> None:
    """Wait for the others asleep: MPI's own barrier would take the cores that they work on."""
    all_here = comm.Ibarrier()
    while not all_here.Test():
        time.sleep(0.005)


def by_first(make: Callable[[], Any]) -> Any:
    """Return what the first process alone makes."""
    made = make() if RANK == 0 else None
    meet()
    return COMM.bcast(made)


def clusters(n_samples: int, n_features: int, dtype: Any = np.float32) -> npt.NDArray[Any]:
    random = np.random.default_rng(1)
    X = random.normal(size=(n_samples, n_features)) + 4 * random.integers(0, 6, (n_samples, 1))
    return X.astype(dtype)


def part(X: npt.NDArray[Any]) -> slice:
    """Return rows of uneven number, none for the first of three or more."""
    ends = [len(X) // 3, len(X)] if SIZE == 2 else [0, len(X) // 7, len(X) // 2, len(X)]
    ends[SIZE - 1] = len(X)
    return slice([0, *ends][RANK], ends[RANK])


def check_same_bits(X: npt.NDArray[Any], end: int = 250, **parameters: Any) -> None:
    """Compare a fit by all with that of one process, of so many iterations at most."""
    how = {"random_state": 0, "max_iter": 250, "n_jobs": (None, 1, 2, 1)[RANK], **parameters}
    here = part(X)
    given = {**how, "init": how["init"][here]} if isinstance(how.get("init"), np.ndarray) else how
    seen = []

    def see(*report: Any) -> bool:
        seen.append(report)
        return bool(report[0] + 1 >= end)

    tsne = TSNE(**given, callback=see, callback_every=50)
    assert np.array_equal(tsne.fit_transform(X[here]), tsne.embedding_)
    everything = tsne.gather()
    assert np.array_equal(everything[here], tsne.embedding_)
    assert tsne.timings_["optimize_bytes_sent"] > 0
    for stage in ("knn", "symmetrize", "init", "optimize"):
        assert 0 < tsne.timings_[f"{stage}_communication"] <= tsne.timings_[stage]
        # A process without rows may have nothing to tell.
        assert sum(COMM.allgather(tsne.timings_[f"{stage}_bytes_sent"])) > 0
    if how.get("method") == "fft":
        # What the others' neighbours are is less than all that this process owns.
        positions = tsne.n_iter_ * len(X) * tsne.embedding_[0].nbytes
        assert 0 < tsne.timings_["halo_bytes_sent"] < (SIZE - 1) * positions // SIZE
    if RANK == 0:
        alone = acctsne.TSNE(**how, callback=see, callback_every=50).fit(X)
        assert everything.dtype == alone.embedding_.dtype
        assert np.array_equal(everything, alone.embedding_)
        assert tsne.kl_divergence_ == alone.kl_divergence_
        assert tsne.n_iter_ == alone.n_iter_
        assert tsne.timings_["recall"] == alone.timings_["recall"]
        half = len(seen) // 2
        assert half >= 1
        for (iteration, kl, positions), (other, other_kl, other_positions) in zip(
            seen[:half], seen[half:], strict=True
        ):
            assert (iteration, kl) == (other, other_kl)
            assert np.array_equal(positions, other_positions)
    else:
        assert not seen
    meet()


def same_bits() -> None:
    X = clusters(N_SAMPLES, 8)
    if SIZE == 2:
        # In double precision, whose last bits show in what order the two blocks of one were added.
        check_same_bits(X.astype(np.float64), end=100, dtype=np.float64, method="fft")
        return
    if SIZE == 4:
        # Rows for each of them; an end that is its own, not that of the iterations.
        check_same_bits(clusters(3 * BLOCK_ROWS + 100, 4), perplexity=5, tol=0.01)
        return
    check_same_bits(X, init="random", neighbors="approximate")
    X[7] = 0
    check_same_bits(X, end=100, metric="cosine", n_components=3, init=acctsne.init.pca(X, 3))
    check_same_bits(clusters(4500, 300), end=100, schedule="sklearn", perplexity=5)
    check_same_bits(clusters(300, 5), perplexity="auto")


def check_exact_neighbors(X: npt.NDArray[Any], n_neighbors: int, **how: Any) -> Neighbors:
    """Compare the exact neighbours that all find with those of one process, to the last bit."""
    shared = share_rows(X[part(X)], Processes())
    settings = SearchSettings(n_neighbors, mode="exact", threads=1 + RANK % 2, **how)
    found = find_neighbors(shared, settings, Processes())
    expected = nearest.find_neighbors(X, settings)
    own = Processes().own_rows(len(X))
    assert np.array_equal(found.indices, expected.indices[own])
    assert found.squared_distances.dtype == expected.squared_distances.dtype
    assert found.squared_distances.tobytes() == expected.squared_distances[own].tobytes()
    return found


def exact_neighbors() -> None:
    # Of three processes one has fewer rows than neighbours are wanted; of four, one has none.
    n_samples, k = 2 * BLOCK_ROWS + 60, 70
    own = Processes().own_rows(n_samples)
    # Whole numbers, each of which many rows have: who is near is a matter of numbers alone.
    line = np.random.default_rng(2).integers(0, 255, (n_samples, 1))
    found = check_exact_neighbors(line.astype(np.float32), k)
    for row in range(own.start, own.stop, 97):
        squared = (line[:, 0] - line[row, 0]) ** 2
        squared[row] = 10**9
        first = np.lexsort((np.arange(n_samples), squared))[:k]
        assert np.array_equal(found.indices[row - own.start], first)
    X = clusters(n_samples, 30)
    X[5000:5500] = X[:500]
    double = {"dtype": np.dtype(np.float64)}
    check_exact_neighbors(X.astype(np.float64), k, **double)
    check_exact_neighbors(X, k, **double)  # finished in double, which takes the rows again
    check_exact_neighbors(X.astype(np.float16), k)
    check_exact_neighbors(X, k, metric="correlation")
    check_exact_neighbors(np.tile(line, 70).astype(np.uint8), k, **double)
    check_exact_neighbors(X[:300], 299)


def write_files(X: npt.NDArray[Any]) -> dict[str, Any]:
    """Write numbers in every format that can be read by parts; return what to fit."""
    import anndata
    import pandas as pd
    import zarr

    if RANK == 0:
        frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
        made = anndata.AnnData(csr_matrix((len(X), 1)), obsm={"rows": X})
        np.save("x.npy", X)
        frame.assign(label="a").to_parquet("x.parquet", row_group_size=1000, use_dictionary=False)
        zarr.create_array("x.zarr", data=X, chunks=(500, X.shape[1]))
        made.write_h5ad("x.h5ad")
        made.write_h5ad("packed.h5ad", compression="lzf")
        with warnings.catch_warnings(action="ignore"):  # of which zarr format is the coming one
            made.write_zarr("cells.zarr")
    meet()
    obsm = ["x.h5ad", "packed.h5ad", "cells.zarr"]
    plain = ["x.npy", "x.parquet", "x.zarr"]
    return {
        **{name: io.open_rows(name) for name in plain},
        **{name: io.open_rows(name, key="rows") for name in obsm},
    }


def bytes_mapped(path: str) -> int:
    """Return how much of a file is in this process's memory."""
    parts = Path("/proc/self/smaps").read_text().split(f"/{path}\n")[1:]
    return sum(1024 * int(part.partition("Rss:")[2].split()[0]) for part in parts)


def bytes_read() -> int:
    """Return how much this process has read so far, of whatever files."""
    return int(Path("/proc/self/io").read_text().split()[1])


def files() -> None:
    """Each process reads its rows, and hardly more, whatever the format."""
    # Pages of a mapped file come to memory by up to two MB, at both ends of what is read.
    X = np.random.default_rng(0).normal(size=(N_SAMPLES, 250))
    processes = Processes()
    own = processes.own_rows(len(X))
    share_rows(X[:1], processes)  # imports what it needs
    for name, rows in write_files(X).items():
        rows.read(own.start, own.start + 1)  # likewise
        mapped, read = bytes_mapped(name), bytes_read()
        shared = share_rows(rows, processes)
        seen = bytes_read() - read
        seen += bytes_mapped(name) - mapped
        assert np.array_equal(shared.own, X[own]), name
        assert shared.own.dtype == X.dtype
        assert shared.shape == X.shape
        # Row groups, chunks and pages are larger than a row; a file is no smaller than 0.9.
        assert 0.4 < seen / X.nbytes < 0.8, (name, seen, X.nbytes)
    import anndata
    import zarr

    few = X[:600, :6]
    if RANK == 0:
        zarr.create_array("few.zarr", data=few)
        anndata.AnnData(csr_matrix(few)).write_h5ad("sparse.h5ad")
    COMM.Barrier()
    assert "X is stored as a csr_matrix" in raised("sparse.h5ad")
    everything = TSNE(perplexity=5, max_iter=250).fit("few.zarr").gather()
    if RANK == 0:
        expected = acctsne.TSNE(perplexity=5, max_iter=250).fit_transform(few)
        assert np.array_equal(everything, expected)


def raised(X: Any, **parameters: Any) -> str:
    """Fit, and return what all processes say went wrong."""
    tsne = TSNE(**{"max_iter": 250, "perplexity": 5, **parameters})
    return said_by_all(lambda: tsne.fit(X))


def said_by_all(function: Callable[[], Any], comm: Any = COMM) -> str:
    """Return the error that every process raises."""
    said = ""
    try:
        function()
    except BaseException as error:
        said = f"{type(error).__name__}: {error}"
    # The kind of a package's own error is known where it was raised.
    everyone: list[str] = comm.allgather(said)
    assert len({one.partition(":")[2] for one in everyone}) == 1, everyone
    return everyone[0]


def errors() -> None:
    X = clusters(600, 4)
    mine = X[RANK::SIZE].copy()
    last = SIZE - 1
    bad = mine.copy()
    if last == RANK:
        bad[3, 1] = np.nan
    assert raised(bad).startswith(f"ValueError: rank {last}: Input X contains NaN")
    found = raised(mine[:, 1:] if last == RANK else mine)
    assert f"rank {last} was given rows of 3 features, rank 0 of 4" in found, found
    assert f"rank {last}: perplexity is" in raised(mine, perplexity=7 if last == RANK else 5)
    assert raised(csr_matrix(mine)).startswith("TypeError: several processes take dense rows")
    assert raised(mine, init="spectral").startswith("ValueError: init='spectral'")
    assert raised(mine, method="exact").startswith("ValueError: method='exact'")
    assert raised(mine, metric="manhattan").startswith("ValueError: metric='manhattan'")
    found = raised(mine, metric_params={"p": 1})
    assert found.startswith("ValueError: metric='euclidean' with metric_params={'p': 1}"), found
    assert raised(mine, perplexity=600).startswith("ValueError: perplexity (600")
    assert raised(mine, n_components=0).startswith("InvalidParameterError")
    assert "init has shape (1, 2)" in raised(mine, init=np.zeros((1, 2)))
    layout = np.full((len(mine), 2), np.nan if last == RANK else 0)
    assert raised(mine, init=layout) == f"ValueError: rank {last}: Input init contains NaN."
    different = raised(mine, init=np.zeros((len(mine), 2)) if RANK == 0 else "pca")
    assert "rank 1: init is 'pca' here and an array on rank 0" in different, different
    different = raised(mine, init="random" if last == RANK else "pca")
    assert f"rank {last}: init is 'random' here and 'pca' on rank 0" in different, different
    many = clusters(4200, 4)
    many[4150] = 1
    constant = raised(many[1400 * RANK : 1400 * (RANK + 1)], metric="correlation")
    assert "row 4150 of X of all processes is constant" in constant, constant
    assert raised("no.npy") == "DataError: no.npy: no such file"
    if RANK == 0:
        Path("data.csv").write_text("1,2\n3,4\n")
        np.save("3d.npy", np.zeros((5, 2, 2)))
        np.save("first.npy", np.zeros((5, 2)))
    else:
        np.save(f"other{RANK}.npy", np.zeros((6, 2)))
    COMM.Barrier()
    assert "convert the data to one of .npy, .parquet" in raised("data.csv")
    assert "an array of shape (5, 2, 2)" in raised("3d.npy")
    different = raised("first.npy" if RANK == 0 else f"other{RANK}.npy")
    assert "rank 1 reads a file of shape (6, 2), rank 0 one of (5, 2)" in different, different
    different = raised(mine if last == RANK else "first.npy")
    assert f"rank 0 was given a path, rank {last} rows" in different, different
    # A file that one process does not see is an error of all, of a kind that all know.
    one_lacks_it = raised("no.npy" if last == RANK else "first.npy")
    assert one_lacks_it.endswith(f"Error: rank {last}: no.npy: no such file")

    def divide(*_: Any) -> None:
        raise ZeroDivisionError("in a callback")

    def decode(*_: Any) -> None:
        b"\xe9".decode()

    def refuse_messages(*_: Any) -> None:
        raise NumberedError(3)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    found = raised(mine, callback=divide if RANK == 0 else None)
    assert found == "ZeroDivisionError: rank 0: in a callback"
    # Also of a type that takes more than a message, or no message.
    found = raised(mine, callback=decode if RANK == 0 else None)
    assert found.startswith("UnicodeError: rank 0: 'utf-8' codec can't decode"), found
    assert raised(mine, callback=refuse_messages) == "ValueError: rank 0: 3"
    # Also what is no Exception.
    assert raised(mine, callback=lambda *_: sys.exit("bye")) == "SystemExit: rank 0: bye"
    assert raised(mine, callback=lambda *_: sys.exit(3)) == "SystemExit: 3"
    assert raised(mine, callback=interrupt) == "KeyboardInterrupt: rank 0"
    # One that calls what needs the others, who wait for it.
    comm, fitted = COMM.Split(0), TSNE(perplexity=5, callback=stop).fit(mine)
    for with_others in (
        lambda *_: TSNE(perplexity=5).fit(mine),
        lambda *_: TSNE(perplexity=5, comm=comm).fit(mine),
        lambda *_: fitted.transform(mine),
        lambda *_: fitted.gather(),
        lambda *_: fitted.save("map.npz"),
        lambda *_: TSNE.load("map.npz"),
    ):
        found = raised(mine, callback=with_others)
        assert found.startswith("RuntimeError: rank 0: a callback is called on the first "), found
    alone = TSNE(perplexity=5, callback=stop, comm=MPI.COMM_SELF)
    assert not raised(mine, callback=lambda *_: bool(len(alone.fit(mine).gather())))
    comm.Free()
    # One that is called nowhere.
    found = raised(mine, callback=[3] if last == RANK else None)
    assert found.startswith(f"TypeError: rank {last}: callback must be callable"), found
    assert not raised(mine, callback=divide if last == RANK else None)
    # Rows of all that one process has no memory for.
    wide = np.empty((0, 2**44 if last == RANK else 2))
    ends = [0] * last + [1]
    found = said_by_all(lambda: Processes().joined(wide, ends))
    assert found.startswith(f"MemoryError: rank {last}: Unable to allocate 128. TiB"), found
    # Ended by one whose stderr is closed.
    with changed(sys, "stderr", None):
        try:
            with Processes(Unending(COMM.Dup())).ending_together():
                raise ZeroDivisionError
        except EndedError:
            pass
    # Levels, of which the wrong one would show in bits alone.
    usable = acctsne.build_info()["simd_levels_usable"]
    best, level = usable[-1], usable[0] if last == RANK else usable[-1]
    use_simd_level(level)
    found = raised(mine, callback=stop)
    if len(usable) == 1:
        assert not found
    else:
        others = ", ".join(map(str, range(last)))
        assert f"({best} on ranks {others}; {usable[0]} on rank {last})" in found, found
        assert found.endswith("ACCTSNE_SIMD to the lowest for all of them"), found
        assert found == said_by_all(lambda: TSNE.load("no.npz"))
    use_simd_level(best)
    # What processes cannot fit by.
    group: Any = COMM.Split(RANK == 0)
    between = group.Create_intercomm(0, COMM, 1 if RANK == 0 else 0)
    assert raised(mine, comm=between).endswith("an Intracomm of mpi4py; got Intercomm")
    assert raised(mine, comm=3) == "TypeError: comm must be an Intracomm of mpi4py; got int"
    between.Free()
    group.Free()
    assert raised(mine, comm=group).startswith("ValueError: comm is MPI.COMM_NULL: it was freed")
    # After all that, they still work together, and a callback ends a fit for all.
    tsne = TSNE(max_iter=250, perplexity=5, callback=stop).fit(mine)
    assert tsne.n_iter_ == 49
    # New samples, too, are everybody's.
    assert f"rank {last}: Input X contains NaN" in said_by_all(lambda: tsne.transform(bad))
    assert "5 features" in said_by_all(lambda: tsne.transform(clusters(3, 5)))
    found = said_by_all(lambda: tsne.save("absent/map.npz"))
    assert "rank 0: " in found, found
    assert "absent/map.npz cannot be written: No such file" in found, found


class EndedError(Exception):
    """Instead of the end of all processes."""


class Unending(MPI.Intracomm):
    """A communicator that ends no process."""

    def Abort(self, errorcode: int = 0) -> NoReturn:  # noqa: N802
        raise EndedError(errorcode)


class NumberedError(ValueError):
    """An error that takes no message."""

    def __init__(self, number: int) -> None:
        if not isinstance(number, int):
            raise KeyError(number)
        super().__init__(number)


def own_ways() -> None:
    """Processes may write parameters in other ways, have no rows, and speak of other things."""
    mine = clusters(600, 4)[RANK::SIZE]
    way = RANK > 0
    same = {
        "perplexity": np.float64(5) if way else 5,
        "dtype": "float32" if way else np.float32,
        "learning_rate": [200, 100] if way else (np.float32(200), 100.0),
        "callback": stop if RANK == 0 else None,
    }
    assert not raised(mine, **same)
    # An empty array is of double precision, unless somebody thinks of it.
    rows = np.empty((0, 4)) if RANK == 1 else mine
    assert share_rows(rows, Processes()).dtype == np.float32
    # A message on its way, and one that is waited for, are not taken for those of a fit.
    news, heard, late = np.full(1000, 7.0), np.zeros(1000), np.zeros(1000)
    if RANK == 0:
        under_way = COMM.Isend(news, dest=1)
    if RANK == SIZE - 1:
        expected = COMM.Irecv(late, source=MPI.ANY_SOURCE)
    assert not raised(mine, callback=stop)
    if RANK == 1:
        assert COMM.Iprobe(source=0)
        COMM.Recv(heard, source=0)
        assert np.array_equal(heard, news)
    if RANK == 0:
        under_way.Wait()
        COMM.Send(news, dest=SIZE - 1)
    if RANK == SIZE - 1:
        expected.Wait()
        assert np.array_equal(late, news)
    # The way to the others is made once for a communicator, and given back with it.
    comm = COMM.Split(0)
    tsne = TSNE(perplexity=5, callback=stop, comm=comm)
    copied = clone(tsne.fit(mine))
    assert copied.comm is comm
    assert not hasattr(copied, "embedding_")
    assert np.array_equal(copied.fit_transform(mine), tsne.embedding_)
    duplicate = getattr(Processes(comm), "_comm")  # noqa: B009
    assert duplicate is getattr(Processes(comm), "_comm")  # noqa: B009
    assert MPI.Comm.Compare(duplicate, comm) == MPI.CONGRUENT
    comm.Free()
    assert duplicate == MPI.COMM_NULL


def bound_to_cores() -> None:
    """Threads that have to share the cores which a launcher has bound a process to."""
    mine = clusters(600, 4)[RANK::SIZE]
    cores = os.sched_getaffinity(0)
    if RANK == 1:
        os.sched_setaffinity(0, {min(cores)})
    machine = os.cpu_count() or 1
    for n_jobs in (2, None):
        with warnings.catch_warnings(record=True, action="always") as seen:
            TSNE(perplexity=5, callback=stop, n_jobs=n_jobs).fit(mine).transform(mine[:3])
        said = [str(one.message) for one in seen]
        if RANK > 0 or n_jobs is None or machine == 1:
            assert not said, said
        else:
            assert len(said) == 1, said
            expected = f"rank 1 has 2 threads for the 1 of {machine} cores that it may run on: "
            assert said[0].startswith(expected), said
            assert said[0].endswith("Open MPI does without --bind-to none"), said
    os.sched_setaffinity(0, cores)


def missed_perplexity() -> None:
    """Rows of which none can reach the perplexity are told of once, and only if they are all."""
    some = clusters(BLOCK_ROWS + 512, 4)
    some[:BLOCK_ROWS] = some[:BLOCK_ROWS:32].repeat(32, axis=0)  # all that the first process owns
    some[BLOCK_ROWS:] += 1000  # whose neighbours are none of those
    for X, missed in ((some, BLOCK_ROWS), (some[: BLOCK_ROWS // 2], BLOCK_ROWS // 2)):
        mine = X[part(X)]
        tsne = TSNE(perplexity=5, callback=stop, verbose=1)
        with (
            warnings.catch_warnings(record=True, action="always") as seen,
            redirect_stderr(StringIO()),
            logged() as told,
        ):
            tsne.fit(mine)
        warned = [str(one.message) for one in seen]
        assert len(warned) == (RANK == 0 and missed == len(X)), warned
        assert all("no row can reach perplexity 5 with 16 " in one for one in warned)
        counted = f"{missed} of {len(X)} rows cannot reach perplexity 5 with their 16 neighbours"
        assert told.count(counted) == (RANK == 0), told
    # It ends all if it is an error on the first.
    found = said_by_all(lambda: tsne.fit(mine))
    assert found.startswith("RuntimeWarning: rank 0: no row can reach perplexity 5"), found


def column_names() -> None:
    """Columns that have names must have the same ones everywhere, and in the same order."""
    import pandas as pd

    mine = clusters(600, 4)[RANK::SIZE]
    tsne = TSNE(max_iter=250, perplexity=5, callback=stop)
    rows = pd.DataFrame(mine, columns=["a", "b", "c", "d"])
    turned = rows[["b", "a", "c", "d"]] if RANK == 1 else rows
    found = said_by_all(lambda: tsne.fit(turned))
    assert found.startswith("ValueError: column 0 is 'b' on rank 1 and 'a' on rank 0; all"), found
    tsne.fit(rows)
    assert tsne.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    tsne.transform(rows[:3])  # without a warning, which would be an error
    found = said_by_all(lambda: tsne.transform(turned))
    assert "rank 1: The feature names should match" in found, found
    tsne.fit(mine)
    assert not hasattr(tsne, "feature_names_in_")


class Counted(MPI.Intracomm):
    """A communicator that refuses long messages."""

    def Send(self, buf: Any, dest: int, tag: int = 0) -> None:  # noqa: N802
        assert buf[0].nbytes <= processes.MOST_AT_ONCE
        super().Send(buf, dest, tag)


def long_messages() -> None:
    """Rows go to the first process by pieces that MPI can count, wherever these end."""
    X = clusters(500, 30)
    with changed(processes, "MOST_AT_ONCE", 1000):
        blocks = list(Processes(Counted(COMM.Dup())).to_first(X[part(X)], 100))
    assert not blocks if RANK > 0 else np.array_equal(np.concatenate(blocks), X)


def placed_by_one(X: Any, new: Any, how: dict[str, Any]) -> tuple[Any, ...]:
    tsne = acctsne.TSNE(**how).fit(X)
    return tsne.embedding_, tsne.kl_divergence_, tsne.transform(new)


@changed(transform, "ROUND_ROWS", 200)
def new_points() -> None:
    """Place samples that some processes have, by data that others have."""
    long_messages()
    new = clusters(1000, 8)[::3] + np.float32(0.25)
    ends = [len(new) // 2, len(new) // 2, len(new)]
    asked = slice([0, *ends][RANK], ends[RANK])
    for metric, dtype, n_samples in (
        ("euclidean", np.float64, 8500),
        ("cosine", np.float32, 8500),
        ("correlation", np.float32, 4100),
    ):
        X = clusters(n_samples, 8, dtype)
        X[4090:4100] = X[100:110]  # of which the first counts
        mixed = new.astype(dtype)
        mixed[3], mixed[-3:] = X[3000], X[-3:]
        mixed[5] = X[105]
        if metric == "cosine":
            X[17] = mixed[7] = mixed[-1] = 0
        how: dict[str, Any] = {
            "metric": metric,
            "perplexity": 5,
            "random_state": 0,
            "callback": stop,
            "n_jobs": None if RANK == 0 else 1,
        }
        mine, given = X[part(X)], how
        if metric == "correlation":
            # A start of one's own, not of the same type everywhere.
            how["init"] = np.random.default_rng(2).normal(size=(n_samples, 2)).astype(np.float32)
            own_start = how["init"][part(X)].astype(np.float64 if RANK == 1 else np.float32)
            given = {**how, "init": own_start}
        tsne = TSNE(**given).fit(mine)
        placed = tsne.transform(mixed[asked])
        embedding, kl, expected = by_first(partial(placed_by_one, X, mixed, how))
        assert placed.dtype == expected.dtype
        assert np.array_equal(placed, expected[asked])
        assert np.array_equal(expected[[3, 5]], embedding[[3000, 105]])
        # By one process and by all, from one file.
        tsne.save("fit.npz")
        loaded = acctsne.TSNE.load("fit.npz")
        assert np.array_equal(loaded.embedding_, embedding)
        assert loaded.kl_divergence_ == kl
        assert np.array_equal(loaded.transform(mixed[:20]), expected[:20])
        reloaded = TSNE.load("fit.npz")
        assert np.array_equal(reloaded.gather(), embedding)
        assert np.array_equal(reloaded.transform(mixed[asked]), expected[asked])
        reloaded.save("again.npz")
        if RANK == 0:
            assert_same_arrays("fit.npz", "again.npz")
    assert np.array_equal(loaded.init, how["init"])
    # Each process finds the others again from a copy of its own estimator, not from another's.
    pickled = pickle.dumps(tsne)
    for copied in (deepcopy(tsne), pickle.loads(pickled)):
        assert np.array_equal(copied.transform(mixed[asked]), placed)
    found = said_by_all(pickle.loads(COMM.bcast(pickled)).gather)
    assert "has the rows of rank 0 of 3 processes, and is used by rank 1 of 3" in found, found


def assert_same_arrays(one: str, other: str) -> None:
    with np.load(one) as first, np.load(other) as second:
        assert sorted(first) == sorted(second)
        for name in first:
            if name != "header":
                assert np.array_equal(first[name], second[name]), name


def stop(*_: Any) -> bool:
    return True


class Kept:
    """A fit that is cut off and gone on from, by any number of the processes.

    A callback ends it early, after points were numbered anew once.
    """

    HOW: ClassVar[dict[str, Any]] = {
        "random_state": 0,
        "perplexity": 5,
        "n_jobs": 1,
        "callback_every": 10,
    }
    END = 120

    def __init__(self, n_samples: int = N_SAMPLES) -> None:
        self.X = clusters(n_samples, 8)
        self.init = acctsne.init.pca(self.X, 2)
        self.expected = by_first(self.of_one_process)

    def of_one_process(self) -> tuple[Any, ...]:
        tsne = acctsne.TSNE(**self.HOW, init=self.init, callback=self.end).fit(self.X)
        return tsne.embedding_, tsne.kl_divergence_, tsne.n_iter_, tsne.timings_["recall"]

    def end(self, iteration: int, *_: Any) -> bool:
        return iteration + 1 == self.END

    def fit(self, comm: Any, folder: Path, *, resume: bool = True, **how: Any) -> TSNE:
        rank, size = comm.Get_rank(), comm.Get_size()
        ends = [len(self.X) * (part + 1) // size for part in range(size)]
        mine = slice([0, *ends][rank], ends[rank])
        X = how.pop("X", self.X)[mine]
        given = {"init": self.init[mine], "callback": self.end, "comm": comm}
        tsne = TSNE(**{**self.HOW, **given, **how})
        fit_with_checkpoint(tsne, X, folder, every=20, resume=resume)
        return tsne

    def cut_off(self, comm: Any, folder: Path, at: int, resume: bool) -> None:
        """Fit until a callback of the first process fails."""

        def fail(iteration: int, *_: Any) -> None:
            if iteration + 1 == at:
                raise ZeroDivisionError("power cut")

        found = said_by_all(lambda: self.fit(comm, folder, resume=resume, callback=fail), comm)
        alone = comm.Get_size() == 1
        assert found == f"ZeroDivisionError: {'' if alone else 'rank 0: '}power cut", found

    def check_resumed(self, comm: Any, folder: Path) -> None:
        tsne = self.fit(comm, folder)
        embedding, kl, n_iter, recall = self.expected
        assert np.array_equal(tsne.gather(), embedding)
        assert (tsne.kl_divergence_, tsne.n_iter_, tsne.timings_["recall"]) == (kl, n_iter, recall)
        assert "knn" not in tsne.timings_

    def copied(self, comm: Any, folder: Path) -> Path:
        """Return a folder with the same files, for these processes to do with as they like."""
        copy: Path = comm.bcast(folder.with_name(f"copy-{time.monotonic_ns()}"))
        if comm.Get_rank() == 0:
            shutil.copytree(folder, copy)
        comm.Barrier()
        return copy


@contextmanager
def some(processes: int) -> Iterator[Any]:
    """Give a communicator of the first processes, None to the others, who wait for them."""
    comm = COMM.Split(0 if processes > RANK else MPI.UNDEFINED)
    yield None if comm == MPI.COMM_NULL else comm
    meet()


@changed(checkpoint, "PIECE_ROWS", 1000)  # so that rows of a process lie in several, or share one
def checkpoints() -> None:
    """Go on with another number of processes, again and again."""
    kept = Kept()
    folder = Path("fit")
    with some(2) as comm:
        if comm:
            kept.cut_off(comm, folder, at=50, resume=False)
            names = sorted(file.name.split("-")[0] for file in folder.iterdir())
            assert names == ["affinities"] * 2 + ["manifest"] * 2 + ["state"] * 4, names
    for number, at in ((1, 70), (4, 110)):
        with some(number) as comm:
            if comm:
                copy = kept.copied(comm, folder)
                kept.cut_off(comm, copy, at=at, resume=True)
                kept.check_resumed(comm, copy)
    with some(3) as comm:
        if comm:
            kept.cut_off(comm, folder, at=90, resume=True)
    with some(2) as comm:
        if comm:
            kept.check_resumed(comm, folder)
    # More processes than blocks of rows.
    few = Kept(600)
    few.cut_off(COMM, folder, at=50, resume=False)
    few.check_resumed(COMM, folder)


def change(file: Path) -> None:
    """Change a byte in the middle of a file."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def with_array(file: Path, name: str, array: npt.NDArray[Any]) -> None:
    """Give an archive another array."""
    with np.load(file) as archive:
        arrays = dict(archive)
    np.savez(file, **{**arrays, name: array})


def damaged_checkpoints() -> None:
    kept = Kept(BLOCK_ROWS + 400)  # a block for either process
    folder = Path("fit")
    kept.cut_off(COMM, folder, at=50, resume=False)
    last = SIZE - 1

    def said(harm: Callable[[Path], Any], **how: Any) -> str:
        copy = kept.copied(COMM, folder)
        if RANK == 0:
            harm(copy)
        COMM.Barrier()
        return said_by_all(lambda: kept.fit(COMM, copy, **how))

    def file(where: Path, name: str, rank: int) -> Path:
        (found,) = where.glob(f"{name}-*-{rank}.npz")
        return found

    def all_states_of_the_last(where: Path) -> None:
        for state in where.glob(f"state-*-{last}.npz"):
            change(state)

    def points_without_dimensions(where: Path) -> None:
        for state in where.glob(f"state-*-{last}.npz"):
            with_array(state, f"points_{BLOCK_ROWS}", np.array(0.0))

    def a_row_twice(where: Path) -> None:
        twice = np.full(len(kept.X) - BLOCK_ROWS, 7, np.int32)
        with_array(file(where, "state-40", last), f"order_{BLOCK_ROWS}", twice)

    def swap_states(where: Path) -> None:
        for iteration in (20, 40):
            shutil.copy(
                file(where, f"state-{iteration}", 0), file(where, f"state-{iteration}", last)
            )

    def older_states(where: Path) -> None:
        shutil.copy(file(where, "state-20", last), file(where, "state-40", last))
        file(where, "state-20", 0).unlink()

    nothing = said(all_states_of_the_last)
    assert f"-{last}.npz is not a complete acctsne file: " in nothing, nothing
    found = said(lambda where: change(file(where, "affinities", last)))
    assert f"rank {last}: " in found, found
    assert f"-{last}.npz is not a complete acctsne file: Bad CRC-32" in found, found
    found = said(lambda where: file(where, "affinities", 0).unlink())
    assert "-0.npz is missing, a part of the checkpoint" in found, found
    found = said(points_without_dimensions)
    assert f"-{last}.npz is not a complete acctsne file: points has shape ()" in found, found
    found = said(a_row_twice)
    assert "manifest-2.npz is not a complete acctsne file: the state's order is no" in found, found
    assert "it does not have rows" in said(swap_states)
    assert "is missing" in said(older_states)
    other = kept.X.copy()
    other[-1, 0] += 1
    assert "is of a fit to other data" in said(lambda _: None, X=other)
    found = said(lambda _: None, perplexity=6)
    assert "is of a fit with perplexity=5, and now it is 6" in found, found
    # One generation that is damaged costs some iterations. An array more does no harm.
    copy = kept.copied(COMM, folder)
    if RANK == 0:
        change(file(copy, "state-40", last))
        with_array(file(copy, "state-20", 0), "allowed", np.array(0.0))
    COMM.Barrier()
    opened: list[str] = []
    read = getattr(checkpoint, "read_archive")  # noqa: B009

    def noted(path: Path, *what: Any) -> Any:
        opened.append(path.name)
        return read(path, *what)

    with logged() as told, changed(checkpoint, "read_archive", noted):
        kept.check_resumed(COMM, copy)
    # Each reads its own rows, and no others.
    assert all(name.startswith("manifest-") or name.endswith(f"-{RANK}.npz") for name in opened)
    assert any(name.startswith("state-") for name in opened)
    warned = COMM.allgather([line for line in told if "generation before" in line])
    assert [len(lines) for lines in warned] == [1, *[0] * last], warned
    # The disk of one process is full when the next one is due.
    if RANK == 1:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, resource.RLIM_INFINITY))
    found = said_by_all(lambda: kept.fit(COMM, folder))
    assert found.startswith("OSError: rank 1: "), found
    assert "-1.npz cannot be written: " in found, found
    if RANK == 1:
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    # Then its memory is.
    write = getattr(checkpoint, "write_archive")  # noqa: B009
    if RANK == 1:
        setattr(checkpoint, "write_archive", no_room)  # noqa: B010
    found = said_by_all(lambda: kept.fit(COMM, folder))
    assert found == "MemoryError: rank 1: no room", found
    setattr(checkpoint, "write_archive", write)  # noqa: B010
    # Then somebody presses Ctrl-C there.
    others = COMM.allgather(os.getpid())
    signal.signal(signal.SIGINT, signal.default_int_handler)
    found = said_by_all(
        lambda: kept.fit(COMM, folder, callback=lambda *_: os.kill(others[1], signal.SIGINT))
    )
    assert found == "KeyboardInterrupt: ", found
    kept.check_resumed(COMM, folder)


@contextmanager
def logged() -> Iterator[list[str]]:
    """Give what is logged inside."""
    told: list[str] = []
    handler = logging.Handler()
    setattr(handler, "emit", lambda record: told.append(record.getMessage()))  # noqa: B010
    logging.getLogger("acctsne").addHandler(handler)
    yield told
    logging.getLogger("acctsne").removeHandler(handler)


def no_room(*_: Any) -> Any:
    raise MemoryError("no room")


def unforeseen() -> None:
    """An error that the other processes cannot know of."""

    def fail(*_: Any) -> Any:
        raise MemoryError("no room for probabilities")

    if RANK == 1:
        setattr(Similarity, "conditional", fail)  # noqa: B010
    TSNE(max_iter=250, perplexity=5).fit(clusters(600, 4)[RANK::SIZE])
    time.sleep(600)


def interrupted_at_first() -> None:
    """Ctrl-C while the others wait for a process that is about to begin its fit."""

    def duplicate(comm: Any, mpi: Any) -> Any:
        if RANK == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return then(comm, mpi)

    then = getattr(processes, "_duplicate")  # noqa: B009
    setattr(processes, "_duplicate", duplicate)  # noqa: B010
    signal.signal(signal.SIGINT, signal.default_int_handler)
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


def embed(*arguments: str) -> tuple[list[Any], str]:
    """Run `acctsne embed`; return the exit codes of all processes, and what they say."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()) as said:
        try:
            code: Any = main(["embed", *arguments, "-o", "map.npy"])
        except SystemExit as ended:
            code = ended.code
    everyone = COMM.allgather((code, said.getvalue()))
    assert "Traceback" not in said.getvalue(), everyone
    return [code for code, _ in everyone], "".join(said for _, said in everyone)


def array_of_a_file() -> None:
    import anndata

    X = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
    if RANK == 0:
        anndata.AnnData(np.zeros((300, 1)), obsm={"rows": X}).write_h5ad("x.h5ad")
    COMM.Barrier()
    codes, said = embed("x.h5ad", "--key", "rows", "--perplexity", "5")
    assert codes == [0] * SIZE, said
    if RANK == 0:
        expected = acctsne.TSNE(perplexity=5).fit_transform(X)
        assert np.array_equal(np.load("map.npy"), expected)
    codes, said = embed("x.h5ad", "--key", "lines")
    assert codes == [1] * SIZE, said
    wrong = "acctsne: error: --key: x.h5ad: no 'lines' in obsm; there are rows"
    assert said.count(wrong) == 1, said


def one_message() -> None:
    """Of all processes one says what is wrong, also if only another one knows."""
    if RANK == 0:
        np.save("data.npy", np.zeros((5000, 3)))
        infinite = np.zeros((5000, 3))
        infinite[4999, 1] = np.inf  # a row of the second process
        np.save("infinite.npy", infinite)
        np.save("long.npy", np.zeros((5001, 2)))
        np.save("wide.npy", np.zeros((5000, 3)))
    COMM.Barrier()
    for start, wrong in {
        "long.npy": "init has 5001 rows; expected 5000",
        "wide.npy": "init has shape (5000, 3); expected (5000, 2)",
    }.items():
        codes, said = embed("data.npy", "--init", start)
        assert codes == [1] * SIZE, said
        assert said.count(f"acctsne: error: --init: {wrong}") == 1, said
    codes, said = embed("infinite.npy")
    assert codes == [1] * SIZE, said
    assert said.count("acctsne: error: rank 1: Input X contains infinity") == 1, said
    codes, said = embed("data.npy", "--labels", "y")
    assert codes == [2] * SIZE, said
    assert said.count("error: --labels cannot be used by several processes") == 1, said
    # A launcher of another MPI: nobody speaks for processes that it does not know of.
    os.environ["OMPI_COMM_WORLD_SIZE"] = str(SIZE + 1)
    codes, said = embed("data.npy")
    os.environ["OMPI_COMM_WORLD_SIZE"] = str(SIZE)
    assert codes == [1] * SIZE, said
    assert said.count("3 processes, and mpi4py knows of 2: they belong to different") == SIZE, said
    assert "srun --mpi=pmix" in said
    # What is wrong for one process alone, it does not keep to itself.
    codes, said = embed("data.npy", *(["--init", "absent.npy"] if RANK == 1 else []))
    assert all(codes), said
    assert said.count("error: rank 1: argument --init: must be") == 1, said
    assert not Path("map.npy").exists()


def interrupted_before_the_fit() -> None:
    """Ctrl-C while one of them starts MPI, or checks what it was given."""
    if RANK == 0:
        np.save("data.npy", np.zeros((20, 3)))
    COMM.Barrier()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for step in ("_started", "_check_options"):
        then = getattr(together, step)

        def interrupted(options: Any, then: Callable[[Any], Any] = then) -> Any:
            if RANK == 1:
                os.kill(os.getpid(), signal.SIGINT)
            return then(options)

        with changed(together, step, interrupted):
            codes, said = embed("data.npy")
        assert codes == [1] * SIZE, said
        assert said.count("acctsne: interrupted") == 1, said


def run(name: str) -> None:
    """Run a program in a folder of its own. If it fails, all processes end."""
    folder = Path(name)
    if RANK == 0:
        folder.mkdir()
    meet()
    try:
        os.chdir(folder)
        with warnings.catch_warnings(action="error"):
            globals()[name]()
        os.chdir("..")
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        COMM.Abort(3)
    meet()
    if RANK == 0:
        print(f"all are content with {name}", flush=True)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        run(name)
