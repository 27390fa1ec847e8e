"""Figures of how-it-works.md: each step on real data, computed with the step's own code."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from sklearn.datasets import load_digits
from sklearn.metrics import euclidean_distances

from acctsne import TSNE, Affinities, _core, init, nearest_neighbors, quality
from acctsne.affinities.affinities import form_of
from acctsne.forces.repulsion import RepulsionOptions
from acctsne.neighbors.frame import find_frame
from acctsne.optimize.optimizer import Observers, Optimizer
from acctsne.optimize.schedule import Schedule
from acctsne.optimize.stopping import StoppingRules, Watch
from acctsne.runtime.threads import available_cores
from drawing import save

Array = npt.NDArray[Any]

BLUE, RED, GREY = "#2166ac", "#b2182b", "#999999"


def digits_map() -> tuple[Array, Array, Array]:
    """Return the handwritten digits, their labels and their map."""
    X, y = load_digits(return_X_y=True)
    return X, y, TSNE(random_state=0).fit_transform(X)


def filter_bounds(data: Path) -> None:
    """neighbors: lower bounds of MNIST's distances from 24 to 192 of its leading axes."""
    k, seed = 91, np.random.default_rng(0)
    with np.load(data / "mnist70k.npz") as file:
        X = file["X"].astype(np.float32)
    projection = find_frame(X, k, available_cores()).project(X, available_cores())
    queries = seed.choice(len(X), 100, replace=False)
    distances = euclidean_distances(X[queries].astype(np.float64), X)
    limits = np.partition(distances, k, axis=1)[:, [k]]  # the query itself comes first
    # More of the near pairs are drawn, or there would be none to see.
    part = 4e-4 + 0.04 * np.exp(-8 * np.maximum(distances / limits - 1, 0))
    shown = seed.random(distances.shape) < part

    figure = Figure(figsize=(10, 2.9), layout="constrained")
    for ax, axes in zip(
        figure.subplots(1, 4, sharex=True, sharey=True), (24, 56, 104, 192), strict=True
    ):
        leading = projection.coordinates[:, :axes].astype(np.float64)
        rest = np.maximum(projection.squared_norms - np.square(leading).sum(axis=1), 0)
        points = np.column_stack([leading, np.sqrt(rest)])
        bounds = euclidean_distances(points[queries], points)
        survivors = (bounds < limits).mean()
        x, y = ((values / limits)[shown] for values in (distances, bounds))
        ax.scatter(x, y, s=1.5, linewidths=0, c=np.where(y < 1, RED, BLUE), rasterized=True)
        ax.axline((0, 0), slope=1, color=GREY, lw=0.8)
        ax.axhline(1, color="black", lw=0.8)
        ax.set(xlim=(0, 2.2), ylim=(0, 2.2), aspect="equal", xlabel="distance")
        ax.set_title(f"{axes} axes: {survivors:.2%} survive", fontsize=10)
        if axes == 24:
            ax.set_ylabel("lower bound")
    save(figure, "filter_bounds")


def perplexity() -> None:
    """affinities: Newton's way to the bandwidth of three digits, and what comes out."""
    X, _ = load_digits(return_X_y=True)
    squared = np.square(nearest_neighbors(X, 91).distances)
    reach = np.argsort(squared[:, -1])
    rows = {
        "densest": reach[0],
        "median": reach[len(reach) // 2],
        "loneliest": reach[-1],
    }
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    entropy_ax, weight_ax = figure.subplots(1, 2)
    betas = np.logspace(-1.5, 2, 200)
    for (name, row), color in zip(rows.items(), (BLUE, GREY, RED), strict=True):
        d = squared[row] - squared[row].min()
        d /= d.mean()  # the step's own unit
        entropy_ax.plot(betas, [np.exp(entropy(d, beta)[0]) for beta in betas], color=color)
        steps = newton(d, np.log(30))
        values = [np.exp(entropy(d, beta)[0]) for beta in steps]
        entropy_ax.plot(steps, values, "o", ms=4, color=color, label=f"{name}: {len(steps)} steps")
        weights = np.exp(-steps[-1] * d)
        weight_ax.plot(np.sqrt(squared[row]), weights / weights.sum(), ".-", ms=3, color=color)
    entropy_ax.axhline(30, color="black", lw=0.8)
    entropy_ax.set(xscale="log", yscale="log", xlabel=r"$\beta$, in units of the row")
    entropy_ax.set_ylabel(r"perplexity $e^{H(\beta)}$")
    entropy_ax.legend(frameon=False)
    weight_ax.set(xlabel="distance of the neighbour", ylabel=r"$p_{j|i}$ at perplexity 30")
    weight_ax.set(xlim=(0, None), ylim=(0, None))
    save(figure, "perplexity")


def entropy(d: Array, beta: float) -> tuple[float, float]:
    """Return the entropy of the Gaussian weights and its slope by log(beta)."""
    weights = np.exp(-beta * d)
    weights /= weights.sum()
    mean = weights @ d
    variance = weights @ np.square(d) - mean**2
    return float(np.log(np.exp(-beta * d).sum()) + beta * mean), float(-(beta**2) * variance)


def newton(d: Array, target: float) -> list[float]:
    """Return the steps that native/affinities/perplexity.cpp takes."""
    lack = np.log(len(d)) - target
    steps, low, high = [float(max(3.45 * lack, 3.6 * np.sqrt(lack)))], 0.0, np.inf
    while len(steps) < 200:
        beta = steps[-1]
        value, slope = entropy(d, beta)
        if abs(value - target) < 1e-10:
            break
        low, high = (beta, high) if value > target else (low, beta)
        beta *= float(np.exp(np.clip((target - value) / slope, -2.8, 2.8)))
        if not low < beta < high:
            beta = 16 * low if high == np.inf else (low + high) / 2
        steps.append(beta)
    return steps


def morton() -> None:
    """tree: the Morton order of a small map with the tree's cells, and the walk of one group."""
    _, _, Y = digits_map()
    figure = Figure(figsize=(10, 5), layout="constrained")
    order_ax, walk_ax = figure.subplots(1, 2)
    draw_order(order_ax, np.ascontiguousarray(Y[:300]))
    draw_walk(walk_ax, np.ascontiguousarray(Y))
    for ax in (order_ax, walk_ax):
        ax.set_aspect("equal")
        ax.set_axis_off()
    save(figure, "morton")


def draw_order(ax: Axes, Y: Array) -> None:
    """Draw points in Morton order and all cells of their tree."""
    tree = _core.build_tree(Y, 1)
    points = Y[tree["order"]]
    for node in range(len(tree["skip"])):
        draw_cell(ax, tree, node, ec="#cccccc", fc="none", lw=0.7)
    ax.plot(*points.T, color=GREY, lw=0.6, zorder=1)
    ax.scatter(points[:, 0], points[:, 1], c=np.arange(len(points)), s=9, zorder=2)
    ax.set_title(f"{len(Y)} points in Morton order, {len(tree['skip'])} nodes", fontsize=10)


def draw_walk(ax: Axes, Y: Array) -> None:
    """Draw what the group around the middle point meets, as walk_tree() finds it."""
    tree = _core.build_tree(Y, 1)
    begin, end, skip = tree["begin"], tree["end"], tree["skip"]
    points = Y[tree["order"]]
    middle = np.square(points - np.median(points, axis=0)).sum(axis=1).argmin()
    around_it = (begin <= middle) & (middle < end)
    group = np.flatnonzero(around_it & (end - begin <= 64))[0]
    own = points[begin[group] : end[group]]
    theta = 1.8 * 0.5  # at the default angle
    node, cells, near = 0, 0, 0
    while node < len(skip):
        centre = tree["centre"][node]
        outside = np.maximum(np.maximum(own.min(axis=0) - centre, centre - own.max(axis=0)), 0)
        around = begin[node] <= begin[group] and end[group] <= end[node]
        if not around and tree["side"][node] < theta * np.linalg.norm(outside):
            draw_cell(ax, tree, node, ec=BLUE, fc="#d1e5f0", lw=0.5)
            ax.plot(*centre, "+", ms=4, color=BLUE)
            cells += 1
            node = skip[node]
        elif node == group:
            node = skip[node]
        elif skip[node] == node + 1:
            those = points[begin[node] : end[node]]
            ax.scatter(those[:, 0], those[:, 1], s=3, c=RED)
            near += len(those)
            node = skip[node]
        else:
            node += 1
    ax.scatter(own[:, 0], own[:, 1], s=3, c="black")
    ax.set_title(
        f"{len(own)} of {len(Y)} points (black) meet {cells} cells (blue), {near} points (red)",
        fontsize=10,
    )


def draw_cell(ax: Axes, tree: dict[str, Any], node: int, **style: Any) -> None:
    """Draw a node's cell, whose place its first Morton code tells."""
    code = int(tree["codes"][tree["begin"][node]])
    level = int(tree["level"][node])
    corner = tree["box_lower"].astype(np.float64).copy()
    for bit in range(level):
        pair = code >> 2 * (30 - bit)
        corner += tree["box_side"] / 2 ** (bit + 1) * np.array([pair & 1, pair >> 1 & 1])
    side = float(tree["side"][node])
    ax.add_patch(Rectangle(tuple(corner), side, side, **style))


def relabelling() -> None:
    """attractive: where P's entries lie before and after points are numbered by the map."""
    X, _, Y = digits_map()
    P = quality.affinities(X)
    order = _core.build_tree(np.ascontiguousarray(Y), 1)["order"]
    figure = Figure(figsize=(8, 4), layout="constrained")
    for ax, matrix, title in zip(
        figure.subplots(1, 2),
        (P, P[order][:, order]),
        ("rows as given", "rows in Morton order of the map"),
        strict=True,
    ):
        entries = matrix.tocoo()
        ax.hist2d(entries.col, entries.row, bins=225, cmap="Blues", norm=LogNorm())
        distance = np.median(np.abs(entries.col - entries.row))
        ax.set_title(f"{title}: |i - j| is {distance:.0f} in the median", fontsize=10)
        ax.invert_yaxis()
        ax.set(aspect="equal", xticks=[], yticks=[])
    save(figure, "relabelling")


def grid() -> None:
    """repulsive_fft: one point's spline on the grid, and the potential of a map."""
    _, _, Y = digits_map()
    step = 0.43
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    spline_ax, potential_ax = figure.subplots(1, 2)

    place = np.array([1.35, 1.7])  # within a patch of 4 x 4 nodes, in steps
    nodes = np.arange(4)
    weights = np.outer(*(spline(place[axis] - nodes) for axis in (0, 1)))
    x, y = np.meshgrid(np.arange(-1, 5), np.arange(-1, 5), indexing="ij")
    spline_ax.plot(x, y, color="#dddddd", lw=0.7, zorder=0)
    spline_ax.plot(x.T, y.T, color="#dddddd", lw=0.7, zorder=0)
    for i in nodes:
        for j in nodes:
            spline_ax.plot(i, j, "o", ms=42 * np.sqrt(weights[i, j]), color=BLUE, alpha=0.5)
            share = f"{weights[i, j]:.1%}"
            spline_ax.annotate(share, (i, j), ha="center", va="center", fontsize=8)
    spline_ax.plot(*place, "x", color=RED, ms=8, mew=2)
    spline_ax.set(xlim=(-0.8, 3.8), ylim=(-0.8, 3.8))
    spline_ax.set_title("a point (red) spreads its charge over 4 x 4 nodes", fontsize=10)
    spline_ax.set_axis_off()

    axes = [np.arange(Y[:, a].min(), Y[:, a].max() + step, step) for a in (0, 1)]
    in_x, in_y = (np.square(axes[a][:, None] - Y[:, a]) for a in (0, 1))
    potential = np.array([(1 / (1 + row + in_y)).sum(axis=1) for row in in_x])
    image = potential_ax.pcolormesh(*axes, potential.T, cmap="viridis", rasterized=True)
    potential_ax.set_title(rf"$\phi$ on {len(axes[0])} x {len(axes[1])} nodes", fontsize=10)
    figure.colorbar(image, ax=potential_ax, shrink=0.8)
    for ax in (spline_ax, potential_ax):
        ax.set_aspect("equal")
    potential_ax.set(xticks=[], yticks=[])
    save(figure, "grid")


def spline(t: Array) -> Array:
    """Evaluate the cubic B-spline."""
    t = np.abs(t)
    inner = (4 - 6 * t**2 + 3 * t**3) / 6
    outer = np.maximum(2 - t, 0) ** 3 / 6
    return np.asarray(np.where(t < 1, inner, outer))


def accuracy() -> None:
    """repulsive: the error of the forces that each method's parameter gives."""
    _, _, Y = digits_map()
    rng = np.random.default_rng(0)
    layouts = {
        "map of the digits": Y,
        "uniform square, 5000 points": rng.uniform(-50, 50, (5000, 2)),
        "Gaussian, 5000 points": rng.normal(size=(5000, 2)) * 20,
    }
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    tree_ax, grid_ax = figure.subplots(1, 2)
    angles = np.linspace(0.1, 0.8, 15)
    aims = np.logspace(-3, -1, 13)
    for (name, layout), color in zip(layouts.items(), (BLUE, RED, GREY), strict=True):
        n = len(layout)
        errors = [quality.force_error(layout, angle=angle, n_samples=n) for angle in angles]
        tree_ax.plot(angles, errors, "-", color=color, label=name)
        errors = [quality.force_error(layout, "fft", force_error=aim, n_samples=n) for aim in aims]
        grid_ax.plot(aims, errors, "-", color=color, label=name)
    grid_ax.plot(aims, aims, "--", color="black", lw=0.8, label="the aim")
    tree_ax.set(yscale="log", xlabel="angle", ylabel="force error", title="barnes_hut")
    grid_ax.set(xscale="log", yscale="log", xlabel="force_error", title="fft")
    grid_ax.legend(frameon=False)
    save(figure, "accuracy")


def descent() -> None:
    """optimize: KL divergence and gradient over a run of the default schedule."""
    X, _ = load_digits(return_X_y=True)
    P = form_of(Affinities.from_data(X))
    optimizer = Optimizer(P, init.pca(X), RepulsionOptions(), available_cores())
    divergences: list[tuple[int, float]] = []
    norms: list[tuple[int, float]] = []

    class NormWatch(Watch):
        """Keeps the gradient's norm at every look."""

        def reason_to_end(self, iteration: int, kl: float, norm: float) -> str:
            norms.append((iteration + 1, norm))
            return super().reason_to_end(iteration, kl, norm)

    def record(iteration: int, kl: float, _: Array) -> None:
        divergences.append((iteration + 1, kl))

    ends = []
    for phase in Schedule(max_iter=250).phases(len(X)):
        watched = replace(phase, look_every=2)
        optimizer.run(watched, NormWatch(StoppingRules()), Observers([record], callback_every=2))
        ends.append(optimizer.n_iter)

    figure = Figure(figsize=(10, 3), layout="constrained")
    kl_ax, norm_ax = figure.subplots(1, 2)
    kl_ax.plot(*zip(*divergences, strict=True), color=BLUE)
    kl_ax.set(xlabel="iteration", ylabel="KL divergence", ylim=(0, None))
    norm_ax.plot(*zip(*norms, strict=True), color=RED)
    norm_ax.set(xlabel="iteration", ylabel="gradient norm", yscale="log")
    for ax in (kl_ax, norm_ax):
        ax.axvspan(0, ends[0], color="#dddddd", zorder=0)
    kl_ax.annotate(f"early exaggeration: {ends[0]} iterations", (ends[0] + 15, 3.6), fontsize=9)
    save(figure, "descent")


FIGURES = [perplexity, morton, relabelling, grid, accuracy, descent]
FIGURES_OF_DATA = [filter_bounds]
