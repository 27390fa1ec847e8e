"""Data and layouts that several test files share."""

import signal
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits

from acctsne import TSNE, Affinities, quality

Array = npt.NDArray[Any]

# A shell that starts a command in the background has it ignore Ctrl-C, and whatever that starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What tests of programs outside of Python say when they are skipped, and what to do about it.
OUTSIDE = {
    "Chromium": "pages in a browser: on Debian, apt install chromium chromium-driver. "
    "ACCTSNE_BROWSER=required makes these tests fail without.",
    "Rscript": "use from R: on Debian, apt install r-base-core. "
    "ACCTSNE_R=required makes these tests fail without.",
}


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say loudly what was not tested, where one line among many would be overlooked."""
    skipped = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    for program, advice in OUTSIDE.items():
        count = sum(program in reason for reason in skipped)
        if count:
            what, _, how = advice.partition(": ")
            terminalreporter.section(f"NOT TESTED: {what}", red=True, bold=True)
            terminalreporter.line(f"{count} tests need {program}: {how}")


def _frozen(array: Array) -> Array:
    # Session-wide arrays: a test that writes to one would change what the next one sees.
    array.flags.writeable = False
    return array


@pytest.fixture(scope="session")
def digits() -> tuple[Array, Array]:
    """All 1797 handwritten digits, 64 features, with their labels."""
    X, y = load_digits(return_X_y=True)
    return _frozen(X), _frozen(y)


@pytest.fixture(scope="session")
def some_digits(digits: tuple[Array, Array]) -> tuple[Array, Array]:
    """The first 400 of them, for tests that need real data but not much of it."""
    return digits[0][:400], digits[1][:400]


@pytest.fixture(scope="session", name="X")
def few_digits(digits: tuple[Array, Array]) -> Array:
    """The first 200 of them, of which P and P64 are."""
    return digits[0][:200]


@pytest.fixture(scope="session", name="P")
def affinities_of_few_digits(X: Array) -> Affinities:
    """Affinities of X at perplexity 10."""
    return Affinities.from_data(X, perplexity=10)


@pytest.fixture(scope="session", name="P64")
def affinities_in_double(X: Array) -> Affinities:
    """The same in double precision."""
    return Affinities.from_data(X, perplexity=10, dtype=np.float64)


@pytest.fixture(scope="session", name="some_digits_P")
def affinities_of_some_digits(some_digits: tuple[Array, Array]) -> csr_matrix:
    """Joint probabilities of `some_digits` at perplexity 30, in double precision."""
    return quality.affinities(some_digits[0], perplexity=30.0)


@pytest.fixture(scope="session")
def layouts(digits: tuple[Array, Array]) -> dict[str, Array]:
    """2-D layouts on which the tree has different work to do, about 2000 points each."""
    rng = np.random.default_rng(20240917)
    centers = rng.uniform(-60, 60, size=(25, 2))
    filling = rng.uniform(-22, 22, size=(2000, 2))
    filling[:400, 0] = np.where(rng.random(400) < 0.5, -22, 22)
    filling[:4] = [[-22, -22], [22, -22], [-22, 22], [22, 22]]
    lattice = np.stack(np.meshgrid(np.arange(45.0), np.arange(45.0)), axis=-1).reshape(-1, 2)
    found = {
        # Nothing special anywhere.
        "uniform": rng.uniform(-40, 40, size=(2000, 2)),
        # Cells of very different occupancy, long empty stretches.
        "clustered": centers[rng.integers(25, size=2000)] + 0.5 * rng.normal(size=(2000, 2)),
        # Reaches every corner and two faces of the root box, the upper ones included.
        "box_filling": filling,
        # Fills its box too, and points lie on the borders of cells; inside, forces cancel.
        "lattice": lattice - 22.0,
        # What the optimiser really meets.
        "digits": TSNE(max_iter=500, random_state=0, dtype=np.float64).fit_transform(digits[0]),
    }
    return {name: _frozen(layout) for name, layout in found.items()}
