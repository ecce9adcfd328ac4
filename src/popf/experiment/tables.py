"""Results as tables: for a terminal, and as Markdown, LaTeX and CSV."""

import csv
import io
import shutil
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from popf.experiment import paper
from popf.experiment.results import MEASURES, SIGNIFICANCE, Results, Summary

#: Narrow columns leave this out of the name of a method.
PREFIX = "P-OPF-"
CSV_COLUMNS = (
    "dataset", "form", "stand_in", "method", "mean", "deviation", "runs", "bold",
    "paper_mean", "paper_deviation", "paper_bold", "paper_differs",
)  # fmt: skip
RUN_COLUMNS = (
    "dataset", "form", "run", "method", "random_state", "accuracy", "log_loss", "brier", "ece",
    "train_seconds", "test_seconds", "A", "B", "held", "warnings", "failed",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A data set in one form: our means and the paper's, by method."""

    dataset: str
    form: str
    stand_in: bool
    ours: dict[str, Summary]
    printed: dict[str, Summary]


@dataclass(frozen=True)
class Table:
    """A measure for all methods and data sets, made by `table`; ``print`` shows it.

    Attributes
    ----------
    name : str
        The measure.
    title : str
    methods : list of str
        The columns; a method without any value has none.
    rows : list of Row
    notes : list of str
        Sentences to put below.
    """

    name: str
    title: str
    methods: list[str]
    rows: list[Row]
    notes: list[str]

    def __str__(self) -> str:
        return self.text(shutil.get_terminal_size((100, 24)).columns)

    def text(self, width: int = 100) -> str:
        """Lay the table out in lines of `width` characters; columns that do not fit are put below."""
        heads = [name.removeprefix(PREFIX) for name in self.methods]
        labels, lines = [], []
        for label, cells in self._lines():
            labels.append(label)
            lines.append([_text_cell(cells.get(name)) for name in self.methods])
        first = max(map(len, ["dataset", *labels]))
        widths = [max(map(len, column)) for column in zip(heads, *lines, strict=True)]
        parts = [self.title]
        for chosen in _fitting(widths, width - first):
            parts.append("")
            for label, line in zip(["dataset", *labels], [heads, *lines], strict=True):
                shown = "".join(f" {line[k]:>{widths[k]}}" for k in chosen)
                parts.append(f"{label:{first}}{shown}".rstrip())
        notes = [note.replace("Bold:", "*:").replace("bold as", "* as") for note in self.notes]
        short = [name.removeprefix(PREFIX) for name in self.methods if PREFIX in name]
        if short:
            notes.insert(1, f"{', '.join(short)}: variants of P-OPF.")
        if self.name != "accuracy":
            notes[0] = notes[0].replace("Mean ± standard deviation", "Mean")
        room = min(max(width, 40), 100)
        return "\n".join([*parts, "", *(line for n in notes for line in textwrap.wrap(n, room))])

    def _lines(self) -> Iterator[tuple[str, dict[str, Summary]]]:
        """Labels and cells of the lines of `text`: a data set, its other form, the paper's values."""
        for name in dict.fromkeys(row.dataset for row in self.rows):
            rows = [row for row in self.rows if row.dataset == name]
            for k, row in enumerate(rows):
                yield (f"  {row.form}" if k else name), row.ours
            if rows[0].printed:
                # Flagged only if the paper's value differs from ours in every form.
                printed = {
                    method: min((row.printed[method] for row in rows), key=lambda c: c.differs)
                    for method in rows[0].printed
                }
                yield "  paper", printed

    def _wide(self, show: Callable[[Summary | None], str]) -> list[list[str]]:
        """Cells of the wide formats, the names of columns first; the paper's values follow ours."""
        columns = [
            (name, printed)
            for name in self.methods
            for printed in (False, True)
            if not printed or any(name in row.printed for row in self.rows)
        ]
        heads = [f"{name} (paper)" if printed else name for name, printed in columns]
        lines = [["dataset", *heads]]
        names = [row.dataset for row in self.rows]
        for row in self.rows:
            label = f"{row.dataset}, {row.form}" if names.count(row.dataset) > 1 else row.dataset
            cells = [(row.printed if printed else row.ours).get(n) for n, printed in columns]
            lines.append([label, *map(show, cells)])
        return lines

    def markdown(self) -> str:
        """Write the table as Markdown, the paper's values in a second column."""
        head, *lines = self._wide(_markdown_cell)
        parts = [
            f"## {_escape_markdown(self.title)}\n",
            "| " + " | ".join(map(_escape_markdown, head)) + " |",
            "|---" + "|---:" * (len(head) - 1) + "|",
            *(f"| {' | '.join([_escape_markdown(name), *cells])} |" for name, *cells in lines),
            "",
            *(f"{_escape_markdown(note)}  " for note in self.notes),
        ]
        return "\n".join(parts) + "\n"

    def latex(self) -> str:
        """Write the table as LaTeX, to be put into a document with ``booktabs``."""
        head, *lines = self._wide(_latex_cell)
        parts = [
            *(f"% {line}" for line in [self.title, *self.notes, "needs \\usepackage{booktabs}"]),
            f"\\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
            "\\toprule",
            " & ".join(map(_escape_latex, head)) + r" \\",
            "\\midrule",
            *(" & ".join([_escape_latex(name), *cells]) + r" \\" for name, *cells in lines),
            "\\bottomrule",
            "\\end{tabular}",
        ]
        return "\n".join(parts) + "\n"

    def csv(self) -> str:
        """Write the table as CSV: a line for each data set, form and method, numbers in full."""
        return as_csv(CSV_COLUMNS, self.facts())

    def facts(self) -> Iterator[dict[str, Any]]:
        """Yield a dict of the columns of `csv` for each data set, form and method that has values.

        ``deviation`` is None for one run, ``paper_mean`` and so on where the paper has no value.
        """
        for row in self.rows:
            for method, cell in row.ours.items():
                paper_cell = row.printed.get(method)
                facts = {"dataset": row.dataset, "form": row.form, "stand_in": row.stand_in}
                facts["method"] = method
                for key in ("mean", "deviation", "runs", "bold"):
                    facts[key] = getattr(cell, key)
                for key in ("mean", "deviation", "bold", "differs"):
                    facts[f"paper_{key}"] = getattr(paper_cell, key, None)
                yield facts


def table(results: Results, measure: str) -> Table:
    """Make the table of a measure, with the paper's values where it has some.

    Parameters
    ----------
    results : Results
    measure : {"accuracy", "seconds", "log_loss", "brier", "ece", "train_seconds", "test_seconds"}

    Returns
    -------
    Table

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from popf.experiment import run, table
    >>> X, y = load_wine(return_X_y=True)
    >>> print(table(run({"wine": (X, y == 1)}, ["opf"], runs=6, scale=True), "accuracy"))
    Accuracy (Papa's, %)
    <BLANKLINE>
    dataset       OPF
    wine    *...±...
    <BLANKLINE>
    Mean ± standard deviation over 6 runs, 25 % for training.
    ...
    """
    rows = []
    for dataset, form in results.rows():
        stand_in = results.datasets[dataset].stand_in
        ours = results.summaries(measure, dataset, form)
        printed = {}
        for method, value in paper.printed_values(results, measure, dataset).items():
            compared = method in ours and not stand_in
            differs = compared and paper.differs(value, ours[method])
            printed[method] = value._replace(differs=differs)
        rows.append(Row(dataset, form, stand_in, ours, printed))
    shown = [
        method
        for method in results.methods
        if any(method in row.ours or method in row.printed for row in rows)
    ]
    notes = _notes(results, measure, rows)
    return Table(measure, MEASURES[measure].title, shown, rows, notes)


def _notes(results: Results, measure: str, rows: list[Row]) -> list[str]:
    """Explain the signs that occur in the table, and what is missing."""
    runs = results.protocol.runs
    mean = f"Mean ± standard deviation over {runs} runs" if runs > 1 else "One run"
    notes = [f"{mean}, {100 * results.protocol.train_size:g} % for training."]
    if MEASURES[measure].larger_is_better is not None:
        bold = (
            "Bold: the best mean, and all that are not significantly worse by Wilcoxon's signed-rank test at "
            f"{SIGNIFICANCE}"
        )
        few = "; with fewer than 6 runs no difference can be significant" if runs < 6 else ""
        notes.append(f"{bold}{few}.")
    printed = [cell for row in rows for cell in row.printed.values()]
    if printed:
        bold = ", bold as there" if any(cell.bold for cell in printed) else ""
        notes.append(f"Paper: the value printed there{bold}.")
    if printed and measure == "seconds":
        notes.append("The paper's times are from another machine, language and year.")
    if any(cell.differs for cell in printed):
        notes.append("!: differs from ours by more than both deviations together.")
    stand_ins = dict.fromkeys(row.dataset for row in rows if row.stand_in)
    if stand_ins:
        shown = " The paper's values are shown, but not compared." if printed else ""
        notes.append(
            f"Stand-ins, generated because the paper's own are not public: {', '.join(stand_ins)}.{shown}"
        )
    if any(row.form == "scaled" for row in rows):
        notes.append("Scaled: standardised by mean and deviation of the training samples.")
    held = [record["held"] for record in results.records if "held" in record]
    if measure == "accuracy" and any(held):
        notes.append(
            f"The box [-10, 10]² limits A or B in {sum(held)} of {len(held)} runs of the paper's method."
        )
    return notes


def as_csv(columns: Iterable[str], rows: Iterable[dict[str, Any]]) -> str:
    """Write dicts as CSV: None as nothing, True and False as 1 and 0."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        cells = (row.get(name) for name in columns)
        writer.writerow([int(cell) if isinstance(cell, bool) else cell for cell in cells])
    return out.getvalue()


def _fitting(widths: list[int], room: int) -> Iterator[list[int]]:
    """Group columns so that each group fits into the room."""
    group: list[int] = []
    for k, width in enumerate(widths):
        if group and sum(widths[j] + 1 for j in group) + width + 1 > room:
            yield group
            group = []
        group.append(k)
    yield group


def _text_cell(cell: Summary | None) -> str:
    if cell is None:
        return "-"
    return f"{'*' if cell.bold else ''}{cell.short}{'!' if cell.differs else ''}"


def _markdown_cell(cell: Summary | None) -> str:
    if cell is None:
        return "–"
    text = f"**{cell.text}**" if cell.bold else cell.text
    return f"{text} !" if cell.differs else text


def _latex_cell(cell: Summary | None) -> str:
    if cell is None:
        return "--"
    text = cell.text.replace("±", "\\pm")
    text = f"$\\mathbf{{{text}}}$" if cell.bold else f"${text}$"
    return f"{text}$^{{!}}$" if cell.differs else text


def _escape_markdown(text: str) -> str:
    return text.translate({ord(sign): f"\\{sign}" for sign in "\\|*_<>`[]"}).replace("\n", " ")


def _escape_latex(text: str) -> str:
    special: dict[str, Any] = {
        "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
        "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\n": " ",
    }  # fmt: skip
    return text.translate(str.maketrans(special))
