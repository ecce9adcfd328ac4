"""``popf drift``: compare new rows with the training rows of a model."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from popf.cli import options
from popf.cli.options import column, option
from popf.cli.scoring import Scoring
from popf.cli.terminal import named, show
from popf.formatting import aligned, counted, listed

if TYPE_CHECKING:
    from popf.monitoring.changes import Drift

EXAMPLES = """\b
Examples:
  popf drift model.popf new.csv
  popf drift model.popf new.csv --limit 0.1 --json > drift.json || mail -s "drift" me < drift.json
"""
#: Exit status if something has drifted; errors have 1 and 2.
DRIFTED = 3
SHOWN = 12
SCORES = {
    "positives": "all {positive}",
    "hits": "{positive} at the threshold",
    "precision": "precision",
    "recall": "recall",
    "auc": "ROC AUC",
}


def drift(
    model: Path = options.MODEL,
    data: Path = options.DATA,
    target: str | None = options.TARGET,
    id: list[str] | None = column(
        None,
        "Id column: rows with equal ids count as one where chance is judged. Default: the model's ids.",
        "--id",
    ),
    limit: float = option(0.25, "Stability index from which a column may have drifted."),
    threshold: float | None = options.THRESHOLD,
    seed: int = options.seed("Seed for everything random."),
    n_jobs: int = options.JOBS,
    delimiter: str | None = options.DELIMITER,
    encoding: str = options.ENCODING,
    decimal: str = options.DECIMAL,
    na: list[str] | None = options.MISSING,
    progress: bool | None = options.PROGRESS,
    json: bool = options.JSON,
) -> int:
    """Compare new rows with the training rows in the model, and tell what to expect of them.

    No labels are needed: expected scores follow from the probabilities. Where the table has labels, what was
    found is compared with what was promised; rows may be without one. The exit status is 0 if nothing has
    drifted, 3 if something has, and 1 or 2 after an error.
    """
    import numpy as np

    from popf.monitoring import drift as compare
    from popf.tables.columns import group_rows, is_missing

    scoring = Scoring(model, data, (delimiter, encoding, decimal, na), n_jobs, threshold)
    table_model = scoring.model
    if not table_model.binary:
        raise ValueError(f"{model} has more than two classes: drift needs a model with two.")
    ids = scoring.choose_ids(id, use="group rows by")
    labels: list[str] = []
    if target is not None or table_model.layout.target in scoring.table.names:
        labels = [scoring.choose_target(target, ids)]
    frame, probability = scoring.score_all([*ids, *labels], progress)
    codes, labelled = None, np.zeros(len(frame), dtype=bool)
    if labels:
        cells = frame[labels[0]].astype(str)
        labelled = np.array([not is_missing(cell, na or ()) for cell in cells])
        codes = np.zeros(len(frame), dtype=np.int64)
        codes[labelled] = scoring.true_codes(frame[labelled], labels[0])
    groups = group_rows({name: frame[name].tolist() for name in ids}, len(frame))
    found = compare(
        table_model.model,
        frame[table_model.features],
        None if codes is None else table_model.classes[codes],
        labelled=labelled if labelled.any() else None,
        positive=table_model.positive,
        threshold=table_model.threshold,
        groups=None if groups.id is None else groups.numbers,
        spread=table_model.layout.spread,
        limit=limit,
        probability=probability[:, table_model.layout.positive],
        seed=seed,
    )
    facts = drift_facts(found) | {"positive": table_model.positive, "limit": limit}
    title = f"{counted(len(frame), 'row')} of {named(data)}, compared with {found.n_training:,} training rows"
    show(facts, [title, *_lines(facts, str(table_model.positive))], json)
    return DRIFTED if found.drifted else 0


def drift_facts(found: "Drift") -> dict[str, Any]:
    """Return a comparison as plain values."""
    return {
        "drifted": found.drifted,
        "n_rows": found.n_rows,
        "n_training": found.n_training,
        "columns": [each._asdict() for each in found.columns],
        "novel": found.novel._asdict() | {"usual": found.usual_novel},
        "deciles": found.deciles,
        "training_share": found.training_share,
        "expected": {name: score._asdict() for name, score in found.expected.items()},
        "found": found.found,
        "n_labelled": found.n_labelled,
    }


def _lines(facts: dict[str, Any], positive: str) -> list[str]:
    rows = [["", "index", "normal up to", "missing (was)", "unseen", ""]]
    for each in facts["columns"][:SHOWN]:
        missing = f"{each['missing']:.1%} ({each['missing_before']:.1%})"
        mark = "drifted" if each["drifted"] else ""
        cells = [f"{each['psi']:.3f}", f"{each['normal']:.3f}", missing, f"{each['unseen']:.1%}"]
        rows.append([each["name"], *cells, mark])
    lines = ["", *aligned(rows)]
    if len(facts["columns"]) > SHOWN:
        lines.append(f"  ... {len(facts['columns']) - SHOWN:,} more, with smaller indices")
    novel, deciles = facts["novel"], facts["deciles"]
    share = facts["expected"]["positives"]["value"] / (facts["n_labelled"] or facts["n_rows"])
    summary = [
        (
            "novel rows",
            f"{novel['value']:.1%} ({novel['lower']:.1%} to {novel['upper']:.1%}; usual: {novel['usual']:.0%})",
        ),
        ("probability", f"median {deciles[4]:.3f}, highest tenth from {deciles[8]:.3f}"),
        ("share", f"{share:.1%} of {positive} expected; in training {facts['training_share']:.1%}"),
    ]
    lines += ["", *aligned(summary, left=True), ""]
    found = facts["found"]
    rows = [["", "expected", "99 % interval", *(["found", ""] if found else [])]]
    for name, title in SCORES.items():
        score = facts["expected"][name]
        digits = 0 if name in ("positives", "hits") else 3
        cells = [f"{score['value']:,.{digits}f}"]
        cells += [f"{score['lower']:,.{digits}f} to {score['upper']:,.{digits}f}"]
        if found:
            cells += [f"{found[name]:,.{digits}f}"]
            cells += ["not as promised" if name in facts["drifted"] else ""]
        rows.append([title.format(positive=positive), *cells])
    lines += aligned(rows)
    if found:
        lines.append(
            f"Promises and findings are for the {facts['n_labelled']:,} rows with a label."
        )
    changed = listed(facts["drifted"]) if facts["drifted"] else "nothing"
    return [*lines, f"Drifted: {changed}."]
