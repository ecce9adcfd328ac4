"""Pages of one HTML file that loads nothing, made from templates: what the reports share."""

import base64
import hashlib
from importlib.resources import files
from typing import Any

from popf.formatting import import_extra


def render(package: str, template: str, **context: Any) -> str:
    """Fill in a template of a package, which extends ``base.html`` of this one; text is escaped.

    The style and the script of the same name beside it are put into the page, whose policy allows nothing else.
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
    """Hash by which a content security policy knows a style or a script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
