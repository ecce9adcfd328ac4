"""Tables for a terminal, and as Markdown, LaTeX and CSV."""

import csv
import io
import shutil
import textwrap
from collections.abc import Iterable

from popf.experiment.results import Results
from popf.experiment.tables import Cell, Row, Table, cell_facts

BOLD, DIM, FLAG, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[0m"
#: In narrow columns the solver alone names a method.
PREFIX = "P-OPF-"
CSV_COLUMNS = (
    *("dataset", "form", "stand_in", "method", "mean", "deviation", "runs", "bold"),
    *("paper_mean", "paper_deviation", "paper_bold", "paper_differs"),
)


def as_text(
    table: Table, *, colour: bool = False, width: int | None = None, full: bool = False
) -> str:
    """Lay a table out for a terminal: the paper's values below ours.

    Parameters
    ----------
    table : Table
    colour : bool, default=False
        Show bold type and flags by the terminal's means; otherwise by * and !.
    width : int, default=None
        How many characters fit into a line; more columns than fit are put below. None for the terminal's.
    full : bool, default=False
        All digits and deviations, for a file; a terminal gets what fits.

    Returns
    -------
    str
    """
    width = width or shutil.get_terminal_size((100, 24)).columns
    labels, lines = _text_rows(table)
    methods = table.methods
    heads = methods if full else [name.removeprefix(PREFIX) for name in methods]
    first = max(len(label) for label in [*labels, "dataset"])
    plain = [[_plain(cells.get(name), colour, full) for name in methods] for cells in lines]
    widths = [max(len(head), *(len(line[k]) for line in plain)) for k, head in enumerate(heads)]
    parts = [table.title]
    for columns in _chunks(widths, width - first):
        parts.append("")
        head = "".join(f" {heads[k]:>{widths[k]}}" for k in columns)
        parts.append(f"{'dataset':{first}}{head}")
        for label, cells, texts in zip(labels, lines, plain, strict=True):
            shown = (
                f" {'':{widths[k] - len(texts[k])}}"
                + _dressed(texts[k], cells.get(methods[k]), label, colour)
                for k in columns
            )
            parts.append(f"{label:{first}}{''.join(shown)}".rstrip())
    notes = _text_notes(table, colour, full)
    return "\n".join([*parts, "", *(line for note in notes for line in _wrapped(note, width))])


def _text_notes(table: Table, colour: bool, full: bool) -> list[str]:
    """Say what the signs mean that a terminal shows."""
    notes = list(table.notes)
    short = [name.removeprefix(PREFIX) for name in table.methods if name.startswith(PREFIX)]
    if short and not full:
        notes.insert(1, f"{', '.join(short)}: P-OPF.")
    words = {"!: differs": "Red: differs"} if colour else {"Bold:": "*:", ", bold as there": ""}
    if not full and table.name != "accuracy":
        words["Mean ± standard deviation"] = "Mean"
    for old, new in words.items():
        notes = [note.replace(old, new) for note in notes]
    return notes


def _text_rows(table: Table) -> tuple[list[str], list[dict[str, Cell]]]:
    """Give labels and cells of all lines: a data set, its other form, the paper's values."""
    labels, lines = [], []
    for rows in table.blocks():
        for k, row in enumerate(rows):
            labels.append(row.dataset if k == 0 else f"  {row.form}")
            lines.append(row.ours)
        printed = _flagged_in_all(rows)
        if printed:
            labels.append("  paper")
            lines.append(printed)
    return labels, lines


def _flagged_in_all(rows: list[Row]) -> dict[str, Cell]:
    """Merge the paper's cells of several forms: flagged if none of ours comes near."""
    return {
        name: Cell(cell.text, cell.short, cell.bold, all(row.printed[name].flagged for row in rows))
        for name, cell in rows[0].printed.items()
    }


def _plain(cell: Cell | None, colour: bool, full: bool) -> str:
    if cell is None:
        return "-"
    text = cell.text if full else cell.short
    if colour:
        return text
    return f"{'*' if cell.bold else ''}{text}{'!' if cell.flagged else ''}"


def _dressed(text: str, cell: Cell | None, label: str, colour: bool) -> str:
    """Add the terminal's codes for bold, dim and red."""
    if not colour or cell is None:
        return text
    codes = (
        (DIM if label == "  paper" and not cell.flagged else "")
        + (FLAG if cell.flagged else "")
        + (BOLD if cell.bold else "")
    )
    return f"{codes}{text}{PLAIN}" if codes else text


def _chunks(widths: list[int], room: int) -> Iterable[list[int]]:
    """Put columns into groups that fit into the room."""
    group: list[int] = []
    used = 0
    for k, width in enumerate(widths):
        if group and used + width + 1 > room:
            yield group
            group, used = [], 0
        group.append(k)
        used += width + 1
    yield group


def _wrapped(sentence: str, width: int) -> list[str]:
    return textwrap.wrap(sentence, min(max(width, 40), 100))


def _columns(table: Table) -> list[tuple[str, bool]]:
    """Columns of the wide formats: every method, and behind it the paper's where there is one."""
    printed = set(table.printed_methods)
    return [
        column
        for name in table.methods
        for column in ([(name, False), (name, True)] if name in printed else [(name, False)])
    ]


def label_of(row: Row, table: Table) -> str:
    """Name a row: the data set, and its form where there are two.

    Examples
    --------
    >>> from popf.experiment.render import label_of
    >>> from popf.experiment.tables import Row, Table
    >>> rows = [Row("heart", form, False, {}, {}) for form in ("raw", "scaled")]
    >>> label_of(rows[1], Table("accuracy", "", [], rows))
    'heart, scaled'
    """
    n_forms = sum(other.dataset == row.dataset for other in table.rows)
    return f"{row.dataset}, {row.form}" if n_forms > 1 else row.dataset


def as_markdown(table: Table) -> str:
    """Write a table as Markdown, the paper's values in a second column."""
    columns = _columns(table)
    heads = [f"{name} (paper)" if printed else name for name, printed in columns]
    lines = [
        "| " + " | ".join(_escape_markdown(text) for text in ["dataset", *heads]) + " |",
        "|---" + "|---:" * len(columns) + "|",
    ]
    for row in table.rows:
        cells = []
        for name, printed in columns:
            cell = (row.printed if printed else row.ours).get(name)
            text = "–" if cell is None else f"**{cell.text}**" if cell.bold else cell.text
            cells.append(text + (" !" if cell is not None and cell.flagged else ""))
        name = _escape_markdown(label_of(row, table))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    notes = "\n".join(f"{_escape_markdown(note)}  " for note in table.notes)
    return f"## {_escape_markdown(table.title)}\n\n" + "\n".join(lines) + f"\n\n{notes}\n"


def as_latex(table: Table) -> str:
    """Write a table as LaTeX, to be put into a document with ``booktabs``."""
    columns = _columns(table)
    head = " & ".join(
        _escape_latex(f"{name} (paper)" if printed else name) for name, printed in columns
    )
    lines = [
        "% needs \\usepackage{booktabs}",
        f"\\begin{{tabular}}{{l{'r' * len(columns)}}}",
        "\\toprule",
        f"Dataset & {head} \\\\",
        "\\midrule",
    ]
    for row in table.rows:
        cells = []
        for name, printed in columns:
            cell = (row.printed if printed else row.ours).get(name)
            text = "" if cell is None else cell.text.replace(" ± ", " \\pm ")
            if cell is not None:
                text = f"\\mathbf{{{text}}}" if cell.bold else text
                text = f"${text}${'$^{!}$' if cell.flagged else ''}"
            cells.append(text or "--")
        lines.append(f"{_escape_latex(label_of(row, table))} & {' & '.join(cells)} \\\\")
    notes = "\n".join(f"% {note}" for note in table.notes)
    return "\n".join([f"% {table.title}", notes, *lines, "\\bottomrule", "\\end{tabular}", ""])


def as_csv(results: Results, name: str) -> str:
    """Write a measure as CSV: a line for each data set, form and method, numbers in full.

    Columns: dataset, form, method, mean, deviation, runs, bold, and the paper's mean, deviation, bold and
    whether it differs.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for facts in cell_facts(results, name):
        # None is written as nothing.
        writer.writerow(
            {key: int(fact) if isinstance(fact, bool) else fact for key, fact in facts.items()}
        )
    return out.getvalue()


def runs_as_csv(results: Results) -> str:
    """Write every run of every method as a line of CSV."""
    names = ["dataset", "form", "run", "method", "random_state", "accuracy", "log_loss", "brier"]
    names += ["ece", "train_seconds", "test_seconds", "A", "B", "held", "warnings", "failed"]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for record in results.records:
        values = (record.get(name) for name in names)
        writer.writerow(["" if value is None else value for value in values])
    return out.getvalue()


def _escape_markdown(text: str) -> str:
    for sign in "\\|*_<>`[]":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("\n", " ")


def _escape_latex(text: str) -> str:
    special = {
        "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
        "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    }  # fmt: skip
    return "".join(special.get(sign, sign) for sign in text).replace("\n", " ")
