"""How Sphinx builds these pages: ``make docs``."""

from importlib.metadata import version as installed_version

project = "popf"
author = "The popf developers"
project_copyright = "The popf developers, BSD-3-Clause"
version = release = installed_version("popf")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
templates_path = ["_templates"]
# benchmarks.md, which `python -m benchmarks.page` makes, includes the analysis.
exclude_patterns = ["_build", "benchmarks_analysis.md"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

# The template of a class leaves out what is inherited: scikit-learn's docstrings refer to pages of
# its own manual.
autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say it in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = "popf"
html_static_path = ["_static"]
html_show_sourcelink = False
html_theme_options = {
    "show_nav_level": 2,
    "header_links_before_dropdown": 9,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
# Only the reference has pages below it, so only there is something to put beside the text.
pages = ["index", "start", "how_opf_works", "probabilities", "metrics_of_quality"]
pages += ["metrics", "algorithms", "exactness", "benchmarks"]
html_sidebars = {page: [] for page in pages}


def leave_out_fields(app, what, name, member, skip, options):
    """Leave out the fields of named tuples; the docstring of the class describes them."""
    return skip or (getattr(member, "__doc__", None) or "").startswith("Alias for field number")


def setup(app):
    app.connect("autodoc-skip-member", leave_out_fields)
