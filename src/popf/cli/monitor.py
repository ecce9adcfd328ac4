"""``popf monitor``: whose probability rises over time."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from popf.cli import options

if TYPE_CHECKING:
    from popf.monitoring import Series
    from popf.table_models.model import TableModel
    from popf.tables import Table

EXAMPLES = """\b
Examples:
  popf monitor model.popf months.csv --id consumer --time month -o rising.csv
  popf monitor model.popf months.csv --id consumer --time month -o rising.csv --plot rising.png
  popf monitor model.popf months.csv --id consumer --time month -o rising.csv --truth stolen
"""


def monitor(
    model: options.Model,
    data: options.Data,
    time: Annotated[
        str, typer.Option(metavar="COLUMN", help="When: numbers, or dates such as 2024-05.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV of those that rise, the most first.")
    ] = None,
    id: options.Ids = None,
    rise: Annotated[
        float, typer.Option(help="An alarm from this rise of the probability on.")
    ] = 0.3,
    recent: Annotated[int, typer.Option(min=1, help="Periods that count as recent.")] = 2,
    history: Annotated[int, typer.Option(min=1, help="Periods needed before those.")] = 1,
    plot: Annotated[
        Path | None, typer.Option(help="Picture of the first twelve: .png, .svg or .pdf.")
    ] = None,
    truth: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="True labels, to tell how early and surely it finds."),
    ] = None,
    seed: Annotated[int, options.seed("Of the split behind --truth.")] = 0,
    n_jobs: options.Jobs = -1,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = ".",
    na: options.Missing = None,
    progress: options.Progress = None,
    json: options.Json = False,
) -> int:
    """Score consumers period by period, and list those whose probability rises.

    The rise is the mean of the last --recent probabilities minus the median of all before: everyone is
    compared with their own past. With --truth, limits are set on one half of the consumers and measured on
    the other, none of whom should have been seen in training.
    """
    from popf.cli.output import check_output, file_for, plain_warnings, show
    from popf.cli.scoring import need_probabilities
    from popf.table_models import open_model

    check_output(output, [model, data], (".csv",))
    check_output(plot, [model, data], (".png", ".svg", ".pdf"), "--plot")
    if not 0.0 < rise <= 1.0:
        raise ValueError(f"--rise must lie between 0 and 1, not at {rise:g}.")
    if not id:
        raise ValueError("--id: name the column that tells who is who.")
    with plain_warnings():
        table_model = open_model(model, n_jobs)
        need_probabilities(table_model, model)
        if not table_model.binary:
            raise ValueError(f"{model} has more than two classes: there is no one probability.")
        table = options.table(data, delimiter, encoding, decimal, na)
        for parameter, names in (
            ("id", id),
            ("time", [time]),
            ("truth", [truth] if truth else []),
        ):
            table.need(names, parameter)
        watched = _watch(table_model, table, (id, time, truth), progress)
        found = _rising(watched, (rise, recent, history))
        if output is not None:
            with file_for(output) as file:
                file.write(found.frame.to_csv(index=False, float_format="%.6g").encode())
        if plot is not None:
            _draw(plot, watched, found, f"probability of {table_model.positive}")
        table_rows = None if truth is None else _detections(watched, (recent, history), seed)
    facts = {
        "n_rows": len(watched.probability),
        "n_units": len(watched.series.units),
        "positive": table_model.positive,
        "rise": rise,
        "recent": recent,
        "history": history,
        "rising": found.frame.to_dict("records"),
        "detection": table_rows,
        "output": None if output is None else str(output),
    }
    show(facts, _lines(facts, id), json)
    return 0


class _Watched:
    """All observations, and the series made of them."""

    def __init__(self, names: Any, times: Any, probability: Any, truth: Any) -> None:
        from popf.monitoring import make_series

        self.names = names  # a frame of the id columns
        self.columns = list(names.columns)
        codes = names.groupby(self.columns, sort=False).ngroup().to_numpy()
        self.time_text = times
        self.time, self.time_names = _moments(times)
        self.probability = probability
        self.truth = truth
        self.series: Series = make_series(codes, self.time, probability)

    def who(self, unit: int) -> list[str]:
        """Give the ids of a consumer."""
        return [str(cell) for cell in self.names.iloc[self.series.units[unit]].tolist()]

    def when(self, unit: int, at: int) -> str:
        """Give a time as the file writes it."""
        return str(self.time_text[self.series.rows[unit, at]])


def _watch(
    table_model: "TableModel",
    table: "Table",
    columns: tuple[list[str], str, str | None],
    progress: bool | None,
) -> _Watched:
    import numpy as np
    import pandas

    from popf.cli.scoring import scored_pieces
    from popf.tables.cells import match_labels

    ids, time, truth = columns
    wanted = list(dict.fromkeys([*ids, time, *([] if truth is None else [truth])]))
    frames, found = [], []
    with scored_pieces(table_model, table, wanted, progress=progress) as pieces:
        for scored in pieces:
            frames.append(scored.frame[wanted])
            assert scored.probability is not None
            found.append(scored.probability[:, table_model.layout.positive])
    frame = pandas.concat(frames, ignore_index=True)
    steals = None
    if truth is not None:
        codes = match_labels(
            frame[truth].tolist(), table_model.classes, f"column {truth!r} of {table.path}"
        )
        steals = codes == table_model.layout.positive
    return _Watched(frame[ids], frame[time].tolist(), np.concatenate(found), steals)


def _moments(texts: list[Any]) -> tuple[Any, dict[float, str] | None]:
    """Turn times into numbers, and back for a picture: numbers as they are, dates by their day."""
    import numpy as np
    import pandas

    cells = pandas.Series([str(text).strip() for text in texts])
    numbers = pandas.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64)
    if np.isfinite(numbers).all():
        return numbers, None
    dates = pandas.to_datetime(cells, format="ISO8601", errors="coerce")
    odd = np.flatnonzero(dates.isna() & ~np.isfinite(numbers))
    if len(odd) or dates.isna().any():
        row = int(odd[0]) if len(odd) else int(np.flatnonzero(dates.isna())[0])
        raise ValueError(
            f"--time: {cells[row]!r} (row {row + 1}) is neither a number nor a date such as 2024-05 or "
            "2024-05-31."
        )
    days = (dates - pandas.Timestamp(0)) / pandas.Timedelta(days=1)
    values = days.to_numpy(dtype=np.float64)
    return values, dict(zip(values.tolist(), cells.tolist(), strict=True))


class _Rising:
    """Those that rise, the most first."""

    def __init__(self, units: list[int], alarm: list[int], frame: Any) -> None:
        self.units, self.alarm, self.frame = units, alarm, frame


def _rising(watched: _Watched, rule: tuple[float, int, int]) -> _Rising:
    import numpy as np
    import pandas

    from popf.monitoring import alarms, rises

    limit, recent, history = rule
    series = watched.series
    rise = rises(series.probability, recent, history)
    if not np.isfinite(rise).any():
        raise ValueError(
            f"nobody has {recent + history} periods, which --recent and --history ask for: give longer "
            "series."
        )
    first = alarms(rise, limit)
    peak = np.nan_to_num(rise, nan=-np.inf).max(axis=1)
    chosen = np.flatnonzero(first >= 0)
    units = chosen[np.argsort(-peak[chosen], kind="stable")].tolist()
    rows = []
    for unit in units:
        at = int(first[unit])
        values = series.probability[unit]
        last = int(np.isfinite(values).sum()) - 1
        rows.append(
            {
                **dict(zip(watched.columns, watched.who(unit), strict=True)),
                "first_alarm": watched.when(unit, at),
                "before": float(np.median(values[: at - recent + 1])),
                "at_alarm": float(values[at - recent + 1 : at + 1].mean()),
                "highest_rise": float(peak[unit]),
                "last_probability": float(values[last]),
                "last_time": watched.when(unit, last),
                "n_periods": last + 1,
            }
        )
    names = [*watched.columns, "first_alarm", "before", "at_alarm", "highest_rise"]
    names += ["last_probability", "last_time", "n_periods"]
    frame = pandas.DataFrame(rows, columns=names)
    return _Rising(units, [int(first[unit]) for unit in units], frame)


def _detections(watched: _Watched, rule: tuple[int, int], seed: int) -> list[dict[str, Any]]:
    import numpy as np

    from popf.monitoring import detection_table, rises

    series = watched.series
    present = series.rows >= 0
    steals = present & watched.truth[np.where(present, series.rows, 0)]
    onset = np.where(steals.any(axis=1), steals.argmax(axis=1), -1)
    # Who steals from the first period on has no past to rise from.
    watchable = onset != 0
    rise = rises(series.probability, *rule)[watchable]
    rng = np.random.default_rng(seed)
    calibration = rng.permutation(int(watchable.sum())) % 2 == 0
    table = detection_table(rise, onset[watchable], calibration=calibration)
    return [row._asdict() for row in table]


def _draw(path: Path, watched: _Watched, found: _Rising, label: str) -> None:
    from popf.cli.messages import say
    from popf.cli.output import file_for
    from popf.monitoring import plot_rising

    kind = path.suffix.lower().lstrip(".")
    if not found.units:
        say("note: nobody rises by the limit, so there is no picture.")
        return
    figure = plot_rising(
        watched.series,
        found.units,
        first_alarm=found.alarm,
        names=[" ".join(watched.who(unit)) for unit in found.units],
        time_label="",
        time_names=watched.time_names,
        label=label,
    )
    with file_for(path) as file:
        figure.savefig(file, format=kind, dpi=150)


def _lines(facts: dict[str, Any], ids: list[str]) -> list[str]:
    from popf.cli.output import columns, counted

    rising = facts["rising"]
    lines = [
        f"{counted(facts['n_units'], 'consumer')}, {counted(facts['n_rows'], 'row')}: the probability of "
        f"{facts['positive']} of {len(rising):,} rises by {facts['rise']:g} or more"
    ]
    if rising:
        names = ["who", "first alarm", "before", "at alarm", "now"]
        rows = [names]
        for row in rising[:10]:
            rows.append(
                [
                    " ".join(row[name] for name in ids),
                    row["first_alarm"],
                    f"{row['before']:.2f}",
                    f"{row['at_alarm']:.2f}",
                    f"{row['last_probability']:.2f}",
                ]
            )
        lines += ["", *columns(rows)]
        if len(rising) > 10:
            place = facts["output"] or "--output"
            lines.append(f"  ... {len(rising) - 10:,} more in {place}")
    if facts["detection"]:
        lines += ["", *detection_lines(facts["detection"])]
    return lines


def detection_lines(table: list[dict[str, Any]]) -> list[str]:
    """Write the table of detections for a person."""
    from popf.cli.output import columns
    from popf.monitoring.detection import SOON

    first = table[0]
    rows = [["false alarms aimed at", "measured", "limit", "found", "95 %", "median delay", "soon"]]
    for row in table:
        delay = "-" if row["median_delay"] is None else f"{row['median_delay']:g}"
        rows.append(
            [
                f"{100 * row['aimed']:g} %",
                f"{100 * row['false_alarm_rate']:.1f} %",
                f"{row['limit']:.2f}",
                f"{100 * row['found']:.0f} %",
                f"{100 * row['found_lower']:.0f} to {100 * row['found_upper']:.0f} %",
                delay,
                f"{100 * row['found_soon']:.0f} %",
            ]
        )
    said = (
        f"Limits set on half of the consumers, measured on the other ({first['n_regular']:,} regular, "
        f"{first['n_turned']:,} who begin). Delay in periods, 0 for the first; soon: at most {SOON}."
    )
    return [*columns(rows), said]
