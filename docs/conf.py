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
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = "popf"
html_static_path = ["_static"]
html_show_sourcelink = False
html_theme_options = {
    "show_nav_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": []}
