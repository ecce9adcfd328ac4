"""Build the report page from a model and samples."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from popf.display.estimators import fitted_step
from popf.display.html import render
from popf.engine.structures import FloatArray
from popf.files import replacing
from popf.formatting import check_integer, check_share
from popf.io import align
from popf.metrics.checks import as_labels, as_probabilities, check_same_kind, class_index, shown
from popf.metrics.intervals import CONFIDENCE
from popf.metrics.thresholds import check_costs
from popf.monitoring import Drift, drift
from popf.paper.classifier import PlattOPFClassifier
from popf.probability.classifier import POPFClassifier
from popf.report import numbers
from popf.report.drivers import Drivers, drivers_of
from popf.report.explanations import Entries, explain_samples, model_facts
from popf.report.numbers import plain
from popf.tables.columns import group_rows

MAX_ROWS, PRINTED_ROWS = 2000, 40
#: Number of columns, those that have changed most, to compare with training.
MAX_CHANGED = 8
#: Of more classes, only the most frequent can be chosen on the page: each adds some 0.3 MB.
MAX_VIEWS = 20


@dataclass(frozen=True)
class Row:
    """A listed sample, one of the highest probabilities."""

    number: int  # row number in the data, from 1
    ids: list[str]
    probability: float
    truth: str  # true class
    why: dict[str, Any]  # explanation, see `explain_samples`

    @property
    def name(self) -> str:
        """The first id, or the row number."""
        return (self.ids and self.ids[0]) or f"row {self.number}"


@dataclass(frozen=True)
class View:
    """What the page shows about one class, against the other or all others."""

    event: str  # the positive class
    other: str  # the other class, or "all others"
    quality: numbers.Quality
    decisions: numbers.Decisions
    gains: numbers.Gains
    start: int  # index in `decisions` of the initial threshold
    rows: list[Row]  # highest probabilities first

    @property
    def bins(self) -> list[tuple[float, ...]]:
        """The bins of the reliability curve: probability, frequency, its interval, number of samples."""
        curve = self.quality.curve
        columns = (curve.probability, curve.frequency, curve.lower, curve.upper, curve.weights)
        return list(zip(*columns, strict=True))

    def script_data(self) -> dict[str, Any]:
        """Return the data for the page's script, as plain values."""
        counts, chance = self.decisions.counts, f"Probability of “{self.event}”: "
        return {
            "event": self.event,
            "thresholds": counts.thresholds.tolist(),
            "hits": counts.hits.astype(int).tolist(),
            "alarms": counts.alarms.astype(int).tolist(),
            "positive": int(counts.n_positive),
            "negative": int(counts.n_negative),
            "ratio": self.decisions.ratio,
            "start": self.start,
            "people": [
                {"probability": f"{chance}{numbers.chance(row.probability)}.", **row.why}
                for row in self.rows
            ],
        }


@dataclass(frozen=True)
class Report:
    """Everything that the page shows."""

    title: str
    source: str  # names of the model and data files, if known
    classes: list[str]
    overall: numbers.Overall | None  # over all classes, if there are more than two
    views: list[View]  # of the positive class or, with more than two, of all (at most `MAX_VIEWS`)
    open: int  # the one that the page opens with
    drawn: str  # what the bootstrap resamples for the intervals, in words
    id_names: list[str]
    drivers: Drivers | None
    drift: Drift | None  # since training, of two classes
    facts: list[tuple[str, Entries]]  # headings, each with (term, text) pairs
    note: str  # remark about the paths, may be empty

    @property
    def view(self) -> View:
        """The class that the page opens with."""
        return self.views[self.open]

    def html(self) -> str:
        """Render the page as one self-contained file."""
        return render(
            "popf.report",
            "report",
            report=self,
            data=self.script_data(),
            text=numbers,
            confidence=f"{100 * CONFIDENCE:g} %",
            printed_rows=PRINTED_ROWS,
            max_changed=MAX_CHANGED,
        )

    def script_data(self) -> dict[str, Any]:
        """Return the data for the page's script, as plain values."""
        return {"open": self.open, "views": [view.script_data() for view in self.views]}


def build(model: Any, X: Any, y: ArrayLike, **options: Any) -> str:
    """Build a report on a model, evaluated on samples it was not fitted to, as one HTML page.

    Parameters
    ----------
    model : POPFClassifier, PlattOPFClassifier or Pipeline
        Fitted; a pipeline ends in the classifier.
    X : frame or array of shape (n_samples, n_features)
        Columns of a frame are matched by name.
    y : array-like of shape (n_samples,)
        True labels, of at least two classes.
    **options
        - ``positive``: the positive class; None for the second of two. With more classes every class can be
          chosen on the page, which opens with this one, or with the rarest;
        - ``threshold``: initial threshold; None for the threshold of lowest cost if costs are given, else the
          model's own;
        - ``cost_fp``, ``cost_fn``: costs of a false alarm and of a miss, both or neither;
        - ``ids``: columns that identify samples, such as ``{"patient": [...]}``; the bootstrap draws samples
          that share a value of the first column with repeated values together;
        - ``top``: number of samples to list, 100 by default;
        - ``title``: None for a title that names the class;
        - ``seed``: seed of the bootstrap, 0 by default;
        - ``probability``: the result of ``model.predict_proba(X)``, if already known;
        - ``about``: the result of `popf.io.describe` for the model's file, and the names of the files
          (``"file"``, ``"data"``) and of the label column (``"target"``).

    Returns
    -------
    str
        The page. The same input gives the same bytes. It loads nothing, and contains rows of `X`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from popf import POPFClassifier
    >>> from popf import report
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = make_pipeline(StandardScaler(), POPFClassifier()).fit(X[::2], y[::2])
    >>> page = report.build(model, X[1::2], y[1::2], positive=0, cost_fp=1, cost_fn=10)
    >>> page[:15], "Which threshold should I use?" in page
    ('<!DOCTYPE html>', True)
    """
    return compute(model, X, y, **options).html()


def write(model: Any, path: str | os.PathLike[str], X: Any, y: ArrayLike, **options: Any) -> None:
    """Write a report to a file, atomically.

    Parameters
    ----------
    model : POPFClassifier, PlattOPFClassifier or Pipeline
    path : str or path-like
        Such as ``report.html``. If anything fails, an existing file is left unchanged.
    X, y, **options
        As for `build`.

    Examples
    --------
    >>> import os, tempfile
    >>> from popf import POPFClassifier, report
    >>> model = POPFClassifier().fit([[0.0], [1.0], [4.0], [6.0]], ["no", "no", "yes", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "report.html")
    ...     report.write(model, path, [[0.5], [2.0], [5.0]], ["no", "no", "yes"])
    ...     os.path.getsize(path) > 10_000
    True
    """
    page = build(model, X, y, **options).encode()
    with replacing(path) as file:
        file.write(page)


def compute(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    ids: Mapping[str, Sequence[Any]] | None = None,
    about: Mapping[str, Any] | None = None,
    probability: FloatArray | None = None,
    positive: Any = None,
    threshold: float | None = None,
    cost_fp: float | None = None,
    cost_fn: float | None = None,
    top: int = 100,
    title: str | None = None,
    seed: int = 0,
) -> Report:
    """Compute everything that a report shows; see `build`."""
    check_options(threshold, cost_fp, cost_fn, top)
    about = about or {}
    kinds = (POPFClassifier, PlattOPFClassifier)
    final = fitted_step(model, kinds, "probabilities of a forest")
    X = align(model, X, extra="ignore")
    classes = np.asarray(model.classes_)
    labels = _checked_labels(y, classes)
    columns = _checked_ids(ids or {}, len(labels))
    table = as_probabilities(model.predict_proba(X) if probability is None else probability)
    if table.shape != (len(labels), len(classes)):
        raise ValueError(
            f"there are {len(labels)} labels, but probabilities of the shape {table.shape}; pass one label "
            f"for each row, and all {len(classes)} columns of predict_proba."
        )
    code = _positive(positive, labels, classes)
    present = np.unique(labels)
    if classes[code] not in present or len(present) == 1:
        raise ValueError(
            f"all {len(labels)} samples are {'' if classes[code] in present else 'other than '}"
            f"{classes.tolist()[code]!r}: a report needs samples of this class and of others."
        )
    groups = group_rows(columns, len(labels))
    drawn = None if groups.id is None else groups.numbers
    known = (about.get("facts") or {}).get("table")
    known = known if isinstance(known, Mapping) else {}
    ratio, by_cost = float(cost_fn or 1.0) / float(cost_fp or 1.0), cost_fp is not None
    names, notes = [plain(label) for label in classes.tolist()], [""]

    def view_of(code: int) -> View:
        happened, chances = labels == classes[code], np.ascontiguousarray(table[:, code])
        own = _own_threshold(final, code)
        wanted = own if threshold is None else float(threshold)
        found = numbers.decisions(happened, chances, ratio=ratio, also=[own, wanted])
        start = found.recommended if threshold is None and by_cost else found.nearest(wanted)
        theta = float(found.counts.thresholds[start])
        highest = np.lexsort([np.arange(len(chances)), -chances])[:top]
        chosen = _safe_indexing(X, highest)
        reasons, notes[0] = explain_samples(
            model, chosen, classes.tolist()[code], known.get("rows")
        )
        return View(
            event=names[code],
            other=names[1 - code] if len(names) == 2 else "all others",
            quality=numbers.quality(happened, chances, threshold=theta, seed=seed, groups=drawn),
            decisions=found,
            gains=numbers.gains(happened, chances),
            start=start,
            rows=[
                Row(
                    number=row + 1,
                    ids=[plain(values[row]) for values in columns.values()],
                    probability=float(chances[row]),
                    truth=plain(labels[row]),
                    why=why,
                )
                for row, why in zip(highest.tolist(), reasons, strict=True)
            ],
        )

    shown = [code]
    if names[2:]:
        counts = (labels[:, None] == classes).sum(axis=0)
        frequent = np.argsort(-counts, kind="stable")[:MAX_VIEWS]
        shown = sorted({code, *frequent[counts[frequent] > 0].tolist()})
    views = [view_of(each) for each in shown]
    changed, spread = None, known.get("spread")
    if not names[2:] and final.samples_ is not None:
        changed = drift(
            model,
            X,
            labels,
            positive=classes.tolist()[code],
            threshold=_own_threshold(final, code),
            groups=drawn,
            spread=spread if isinstance(spread, float) else None,
            probability=table[:, code],
            seed=seed,
        )
    target, question = about.get("target"), f"“{names[code]}”"
    if target:
        question = f"{plain(target)} = {names[code]}"
    if names[2:]:
        question = f"each {plain(target)}" if target else "each class"
    return Report(
        title=plain(title or f"How likely is {question}?"),
        source=" on ".join(plain(about[key]) for key in ("file", "data") if about.get(key)),
        classes=names,
        overall=(
            numbers.overall(labels, table, classes, seed=seed, groups=drawn) if names[2:] else None
        ),
        views=views,
        open=shown.index(code),
        drawn=f"the {groups.n_groups:,} values of {plain(groups.id)}" if groups.id else "samples",
        id_names=[plain(name) for name in columns],
        drivers=drivers_of(model, X, code, known.get("cautions")),
        drift=changed,
        facts=model_facts(model, about),
        note=notes[0],
    )


def check_options(threshold: Any, cost_fp: Any, cost_fn: Any, top: Any) -> None:
    """Raise ValueError if the threshold, a cost or the number of rows is invalid."""
    if threshold is not None:
        check_share("`threshold`", threshold)
    check_costs(cost_fp, cost_fn, strictly=True)
    check_integer("`top`", top, 1, f", and at most {MAX_ROWS}")
    if top > MAX_ROWS:
        raise ValueError(f"`top` is {top}; it must be at most {MAX_ROWS}")


def _checked_labels(y: ArrayLike, classes: NDArray[Any]) -> NDArray[Any]:
    labels = as_labels(y, "y")
    check_same_kind(labels, as_labels(classes, "classes"), "y", "the model's classes")
    strange = np.flatnonzero(~np.isin(labels, classes))
    if len(strange):
        raise ValueError(
            f"y holds {labels[strange[0]].item()!r} in row {strange[0] + 1}, a label the model has never "
            f"seen; it knows {shown(classes)}. Remove such rows ({len(strange)} in all)."
        )
    return labels


def _checked_ids(ids: Mapping[str, Sequence[Any]], n_samples: int) -> dict[str, list[Any]]:
    columns = {str(name): list(values) for name, values in ids.items()}
    for name, values in columns.items():
        if len(values) != n_samples:
            raise ValueError(
                f"ids[{name!r}] has {len(values)} values for {n_samples} samples; give one for each."
            )
    return columns


def _positive(positive: Any, labels: NDArray[Any], classes: NDArray[Any]) -> int:
    """Return the index of the positive class."""
    if positive is not None:
        return class_index(positive, classes, "positive")
    if len(classes) == 2:
        return 1
    counts = (labels[:, None] == classes[None, :]).sum(axis=0)
    return int(np.where(counts > 0, counts, len(labels) + 1).argmin())


def _own_threshold(final: POPFClassifier | PlattOPFClassifier, code: int) -> float:
    """Return the model's own threshold for a class; 0.5 with more than two classes."""
    if len(final.classes_) != 2:
        return 0.5
    return float(final.threshold if code == 1 else 1.0 - final.threshold)
