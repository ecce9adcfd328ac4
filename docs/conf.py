"""How Sphinx builds these pages: ``make docs``."""

from importlib.metadata import version as installed_version
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

project = "popf"
author = "The popf developers"
project_copyright = "The popf developers, BSD-3-Clause"
version = release = installed_version("popf")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
templates_path = ["_templates"]
exclude_patterns = ["_build", "sg_execution_times.rst"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

# The template of a class leaves out what is inherited, but from our own base classes: scikit-learn's
# docstrings refer to pages of its own manual.
autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say it in words
toc_object_entries_show_parents = "hide"  # the class of a method, which leaves no room for its name
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
# numpydoc links inherited attributes by name alone, and several classes have them.
suppress_warnings = ["ref.python"]


def reachable(url):
    """Say whether there is a network, so that pages are built without one, too."""
    try:
        with urlopen(url + "objects.inv", timeout=5):
            return True
    except (URLError, TimeoutError):
        return False


manuals = {
    "python": "https://docs.python.org/3/",
    "numpy": "https://numpy.org/doc/stable/",
    "scipy": "https://docs.scipy.org/doc/scipy/",
    "sklearn": "https://scikit-learn.org/stable/",
    "pandas": "https://pandas.pydata.org/docs/",
}
intersphinx_mapping = {name: (url, None) for name, url in manuals.items() if reachable(url)}

html_math_renderer = "mathml"  # needs no scripts, so no network

EXAMPLES = Path(__file__).parents[1] / "examples"
SECTIONS = (
    *("first_steps", "tables", "probabilities", "explanation", "monitoring"),
    *("without_labels", "paper"),
)
# Every script of examples/ becomes a page with its output; the short ones come first.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": "/plot_",
    "subsection_order": [f"../examples/{name}" for name in SECTIONS if (EXAMPLES / name).exists()],
    "download_all_examples": False,
    "min_reported_time": 1e9,  # times of whoever built the pages tell nobody anything
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "thumbnail_size": (400, 280),
    "doc_module": ("popf",),
    "backreferences_dir": "auto_examples/of",
}

html_theme = "pydata_sphinx_theme"
html_title = "popf"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["popf.css"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"image_light": "_static/logo.svg", "image_dark": "_static/logo.svg", "text": "popf"},
    "show_nav_level": 1,
    "header_links_before_dropdown": 8,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
# These have no pages below them, so nothing to put beside the text.
html_sidebars = {page: [] for page in ("index", "reproduction")}


def leave_out_fields(app, what, name, member, skip, options):
    """Leave out the fields of named tuples; the docstring of the class describes them."""
    return skip or (getattr(member, "__doc__", None) or "").startswith("Alias for field number")


def write_inline_math(self, node):
    self.body.append(tex2mathml(node.astext()))
    raise SkipNode


def write_block_math(self, node):
    self.body.append(f'<div class="formula">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (write_inline_math, None), (write_block_math, None))
    app.connect("autodoc-skip-member", leave_out_fields)
