"""t-SNE by several processes, on one machine or many: the same map as from one.

`TSNE` has the parameters of `acctsne.TSNE` and a communicator of mpi4py. It runs under `mpiexec`,
where each process gives its rows of the data.
"""

from acctsne.distributed.estimator import TSNE
from acctsne.distributed.uncaught import end_all_after_an_uncaught_error

__all__ = ["TSNE"]

end_all_after_an_uncaught_error()
