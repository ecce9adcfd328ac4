"""``popf evaluate``: evaluate a model on labelled rows."""

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from popf.cli import options
from popf.cli.options import column
from popf.cli.scoring import Scoring
from popf.cli.terminal import named, say, show
from popf.formatting import aligned, counted, listed

if TYPE_CHECKING:
    from popf.table_models.model import TableModel
    from popf.tables.columns import RowGroups

EXAMPLES = """\b
Examples:
  popf evaluate model.popf test.csv
  popf evaluate model.popf test.csv --threshold 0.2
  popf evaluate model.popf months.csv --id consumer --time month
  popf evaluate model.popf test.csv --json | jq .measures.auc.value
"""
#: Number of columns to name as those that drive a model.
N_IMPORTANCES = 6
NAMES = {
    "log_loss": "log loss",
    "brier": "Brier score",
    "ece": "calibration error",
    "auc": "ROC AUC",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "opf_accuracy": "OPF accuracy",
    "precision": "precision",
    "recall": "recall",
    "false_alarm_rate": "false-alarm rate",
}
LOWER_IS_BETTER = ("log_loss", "brier", "ece", "false_alarm_rate")


def evaluate(
    model: Path = options.MODEL,
    data: Path = options.DATA,
    target: str | None = options.TARGET,
    id: list[str] | None = column(
        None,
        "Id column: if its values repeat, the bootstrap draws them instead of rows. Default: the model's ids.",
        "--id",
    ),
    time: str | None = column(
        None, "Column with the time of each row, for scores by period. Default: the model's."
    ),
    threshold: float | None = options.THRESHOLD,
    seed: int = options.BOOTSTRAP_SEED,
    n_jobs: int = options.JOBS,
    delimiter: str | None = options.DELIMITER,
    encoding: str = options.ENCODING,
    decimal: str = options.DECIMAL,
    na: list[str] | None = options.MISSING,
    progress: bool | None = options.PROGRESS,
    json: bool = options.JSON,
) -> int:
    """Evaluate a model on labelled rows that it was not fitted on.

    Log loss, Brier score and calibration error measure the probabilities (lower is better), the area under
    the ROC curve (ROC AUC) their order, and the other scores the labels at the threshold. The 95 % intervals
    come from the bootstrap over rows, or over the values of an id that repeats. With --time also by day, month,
    quarter or year.

    A list from `popf rank --all-columns`, with labels added, is compared with what it promised.
    """
    from popf.dates import periods_of, read_times
    from popf.tables.columns import group_rows

    scoring = Scoring(model, data, (delimiter, encoding, decimal, na), n_jobs, threshold)
    table_model = scoring.model
    ids = scoring.choose_ids(id, use="group rows by")
    labels = scoring.choose_target(target, ids)
    if "rank" in scoring.table.names and not {*table_model.features} & {*scoring.table.names}:
        raise ValueError(
            f"{data} is a list without features: write it by `popf rank --all-columns`."
        )
    times = scoring.choose_time(time)
    frame, probability = scoring.score_all([labels, *ids, *times], progress)
    codes = scoring.true_codes(frame, labels)
    groups = group_rows({name: frame[name].tolist() for name in ids}, len(frame))
    periods = None
    if times:
        periods = periods_of(*read_times(frame[times[0]].tolist(), f"`time` {times[0]}"))
    facts = evaluation_facts(table_model, codes, probability, groups, periods, seed)
    facts["importances"] = table_model.importances(frame)
    facts["visits"] = visits = _visits(scoring, codes)
    lines = [f"{counted(facts['n_rows'], 'row')} of {named(data)}; {table_model.rule}"]
    if facts["importances"]:
        lines.append(f"driven by {importances_line(facts['importances'])}")
    lines += ["", *evaluation_lines(facts)]
    if visits:
        lines += [
            "",
            f"Promised {visits['promised']:,.0f} hits in {counted(len(codes), 'visit')}, found "
            f"{visits['found']:,}; {visits['lower']:,} to {visits['upper']:,} were to be expected.",
        ]
        say(
            "note: these rows were chosen by their probabilities, so they are no random sample: scores on all "
            "rows would be different, the area under the ROC curve most of all."
        )
    show(facts, lines, json)
    return 0


def _visits(scoring: Scoring, codes: Any) -> dict[str, Any] | None:
    """Compare a list from `popf rank` with its probabilities; None for other tables."""
    from popf.table_models.ranking import hits_interval

    table_model = scoring.model
    column = f"probability_{table_model.positive}"
    if not (table_model.binary and {"rank", column} <= {*scoring.table.names}):
        return None
    probability = scoring.numbers(column)
    lower, upper = hits_interval(probability, table_model.layout.spread)
    found = int((codes == table_model.layout.positive).sum())
    return {"promised": float(probability.sum()), "lower": lower, "upper": upper, "found": found}


def evaluation_facts(
    table_model: "TableModel",
    codes: Any,
    probability: Any,
    groups: "RowGroups",
    periods: tuple[list[str], Any] | None,
    seed: int,
) -> dict[str, Any]:
    """Compute the scores of probabilities; `codes` are the true classes as positions.

    `periods` are names, and the period of each row.
    """
    from popf.metrics import evaluate as measure

    evaluation = measure(
        codes,
        probability,
        labels=range(len(table_model.classes)),
        pos_label=table_model.layout.positive if table_model.binary else None,
        threshold=table_model.layout.threshold,
        groups=None if groups.id is None else groups.numbers,
        periods=None if periods is None else periods[1],
        seed=seed,
    )
    positive = table_model.layout.positive
    by_period = []
    for number, found in evaluation.by_period.items():
        row = {
            "period": periods[0][number] if periods else "",
            "n_rows": int(found.confusion.sum()),
        }
        if table_model.binary:
            row["found"] = int(found.confusion[positive].sum())
            row["promised"] = float(found.promised[positive])
        shown = ("log_loss", "auc" if table_model.binary else "accuracy")
        by_period.append(row | {name: found.scores[name]._asdict() for name in shown})
    return {
        "n_rows": len(codes),
        "resampled_id": groups.id,
        "n_resampled": groups.n_groups,
        "classes": table_model.classes.tolist(),
        "positive": table_model.positive,
        "threshold": table_model.threshold,
        "measures": {name: score._asdict() for name, score in evaluation.scores.items()},
        "confusion": evaluation.confusion,
        "precision_by_class": evaluation.precision_by_class,
        "recall_by_class": evaluation.recall_by_class,
        "by_period": by_period,
        "visits": None,
    }


def evaluation_lines(facts: dict[str, Any]) -> list[str]:
    """Format the scores and the confusion matrix."""
    labels = [str(label) for label in facts["classes"]]
    rows = [["true \\ predicted", *labels]]
    for label, row in zip(labels, facts["confusion"], strict=True):
        rows.append([label, *(f"{n:,}" for n in row)])
    if len(labels) > 2:
        precisions, recalls = (
            ["-" if isnan(share) else f"{share:.3f}" for share in facts[f"{name}_by_class"]]
            for name in ("precision", "recall")
        )
        cells = ["recall", *recalls]
        rows = [[*row, cell] for row, cell in zip(rows, cells, strict=True)]
        rows.append(["precision", *precisions, ""])
    # Of two classes it is the balanced accuracy.
    hidden = {"opf_accuracy"} if len(labels) == 2 else set()
    lines = measure_lines({n: score for n, score in facts["measures"].items() if n not in hidden})
    if facts["resampled_id"] is not None:
        lines.append(
            f"Intervals: bootstrap over the {facts['n_resampled']:,} values of {facts['resampled_id']!r}."
        )
    lines += ["", *aligned(rows)]
    return [*lines, *(["", *_period_lines(facts)] if facts["by_period"] else [])]


def _period_lines(facts: dict[str, Any]) -> list[str]:
    """Format the scores by period, with the positive rows that the probabilities promised."""
    scores = [name for name in ("log_loss", "auc", "accuracy") if name in facts["by_period"][0]]
    counts = ["promised", "found"] if facts["positive"] is not None else []
    rows = [["period", "rows", *counts, *(c for n in scores for c in (NAMES[n], "95 % interval"))]]
    for found in facts["by_period"]:
        cells = [found["period"], f"{found['n_rows']:,}", *(f"{found[n]:,.0f}" for n in counts)]
        for name in scores:
            value, lower, upper = found[name].values()
            cells.append("undefined" if isnan(value) else f"{value:.3f}")
            cells.append("" if isnan(lower) else f"{lower:.3f} to {upper:.3f}")
        rows.append(cells)
    return aligned(rows)


def importances_line(importances: dict[str, float]) -> str:
    """Format the largest of the mean absolute contributions to the log odds."""
    shown = [name for name, size in importances.items() if size >= 0.005]
    named = {"forest": "similar rows (forest)"}
    sizes = [f"{named.get(name, name)} {importances[name]:.2f}" for name in shown]
    if not sizes:
        return "nothing: no column moves the log odds by 0.005 on average"
    return listed(sizes, N_IMPORTANCES) + " (mean absolute contribution to the log odds)"


def measure_lines(measures: dict[str, Any]) -> list[str]:
    """Format the values and intervals of some scores."""
    rows = [["", "value", "95 % interval", ""]]
    for name, score in measures.items():
        value, lower, upper = score.values()
        rows.append(
            [
                NAMES[name],
                "undefined" if isnan(value) else f"{value:.3f}",
                "" if isnan(lower) else f"{lower:.3f} to {upper:.3f}",
                "lower is better" if name in LOWER_IS_BETTER else "",
            ]
        )
    return aligned(rows)
