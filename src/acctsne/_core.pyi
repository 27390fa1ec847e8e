"""Types of the native module (native/bind)."""

from collections.abc import Callable
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from acctsne.optimize.state import OptimizerState
from acctsne.runtime.communicator import Communicator

Reals = npt.NDArray[np.float32] | npt.NDArray[np.float64]
# Of any strides.
Stored = Reals | npt.NDArray[np.float16] | npt.NDArray[np.uint8]
Progress = Callable[[int], object] | None

METHODS: dict[str, int]
APPROXIMATE_AXES: int
FEW_FEATURES: int

class OutputKernel:
    def __init__(self, exponent: float, scale: float) -> None: ...
    @property
    def exponent(self) -> float: ...
    @property
    def scale(self) -> float: ...

class RepulsionOptions:
    def __init__(
        self, method: str, angle: float, force_error: float, output_kernel: OutputKernel
    ) -> None: ...
    @property
    def output_kernel(self) -> OutputKernel: ...

class Phase:
    def __init__(
        self,
        iterations: int,
        done: int,
        exaggeration: tuple[float, float],
        learning_rate: tuple[float, float],
        rule: str,
        momentum: float | None,
        max_step: float,
        report_every: list[int] = ...,
        left: int = 0,
    ) -> None: ...

class DenseData:
    def __init__(
        self,
        X: Stored,
        coordinates: npt.NDArray[np.float32],
        squared_norms: npt.NDArray[np.float64],
        scale: float,
    ) -> None: ...

class SparseData:
    def __init__(
        self,
        offsets: npt.NDArray[np.int64],
        columns: npt.NDArray[np.int32],
        values: Reals,
        n_features: int,
    ) -> None: ...

def build_info() -> dict[str, Any]: ...
def rows_of(rank: int, processes: int, rows: int) -> tuple[int, int]: ...
def use_simd_level(name: str) -> None: ...
def record_loops(body: Callable[[], object]) -> dict[str, Any]: ...
def team_costs(threads: int, asleep: bool, loops: int) -> dict[str, float]: ...
def line_transfer_seconds() -> float: ...
def find_frame(
    X: Stored, n_neighbors: int, n_axes: int | None, threads: int
) -> tuple[float, npt.NDArray[np.float64], npt.NDArray[np.float32] | None]: ...
def sampled_rows(n_samples: int, n_axes: int | None) -> tuple[int, int]: ...
def frame_of_sample(
    sample: Stored,
    n_samples: int,
    largest: float,
    n_neighbors: int,
    n_axes: int | None,
    threads: int,
) -> tuple[float, npt.NDArray[np.float64], npt.NDArray[np.float32] | None]: ...
def project(
    X: Stored,
    scale: float,
    center: npt.NDArray[np.float64],
    axes: npt.NDArray[np.float32] | None,
    threads: int,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]: ...
def principal_components(
    X: Stored,
    n_components: int,
    threads: int,
    frame: npt.NDArray[np.float32] | None = None,
    n_samples: int | None = None,
    processes: Communicator | None = None,
) -> npt.NDArray[np.float64]: ...
def sparse_principal_components(
    X: SparseData, n_components: int, threads: int
) -> npt.NDArray[np.float64]: ...
def nearest_neighbors(
    rows: DenseData,
    n_neighbors: int,
    in_double: bool,
    threads: int,
    progress: Progress = None,
    processes: Communicator | None = None,
) -> tuple[npt.NDArray[np.int32], Reals]: ...
def approximate_neighbors(
    rows: DenseData,
    n_neighbors: int,
    in_double: bool,
    sample: npt.NDArray[np.int32],
    threads: int,
    progress: Progress = None,
    processes: Communicator | None = None,
) -> tuple[npt.NDArray[np.int32], Reals, float]: ...
def query_neighbors(
    rows: DenseData,
    queries: DenseData,
    n_neighbors: int,
    in_double: bool,
    threads: int,
    progress: Progress = None,
) -> tuple[npt.NDArray[np.int32], Reals]: ...
def sparse_neighbors(
    rows: SparseData, metric: str, n_neighbors: int, threads: int, progress: Progress = None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]: ...
def sparse_query_neighbors(
    rows: SparseData,
    queries: SparseData,
    metric: str,
    n_neighbors: int,
    threads: int,
    progress: Progress = None,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]: ...
def search_perplexity(
    squared_distances: Reals, perplexity: float, threads: int
) -> tuple[Reals, npt.NDArray[np.float64], npt.NDArray[np.float64], int]: ...
def mix_perplexities(
    squared_distances: Reals, perplexities: list[float], by_density: bool, threads: int
) -> tuple[Reals, npt.NDArray[np.float64], int]: ...
def fixed_bandwidth(
    squared_distances: Reals, beta: float, threads: int
) -> tuple[Reals, npt.NDArray[np.float64]]: ...
def sort_rows(
    indices: npt.NDArray[np.int32], conditional: Reals, points: int, threads: int
) -> None: ...
def symmetrize(
    indices: npt.NDArray[np.int32], conditional: Reals, equal: bool, threads: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], Reals]: ...
def exact_repulsion(
    Y: Reals, rows: npt.NDArray[np.int32], threads: int, output_kernel: OutputKernel
) -> tuple[Reals, npt.NDArray[np.float64]]: ...
def repulsion(Y: Reals, options: RepulsionOptions, threads: int) -> tuple[Reals, float]: ...
def exact_kl(
    offsets: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int32],
    values: npt.NDArray[np.float64],
    Y: npt.NDArray[np.float64],
    output_kernel: OutputKernel,
    threads: int,
) -> float: ...
def kl_by_point(
    offsets: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int32],
    values: npt.NDArray[np.float64],
    Y: npt.NDArray[np.float64],
    output_kernel: OutputKernel,
    z: float,
    threads: int,
) -> npt.NDArray[np.float64]: ...
def rank_penalties(
    X: Stored,
    nearest: npt.NDArray[np.int32],
    asked: npt.NDArray[np.int32],
    sizes: npt.NDArray[np.int64],
    references: npt.NDArray[np.int32],
    threads: int,
    progress: Progress = None,
) -> tuple[
    npt.NDArray[np.int32],
    npt.NDArray[np.float64],
    npt.NDArray[np.float64],
    npt.NDArray[np.int64],
]: ...
def some_share_a_code(Y: Reals, threads: int) -> bool: ...
def build_tree(Y: Reals, threads: int) -> dict[str, Any]: ...

class _Map:
    def __init__(self, positions: Reals, options: RepulsionOptions) -> None: ...
    def place(
        self,
        neighbors: npt.NDArray[np.int32],
        weights: Reals,
        initial: Reals,
        phase: Phase,
        threads: int,
        progress: Progress = None,
    ) -> Reals: ...

class Map32(_Map): ...
class Map64(_Map): ...

class _Optimizer:
    @overload
    def __init__(
        self,
        offsets: npt.NDArray[np.int64],
        columns: npt.NDArray[np.int32],
        values: Reals,
        initial: Reals,
        options: RepulsionOptions,
        threads: int = 1,
    ) -> None: ...
    @overload
    def __init__(
        self,
        indices: npt.NDArray[np.int32],
        conditional: Reals,
        equal: bool,
        initial: Reals,
        options: RepulsionOptions,
        threads: int = 1,
    ) -> None: ...
    @overload
    def __init__(
        self,
        indices: npt.NDArray[np.int32],
        conditional: Reals,
        equal: bool,
        initial: Reals,
        options: RepulsionOptions,
        processes: Communicator,
        threads: int,
    ) -> None: ...
    def run(
        self,
        phase: Phase,
        callback: Callable[[int, float, float], bool] | None,
        progress: Progress,
        threads: int,
    ) -> bool: ...
    def kl_divergence(self, threads: int) -> float: ...
    @property
    def kl_of_one_place(self) -> float: ...
    def disorder(self, threads: int) -> float: ...
    def forces(self, threads: int) -> tuple[Reals, Reals, float]: ...
    def reset_momentum(self) -> None: ...
    def hold(self, fixed: npt.NDArray[np.uint8] | None) -> None: ...
    def tether(self, targets: Reals, weights: Reals) -> None: ...
    def state(self) -> OptimizerState: ...
    def restore(self, state: OptimizerState) -> None: ...
    @property
    def points(self) -> Reals: ...
    @property
    def iterations_by_method(self) -> dict[str, int]: ...
    @property
    def iterations(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def seconds(self) -> dict[str, float]: ...
    @property
    def bytes_sent(self) -> dict[str, int]: ...
    @property
    def restraint(self) -> dict[str, float]: ...
    def forget_restraint(self) -> None: ...

class Optimizer32(_Optimizer): ...
class Optimizer64(_Optimizer): ...
