"""Makes the page of measurements behind the one on scaling: ``python -m benchmarks.scaling_page``.

It is made of the newest results of one machine with many cores, ``*-scaling.json``, and of the newest of a
machine with a local cluster, ``*-cluster.json``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .cost_model import markdown
from .results import FOLDER, ROOT, Results

PAGE = ROOT / "docs" / "scaling_measured.md"
HEAD = """\
% Made by `python -m benchmarks.scaling_page`; changes by hand will be lost.

# Scaling, measured

What {doc}`scaling` is drawn from: `python -m benchmarks --suite scaling`, and on a second machine
`--suite scaling dask out-of-core`. Data are two-class Gaussian blobs. Every fit has a process of its own.
Memory is the most that the process held during the fit beyond what it held before, with the data there, in
MiB, and as a multiple of the data; on a GPU it is what CuPy had reserved, on a cluster that of the process
that held most. All forests of the same data were the same, to the bit.
"""


def latest(kind: str, folder: Path = FOLDER) -> Results:
    """Load the newest file of a kind.

    Raises
    ------
    ValueError
        If there is none.
    """
    paths = sorted(folder.glob(f"*-{kind}.json"))
    if not paths:
        raise ValueError(f"no *-{kind}.json in {folder}: run the benchmark first")
    return Results.load(paths[-1])


def page(many: Results, cluster: Results) -> str:
    """Write the page."""
    machines = []
    for results, what in ((many, "Cores and GPU"), (cluster, "Cluster and files")):
        machine = results.content["machine"]
        machines.append(
            f"- {what}: {machine['processor']}, {machine['cores']} cores, "
            f"`benchmarks/results/{results.path.name}`, {results.content['date'][:10]}."
        )
    text = markdown(many.records, cluster.records).replace("\n### ", "\n## ")
    return f"{HEAD}\n" + "\n".join(machines) + "\n\n" + text.replace("### ", "## ", 1)


def main(arguments: list[str] | None = None) -> None:
    """Write the page into its file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling_page", description=__doc__)
    parser.add_argument("--out", type=Path, default=PAGE, help="the page to write")
    options = parser.parse_args(arguments)
    try:
        text = page(latest("scaling"), latest("cluster"))
    except ValueError as error:
        parser.error(str(error))
    options.out.write_text(text, encoding="utf-8")
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
