"""The native core (native/bind)."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, overload

import numpy
import numpy.typing
from numpy.typing import NDArray

import acctsne.optimize.state
import acctsne.runtime.communicator

def methods() -> dict[str, int]: ...

class OutputKernel:
    def __init__(self, exponent: float, scale: float) -> None: ...
    @property
    def exponent(self) -> float: ...
    @property
    def scale(self) -> float: ...
    def __repr__(self) -> str: ...

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
        report_every: Sequence[int] = [],
        left: int = 0,
    ) -> None: ...

class DenseData:
    def __init__(
        self,
        X: numpy.typing.NDArray[numpy.float64 | numpy.float32 | numpy.float16 | numpy.uint8],
        coordinates: Annotated[
            NDArray[numpy.float32],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
        squared_norms: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        scale: float,
    ) -> None: ...

class SparseData:
    def __init__(
        self,
        offsets: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        columns: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        values: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ]
        | Annotated[
            NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        n_features: int,
    ) -> None: ...

APPROXIMATE_AXES: int = 128

FEW_FEATURES: int = 256

def all_finite(
    X: numpy.typing.NDArray[numpy.float64 | numpy.float32 | numpy.float16 | numpy.uint8],
    threads: int,
) -> bool: ...
def find_frame(
    X: numpy.typing.NDArray[numpy.float64 | numpy.float32 | numpy.float16 | numpy.uint8],
    n_neighbors: int,
    n_axes: int | None,
    threads: int,
) -> tuple[float, NDArray[numpy.float64], NDArray[numpy.float32] | None]: ...
def sampled_rows(n_samples: int, n_axes: int | None) -> tuple[int, int]: ...
def frame_of_sample(
    sample: numpy.typing.NDArray[numpy.float64 | numpy.float32 | numpy.float16 | numpy.uint8],
    n_samples: int,
    largest: float,
    n_neighbors: int,
    n_axes: int | None,
    threads: int,
) -> tuple[float, NDArray[numpy.float64], NDArray[numpy.float32] | None]: ...
def project(
    X: numpy.typing.NDArray[numpy.float64 | numpy.float32 | numpy.float16 | numpy.uint8],
    scale: float,
    centre: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    axes: Annotated[
        NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ]
    | None,
    threads: int,
) -> tuple[NDArray[numpy.float32], NDArray[numpy.float64]]: ...
def principal_components(
    X: numpy.typing.NDArray[numpy.float64 | numpy.float32 | numpy.float16 | numpy.uint8],
    n_components: int,
    threads: int,
    axes: Annotated[
        NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ]
    | None = None,
    n_samples: int | None = None,
    processes: acctsne.runtime.communicator.Communicator | None = None,
) -> NDArray[numpy.float64]: ...
def sparse_principal_components(
    X: SparseData, n_components: int, threads: int
) -> NDArray[numpy.float64]: ...
def nearest_neighbors(
    rows: DenseData,
    n_neighbors: int,
    in_double: bool,
    threads: int,
    progress: Callable[[int], object] | None = None,
    processes: acctsne.runtime.communicator.Communicator | None = None,
) -> tuple[NDArray[numpy.int32], NDArray[numpy.float32] | NDArray[numpy.float64]]: ...
def approximate_neighbors(
    rows: DenseData,
    n_neighbors: int,
    in_double: bool,
    sample: Annotated[
        NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    threads: int,
    progress: Callable[[int], object] | None = None,
    processes: acctsne.runtime.communicator.Communicator | None = None,
) -> tuple[NDArray[numpy.int32], NDArray[numpy.float32] | NDArray[numpy.float64], float]: ...
def query_neighbors(
    rows: DenseData,
    queries: DenseData,
    n_neighbors: int,
    in_double: bool,
    threads: int,
    progress: Callable[[int], object] | None = None,
) -> tuple[NDArray[numpy.int32], NDArray[numpy.float32] | NDArray[numpy.float64]]: ...
def sparse_neighbors(
    rows: SparseData,
    metric: str,
    n_neighbors: int,
    threads: int,
    progress: Callable[[int], object] | None = None,
) -> tuple[NDArray[numpy.int32], NDArray[numpy.float64]]: ...
def sparse_query_neighbors(
    rows: SparseData,
    queries: SparseData,
    metric: str,
    n_neighbors: int,
    threads: int,
    progress: Callable[[int], object] | None = None,
) -> tuple[NDArray[numpy.int32], NDArray[numpy.float64]]: ...
def search_perplexity(
    squared_distances: Annotated[
        NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ]
    | Annotated[
        NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    perplexity: float,
    threads: int,
) -> tuple[
    NDArray[numpy.float32] | NDArray[numpy.float64],
    NDArray[numpy.float64],
    NDArray[numpy.float64],
    int,
]: ...
def mix_perplexities(
    squared_distances: Annotated[
        NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ]
    | Annotated[
        NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    perplexities: Sequence[float],
    by_density: bool,
    threads: int,
) -> tuple[NDArray[numpy.float32] | NDArray[numpy.float64], NDArray[numpy.float64], int]: ...
def fixed_bandwidth(
    squared_distances: Annotated[
        NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ]
    | Annotated[
        NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    beta: float,
    threads: int,
) -> tuple[NDArray[numpy.float32] | NDArray[numpy.float64], NDArray[numpy.float64]]: ...
def sort_rows(
    indices: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu")],
    conditional: Annotated[
        NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")
    ]
    | Annotated[NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu")],
    points: int,
    threads: int,
) -> None: ...
def symmetrize(
    indices: Annotated[
        NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    conditional: Annotated[
        NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ]
    | Annotated[
        NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    equal: bool,
    threads: int,
) -> tuple[
    NDArray[numpy.int64], NDArray[numpy.int32], NDArray[numpy.float32] | NDArray[numpy.float64]
]: ...
def some_share_a_code(
    Y: Annotated[
        NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ]
    | Annotated[
        NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    threads: int,
) -> bool: ...
def build_tree(
    Y: Annotated[
        NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ]
    | Annotated[
        NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    threads: int,
) -> dict[str, Any]: ...

class Optimizer32:
    @overload
    def __init__(
        self,
        offsets: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        columns: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        values: Annotated[
            NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        initial: Annotated[
            NDArray[numpy.float32],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
        options: RepulsionOptions,
        threads: int = 1,
    ) -> None: ...
    @overload
    def __init__(
        self,
        indices: Annotated[
            NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        conditional: Annotated[
            NDArray[numpy.float32],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
        equal: bool,
        initial: Annotated[
            NDArray[numpy.float32],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
        options: RepulsionOptions,
        threads: int = 1,
    ) -> None: ...
    @overload
    def __init__(
        self,
        indices: Annotated[
            NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        conditional: Annotated[
            NDArray[numpy.float32],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
        equal: bool,
        initial: Annotated[
            NDArray[numpy.float32],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
        options: RepulsionOptions,
        processes: acctsne.runtime.communicator.Communicator,
        threads: int,
    ) -> None: ...
    def run(
        self,
        phase: Phase,
        callback: Callable[[int, float, float], bool] | None,
        progress: Callable[[int], object] | None,
        threads: int,
    ) -> bool: ...
    def kl_divergence(self, threads: int) -> float: ...
    @property
    def kl_of_one_place(self) -> float: ...
    @property
    def mean_drop(self) -> float: ...
    def disorder(self, threads: int) -> float: ...
    def forces(
        self, threads: int
    ) -> tuple[NDArray[numpy.float32], NDArray[numpy.float32], float]: ...
    def reset_momentum(self) -> None: ...
    def widen(self, spread: float, threads: int) -> None: ...
    def hold(
        self,
        fixed: Annotated[
            NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)
        ]
        | None,
    ) -> None: ...
    def tether(
        self,
        targets: Annotated[
            NDArray[numpy.float32],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
        weights: Annotated[
            NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None: ...
    def state(self) -> acctsne.optimize.state.OptimizerState: ...
    def restore(self, state: acctsne.optimize.state.OptimizerState) -> None: ...
    @property
    def points(self) -> NDArray[numpy.float32]: ...
    @property
    def iterations_by_method(self) -> dict[str, int]: ...
    @property
    def iterations(self) -> int: ...
    @property
    def seconds(self) -> dict[str, float]: ...
    @property
    def bytes_sent(self) -> dict[str, int]: ...
    @property
    def rows(self) -> int: ...
    @property
    def restraint(self) -> dict[str, float]: ...
    def forget_restraint(self) -> None: ...

class Optimizer64:
    @overload
    def __init__(
        self,
        offsets: Annotated[
            NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        columns: Annotated[
            NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        values: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
        initial: Annotated[
            NDArray[numpy.float64],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
        options: RepulsionOptions,
        threads: int = 1,
    ) -> None: ...
    @overload
    def __init__(
        self,
        indices: Annotated[
            NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        conditional: Annotated[
            NDArray[numpy.float64],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
        equal: bool,
        initial: Annotated[
            NDArray[numpy.float64],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
        options: RepulsionOptions,
        threads: int = 1,
    ) -> None: ...
    @overload
    def __init__(
        self,
        indices: Annotated[
            NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        conditional: Annotated[
            NDArray[numpy.float64],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
        equal: bool,
        initial: Annotated[
            NDArray[numpy.float64],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
        options: RepulsionOptions,
        processes: acctsne.runtime.communicator.Communicator,
        threads: int,
    ) -> None: ...
    def run(
        self,
        phase: Phase,
        callback: Callable[[int, float, float], bool] | None,
        progress: Callable[[int], object] | None,
        threads: int,
    ) -> bool: ...
    def kl_divergence(self, threads: int) -> float: ...
    @property
    def kl_of_one_place(self) -> float: ...
    @property
    def mean_drop(self) -> float: ...
    def disorder(self, threads: int) -> float: ...
    def forces(
        self, threads: int
    ) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], float]: ...
    def reset_momentum(self) -> None: ...
    def widen(self, spread: float, threads: int) -> None: ...
    def hold(
        self,
        fixed: Annotated[
            NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)
        ]
        | None,
    ) -> None: ...
    def tether(
        self,
        targets: Annotated[
            NDArray[numpy.float64],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
        weights: Annotated[
            NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
        ],
    ) -> None: ...
    def state(self) -> acctsne.optimize.state.OptimizerState: ...
    def restore(self, state: acctsne.optimize.state.OptimizerState) -> None: ...
    @property
    def points(self) -> NDArray[numpy.float64]: ...
    @property
    def iterations_by_method(self) -> dict[str, int]: ...
    @property
    def iterations(self) -> int: ...
    @property
    def seconds(self) -> dict[str, float]: ...
    @property
    def bytes_sent(self) -> dict[str, int]: ...
    @property
    def rows(self) -> int: ...
    @property
    def restraint(self) -> dict[str, float]: ...
    def forget_restraint(self) -> None: ...

class Map32:
    def __init__(
        self,
        positions: Annotated[
            NDArray[numpy.float32],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
        options: RepulsionOptions,
    ) -> None: ...
    def place(
        self,
        neighbors: Annotated[
            NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        weights: Annotated[
            NDArray[numpy.float32],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
        initial: Annotated[
            NDArray[numpy.float32],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
        phase: Phase,
        threads: int,
        progress: Callable[[int], object] | None = None,
    ) -> NDArray[numpy.float32]: ...

class Map64:
    def __init__(
        self,
        positions: Annotated[
            NDArray[numpy.float64],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
        options: RepulsionOptions,
    ) -> None: ...
    def place(
        self,
        neighbors: Annotated[
            NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        weights: Annotated[
            NDArray[numpy.float64],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
        initial: Annotated[
            NDArray[numpy.float64],
            dict(shape=(None, None), order="C", device="cpu", writable=False),
        ],
        phase: Phase,
        threads: int,
        progress: Callable[[int], object] | None = None,
    ) -> NDArray[numpy.float64]: ...

def exact_repulsion(
    Y: Annotated[
        NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ]
    | Annotated[
        NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    rows: Annotated[
        NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    threads: int,
    output_kernel: OutputKernel,
) -> tuple[NDArray[numpy.float32] | NDArray[numpy.float64], NDArray[numpy.float64]]: ...
def repulsion(
    Y: Annotated[
        NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ]
    | Annotated[
        NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    options: RepulsionOptions,
    threads: int,
) -> tuple[NDArray[numpy.float32] | NDArray[numpy.float64], float]: ...
def rank_penalties(
    X: numpy.typing.NDArray[numpy.float64 | numpy.float32 | numpy.float16 | numpy.uint8],
    nearest: Annotated[
        NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    asked: Annotated[
        NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    sizes: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    references: Annotated[
        NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    threads: int,
    progress: Callable[[int], object] | None = None,
) -> tuple[
    NDArray[numpy.int32], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.int64]
]: ...
def exact_kl(
    offsets: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    columns: Annotated[
        NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    values: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    Y: Annotated[
        NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    output_kernel: OutputKernel,
    threads: int,
) -> float: ...
def kl_by_point(
    offsets: Annotated[
        NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    columns: Annotated[
        NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    values: Annotated[
        NDArray[numpy.float64], dict(shape=(None,), order="C", device="cpu", writable=False)
    ],
    Y: Annotated[
        NDArray[numpy.float64], dict(shape=(None, None), order="C", device="cpu", writable=False)
    ],
    output_kernel: OutputKernel,
    z: float,
    threads: int,
) -> NDArray[numpy.float64]: ...
def record_loops(body: Callable[[], object]) -> dict[str, Any]: ...
def team_costs(threads: int, asleep: bool, loops: int) -> dict[str, float]: ...
def line_transfer_seconds() -> float: ...
def build_info() -> dict[str, Any]: ...

BLOCK_ROWS: int = 4096

def rows_of(rank: int, processes: int, rows: int) -> tuple[int, int]: ...
def use_simd_level(name: str) -> None: ...
