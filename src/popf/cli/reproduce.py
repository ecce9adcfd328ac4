"""``popf reproduce``: the paper's experiment, or a study of one's own."""

from pathlib import Path
from typing import Annotated, Any

import typer

from popf.cli import options
from popf.cli.arrays import TABLES, check_format, from_file
from popf.cli.errors import FAILED
from popf.cli.messages import say

Words = list[str]
SHOWN = ("accuracy", "seconds", "log_loss")


def reproduce(
    datasets: Annotated[
        Words | None,
        typer.Option(metavar="NAMES", help="With commas or repeated. Default: the paper's 14."),
    ] = None,
    methods: Annotated[
        Words | None,
        typer.Option(
            metavar="NAMES", help="Of opf, ba, ffa, pso, nm, newton, soft; with commas or repeated."
        ),
    ] = None,
    runs: Annotated[int, typer.Option(help="How many random splits of each data set.")] = 20,
    train_size: Annotated[float, typer.Option(help="The share that is trained on.")] = 0.25,
    seed: Annotated[int, options.seed("Of all splits and random numbers.")] = 0,
    n_jobs: Annotated[
        int,
        typer.Option(help="Runs at a time; -1 for one on every core.", callback=options.check_jobs),
    ] = -1,
    scale: Annotated[
        bool | None,
        typer.Option(
            "--scale/--raw",
            help="Features standardised, or as they are. Default: both where it matters.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for journal, tables and report.")] = Path(
        "popf-reproduction"
    ),
    data: Annotated[
        Path | None,
        typer.Option(help="Your own data: CSV, Parquet, svmlight or LibOPF's binary format."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="The column of --data that holds the labels.")
    ] = None,
    drop: Annotated[
        Words | None, typer.Option(metavar="COLUMN", help="Left out of --data. Repeat it.")
    ] = None,
    encode: options.Encode = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = ".",
    figures: Annotated[
        bool | None, typer.Option("--figures/--no-figures", help="Default: if matplotlib is there.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin anew; the old journal is put aside.")
    ] = False,
    progress: Annotated[
        bool | None, typer.Option("--progress/--no-progress", help="Default: on a terminal.")
    ] = None,
    json: options.Json = False,
) -> int:
    """Run the experiment of the paper, or the same on your own data.

    Every finished run is kept in the journal of the folder: killed or interrupted, the same command goes on
    where it stopped.
    """
    from popf.cli.output import show
    from popf.cli.progress import progress_bar
    from popf.experiment import table
    from popf.experiment.report import REPORT, study_facts
    from popf.experiment.report import reproduce as run_all
    from popf.files import writable_folder

    writable_folder(out)  # before data are loaded or fetched
    how = (delimiter, encoding, decimal)
    own = _own(data, target, encode, drop or [], how)
    with progress_bar(progress) as advance:
        results = run_all(
            out,
            fresh=fresh,
            figures=figures,
            say=say,
            datasets=_with_own(_split(datasets), own),
            methods=_split(methods),
            runs=runs,
            train_size=train_size,
            seed=seed,
            scale=scale,
            n_jobs=n_jobs,
            progress=advance,
        )
    lines = [*(f"{table(results, name)}\n" for name in SHOWN)]
    lines += [f"Tables, figures and all runs: {out}", f"Report: {out / REPORT}"]
    show(study_facts(results, out), lines, json)
    return FAILED if results.failures() else 0


def _split(words: Words | None) -> Words | None:
    """Take lists with commas apart."""
    if not words:
        return None
    return [part.strip() for word in words for part in word.split(",") if part.strip()]


def _own(
    path: Path | None,
    target: str | None,
    encode: Any,
    drop: Words,
    how: tuple[str | None, str, str],
) -> dict[str, Any]:
    """Read the user's own data, if any."""
    if path is None:
        if target is not None or encode is not None or drop:
            raise ValueError(
                "--target, --drop and --encode describe --data, which is missing; name a file."
            )
        return {}
    from popf.tables.formats import suffix_of
    from popf.tables.samples import samples_of

    check_format(path)
    if suffix_of(path) in TABLES:
        found = samples_of(options.table(path, *how, None), target, encode, drop)
    else:
        found = from_file(path, target, drop, encode)
    return {path.name.partition(".")[0]: (found.X, found.y)}


def _with_own(names: Words | None, own: dict[str, Any]) -> Any:
    """Give what is to be run: named data sets, a file, or both."""
    if not own or names is None:
        return own or names
    from popf.experiment.data import choose_datasets

    return {**choose_datasets(names), **own}
