"""Self-contained HTML pages from templates, for the reports."""

import base64
import hashlib
from importlib.resources import files
from typing import Any

from popf.formatting import import_extra


def render(package: str, template: str, **context: Any) -> str:
    """Render a template of a package as one self-contained HTML page, with text escaped.

    The template extends ``base.html`` of this package. The stylesheet and script of the same name are inlined,
    and the page's content security policy allows nothing else.
    """
    jinja2 = import_extra("jinja2", "report", "a report")
    folder = files(package).joinpath("templates")
    assets = {}
    for kind, suffix in (("style", "css"), ("script", "js")):
        file = folder.joinpath(f"{template}.{suffix}")
        assets[kind] = file.read_text(encoding="utf-8") if file.is_file() else ""
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [jinja2.PackageLoader(package), jinja2.PackageLoader("popf.display")]
        ),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters["digest"] = _digest
    return str(environment.get_template(f"{template}.html").render(**assets, **context))


def _digest(text: str) -> str:
    """Return the hash with which a content security policy allows an inline style or script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
