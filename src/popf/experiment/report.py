"""A study on the disk: tables, figures, the report."""

import base64
import io
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from popf.display.canvas import need_matplotlib
from popf.display.html import render
from popf.experiment import paper
from popf.experiment.data import Say
from popf.experiment.figures import figures as draw_figures
from popf.experiment.implausible_values import STANDARD_ERRORS, TIMES_A_COIN, implausible_values
from popf.experiment.results import MEASURES, Results
from popf.experiment.run import run
from popf.experiment.tables import RUN_COLUMNS, as_csv, table
from popf.files import replacing, writable_folder
from popf.formatting import install

JOURNAL = "journal.jsonl"
REPORT = "report.html"
#: Measures on the page; the files have all of them.
SHOWN = ("accuracy", "seconds", "log_loss", "brier", "ece")
DPI = 130


def reproduce(
    out: str | os.PathLike[str],
    *,
    fresh: bool = False,
    figures: bool | None = None,
    say: Say | None = None,
    **study: Any,
) -> Results:
    """Run a study with its journal in a folder, and write everything that comes out of it there.

    The folder gets ``journal.jsonl``, ``runs.csv``, ``tables/`` (Markdown, LaTeX, CSV), ``figures/``
    (PNG, SVG) and ``report.html``. Killed or interrupted, the same call continues where it stopped.

    Parameters
    ----------
    out : path-like
        The folder; whether it can be written to is checked before the work starts.
    fresh : bool, default=False
        Start again; an existing journal is kept as ``journal.jsonl.old``.
    figures : bool or None, default=None
        Draw figures; None for: if matplotlib is installed.
    say : callable, default=None
        Called with a sentence about what was resumed, repaired or left out.
    **study
        The parameters of `run`, except ``journal``.

    Returns
    -------
    Results

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_wine
    >>> from popf.experiment import reproduce
    >>> X, y = load_wine(return_X_y=True)
    >>> with TemporaryDirectory() as folder:
    ...     results = reproduce(
    ...         folder, datasets={"wine": (X, y == 1)}, methods=["opf", "pooled"], runs=2, figures=False
    ...     )
    >>> results
    <Results: 1 data sets, 2 methods, 2 runs>
    """
    folder = writable_folder(out)
    say = say or (lambda sentence: None)
    if figures is None:
        figures = find_spec("matplotlib") is not None
        if not figures:
            say(f"No figures: they need matplotlib, {install('plot')}.")
    elif figures:
        need_matplotlib()
    journal = folder / JOURNAL
    if fresh and journal.exists():
        os.replace(journal, journal.with_name(journal.name + ".old"))
    results = run(journal=journal, say=say, **study)
    for line in results.failures():
        say(line)
    write_report(results, folder, figures)
    return results


def study_facts(results: Results, folder: Path) -> dict[str, Any]:
    """Summarise a study in plain values, fit for JSON: paths, sizes, and the facts of every table."""
    protocol = results.protocol
    return {
        "folder": str(folder),
        "journal": str(folder / JOURNAL),
        "report": str(folder / REPORT),
        "tables": {name: str(folder / "tables" / f"{name}.csv") for name in MEASURES},
        "figures": sorted(str(path) for path in (folder / "figures").glob("*.*")),
        "datasets": {
            name: {
                "n_samples": len(data.y),
                "n_features": int(data.X.shape[1]),
                "n_classes": data.n_classes,
                "stand_in": data.stand_in,
                "source": data.source,
            }
            for name, data in results.datasets.items()
        },
        "methods": results.methods,
        "runs": protocol.runs,
        "train_size": protocol.train_size,
        "seed": protocol.seed,
        "summaries": [
            {"measure": name, **facts}
            for name in MEASURES
            for facts in table(results, name).facts()
        ],
        "failures": results.failures(),
    }


def write_report(results: Results, folder: str | os.PathLike[str], figures: bool = True) -> Path:
    """Write tables, figures and the page into a folder; the same results give the same bytes."""
    folder = writable_folder(folder)
    _write(folder / "runs.csv", as_csv(RUN_COLUMNS, results.records))
    for name in MEASURES:
        made = table(results, name)
        _write(folder / "tables" / f"{name}.md", made.markdown())
        _write(folder / "tables" / f"{name}.tex", made.latex())
        _write(folder / "tables" / f"{name}.csv", made.csv())
    images = []
    for name, (figure, caption) in draw_figures(results).items() if figures else ():
        png, svg = (_image(figure, kind) for kind in ("png", "svg"))
        _write(folder / "figures" / f"{name}.png", png)
        _write(folder / "figures" / f"{name}.svg", svg)
        images.append((caption, base64.b64encode(png).decode("ascii")))
    page = render(
        "popf.experiment",
        "report",
        results=results,
        reference=paper.REFERENCE,
        tables=[table(results, name) for name in SHOWN],
        implausible=implausible_values(results),
        standard_errors=STANDARD_ERRORS,
        times_a_coin=TIMES_A_COIN,
        images=images,
    )
    _write(folder / REPORT, page)
    return folder / REPORT


def _image(figure: Any, kind: str) -> bytes:
    """Save a figure without dates and random names, so that it is the same every time."""
    import matplotlib

    out = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "popf", "svg.fonttype": "path"}):
        metadata = {"Date": None} if kind == "svg" else {}
        figure.savefig(out, format=kind, dpi=DPI, metadata=metadata)
    return out.getvalue()


def _write(path: Path, content: str | bytes) -> None:
    """Write a file so that at any moment either the old or the new one is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
