"""Pytest plugin: puts acctsne.TSNE in place of scikit-learn's in scikit-learn's own test modules.

Loaded with `-p` by test_sklearn_suite.py into a pytest of its own. Writes what became of every test
to the file that the environment variable ACCTSNE_SUITE_REPORT names.
"""

import json
import os
from pathlib import Path

import pytest

import acctsne

outcomes: dict[str, str] = {}
failures: dict[str, str] = {}
users: set[str] = set()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Replace the class in the modules that were collected."""
    for item in items:
        assert isinstance(item, pytest.Function)
        item.module.TSNE = acctsne.TSNE
        if "TSNE" in item.function.__code__.co_names:
            users.add(item.originalname)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the worst that a test's phases report."""
    name = report.nodeid.split("::", 1)[1]
    outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
    if report.when == "call" or outcome != "passed":
        outcomes[name] = outcome
    if outcome == "failed":
        failures[name] = report.longreprtext


def pytest_sessionfinish() -> None:
    """Write the report."""
    report = {"outcomes": outcomes, "failures": failures, "users": sorted(users)}
    Path(os.environ["ACCTSNE_SUITE_REPORT"]).write_text(json.dumps(report))
