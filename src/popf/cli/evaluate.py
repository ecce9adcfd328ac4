"""``popf evaluate``: evaluate a model on labelled rows."""

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from popf.cli import options
from popf.cli.options import column
from popf.cli.scoring import Scoring
from popf.cli.terminal import named, show
from popf.formatting import aligned, counted, listed

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
    come from the bootstrap over rows, or over the values of an id that repeats.
    """
    from popf.tables.columns import group_rows

    scoring = Scoring(model, data, (delimiter, encoding, decimal, na), n_jobs, threshold)
    table_model = scoring.model
    ids = scoring.choose_ids(id, use="group rows by")
    labels = scoring.choose_target(target, ids)
    frame, probability = scoring.score_all([labels, *ids], progress)
    codes = scoring.true_codes(frame, labels)
    groups = group_rows({name: frame[name].tolist() for name in ids}, len(frame))
    facts = evaluation_facts(table_model, codes, probability, groups, seed)
    facts["importances"] = table_model.importances(frame)
    lines = [f"{counted(facts['n_rows'], 'row')} of {named(data)}; {table_model.rule}"]
    if facts["importances"]:
        lines.append(f"driven by {importances_line(facts['importances'])}")
    show(facts, [*lines, "", *evaluation_lines(facts)], json)
    return 0


def evaluation_facts(
    table_model: "TableModel", codes: Any, probability: Any, groups: "RowGroups", seed: int
) -> dict[str, Any]:
    """Compute the scores of probabilities; `codes` are the true classes as positions."""
    from popf.metrics import evaluate as measure

    evaluation = measure(
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
        "resampled_id": groups.id,
        "n_resampled": groups.n_groups,
        "classes": table_model.classes.tolist(),
        "positive": table_model.positive,
        "threshold": table_model.threshold,
        "measures": {name: score._asdict() for name, score in evaluation.scores.items()},
        "confusion": evaluation.confusion,
        "precision_by_class": evaluation.precision_by_class,
        "recall_by_class": evaluation.recall_by_class,
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
    return [*lines, "", *aligned(rows)]


def importances_line(importances: dict[str, float]) -> str:
    """Format the largest of the mean absolute contributions to the log odds."""
    shown = [name for name, size in importances.items() if size >= 0.005]
    named = {"forest": "similar rows (forest)"}
    sizes = [f"{named.get(name, name)} {importances[name]:.2f}" for name in shown]
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
