"""``popf monitor``: list ids whose probability rises over time."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from popf.cli import options
from popf.cli.options import column, option
from popf.cli.scoring import Scoring
from popf.cli.terminal import check_output, more_rows, say, show
from popf.files import open_output
from popf.formatting import aligned, counted

if TYPE_CHECKING:
    from popf.monitoring.rising import Series

EXAMPLES = """\b
Examples:
  popf monitor model.popf months.csv --time month -o rising.csv --plot rising.png
  popf monitor model.popf months.csv --id consumer --time month -o rising.csv --truth stolen
"""
#: Columns of the output, after the ids.
COLUMNS = (
    *("first_alarm", "before", "at_alarm", "highest_rise"),
    *("last_probability", "last_time", "n_periods"),
)


def monitor(
    model: Path = options.MODEL,
    data: Path = options.DATA,
    time: str = column(..., "Column with the period: numbers, or dates such as 2024-05."),
    output: Path | None = options.output(
        None, "CSV file for the rising ids, the largest rise first."
    ),
    id: list[str] | None = column(
        None,
        "Column that tells which rows belong together. Default: the model's ids. Repeatable.",
        "--id",
    ),
    rise: float = option(0.3, "Rise in probability that raises an alarm."),
    recent: int = option(2, "Number of periods that count as recent.", min=1),
    history: int = option(1, "Minimum number of periods before the recent ones.", min=1),
    plot: Path | None = option(None, "Plot of the first twelve ids: .png, .svg or .pdf."),
    truth: str | None = column(
        None,
        "Column with the true labels, to measure how early and how reliably a rise tells the positive class.",
    ),
    seed: int = options.seed("Seed for the split of --truth."),
    n_jobs: int = options.JOBS,
    delimiter: str | None = options.DELIMITER,
    encoding: str = options.ENCODING,
    decimal: str = options.DECIMAL,
    na: list[str] | None = options.MISSING,
    progress: bool | None = options.PROGRESS,
    json: bool = options.JSON,
) -> int:
    """List ids whose probability rises over time, such as consumers, patients or machines.

    The rise is the mean of the last --recent probabilities minus the median of all earlier ones: every id is
    compared with its own past. With --truth, alarm limits are chosen on one half of the ids and evaluated on
    the other half; none of them should be in the training data.
    """
    import numpy as np

    from popf.dates import read_times
    from popf.monitoring import alarms, make_series, plot_rising, rises

    check_output(output, [model, data], (".csv",))
    check_output(plot, [model, data], (".png", ".svg", ".pdf"), "--plot")
    if not 0.0 < rise <= 1.0:
        raise ValueError(f"--rise must be above 0 and at most 1, not {rise:g}.")
    scoring = Scoring(model, data, (delimiter, encoding, decimal, na), n_jobs)
    table, table_model = scoring.table, scoring.model
    if not table_model.binary:
        raise ValueError(f"{model} has more than two classes: monitoring needs a model with two.")
    ids = scoring.choose_ids(id, COLUMNS)
    if not ids:
        raise ValueError("--id: name the column that tells which rows belong together.")
    truths = [] if truth is None else [truth]
    table.need([time], "time")
    table.need(truths, "truth")
    columns = list(dict.fromkeys([*ids, time, *truths]))
    frame, probability = scoring.score_all(columns, progress)
    positive = table_model.layout.positive
    units = frame.groupby(ids, sort=False).ngroup().to_numpy()
    times, are_dates = read_times(frame[time].tolist(), f"`time` {time}")
    time_names = dict(zip(times.tolist(), frame[time].tolist(), strict=True)) if are_dates else None
    series = make_series(units, times, probability[:, positive])
    risen = rises(series.probability, recent, history)
    if not np.isfinite(risen).any():
        raise ValueError(
            f"no {' and '.join(ids)} has {recent + history} periods, the minimum set by --recent and "
            "--history: give longer series, or tell by --id which rows belong together."
        )
    first = alarms(risen, rise)
    rising = np.flatnonzero(first >= 0)
    rising = rising[np.argsort(-np.nanmax(risen[rising], axis=1), kind="stable")]
    listed = _list(frame[ids], frame[time], series, risen, (rising, first, recent))
    detection = None
    if truth is not None:
        true = scoring.true_codes(frame, truth) == positive
        detection = _detection(series, risen, true, seed)
    if output is not None:
        with open_output(output) as file:
            file.write(listed.to_csv(index=False, float_format="%.6g").encode())
    if plot is not None and len(rising):
        figure = plot_rising(
            series,
            rising.tolist(),
            first_alarm=first[rising].tolist(),
            names=[" ".join(values) for values in listed[ids].to_numpy()],
            time_label="",
            time_names=time_names,
            label=f"probability of {table_model.positive}",
        )
        with open_output(plot) as file:
            figure.savefig(file, format=plot.suffix.lower().lstrip("."), dpi=150)
    elif plot is not None:
        say("note: no probability rises by --rise or more, so no plot was written.")
    facts = {
        "n_rows": len(frame),
        "n_units": len(series.units),
        "positive": table_model.positive,
        "rise": rise,
        "recent": recent,
        "history": history,
        "rising": listed.to_dict("records"),
        "detection": detection,
        "output": None if output is None else str(output),
    }
    show(facts, _lines(facts, ids), json)
    return 0


def _list(ids: Any, times: Any, series: "Series", risen: Any, found: tuple[Any, Any, int]) -> Any:
    """Return a table of the rising ids, with ids and times as written in the file."""
    import numpy as np
    import pandas

    rising, first, recent = found
    rows = []
    for unit in rising.tolist():
        alarm, values = int(first[unit]), series.probability[unit]
        last = int(np.isfinite(values).sum()) - 1
        rows.append(
            [
                *ids.iloc[series.units[unit]].astype(str),
                str(times[series.rows[unit, alarm]]),
                float(np.median(values[: alarm - recent + 1])),
                float(values[alarm - recent + 1 : alarm + 1].mean()),
                float(np.nanmax(risen[unit])),
                float(values[last]),
                str(times[series.rows[unit, last]]),
                last + 1,
            ]
        )
    return pandas.DataFrame(rows, columns=[*ids.columns, *COLUMNS])


def _detection(series: "Series", risen: Any, positive: Any, seed: int) -> list[dict[str, Any]]:
    """Measure how early and how reliably a rise tells the positive class, on one half of the ids."""
    import numpy as np

    from popf.monitoring import detection_table

    present = series.rows >= 0
    positive = present & positive[np.where(present, series.rows, 0)]
    onset = np.where(positive.any(axis=1), positive.argmax(axis=1), -1)
    # An id that is positive from the first period on has no earlier probability to rise from.
    kept = onset != 0
    calibration = np.random.default_rng(seed).permutation(int(kept.sum())) % 2 == 0
    table = detection_table(risen[kept], onset[kept], calibration=calibration)
    return [row._asdict() for row in table]


def _lines(facts: dict[str, Any], ids: list[str]) -> list[str]:
    rising = facts["rising"]
    lines = [
        f"{counted(facts['n_units'], 'id')}, {counted(facts['n_rows'], 'row')}: the probability of "
        f"{facts['positive']} rises by {facts['rise']:g} or more for {len(rising):,}"
    ]
    if rising:
        rows = [[" ".join(ids), "first alarm", "before", "at alarm", "now"]]
        for row in rising[:10]:
            values = [f"{row[name]:.2f}" for name in ("before", "at_alarm", "last_probability")]
            rows.append([" ".join(row[name] for name in ids), row["first_alarm"], *values])
        lines += ["", *aligned(rows)]
        if len(rising) > 10:
            lines.append(more_rows(len(rising) - 10, facts["output"]))
    if facts["detection"]:
        lines += ["", *_detection_lines(facts["detection"])]
    return lines


def _detection_lines(table: list[dict[str, Any]]) -> list[str]:
    from popf.monitoring.rising import SOON

    rows = [["allowed false alarms", "measured", "limit", "found", "95 % interval", "median delay"]]
    rows[0].append(f"delay <= {SOON}")
    for row in table:
        share = {name: 100 * value for name, value in row.items() if value is not None}
        rows.append(
            [
                f"{share['allowed_rate']:g} %",
                f"{share['false_alarm_rate']:.1f} %",
                f"{row['limit']:.2f}",
                f"{share['found']:.0f} %",
                f"{share['found_lower']:.0f} to {share['found_upper']:.0f} %",
                "-" if row["median_delay"] is None else f"{row['median_delay']:g}",
                f"{share['found_soon']:.0f} %",
            ]
        )
    first = table[0]
    return [
        *aligned(rows),
        f"Limits were chosen on half of the ids and evaluated on the other half ({first['n_regular']:,} never "
        f"positive, {first['n_turned']:,} from some period on). Delays are in periods from that one.",
    ]
