"""``popf fit``: a model from a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from popf.cli import options

if TYPE_CHECKING:
    from popf.table_models.fitting import Fitted

EXAMPLES = """\b
Examples:
  popf fit data.csv --target stolen -o model.popf
  popf fit data.csv --target stolen --id consumer --missing median -o model.popf
  popf fit data.csv --target stolen --positive yes --cost-fp 1 --cost-fn 20 -o model.popf
  popf fit data.parquet --target species --linear-map auto -o model.popf
"""


def fit(
    data: options.Data,
    target: Annotated[str, typer.Option(metavar="COLUMN", help="The column with the labels.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    id: options.Ids = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Left out. Repeat it.")
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Categories, though it looks like numbers. Repeat it."),
    ] = None,
    missing: Annotated[
        str, typer.Option(help="Missing values: refuse, or fill in median, mean, most_frequent.")
    ] = "refuse",
    positive: Annotated[
        str | None, typer.Option(metavar="LABEL", help="The class to find. Default: the second.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Positive from this probability on. Default: 0.5.")
    ] = None,
    cost_fp: Annotated[
        float | None, typer.Option(help="Cost of a false alarm; with --cost-fn sets the threshold.")
    ] = None,
    cost_fn: Annotated[float | None, typer.Option(help="Cost of a miss.")] = None,
    one_per: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Keep one random row for each value, as of a consumer."
        ),
    ] = None,
    sample_weight: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="As how many each row counts.")
    ] = None,
    method: Annotated[str, typer.Option(help="soft (ours), or paper.")] = "soft",
    linear_map: Annotated[
        str, typer.Option(help="none, weights, whitening, discriminant, or auto: the best of them.")
    ] = "none",
    metric: Annotated[str, typer.Option(help="The distance.")] = "euclidean",
    scale: Annotated[bool, typer.Option("--scale/--no-scale", help="Standardise numbers.")] = True,
    seed: Annotated[int, options.seed("Of all random choices.")] = 0,
    n_jobs: options.Jobs = -1,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = ".",
    na: options.Missing = None,
    json: options.Json = False,
) -> int:
    """Fit a model to a table of rows whose labels are known.

    Numbers are standardised, text columns become categories, id columns are carried through. The file
    holds the training rows in prepared form: share it only with those who may see them.
    """
    from popf.cli.messages import say
    from popf.cli.output import check_output, plain_warnings, show, writing

    check_output(output, [data])
    from popf.io import save
    from popf.table_models import FitOptions, fit_table

    wanted = FitOptions(
        target,
        tuple(id or ()),
        tuple(drop or ()),
        tuple(categorical or ()),
        sample_weight,
        missing,
        scale,
        positive,
        threshold,
        cost_fp,
        cost_fn,
        method,
        linear_map,
        metric,
        seed,
        n_jobs,
        one_per,
    )
    with plain_warnings():
        fitted = fit_table(options.table(data, delimiter, encoding, decimal, na), wanted)
        layout = fitted.table_model.layout
        with writing(output):
            save(fitted.table_model.model, output, X=fitted.frame.head(1), facts=layout.as_facts())
    for name, n in fitted.repeated.items():
        say(
            f"note: {name!r} repeats ({n:,} values): rows that belong together are nearly alike, which "
            f"makes the model too sure of itself. Consider --one-per {name}."
        )
    for name in fitted.counters:
        say(
            f"note: {name!r} counts up from row to row, as an identifier does, and is used as a feature. If "
            f"it is one: --id {name}."
        )
    facts = _facts(fitted, output)
    show(facts, _lines(facts, data, output), json)
    return 0


def _facts(fitted: "Fitted", output: Path) -> dict[str, Any]:
    table_model, final = fitted.table_model, fitted.table_model.final
    layout = table_model.layout
    binary = table_model.binary
    chosen = final.linear_map_
    return {
        "model": str(output),
        "n_rows": sum(fitted.counts.values()),
        "n_rows_read": fitted.n_read,
        "n_zero_weight": fitted.n_weightless,
        "classes": fitted.counts,
        "numbers": layout.numbers,
        "categories": layout.categories,
        "ids": layout.ids,
        "target": layout.target,
        "missing": layout.missing,
        "n_imputed": fitted.n_imputed,
        "positive": table_model.positive if binary else None,
        "threshold": layout.threshold if binary else None,
        "threshold_from": layout.threshold_from if binary else None,
        "cost_per_row": fitted.costs,
        "left_out_log_loss": fitted.log_loss,
        "prior_log_loss": fitted.prior_log_loss,
        "linear_map": None if chosen is None else type(chosen).__name__,
        "n_prototypes": len(final.opf_.prototypes_),
    }


def _lines(facts: dict[str, Any], data: Path, output: Path) -> list[str]:
    from popf.cli.output import columns, counted
    from popf.formatting import listed

    shares = listed([f"{label} {n:,}" for label, n in facts["classes"].items()])
    read = facts["n_rows_read"]
    of_all = f" of {read:,}" if read > facts["n_rows"] else ""
    features = counted(len(facts["numbers"]), "number")
    if facts["categories"]:
        features += f", {len(facts['categories'])} categorical ({listed(facts['categories'])})"
    rows = [
        ("rows", f"{facts['n_rows']:,}{of_all} ({shares})"),
        ("features", features),
    ]
    if facts["n_zero_weight"]:
        rows.insert(1, ("left out", f"{counted(facts['n_zero_weight'], 'row')} of weight 0"))
    if facts["ids"]:
        rows.append(("carried through", listed(facts["ids"])))
    if facts["n_imputed"]:
        rows.append(("missing", f"{counted(facts['n_imputed'], 'cell')} by {facts['missing']}"))
    if facts["linear_map"]:
        rows.append(("linear map", facts["linear_map"]))
    if facts["positive"] is not None:
        said = f"{facts['threshold']:.4g} on the probability of {facts['positive']}"
        rows.append(("threshold", f"{said} ({facts['threshold_from']})"))
    if facts["cost_per_row"]:
        costs = facts["cost_per_row"]
        rows.append(
            (
                "cost a row",
                f"{costs['at_threshold']:.4g}; at 0.5 {costs['at_half']:.4g}, calling nobody "
                f"{costs['call_none']:.4g}, everybody {costs['call_all']:.4g}",
            )
        )
    if facts["left_out_log_loss"] is not None:
        loss, prior = facts["left_out_log_loss"], facts["prior_log_loss"]
        rows.append(
            ("log loss", f"{loss:.3f} on left-out rows; always the class shares: {prior:.3f}")
        )
    lines = [f"{line}" for line in columns([[name, ""] for name, _ in rows])]
    width = max(len(line) for line in lines) + 2
    lines = [f"{line.ljust(width)}{said}" for line, (_, said) in zip(lines, rows, strict=True)]
    return [
        f"Fitted {data} and wrote {output}",
        *lines,
        f"Next: popf predict {output} new.csv -o scored.csv",
    ]
