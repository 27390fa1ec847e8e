"""How often the descent has to be restrained: less momentum, shorter steps of single points.

This is what OFTEN_BRAKED and OFTEN_TURNED (src/acctsne/optimize/optimizer.py) are settled by: the
log is to be silent about ordinary data, of which small ones are restrained most, and to tell of
problems whose forces are too stiff for the steps.
"""

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import datasets
from sklearn.utils.validation import check_array

from acctsne import TSNE
from acctsne.problem import problem_of
from acctsne.runtime.timer import StageTimer
from acctsne.stages import start
from common import table

Array = npt.NDArray[Any]
Case = tuple[str, Array, dict[str, Any]]


def ordinary() -> list[Case]:
    """Data of 100 to 2000 points, from two starts, by three perplexities."""
    digits = datasets.load_digits().data
    data = {
        "iris": datasets.load_iris().data,
        "wine": datasets.load_wine().data,
        "breast cancer": datasets.load_breast_cancer().data,
        **{f"{n} digits": digits[:n] for n in (*range(100, 1000, 100), 1797)},
    }
    for n in (100, 200, 500, 1000, 2000):
        data[f"{n} in blobs"] = datasets.make_blobs(n, 10, centers=8, random_state=0)[0]
        data[f"{n} of a swiss roll"] = datasets.make_swiss_roll(n, random_state=0)[0]
        data[f"{n} of noise"] = np.random.default_rng(0).normal(size=(n, 20))
    ways: tuple[dict[str, Any], ...] = ({}, {"init": "random"}, {"perplexity": 5})
    return [(name, X, more) for name, X in data.items() for more in (*ways, {"perplexity": 50})]


def hostile() -> list[Case]:
    """Few points, other kernels, and what the documentation calls stiff."""
    digits = datasets.load_digits().data
    noise = np.random.default_rng(0).normal(size=(3, 3))
    cases: list[Case] = [(f"{n} points", noise[:n], {"perplexity": 1}) for n in (2, 3)]
    cases += [
        (f"{n} digits", digits[:n], {"dof": dof}) for dof in (2, 5, 20, 1000) for n in (100, 900)
    ]
    cases += [("900 digits", digits[:900], {"perplexity": p}) for p in (1.5, 2, 3)]
    late = {"late_exaggeration": 12.0, "max_iter": 500}
    return [*cases, ("900 digits", digits[:900], late)]


def restraint(X: Array, parameters: dict[str, Any]) -> dict[str, float]:
    """Fit as TSNE does, and return what restrained the descent."""
    every = TSNE(random_state=0, **parameters).get_params(deep=False)
    problem = problem_of(every, X, check=check_array, caller="TSNE")
    descent, _ = start(problem, StageTimer())
    descent.run(problem.schedule.phases(len(X), descent.start, flat=descent.flat), problem.stopping)
    return descent.optimizer.restraint


def shown(parts: Sequence[float]) -> list[str]:
    return [f"{parts[0]:.3f}", f"{parts[1]:.4f}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=2000, help="of the largest data")
    most = parser.parse_args().points
    columns = ["data", "parameters", "iterations", "less momentum", "shorter steps"]
    for title, cases in (("ordinary", ordinary()), ("hostile", hostile())):
        lines, parts = [], []
        for name, X, more in cases:
            if len(X) > most:
                continue
            seen = restraint(X, more)
            parts.append([seen[what] / seen["iterations"] for what in ("braked", "turned")])
            how = ", ".join(f"{parameter} {value}" for parameter, value in more.items())
            lines.append([name, how, f"{seen['iterations']:.0f}", *shown(parts[-1])])
        lines.append(["most of all", "", "", *shown(np.max(parts, axis=0))])
        print(f"{title}, in a mean iteration\n\n{table(columns, lines)}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
