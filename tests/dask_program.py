"""What a test runs under mpiexec: a scheduler, this program and two workers of Dask."""

import sys
import traceback
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from dask_mpi import initialize
from mpi4py import MPI


def without_nan(block: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if np.isnan(block).any():
        raise ZeroDivisionError("while a chunk was computed")
    return block


def check() -> None:
    # Here, for the scheduler needs none of it, and the workers but a part.
    import dask.array
    import pytest
    from dask.delayed import delayed
    from distributed import Client

    import acctsne
    from acctsne.dask import fit_transform

    # Two blocks of rows, one for each worker, in chunks that are cut elsewhere and along columns.
    X = np.random.default_rng(0).normal(size=(5000, 6)).astype(np.float32)
    how: dict[str, Any] = {"perplexity": 5, "max_iter": 250}
    with Client() as client:
        client.wait_for_workers(2)
        rows = dask.array.from_array(X, chunks=((1200, 1800, 2000), (4, 2))).persist()
        found = fit_transform(rows, client=client, **how)
        assert found.chunks == ((1200, 1800, 2000), (2,))
        expected = acctsne.TSNE(**how).fit_transform(X)
        assert found.dtype == expected.dtype
        assert np.array_equal(found.compute(), expected)
        # An error of one worker is told, and the cluster is as good as before.
        X[4999, 1] = np.nan
        with pytest.raises(ValueError, match="rank 1: Input X contains NaN"):
            fit_transform(dask.array.from_array(X, chunks=1000), **how)
        # So is that of a chunk which only the second worker needs.
        rows = dask.array.from_array(X, chunks=((4096, 904), 6)).map_blocks(without_nan)
        with pytest.raises(ZeroDivisionError, match="while a chunk was computed"):
            fit_transform(rows, **how)
        # A chunk that is shorter than was announced would leave places to other rows.
        parts = [delayed(X[:3000]), delayed(X[3000:4999])]
        short = [
            dask.array.from_delayed(one, (n, 6), X.dtype)
            for one, n in zip(parts, (3000, 2000), strict=True)
        ]
        with pytest.raises(ValueError, match=r"rows 4096 to 5000 .* shape \(903, 6\) in place of"):
            fit_transform(dask.array.concatenate(short), **how)
        # Fewer rows than a worker's block, and a start of one's own.
        few, start = X[:300], np.random.default_rng(1).normal(size=(300, 2)).astype(np.float32)
        found = fit_transform(dask.array.from_array(few, chunks=100), init=start, **how)
        expected = acctsne.TSNE(init=start, **how).fit_transform(few)
        assert np.array_equal(found.compute(), expected)


if __name__ == "__main__":
    initialize(dashboard=False)
    warnings.simplefilter("error")
    try:
        check()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        MPI.COMM_WORLD.Abort(3)
    print("the program is content", flush=True)
