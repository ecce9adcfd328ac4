"""Makes the page of the documentation from the results: ``python -m benchmarks.probability.page``.

The file with the most seeds is taken, and of these the newest.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..results import FOLDER, ROOT
from ..tables import as_markdown
from .journal import Journal
from .summary import summarise
from .tables import tables

PAGE = ROOT / "docs" / "benchmarks_probability.md"

HEAD = """\
---
orphan: true
---
% Made by `python -m benchmarks.probability.page`; changes by hand will be lost.

# Probabilities beside their rivals

A quarter of each set for training, the rest for testing, stratified; features standardised by the training
quarter; all contestants on the same splits. `popf soft` is `POPFClassifier()`, `popf soft + map` is
`POPFClassifier(linear_map="auto")`. Those that are tuned are tuned by cross-validated log loss on the
training quarter alone. Ranks are means over sets, 1 the best. p is that of Wilcoxon's signed-rank test over the
sets, two-sided, not corrected for the number of rivals. Times are of one thread, means over sets.

"""


def latest(folder: Path) -> Journal:
    """Find the file with the most seeds, the newest of several.

    Raises
    ------
    ValueError
        If there is none.
    """
    found = [Journal.resume(path) for path in sorted(folder.glob("probability-*-seeds.json"))]
    if not found:
        raise ValueError(f"no probability-N-seeds.json in {folder}: run the benchmark first")
    return max(found, key=lambda one: (n_seeds(one.content), one.content["date"]))


def n_seeds(content: dict[str, Any]) -> int:
    """Count the seeds of the set that has the fewest."""
    counts = [n for part in content["summary"].values() for n in part["n_seeds"].values()]
    return min(counts, default=0)


def page(journal: Journal) -> str:
    """Write the page."""
    machine = journal.content["machine"]
    parts = [HEAD, f"{machine['processor']}, {journal.content['date'][:10]}.\n"]
    for table in tables(summarise(journal.runs)):  # anew: the file may be older than the summary
        parts.append(f"\n## {table.title}\n\n{as_markdown(table)}\n")
    return "".join(parts)


def main(arguments: list[str] | None = None) -> None:
    """Write the page into its file."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.probability.page", description=__doc__
    )
    parser.add_argument("--results", type=Path, help="the JSON file (default: that of most seeds)")
    parser.add_argument("--out", type=Path, default=PAGE, help="the page to write")
    options = parser.parse_args(arguments)
    try:
        journal = Journal.resume(options.results) if options.results else latest(FOLDER)
    except ValueError as error:
        parser.error(str(error))
    options.out.write_text(page(journal), encoding="utf-8")
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
