"""Options of the command line that are the estimator's parameters, whatever those are.

Names, defaults and limits come from TSNE's signature and constraints, descriptions from its
docstring: a parameter added there is an option here.
"""

import argparse
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import numpy as np

from acctsne.cli.inputs import read_embedding
from acctsne.cli.messages import blaming_arguments
from acctsne.compat.scikit_learn import StrOptions, make_constraint
from acctsne.estimator import PARAMETER_CONSTRAINTS, TSNE
from acctsne.files import formats as io

# Parameters of TSNE for which the command line has other means.
NOT_OFFERED = ("self", "verbose", "callback", "callback_every")

ALIASES = {"n_jobs": "--threads", "random_state": "--seed"}

# What stands for an array on a command line: `init` is the only parameter that may be one.
POSITIONS = "a file that holds positions"

_PREFIX = "tsne_"


def add_estimator_options(parser: argparse.ArgumentParser) -> None:
    """Add an option for every parameter of TSNE that can be written on a command line."""
    group = parser.add_argument_group("parameters of TSNE")
    for name, parameter in _parameters().items():
        group.add_argument(
            *_flags(name),
            dest=_PREFIX + name,
            default=argparse.SUPPRESS,
            type=_reader(name),
            metavar=_metavar(name),
            help=_help(name, parameter),
        )


def estimator_parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Collect the parameters that were given."""
    given = vars(options)
    return {name: given[_PREFIX + name] for name in _parameters() if _PREFIX + name in given}


@contextmanager
def blaming_parameters(options: argparse.Namespace) -> Iterator[None]:
    """Begin an error of the estimator's with the options whose parameters it speaks of."""
    flags = {name: _flags(name)[0] for name in _parameters()}
    with blaming_arguments(flags, estimator_parameters(options)):
        yield


def _parameters() -> dict[str, Parameter]:
    every = signature(TSNE.__init__).parameters
    return {name: parameter for name, parameter in every.items() if name not in NOT_OFFERED}


def _flags(name: str) -> list[str]:
    flags = [f"--{name.replace('_', '-')}"]
    return [ALIASES[name], *flags] if name in ALIASES else flags


def _reader(name: str) -> Callable[[str], Any]:
    """Make a function that turns an option's text into the first value that TSNE would accept."""
    allowed = PARAMETER_CONSTRAINTS[name]
    if allowed == "no_validation":
        return str
    # Functions cannot be written on a command line.
    constraints = [make_constraint(kind) for kind in allowed if kind is not callable]

    def read(text: str) -> Any:
        for value in _readings(text, np.ndarray in allowed, tuple in allowed):
            if any(constraint.is_satisfied_by(value) for constraint in constraints):
                return value
        in_words = {tuple: "two numbers with a comma between them", np.ndarray: POSITIONS}
        named = [
            in_words[kind] if kind in in_words else str(make_constraint(kind))
            for kind in allowed
            if kind not in (callable, list)
        ]
        expected = " or ".join(named)
        raise argparse.ArgumentTypeError(f"must be {expected}; got {text!r}")

    return read


def _readings(text: str, may_be_file: bool, may_be_pair: bool) -> Iterator[Any]:
    """Give all that a text can mean, the plainest meaning first."""
    if may_be_pair and text.count(",") == 1:
        with suppress(ValueError):
            yield tuple(float(part) for part in text.split(","))
    if text.lower() in ("none", "true", "false"):
        yield {"none": None, "true": True, "false": False}[text.lower()]
    for kind in (int, float, json.loads):
        with suppress(ValueError):
            yield kind(text)
    yield text
    if may_be_file and Path(text).is_file():
        try:
            yield np.array(read_embedding(Path(text), None).X)
        except io.DataError as error:
            raise argparse.ArgumentTypeError(str(error)) from error


def _metavar(name: str) -> str:
    """Show the choices where they are few words, VALUE otherwise."""
    allowed = PARAMETER_CONSTRAINTS[name]
    if len(allowed) == 1 and isinstance(allowed[0], StrOptions):
        return "|".join(sorted(allowed[0].options))
    return "VALUE"


def _help(name: str, parameter: Parameter) -> str:
    """Take the first sentence of the parameter's description."""
    found = re.search(
        rf"^    {name} : [^\n]*\n((?:        [^\n]*\n)+)", TSNE.__doc__ or "", re.MULTILINE
    )
    described = " ".join(found[1].split()) if found else ""
    described = re.sub(r":\w+:`~?([^`]*)`", r"\1", described)
    sentence = re.split(r"(?<=[.;])\s", described, maxsplit=1)[0].rstrip(".;")
    allowed = PARAMETER_CONSTRAINTS[name]
    if allowed != "no_validation" and tuple in allowed:
        sentence += "; two with a comma are for early exaggeration and for the rest"
    default = parameter.default
    shown = default.__name__ if isinstance(default, type) else default
    return f"{sentence} (default: {shown})".replace("%", "%%").replace("`", "")
