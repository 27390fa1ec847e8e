"""The command line: a module for the program, one for each command, and what they share."""

from acctsne.cli.main import main

__all__ = ["main"]
