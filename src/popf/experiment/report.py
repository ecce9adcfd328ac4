"""A study on the disk: tables, figures, the report."""

import io
import os
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from popf.experiment.render import as_csv, as_latex, as_markdown, as_text, runs_as_csv
from popf.experiment.results import MEASURES, Results
from popf.experiment.run import Say, run
from popf.experiment.tables import measure_table
from popf.io.atomic import replacing

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


def writable_folder(out: str | os.PathLike[str]) -> Path:
    """Make a folder and try to write to it.

    Raises
    ------
    OSError
        With a sentence that names the folder, if that does not work.
    """
    folder = Path(out).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".popf-"):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise type(error)(
            f"cannot write to the output folder {folder} ({reason}); name another, as by --out."
        ) from error
    return folder


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
