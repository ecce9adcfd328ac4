"""``popf evaluate``: how good a model is on rows whose labels are known."""

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from popf.cli import options
from popf.cli.options import column
from popf.cli.scoring import Scoring
from popf.cli.terminal import named, show
from popf.formatting import aligned, counted

if TYPE_CHECKING:
    from popf.table_models.model import TableModel
    from popf.tables.columns import RowGroups

EXAMPLES = """\b
Examples:
  popf evaluate model.popf test.csv
  popf evaluate model.popf test.csv --threshold 0.2
  popf evaluate model.popf months.csv --id consumer
  popf evaluate model.popf test.csv --json | jq .measures.auc.value
"""
NAMES = {
    "log_loss": "log loss",
    "brier": "Brier score",
    "ece": "calibration error",
    "auc": "area under ROC",
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
        "Column whose values the intervals draw instead of rows, if they repeat. Default: the model's ids.",
        "--id",
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
    """Measure a model on rows that it was not fitted on, and whose labels are known.

    Log loss, Brier score and calibration error judge the probabilities (lower is better), the area under the
    ROC curve their order, the others the labels at the threshold. Intervals are 95 %, by the bootstrap over
    rows, or over the values of an id that repeats.
    """
    from popf.tables.columns import group_rows

    scoring = Scoring(model, data, (delimiter, encoding, decimal, na), n_jobs, threshold)
    table_model = scoring.model
    ids = scoring.choose_ids(id, use="draw rows by")
    labels = scoring.choose_target(target, ids)
    frame, probability = scoring.score_all([labels, *ids], progress)
    codes = scoring.true_codes(frame, labels)
    groups = group_rows({name: frame[name].tolist() for name in ids}, len(frame))
    facts = evaluation_facts(table_model, codes, probability, groups, seed)
    title = f"{counted(facts['n_rows'], 'row')} of {named(data)}; {table_model.rule}"
    show(facts, [title, "", *evaluation_lines(facts)], json)
    return 0


def evaluation_facts(
    table_model: "TableModel", codes: Any, probability: Any, groups: "RowGroups", seed: int
) -> dict[str, Any]:
    """Measure probabilities of rows whose classes, as positions, are known."""
    from popf.metrics import evaluate as measure

    found = measure(
        codes,
        probability,
        labels=range(len(table_model.classes)),
        pos_label=table_model.layout.positive if table_model.binary else None,
        threshold=table_model.layout.threshold,
        groups=None if groups.id is None else groups.numbers,
        seed=seed,
    )
    return {
        "n_rows": len(codes),
        "drawn_by": groups.id,
        "n_drawn": groups.n_groups,
        "classes": table_model.classes.tolist(),
        "positive": table_model.positive,
        "threshold": table_model.threshold,
        "measures": {name: score._asdict() for name, score in found.scores.items()},
        "confusion": found.confusion,
        "precision_by_class": found.precision_by_class,
        "recall_by_class": found.recall_by_class,
    }


def evaluation_lines(facts: dict[str, Any]) -> list[str]:
    """Show the measures and the confusion matrix."""
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
    lines = measure_lines(facts["measures"])
    if facts["drawn_by"] is not None:
        lines.append(
            f"Intervals draw the {facts['n_drawn']:,} values of {facts['drawn_by']!r}, not rows."
        )
    return [*lines, "", *aligned(rows)]


def measure_lines(measures: dict[str, Any]) -> list[str]:
    """Show values and intervals of some measures."""
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
