"""What the README, the pages under docs/ and the examples say is run, and shows what they show."""

import contextlib
import doctest
import io
import re
import runpy
import tomllib
from pathlib import Path

import pytest

from popf.__main__ import main
from popf.engine.distances import EUCLIDEAN_TRANSFORMS, KERNELS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

# A block of Python, and the block of its output where one follows it at once.
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n^```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def blocks(page):
    """Yield the line, the code and the shown output (or None) of every Python block of a page."""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start(1))
        yield line, match.group(1), match.group(2)


def same_output(shown, got):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    return doctest.OutputChecker().check_output(shown, got, flags)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_run_and_print_what_the_page_shows(page):
    namespace = {"__name__": "__main__"}
    for line, code, shown in blocks(page):
        # Blank lines before the code make the line numbers of a traceback those of the page.
        compiled = compile("\n" * line + code, str(page), "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compiled, namespace)
        if shown is not None:
            message = f"{page.name}, line {line}: printed\n{printed.getvalue()}\nnot\n{shown}"
            assert same_output(shown, printed.getvalue()), message


def test_the_pages_hold_code_and_output():
    found = [block for page in PAGES for block in blocks(page)]
    assert len(found) > 10
    assert any(shown is not None for _, _, shown in found)


def test_every_link_between_pages_leads_somewhere():
    generated = {"docs/benchmarks.md"}  # made from the measurements by `make docs`
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            if re.match(r"[a-z]+:", target):
                continue
            found = (page.parent / target).resolve()
            known = found.exists() or str(found.relative_to(ROOT)) in generated
            assert known, f"{page.name} links to {target}"


def test_every_metric_of_our_own_is_documented():
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    missing = [name for name in (*EUCLIDEAN_TRANSFORMS, *KERNELS) if f"`{name}`" not in text]
    assert not missing


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_examples_run(example, capsys):
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_the_command_line_shows_help_and_refuses_plainly(capsys):
    assert main([]) == 0
    assert "demo" in capsys.readouterr().out
    assert main(["dance"]) == 2
    assert "dance" in capsys.readouterr().err


def test_the_version_is_one(capsys):
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = declared["version"]
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"popf {version}\n"
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(rf"^version: {re.escape(version)}$", citation, re.MULTILINE)
