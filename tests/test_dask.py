"""Dask arrays, with a real scheduler and workers."""

import sys
from pathlib import Path

import dask.array
import numpy as np
import pytest
from distributed import Client, LocalCluster

from acctsne.dask import fit_transform
from test_distributed import mpiexec

PROGRAM = Path(__file__).parent / "dask_program.py"


def test_two_workers_make_the_map_of_one_process(tmp_path: Path) -> None:
    ended = mpiexec(4, sys.executable, str(PROGRAM), cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "the program is content" in ended.stdout


def test_workers_that_are_no_processes_of_mpi() -> None:
    rows = dask.array.zeros((100, 3), chunks=50)
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
        pytest.raises(RuntimeError, match=r"has not begun MPI.*mpiexec -n 6 python"),
    ):
        fit_transform(rows, client=client)


def test_what_is_no_table_of_known_size() -> None:
    with pytest.raises(TypeError, match=r"a dask\.array\.Array is needed; got ndarray"):
        fit_transform(np.zeros((5, 2)))
    with pytest.raises(ValueError, match="shape"):
        fit_transform(dask.array.zeros(5))
    numbers = dask.array.zeros((10, 2), chunks=5)
    with pytest.raises(ValueError, match=r"compute_chunk_sizes\(\) first"):
        fit_transform(numbers[numbers[:, 0] > 0])
    with pytest.raises(ValueError, match=r"init has shape \(5, 2\); expected \(10, 2\)"):
        fit_transform(numbers, init=np.zeros((5, 2)))
    with pytest.raises(ValueError, match=r"init has shape \(10, 3\); expected \(10, 2\)"):
        fit_transform(numbers, init=np.zeros((10, 3)))
    with pytest.raises(TypeError, match="comm cannot be chosen"):
        fit_transform(numbers, comm=None)
