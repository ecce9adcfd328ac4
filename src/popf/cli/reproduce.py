"""``popf reproduce``: the paper's experiment, or a study of one's own."""

from pathlib import Path
from typing import Annotated, Any

import typer

from popf.cli import options
from popf.cli.convert import check_format, read_samples
from popf.cli.output import progress_bar, say, show
from popf.files import writable_folder

Words = list[str]
SHOWN = ("accuracy", "seconds", "log_loss")


def reproduce(
    datasets: Annotated[
        Words | None,
        typer.Option(
            metavar="NAMES",
            help="Data sets, separated by commas, or repeated. Default: the paper's 14.",
        ),
    ] = None,
    methods: Annotated[
        Words | None,
        typer.Option(
            metavar="NAMES",
            help="Any of opf, ba, ffa, pso, nm, newton, pooled; separated by commas, or repeated.",
        ),
    ] = None,
    runs: Annotated[int, typer.Option(help="Number of random splits of each data set.")] = 20,
    train_size: Annotated[
        float, typer.Option(help="Share of the samples used for training.")
    ] = 0.25,
    seed: Annotated[int, options.seed("Seed for splits and methods.")] = 0,
    n_jobs: Annotated[
        int,
        typer.Option(
            help="Number of runs at a time; -1 for one on every core.", callback=options.check_jobs
        ),
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
        Words | None, options.column("Column of --data to leave out. Repeatable.")
    ] = None,
    encode: options.Encode = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = ".",
    figures: Annotated[
        bool | None,
        typer.Option(
            "--figures/--no-figures", help="Draw figures. Default: if matplotlib is installed."
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start again; the old journal is kept as .old.")
    ] = False,
    progress: options.Progress = None,
    json: options.Json = False,
) -> int:
    """Run the experiment of the paper, or the same on your own data.

    Every finished run is kept in the journal of the folder: killed or interrupted, the same command continues
    where it stopped.
    """
    from popf import experiment
    from popf.experiment.protocol import choose_datasets
    from popf.experiment.report import REPORT, study_facts

    writable_folder(out)  # before data are loaded or fetched
    wanted: Any = _split(datasets)
    if data is not None:
        own = _read(data, target, encode, drop or [], (delimiter, encoding, decimal))
        wanted = own if wanted is None else {**choose_datasets(wanted), **own}
    elif target is not None or encode is not None or drop:
        raise ValueError(
            "--target, --drop and --encode describe --data, which is missing; name a file."
        )
    with progress_bar(progress) as advance:
        results = experiment.reproduce(
            out,
            fresh=fresh,
            figures=figures,
            say=say,
            datasets=wanted,
            methods=_split(methods),
            runs=runs,
            train_size=train_size,
            seed=seed,
            scale=scale,
            n_jobs=n_jobs,
            progress=advance,
        )
    lines = [f"{experiment.table(results, name)}\n" for name in SHOWN]
    lines += [f"Tables, figures and all runs: {out}", f"Report: {out / REPORT}"]
    show(study_facts(results, out), lines, json)
    return 1 if results.failures() else 0


def _split(words: Words | None) -> Words | None:
    """Take lists with commas apart."""
    if not words:
        return None
    return [part.strip() for word in words for part in word.split(",") if part.strip()]


def _read(
    path: Path, target: str | None, encode: Any, drop: Words, how: tuple[str | None, str, str]
) -> dict[str, Any]:
    """Read the user's own data, under the name of the file."""
    check_format(path)
    found = read_samples(path, target, encode, drop, how)
    return {path.name.partition(".")[0]: (found.X, found.y)}
