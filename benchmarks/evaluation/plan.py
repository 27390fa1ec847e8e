"""What is to be measured: data, contestants, sizes, limits; whole, or small for a quick look."""

from dataclasses import dataclass, field, replace

from common import usable_cores
from evaluation.records import Entry, Key, Store

OURS = Entry("acctsne", "float32")
OURS_DOUBLE = Entry("acctsne-float64", "float64")
OURS_TREE = Entry("acctsne-bh", "float32")
# The paper's method, precision and number of iterations.
OURS_AS_PAPER = Entry("acctsne-paper", "float64")
SKLEARN = Entry("sklearn", "float32")
SKLEARNEX = Entry("sklearnex", "float32")
SKLEARNEX_DOUBLE = Entry("sklearnex", "float64")
OPENTSNE = Entry("opentsne", "float64")
MULTICORE = Entry("multicoretsne", "float64")
FITSNE = Entry("fitsne", "float64")

FIELD = (
    OURS,
    OURS_DOUBLE,
    OURS_TREE,
    SKLEARNEX,
    SKLEARNEX_DOUBLE,
    OPENTSNE,
    SKLEARN,
    MULTICORE,
    FITSNE,
)
# Packages that search all pairs for neighbours, so that this part grows with the square of N.
ALL_PAIRS = ("sklearn", "sklearnex")


@dataclass(frozen=True)
class Data:
    """A data set, of which the first so many rows or all are taken."""

    name: str
    title: str
    rows: int
    columns: int
    source: str  # as datasets.load takes it

    def part(self, rows: int) -> str:
        """Say which rows: those of synthetic data are in random order, others are drawn."""
        if rows == self.rows:
            return f"{rows:,} x {self.columns}"
        chosen = "first" if self.name == "synthetic" else "random"
        return f"{chosen} {rows:,} of {self.rows:,} rows"


CELLS = 1_291_337  # of the paper's largest data set
DIGITS = Data("digits", "digits", 1797, 64, "digits")
MNIST = Data("mnist", "MNIST", 70_000, 784, "mnist")
FASHION = Data("fashion_mnist", "Fashion-MNIST", 70_000, 784, "fashion_mnist")
CIFAR = Data("cifar10", "CIFAR-10", 60_000, 3072, "cifar10")
SVHN = Data("svhn", "SVHN", 99_289, 3072, "svhn")
# Fewer points are the first of more: records of one size serve every table that has it.
SYNTHETIC = Data("synthetic", "synthetic cells", CELLS, 20, "synthetic:10000000x20")


@dataclass(frozen=True)
class Plan:
    datasets: tuple[Data, ...] = (DIGITS, MNIST, FASHION, CIFAR, SYNTHETIC, SVHN)
    entries: tuple[Entry, ...] = FIELD
    threads: int = field(default_factory=lambda: len(usable_cores()))
    iterations: int = 1000
    perplexity: float = 30.0
    seed: int = 0
    repeats: tuple[tuple[float, int], ...] = ((10, 5), (60, 3))  # below so many seconds, so often
    fewest_rounds: int = 3  # of fits that are made in turn, however long they take
    most_seconds: float = 1800.0  # of a fit; a package that needs more gets a part of the data
    part_seconds: float = 300.0  # of a fit of that part
    probe_rows: int = 10_000
    rungs: tuple[int, ...] = (10_000, 20_000, 50_000, 100_000, 200_000, 500_000)
    step_rows: int = 1_000_000
    growth: tuple[int, ...] = (1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 10_000_000)
    growth_seconds: float = 60.0  # of fits of others
    curve: tuple[Data, int] = (FASHION, 20_000)
    curve_of_ours: tuple[tuple[Data, int], ...] = ((DIGITS, 1797),)  # beside whole fits of others
    curve_iterations: tuple[int, ...] = (250, 400)
    small: tuple[tuple[Data, int], ...] = ((FASHION, 5000), (FASHION, 20_000))
    mapped: tuple[Data, ...] = (DIGITS, MNIST, FASHION, CIFAR, SYNTHETIC)
    predicted: tuple[tuple[Data, int], ...] = ((MNIST, 70_000), (SYNTHETIC, 1_000_000))

    def fit(self, data: Data, entry: Entry, rows: int | None = None, threads: int = 0) -> Key:
        rows = data.rows if rows is None else rows
        threads = threads or self.threads
        return Key("fit", data.name, rows, *entry, threads, self.iterations)

    def repeats_of(self, seconds: float | None) -> int:
        if seconds is None:
            return 1
        return next((times for limit, times in self.repeats if seconds < limit), 1)

    def as_measured(self, store: Store) -> "Plan":
        """Return the plan for the machine of the records, whichever this one is."""
        return replace(self, threads=max((record.key.threads for record in store), default=2))

    def data(self, name: str) -> Data:
        known = (*self.datasets, DIGITS, MNIST, FASHION, CIFAR, SVHN)
        return next((data for data in known if data.name == name), SYNTHETIC)


FULL = Plan()
# That all of it runs, in a minute.
_FEW_DIGITS = Data("digits", "digits", 300, 64, "digits")
_FEW_CELLS = Data("synthetic", "synthetic cells", 500, 20, "synthetic:10000000x20")
QUICK = Plan(
    datasets=(_FEW_DIGITS, _FEW_CELLS),
    entries=(OURS, OURS_DOUBLE, SKLEARN, MULTICORE, FITSNE),
    iterations=260,
    repeats=(),
    fewest_rounds=2,
    probe_rows=200,
    rungs=(200, 300),
    step_rows=400,
    growth=(200, 400),
    curve=(_FEW_DIGITS, 300),
    curve_of_ours=((_FEW_CELLS, 500),),
    curve_iterations=(251,),
    small=((_FEW_DIGITS, 200),),
    mapped=(_FEW_DIGITS,),
    predicted=((_FEW_DIGITS, 300),),
)
