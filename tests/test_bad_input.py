"""Input that is wrong, or so odd that others crash on it: a clear error, or a finite map."""

import os
import warnings
from datetime import date, time
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from scipy.sparse import csr_matrix
from sklearn.utils.fixes import parse_version

from acctsne import TSNE, Affinities, Embedding, init, io, nearest_neighbors, quality
from acctsne.runtime.rows import with_whole_rows
from helpers import neighbors_by, start

Array = npt.NDArray[Any]

METHODS = pytest.mark.parametrize("method", ["auto", "barnes_hut", "fft", "exact"])
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def normal(n: int = 60, features: int = 5) -> Array:
    return np.random.default_rng(0).normal(size=(n, features))


def small(**parameters: Any) -> TSNE:
    return TSNE(**{"perplexity": 5, "max_iter": 260, "random_state": 0, **parameters})


class Wrapped:
    """An array of another package, as xarray's are, that NumPy can read."""

    def __init__(self, values: Array) -> None:
        self.values, self.dtype, self.shape, self.ndim = values, values.dtype, values.shape, 2

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.values if dtype is None else self.values.astype(dtype)

    def __len__(self) -> int:
        return len(self.values)


def assert_good_map(embedding: Array, n: int, dims: int = 2) -> None:
    assert embedding.shape == (n, dims)
    assert np.isfinite(embedding).all()
    assert embedding.std() > 0


class TestNotFinite:
    @METHODS
    @pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity")])
    def test_in_x(self, value: float, name: str, method: str) -> None:
        X = normal()
        X[7, 3] = value
        with pytest.raises(ValueError, match=f"Input X contains {name}"):
            small(method=method).fit(X)

    def test_in_sparse_x(self) -> None:
        X = normal()
        X[7, 3] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            small(init="random").fit(csr_matrix(X))

    @pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (-np.inf, "infinity")])
    def test_in_init(self, value: float, name: str) -> None:
        init = normal(60, 2)
        init[9, 1] = value
        with pytest.raises(ValueError, match=f"Input init contains {name}"):
            small(init=init).fit(normal())


def one_masked(*shape: int, dtype: npt.DTypeLike = float) -> Any:
    """Make an array of numbers that differ within each row, one of them masked."""
    numbers = np.ma.masked_array(np.add.outer(np.zeros(shape[0]), range(*shape[1:])), dtype=dtype)
    numbers[4, 1] = np.ma.masked
    return numbers


class TestNotRepresentable:
    """Values that would be lost, or not fit, on the way to an array of numbers."""

    def test_masked_values(self) -> None:
        X = np.ma.masked_array(normal(), mask=normal() > 2)
        fitted = small().fit(X.data)
        for call in (small().fit, lambda X: nearest_neighbors(X, 3), fitted.transform):
            with pytest.raises(ValueError, match=r"X has \d+ masked values"):
                call(X)
        whole = small().fit_transform(np.ma.masked_array(normal()))
        np.testing.assert_array_equal(whole, fitted.embedding_)

    @pytest.mark.parametrize(
        ("name", "call"),
        [
            ("init", lambda P: small(init=one_masked(60, 2)).fit(normal())),
            ("init", lambda P: Embedding(P, one_masked(P.n_samples, 2))),
            ("P", lambda P: Affinities.from_matrix(one_masked(60, 60))),
            ("D", lambda P: Affinities.from_distances(one_masked(60, 60), perplexity=5)),
            ("indices", lambda P: start(P).transform(one_masked(9, 3, dtype=int), normal(9, 3))),
            ("distances", lambda P: start(P).transform(normal(9, 3) > 9, one_masked(9, 3))),
            ("fixed", lambda P: start(P).optimize(1, fixed=one_masked(9, 3, dtype=int)[4])),
            ("Y", lambda P: quality.exact_z(one_masked(60, 2))),
            (r"map\.csv: Y", lambda P: io.write("map.csv", one_masked(60, 2))),
        ],
    )
    def test_masked_values_anywhere(
        self,
        name: str,
        call: Any,
        P: Affinities,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ValueError, match=f"^{name} has 1 masked values"):
            call(P)

    def test_integers_beyond_floats(self) -> None:
        X = np.full((60, 2), 10**400, dtype=object)
        for call in (small().fit, lambda X: nearest_neighbors(X, 3)):
            with pytest.raises(ValueError, match="integers beyond"):
                call(X)

    def test_integers_beyond_floats_in_lists(self) -> None:
        for call in (
            small().fit,
            lambda X: nearest_neighbors(X, 1),
            small().fit(normal()).transform,
        ):
            with pytest.raises(ValueError, match="integers beyond"):
                call([[10**400, 1, 2, 3, 4]] * 60)

    def test_numbers_beyond_double_precision(self) -> None:
        X = np.full((60, 2), np.finfo(np.longdouble).max)
        if np.finfo(np.longdouble).max == np.finfo(np.float64).max:
            pytest.skip("long double is double here")
        with pytest.raises(ValueError, match="infinity or a value too large"):
            small().fit(X)

    def test_times_that_are_missing(self) -> None:
        X = (1000 * normal()).astype("datetime64[s]")
        assert_good_map(small().fit_transform(X), 60)
        X[3, 2] = np.datetime64("NaT")
        for missing in (X, Wrapped(X)):
            with pytest.raises(ValueError, match="NaT"):
                small().fit(missing)

    def test_records(self) -> None:
        records = np.rec.fromarrays(list(normal().T))
        with pytest.raises(TypeError, match=r"structured array, of fields f0, f1.*unstructured"):
            small().fit(records)
        with pytest.raises(TypeError, match="init is a structured array, of fields f0, f1"):
            small(init=np.zeros((60, 2), dtype="f8, f8")).fit(normal())

    def test_neighbors(self) -> None:
        indices = np.add.outer(np.arange(9), [1, 2]) % 9
        for distances, said in (
            (np.full((9, 2), 1j), "distances must be real numbers; got complex128"),
            (np.full((9, 2), "far"), "distances must be an array of numbers .*'far'"),
            ([[1.0, 2.0]] * 8 + [[1.0]], "distances has rows of different lengths"),
        ):
            with pytest.raises(ValueError, match=said):
                Affinities.from_neighbors(indices, distances, perplexity=2)


def tables_with(column: Any) -> dict[str, Any]:
    """Make a table of every kind whose column "odd" is this."""
    frame = pd.DataFrame(normal(), columns=list("abcde")).assign(odd=column)
    return {"pandas": frame, "polars": pl.from_pandas(frame), "pyarrow": pa.table(frame)}


class OnAGpu:
    __cuda_array_interface__: ClassVar[dict[str, Any]] = {"shape": (60, 5), "typestr": "<f4"}


class OfAnotherPackage:
    def __dlpack__(self) -> None: ...


class TestNoArrays:
    """What NumPy takes for a single thing is called by its name."""

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            (OnAGpu(), r"got a OnAGpu on a GPU\. Copy it to the host"),
            (OfAnotherPackage(), r"got a OfAnotherPackage\. numpy\.from_dlpack"),
            ((row for row in normal()), "got a generator, which NumPy cannot read"),
            ({1.0, 2.0}, "got a set, which NumPy cannot read"),
            ({"a": [1.0, 2.0]}, "got a dict, which NumPy cannot read"),
            ("data.npy", r"got 'data.npy'\. If it is a file, acctsne\.io\.read"),
            (Path("data.npy"), r"got \w+Path\('data.npy'\)\. If it is a file"),
        ],
    )
    def test_what_is_said(self, given: Any, said: str) -> None:
        for call in (
            small().fit,
            lambda X: nearest_neighbors(X, 3),
            small().fit(normal()).transform,
        ):
            with pytest.raises(TypeError, match=f"X must be an array of numbers .*; {said}"):
                call(given)

    def test_nothing(self) -> None:
        for call in (
            small().fit,
            Affinities.from_matrix,
            cast(Any, quality.exact_z),
            lambda X: Affinities.from_neighbors(X, X),
        ):
            with pytest.raises(TypeError, match=r"^\w+ is None; give an array of numbers"):
                call(None)

    @pytest.mark.parametrize(
        ("row", "said"),
        [
            ({"a": 1.0}, r"a dictionary for row 1; pandas\.DataFrame\(X\)"),
            (csr_matrix([[1.0]]), r"a sparse matrix for row 1; scipy\.sparse\.vstack\(X\)"),
        ],
    )
    def test_rows_of_another_kind(self, row: Any, said: str) -> None:
        for call in (small().fit, lambda X: nearest_neighbors(X, 1)):
            with pytest.raises(ValueError, match=f"X has {said}"):
                call([[1.0], row, [3.0]])

    @pytest.mark.parametrize("kind", [pd.Series, pl.Series, "objects"])
    def test_a_column_of_rows(self, kind: Any) -> None:
        # As texts' embeddings are kept beside the texts.
        rows = [row.tolist() for row in normal()]
        column = np.empty(60, dtype=object)
        column[:] = rows
        given = column if kind == "objects" else kind(rows)
        said = r"X is a \w+ whose values are rows; numpy\.stack\(X\) makes an array of them"
        for call in (small().fit, lambda X: nearest_neighbors(X, 3)):
            with pytest.raises(ValueError, match=said):
                call(given)
        np.testing.assert_array_equal(np.stack(cast(Any, given)), normal())

    def test_rows_of_different_lengths(self) -> None:
        for call in (small().fit, lambda X: nearest_neighbors(X, 1)):
            with pytest.raises(
                ValueError, match="different lengths, 2 values in row 0 and 1 in ro"
            ):
                call([[1.0, 2.0], [3.0, 4.0], [5.0]])


class TestTables:
    """Columns that are no numbers are named, whichever package the table is of."""

    @pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
    def test_column_of_text(self, kind: str) -> None:
        table = tables_with(["text"] * 60)[kind]
        for call in (small().fit, lambda X: nearest_neighbors(X, 3)):
            with pytest.raises(ValueError, match=r"its column 'odd' .*'text'.*leave it out"):
                call(table)

    @pytest.mark.parametrize("kind", ["pandas", "polars"])
    def test_column_of_rows(self, kind: str) -> None:
        table = tables_with([[1.0, 2.0]] * 60)[kind]
        said = r"its column 'odd' holds several values in each row, .* numpy\.stack makes an array"
        with pytest.raises(ValueError, match=said):
            small().fit(table)

    @pytest.mark.parametrize("kind", ["pandas", "pandas of arrow", "polars", "pyarrow"])
    @pytest.mark.parametrize(
        "value", [pd.Timestamp("2026-01-31"), pd.Timedelta("3s"), date(2026, 1, 31), time(12)]
    )
    def test_column_of_times(self, kind: str, value: Any) -> None:
        mixed = tables_with(value)
        mixed["pandas of arrow"] = mixed["pyarrow"].to_pandas(types_mapper=pd.ArrowDtype)
        alone = {name: table[["odd"]] for name, table in mixed.items() if name != "pyarrow"}
        alone["pyarrow"] = mixed["pyarrow"].select(["odd"])
        tsne = small().fit(normal(features=6))
        for table in (mixed[kind], alone[kind]):
            for call in (small().fit, lambda X: nearest_neighbors(X, 3), tsne.transform):
                with pytest.raises(ValueError, match=r"X must hold numbers, and its column 'odd'"):
                    call(table)
        if isinstance(value, pd.Timestamp):
            with pytest.raises(ValueError, match=r"'odd' holds times \(.*; leave it out"):
                small().fit(mixed[kind])

    def test_column_without_numbers_in_new_samples(self) -> None:
        tsne = small().fit(tables_with(1.0)["pandas"])
        with pytest.raises(ValueError, match="its column 'odd' does not"):
            tsne.transform(tables_with(["text"] * 60)["pandas"])

    def test_columns_that_share_a_name(self) -> None:
        table = pd.DataFrame(normal(), columns=list("abcba"))
        if parse_version(sklearn.__version__) < parse_version("1.9"):
            assert_good_map(small().fit_transform(table), 60)
            return
        for call in (small().fit, lambda X: nearest_neighbors(X, 3)):
            with pytest.raises(ValueError, match="several columns called 'a'"):
                call(table)

    def test_no_columns(self) -> None:
        with pytest.raises(ValueError, match="DataFrame without columns"):
            small().fit(pd.DataFrame(index=range(60)))

    def test_rows_that_are_not_there_yet(self) -> None:
        with pytest.raises(ValueError, match=r"LazyFrame.*X\.collect\(\)"):
            small().fit(tables_with(1.0)["polars"].lazy())

    def test_numbers_of_every_kind(self) -> None:
        frame = pd.DataFrame((4 * normal()).round(), columns=list("abcde"))
        expected = small().fit_transform(frame.to_numpy())
        whole = frame.astype("Int64")
        arrow = frame.convert_dtypes(dtype_backend="pyarrow")
        several = frame.set_axis(pd.MultiIndex.from_product([["x"], list("abcde")]), axis=1)
        for same in (whole, arrow, several, frame.astype("category"), pl.from_pandas(frame)):
            np.testing.assert_array_equal(small().fit_transform(same), expected)


class TestParameters:
    """Values that no constraint of a type and a range keeps away."""

    @pytest.mark.parametrize(
        "name",
        [
            "n_components",
            "early_exaggeration",
            "learning_rate",
            "n_iter_without_progress",
            "min_grad_norm",
            "late_exaggeration",
            "max_step",
        ],
    )
    def test_integers_beyond_floats(self, name: str) -> None:
        with pytest.raises(ValueError, match=f"{name} is an integer beyond"):
            small(**{name: 10**400}).fit(normal())

    def test_a_pair_beyond_floats(self) -> None:
        with pytest.raises(ValueError, match="learning_rate is an integer beyond"):
            small(learning_rate=(1, 10**400)).fit(normal())

    @pytest.mark.parametrize("value", [pd.NA, np.datetime64("2026"), np.array("auto"), 2.5, "2"])
    def test_n_jobs(self, value: Any) -> None:
        with pytest.raises(TypeError, match="n_jobs must be an integer or None"):
            nearest_neighbors(normal(), 3, n_jobs=value)

    @pytest.mark.parametrize("value", [pd.NA, pd.DataFrame({"a": [1]}), np.zeros(2), b"exact", 1])
    def test_words(self, value: Any) -> None:
        with pytest.raises(ValueError, match="mode must be one of auto"):
            nearest_neighbors(normal(), 3, mode=value)
        with pytest.raises(ValueError, match="metric must be 'precomputed', a callable, or one"):
            nearest_neighbors(normal(), 3, metric=value)

    def test_affinities(self) -> None:
        for perplexity in (10**400, (2, 10**400)):
            with pytest.raises(ValueError, match="perplexity must be positive and finite"):
                Affinities.from_data(normal(), perplexity=perplexity, kind="multiscale")
        with pytest.warns(UserWarning, match=r"perplexity 1e\+308 is too large"):
            Affinities.from_data(normal(), perplexity=1e308)
        with pytest.raises(ValueError, match="kind must be one of"):
            Affinities.from_data(normal(), kind=cast(Any, pd.NA))
        with pytest.raises(ValueError, match="P has integers beyond"):
            Affinities.from_matrix([[0, 10**400], [1, 0]])
        with pytest.raises(ValueError, match="D has integers beyond"):
            Affinities.from_distances([[0, 10**400], [10**400, 0]])

    def test_embedding(self) -> None:
        P = Affinities.from_data(normal(), perplexity=5)
        assert Embedding(P, "random", n_components=True).positions.shape == (60, 1)
        with pytest.raises(MemoryError, match="60 samples in 9223372036854775808 dimensions needs"):
            Embedding(P, "random", n_components=2**63)
        for name in ("exaggeration", "learning_rate", "max_step"):
            wrong: dict[str, Any] = {name: 10**400}
            with pytest.raises(ValueError, match=f"{name} is an integer beyond"):
                Embedding(P, "random").optimize(3, **wrong)

    def test_layouts(self) -> None:
        for n_components in (2**31, 2**64, 10**400):
            with pytest.raises(ValueError, match="n_components must be between 1 and"):
                init.pca(normal(), n_components)
        for n_samples in (2.5, True, np.array("auto")):
            with pytest.raises(TypeError, match="n_samples must be an integer"):
                init.random(cast(Any, n_samples))
        with pytest.raises(ValueError, match="at most 1073741824 are supported"):
            init.random(2**64)

    def test_figures(self) -> None:
        with pytest.raises(ValueError, match="Y has integers beyond"):
            quality.exact_z([[10**400, 1], [2, 3]])

    def test_name_that_is_no_text(self) -> None:
        with pytest.raises(TypeError, match="dtype must be"):
            small(dtype="\udcff").fit(normal())


@pytest.mark.parametrize(
    ("name", "value"),
    [("method", "nothing"), ("angle", -1), ("perplexity", 0), ("dtype", "x"), ("n_jobs", 0)],
)
def test_parameters_that_were_set_since_the_fit(tmp_path: Path, name: str, value: Any) -> None:
    tsne: TSNE = small().fit(normal())
    tsne.set_params(**{name: value})
    for call in (lambda: tsne.transform(normal()), lambda: tsne.save(tmp_path / "map.npz")):
        with pytest.raises((TypeError, ValueError), match=rf"{name}.*{value}"):
            call()
    assert not list(tmp_path.iterdir())


class TestNarrowNumbers:
    """Numbers of NumPy's narrow types count for what they are."""

    def test_iterations_beyond_the_type_of_their_interval(self) -> None:
        reports: list[int] = []
        small(
            callback=lambda iteration, kl, embedding: reports.append(iteration + 1),
            callback_every=np.int8(50),
            tol=0,
        ).fit(normal())
        assert reports == [50, 100, 150, 200, 250]

    @pytest.mark.parametrize("kind", [np.float16, np.float32])
    def test_perplexity(self, kind: Any) -> None:
        with np.errstate(all="raise"):
            narrow = Affinities.from_data(normal(), perplexity=kind(5))
        wide = Affinities.from_data(normal(), perplexity=5)
        np.testing.assert_array_equal(narrow.values, wide.values)

    @pytest.mark.parametrize("scale", [1.0, 1e-310])
    def test_floating_point_errors_that_raise(self, scale: float) -> None:
        X, new, Y = normal() * scale, normal()[:9] * 0.9 * scale, normal(60, 2) * scale
        expected = small().fit(X).transform(new)
        with np.errstate(all="raise"):
            np.testing.assert_array_equal(small().fit(X).transform(new), expected)
            assert np.isfinite(quality.report(X, Y, perplexity=5).stretch).all()


class TestCallbacks:
    def test_answers_that_are_neither_true_nor_false(self) -> None:
        for answer in (np.zeros(2), pd.DataFrame({"a": [1]}), pd.NA):
            with pytest.raises(TypeError, match=r"a callback returned .*must return True to end"):
                small(callback=lambda *_, answer=answer: answer).fit(normal())

    def test_functions_that_are_never_run(self) -> None:
        async def later(*_: Any) -> None: ...

        def piece_by_piece(*_: Any) -> Any:
            yield

        for callback in (later, piece_by_piece):
            with pytest.raises(TypeError, match=r"returned a \w+, which nobody runs"):
                small(callback=callback).fit(normal())

    def test_distances_beyond_floats(self) -> None:
        with pytest.raises(ValueError, match="instead of a finite number"):
            small(metric=lambda a, b: 10**400).fit(normal())


class TestWideSparse:
    """Columns that can be named, but not held."""

    def test_more_columns_than_names(self) -> None:
        X = csr_matrix((np.ones(60), (np.arange(60), np.arange(60) * 2**32)), shape=(60, 2**40))
        for call in (small().fit, lambda X: nearest_neighbors(X, 3), init.pca):
            with pytest.raises(ValueError, match="X has 1099511627776 columns; at most 2147483647"):
                call(X)

    def test_columns_without_room(self, monkeypatch: pytest.MonkeyPatch) -> None:
        X = csr_matrix((np.ones(60), (np.arange(60), np.arange(60))), shape=(60, 2**30))
        monkeypatch.setattr("acctsne.runtime.memory._machine", lambda: 2**33)
        for call in (small().fit, lambda X: nearest_neighbors(X, 3)):
            with pytest.raises(MemoryError, match="A sparse matrix of 1073741824 columns needs"):
                call(X)


class TestShape:
    def test_empty(self) -> None:
        with pytest.raises(ValueError, match=r"0 sample\(s\) .*minimum of 2"):
            small().fit(np.zeros((0, 5)))
        with pytest.raises(ValueError, match=r"0 feature\(s\) .*minimum of 1"):
            small().fit(np.zeros((10, 0)))

    def test_one_sample(self) -> None:
        with pytest.raises(ValueError, match=r"1 sample.*minimum of 2"):
            small().fit(normal(1))

    def test_more_samples_than_can_be_told_apart(self) -> None:
        X = np.broadcast_to(np.float32(1), (2**30 + 1, 1))
        for call in (small().fit, lambda X: nearest_neighbors(X, 3)):
            with pytest.raises(ValueError, match="X has 1073741825 samples; at most 1073741824"):
                call(X)

    def test_one_dimension(self) -> None:
        with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
            small().fit(np.arange(20.0))

    def test_three_dimensions(self) -> None:
        with pytest.raises(ValueError, match=r"dim 3|3 dim|3D"):
            small().fit(np.zeros((4, 4, 4)))

    @METHODS
    @pytest.mark.parametrize("n", [2, 3])
    def test_smallest_number_of_samples(self, n: int, method: str) -> None:
        # As many neighbours as the perplexity: reached, so no warning.
        tsne = small(perplexity=n - 1, method=method)
        assert_good_map(tsne.fit_transform(normal(n)), n)

    @METHODS
    def test_perplexity_that_few_samples_cannot_reach(self, method: str) -> None:
        with pytest.warns(RuntimeWarning, match=r"perplexity 2\.5 with 2 neighbours"):
            embedding = small(perplexity=2.5, method=method).fit_transform(normal(3))
        assert_good_map(embedding, 3)

    @pytest.mark.parametrize("perplexity", [60, 60.0, 1000])
    def test_perplexity_too_large(self, perplexity: float) -> None:
        message = rf"perplexity \({perplexity}\) must be less than n_samples \(60\)"
        with pytest.raises(ValueError, match=message):
            small(perplexity=perplexity).fit(normal())

    @pytest.mark.parametrize("method", ["barnes_hut", "exact"])
    @pytest.mark.parametrize("dims", [1, 2, 3])
    def test_one_feature(self, method: str, dims: int) -> None:
        # Fewer features than components: PCA cannot fill the layout.
        tsne = small(n_components=dims, method=method)
        assert_good_map(tsne.fit_transform(normal(60, 1)), 60, dims)

    def test_grid_of_three_dimensions(self) -> None:
        with pytest.raises(ValueError, match=r"n_components.*fft.*3"):
            small(n_components=3, method="fft").fit(normal())

    @pytest.mark.parametrize(("method", "limit"), [("barnes_hut", 4), ("fft", 3)])
    @pytest.mark.parametrize("dims", [4, 10])
    def test_too_many_components(self, method: str, limit: int, dims: int) -> None:
        message = rf"inferior to {limit} for method='{method}'; got n_components={dims}\. Use"
        with pytest.raises(ValueError, match=message):
            small(n_components=dims, method=method).fit(normal())


class TestType:
    @METHODS
    @pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint8, bool, np.float16])
    def test_other_numbers_are_converted(self, kind: npt.DTypeLike, method: str) -> None:
        X = normal() > 0 if kind is bool else (4 * np.abs(normal())).astype(kind)
        tsne = small(method=method)
        assert_good_map(tsne.fit_transform(X), 60)
        # What the map is made from is what the same numbers as float64 give; float32 holds all
        # halves and bytes.
        found = neighbors_by(tsne, X)
        exact_in = np.float32 if kind in (np.float16, np.uint8) else np.float64
        expected = neighbors_by(tsne, X.astype(exact_in))
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_array_equal(found.squared_distances, expected.squared_distances)

    def test_large_integers_keep_their_differences(self) -> None:
        # float32 has 24 bits: it would merge neighbouring integers here.
        X = np.random.default_rng(0).integers(0, 50, size=(60, 5))
        far = small().fit_transform(X + 2**30)
        np.testing.assert_array_equal(far, small().fit_transform((X + 2**30).astype(np.float64)))

    def test_lists(self) -> None:
        expected = small().fit_transform(normal())
        np.testing.assert_array_equal(small().fit_transform(normal().tolist()), expected)

    def test_complex(self) -> None:
        with pytest.raises(ValueError, match="Complex data not supported"):
            small().fit(normal() + 1j)

    def test_object_of_numbers(self) -> None:
        assert_good_map(small().fit_transform(normal().astype(object)), 60)

    def test_object_of_anything(self) -> None:
        X = normal().astype(object)
        X[3, 3] = {}
        with pytest.raises((TypeError, ValueError), match="dict"):
            small().fit(X)

    def test_text(self) -> None:
        with pytest.raises(ValueError, match="could not convert string to float"):
            small().fit(np.full((10, 2), "a"))

    def test_memory_order_and_strides_do_not_matter(self) -> None:
        X = normal()
        expected = small().fit_transform(X)
        wide = np.zeros((120, 10))
        wide[::2, ::2] = X
        for same in (np.asfortranarray(X), wide[::2, ::2], X[::-1][::-1]):
            np.testing.assert_array_equal(small().fit_transform(same), expected)

    def test_numbers_at_odd_bytes(self) -> None:
        X = normal()
        records = np.zeros(len(X), dtype=[("tag", "u1"), ("x", X.dtype, X.shape[1])])
        records["x"] = X
        assert with_whole_rows(records["x"]).flags.aligned
        expected = small().fit_transform(X)
        np.testing.assert_array_equal(small().fit_transform(records["x"]), expected)
        found = nearest_neighbors(records["x"], 5).distances
        np.testing.assert_array_equal(found, nearest_neighbors(X, 5).distances)

    def test_byte_order_does_not_matter(self) -> None:
        X = normal()
        swapped = X.astype(X.dtype.newbyteorder())
        np.testing.assert_array_equal(small().fit_transform(swapped), small().fit_transform(X))

    def test_read_only(self) -> None:
        X = normal()
        X.flags.writeable = False
        assert_good_map(small().fit_transform(X), 60)

    @pytest.mark.parametrize("dtype", [np.int32, np.float16, np.complex64, "O"])
    def test_layout_dtype(self, dtype: Any) -> None:
        with pytest.raises(ValueError, match=r"numpy\.float32 or numpy\.float64; got"):
            small(dtype=dtype).fit(normal())

    def test_layout_dtype_that_is_none(self) -> None:
        with pytest.raises(TypeError, match="got 'nonsense'"):
            small(dtype="nonsense").fit(normal())


class TestInit:
    @pytest.mark.parametrize("shape", [(59, 2), (60, 3), (60,), (60, 2, 1), (0, 2)])
    def test_wrong_shape(self, shape: tuple[int, ...]) -> None:
        with pytest.raises(ValueError, match="init has shape") as caught:
            small(init=np.zeros(shape)).fit(normal())
        assert str(shape) in str(caught.value)
        assert "(60, 2)" in str(caught.value)

    @DTYPES
    @pytest.mark.parametrize("size", [1e13, 1e30, 1e200, 1e308])
    def test_too_large(self, size: float, dtype: npt.DTypeLike) -> None:
        init = normal(60, 2)
        init[0, 0] = -size
        with pytest.raises(ValueError, match="init has a coordinate of size") as caught:
            small(init=init, dtype=dtype).fit(normal())
        assert f"{size:g}" in str(caught.value)
        assert "1e+12" in str(caught.value)

    @DTYPES
    @pytest.mark.parametrize("size", [1e-300, 1e-20, 1e6, 1e11])
    @METHODS
    def test_of_any_size(self, size: float, method: str, dtype: npt.DTypeLike) -> None:
        tsne = small(init=size * normal(60, 2), dtype=dtype, method=method)
        embedding = tsne.fit_transform(normal())
        assert np.isfinite(embedding).all()
        assert np.isfinite(tsne.kl_divergence_)

    @METHODS
    @pytest.mark.parametrize("place", [0.0, 3.5])
    def test_all_points_in_one_place(self, place: float, method: str) -> None:
        # They feel no force from each other until something parts them.
        tsne = small(init=np.full((60, 2), place), method=method)
        embedding = tsne.fit_transform(normal())
        assert_good_map(embedding, 60)
        assert len(np.unique(embedding, axis=0)) == 60

    @METHODS
    def test_some_points_in_one_place(self, method: str) -> None:
        init = 1e-4 * normal(60, 2)
        init[10:30] = init[10]
        embedding = small(init=init, method=method).fit_transform(normal())
        assert len(np.unique(embedding, axis=0)) == 60

    def test_integers(self) -> None:
        init = np.arange(120).reshape(60, 2)
        expected = small(init=init.astype(np.float32)).fit_transform(normal())
        np.testing.assert_array_equal(small(init=init).fit_transform(normal()), expected)

    def test_complex(self) -> None:
        with pytest.raises(ValueError, match="Complex data not supported"):
            small(init=normal(60, 2) + 1j).fit(normal())


class TestDuplicates:
    @METHODS
    @DTYPES
    @pytest.mark.parametrize("value", [0.0, 1.0, -1e9])
    def test_constant_data(self, value: float, method: str, dtype: npt.DTypeLike) -> None:
        with pytest.warns(RuntimeWarning, match="no row can reach perplexity 5"):
            embedding = small(method=method, dtype=dtype).fit_transform(np.full((60, 5), value))
        assert_good_map(embedding, 60)

    @METHODS
    def test_every_sample_many_times(self, method: str) -> None:
        # 20 copies each: more than the perplexity asked for.
        X = np.repeat(normal(6), 20, axis=0)
        with pytest.warns(RuntimeWarning, match="duplicates of each other"):
            embedding = small(method=method, max_iter=500).fit_transform(X)
        assert_good_map(embedding, 120)
        # Copies stay together: nearer to their own kind than to any other.
        centers = embedding.reshape(6, 20, 2).mean(axis=1)
        to_centers = np.linalg.norm(embedding[:, None] - centers[None], axis=-1)
        np.testing.assert_array_equal(to_centers.argmin(axis=1), np.repeat(np.arange(6), 20))

    @METHODS
    def test_a_few_duplicates(self, method: str) -> None:
        X = normal()
        X[20:23] = X[20]
        assert_good_map(small(method=method).fit_transform(X), 60)

    @METHODS
    def test_constant_but_for_one(self, method: str) -> None:
        X = np.zeros((60, 5))
        X[0] = 1
        with pytest.warns(RuntimeWarning, match="no row can reach perplexity 5"):
            embedding = small(method=method).fit_transform(X)
        assert_good_map(embedding, 60)


def at_the_limits_of(dtype: npt.DTypeLike) -> Array:
    """Make samples that are all different, most of whose distances are beyond their own type."""
    X = np.copysign(np.random.default_rng(1).uniform(0.9, 1, size=(60, 5)), normal())
    scaled: Array = (X * np.finfo(dtype).max).astype(dtype)
    return scaled


class TestScale:
    @METHODS
    @DTYPES
    @pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-30, 1e30, 1e150, 1e200, 1e307])
    def test_huge_and_tiny(self, scale: float, method: str, dtype: npt.DTypeLike) -> None:
        X = normal() * scale / np.abs(normal()).max()
        tsne = small(method=method, dtype=dtype)
        embedding = tsne.fit_transform(X)
        assert_good_map(embedding, 60)
        assert np.isfinite(tsne.kl_divergence_)
        # The unit of the data must not matter: as good as the map of the same data near 1.
        plain = small(method=method, dtype=dtype).fit(normal() / np.abs(normal()).max())
        assert tsne.kl_divergence_ < 1.25 * plain.kl_divergence_

    @pytest.mark.parametrize("scale", [1e-41, 1e-38, 1e-30, 1e30, 3e38])
    def test_float32_data(self, scale: float) -> None:
        X = (normal() / np.abs(normal()).max() * scale).astype(np.float32)
        assert_good_map(small().fit_transform(X), 60)

    @pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_distances_beyond_the_type_of_the_data(self, kind: Any, dtype: Any) -> None:
        X = kind(at_the_limits_of(dtype))
        tsne = small().fit(X)
        advice = "scale X down, or give it as float64" if dtype == np.float32 else "scale X down"
        for call in (
            lambda: nearest_neighbors(X, 30),
            lambda: nearest_neighbors(X, 30, metric="sqeuclidean"),
            lambda: tsne.transform(-X[:9]),
        ):
            with pytest.raises(ValueError, match=rf"beyond \S+, the largest \w+; {advice}$"):
                call()

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_distances_that_a_library_cannot_compute(self, dtype: Any) -> None:
        X = np.tile(at_the_limits_of(dtype), 4)  # features enough that it uses no tree
        tsne = small(metric="manhattan").fit(X / 100)
        for call in (
            lambda: nearest_neighbors(X, 30, metric="manhattan"),
            lambda: tsne.transform(-X),
        ):
            with pytest.raises(
                ValueError, match=r"not finite, for \d+ of 60 rows: .* scale X down"
            ):
                call()

    @METHODS
    def test_both_limits_of_float64(self, method: str) -> None:
        # Even a difference overflows here.
        X = np.where(normal() > 0, 1.7e308, -1.7e308)
        embedding = small(method=method).fit_transform(X)
        assert_good_map(embedding, 60)

    @METHODS
    def test_features_of_1e9_beside_1e_minus_9(self, method: str) -> None:
        X = normal() * [1e9, 1e-9, 1.0, 1e9, 1e-9]
        assert_good_map(small(method=method).fit_transform(X), 60)

    @METHODS
    def test_samples_of_1e9_beside_1e_minus_9(self, method: str) -> None:
        X = normal()
        X[:30] *= 1e9
        X[30:] *= 1e-9
        tsne = small(method=method)
        assert_good_map(tsne.fit_transform(X), 60)
        assert np.isfinite(tsne.kl_divergence_)

    @METHODS
    def test_one_outlier(self, method: str) -> None:
        X = normal()
        X[0] = 1e15
        tsne = small(method=method)
        assert_good_map(tsne.fit_transform(X), 60)
        assert np.isfinite(tsne.kl_divergence_)

    # The others are so close beside it that the squares of their distances vanish; saying that
    # they look like duplicates is right.
    @METHODS
    @pytest.mark.filterwarnings("ignore:no row can reach perplexity:RuntimeWarning")
    def test_one_outlier_beyond_measure(self, method: str) -> None:
        X = normal()
        X[0] = 1e200
        tsne = small(method=method)
        assert_good_map(tsne.fit_transform(X), 60)
        assert np.isfinite(tsne.kl_divergence_)

    @pytest.mark.parametrize(
        "parameters",
        [
            {"learning_rate": 1e-30},
            {"learning_rate": 1e10},
            {"learning_rate": 1e30},
            {"learning_rate": 1e300},
            {"early_exaggeration": 1e10},
            {"early_exaggeration": 1e30},
            {"early_exaggeration": 1e300},
        ],
    )
    @pytest.mark.parametrize("schedule", ["fast", "sklearn"])
    @METHODS
    def test_absurd_parameters(
        self, parameters: dict[str, float], schedule: str, method: str
    ) -> None:
        # Points may fly far apart, but not out of the numbers without a word.
        tsne = small(schedule=schedule, method=method, **parameters)
        refusal = None
        try:
            tsne.fit(normal())
        except ValueError as error:
            refusal = str(error)
        if refusal is None:
            assert np.isfinite(tsne.embedding_).all()
            assert np.isfinite(tsne.kl_divergence_)
        else:
            ((name, value),) = parameters.items()
            assert name in refusal
            assert f"{value:g}" in refusal


class TestPrecomputed:
    @staticmethod
    def distances() -> Array:
        X = normal()
        between: Array = np.sqrt(np.square(X[:, None] - X[None]).sum(axis=-1))
        return between

    @METHODS
    def test_negative(self, method: str) -> None:
        D = self.distances()
        D[3, 5] = D[5, 3] = -0.5
        with pytest.raises(ValueError, match=r"precomputed.*positive distances"):
            small(metric="precomputed", init="random", method=method).fit(D)

    @METHODS
    def test_not_square(self, method: str) -> None:
        with pytest.raises(ValueError, match=r"square distance matrix; got shape \(60, 59\)"):
            small(metric="precomputed", init="random", method=method).fit(self.distances()[:, :59])

    def test_init_by_pca(self) -> None:
        with pytest.raises(ValueError, match='init="pca" cannot be used with metric="precomputed"'):
            small(metric="precomputed").fit(self.distances())

    def test_sparse_and_exact(self) -> None:
        tsne = small(metric="precomputed", init="random", method="exact")
        with pytest.raises(TypeError, match='method="exact" does not accept sparse'):
            tsne.fit(csr_matrix(self.distances()))

    @METHODS
    @pytest.mark.parametrize("scale", [1e-300, 1e200, 1e308])
    def test_huge_and_tiny(self, scale: float, method: str) -> None:
        D = self.distances()
        tsne = small(metric="precomputed", init="random", method=method)
        assert_good_map(tsne.fit_transform(D / D.max() * scale), 60)

    @METHODS
    def test_diagonal_is_not_looked_at(self, method: str) -> None:
        tsne = small(metric="precomputed", init="random", method=method)
        D = self.distances()
        expected = tsne.fit_transform(D)
        np.testing.assert_array_equal(tsne.fit_transform(D + 1e-9 * np.eye(60)), expected)

    @METHODS
    def test_all_zero(self, method: str) -> None:
        tsne = small(metric="precomputed", init="random", method=method)
        with pytest.warns(RuntimeWarning, match="no row can reach perplexity 5"):
            assert_good_map(tsne.fit_transform(np.zeros((60, 60))), 60)


def test_a_failed_fit_leaves_the_estimator_usable() -> None:
    tsne = small()
    with pytest.raises(ValueError, match="NaN"):
        tsne.fit(np.full((60, 5), np.nan))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_good_map(tsne.fit_transform(normal()), 60)


@pytest.mark.parametrize(
    "take",
    [
        lambda P, X: small().fit(X).transform(P),
        lambda P, X: nearest_neighbors(P, 3),
        lambda P, X: Affinities.from_data(P),
        lambda P, X: init.pca(P),
        lambda P, X: quality.report(P, X[:, :2]),
        lambda P, X: quality.exact_kl(P, X[:, :2]),
        lambda P, X: quality.neighbor_preservation(P, X[:, :2]),
    ],
)
def test_affinities_are_no_data(take: Any) -> None:
    X = normal()
    with pytest.raises(TypeError, match=r"X must be .*is an Affinities; give what .*P=affinities"):
        take(Affinities.from_data(X, perplexity=5), X)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "minkowski"])
@pytest.mark.parametrize("features", [4, 40])
def test_parameters_that_a_metric_does_not_take(metric: str, features: int) -> None:
    with pytest.raises(ValueError, match=r"cannot be computed .*: .*'foo'"):
        small(metric=metric, metric_params={"foo": 1}).fit(normal(features=features))


@pytest.mark.parametrize(
    ("column", "fault"),
    [
        (pl.Series("wide", range(60), dtype=pl.Int128), "128"),
        (pl.Series("wide", [[1.0, 2.0]] * 60, dtype=pl.Array(pl.Float64, 2)), "several values"),
        (pl.Series("wide", [{"a": 1, "b": 2}] * 60), "several values"),
    ],
)
@pytest.mark.parametrize("others", [[], [pl.Series("fine", range(60))]])
def test_columns_that_are_no_numbers_are_named(
    column: pl.Series, fault: str, others: list[pl.Series]
) -> None:
    table = pl.DataFrame([*others, column])
    for take in (small().fit, lambda X: nearest_neighbors(X, 3)):
        with pytest.raises(ValueError, match=f"its column 'wide' .*{fault}"):
            take(table)


class Lying:
    """Rows of another type than their object says."""

    def __init__(self, values: Array) -> None:
        self.values, self.dtype, self.shape, self.ndim = values, np.dtype(float), values.shape, 2

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, i: int) -> Array:
        return cast(Array, self.values[i])


@pytest.mark.parametrize("kind", [str, object, np.int32])
def test_rows_of_another_type_than_is_said(kind: Any) -> None:
    X = normal().round()
    fitted = small().fit(X)
    for take in (small().fit, fitted.transform, init.pca, lambda X: nearest_neighbors(X, 3)):
        said = f"a Lying whose dtype is float64, and whose rows are of type {X.astype(kind).dtype}"
        with pytest.raises(TypeError, match=said):
            take(Lying(X.astype(kind)))
    assert (small().fit_transform(Lying(X)) == fitted.embedding_).all()


def test_names_of_files_are_text_or_bytes(tmp_path: Path) -> None:
    fitted = small().fit(normal())
    path = tmp_path / "map.npz"
    fitted.save(cast(Any, os.fsencode(path)))
    assert (TSNE.load(path).embedding_ == fitted.embedding_).all()
    with pytest.raises(TypeError, match=r"path must be a str, bytes or os\.PathLike; got 3"):
        fitted.save(cast(Any, 3))


@pytest.mark.parametrize("seed", ["x", -1, 0.5])
def test_seeds_that_are_none(seed: Any) -> None:
    X = normal()
    said = "random_state must be an integer, not negative, or None; got "
    with pytest.raises(ValueError, match=said):
        quality.report(X, X[:, :2], n_neighbors=5, perplexity=5, random_state=seed)
    with pytest.raises(ValueError, match=said):
        quality.force_error(X[:, :2], random_state=seed)
