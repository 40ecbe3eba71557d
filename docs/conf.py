"""The documentation as a site: `make docs`. Pages are Markdown; the reference is read from the docstrings."""

import dpframe
from dpframe.statistics.table import STATISTICS

project = "dpframe"
author = "The dpframe authors"
project_copyright = author
release = version = dpframe.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["examples"]

# A link or a name that leads nowhere is an error: the build runs with -W, and everything is looked up. Only what
# numpydoc writes where a type is meant ("number", "frame of the caller's library") is prose and not looked up.
nitpicky = True
nitpick_ignore_regex = [("py:(class|obj|data)", r"(?!dpframe\.).*"), ("py:.*", r"(numpy|polars|pandas)\..*")]
myst_heading_anchors = 3
suppress_warnings = ["ref.python"]  # an attribute `eps` of one class links to that of another: prose, too

napoleon_google_docstring = False
napoleon_use_ivar = True
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
autodoc_default_options = {"members": True, "inherited-members": True}
trim_doctest_flags = True

html_theme = "furo"
html_title = f"dpframe {version}"
html_copy_source = False
html_show_sphinx = False


def every_statistic(app, name, source):
    """Put the table of statistics where a page of the reference has ``STATISTICS``."""
    if name == "reference/questions":
        functions = "\n".join(f".. autofunction:: dpframe.{name}" for name in STATISTICS)
        source[0] = source[0].replace(".. STATISTICS", functions)
    if name == "reference/frames":
        source[0] = source[0].replace("STATISTICS", ", ".join(STATISTICS))


def setup(app):
    app.connect("source-read", every_statistic)
