"""``popf reproduce``: run the paper's experiment, or the same on other data."""

from pathlib import Path
from typing import Any

from popf.cli import options
from popf.cli.convert import check_format, read_samples
from popf.cli.options import column, option
from popf.cli.terminal import check_jobs, progress_bar, say, show
from popf.files import writable_folder

SHOWN = ("accuracy", "seconds", "log_loss")


def reproduce(
    datasets: list[str] | None = option(
        None,
        "Datasets, comma-separated or repeated. Default: the paper's 14.",
        metavar="NAMES",
    ),
    methods: list[str] | None = option(
        None,
        "Methods, comma-separated or repeated: opf, ba, ffa, pso, nm, newton, pooled, svm, logistic. "
        "Default: all.",
        metavar="NAMES",
    ),
    runs: int = option(20, "Number of random splits of each dataset."),
    train_size: float = option(0.25, "Fraction of the samples to train on."),
    seed: int = options.seed("Seed for splits and optimisers."),
    n_jobs: int = option(
        -1, "Number of runs in parallel; -1 for one per core.", callback=check_jobs
    ),
    scale: bool | None = option(
        None,
        "Standardise the features, or use them raw. Default: both where it matters.",
        "--scale/--raw",
    ),
    out: Path = option(Path("popf-reproduction"), "Folder for the journal, tables and report."),
    data: Path | None = option(None, "Your own data: CSV, Parquet, svmlight or LibOPF file."),
    target: str | None = option(None, "Column of --data with the labels."),
    drop: list[str] | None = column(None, "Column of --data to leave out. Repeatable."),
    encode: str | None = options.ENCODE,
    delimiter: str | None = options.DELIMITER,
    encoding: str = options.ENCODING,
    decimal: str = options.DECIMAL,
    figures: bool | None = option(
        None, "Draw figures. Default: if matplotlib is installed.", "--figures/--no-figures"
    ),
    fresh: bool = option(False, "Start over; the old journal is kept as .old.", "--fresh"),
    progress: bool | None = options.PROGRESS,
    json: bool = options.JSON,
) -> int:
    """Run the paper's experiment, or the same on your own data.

    Finished runs are kept in a journal in the output folder: after an interruption, the same command
    continues where it stopped.
    """
    from popf import experiment
    from popf.experiment.protocol import choose_datasets
    from popf.experiment.report import REPORT, study_facts

    writable_folder(out)  # before data are loaded or downloaded
    wanted: Any = _split(datasets)
    if data is not None:
        check_format(data)
        found = read_samples(data, target, encode, drop or [], (delimiter, encoding, decimal))
        own = {data.name.partition(".")[0]: (found.data, found.target)}
        wanted = own if wanted is None else {**choose_datasets(wanted, say), **own}
    elif target is not None or encode is not None or drop:
        raise ValueError(
            "--target, --drop and --encode describe --data, which is missing: name a file."
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


def _split(names: list[str] | None) -> list[str] | None:
    """Split names at commas."""
    if not names:
        return None
    return [part.strip() for name in names for part in name.split(",") if part.strip()]
