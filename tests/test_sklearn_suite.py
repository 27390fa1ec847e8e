"""scikit-learn's own tests of its TSNE class, as installed, run against acctsne.TSNE."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent

# Tests of sklearn.manifold.TSNE that a drop-in cannot or need not pass, with the reason.
EXCLUDED = {
    "test_verbose": "reads scikit-learn's wording from stdout; acctsne logs to `logging`",
    "test_n_iter_without_progress": "reads scikit-learn's wording from stdout",
    "test_accessible_kl_divergence": "reads the KL divergence from scikit-learn's printed lines",
    "test_init_ndarray": (
        "expects that points put in one place stay there, as constant data; acctsne moves them "
        "apart and warns that no row can reach the perplexity"
    ),
    "test_max_iter_used": "expects a fit to go on to max_iter; acctsne ends it when it is done",
    "test_tsne_with_different_distance_metrics": (
        "asks for the same bits from distances that differ in the last one"
    ),
    "test_tsne": (
        "asks for six decimals of a map from distances that differ in the last bit: as many as a "
        "descent that has come to rest gives, not one that ends when the map is done"
    ),
}

# Tests in the same file that never touch the class: helpers of scikit-learn's own implementation,
# and trustworthiness().
NOT_THE_CLASS = {
    "test_answer_gradient_four_points",
    "test_answer_gradient_two_points",
    "test_barnes_hut_angle",
    "test_binary_perplexity_stability",
    "test_binary_search",
    "test_binary_search_neighbors",
    "test_binary_search_underflow",
    "test_gradient",
    "test_gradient_bh_multithread_match_sequential",
    "test_gradient_descent_stops",
    "test_skip_num_points_gradient",
    "test_trustworthiness",
    "test_trustworthiness_n_neighbors_error",
    "test_trustworthiness_not_euclidean_metric",
}


def function_of(test: str) -> str:
    return test.split("[")[0]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("suite")
    settings = folder / "pytest.ini"
    # Their warnings are judged by their settings, not by ours.
    settings.write_text("[pytest]\n")
    written = folder / "report.json"
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "sklearn_suite_plugin", "-p",
        "no:cacheprovider", "-c", str(settings), "--rootdir", str(folder), "--pyargs",
        "sklearn.manifold.tests.test_t_sne",
        "sklearn.neighbors.tests.test_neighbors_pipeline",
        "-k", "test_t_sne or test_tsne",
    ]  # fmt: skip
    process = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(HERE), "ACCTSNE_SUITE_REPORT": str(written)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert written.exists(), process.stdout + process.stderr
    found: dict[str, Any] = json.loads(written.read_text())
    return found


def test_the_class_was_replaced_and_used(report: dict[str, Any]) -> None:
    assert "test_tsne" in report["users"]  # of the pipeline tests
    assert "test_preserve_trustworthiness_approximately" in report["users"]
    assert len(report["users"]) > 30


def test_every_test_of_the_class_passes(report: dict[str, Any]) -> None:
    failed = {
        test: text for test, text in report["failures"].items() if function_of(test) not in EXCLUDED
    }
    assert not failed, "\n\n".join(f"{test}\n{text}" for test, text in failed.items())
    skipped = {test for test, outcome in report["outcomes"].items() if outcome == "skipped"}
    assert not skipped


def test_exactly_the_excluded_ones_fail(report: dict[str, Any]) -> None:
    # An exclusion that has become unnecessary must go.
    assert {function_of(test) for test in report["failures"]} == set(EXCLUDED)


def test_expected_failures_are_scikit_learns_own(report: dict[str, Any]) -> None:
    # pytest.xfail() in their code, whoever's class it is.
    xfailed = {test for test, outcome in report["outcomes"].items() if outcome == "xfailed"}
    assert {function_of(test) for test in xfailed} == {"test_tsne_with_different_distance_metrics"}


def test_nothing_else_was_left_out(report: dict[str, Any]) -> None:
    ran = {function_of(test) for test in report["outcomes"]}
    assert ran - set(report["users"]) == NOT_THE_CLASS
