"""``popf evaluate``: how good a model is on rows whose labels are known."""

from math import isnan
from typing import Annotated, Any

import typer

from popf.cli import options

EXAMPLES = """\b
Examples:
  popf evaluate model.popf test.csv
  popf evaluate model.popf test.csv --threshold 0.2
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
BETTER_SMALL = ("log_loss", "brier", "ece", "false_alarm_rate")


def evaluate(
    model: options.Model,
    data: options.Data,
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column with the labels. Default: as in training."),
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="In place of the model's own.")] = None,
    seed: Annotated[int, options.seed("Of the bootstrap behind the intervals.")] = 0,
    n_jobs: options.Jobs = -1,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = ".",
    na: options.Missing = None,
    progress: options.Progress = None,
    json: options.Json = False,
) -> int:
    """Measure a model on rows that it was not fitted on, and whose labels are known.

    Log loss, Brier score and calibration error judge the probabilities (lower is better), the area under the
    ROC curve their order, the others the labels at the threshold. Intervals are 95 %, by the bootstrap over
    rows.
    """
    from popf.cli.output import plain_warnings, show
    from popf.cli.predict import with_threshold
    from popf.cli.scoring import need_probabilities, target_in
    from popf.metrics import evaluate as measure
    from popf.table_models import open_model

    with plain_warnings():
        table_model = with_threshold(open_model(model, n_jobs), threshold)
        need_probabilities(table_model, model)
        table = options.table(data, delimiter, encoding, decimal, na)
        column = target_in(table_model, table, target)
        codes, probability = _scored(table_model, table, column, progress)
        binary = table_model.binary
        found = measure(
            codes,
            probability,
            labels=range(len(table_model.classes)),
            pos_label=table_model.layout.positive if binary else None,
            threshold=table_model.layout.threshold,
            seed=seed,
        )
    labels = table_model.classes.tolist()
    facts = {
        "n_rows": len(codes),
        "classes": labels,
        "positive": table_model.positive if binary else None,
        "threshold": table_model.layout.threshold if binary else None,
        "measures": {name: score._asdict() for name, score in found.scores.items()},
        "confusion": found.confusion,
    }
    show(facts, _lines(facts, data), json)
    return 0


def _scored(table_model: Any, table: Any, column: str, progress: bool | None) -> tuple[Any, Any]:
    """Give true classes and probabilities of all rows; of the rest, one piece is held at a time."""
    import numpy as np

    from popf.cli.scoring import scored_pieces
    from popf.tables.cells import match_labels

    cells: list[Any] = []
    found: list[Any] = []
    with scored_pieces(table_model, table, [column], progress=progress) as pieces:
        for scored in pieces:
            cells += scored.frame[column].tolist()
            found.append(scored.probability)
    where = f"column {column!r} of {table.path}"
    return match_labels(cells, table_model.classes, where), np.vstack(found)


def _lines(facts: dict[str, Any], data: Any) -> list[str]:
    from popf.cli.output import columns, counted

    lines = [f"{counted(facts['n_rows'], 'row')} of {data}"]
    if facts["positive"] is not None:
        lines[0] += f"; {facts['positive']} from probability {facts['threshold']:.4g} on"
    rows = [["", "value", "95 % interval", ""]]
    for name, found in facts["measures"].items():
        value, lower, upper = found["value"], found["lower"], found["upper"]
        rows.append(
            [
                NAMES[name],
                "undefined" if isnan(value) else f"{value:.3f}",
                "" if isnan(lower) else f"{lower:.3f} to {upper:.3f}",
                "lower is better" if name in BETTER_SMALL else "",
            ]
        )
    labels = [str(label) for label in facts["classes"]]
    confusion = [["true \\ predicted", *labels]]
    for label, row in zip(labels, facts["confusion"], strict=True):
        confusion.append([label, *(f"{n:,}" for n in row)])
    return [*lines, "", *columns(rows), "", *columns(confusion)]
