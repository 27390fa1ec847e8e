"""The paper's evaluation: pages agree with the records, runs go on, failures are shown."""

import gzip
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from hashlib import md5
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from acctsne import quality

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "paper"


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the modules of the benchmarks importable, and forget them afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    yield
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(ROOT / "benchmarks")):
            del sys.modules[name]


def paper(folder: Path, *arguments: str) -> str:
    """Run the program on little data and return the page."""
    program: Any = import_module("paper")
    assert program.main(["--quick", "--output", str(folder), *arguments]) == 0
    return (folder / "paper.md").read_text()


def records(folder: Path) -> dict[str, dict[str, Any]]:
    found = sorted((folder / "records").glob("*/*/*.json"))
    return {str(path.relative_to(folder)): json.loads(path.read_text()) for path in found}


def test_pages_agree_with_the_records() -> None:
    page: Any = import_module("evaluation.page")
    plan = import_module("evaluation.plan").FULL
    store = import_module("evaluation.records").Store(RESULTS)
    for path, text in page.pages(store, plan.as_measured(store), ROOT).items():
        assert path.read_text() == text, f"{path}: run benchmarks/paper.py --render"


def test_the_page_says_where_all_is() -> None:
    text = (ROOT / "docs" / "paper.md").read_text()
    places = set(re.findall(r"\]\(#([^)]*)\)", text))
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    # As pages make anchors of headings: other signs are left out.
    assert places == {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in headings}
    for each in ("Table 3", "Table 4", "Tables 5 and 6", "Table S1", "Figure 4", "Figures 5 and 6"):
        assert f"- {each}" in text, each


def test_iterations_are_the_same_on_all_pages() -> None:
    pages = [ROOT / name for name in ("docs/performance.md", "README.md", "CHANGELOG.md")]
    performance, *others = (" ".join(path.read_text().split()) for path in pages)
    (told,) = re.findall(r"Data sets take (\d+ to \d+ iterations)", performance)
    assert all(told in text for text in others), f"{told}, docs/performance.md says"


def test_figures_of_the_paper_stand_where_there_is_no_data(tmp_path: Path) -> None:
    accuracy: Any = import_module("evaluation.accuracy")
    module: Any = import_module("evaluation.records")
    plans: Any = import_module("evaluation.plan")
    store = module.Store(tmp_path)
    plan = replace(plans.FULL, datasets=(plans.SVHN,), threads=2)
    reason = {"reason": "nobody gave it"}
    key = plan.fit(plans.SVHN, plans.OURS)
    store.write(module.Record(key, "no data", reason, {}, "", "2026-01-01T00:00"))
    text = accuracy.text(store, plan)
    assert "**SVHN**: not yet measured: nobody gave it." in text
    assert "scikit-learn 4.305, daal4py 4.283, Acc-t-SNE 4.387." in text


def test_pages_have_their_pictures() -> None:
    page = (ROOT / "docs" / "paper.md").read_text()
    pictures = (ROOT / "docs" / "images" / "paper").glob("*.png")
    assert all(f"images/paper/{path.name}" in page for path in pictures)


def test_quick_run_that_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ("--only", "end-to-end,accuracy,maps", "--datasets", "digits")
    ours = (*ask, "--contestants", "acctsne,multicoretsne,fitsne")
    page = paper(tmp_path, *ours, "--at-most", "1")
    first = records(tmp_path)
    assert len(first) == 1
    assert "not yet measured" in page
    assert "images/paper/end-to-end.png" in page
    paper(tmp_path, *ours, "--kinds", "fit")
    assert [record["key"]["kind"] for record in records(tmp_path).values()] == ["fit"] * 3
    capsys.readouterr()
    page = paper(tmp_path, *ours)
    shown = capsys.readouterr().err
    # What the present measurement and all that are to come will take, by estimate and by the pace.
    assert re.search(r"judgement of acctsne on 300 of digits, .*about \d+ s of \d+ s", shown)
    assert re.search(r"map of acctsne.* \|.*\| \d\d:\d\d passed, \d\d:\d\d left", shown)
    second = records(tmp_path)
    # What was there has stayed as it was, to the minute and the digit.
    assert all(second[name] == record for name, record in first.items())
    kinds = [Path(name).parts[1] for name in second]
    assert {kind: kinds.count(kind) for kind in kinds} == {"fit": 3, "judgement": 1, "map": 1}
    assert "hence absent from all tables: FIt-SNE, MulticoreTSNE" in page
    capsys.readouterr()
    paper(tmp_path, *ours, "--plan")
    assert capsys.readouterr().out.count(": 0 measurements") == 3
    (judged,) = (record for name, record in second.items() if "judgement" in name)
    assert f"{judged['figures']['exact_kl']:.4f}" in page
    assert (tmp_path / "images" / "paper" / "maps-digits.png").stat().st_size > 1000
    for record in second.values():
        assert record["environment"]["cpu"]
        assert record["command"].startswith("python benchmarks/paper.py --only ")


@pytest.mark.parametrize(
    ("fit", "said", "belongs"),
    [
        # The digest of the map decides, whatever the dates: a fit that was repeated may lead to the
        # same map.
        (("12:00", "a"), ("11:00", "a"), True),
        (("12:00", "a"), ("13:00", "b"), False),
        # Without it in both, dates do.
        (("12:00", None), ("12:00", None), True),
        (("12:00", None), ("11:59", None), False),
        (("12:00", "a"), ("13:00", None), True),
        (("12:00", "a"), ("11:00", None), False),
    ],
)
@pytest.mark.parametrize("kind", ["judgement", "map"])
def test_what_is_said_of_another_map_is_missing(
    tmp_path: Path,
    kind: str,
    fit: tuple[str, str | None],
    said: tuple[str, str | None],
    belongs: bool,
) -> None:
    module: Any = import_module("evaluation.records")
    store = module.Store(tmp_path)
    key = module.Key("fit", "digits", 300, "acctsne", "float32", 2, 260)
    for name, (time, digest) in (("fit", fit), (kind, said)):
        figures = {"exact_kl": 1.0} | ({"map_digest": digest} if digest else {})
        date = f"2026-01-01T{time}+00:00"
        store.write(module.Record(key.of(kind=name), "ok", figures, {}, "", date))
    for opened in (store, module.Store(tmp_path)):
        assert (opened.get(key.of(kind=kind)) is not None) == belongs
        assert (opened.figure(key.of(kind=kind), "exact_kl") is not None) == belongs
        assert opened.get(key) is not None
        assert len(list(opened)) == 1 + belongs


def test_a_judgement_of_an_earlier_fit_is_made_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = ("--only", "accuracy,maps", "--datasets", "digits", "--contestants", "acctsne")
    paper(tmp_path, *ask)
    first = {record["key"]["kind"]: record for record in records(tmp_path).values()}
    assert len({record["figures"]["map_digest"] for record in first.values()}) == 1
    # A fit that led to another map, as on another machine, whose file is not here.
    fit = first["fit"]
    fit["figures"] |= {"map_digest": "another", "iterations": 10, "reported_kl": 9.0}
    (path,) = (tmp_path / "records" / "fit").glob("*/*.json")
    path.write_text(json.dumps(fit))
    capsys.readouterr()
    paper(tmp_path, *ask, "--plan")
    told = capsys.readouterr().out
    assert "accuracy: 1 measurements" in told
    assert "judgement of acctsne on 300 of digits" in told
    assert "maps: 1 measurements" in told
    # All that is then made is of one map again.
    page = paper(tmp_path, *ask)
    second = {record["key"]["kind"]: record for record in records(tmp_path).values()}
    assert len({record["figures"]["map_digest"] for record in second.values()}) == 1
    assert "9.0000" not in page
    assert f"{second['fit']['figures']['reported_kl']:.4f}" in page


def test_fits_in_turn_take_the_place_of_earlier_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "records" / "fit" / "digits-300"
    ask = ("--alternate", "digits", "--contestants", "acctsne,sklearn")
    paper(tmp_path, "--only", "end-to-end", "--datasets", "digits", "--contestants", "acctsne")
    (path,) = folder.glob("*.json")
    earlier = json.loads(path.read_text())
    # Of another day, and once more than is asked for now.
    earlier["date"] = "2026-01-01T00:00+00:00"
    for repeat in range(3):
        earlier["key"]["repeat"] = repeat
        path.with_name(path.name.replace("-0.json", f"-{repeat}.json")).write_text(
            json.dumps(earlier)
        )
    capsys.readouterr()
    paper(tmp_path, *ask, "--plan")
    assert "--alternate digits --contestants acctsne,sklearn: 4 measurements" in (
        capsys.readouterr().out
    )
    page = paper(tmp_path, *ask)
    made = records(tmp_path).values()
    assert sorted((r["key"]["contestant"], r["key"]["repeat"]) for r in made) == [
        ("acctsne", 0),
        ("acctsne", 1),
        ("sklearn", 0),
        ("sklearn", 1),
    ]
    assert all(record["date"] > "2026-01-01T00:00+00:00" for record in made)
    assert {record["command"] for record in made} == {f"python benchmarks/paper.py {' '.join(ask)}"}
    assert "**" not in next(line for line in page.splitlines() if line.startswith("| scikit-learn"))


def test_fits_in_turn_need_all_contestants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program: Any = import_module("paper")
    monkeypatch.setattr(program, "installed", lambda contestant: contestant != "sklearnex")
    with pytest.raises(SystemExit, match="scikit-learn-intelex, float32 cannot be imported"):
        program.main(["--quick", "--output", str(tmp_path), "--alternate", "digits"])
    assert not records(tmp_path)


def test_fits_that_are_hours_apart_are_marked(tmp_path: Path) -> None:
    end_to_end: Any = import_module("evaluation.end_to_end")
    plan_module: Any = import_module("evaluation.plan")
    module: Any = import_module("evaluation.records")
    store = module.Store(tmp_path)
    plan = replace(plan_module.QUICK, threads=2)
    data = plan.datasets[0]

    def fitted(entry: Any, repeat: int, time: str) -> None:
        key = plan.fit(data, entry).of(repeat=repeat)
        date = f"2026-01-01T{time}+00:00"
        store.write(module.Record(key, "ok", {"seconds": 1.0, "iterations": 9}, {}, "", date))

    def marks() -> list[str]:
        (text,) = (part for part in end_to_end.section(store, plan, data, 2) if "| hours" in part)
        return [line.split("|")[5].strip() for line in text.splitlines()[2:]]

    assert marks() == ["-"] * 5
    fitted(plan_module.OURS, 0, "10:00")
    fitted(plan_module.OURS, 1, "10:30")
    fitted(plan_module.OURS_DOUBLE, 0, "10:30")
    fitted(plan_module.SKLEARN, 0, "11:00")
    assert marks()[:3] == ["-", "0", "0.5"]
    # One fit of another run is enough.
    fitted(plan_module.SKLEARN, 1, "03:00")
    assert marks()[:3] == ["-", "0", "**7.0**"]


def test_a_contestant_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "modules"
    broken.mkdir()
    text = "def MulticoreTSNE(**options):\n    raise RuntimeError('broken on purpose')\n"
    (broken / "MulticoreTSNE.py").write_text(text)
    ask = ("--only", "end-to-end", "--datasets", "digits", "--contestants", "multicoretsne")
    monkeypatch.syspath_prepend(broken)  # of this process
    monkeypatch.setenv("PYTHONPATH", str(broken))  # of the contestant's
    page = paper(tmp_path, *ask)
    (record,) = records(tmp_path).values()
    assert record["status"] == "failed"
    assert "MulticoreTSNE failed on 300 rows of digits: RuntimeError: broken on purpose." in page
    assert " failed |" in page


def test_what_is_not_here_leaves_what_was_measured_elsewhere(tmp_path: Path) -> None:
    module: Any = import_module("evaluation.records")
    store = module.Store(tmp_path / "records")
    plan = import_module("evaluation.plan")
    key = plan.QUICK.fit(plan.QUICK.datasets[0], plan.MULTICORE)
    figures = {"seconds": 7.25, "iterations": 260}
    store.write(module.Record(key, "ok", figures, {"cpu": "another"}, "", "2026-01-01T00:00"))
    ask = ("--only", "end-to-end", "--datasets", "digits", "--contestants", "multicoretsne")
    page = paper(tmp_path, *ask, "--again")
    (record,) = records(tmp_path).values()
    assert record["status"] == "ok"
    assert "7.25" in page


def test_records_of_another_environment_are_told() -> None:
    module: Any = import_module("evaluation.records")
    page: Any = import_module("evaluation.page")
    entries = [("acctsne", "float32", n) for n in range(3)]

    class Kept(list[Any]):
        """Records without a folder."""

    def record(repeat: int, commit: str, busy: float) -> Any:
        key = module.Key("fit", "digits", 300, "acctsne", "float32", 2, 260, repeat)
        return module.Record(key, "ok", {}, {"commit": commit}, "", "2026-01-01T00:00", busy)

    told = page.environment(Kept(record(n, "abc", 0.0) for *_, n in entries))
    assert "another commit" not in told
    assert "was not merged" not in told
    assert "not to be trusted" not in told
    told = page.environment(Kept([record(0, "abc", 0), record(1, "abc", 0), record(2, "def", 1)]))
    assert "**With another commit than abc, 1 of 3 records:** 1 of acctsne (digits)." in told
    assert "abc, and 1 more |" in told
    assert "was not merged" in told
    assert "during 1 fits, whose times are not to be trusted" in told


def made(store: Any, key: Any, **figures: Any) -> None:
    module: Any = import_module("evaluation.records")
    figures = {"seconds": 1.0, "knn_seconds": 0.0, "iterations": 1000, **figures}
    store.write(module.Record(key, "ok", figures, {"cpu": "some"}, "", "2026-01-01T00:00", 0.0))


def test_who_takes_too_long_gets_a_part(tmp_path: Path) -> None:
    contest: Any = import_module("evaluation.contest")
    estimate: Any = import_module("evaluation.estimate")
    module: Any = import_module("evaluation.plan")
    store: Any = import_module("evaluation.records").Store(tmp_path)
    data = module.SYNTHETIC
    plan = replace(module.FULL, entries=(module.OURS, module.SKLEARN), threads=2)
    # Nothing is known: a few rows first.
    probe = plan.fit(data, module.SKLEARN, 10_000)
    keys = contest.contest(store, plan, data, 2)
    assert probe in keys
    assert plan.fit(data, module.SKLEARN) not in keys
    # All pairs in 1 s for 10000 rows are 16676 s for 1291337, and 400 s, too much, for 200000.
    made(store, probe, seconds=1.0, knn_seconds=1.0)
    assert contest.part_key(data, 2) in contest.contest(store, plan, data, 2)
    decision = estimate.decide(store, plan, data, 2)
    assert decision["predicted"] == {"sklearn/float32": [10_000, 16_676]}
    assert decision["rows"] == 100_000
    made(store, contest.part_key(data, 2), **decision)
    keys = contest.contest(store, plan, data, 2)
    assert plan.fit(data, module.SKLEARN) not in keys
    assert {plan.fit(data, entry, 100_000) for entry in plan.entries} <= set(keys)
    made(store, plan.fit(data, module.SKLEARN, 100_000), seconds=100.0)
    made(store, plan.fit(data, module.OURS, 100_000), seconds=2.0)
    text = "\n".join(import_module("evaluation.end_to_end").section(store, plan, data, 2))
    assert "about 1,578, from 100,000 rows" in text
    assert "first 100,000 of 1,291,337 rows" in text
    assert "50.0" in text
    # It has no iterations, and never will; ours on all rows is still to come.
    (line,) = (line for line in text.splitlines() if "about 1,578" in line)
    assert line.split("|")[-2].strip() == "-"
    assert text.count("not yet measured") == 2  # its seconds and iterations


def test_extrapolations_are_from_most_rows_on_as_many_threads(tmp_path: Path) -> None:
    end_to_end: Any = import_module("evaluation.end_to_end")
    contest: Any = import_module("evaluation.contest")
    module: Any = import_module("evaluation.plan")
    store: Any = import_module("evaluation.records").Store(tmp_path)
    data = module.SYNTHETIC
    plan = replace(module.FULL, entries=(module.SKLEARNEX,), threads=2)
    decision = {"rows": 10_000, "predicted": {"sklearnex/float32": [10_000, 16_676]}}
    for threads in (1, 2):
        made(store, contest.part_key(data, threads), most_seconds=1800.0, **decision)
        few = plan.fit(data, module.SKLEARNEX, 10_000, threads)
        made(store, few, seconds=3.0 / threads, knn_seconds=3.0 / threads)
    # Another fit on two threads says more, and nothing about one.
    made(store, plan.fit(data, module.SKLEARNEX, 100_000), seconds=10.0, knn_seconds=10.0)
    one, two = ("\n".join(end_to_end.section(store, plan, data, n)) for n in (1, 2))
    assert "about 50,027, from 10,000 rows" in one
    assert "about 1,668, from 100,000 rows" in two
    assert "25,013 s from 10,000, 1,668 s from 100,000" in two
    assert "depends on the rows" not in one


def test_small_data_is_told_once_it_is_measured(tmp_path: Path) -> None:
    small: Any = import_module("evaluation.small")
    convergence: Any = import_module("evaluation.convergence")
    summaries: Any = import_module("evaluation.summaries")
    module: Any = import_module("evaluation.plan")
    store: Any = import_module("evaluation.records").Store(tmp_path)
    digits = module.DIGITS
    part = (digits, 500)
    plan = replace(module.FULL, threads=2, small=(part,), curve_of_ours=(part,))
    page = "a\n<!-- small: made by benchmarks/paper.py -->\n\ntyped\n\n<!-- end of small -->\nb\n"
    regions = {"small": small.region}
    keys = [plan.fit(digits, entry, 500) for entry in (module.OURS, module.SKLEARNEX)]
    made(store, keys[0], seconds=0.5, reported_kl=1.0, peak_bytes=1e6)
    # What is there stays until all is known.
    assert summaries.with_regions(page, regions, store, plan) == page
    assert small.text(store, plan) == "digits, random 500 of 1,797 rows: not yet measured."
    assert convergence.told(store, plan) is None
    made(store, keys[1], seconds=4.0, reported_kl=2.0, peak_bytes=2e6)
    for key in keys:
        made(store, key.of(kind="judgement"), exact_kl=1.5, force_error=0.01)
    written = summaries.with_regions(page, regions, store, plan)
    assert "typed" not in written
    (line,) = (line for line in written.splitlines() if "500: scikit-learn-intelex" in line)
    cells = [cell.strip() for cell in line.split("|")[1:-1]]
    assert cells[1:7] == ["0", "4.00", "8.00", "4.00", "8.00", "1.5000"]
    made(store, convergence.ours_key(plan, part), seconds=[0.1, 0.2], kl=[2.0, 1.4])
    assert "after 0.20 of the 4.00 s" in convergence.told(store, plan)
    assert "20.0 times as fast" in convergence.told(store, plan)


def test_steps_and_total_are_of_one_fit(tmp_path: Path) -> None:
    steps: Any = import_module("evaluation.steps")
    growth: Any = import_module("evaluation.growth")
    module: Any = import_module("evaluation.plan")
    store: Any = import_module("evaluation.records").Store(tmp_path)
    plan = replace(module.FULL, threads=2)
    key = plan.fit(module.SYNTHETIC, module.OURS, 1_000_000)
    for repeat, seconds in enumerate((30.0, 10.0, 20.0)):
        timings = {"attractive": seconds / 2, "recall": 1.0}
        more = {"timings": timings, "reported_kl": 1.0, "peak_bytes": 1e9}
        made(store, key.of(repeat=repeat), seconds=seconds, **more)
    assert store.middle(key).key.repeat == 2
    for text in (steps.text(store, plan), growth.largest(store, plan)):
        lines = [line for line in text.splitlines() if " 10.0 |" in line]
        assert [line.split()[1] for line in lines] == ["attractive"]
        assert " 20.0 |" in text
        assert " 30.0 |" not in text


def test_kl_of_large_maps_is_that_of_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    referee: Any = import_module("referee")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    Y = 20 * X[:, :2] + rng.normal(size=(600, 2))
    P = quality.affinities(X)
    exact = referee.exact_kl(P, Y, 2)
    monkeypatch.setattr(referee, "ALL_PAIRS", 100)
    by_grid = referee.exact_kl(P, Y, 2)
    assert by_grid != exact
    assert by_grid == pytest.approx(exact, rel=1e-3)


def prediction_store(folder: Path, rows: int = 1_000_000) -> tuple[Any, Any, Any]:
    """Return a store, a plan with one prediction, and what keeps that in the store."""
    module: Any = import_module("evaluation.records")
    plans: Any = import_module("evaluation.plan")
    plan = replace(plans.QUICK, predicted=((plans.SYNTHETIC, rows),))
    (key,) = import_module("evaluation.scaling").prediction_keys(plan)
    store = module.Store(folder)

    def keep(figures: dict[str, Any], environment: dict[str, str]) -> None:
        store.write(module.Record(key, "ok", figures, environment, "", "2026-01-02T03:04+00:00"))

    return store, plan, keep


def test_a_quick_run_predicts(tmp_path: Path) -> None:
    ask = ("--only", "scaling", "--datasets", "digits", "--kinds", "prediction")
    page = paper(tmp_path, *ask)
    (record,) = records(tmp_path).values()
    assert record["status"] == "ok", record["figures"]
    assert record["key"]["kind"] == "prediction"
    assert "**digits, 300 x 64**" in page
    assert "| whole fit" in page


@pytest.mark.parametrize(("at_two", "shown"), [(5.2, True), (7.0, False)])
def test_predictions_are_shown_if_they_hold(tmp_path: Path, at_two: float, shown: bool) -> None:
    scaling: Any = import_module("evaluation.scaling")
    store, plan, keep = prediction_store(tmp_path)
    entry = {
        "steps": {
            "attractive": {"1": 10.0, "2": at_two, "32": 0.4},
            "update": {"1": 3.0, "2": 1.5, "32": 0.2},
        },
        "measured": {"attractive": {"1": 10.0, "2": 5.0}, "update": {"1": 3.0, "2": 1.5}},
    }
    assert "not yet measured" in scaling.predicted(store, plan)[0]
    keep(entry, {})
    text = "\n".join(scaling.predicted(store, plan))
    assert ("25.0" in text) == shown
    assert "15.0" in text
    assert "(2026-01-02, commit not recorded)" in text
    # Below the paper's 28.7, but not known why.
    why = "attractive is 25.0 times as fast, the paper's 28.7 times; what limits it is not yet"
    assert (why in text) == shown
    assert ("No figure is below the paper's" in text) != shown


def test_predictions_tell_what_they_rest_on(tmp_path: Path) -> None:
    scaling: Any = import_module("evaluation.scaling")
    store, plan, keep = prediction_store(tmp_path)
    causes = ("serial stretches", "memory bandwidth")
    entry = {
        "steps": {
            "attractive": {"1": 30.0, "2": 15.0, "32": 1.0},
            "repulsive, tree": {"1": 40.0, "2": 20.0, "32": 2.0},
            "repulsive": {"1": 60.0, "2": 30.0, "32": 6.0},
            "repulsive: spread": {"1": 40.0, "2": 20.0, "32": 2.0},
            "repulsive: gather": {"1": 20.0, "2": 10.0, "32": 4.0},
            "update": {"1": 10.0, "2": 8.0},
        },
        "measured": {
            "attractive": {"1": 30.0, "2": 15.0},
            "repulsive, tree": {"1": 40.0, "2": 20.0},
            "repulsive": {"1": 60.0, "2": 30.0},
            "repulsive: spread": {"1": 40.0, "2": 20.0},
            "repulsive: gather": {"1": 20.0, "2": 10.0},
            "update": {"1": 10.0, "2": 5.0},
        },
        "whole_fit": {"1": 100.0, "2": 53.0, "32": 10.0},
        "measured_whole_fit": {"1": 100.0, "2": 50.0},
        "limits": {
            "attractive": dict(zip(causes, (0.0, 0.5), strict=True)),
            "repulsive, tree": dict(zip(causes, (0.4, 0.5), strict=True)),
            "repulsive": dict(zip(causes, (3.0, 1.0), strict=True)),
            "repulsive: spread": dict(zip(causes, (0.5, 1.0), strict=True)),
            "repulsive: gather": dict(zip(causes, (2.5, 0.0), strict=True)),
            "update": dict(zip(causes, (0.5, 4.0), strict=True)),
            "whole fit": dict(zip(causes, (3.5, 5.5), strict=True)),
        },
    }
    keep(entry, {"commit": "abc1234"})
    text = "\n".join(scaling.predicted(store, plan))
    title = "**synthetic cells, first 1,000,000 of 1,291,337 rows**"
    assert f"{title} (2026-01-02, commit abc1234)" in text
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ")]
    last = {step.strip(): [cell.strip() for cell in cells[-3:]] for step, *cells in rows}
    assert last["attractive"] == ["30.0", "-", "28.7"]
    # The paper's repulsion is by tree; it has none by grid.
    assert last["repulsive, tree"] == ["20.0", "-", "28.1"]
    assert last["repulsive"] == ["10.0", "-", "-"]
    assert "take 10.0% of its seconds on one thread: update." in text
    limits = [line for line in text.splitlines() if line.startswith("- ")]
    assert limits == [
        "- The repulsion by tree is 20.0 times as fast, the paper's 28.1 times. It loses most to "
        "the bandwidth of memory, without which it would take 25% less time.",
        "- The repulsion of the default fit is 10.0 times as fast. It loses most to stretches that "
        "one thread does alone, without which it would take 50% less time, most of it in "
        '"repulsive: gather".',
        "- The whole fit is 10.0 times as fast, the paper's 22 times. It loses most to the "
        'bandwidth of memory, without which it would take 55% less time, most of it in "update".',
    ]
    # Of another number of points the paper has no such figures; what limits ours is told.
    store, plan, keep = prediction_store(tmp_path / "smaller", 70_000)
    keep(entry, {})
    text = "\n".join(scaling.predicted(store, plan))
    assert "The paper has no such figures for data of this size." in text
    assert "paper, 32 cores" not in text
    limits = [line for line in text.splitlines() if line.startswith("- ")]
    assert [line.split(".")[0] for line in limits] == [
        "- The repulsion of the default fit is 10",
        "- The whole fit is 10",
    ]
    assert not any("the paper's" in line for line in limits)


def test_iterations_are_told_from_their_file(tmp_path: Path) -> None:
    iterations: Any = import_module("evaluation.iterations")

    def entry(data: str, reached: int | None, difference: float, **more: str) -> dict[str, Any]:
        figures = {"reached": reached, "ends_after": 200, "exact_kl": 1.0, "reference_kl": 1.1}
        figures |= {"difference": difference, "ranks": 0.5, "reference_ranks": 0.25}
        return {"data": data, **more, "figures": {**figures, "curve": {"100": 1.5}}}

    path = tmp_path / "descent.json"
    assert "not yet measured" in iterations.text(iterations.read(path))
    made = {"date": "2026-01-01", "commit": "abc", "cpu": "some"}
    first = [entry("a, 10 x 2", 90, -1.0), entry("b, 20 x 2", 140, -2.0), entry("noise", None, 3.0)]
    iterations.write(path, first)
    iterations.write(path, [entry("a, 10 x 2", 80, -1.5, **made)])
    found = iterations.read(path)
    assert [each["data"] for each in found] == ["a, 10 x 2", "b, 20 x 2", "noise"]
    text = iterations.text(found)
    assert "Data sets take 80 to 140 iterations" in text
    assert "Above it end: noise by 3.0 %." in text
    assert "is 0.500 against 0.250" in text
    assert "some, 2026-01-01, commit abc; processor not recorded, date not recorded" in text
    (line,) = (line for line in text.splitlines() if line.startswith("| noise"))
    cells = [cell.strip() for cell in line.split("|")[1:-1]]
    assert cells[:6] == ["noise", "-", "200", "1.0000", "1.1000", "+3.0"]
    assert cells[12:14] == ["+1.5", "-"]
    assert iterations.means(found)["figures"]["reached"] == 110


@pytest.mark.parametrize(("seconds", "longer"), [(50.0, True), (30.0, False)])
def test_steps_that_take_longer_than_the_papers_are_explained(
    tmp_path: Path, seconds: float, longer: bool
) -> None:
    steps: Any = import_module("evaluation.steps")
    plan: Any = import_module("evaluation.plan")
    store: Any = import_module("evaluation.records").Store(tmp_path)
    timings = {"tree_building": seconds, "summarization": 5.0, "repulsive": 250.0}
    assert steps.longer(store, plan.FULL) == []
    key = plan.FULL.fit(plan.SYNTHETIC, plan.OURS_AS_PAPER, 1_000_000, 1)
    made(store, key, seconds=600.0, timings=timings)
    text = "".join(steps.longer(store, plan.FULL))
    assert ("tree building, 50.0 s against 39.0." in text) == longer
    assert "summarisation, 5.0" not in text
    assert "float32" not in text
    key = plan.FULL.fit(plan.SYNTHETIC, plan.OURS_TREE, threads=1)
    made(store, key, timings={**timings, "tree_building": 0.129_133_7 * seconds}, iterations=100)
    assert (f"{seconds:.0f} and" in "".join(steps.longer(store, plan.FULL))) == longer


def test_svhn_as_openml_gives_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Files in the form and at the places at which scikit-learn keeps what it has fetched.
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, size=(12, 3072))
    y = rng.integers(1, 11, size=12)
    names = [f"a{i}" for i in range(3072)]
    lines = ["@RELATION SVHN", *(f"@ATTRIBUTE {name} REAL" for name in names)]
    lines += ["@ATTRIBUTE class {1,2,3,4,5,6,7,8,9,10}", "@DATA"]
    lines += [",".join(map(str, [*row, label])) for row, label in zip(X, y, strict=True)]
    arff = "\n".join(lines).encode()
    listed = {"did": 41081, "name": "SVHN", "version": 1, "status": "active", "format": "ARFF"}
    description = {
        "id": "41081",
        "name": "SVHN",
        "version": "1",
        "format": "ARFF",
        "file_id": "18238654",
        "url": "https://www.openml.org/data/v1/download/18238654/SVHN.arff",
        "default_target_attribute": "class",
        "status": "active",
        "md5_checksum": md5(arff).hexdigest(),
    }
    features = [
        {"index": str(i), "name": name, "data_type": "numeric", "is_target": "false"}
        for i, name in enumerate(names)
    ]
    features.append({"index": "3072", "name": "class", "data_type": "nominal", "is_target": "true"})
    for feature in features:
        feature |= {"is_ignore": "false", "is_row_identifier": "false"}
        feature["number_of_missing_values"] = "0"
    qualities = [{"name": "NumberOfInstances", "value": "12"}]
    api = "api/v1/json/data"
    found = {"data": {"dataset": [listed]}}
    files = {
        f"{api}/list/data_name/svhn/limit/2/data_version/1": json.dumps(found).encode(),
        f"{api}/41081": json.dumps({"data_set_description": description}).encode(),
        f"{api}/features/41081": json.dumps({"data_features": {"feature": features}}).encode(),
        f"{api}/qualities/41081": json.dumps({"data_qualities": {"quality": qualities}}).encode(),
        "data/v1/download/18238654/SVHN.arff": arff,
    }
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.delenv("ACCTSNE_DATA", raising=False)
    for host in ("api.openml.org", "www.openml.org", "openml.org"):
        for name, content in files.items():
            path = tmp_path / "openml" / host / f"{name}.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress(content))
    data = import_module("datasets").load("svhn")
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.labels, np.unique(y.astype(str), return_inverse=True)[1])
