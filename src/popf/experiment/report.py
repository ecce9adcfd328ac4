"""Write a study to disk: tables, the paper's figures, and the report."""

import base64
import io
import os
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from popf.display import LandscapeDisplay, ThresholdDisplay
from popf.display.canvas import as_text, need_matplotlib
from popf.display.html import render
from popf.experiment import tables
from popf.experiment.protocol import IN_WORDS, Say, methods
from popf.experiment.results import MEASURES, Results
from popf.experiment.study import run
from popf.files import replacing, writable_folder
from popf.formatting import install, visible
from popf.metrics.thresholds import HUNDREDTHS
from popf.paper import PlattObjective, PlattOPFClassifier, platt_targets

REFERENCE = (
    "S. E. N. Fernandes, D. R. Pereira, C. C. O. Ramos, A. N. Souza, J. P. Papa, "
    '"A Probabilistic Optimum-Path Forest Classifier for Binary Classification Problems", '
    "arXiv:1609.00878"
)
#: Datasets of the paper's figure 1, and of figures 2 and 3, two in each.
IN_LANDSCAPES = ("industrial", "diabetes")
OVER_THRESHOLDS = ("breast_cancer", "comercial", "industrial", "ionosphere")
JOURNAL = "journal.jsonl"
REPORT = "report.html"
#: Measures on the page; the files have all of them.
SHOWN = ("accuracy", "seconds", "log_loss", "brier", "ece")
DPI = 130
PANEL = (5.6, 4.2)
#: Curves that differ by less than this on average are drawn as one.
ALIKE = 0.005
LANDSCAPE_CAPTION = (
    "The objective F over A × B, on the training samples of the first run, and the path of each "
    "solver: its best point after every iteration."
)
THRESHOLDS_CAPTION = (
    "Accuracy by threshold Θ: means over the runs, with bands of ± 1 standard deviation. The plain forest has "
    "no threshold, so it is a horizontal line."
)


def reproduce(
    out: str | os.PathLike[str],
    *,
    fresh: bool = False,
    figures: bool | None = None,
    say: Say | None = None,
    **study: Any,
) -> Results:
    """Run a study, and write its journal, tables, figures and report to a folder.

    The folder gets ``journal.jsonl``, ``runs.csv``, ``tables/`` (Markdown, LaTeX, CSV), ``figures/``
    (PNG, SVG) and ``report.html``. If interrupted, the same call continues where it stopped.

    Parameters
    ----------
    out : path-like
        The folder; it is checked to be writable before the work starts.
    fresh : bool, default=False
        Start over; an existing journal is kept as ``journal.jsonl.old``.
    figures : bool or None, default=None
        Whether to draw figures; None: only if matplotlib is installed.
    say, **study
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
    <Results: 1 datasets, 2 methods, 2 runs>
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
    """Summarise a study in plain values for JSON: paths, sizes, and the contents of every table."""
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
            for facts in tables.table(results, name).facts()
        ],
        "failures": results.failures(),
    }


def write_report(results: Results, folder: str | os.PathLike[str], figures: bool = True) -> Path:
    """Write tables, figures and the page into a folder; the same results give the same bytes."""
    folder = writable_folder(folder)
    _write(folder / "runs.csv", tables.as_csv(tables.RUN_COLUMNS, results.records))
    made = {name: tables.table(results, name) for name in MEASURES}
    for name, table in made.items():
        _write(folder / "tables" / f"{name}.md", table.markdown())
        _write(folder / "tables" / f"{name}.tex", table.latex())
        _write(folder / "tables" / f"{name}.csv", table.csv())
    images = []
    for name, (figure, caption) in _figures(results).items() if figures else ():
        png, svg = (_image(figure, kind) for kind in ("png", "svg"))
        _write(folder / "figures" / f"{name}.png", png)
        _write(folder / "figures" / f"{name}.svg", svg)
        images.append((caption, base64.b64encode(png).decode("ascii")))
    page = render(
        "popf.experiment",
        "report",
        results=results,
        reference=REFERENCE,
        in_words=IN_WORDS,
        tables=[made[name] for name in SHOWN],
        implausible=tables.implausible_values(results, made["accuracy"]),
        standard_errors=tables.STANDARD_ERRORS,
        times_a_coin=tables.TIMES_A_COIN,
        images=images,
    )
    _write(folder / REPORT, page)
    return folder / REPORT


def _image(figure: Any, kind: str) -> bytes:
    """Save a figure without dates and random ids, so that its bytes are reproducible."""
    import matplotlib

    out = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "popf", "svg.fonttype": "path"}):
        metadata = {"Date": None} if kind == "svg" else {}
        figure.savefig(out, format=kind, dpi=DPI, metadata=metadata)
    return out.getvalue()


def _write(path: Path, content: str | bytes) -> None:
    """Write a file atomically; names from a file system may hold what no encoding can write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(visible(content).encode() if isinstance(content, str) else content)


def _figures(results: Results) -> dict[str, tuple[Any, str]]:
    """Draw landscapes (figure1) and thresholds (figure2, figure3); return figures and captions by file name."""
    drawn = {}
    landscapes = _chosen(results, IN_LANDSCAPES, 2)
    if landscapes and _solvers(results):
        drawn["figure1"] = _grid(results, landscapes, _landscape), LANDSCAPE_CAPTION
    with_curves = [
        name
        for name in _chosen(results, OVER_THRESHOLDS, 4)
        if any("over_thresholds" in r for r in results.records if r["dataset"] == name)
    ]
    order = [*OVER_THRESHOLDS, *with_curves]
    with_curves.sort(key=order.index)
    for k in range(0, len(with_curves), 2):
        grid = _grid(results, with_curves[k : k + 2], _thresholds)
        drawn[f"figure{2 + k // 2}"] = grid, THRESHOLDS_CAPTION
    return drawn


def _chosen(results: Results, preferred: tuple[str, ...], most: int) -> list[str]:
    """Choose datasets with two classes: the preferred ones or, if there are none, the first `most`."""
    binary = [name for name, dataset in results.datasets.items() if dataset.n_classes == 2]
    return [name for name in binary if name in preferred] or binary[:most]


def _grid(results: Results, names: list[str], draw: Callable[..., None]) -> Any:
    """Draw a row for each dataset and a column for each form; with one form, datasets side by side."""
    forms = [results.protocol.forms(results.datasets[name]) for name in names]
    n_rows, n_columns = len(names), max(map(len, forms))
    if n_columns == 1:
        n_rows, n_columns = 1, len(names)
    figure = need_matplotlib("matplotlib.figure").Figure(
        figsize=(PANEL[0] * n_columns, PANEL[1] * n_rows), layout="constrained"
    )
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    for ax in axes.flat:
        ax.set_visible(False)
    for k, name in enumerate(names):
        for j, form in enumerate(forms[k]):
            ax = axes[k, j] if n_rows > 1 or len(names) == 1 else axes[0, k]
            ax.set_visible(True)
            draw(results, name, form, ax)
            stand_in = ", stand-in" if results.datasets[name].stand_in else ""
            ax.set_title(f"{as_text(name)} ({form}{stand_in})")
    return figure


def _solvers(results: Results) -> dict[str, Any]:
    """Return the solvers of the paper's method in this study, by the paper's abbreviations."""
    return {
        name.removeprefix("P-OPF-"): method.solver
        for name, method in methods().items()
        if name in results.methods and isinstance(method, PlattOPFClassifier)
    }


def _landscape(results: Results, name: str, form: str, ax: Any) -> None:
    """Draw F on the training samples of the first run, and the path of every solver."""
    protocol = results.protocol
    X, y, *_ = protocol.samples(results.datasets[name], form, 0)
    forest = methods()["OPF"].fit(X, y)
    sign = np.where(y == forest.classes_[1], 1, -1)
    objective = PlattObjective(sign * forest.costs_, platt_targets(sign))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the figure shows where the box stops a solver
        solutions = {
            solver_name: solver.minimize(objective, random_state=protocol.random_state(0))
            for solver_name, solver in _solvers(results).items()
        }
    LandscapeDisplay.from_objective(objective, solutions=solutions, ax=ax)


def _thresholds(results: Results, name: str, form: str, ax: Any) -> None:
    """Draw the accuracy by threshold, with methods of nearly equal curves as one."""
    groups: list[tuple[list[str], Any]] = []
    for method in results.methods:
        curves = results.curves(name, method, form)
        if not curves.size:  # no probabilities: a horizontal line
            accuracy = results.values("accuracy", name, method, form)
            if np.isfinite(accuracy).any():
                groups.append(([method], np.full(len(HUNDREDTHS), np.nanmean(accuracy))))
            continue
        for names, other in groups:
            if other.ndim == 2 and np.abs(curves.mean(axis=0) - other.mean(axis=0)).mean() < ALIKE:
                names.append(method)
                break
        else:
            groups.append(([method], curves))
    values = {
        ", ".join([names[0], *(other.removeprefix("P-OPF-") for other in names[1:])]): curves
        for names, curves in groups
    }
    ThresholdDisplay(thresholds=HUNDREDTHS, values=values).plot(ax=ax)
    ax.set_ylabel("Accuracy (Papa's)")
