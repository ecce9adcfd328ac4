"""Results as tables: what stands in which cell, not yet how it looks."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from popf.experiment import paper
from popf.experiment.results import MEASURES, Measure, Results, Summary
from popf.experiment.statistics import SIGNIFICANCE


@dataclass(frozen=True)
class Cell:
    """One value of a table.

    Attributes
    ----------
    text : str
        Mean and deviation.
    short : str
        The same for a terminal, where columns are narrow.
    bold : bool
        Whether it is the best or its equal.
    flagged : bool
        Whether the paper's value differs from ours by more than both deviations.
    """

    text: str = ""
    short: str = ""
    bold: bool = False
    flagged: bool = False


@dataclass(frozen=True)
class Row:
    """A data set in one form: our cells and the paper's, by method."""

    dataset: str
    form: str
    stand_in: bool
    ours: dict[str, Cell]
    printed: dict[str, Cell]


@dataclass(frozen=True)
class Table:
    """A measure of all methods on all data sets.

    Attributes
    ----------
    name : str
        For the names of files.
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
    notes: list[str] = field(default_factory=list)

    @property
    def printed_methods(self) -> list[str]:
        """Methods with at least one value of the paper."""
        return [name for name in self.methods if any(name in row.printed for row in self.rows)]

    @property
    def has_forms(self) -> bool:
        """Whether some data set is there in two forms."""
        return len({row.dataset for row in self.rows}) < len(self.rows)

    def blocks(self) -> Iterator[list[Row]]:
        """Give rows of one data set together."""
        for name in dict.fromkeys(row.dataset for row in self.rows):
            yield [row for row in self.rows if row.dataset == name]


def measure_table(results: Results, name: str) -> Table:
    """Make the table of a measure, with the paper's values where it has some.

    Parameters
    ----------
    results : Results
    name : str
        One of `MEASURES`.

    Returns
    -------
    Table
    """
    measure = MEASURES[name]
    rows = []
    for dataset, form in results.rows():
        stand_in = results.datasets[dataset].stand_in
        ours = results.summaries(name, dataset, form)
        found = {
            method: paper.printed(name, dataset, method)
            for method in results.methods
            if is_the_papers(results, dataset)
        }
        printed = {method: value for method, value in found.items() if value is not None}
        rows.append(
            Row(
                dataset,
                form,
                stand_in,
                {method: _our_cell(summary, measure) for method, summary in ours.items()},
                {
                    method: _printed_cell(value, None if stand_in else ours.get(method), measure)
                    for method, value in printed.items()
                },
            )
        )
    shown = [
        method
        for method in results.methods
        if any(method in row.ours or method in row.printed for row in rows)
    ]
    return Table(name, measure.title, shown, rows, _notes(results, measure, rows))


def cell_facts(results: Results, name: str) -> Iterator[dict[str, Any]]:
    """Give every mean of a measure with the paper's, numbers in full and in the units of the tables.

    Parameters
    ----------
    results : Results
    name : str
        One of `MEASURES`.

    Yields
    ------
    dict
        For each data set, form and method that has values: ``dataset``, ``form``, ``stand_in``, ``method``,
        ``mean``, ``deviation`` (None of one run), ``runs``, ``bold``; ``paper_mean``, ``paper_deviation``,
        ``paper_bold`` and ``paper_differs``, None where the paper has no value.
    """
    factor = MEASURES[name].factor
    for row in measure_table(results, name).rows:
        for method, ours in results.summaries(name, row.dataset, row.form).items():
            cell = row.printed.get(method)
            printed = None if cell is None else paper.printed(name, row.dataset, method)
            yield {
                "dataset": row.dataset,
                "form": row.form,
                "stand_in": row.stand_in,
                "method": method,
                "mean": factor * ours.mean,
                "deviation": factor * ours.deviation if ours.n_runs > 1 else None,
                "runs": ours.n_runs,
                "bold": ours.bold,
                "paper_mean": None if printed is None else printed.mean,
                "paper_deviation": None if printed is None else printed.deviation,
                "paper_bold": None if printed is None else printed.bold,
                "paper_differs": None if cell is None or printed is None else cell.flagged,
            }


def is_the_papers(results: Results, dataset: str) -> bool:
    """Whether a data set is one of the paper's, or its stand-in; a user's own may share the name."""
    shape = paper.SHAPES.get(dataset)
    if shape is None:
        return False
    X = results.datasets[dataset].X
    # breast_cancer is in use with and without the number of the patient.
    return len(X) == shape.n_samples and X.shape[1] in (shape.n_features, shape.n_features - 1)


def differs(printed: paper.Printed, ours: Summary, factor: float = 1.0) -> bool:
    """Whether two means are further apart than their deviations together.

    Examples
    --------
    >>> from popf.experiment.paper import Printed
    >>> from popf.experiment.results import Summary
    >>> from popf.experiment.tables import differs
    >>> differs(Printed(50.43, 11.89), Summary(0.99, 0.01, 20), factor=100)
    True
    >>> differs(Printed(65.32, 4.98), Summary(0.63, 0.03, 20), factor=100)
    False
    """
    deviation = ours.deviation if ours.n_runs > 1 else 0.0
    distance = abs(printed.mean - factor * ours.mean)
    return distance > printed.deviation + factor * deviation


def _our_cell(summary: Summary, measure: Measure) -> Cell:
    mean, deviation = measure.factor * summary.mean, measure.factor * summary.deviation
    text = f"{mean:.{measure.digits}f}"
    short = _short(mean, measure)
    if summary.n_runs > 1:
        text += f" ± {deviation:.{measure.digits}f}"
        short += _short_deviation(deviation, measure)
    return Cell(text, short, summary.bold)


def _printed_cell(printed: paper.Printed, ours: Summary | None, measure: Measure) -> Cell:
    return Cell(
        f"{printed.mean:.2f} ± {printed.deviation:.2f}",
        f"{printed.mean:.2f}"
        if measure.name == "seconds"
        else f"{printed.mean:.1f}" + _short_deviation(printed.deviation, measure),
        printed.bold,
        ours is not None and differs(printed, ours, measure.factor),
    )


def _short(mean: float, measure: Measure) -> str:
    return f"{mean:.1f}" if measure.name == "accuracy" else f"{mean:.{measure.digits}f}"


def _short_deviation(deviation: float, measure: Measure) -> str:
    if measure.name != "accuracy":
        return ""
    return f"±{deviation:.0f}" if deviation >= 9.95 else f"±{deviation:.1f}"


def _notes(results: Results, measure: Measure, rows: list[Row]) -> list[str]:
    """Say what the signs mean that occur in the table, and what is missing."""
    runs = results.protocol.runs
    notes = []
    share = f"{100 * results.protocol.train_size:g} % for training"
    if runs > 1:
        notes.append(f"Mean ± standard deviation over {runs} runs, {share}.")
    else:
        notes.append(f"One run, {share}.")
    if measure.larger_is_better is not None:
        bold = (
            "Bold: the best mean and all that Wilcoxon's signed-rank test at "
            f"{SIGNIFICANCE} does not call worse"
        )
        if runs < 6:
            bold += "; with fewer than 6 runs it can call nothing worse"
        notes.append(bold + ".")
    printed = [cell for row in rows for cell in row.printed.values()]
    if printed:
        notes.append(
            "Paper: the value printed there"
            + (", bold as there." if any(cell.bold for cell in printed) else ".")
        )
    if printed and measure.name == "seconds":
        notes.append("The paper's times are of another machine, language and year.")
    if any(cell.flagged for cell in printed):
        notes.append("!: differs from ours by more than both deviations together.")
    stand_ins = dict.fromkeys(row.dataset for row in rows if row.stand_in)
    if stand_ins:
        sentence = (
            f"Stand-ins, generated because the paper's own are not public: {', '.join(stand_ins)}."
        )
        if printed:
            sentence += " Its values are shown beside them, but not compared."
        notes.append(sentence)
    if len({row.form for row in rows}) > 1:
        notes.append("Scaled: standardised by mean and deviation of the training samples.")
    elif rows and rows[0].form == "scaled":
        notes.append("Features are standardised by mean and deviation of the training samples.")
    held = _held(results)
    if measure.name == "accuracy" and held:
        notes.append(f"The box [-10, 10]² holds A or B in {held} runs of the paper's method.")
    return notes


def _held(results: Results) -> str:
    fits = [record for record in results.records if "held" in record]
    n_held = sum(record["held"] for record in fits)
    return f"{n_held} of {len(fits)}" if n_held else ""
