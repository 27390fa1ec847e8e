"""`acctsne demo`: embed the handwritten digits that come with scikit-learn, show what was done."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy.typing as npt
from sklearn.datasets import load_digits

from acctsne import quality
from acctsne.estimator import TSNE
from acctsne.files import formats as io
from acctsne.pictures import html, plot
from acctsne.runtime.build import build_info
from acctsne.runtime.optional import require
from acctsne.runtime.threads import effective_threads

STEPS = {
    "knn": "K nearest neighbours",
    "bsp": "Binary search perplexity",
    "tree_building": "Quadtree building",
    "summarization": "Summarisation",
    "attractive": "Attractive forces",
    "repulsive": "Repulsive forces",
}

# What extras draw, and the package that each needs for it.
EXTRAS = {"plot": ("a picture", "matplotlib"), "html": ("a page for the browser", "plotly")}


def describe(command: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    command.add_argument("--output", type=Path, default=Path("demo"), help="folder for the results")
    command.add_argument("--threads", type=int, default=None, help="threads (default: all cores)")


def run(options: argparse.Namespace) -> None:
    """Embed them, print the table of steps, write the map, and what pictures of it can be drawn."""
    if options.output.exists() and not options.output.is_dir():
        raise io.DataError(f"--output: {options.output} is a file; name a folder for the results")
    options.output.mkdir(parents=True, exist_ok=True)
    X, y = load_digits(return_X_y=True)
    tsne = TSNE(random_state=0, n_jobs=options.threads)
    embedding = tsne.fit_transform(X)
    report(X, y, tsne, options.threads)

    written = [options.output / "digits.npy"]
    io.write(written[0], embedding)
    lacking = list(missing_extras())
    title = "Handwritten digits, embedded by acctsne"
    if "plot" not in lacking:
        written.append(options.output / "digits.png")
        plot.save(embedding, written[-1], y, title=title)
    if "html" not in lacking:
        written.append(options.output / "digits.html")
        html.write(embedding, written[-1], labels=y, title=title)
    print(f"\nwrote {', '.join(map(str, written))}")
    if lacking:
        drawn = " and ".join(EXTRAS[extra][0] for extra in lacking)
        print(f"pip install 'acctsne[{','.join(lacking)}]' adds {drawn}")


def missing_extras() -> Iterator[str]:
    """Give those of the extras whose package is not installed."""
    for extra, (_, module) in EXTRAS.items():
        try:
            require(module, extra)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            yield extra


def report(X: npt.NDArray[Any], y: npt.NDArray[Any], tsne: TSNE, n_jobs: int | None) -> None:
    """Print the table of steps and the referee's figures."""
    timings = tsne.timings_
    print(f"handwritten digits: {X.shape[0]} x {X.shape[1]}, {tsne.n_iter_ + 1} iterations\n")
    print(f"{'step':<28}{'seconds':>9}{'share':>8}")
    named = 0.0
    for key, name in STEPS.items():
        named += timings[key]
        print(f"{name:<28}{timings[key]:>9.3f}{timings[key] / timings['total']:>8.1%}")
    rest = timings["total"] - named
    print(f"{'everything else':<28}{rest:>9.3f}{rest / timings['total']:>8.1%}")
    print(f"{'total':<28}{timings['total']:>9.3f}{1:>8.1%}\n")

    embedding = tsne.embedding_
    force_error = quality.force_error(embedding, tsne.method, n_samples=len(embedding))
    figures = {
        "KL divergence, reported": f"{tsne.kl_divergence_:.4f}",
        "KL divergence, exact": f"{quality.exact_kl(X, embedding):.4f}",
        "force error": f"{force_error:.2%}",
        "10-NN label agreement": f"{quality.label_agreement(embedding, y):.2%}",
        "threads": str(effective_threads(n_jobs)),
        "SIMD level": build_info()["simd_level"],
    }
    for name, figure in figures.items():
        print(f"{name:<28}{figure:>9}")
