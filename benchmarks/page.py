"""Makes the page of the documentation from the results: ``python -m benchmarks.page``.

Each suite is taken from one file: one at full scale if there is one (else the page says so), then
the one with the most of the suite's tasks, so that a partial run hides nothing, then the newest.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

from .results import FOLDER, ROOT, Results, files
from .suites import SUITES
from .tables import Table, as_markdown, tables

PAGE = ROOT / "docs" / "benchmarks.md"
ANALYSIS = "benchmarks_analysis.md"

HEAD = """\
% Made by `python -m benchmarks.page`; changes by hand will be lost.

# Benchmarks

popf beside its peers, in one run and on the same data: quitefastmst (the spanning tree alone),
opfython, and scikit-learn's nearest neighbours. One thread each unless a table says otherwise; the
Numba cache is warm; every time is the best of several, taken in turn with the peers'. Data are
two-class Gaussian blobs, except under "Difficult shapes".
"""

EMPTY = """\

There are no results yet. Make them with

```console
$ make bench ARGS="--quick"    # about a minute
$ make bench                   # the full sizes
$ python -m benchmarks.page    # this page again
```
"""


def file_by_suite(folder: Path = FOLDER) -> dict[str, Results]:
    """Choose the file each suite is taken from."""
    chosen: dict[str, tuple[bool, int]] = {}
    found: dict[str, Results] = {}
    # Newest first, and only a better one replaces it.
    for path in files(folder):
        results = Results.load(path)
        counts = Counter(record["task"]["suite"] for record in results.records)
        for suite, count in counts.items():
            merit = (results.content["scale"] == "full", count)
            if suite not in chosen or merit > chosen[suite]:
                chosen[suite], found[suite] = merit, results
    return found


def page(folder: Path = FOLDER, analysis: bool = False) -> str:
    """Write the page as MyST Markdown.

    Parameters
    ----------
    folder : Path
        Where the results are.
    analysis : bool
        Whether to include the hand-written analysis at the end.
    """
    chosen = file_by_suite(folder)
    parts = [HEAD]
    if not chosen:
        parts.append(EMPTY)
    for suite in SUITES:
        if suite in chosen:
            results = chosen[suite]
            parts += [
                section(table, results) for table in tables(results.summary) if table.suite == suite
            ]
    if chosen:
        parts.append(provenance(chosen))
    if analysis:
        parts.append(f"\n```{{include}} {ANALYSIS}\n```\n")
    return "".join(parts)


def section(table: Table, results: Results) -> str:
    """Write one table with its title and note."""
    scale = results.content["scale"]
    small = "" if scale == "full" else f" **Sizes of the {scale} run, not those of the targets.**"
    return f"\n## {table.title}\n\n{table.note}{small}\n\n{as_markdown(table)}\n"


def provenance(chosen: dict[str, Results]) -> str:
    """Say which file, when, and on what machine."""
    lines = ["\n## Where these come from\n"]
    for path in sorted({results.path for results in chosen.values()}):
        suites = [suite for suite in SUITES if suite in chosen and chosen[suite].path == path]
        content = chosen[suites[0]].content
        commits = sorted({r["revision"] for r in content["records"] if r.get("revision")})
        at = f", commit {' '.join(commits)}" if commits else ""
        lines.append(
            f"- `benchmarks/results/{path.name}` ({', '.join(suites)}): {content['date']}{at}, "
            f"{describe(content['machine'])}."
        )
    return "\n".join(lines) + "\n"


def describe(machine: dict[str, Any]) -> str:
    """Write the machine in a line."""
    versions = [f"{name} {version}" for name, version in machine["versions"].items() if version]
    return ", ".join(
        [
            machine["processor"],
            f"{machine['cores']} cores",
            f"Python {machine['python']}",
            *versions,
            *machine["blas"],
        ]
    )


def main(arguments: list[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument("--results", type=Path, default=FOLDER, help="where the JSON files are")
    parser.add_argument("--out", type=Path, default=PAGE, help="the page to write")
    options = parser.parse_args(arguments)
    analysis = (options.out.parent / ANALYSIS).exists()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(page(options.results, analysis), encoding="utf-8")
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
