"""``popf demo``: a model from table to report in six commands, then the paper's experiment in small."""

import shlex
from pathlib import Path
from typing import Any

import typer

from popf.cli.options import option
from popf.files import writable_folder

#: What is run, and why; each line is a command that works in a shell, too.
STEPS = {
    "sample {out}": "Tables to try popf on: energy consumers, some of whom steal.",
    "fit {out}/consumers.csv --target stolen --id consumer -o {out}/model.popf": "Fit a model.",
    "evaluate {out}/model.popf {out}/test.csv": "How good is it on consumers it has not seen?",
    "rank {out}/model.popf {out}/new.csv --budget 50 -o {out}/visits.csv": "Whom to inspect first?",
    "explain {out}/model.popf {out}/new.csv --where consumer=C2816": "Why this consumer?",
    "report {out}/model.popf {out}/test.csv -o {out}/report.html": "Everything on one page to share.",
}
#: Data that come with popf: no network is needed.
DATASETS = ("breast_cancer", "heart_scale", "liver")
RUNS = 6
METHODS = """\
OPF is the forest alone, which gives labels. The others are P-OPF: the paper's, which differ in how its two
parameters are found (BA bat algorithm, FFA firefly algorithm, PSO particle swarm optimisation, NM Nelder-Mead,
and Newton's method, which popf adds), and pooled, popf's default."""


def demo(
    context: typer.Context,
    out: Path = option(Path("popf-demo"), "Folder for all files."),
) -> int:
    """Show popf at work: fit, evaluate, rank, explain and report, then the paper's experiment in small."""
    writable_folder(out)
    popf: Any = context.find_root().command
    for step, title in STEPS.items():
        words = [word.format(out=out) for word in step.split()]
        print(f"\n# {title}\n$ popf {shlex.join(words)}")
        if words[0] == "sample" and (out / "consumers.csv").exists():
            print("The tables are there already.")
            continue
        if popf.main(args=words, prog_name="popf", standalone_mode=False):
            return 1
    failures = _experiment(out / "paper")
    print(
        f"""
Where to look next:
  {(out / "report.html").resolve().as_uri()}
  {(out / "paper" / "report.html").resolve().as_uri()}
  popf fit --help       your own table, CSV or Parquet
  popf reproduce        the paper's whole experiment
  README.md, docs/      Python: from popf import POPFClassifier"""
    )
    return 1 if failures else 0


def _experiment(folder: Path) -> list[str]:
    """Run the paper's experiment on few data, and print what came out; return what failed."""
    from popf.cli.terminal import progress_bar, say
    from popf.experiment import reproduce, table

    print(
        f"\n# The paper's experiment in small: {', '.join(DATASETS)}, {RUNS} random splits of each."
    )
    with progress_bar(None) as advance:
        results = reproduce(
            folder, fresh=True, say=say, progress=advance, datasets=DATASETS, runs=RUNS, scale=True
        )
    print(METHODS)
    for measure in ("accuracy", "log_loss"):
        print(f"\n{table(results, measure)}")
    rows = [results.summaries("log_loss", name, form) for name, form in results.rows()]
    ratio = sum(row["P-OPF-pooled"].mean / row["P-OPF-NM"].mean for row in rows) / len(rows)
    print(
        "\nWhat this shows: the paper's P-OPF gives nearly the labels of the forest, whatever finds its"
        "\nparameters, so accuracies differ little. Probabilities differ much: pooled has on average"
        f"\n{ratio:.2f} times the log loss of NM."
    )
    return results.failures()
