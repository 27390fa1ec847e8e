"""Aligned maps: how far shared points are apart, against the KL divergence that it costs.

The data, sorted by label, is cut into slices that overlap by half, as batches or time points do
whose content changes. Maps made one by one are turned and mirrored onto each other afterwards; they
are what the others are compared with. umap-learn's AlignedUMAP gets the same slices if it is
installed.
"""

import sys
import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne import Affinities, AlignedTSNE, quality
from common import load_or_exit, make_parser, output_folder, positive, table

Array = npt.NDArray[Any]

STRENGTHS = (0.0, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 1.0)

# What AlignedUMAP's regularisation is set to besides its default of 0.01.
REGULARISATIONS = (0.001, 0.01, 0.1)

# A layout that was not made for the t-SNE objective is not blamed for its scale: these are tried.
SCALES = np.geomspace(0.1, 30, 40)


def main() -> int:
    parser = make_parser(__doc__.splitlines()[0], "digits")
    parser.add_argument("--slices", type=positive, default=4)
    parser.add_argument("--alone", action="store_true", help="without umap-learn")
    args = parser.parse_args()
    data = load_or_exit(args)
    if data.labels is None:
        sys.exit("error: slices are cut from data with labels")
    order = np.argsort(data.labels, kind="stable")
    half = len(order) // (args.slices + 1)
    ids = [order[at * half : (at + 2) * half] for at in range(args.slices)]
    Xs = [data.X[rows] for rows in ids]
    P = [Affinities.from_data(X, perplexity=args.perplexity, n_jobs=args.threads) for X in Xs]
    lines = []
    for strength in STRENGTHS:
        fit = AlignedTSNE(strength, perplexity=args.perplexity, n_jobs=args.threads)
        maps = fit.fit_transform(Xs, ids=ids)
        if strength == 0:
            maps = turned_afterwards(maps, ids)
        name = f"AlignedTSNE, strength {strength:g}" if strength else "maps one by one, turned"
        kls = [exact_kl(one, Y, args.threads) for one, Y in zip(P, maps, strict=True)]
        lines.append((name, displacement(maps, ids), np.mean(kls), kept(Xs, maps, args.threads)))
    for regularisation in () if args.alone else REGULARISATIONS:
        maps = aligned_umap(Xs, ids, regularisation, args.seed)
        kls = [lowest_kl(one, Y, args.threads) for one, Y in zip(P, maps, strict=True)]
        name = f"AlignedUMAP, regularisation {regularisation:g}"
        lines.append((name, displacement(maps, ids), np.mean(kls), kept(Xs, maps, args.threads)))
    alone = lines[0][2]
    columns = ["maps", "displacement", "exact KL", "KL lost", "10-NN kept"]
    rows = [
        [name, f"{apart:.3f}", f"{kl:.3f}", f"{kl / alone - 1:+.1%}", f"{part:.3f}"]
        for name, apart, kl, part in lines
    ]
    text = (
        f"{data.title}: {args.slices} slices of {2 * half}, sorted by label, half of each shared "
        f"with the next\n\n{table(columns, rows)}\n"
    )
    (output_folder(args, "aligned", data) / "aligned.md").write_text(text)
    print(text)
    return 0


def shared(ids: Sequence[Array]) -> list[list[Array]]:
    """Return the rows that consecutive slices share, in each of the two."""
    both = [np.intersect1d(*pair, return_indices=True) for pair in pairwise(ids)]
    return [rows for _, *rows in both]


def displacement(maps: Sequence[Array], ids: Sequence[Array]) -> float:
    """Return how far shared points are apart, as a part of their distance from their centre.

    Root mean squares; maps may be moved as a whole.
    """
    apart = []
    for (here, there), one, other in zip(shared(ids), maps[:-1], maps[1:], strict=True):
        a = one[here] - one[here].mean(axis=0)
        b = other[there] - other[there].mean(axis=0)
        apart.append(np.sqrt(np.square(a - b).sum() / (np.square([a, b]).sum() / 2)))
    return float(np.mean(apart))


def kept(Xs: Sequence[Array], maps: Sequence[Array], threads: int) -> float:
    pairs = zip(Xs, maps, strict=True)
    return float(np.mean([quality.neighbor_preservation(X, Y, n_jobs=threads) for X, Y in pairs]))


def exact_kl(P: Affinities, Y: Array, threads: int) -> float:
    return quality.exact_kl(None, Y, P=P, n_jobs=threads)


def turned_afterwards(maps: Sequence[Array], ids: Sequence[Array]) -> list[Array]:
    """Turn and mirror each map onto the one before it."""
    turned = [maps[0]]
    for (here, there), Y in zip(shared(ids), maps[1:], strict=True):
        before, rows = turned[-1][here], Y[there]
        product = (rows - rows.mean(axis=0)).T @ (before - before.mean(axis=0))
        left, _, right = np.linalg.svd(product)
        turned.append(Y @ (left @ right))
    return turned


def aligned_umap(
    Xs: Sequence[Array], ids: Sequence[Array], regularisation: float, seed: int
) -> list[Array]:
    try:
        from umap import AlignedUMAP
    except ImportError:
        sys.exit("error: umap-learn is not installed; pip install umap-learn, or --alone")
    relations = [dict(zip(*map(np.ndarray.tolist, pair), strict=True)) for pair in shared(ids)]
    warnings.filterwarnings("ignore", message="n_jobs value")  # which a seed sets to 1
    mapper = AlignedUMAP(alignment_regularisation=regularisation, random_state=seed)
    mapper.fit(Xs, relations=relations)
    return [np.asarray(Y, dtype=np.float64) for Y in mapper.embeddings_]


def lowest_kl(P: Affinities, Y: Array, threads: int) -> float:
    centred = Y - Y.mean(axis=0)
    return min(exact_kl(P, scale * centred, threads) for scale in SCALES)


if __name__ == "__main__":
    sys.exit(main())
