"""``popf report``: write an HTML report on a model."""

from pathlib import Path
from typing import Any

from popf.cli import options
from popf.cli.evaluate import measure_lines
from popf.cli.options import option
from popf.cli.scoring import Scoring
from popf.cli.terminal import check_output, show
from popf.files import open_output
from popf.formatting import counted

EXAMPLES = """\b
Examples:
  popf report model.popf test.csv -o report.html
  popf report model.popf test.csv --id consumer --cost-fp 1 --cost-fn 20 -o report.html
  popf report model.popf test.csv --target stolen --positive yes --top 300 -o report.html
"""
SHOWN = ("log_loss", "brier", "ece", "auc")


def report(
    model: Path = options.MODEL,
    data: Path = options.DATA,
    output: Path = options.output(Path("report.html"), "HTML file to write."),
    target: str | None = options.TARGET,
    id: list[str] | None = options.IDS,
    positive: str | None = options.POSITIVE,
    threshold: float | None = option(
        None, "Start of the threshold slider. Default: the model's threshold."
    ),
    cost_fp: float | None = option(
        None, "Cost of a false alarm (false positive). Default: as in `popf fit`."
    ),
    cost_fn: float | None = options.COST_FN,
    top: int = option(100, "Number of rows to list, with their paths."),
    title: str | None = option(None, "Title of the page."),
    seed: int = options.BOOTSTRAP_SEED,
    n_jobs: int = options.JOBS,
    delimiter: str | None = options.DELIMITER,
    encoding: str = options.ENCODING,
    decimal: str = options.DECIMAL,
    na: list[str] | None = options.MISSING,
    progress: bool | None = options.PROGRESS,
    json: bool = options.JSON,
) -> int:
    """Write an HTML report on a model and the rows it scores.

    The page shows how good the probabilities are, which threshold to use, and which rows are the most likely.
    Use labelled rows that the model was not fitted on. The page is a single file that needs no network. It
    contains the listed rows and the training rows on their paths: share it only with people who may see them.
    """
    from popf.io import describe
    from popf.report.page import check_options, compute

    check_output(output, [model, data], (".html", ".htm"))
    check_options(threshold, cost_fp, cost_fn, top)  # before any work
    scoring = Scoring(model, data, (delimiter, encoding, decimal, na), n_jobs)
    table_model = scoring.model
    ids = scoring.choose_ids(id)
    column = scoring.choose_target(target, ids)
    code, classes, layout = scoring.choose_class(positive), table_model.classes, table_model.layout
    if table_model.binary and cost_fp is None:
        own, cost_fp, cost_fn = layout.threshold, layout.cost_fp, layout.cost_fn
        if code != layout.positive:  # a false alarm of one class is a miss of the other
            own, cost_fp, cost_fn = 1.0 - own, cost_fn, cost_fp
        threshold = own if threshold is None else threshold
    frame, probability = scoring.score_all([column, *ids], progress)
    contents = compute(
        table_model.model,
        frame,
        classes[scoring.true_codes(frame, column)],
        ids={name: frame[name].tolist() for name in ids},
        about={**describe(model), "file": model.name, "data": data.name, "target": column},
        probability=probability,
        positive=classes.tolist()[code] if positive or table_model.binary else None,
        threshold=threshold,
        cost_fp=cost_fp,
        cost_fn=cost_fn,
        top=top,
        title=title,
        seed=seed,
    )
    page = contents.html().encode()
    with open_output(output) as file:
        file.write(page)
    view = contents.view
    quality, found = view.quality, view.decisions
    facts = {
        "output": str(output),
        "n_bytes": len(page),
        "n_rows": found.n_samples,
        "positive": view.event,
        "n_positive": int(found.counts.n_positive),
        "measures": {name: score._asdict() for name, score in quality.scores.items()},
        "prior_log_loss": quality.prior_log_loss,
        "miss_per_false_alarm": found.ratio,
        "recommended_threshold": float(found.counts.thresholds[found.recommended]),
        "threshold": float(found.counts.thresholds[view.start]),
        "classes": classes.tolist(),
    }
    show(facts, _lines(facts), json)
    return 0


def _lines(facts: dict[str, Any]) -> list[str]:
    share = facts["n_positive"] / facts["n_rows"]
    ratio = facts["miss_per_false_alarm"]
    times = "" if ratio == 1.0 else f"{ratio:.4g} times "
    lines = [
        f"Wrote {facts['output']}: {counted(facts['n_rows'], 'row')}, "
        f"{share:.1%} of them {facts['positive']}",
        *measure_lines({name: facts["measures"][name] for name in SHOWN}),
        f"  lowest cost at threshold {facts['recommended_threshold']:.4g}, if a miss costs "
        f"{times}as much as a false alarm",
    ]
    if len(facts["classes"]) > 2:
        lines.append(
            f"  {facts['positive']} against all others; --positive chooses another, the page shows every class."
        )
    return lines
