"""Fill the tables of the documentation from the results: ``python -m benchmarks.page``.

A table on a page is enclosed by two comments. The first names the file and the suite or group of datasets,
optionally followed by the title of the wanted table, or a part of the titles of several::

    <!-- results 2026-11-20-16-cores.json scaling -->
    <!-- end -->
"""

import json
import re

from . import theft
from .probability.journal import Journal
from .probability.tables import tables as probability_tables
from .results import FOLDER, ROOT
from .tables import tables

PAGES = [
    ROOT / "README.md",
    *(
        ROOT / "docs" / f"{name}.md"
        for name in ("performance", "benchmarks_probability", "benchmarks_theft")
    ),
]
BLOCK = re.compile(r"(<!-- results (\S+) ([\w-]+)(?:: (.*?))? -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(text):
    """Return the text of a page with its tables filled from the results."""

    def block(found):
        begin, file, suite, title, end = found.groups()
        every = tables_of(file, suite)
        made = [table for table in every if table.title == title]
        made = made or [table for table in every if (title or "") in table.title]
        if not made:
            raise ValueError(f"{file} has no table of {suite!r} with {title!r} in its title")
        titled = len(made) > 1
        parts = [
            (f"**{table.title}**\n\n" if titled else "") + table.as_markdown() for table in made
        ]
        return begin + "\n" + "\n\n".join(parts) + "\n\n" + end

    return BLOCK.sub(block, text)


def tables_of(file, suite):
    """Build the tables of a suite, or of a group of datasets, from a results file."""
    if file.endswith(".jsonl"):
        runs = [run for run in Journal(FOLDER / file).runs.values() if run["group"] == suite]
        return (theft.tables if suite == theft.GROUP else probability_tables)(runs)
    content = json.loads((FOLDER / file).read_text(encoding="utf-8"))
    return tables([r for r in content["records"] if r["task"]["suite"] == suite])


def main():
    """Fill the tables of all pages."""
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
        print(f"wrote {page}")


if __name__ == "__main__":
    main()
