"""Properties of the Barnes-Hut tree over clouds of every awkward kind."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acctsne import _core

Array = npt.NDArray[Any]

MORTON_BITS = {1: 31, 2: 31, 3: 21}  # bits of each coordinate, native/include/acctsne/types.hpp

KINDS = ("random", "duplicated", "collinear", "constant", "lattice", "nested", "two_points")
SCALES = (1e-30, 1e-4, 1.0, 100.0, 1e30)


def make_cloud(kind: str, n: int, dims: int, rng: np.random.Generator) -> Array:
    if kind == "random":
        cloud = rng.normal(size=(n, dims))
    elif kind == "duplicated":
        # Places with more points than a leaf holds, and places with one.
        places = rng.normal(size=(max(1, n // 20), dims))
        cloud = places[rng.integers(len(places), size=n)]
    elif kind == "collinear":
        cloud = np.outer(rng.normal(size=n), rng.normal(size=dims)) + rng.normal(size=dims)
    elif kind == "constant":
        cloud = np.tile(rng.normal(size=dims), (n, 1))
    elif kind == "lattice":
        cloud = rng.integers(0, 5, size=(n, dims)).astype(float)
    elif kind == "nested":
        # Ever closer to one place, down to the resolution of the coordinates.
        cloud = rng.normal(size=(n, dims)) * 0.5 ** rng.integers(0, 60, size=(n, 1))
    else:
        cloud = rng.normal(size=(2, dims))
    return np.asarray(cloud)


clouds = st.builds(
    lambda kind, n, dims, scale, seed, dtype: np.ascontiguousarray(
        scale * make_cloud(kind, n, dims, np.random.default_rng(seed)), dtype=dtype
    ),
    kind=st.sampled_from(KINDS),
    # Beyond 2048 points the codes are sorted by radix, beyond 512 the tree is built in parts.
    n=st.one_of(st.integers(1, 40), st.integers(500, 530), st.integers(2040, 3000)),
    dims=st.sampled_from([1, 2, 3]),
    scale=st.sampled_from(SCALES),
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from([np.float32, np.float64]),
)


def interleaved_cells(codes: Array, dims: int) -> Array:
    """Undo the interleaving of a Morton code: one cell number per axis."""
    cells = np.zeros((len(codes), dims), dtype=np.uint64)
    for bit in range(MORTON_BITS[dims]):
        for axis in range(dims):
            set_here = (codes >> np.uint64(bit * dims + axis)) & np.uint64(1)
            cells[:, axis] |= set_here << np.uint64(bit)
    return cells


def resolution(Y: Array, tree: dict[str, Any]) -> float:
    """What rounding of positions, cells and centres may amount to."""
    extent = float(np.abs(Y).max()) + float(tree["box_side"])
    return 16 * float(np.finfo(Y.dtype).eps) * extent


def check_every_point_once(Y: Array, tree: dict[str, Any]) -> None:
    n = len(Y)
    begin, end, skip = tree["begin"], tree["end"], tree["skip"]
    np.testing.assert_array_equal(np.sort(tree["order"]), np.arange(n))
    assert (np.diff(tree["codes"].astype(np.int64)) >= 0).all()
    assert (begin[0], end[0], skip[0]) == (0, n, len(begin))
    is_leaf = skip == np.arange(len(skip)) + 1
    # Leaves in depth-first order follow each other without gap or overlap.
    np.testing.assert_array_equal(begin[is_leaf], np.r_[0, end[is_leaf][:-1]])
    assert end[is_leaf][-1] == n
    assert (begin < end).all()
    for node in np.flatnonzero(~is_leaf):
        children = [node + 1]
        while skip[children[-1]] < skip[node]:
            children.append(skip[children[-1]])
        assert skip[children[-1]] == skip[node]
        # Two at least, or the tree of n points could have more than 2 n nodes.
        assert len(children) >= 2
        np.testing.assert_array_equal(begin[children], np.r_[begin[node], end[children][:-1]])
        assert end[children[-1]] == end[node]
        assert (tree["level"][children] > tree["level"][node]).all()


def check_boxes_contain_points(Y: Array, tree: dict[str, Any]) -> None:
    dims = Y.shape[1]
    cells = interleaved_cells(tree["codes"], dims)
    points = Y[tree["order"]].astype(np.float64)
    allowed = resolution(Y, tree)
    box_lower = tree["box_lower"].astype(np.float64)
    assert (points >= box_lower).all()
    assert (points <= box_lower + tree["box_side"]).all()
    for node in range(len(tree["begin"])):
        inside = slice(tree["begin"][node], tree["end"][node])
        shift = np.uint64(MORTON_BITS[dims] - tree["level"][node])
        prefix = cells[inside] >> shift
        assert (prefix == prefix[0]).all()  # one cell of this level holds them all
        side = tree["box_side"] * 0.5 ** int(tree["level"][node])
        assert tree["side"][node] == pytest.approx(side, rel=1e-6)
        lower = box_lower + prefix[0].astype(np.float64) * side
        assert (points[inside] >= lower - allowed).all()
        assert (points[inside] <= lower + side + allowed).all()


def check_masses_and_centres(Y: Array, tree: dict[str, Any]) -> None:
    points = Y[tree["order"]].astype(np.float64)
    sums = np.r_[np.zeros((1, Y.shape[1])), np.cumsum(points, axis=0)]
    begin, end = tree["begin"], tree["end"]
    expected = (sums[end] - sums[begin]) / (end - begin)[:, None]
    # The running sums above round as well, in double precision and over all points.
    allowed = resolution(Y, tree) + 1e-13 * np.abs(points).sum()
    np.testing.assert_allclose(tree["centre"], expected, rtol=0, atol=allowed)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(Y=clouds, threads=st.integers(1, 3))
def test_tree_of_any_cloud(Y: Array, threads: int) -> None:
    tree = _core.build_tree(Y, threads)
    check_every_point_once(Y, tree)
    check_boxes_contain_points(Y, tree)
    check_masses_and_centres(Y, tree)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_smallest_trees(dims: int, dtype: npt.DTypeLike) -> None:
    one = _core.build_tree(np.full((1, dims), 7.0, dtype=dtype), 1)
    assert len(one["begin"]) == 1
    np.testing.assert_array_equal(one["centre"], np.full((1, dims), 7.0))
    two = _core.build_tree(np.array([[0.0] * dims, [2.0] * dims], dtype=dtype), 1)
    np.testing.assert_allclose(two["centre"][0], [1.0] * dims)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_points_in_one_place_are_one_leaf(dtype: npt.DTypeLike) -> None:
    Y = np.zeros((5000, 2), dtype=dtype)
    Y[0] = 1.0
    tree = _core.build_tree(Y, 2)
    assert len(tree["begin"]) == 3  # root, the pile, the point apart
    np.testing.assert_allclose(tree["centre"][0], 1 / 5000, rtol=1e-6)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_large_cloud_does_not_depend_on_threads(dims: int) -> None:
    # More than one chunk of the radix sort (16384 points), many subtrees.
    Y = np.random.default_rng(dims).normal(size=(40_001, dims)).astype(np.float32)
    alone = _core.build_tree(Y, 1)
    check_every_point_once(Y, alone)
    check_masses_and_centres(Y, alone)
    for threads in (2, 7):
        tree = _core.build_tree(Y, threads)
        for name, values in alone.items():
            np.testing.assert_array_equal(tree[name], values)


@pytest.mark.parametrize("shape", [(0, 2), (5, 0), (5, 4)])
def test_no_tree_of_nothing(shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"needs a point|1, 2 and 3 dimensions"):
        _core.build_tree(np.zeros(shape), 1)
