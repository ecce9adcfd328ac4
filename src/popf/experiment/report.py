"""A study on the disk: tables, figures, the report."""

import io
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from popf.experiment.render import as_csv, as_latex, as_markdown, as_text, runs_as_csv
from popf.experiment.results import MEASURES, Results
from popf.experiment.run import Say, run
from popf.experiment.tables import cell_facts, measure_table
from popf.files import replacing, writable_folder

JOURNAL = "journal.jsonl"
REPORT = "report.html"
TEXT_WIDTH = 200
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

    The folder gets ``journal.jsonl``, ``runs.csv``, ``tables/`` (text, Markdown, LaTeX, CSV), ``figures/``
    (PNG, SVG) and ``report.html``. Killed or interrupted, the same call goes on where it stopped.

    Parameters
    ----------
    out : path-like
        The folder; that it can be written to is tried before the work starts.
    fresh : bool, default=False
        Begin anew; a journal that is there is kept as ``journal.jsonl.old``.
    figures : bool or None, default=None
        Draw figures; None for: if matplotlib is installed.
    say : callable, default=None
        Gets sentences about what was resumed, repaired or left out.
    **study
        What `run` takes, but for ``journal``.

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
    ...         folder, datasets={"wine": (X, y == 1)}, methods=["opf", "soft"], runs=2, figures=False
    ...     )
    >>> results
    <Results: 1 data sets, 2 methods, 2 runs>
    """
    folder = writable_folder(out)
    say = say or (lambda sentence: None)
    if figures is None:
        figures = find_spec("matplotlib") is not None
        if not figures:
            say('No figures: they need matplotlib, pip install "popf[plot]".')
    elif figures:
        from popf.display.canvas import need_matplotlib

        need_matplotlib()
    journal = folder / JOURNAL
    if fresh and journal.exists():
        os.replace(journal, journal.with_name(journal.name + ".old"))
    results = run(journal=journal, say=say, **study)
    for line in results.failures():
        say(line)
    results.write(folder, figures)
    return results


def tables_of(results: Results, names: Sequence[str]) -> list[str]:
    """Give tables as they are printed, with bold type on a terminal that knows it."""
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return [as_text(measure_table(results, name), colour=colour) + "\n" for name in names]


def study_facts(results: Results, folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Tell for a program what came out of a study, and where the files are: plain values, fit for JSON.

    Parameters
    ----------
    results : Results
    folder : path-like
        The one that `reproduce` wrote to.

    Returns
    -------
    dict
        ``folder``, ``journal``, ``report`` and ``figures`` (a list) are paths, ``tables`` the paths of the
        CSV files by measure; ``datasets`` (sizes), ``methods``, ``runs``, ``train_size``, ``seed``;
        ``summaries``, one for each measure, data set, form and method, as `popf.experiment.tables.cell_facts`
        gives it; ``failures``, sentences.
    """
    place, protocol = Path(folder), results.protocol
    return {
        "folder": str(place),
        "journal": str(place / JOURNAL),
        "report": str(place / REPORT),
        "tables": {name: str(place / "tables" / f"{name}.csv") for name in MEASURES},
        "figures": sorted(str(path) for path in (place / "figures").glob("*.*")),
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
            {"measure": name, **facts} for name in MEASURES for facts in cell_facts(results, name)
        ],
        "failures": results.failures(),
    }


def write(results: Results, folder: Path, figures: bool) -> Path:
    """Write all files of a study; the same results give the same bytes.

    Returns
    -------
    Path
        That of the report.
    """
    from popf.experiment.html import as_html

    folder = writable_folder(folder)
    for name, text in _texts(results):
        _write(folder / name, text.encode())
    images: dict[str, bytes] = {}
    if figures:
        from popf.experiment.figures import figures as draw

        for name, figure in draw(results).items():
            for kind in ("png", "svg"):
                image = _image(figure, kind)
                _write(folder / "figures" / f"{name}.{kind}", image)
                if kind == "png":
                    images[name] = image
    report = folder / REPORT
    _write(report, as_html(results, images).encode())
    return report


def _texts(results: Results) -> Iterator[tuple[str, str]]:
    """Give names and contents of all text files."""
    yield "runs.csv", runs_as_csv(results)
    for name in MEASURES:
        table = measure_table(results, name)
        yield f"tables/{name}.txt", as_text(table, width=TEXT_WIDTH, full=True) + "\n"
        yield f"tables/{name}.md", as_markdown(table)
        yield f"tables/{name}.tex", as_latex(table)
        yield f"tables/{name}.csv", as_csv(results, name)


def _image(figure: Any, kind: str) -> bytes:
    """Save a figure; no dates and no random names in it, so that it is the same every time."""
    import matplotlib

    out = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "popf", "svg.fonttype": "path"}):
        metadata = {"Date": None} if kind == "svg" else {}
        figure.savefig(out, format=kind, dpi=DPI, metadata=metadata)
    return out.getvalue()


def _write(path: Path, content: bytes) -> None:
    """Write a file so that at any moment either the old or the new one is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(content)
