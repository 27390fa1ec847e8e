"""Which points several maps share, and what draws them together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from acctsne.runtime.checks import check_unique
from acctsne.runtime.labels import label_array, missing_labels

Rows = npt.NDArray[np.intp]
Layout = npt.NDArray[Any]


@dataclass(frozen=True)
class Tie:
    """Points of two slices that are the same: row by row, the two of a pair."""

    first: int  # the slices, by their place in the list
    second: int
    first_rows: Rows
    second_rows: Rows


@dataclass(frozen=True)
class Ties:
    """All that ties the maps of some slices."""

    sizes: Sequence[int]  # points of each slice
    ties: Sequence[Tie]

    @cached_property
    def partners(self) -> list[npt.NDArray[np.intp]]:
        """How many partners every point of every slice has."""
        counts = [np.zeros(size, dtype=np.intp) for size in self.sizes]
        for tie in self.ties:
            np.add.at(counts[tie.first], tie.first_rows, 1)
            np.add.at(counts[tie.second], tie.second_rows, 1)
        return counts

    def offsets(self, layouts: Sequence[Layout]) -> npt.NDArray[np.float64]:
        """Return where to move each map so that tied points are closest, the first staying.

        A map may lie anywhere, as its KL divergence does not know: what a tether is for is the
        rest. The sum of squared distances of tied points is smallest; no tethers then push a map
        as a whole.
        """
        count = len(self.sizes)
        laplacian = np.zeros((count, count))
        forces = np.zeros((count, layouts[0].shape[1]))
        for tie in self.ties:
            one, other = tie.first, tie.second
            pairs = len(tie.first_rows)
            apart = (
                layouts[other][tie.second_rows].sum(axis=0, dtype=np.float64)
                - layouts[one][tie.first_rows].sum(axis=0, dtype=np.float64)
            )  # fmt: skip
            forces[one] += apart
            forces[other] -= apart
            laplacian[[one, other], [one, other]] += pairs
            laplacian[[one, other], [other, one]] -= pairs
        offsets = np.zeros_like(forces)
        offsets[1:] = np.linalg.solve(laplacian[1:, 1:], forces[1:])
        return offsets

    def targets(self, layouts: Sequence[Layout]) -> list[Layout]:
        """Return the mean of each point's partners, in its own map; itself where it has none."""
        offsets = self.offsets(layouts)
        sums = [np.zeros(layout.shape) for layout in layouts]
        for tie in self.ties:
            ends = (tie.first, tie.first_rows), (tie.second, tie.second_rows)
            for (here, rows), (there, partners) in (ends, ends[::-1]):
                np.add.at(
                    sums[here],
                    rows,
                    layouts[there][partners] + (offsets[there] - offsets[here]),
                )
        targets = []
        for layout, total, count in zip(layouts, sums, self.partners, strict=True):
            target = layout.copy()
            tied = count > 0
            target[tied] = total[tied] / count[tied, None]
            targets.append(target)
        return targets

    def displacements(self, layouts: Sequence[Layout]) -> list[npt.NDArray[np.float64]]:
        """Return how far each point is from the mean of its partners; nan where it has none."""
        return [
            np.where(
                count > 0, np.linalg.norm((layout - target).astype(np.float64), axis=1), np.nan
            )
            for layout, target, count in zip(
                layouts, self.targets(layouts), self.partners, strict=True
            )
        ]

    def turned(self, layouts: Sequence[Layout]) -> list[Layout]:
        """Turn and mirror each map so that points tied to earlier maps are closest to those.

        Orthogonal Procrustes: of all orthogonal matrices the one with the smallest sum of squared
        distances, both sides centred.
        """
        turned = [layouts[0]]
        for here in range(1, len(layouts)):
            product = np.zeros((layouts[0].shape[1],) * 2)
            for tie in self.ties:
                if tie.second == here:
                    ours = layouts[here][tie.second_rows].astype(np.float64)
                    theirs = turned[tie.first][tie.first_rows].astype(np.float64)
                    product += (ours - ours.mean(axis=0)).T @ (theirs - theirs.mean(axis=0))
            left, _, right = np.linalg.svd(product)
            rotation = left @ right
            layout = layouts[here]
            turned.append(np.ascontiguousarray(layout @ rotation, dtype=layout.dtype))
        return turned


def ties_of_relations(relations: Any, sizes: Sequence[int]) -> Ties:
    """Check pairs of rows of consecutive slices: arrays of two columns, or dictionaries."""
    if isinstance(relations, Mapping) or not isinstance(relations, Sequence):
        raise TypeError(
            "relations must be a list with an array or dictionary for each two consecutive "
            f"slices; got {type(relations).__name__}"
        )
    if len(relations) != len(sizes) - 1:
        raise ValueError(
            f"relations has {len(relations)} entries for {len(sizes)} slices; expected "
            f"{len(sizes) - 1}, one for each two consecutive slices"
        )
    ties = []
    for at, given in enumerate(relations):
        listed = list(given.items()) if isinstance(given, Mapping) else given
        try:
            pairs = np.asarray(listed)
        except ValueError as error:
            raise ValueError(
                f"relations[{at}] has rows that are no pairs: each must be a row of slice {at} and "
                f"the row of slice {at + 1} that is the same ({error})"
            ) from error
        if pairs.size == 0:
            raise ValueError(
                f"relations[{at}] is empty: slices {at} and {at + 1} share no point, and nothing "
                "would align them. Embed them one by one with TSNE"
            )
        if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
            raise ValueError(
                f"relations[{at}] must be a dictionary of rows or an integer array of shape "
                f"(n_pairs, 2); got an array of {pairs.dtype} with shape {pairs.shape}"
            )
        for side in (0, 1):
            size = sizes[at + side]
            wrong = pairs[(pairs[:, side] < 0) | (pairs[:, side] >= size), side]
            if wrong.size:
                raise ValueError(
                    f"relations[{at}] names row {wrong[0]} of slice {at + side}, which has {size} "
                    "rows, counted from 0"
                )
        pairs = np.unique(pairs.astype(np.intp), axis=0)
        ties.append(Tie(at, at + 1, pairs[:, 0], pairs[:, 1]))
    return Ties(sizes, ties)


def ties_of_ids(ids: Any, sizes: Sequence[int]) -> Ties:
    """Tie equal ids: each to the last slice before that has it."""
    if isinstance(ids, str | Mapping) or not isinstance(ids, Sequence):
        raise TypeError(
            f"ids must be a list with an array of ids for each slice; got {type(ids).__name__}"
        )
    if len(ids) != len(sizes):
        raise ValueError(f"ids has {len(ids)} entries for {len(sizes)} slices; expected one each")
    last_seen: dict[Any, tuple[int, int]] = {}
    ties = []
    for here, given in enumerate(ids):
        array = label_array(given)
        if array.shape != (sizes[here],):
            raise ValueError(
                f"ids[{here}] has shape {array.shape}; expected ({sizes[here]},), one id for each "
                f"row of slice {here}"
            )
        missing = missing_labels(array)
        if missing.any():
            raise ValueError(
                f"ids[{here}] has no id for row {np.argmax(missing)}, but "
                f"{array[np.argmax(missing)]}: give every row one, of its own if it is in no other "
                "slice"
            )
        names = array.tolist()
        check_unique(names, f"ids[{here}]")
        pairs: dict[int, list[tuple[int, int]]] = {}
        for row, name in enumerate(names):
            if name in last_seen:
                there, partner = last_seen[name]
                pairs.setdefault(there, []).append((partner, row))
            last_seen[name] = here, row
        if here > 0 and not pairs:
            raise ValueError(
                f"slice {here} shares no id with those before it, and nothing would align it. "
                "Leave it out, or embed it with TSNE"
            )
        for there in sorted(pairs):
            rows = np.array(pairs[there], dtype=np.intp)
            ties.append(Tie(there, here, rows[:, 0], rows[:, 1]))
    return Ties(sizes, ties)
