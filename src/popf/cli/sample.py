"""``popf sample``: write sample tables for the other commands."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from popf.cli import options
from popf.cli.terminal import show
from popf.files import open_output, writable_folder
from popf.formatting import aligned

EXAMPLES = """\b
Examples:
  popf sample
  popf sample trial && cd trial && popf fit consumers.csv --target stolen --id consumer -o model.popf
"""
#: The files to write, and what they are for.
FILES = {
    "consumers.csv": "one month of 1,500 consumers, labelled: to fit a model",
    "test.csv": "1,000 other consumers, labelled: to evaluate it",
    "new.csv": "500 other consumers, without labels: to predict",
    "past.csv": "24 months of 500 consumers, labelled: to fit a model for monitoring",
    "months.csv": "24 months of 500 other consumers, labelled: to monitor",
}


def sample(
    folder: Path = typer.Argument(Path("."), help="Folder to write to; created if missing."),
    seed: int = options.seed("Random seed."),
    json: bool = options.JSON,
) -> int:
    """Write sample tables to try popf on.

    The tables hold generated energy consumers, some of whom steal, about as hard to tell apart as real ones.
    Existing files are never overwritten.
    """
    existing = [name for name in FILES if (folder / name).exists()]
    if existing:
        raise FileExistsError(f"{folder / existing[0]} already exists: choose another folder.")
    writable_folder(folder)
    for name, frame in _frames(seed):
        with open_output(folder / name) as file:
            file.write(frame.to_csv(index=False, lineterminator="\n").encode())
    paths = [str(folder / name) for name in FILES]
    rows = list(zip(paths, FILES.values(), strict=True))
    show({"files": paths}, aligned(rows, left=True, indent=""), json)
    return 0


def _frames(seed: int) -> Iterator[tuple[str, Any]]:
    import numpy as np

    from popf.datasets import make_energy_theft, make_energy_theft_months

    drawn = make_energy_theft(n_samples=3000, theft_rate=0.1, as_frame=True, random_state=seed)
    frame = drawn.data.round(3)
    frame.insert(0, "consumer", [f"C{i:04d}" for i in range(3000)])
    frame["stolen"] = np.where(drawn.target == 1, "yes", "no")
    yield "consumers.csv", frame[:1500]
    yield "test.csv", frame[1500:2500]
    yield "new.csv", frame[2500:].drop(columns="stolen")
    years = make_energy_theft_months(
        n_consumers=1000, theft_rate=0.15, as_frame=True, random_state=seed + 1
    )
    frame = years.data.round(3)
    frame.insert(0, "month", [f"{2023 + m // 12}-{m % 12 + 1:02d}" for m in years.month])
    frame.insert(0, "consumer", [f"M{c:04d}" for c in years.consumer])
    frame["stolen"] = np.where(years.target == 1, "yes", "no")
    yield "past.csv", frame[years.consumer < 500]
    yield "months.csv", frame[years.consumer >= 500]
