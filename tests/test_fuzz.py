"""A fixed, short part of what `make fuzz` tries: any input gives a result or a clear error."""

import faulthandler
import os
import signal
from functools import partial

import pytest

from fuzz.cases import KINDS, run_one
from fuzz.files import whole_files
from fuzz.harness import run_case

SEEDS = range(12)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_cases(kind: str) -> None:
    whole_files()  # made once, not by the process of every case
    for seed in SEEDS:
        outcome = run_case(partial(run_one, kind, seed))
        assert outcome.good, f"--kinds {kind} --seed {seed} --only: {outcome.what}"


def test_a_crash_is_noticed() -> None:
    def crash() -> None:
        faulthandler.disable()  # pytest's, which would tell of this crash as of a real one
        os.kill(os.getpid(), signal.SIGSEGV)

    outcome = run_case(crash)
    assert not outcome.good
    assert "SIGSEGV" in outcome.what


@pytest.mark.parametrize("error", [AttributeError("x"), KeyError("x"), ValueError("")])
def test_internal_errors_are_noticed(error: Exception) -> None:
    def fail() -> None:
        raise error

    assert not run_case(fail).good


@pytest.mark.parametrize(
    ("said", "good"),
    [
        ("'<' not supported between instances of 'str' and 'int'", False),
        ("init: could not broadcast input array from shape (3,) into shape (2,)", False),
        ("x.npy: not a readable npy file: cannot reshape array of size 3 into shape (2,2)", True),
    ],
)
def test_words_of_libraries_are_noticed(said: str, good: bool) -> None:
    def fail() -> None:
        raise TypeError(said)

    assert run_case(fail).good == good


def test_a_clear_error_is_good() -> None:
    def refuse() -> None:
        raise ValueError("perplexity must be positive; got -1")

    assert run_case(refuse).good
