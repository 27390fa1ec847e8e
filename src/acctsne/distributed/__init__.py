"""t-SNE by several processes, on one machine or many: the same map as from one.

`TSNE` has the parameters of `acctsne.TSNE` and a communicator of mpi4py. It runs under `mpiexec`,
where each process gives its rows of the data.
"""

from acctsne.distributed.estimator import TSNE

__all__ = ["TSNE"]
