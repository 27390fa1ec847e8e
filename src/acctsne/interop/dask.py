"""t-SNE of Dask arrays, by workers that are processes of MPI.

Tasks are too slow to carry a gradient descent: every iteration exchanges data. So Dask holds the
data and starts one task on every worker, and these work together over MPI.
"""

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne import _core
from acctsne.distributed.estimator import TSNE
from acctsne.runtime.optional import require

NO_MPI = (
    "the workers of this cluster are not processes of one MPI job: {found}. Start scheduler, "
    "program and workers together: `mpiexec -n 6 python program.py`, where the program begins with "
    "`from dask_mpi import initialize; initialize()` and then makes its `distributed.Client()`; "
    "two of the six are scheduler and program, four are workers. Workers must not have a nanny"
)


def fit_transform(array: Any, *, client: Any = None, **parameters: Any) -> Any:
    """Embed the rows of a Dask array, by all workers together.

    The workers must be processes of one MPI job, as `dask-mpi` starts them. Rows go from the
    workers that hold them to those that work on them, not through the program that calls this. The
    map has the bits that :class:`acctsne.TSNE` gives for the same rows in one process. Needs the
    extra `acctsne[dask]`.

    Parameters
    ----------
    array : dask.array.Array of shape (n_samples, n_features)
        The data. The sizes of its chunks must be known.

    client : distributed.Client, default=None
        The cluster; None for the current one.

    **parameters
        The parameters of :class:`acctsne.distributed.TSNE`, without `comm`. An array as `init` has
        all rows. `callback` is called on the first worker, with all positions.

    Returns
    -------
    embedding : dask.array.Array of shape (n_samples, n_components)
        The map, on the workers, in the chunks of the array's rows.
    """
    dask_array = require("dask.array", "dask")
    distributed = require("distributed", "dask")
    tsne = TSNE(**parameters)  # knows the map's shape and type, and what is no parameter
    _check(array, parameters, tsne.n_components, dask_array)
    client = distributed.get_client() if client is None else client
    ranks, addresses = _workers(client)
    n_samples, layout = array.shape[0], parameters.get("init")
    # The rows that each owns in the fit, so that they are sent but once.
    shares = [slice(*_core.rows_of(i, len(addresses), n_samples)) for i in range(len(addresses))]
    own = [
        client.compute(array[share], workers=[address], allow_other_workers=False)
        for share, address in zip(shares, addresses, strict=True)
    ]
    # Before any worker begins: it would wait forever for one whose rows cannot be computed.
    _finish(own, distributed)
    shapes = [
        client.submit(np.shape, rows, workers=[address], allow_other_workers=False)
        for address, rows in zip(addresses, own, strict=True)
    ]
    _check_computed(client.gather(shapes), shares, array.shape[1])
    results = []
    for share, address, rows in zip(shares, addresses, own, strict=True):
        start = {"init": layout[share]} if isinstance(layout, np.ndarray) else {}
        results.append(
            client.submit(
                _embed_own,
                rows,
                ranks,
                {**parameters, **start},
                workers=[address],
                allow_other_workers=False,
                pure=False,
                retries=0,
            )
        )
    _finish(results, distributed)
    parts = []
    for share, result in zip(shares, results, strict=True):
        shape = (share.stop - share.start, tsne.n_components)
        parts.append(dask_array.from_delayed(result, shape, np.dtype(tsne.dtype)))
    return dask_array.concatenate(parts).rechunk((array.chunks[0], (tsne.n_components,)))


def _finish(futures: list[Any], distributed: Any) -> None:
    """Wait for what the workers do, and raise what went wrong on one of them."""
    distributed.wait(futures)
    for future in futures:
        if future.status != "finished":
            future.result()  # raises what the worker did


def _check_computed(shapes: list[tuple[int, ...]], shares: list[slice], n_features: int) -> None:
    """Refuse rows that are not those which the array has announced: places would be others'."""
    for share, shape in zip(shares, shapes, strict=True):
        expected = (share.stop - share.start, n_features)
        if shape != expected:
            raise ValueError(
                f"rows {share.start} to {share.stop} of the array were computed to shape {shape} "
                f"in place of {expected}: its chunks are not of the sizes that it states; give "
                "from_delayed, map_blocks or whatever made them the true ones"
            )


def _check(array: Any, parameters: dict[str, Any], n_components: int, dask_array: Any) -> None:
    if not isinstance(array, dask_array.Array):
        raise TypeError(
            f"a dask.array.Array is needed; got {type(array).__name__}. For rows in memory use "
            "acctsne.TSNE, for those of a data frame its to_dask_array(lengths=True)"
        )
    if array.ndim != 2:
        raise ValueError(f"an array of shape {array.shape}; expected rows of features")
    if np.isnan(array.shape).any():
        raise ValueError(
            "the sizes of the array's chunks are not known; call its compute_chunk_sizes() first"
        )
    if "comm" in parameters:
        raise TypeError("comm cannot be chosen: the processes are the client's workers")
    layout = parameters.get("init")
    expected = (array.shape[0], n_components)
    if isinstance(layout, np.ndarray) and layout.shape != expected:
        raise ValueError(
            f"init has shape {layout.shape}; expected {expected}, a row for each of the array"
        )


def _workers(client: Any) -> tuple[list[int], list[str]]:
    """Return the ranks of the workers, ascending, and the addresses that belong to them."""
    found = client.run(_rank)
    if not found:
        raise RuntimeError("the cluster has no workers; client.wait_for_workers() waits for some")
    strangers = [address for address, place in found.items() if place is None]
    if strangers:
        raise RuntimeError(NO_MPI.format(found=f"{strangers[0]} has not begun MPI"))
    jobs = {job for _, job in found.values()}
    ranks = sorted((rank, address) for address, (rank, _) in found.items())
    if len(jobs) > 1 or len({rank for rank, _ in ranks}) < len(ranks):
        raise RuntimeError(NO_MPI.format(found="two of them have the same rank"))
    return [rank for rank, _ in ranks], [address for _, address in ranks]


def _rank() -> tuple[int, int] | None:
    """Tell, on a worker, its rank and the size of its MPI job; None if it is in none."""
    mpi: Any = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized():
        return None
    return mpi.COMM_WORLD.Get_rank(), mpi.COMM_WORLD.Get_size()


def _embed_own(
    own: npt.NDArray[Any], ranks: list[int], parameters: dict[str, Any]
) -> npt.NDArray[Any]:
    """Embed rows of a worker, together with the tasks of the others."""
    mpi = require("mpi4py.MPI", "mpi")
    workers = mpi.COMM_WORLD.Get_group().Incl(ranks)
    comm = mpi.COMM_WORLD.Create_group(workers)
    try:
        return TSNE(comm=comm, **parameters).fit(own).embedding_
    finally:
        comm.Free()
        workers.Free()
