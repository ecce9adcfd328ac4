"""``popf reproduce``: the paper's experiment, or a study of one's own."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from popf.cli.errors import FAILED

if TYPE_CHECKING:
    from popf.experiment import Results

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
    seed: Annotated[int, typer.Option(help="Of all splits and random numbers.")] = 0,
    n_jobs: Annotated[int, typer.Option(help="Runs at a time; -1 for one on every core.")] = -1,
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
    encode: Annotated[
        str | None,
        typer.Option(help="onehot or ordinal: for columns of --data that are not numbers."),
    ] = None,
    figures: Annotated[
        bool | None, typer.Option("--figures/--no-figures", help="Default: if matplotlib is there.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin anew; the old journal is put aside.")
    ] = False,
    progress: Annotated[
        bool | None, typer.Option("--progress/--no-progress", help="Default: on a terminal.")
    ] = None,
) -> int:
    """Run the experiment of the paper, or the same on your own data.

    Every finished run is kept in the journal of the folder: killed or interrupted, the same command goes on
    where it stopped.
    """
    from popf.experiment.report import REPORT, writable_folder
    from popf.experiment.report import reproduce as run_all

    writable_folder(out)  # before data are loaded or fetched
    results = run_all(
        out,
        fresh=fresh,
        figures=figures,
        say=say,
        datasets=_data(_split(datasets), data, target, encode),
        methods=_split(methods),
        runs=runs,
        train_size=train_size,
        seed=seed,
        scale=scale,
        n_jobs=n_jobs,
        progress=progress,
    )
    show(results, SHOWN)
    typer.echo(f"\nTables, figures and all runs: {out}\nReport: {out / REPORT}")
    return FAILED if results.failures() else 0


def say(sentence: str) -> None:
    """Print a sentence where it does not get into the output."""
    print(f"popf: {sentence}", file=sys.stderr)


def show(results: "Results", names: tuple[str, ...]) -> None:
    """Print tables, with bold type on a terminal that knows it."""
    from popf.experiment.render import as_text
    from popf.experiment.tables import measure_table

    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    for name in names:
        print()
        print(as_text(measure_table(results, name), colour=colour))


def _split(words: Words | None) -> Words | None:
    """Take lists with commas apart."""
    if not words:
        return None
    return [part.strip() for word in words for part in word.split(",") if part.strip()]


def _data(names: Words | None, path: Path | None, target: str | None, encode: Any) -> Any:
    """Give what is to be run: named data sets, a file, or both."""
    if path is None:
        if target is not None or encode is not None:
            raise ValueError(
                "--target and --encode describe --data, which is missing; name a file."
            )
        return names
    from popf.datasets import read
    from popf.experiment.data import choose_datasets

    own = {path.name.partition(".")[0]: read(path, target, encode=encode, return_X_y=True)}
    if names is None:
        return own
    return {**choose_datasets(names), **own}
