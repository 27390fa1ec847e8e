"""Labels and points of every kind that people have, and clear errors for what is wrong."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from acctsne.pictures.inputs import Quantized, categories, check_points, check_values
from acctsne.runtime.optional import require


@pytest.mark.parametrize(
    ("labels", "names", "codes"),
    [
        (["b", "a", "b"], ["a", "b"], [1, 0, 1]),
        (np.array(["b", "a", "b"]), ["a", "b"], [1, 0, 1]),
        (np.array([10, 9, 10]), ["9", "10"], [1, 0, 1]),
        (np.array([True, False, True]), ["False", "True"], [1, 0, 1]),
        (np.array([2.0, np.nan, 1.0]), ["1", "2"], [1, -1, 0]),
        (["a", None, np.nan], ["a"], [0, -1, -1]),
        ([1, "a", 2], ["1", "2", "a"], [0, 2, 1]),
        ([b"b", b"a", b"b"], ["a", "b"], [1, 0, 1]),
        ([None, None, None], [], [-1, -1, -1]),
        (pd.Series(["b", None, "b"], index=[7, 8, 9]), ["b"], [0, -1, 0]),
        (pd.Series([3, None, 2], dtype="Int64"), ["2", "3"], [1, -1, 0]),
        (pd.array(["x", pd.NA, "y"]), ["x", "y"], [0, -1, 1]),
        (pd.Categorical(["b", "a", None], ["b", "unused", "a"]), ["b", "a"], [0, 1, -1]),
        (pd.Series(["a", "b", "a"], dtype="category"), ["a", "b"], [0, 1, 0]),
        (pd.CategoricalIndex(["a", "b", "a"]), ["a", "b"], [0, 1, 0]),
        (pl.Series(["b", None, "a"]), ["a", "b"], [1, -1, 0]),
    ],
)
def test_labels_of_every_kind(labels: Any, names: list[str], codes: list[int]) -> None:
    found = categories(labels, 3)
    assert found.names == names
    assert found.codes.tolist() == codes
    assert found.missing.tolist() == [code < 0 for code in codes]
    assert found.counts().tolist() == [codes.count(i) for i in range(len(names))]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", "b"], r"one entry for each of the 3 points; got shape \(2,\)"),
        ([["a"], ["b"], ["c"]], r"one entry for each of the 3 points; got shape \(3, 1\)"),
        (pd.Categorical(["a"]), r"one entry for each of the 3 points; got shape \(1,\)"),
    ],
)
def test_wrong_labels(labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        categories(labels, 3)


def test_measurements_are_not_labels() -> None:
    with pytest.raises(ValueError, match="500 different fractional numbers; pass them as values="):
        categories(np.linspace(0, 1, 500), 500)
    assert len(categories(np.array([0.5, 1.5]), 2).names) == 2


def test_unhashable_labels() -> None:
    labels = np.empty(2, dtype=object)
    labels[:] = [{}, {}]
    with pytest.raises(ValueError, match="strings, numbers or booleans"):
        categories(labels, 2)


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        (np.zeros(5), r"got shape \(5,\)"),
        (np.zeros((5, 1)), r"got shape \(5, 1\)"),
        (np.zeros((5, 4)), r"got shape \(5, 4\)"),
        (np.zeros((0, 2)), "no points"),
        ([["a", "b"]], "array of real numbers"),
        ([[1j, 2j]], "real numbers"),
        ([[1, 2], [3]], "2 values in row 0 and 1 in row 1"),
        ([[0, 0], [np.nan, 0], [np.inf, 1]], "in 2 of 3 rows, the first is row 1"),
    ],
)
def test_wrong_points(Y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_points(Y)


@pytest.mark.parametrize("kind", [list, np.array, pd.DataFrame])
def test_points_of_every_kind(kind: Any) -> None:
    assert check_points(kind([[0, 1], [2, 3]])).tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", "b"], "pass categories as labels="),
        ([1.0], "one entry for each of the 2 points"),
        ([0.0, np.inf], "infinity in row 1"),
    ],
)
def test_wrong_values(values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_values(values, 2)


@pytest.mark.parametrize("scale", [1e-4, 100.0])
def test_quantized_points_are_within_half_a_step(scale: float) -> None:
    points = scale * np.random.default_rng(0).normal(size=(1000, 3))
    quantized = Quantized.of(points)
    extent = np.ptp(points, axis=0).max()
    np.testing.assert_allclose(quantized.points(), points, rtol=1e-6, atol=0.51 * extent / 65535)


def test_quantized_single_point() -> None:
    assert Quantized.of(np.array([[3.0, 4.0]])).points().tolist() == [[3.0, 4.0]]


def test_a_missing_package_is_named_with_its_extra() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"^nowhere is .* pip install 'acctsne\[plot\]'$"):
        require("nowhere.at.all", "plot")
