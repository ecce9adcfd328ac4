"""``popf demo``: run six commands on sample data, then a small version of the paper's experiment."""

import shlex
from pathlib import Path
from typing import Any

import typer

from popf.cli.options import option
from popf.files import writable_folder

#: The commands to run, and a title for each; they work in a shell, too.
STEPS = {
    "sample {out}": "Write sample tables: energy consumers, some of whom steal.",
    "fit {out}/consumers.csv --target stolen --id consumer -o {out}/model.popf": "Fit a model.",
    "evaluate {out}/model.popf {out}/test.csv": "How good is it on consumers it has not seen?",
    "rank {out}/model.popf {out}/new.csv --budget 50 -o {out}/visits.csv": "Which consumers to inspect first?",
    "explain {out}/model.popf {out}/new.csv --where consumer=C2816": "Why this consumer?",
    "report {out}/model.popf {out}/test.csv -o {out}/report.html": "Write a report on one page.",
}
#: Datasets that come with popf, so that no network is needed.
DATASETS = ("breast_cancer", "heart_scale", "liver")
RUNS = 6


def demo(
    context: typer.Context,
    out: Path = option(Path("popf-demo"), "Folder for all files."),
) -> int:
    """Run the main commands and a small experiment on sample data."""
    writable_folder(out)
    popf: Any = context.find_root().command
    for step, title in STEPS.items():
        words = [word.format(out=out) for word in step.split()]
        print(f"\n# {title}\n$ popf {shlex.join(words)}")
        if words[0] == "sample" and (out / "consumers.csv").exists():
            print("The tables already exist.")
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
    """Run and print a small version of the paper's experiment; return its failures."""
    from popf.cli.terminal import progress_bar, say
    from popf.experiment import reproduce, table
    from popf.experiment.protocol import IN_WORDS

    print(
        f"\n# A small version of the paper's experiment: {', '.join(DATASETS)}, {RUNS} random splits each."
    )
    with progress_bar(None) as advance:
        results = reproduce(
            folder, fresh=True, say=say, progress=advance, datasets=DATASETS, runs=RUNS, scale=True
        )
    for name, words in IN_WORDS.items():
        print(f"{name:13} {words}")
    for measure in ("accuracy", "log_loss"):
        print(f"\n{table(results, measure)}")
    rows = [results.summaries("log_loss", name, form) for name, form in results.rows()]
    ratio = sum(row["P-OPF-pooled"].mean / row["P-OPF-NM"].mean for row in rows) / len(rows)
    print(
        "\nWhat this shows: the paper's P-OPF predicts nearly the same labels as the forest, whatever the"
        "\noptimiser, so accuracies differ little. The probabilities differ more: on average, the log loss of"
        f"\npooled is {ratio:.2f} times that of NM."
    )
    return results.failures()
