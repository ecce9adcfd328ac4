"""The paper's tables beside our own results: as plain text, Markdown, LaTeX and CSV.

``paper.csv`` has the values printed in the paper: accuracy (table 3, with its bold type) and time (table 4).
They are for comparison, never targets: some accuracies cannot come from a working classifier (`signs_of`).
"""

from __future__ import annotations

import csv
import io
import math
import shutil
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from popf.datasets.registry import RECORDS
from popf.experiment.protocol import RUNS, TRAIN_SIZE
from popf.experiment.results import FEWEST_RUNS, MEASURES, SIGNIFICANCE, Results, Summary

#: Prefix that narrow columns omit from method names.
PREFIX = "P-OPF-"
CSV_COLUMNS = (
    "dataset", "form", "stand_in", "method", "mean", "deviation", "runs", "bold",
    "paper_mean", "paper_deviation", "paper_bold", "paper_differs",
)  # fmt: skip
RUN_COLUMNS = (
    "dataset", "form", "run", "method", "random_state", "accuracy", "log_loss", "brier", "ece",
    "train_seconds", "test_seconds", "A", "B", "held", "warnings", "failed",
)  # fmt: skip


def _printed(measure: str) -> dict[str, dict[str, Summary]]:
    """Read the paper's values of a measure, by dataset and method."""
    found: dict[str, dict[str, Summary]] = {}
    text = files("popf.experiment").joinpath("paper.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        mean, deviation = float(row[measure]), float(row[f"{measure}_deviation"])
        value = Summary(mean, deviation, RUNS, row.get(f"{measure}_bold") == "1")
        found.setdefault(row["dataset"], {})[row["method"]] = value
    return found


#: Accuracy in per cent and time in seconds, ``ACCURACY[dataset][method]``. The paper does not say what it
#: times, and also names the second line of that table "industrial"; by its position, it is comercial.
ACCURACY, SECONDS = _printed("accuracy"), _printed("seconds")
STANDARD_ERRORS = 2.0
TIMES_A_COIN = 3.0


class Row(NamedTuple):
    """A dataset in one form: our means and the paper's, by method."""

    dataset: str
    form: str
    stand_in: bool
    ours: dict[str, Summary]
    printed: dict[str, Summary]


@dataclass(frozen=True)
class Table:
    """Table of a measure for all methods and datasets, made by `table`; print it to see it.

    Attributes
    ----------
    name : str
        The measure.
    title : str
    methods : list of str
        The columns; methods without any value are left out.
    rows : list of Row
    notes : list of str
        Sentences shown below the table.
    """

    name: str
    title: str
    methods: list[str]
    rows: list[Row]
    notes: list[str]

    def __str__(self) -> str:
        return self.text(shutil.get_terminal_size((100, 24)).columns)

    def text(self, width: int = 100) -> str:
        """Format the table in lines of `width` characters; columns that do not fit are put below."""
        if not self.methods:
            return f"{self.title}: predicted by none of these methods."
        heads = [name.removeprefix(PREFIX) for name in self.methods]
        labels, lines = [], []
        for label, cells in self._lines():
            labels.append(label)
            lines.append([self._text_cell(cells.get(name)) for name in self.methods])
        first = max(map(len, ["dataset", *labels]))
        widths = [max(map(len, column)) for column in zip(heads, *lines, strict=True)]
        parts = [self.title]
        for chosen in _groups_that_fit(widths, width - first):
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

    def means(self) -> dict[str, str]:
        """Average over all rows, for the methods that have a value in each of them."""
        whole = [m for m in self.methods if all(m in row.ours for row in self.rows)]
        digits = MEASURES[self.name].digits
        return {m: f"{fmean(row.ours[m].mean for row in self.rows):.{digits}f}" for m in whole}

    def _lines(self) -> Iterator[tuple[str, dict[str, Summary]]]:
        """Yield labels and cells of the lines of `text`: a dataset, its other form, the paper's values."""
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

    def _text_cell(self, cell: Summary | None) -> str:
        """Format a value for narrow columns: accuracies with one decimal, other means without deviation."""
        if cell is None:
            return "-"
        text = f"{cell.mean:.{cell.digits}f}"
        if self.name == "accuracy":
            text = f"{cell.mean:.1f}"
            if cell.deviation is not None:
                text += f"±{cell.deviation:.{0 if cell.deviation >= 9.95 else 1}f}"
        return f"{'*' if cell.bold else ''}{text}{'!' if cell.differs else ''}"

    def _wide(self, show: Callable[[Summary | None], str]) -> list[list[str]]:
        """Return the rows of the wide formats, header first; the paper's values are right of ours."""
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
        """Format the table as Markdown, with the paper's values in separate columns."""
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
        """Format the table as LaTeX, for a document that uses ``booktabs``."""
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
        """Format the table as CSV: a line for each dataset, form and method, with unrounded numbers."""
        return as_csv(CSV_COLUMNS, self.facts())

    def facts(self) -> Iterator[dict[str, Any]]:
        """Yield the lines of `csv` as dicts; None for missing values."""
        for dataset, form, stand_in, ours, printed in self.rows:
            for method, cell in ours.items():
                beside = printed.get(method)
                paper = [
                    getattr(beside, key, None) for key in ("mean", "deviation", "bold", "differs")
                ]
                values = (dataset, form, stand_in, method, *cell[:4], *paper)
                yield dict(zip(CSV_COLUMNS, values, strict=True))


def table(results: Results, measure: str) -> Table:
    """Make the table of a measure, with the paper's values where there are any.

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
        printed = _printed_values(results, measure, dataset)
        for method in printed.keys() & ours.keys():
            far = not stand_in and differs(printed[method], ours[method])
            printed[method] = printed[method]._replace(differs=far)
        rows.append(Row(dataset, form, stand_in, ours, printed))
    shown = [
        method
        for method in results.methods
        if any(method in row.ours or method in row.printed for row in rows)
    ]
    notes = _notes(results, measure, rows)
    return Table(measure, MEASURES[measure].title, shown, rows, notes)


def _notes(results: Results, measure: str, rows: list[Row]) -> list[str]:
    """Explain the marks in the table and the data behind it."""
    runs = results.protocol.runs
    mean = f"Mean ± standard deviation over {runs} runs" if runs > 1 else "One run"
    notes = [f"{mean}, {100 * results.protocol.train_size:g} % for training."]
    if MEASURES[measure].larger_is_better is None:
        pass  # nothing is marked
    elif runs < FEWEST_RUNS:
        notes.append(
            f"None is marked as best: with fewer than {FEWEST_RUNS} runs no difference can be significant."
        )
    else:
        notes.append(
            "Bold: the best mean, and all that are not significantly worse by Wilcoxon's signed-rank test at "
            f"{SIGNIFICANCE}."
        )
    printed = [cell for row in rows for cell in row.printed.values()]
    if printed:
        bold = ", bold as there" if any(cell.bold for cell in printed) else ""
        notes.append(f"Paper: the value printed in the paper{bold}.")
    if printed and measure == "seconds":
        notes.append("The paper's times are from another machine, language and year.")
    if any(cell.differs for cell in printed):
        notes.append("!: differs from ours by more than both standard deviations together.")
    stand_ins = dict.fromkeys(row.dataset for row in rows if row.stand_in)
    if stand_ins:
        shown = " The paper's values are shown, but not compared." if printed else ""
        notes.append(
            f"Stand-ins, generated because the paper's data are not public: {', '.join(stand_ins)}.{shown}"
        )
    if any(row.form == "scaled" for row in rows):
        notes.append("Scaled: standardised by mean and standard deviation of the training samples.")
    held = [record["held"] for record in results.records if "held" in record]
    if measure == "accuracy" and any(held):
        notes.append(
            f"The box [-10, 10]² limits A or B in {sum(held)} of {len(held)} runs of the paper's method."
        )
    return notes


def as_csv(columns: Iterable[str], rows: Iterable[dict[str, Any]]) -> str:
    """Format dicts as CSV: None as an empty cell, True and False as 1 and 0."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        cells = (row.get(name) for name in columns)
        writer.writerow([int(cell) if isinstance(cell, bool) else cell for cell in cells])
    return out.getvalue()


def _groups_that_fit(widths: list[int], room: int) -> Iterator[list[int]]:
    """Group columns so that each group fits into a width of `room`."""
    group: list[int] = []
    for k, width in enumerate(widths):
        if group and sum(widths[j] + 1 for j in group) + width + 1 > room:
            yield group
            group = []
        group.append(k)
    yield group


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


def _printed_values(results: Results, measure: str, dataset: str) -> dict[str, Summary]:
    """Return the paper's values of a dataset by method; none for other data of the same name."""
    values = {"accuracy": ACCURACY, "seconds": SECONDS}.get(measure, {}).get(dataset, {})
    record, shape = RECORDS.get(dataset), results.datasets[dataset].X.shape
    if record is None or shape != (record.n_samples, record.n_features):
        return {}
    return {method: values[method] for method in results.methods if method in values}


def differs(value: Summary, ours: Summary) -> bool:
    """Return whether two means differ by more than the sum of their standard deviations."""
    return abs(value.mean - ours.mean) > (value.deviation or 0.0) + (ours.deviation or 0.0)


class ImplausibleValue(NamedTuple):
    """An accuracy printed in the paper, ours on the same data, and what is wrong with the former."""

    dataset: str
    method: str
    printed: Summary
    ours: dict[str, Summary]  # by form; empty for stand-ins, which cannot be compared
    signs: dict[str, str]  # "worse", "spread", "far", each described in words


def implausible_values(results: Results, accuracy: Table) -> list[ImplausibleValue]:
    """Find the implausible accuracies of the paper, given the accuracy table of a study."""
    found = []
    for name, dataset in results.datasets.items():
        coin = 100.0 * coin_deviation(np.unique(dataset.y, return_counts=True)[1])
        forms = [row for row in accuracy.rows if row.dataset == name]
        for method, value in forms[0].printed.items():
            known = [row for row in forms if method in row.ours and not dataset.stand_in]
            ours = {row.form: row.ours[method] for row in known}
            signs = signs_of(value, list(ours.values()), coin)
            if dataset.stand_in:
                # Where nearby samples have opposite labels, the forest itself is worse than guessing, and the
                # paper's data may be like that.
                signs.pop("worse", None)
            if signs:
                found.append(ImplausibleValue(name, method, value, ours, signs))
    return found


def signs_of(value: Summary, ours: list[Summary], coin: float) -> dict[str, str]:
    """Find what is wrong with a printed accuracy, given ours in each form and the deviation of coin tosses."""
    mean, deviation = value.mean, value.deviation or 0.0
    found = {}
    if mean + STANDARD_ERRORS * deviation / math.sqrt(RUNS) < 50.0:
        found["worse"] = f"{mean:.2f} % is worse than guessing"
    if deviation > TIMES_A_COIN * coin:
        times = f"{deviation / coin:.0f} times the ± {coin:.2f}"
        found["spread"] = f"± {deviation:.2f} is {times} of tossing a coin"
    if ours and all(differs(value, summary) for summary in ours):
        nearest = min((summary.mean for summary in ours), key=lambda own: abs(own - mean))
        found["far"] = f"on this data we get {nearest:.2f} %"
    return found


def coin_deviation(counts: ArrayLike) -> float:
    r"""Compute the deviation of Papa's accuracy if a coin is tossed for every test sample, 75 % of the data.

    With :math:`n_+` and :math:`n_-` test samples the accuracy is the mean of two independent shares, each with
    variance :math:`1/4n`: :math:`\sigma = \tfrac12 \sqrt{1/4n_+ + 1/4n_-}`.
    """
    tested = (1.0 - TRAIN_SIZE) * np.asarray(counts, dtype=np.float64)
    return float(0.5 * np.sqrt((0.25 / tested).sum()))
