"""The command line: one module for the program, one for the options that are TSNE's parameters."""

from acctsne.cli.main import main

__all__ = ["main"]
