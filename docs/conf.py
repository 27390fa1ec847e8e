"""How Sphinx builds the documentation: `make docs`."""

import acctsne

project = "acctsne"
author = "The acctsne developers"
copyright = f"2026, {author}"
version = release = acctsne.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx-mathjax-offline",  # formulas without a network
]
exclude_patterns = ["figures"]

# Pages are plain Markdown that also reads well where the repository is browsed.
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "none"  # the docstrings say it in words
napoleon_google_docstring = False
default_role = "literal"  # single backticks are code, as in Markdown
napoleon_use_rtype = False

html_theme = "furo"
html_title = "acctsne"
html_show_sphinx = False
