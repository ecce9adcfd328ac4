"""What the README, the pages under docs/ and the examples say is run, and shows what they show."""

import contextlib
import doctest
import importlib
import inspect
import io
import json
import re
import runpy
import shlex
import statistics
import tomllib
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest

import popf
from inspections import real_inspections
from popf.__main__ import main
from popf.engine.distances import KERNELS
from popf.forest.metrics import EUCLIDEAN_TRANSFORMS

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = [README, *sorted(DOCS.glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
RESULTS = ROOT / "benchmarks" / "results"

# A block of Python, and the block of its output where one follows it at once.
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n^```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
ANY_BLOCK = re.compile(r"^```([^`\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

PUBLIC = (
    *("popf", "popf.forest", "popf.metrics", "popf.probability", "popf.paper", "popf.io"),
    *("popf.datasets", "popf.display", "popf.report", "popf.monitoring", "popf.tables"),
    *("popf.table_models", "popf.experiment", "popf.mlflow", "popf.dask"),
)


def blocks(page):
    """Yield the line, the code and the shown output (or None) of every Python block of a page."""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start(1))
        yield line, match.group(1), match.group(2)


def sessions_of(block):
    """Yield every command of a console block, and the output shown below it."""
    for session in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = session.partition("\n")
        yield command, shown


def commands(page):
    """Yield every command of the console blocks of a page, as words, without comments."""
    for language, block in ANY_BLOCK.findall(page.read_text(encoding="utf-8")):
        for line, _ in sessions_of(block) if language == "console" else ():
            for command in re.split(r"\s&&\s", line):
                yield shlex.split(command, comments=True)


def same_output(shown, got):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    return doctest.OutputChecker().check_output(shown, got, flags)


def write_wine_as_dat():
    from sklearn.datasets import load_wine

    from popf import datasets

    X, y = load_wine(return_X_y=True)
    datasets.write("training.dat", X[::2], y[::2])
    datasets.write("testing.dat", X[1::2], y[1::2])


def fit_to_inspections():
    """Write the tables of the page on theft, and fit its model, where the data are."""
    from table_commands import run

    with contextlib.suppress(FileNotFoundError), contextlib.redirect_stdout(io.StringIO()):
        _, code, _ = next(blocks(DOCS / "theft.md"))
        exec(code, {})
        for words in commands(DOCS / "theft.md"):
            if words[1] == "fit" and "theft.popf" in words:
                run(*words[1:], "--n-jobs", "1")


# What writes files that commands on pages speak of, and pages with commands on files of their own blocks.
FILES = {
    "moving.md": write_wine_as_dat,
    "theft.md": real_inspections,
    "monitoring.md": fit_to_inspections,
}
TOGETHER = ("README.md", "tutorial_csv.md", "theft.md")


@pytest.fixture
def no_windows(monkeypatch):
    """Draw into memory, and forget all figures afterwards."""
    plt = pytest.importorskip("matplotlib.pyplot", reason="pictures need popf[plot]")
    plt.switch_backend("agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    yield
    plt.close("all")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "theft.md"], ids=lambda page: page.name
)
@pytest.mark.usefixtures("no_windows")
def test_code_blocks_run_and_print_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = list(blocks(page))
    if page.name == "moving.md":
        write_wine_as_dat()
    namespace = {"__name__": "__main__"}
    for line, code, shown in found:
        # Blank lines before the code make the line numbers of a traceback those of the page.
        compiled = compile("\n" * line + code, str(page), "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            if "import mlflow" in code:
                if find_spec("mlflow") is None:
                    continue
                warnings.simplefilter("ignore")  # MLflow's own
            exec(compiled, namespace)
        if shown is not None:
            message = f"{page.name}, line {line}: printed\n{printed.getvalue()}\nnot\n{shown}"
            assert same_output(shown, printed.getvalue()), message


@pytest.mark.parametrize("page", ["start.md", "moving.md", "monitoring.md", *TOGETHER])
def test_commands_print_what_the_page_shows(page, tmp_path, monkeypatch, capsys):
    pytest.importorskip("typer", reason="the command line needs popf[cli]")
    monkeypatch.chdir(tmp_path)
    FILES.get(page, lambda: None)()
    count, namespace, skipped = 0, {}, []
    text = (ROOT / page if page == "README.md" else DOCS / page).read_text(encoding="utf-8")
    for match in re.finditer(f"{BLOCK.pattern}|{ANY_BLOCK.pattern}", text, BLOCK.flags):
        code, output, language, block = match.groups()
        capsys.readouterr()
        if code is not None and page in TOGETHER:
            exec(code, namespace)
            assert output is None or same_output(output, capsys.readouterr().out)
        for command, shown in sessions_of(block) if language == "console" else ():
            name, *words = shlex.split(command, comments=True)
            if name == "head":
                lines = Path(words[1]).read_text(encoding="utf-8").splitlines()
                got = "\n".join(lines[: int(words[0][1:])])
            elif (
                "theft.popf" in words and page == "monitoring.md" and not Path("2016.csv").exists()
            ):
                skipped.append(command)
                continue
            elif name == "popf":
                # Answers do not depend on it, and the other cores have tests of their own.
                words += ["--n-jobs", "1"] if words[0] == "fit" else []
                assert main(words) in ((0, 3) if words[0] == "drift" else (0,))
                got = capsys.readouterr().out
            else:
                continue
            count += 1
            if shown.strip():
                same = same_output(shown.strip() + "\n", got.strip() + "\n")
                assert same, f"{command}\n{got}"
    assert count + len(skipped) >= (3 if page == "moving.md" else 4)
    if skipped:
        pytest.skip(f"needs the real inspections, as does the page on theft: {skipped}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_popf_command_on_a_page_is_one_that_popf_takes(page):
    typer = pytest.importorskip("typer", reason="the command line needs popf[cli]")
    from popf.cli.app import app

    known = typer.main.get_command(app).commands
    for words in commands(page):
        if words[0] != "popf":
            known_here = ("cd", "curl", "git", "head", "make", "mlflow", "pip", "pytest", "python")
            assert words[0] in known_here, words
        elif words[1] in known:
            # Parsed, not run: an option that is not there, or an argument too many, is an error here.
            known[words[1]].make_context(words[1], list(words[2:]))
        else:
            assert words[1].startswith("--"), f"{page.name}: popf {words[1]}"


def test_every_target_of_make_on_a_page_is_in_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):", makefile, re.MULTILINE))
    wanted = {words[1] for page in PAGES for words in commands(page) if words[0] == "make"}
    assert {"demo", "test"} <= wanted <= targets


def test_every_link_between_pages_leads_somewhere():
    generated = ("docs/auto_examples/",)  # made by `make docs`
    others = (ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md")
    for page in [*PAGES, *(DOCS / "api").glob("*.md"), *others]:
        text = page.read_text(encoding="utf-8")
        targets = re.findall(r"\]\(([^)#\s]+)", text) + re.findall(
            r'(?:src|srcset)="([^"]+)"', text
        )
        for target in targets:
            if re.match(r"[a-z]+:", target):
                continue
            found = (page.parent / target).resolve()
            known = found.exists() or str(found.relative_to(ROOT)).startswith(generated)
            assert known, f"{page.name} links to {target}"


def test_the_places_that_contributing_names_are_there():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\b((?:src/popf|tests|docs|examples|benchmarks)/[\w/*.]*\w)", text))
    made = {path for path in named if path.startswith("docs/_build")}  # by make docs
    missing = [path for path in named - made if not any(ROOT.glob(path))]
    assert len(named) > 20
    assert not missing


def test_every_page_is_in_the_contents_once():
    listed = []
    for page in DOCS.glob("*.md"):
        for contents in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            lines = [line for line in contents.splitlines() if line and not line.startswith(":")]
            listed += [re.sub(r".*<(.*)>", r"\1", line) for line in lines]
    pages = {page.stem for page in DOCS.glob("*.md")} - {"index"}
    pages |= {f"api/{page.stem}" for page in (DOCS / "api").glob("*.md")}
    assert sorted(listed) == sorted({*pages, "auto_examples/index"})


def test_every_metric_of_our_own_is_documented():
    text = (DOCS / "metrics.md").read_text(encoding="utf-8")
    missing = [name for name in (*EUCLIDEAN_TRANSFORMS, *KERNELS) if f"`{name}`" not in text]
    assert not missing


def public_names():
    for package in PUBLIC:
        if package == "popf.dask":
            pytest.importorskip("distributed", reason="popf.dask needs popf[dask]")
        module = importlib.import_module(package)
        for name in module.__all__:
            if callable(getattr(module, name)):
                yield package, name, getattr(module, name)


def test_every_public_name_is_in_the_reference():
    text = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md"))
    listed = set()
    for module, names in re.findall(
        r"currentmodule:: (\S+)\n\n.. autosummary::\n(?:   :.*\n)+\n((?:   \w+\n)+)", text
    ):
        listed |= {getattr(importlib.import_module(module), name) for name in names.split()}
    missing = [f"{package}.{name}" for package, name, item in public_names() if item not in listed]
    assert not missing


def test_every_public_name_has_a_docstring_and_an_example_of_its_own_or_of_another():
    texts = {}
    for package, name, item in public_names():
        is_class = inspect.isclass(item)
        methods = filter(callable, vars(item).values()) if is_class else ()
        found = [inspect.getdoc(one) or "" for one in (item, *methods)]
        assert len(found[0].partition("\n")[0]) > 10, f"{package}.{name} has no docstring"
        if not (is_class and issubclass(item, Exception)):
            texts[f"{package}.{name}"] = found, rf"\b{name}\b" if is_class else rf"\b{name}\("
    examples = [text for found, _ in texts.values() for text in found if "Examples\n---" in text]
    assert all(">>>" in text for text in examples)
    for whole, ((own, *_), named) in texts.items():
        known = own in examples or any(re.search(named, text) for text in examples)
        assert known, f"{whole} has no example"


def test_help_shows_names_of_types_and_not_the_unions_behind_them():
    for package, name, item in public_names():
        methods = vars(item).values() if inspect.isclass(item) else ()
        for function in (item, *filter(inspect.isfunction, methods)):
            with contextlib.suppress(ValueError):  # exceptions have no signature
                for parameter in inspect.signature(function).parameters.values():
                    shown = inspect.formatannotation(parameter.annotation)
                    assert len(shown) < 200, f"{package}.{name}: {parameter}"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
@pytest.mark.usefixtures("no_windows")
def test_examples_run(example, capsys):
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.strip()


def assert_rounded(shown, value):
    """Check a number as it is printed, by the digits it has."""
    digits = len(shown.partition(".")[2])
    assert round(value, digits) == float(shown), f"{shown} is printed for {value}"


def test_the_figures_of_the_readme_are_those_measured():
    from benchmarks.probability.journal import Journal
    from benchmarks.probability.tables import means_of
    from benchmarks.tables import best

    text = README.read_text(encoding="utf-8")
    records = []
    for file in re.findall(r"[\w-]+\.json\b", text):
        records += json.loads((RESULTS / file).read_text(encoding="utf-8"))["records"]
    (file,) = set(re.findall(r"[\w-]+\.jsonl", text))
    runs = [
        run
        for run in Journal(RESULTS / file).runs.values()
        if run["group"] == "untouched" and run["size"] is None
    ]
    means = means_of(runs).values()
    first, second = re.findall(r"^\| \|(.*)\|\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert first[0].split() == ["Log", "loss", "|", "Median", "fit"]
    for row in first[1].splitlines():
        name, loss, fit = (cell.strip(" *") for cell in row.strip("|").split("|"))
        assert_rounded(loss, statistics.mean(mean[name]["log loss"] for mean in means))
        seconds = [run["scores"][name]["fit"] for run in runs if name in run["scores"]]
        assert_rounded(fit.removesuffix(" s"), statistics.median(seconds))
    sizes = [size.strip() for size in second[0].split("|")]
    for row in second[1].splitlines():
        name, *cells = (cell.strip(" *") for cell in row.strip("|").split("|"))
        for size, seconds in zip(sizes, cells, strict=True):
            found = (
                best(record, name.partition(" (")[0], "fit")
                for record in records
                if record["task"]["name"] in (size, f"fit {size}")
            )
            if seconds:
                assert_rounded(seconds.removesuffix(" s"), next(filter(None, found)))
    assert (first[1] + second[1]).count(" s |") > 13


def test_what_is_cited_is_what_the_citation_file_says():
    page = (DOCS / "cite.md").read_text(encoding="utf-8")
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    given = re.findall(r'^ *(?:title|doi|url|version): "?(.*?)"?$', text, re.MULTILINE)
    assert [one for one in given if f"{{{one}}}" not in page] == []


def test_the_version_is_one_and_the_command_line_shows_help(capsys):
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert declared["dynamic"] == ["version"]  # taken from popf.__version__
    assert f"## [{popf.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert main([]) == 0
    assert "demo" in capsys.readouterr().out
