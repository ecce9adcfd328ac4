"""Display of the log odds of one sample as a sum of baseline, forest and features."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from popf.display import canvas
from popf.display.estimators import fitted_step, one_sample, owners_after, steps_of
from popf.formatting import counted, shortened
from popf.metrics.checks import class_index
from popf.probability import ProbabilityExplanation
from popf.probability.classifier import POPFClassifier

WIDTH, HEIGHT_OF_BAR, AXIS = 6.4, 0.34, 1.0


class LogOdds(NamedTuple):
    """The log odds of one sample for one class against another, and the terms that add up to them."""

    pos_label: Any
    against: Any
    prior: float  # the baseline, equal for all samples: mainly the class frequencies
    forest: float  # contribution of the forest
    features: dict[str, float]  # contribution of each feature, largest first, without zeros
    total: float
    probability: float  # of `pos_label`, among all classes

    def terms(
        self, n_features: int, values: Mapping[str, Any] | None = None
    ) -> list[tuple[str, float]]:
        """List the terms and their sum, with feature values; all but the first `n_features` features as one."""
        named = [(_with_value(name, values or {}), share) for name, share in self.features.items()]
        rest = [share for _, share in named[n_features:]]
        terms = [("baseline", self.prior), ("forest", self.forest), *named[:n_features]]
        if rest:
            terms.append((counted(len(rest), "other feature"), float(np.sum(rest))))
        return [*terms, ("sum", self.total)]


def _with_value(name: str, values: Mapping[str, Any]) -> str:
    if name not in values:
        return name
    value = values[name]
    if value is None or value != value:
        return f"{name} is missing"
    return (
        f"{name} = {value:.5g}" if isinstance(value, float) else f"{name} = {shortened(str(value))}"
    )


def split_log_odds(estimator: Any, X: Any) -> ProbabilityExplanation:
    """Call `explain_proba` after the steps of a pipeline, and sum contributions by column of X."""
    last = fitted_step(estimator, (POPFClassifier,), "log odds that can be decomposed")
    steps = steps_of(estimator)[:-1]
    columns = getattr(X, "columns", None)
    owners = None if columns is None else [str(name) for name in columns]
    for step in steps:
        X = step.transform(X)
        owners = owners_after(step, owners)
    with warnings.catch_warnings():  # arrays have no feature names
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        split: ProbabilityExplanation = last.explain_proba(X)
    if not steps or owners is None:
        return split
    names, of = list(dict.fromkeys(owners)), np.array(owners)
    features = [split.features[:, of == name].sum(axis=1) for name in names]
    return replace(split, features=np.stack(features, axis=1), feature_names=names)


def log_odds_of(
    split: ProbabilityExplanation, row: int, pos_label: Any = None, against: Any = None
) -> LogOdds:
    """Select one sample and two classes from the terms of all samples."""
    classes = split.classes.tolist()
    parts: Any = (split.prior, split.forest[row], split.total[row], split.features[row])
    if len(classes) == 2:  # log odds as logits of both classes, the first 0
        parts = (np.stack([np.zeros_like(part), part], axis=-1) for part in parts)
    prior, forest, total, features = parts
    if pos_label is None:
        code = 1 if len(classes) == 2 else int(total.argmax())
    else:
        code = class_index(pos_label, split.classes)
    others = np.where(np.arange(len(classes)) == code, -np.inf, total)
    rival = int(others.argmax())
    if against is not None:
        rival = class_index(against, split.classes, "against")
    if rival == code:
        raise ValueError(f"against={against!r} is the positive class itself; choose another class.")
    shares = (features[:, code] - features[:, rival]).tolist()
    named = [pair for pair in zip(split.feature_names, shares, strict=True) if pair[1] != 0.0]
    odds = np.exp(total - total.max())
    return LogOdds(
        classes[code],
        classes[rival],
        float(prior[code] - prior[rival]),
        float(forest[code] - forest[rival]),
        dict(sorted(named, key=lambda pair: -abs(pair[1]))),
        float(total[code] - total[rival]),
        float(odds[code] / odds.sum()),
    )


class LogOddsDisplay:
    """Bar chart of what the baseline, the forest and each feature contribute to the log odds of one sample.

    Parameters
    ----------
    log_odds : named tuple
        ``prior`` (the baseline), ``forest``, ``features`` and their sum ``total``, for the class ``pos_label``
        against ``against``; ``probability`` of the former.
    values : dict, default=None
        Feature values, shown beside the names.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    bars_ : matplotlib BarContainer
        The bars, from the top: baseline, forest, features, and the sum.

    See Also
    --------
    popf.POPFClassifier.explain_proba : The numbers for many samples.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_breast_cancer
    >>> from popf import POPFClassifier
    >>> from popf.display import LogOddsDisplay
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = POPFClassifier().fit(X, y)
    >>> display = LogOddsDisplay.from_estimator(
    ...     model, X[:1], pos_label=0, n_features=3, ax=Figure().subplots()
    ... )
    >>> [label.get_text() for label in display.ax_.get_yticklabels()][:2]
    ['baseline', 'forest']
    """

    def __init__(self, *, log_odds: LogOdds, values: Mapping[str, Any] | None = None) -> None:
        self.log_odds = log_odds
        self.values = values

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        sample: ArrayLike,
        *,
        pos_label: Any = None,
        against: Any = None,
        n_features: int = 10,
        ax: Any = None,
    ) -> Self:
        """Draw the log odds of one sample of a fitted classifier.

        Parameters
        ----------
        estimator : POPFClassifier or Pipeline
            Fitted. Contributions of columns that a pipeline makes
            from one column, such as an encoded category, are summed if its steps tell which column that is.
        sample : array-like of shape (n_features,) or (1, n_features)
        pos_label, against : int, float, bool or str, default=None
            The class whose log odds are drawn (None: the second of two, or the most probable of more), and the
            class it is compared with (None: the most probable of the others).
        n_features : int, default=10
            Number of features with a bar of their own; all others share one.
        ax : matplotlib Axes, default=None
            Where to draw; None for a new figure.
        """
        canvas.need_matplotlib()
        row = one_sample(sample)
        found = log_odds_of(split_log_odds(estimator, row), 0, pos_label, against)
        values = row.iloc[0].to_dict() if hasattr(row, "iloc") else {}
        named = {str(name): value for name, value in values.items()}
        return cls(log_odds=found, values=named).plot(n_features=n_features, ax=ax)

    def plot(self, *, n_features: int = 10, ax: Any = None) -> Self:
        """Draw the bars.

        Parameters
        ----------
        n_features, ax
            As for `from_estimator`.
        """
        found = self.log_odds
        names, heights = zip(*found.terms(n_features, self.values), strict=True)
        ax = canvas.axes_for(ax, (WIDTH, HEIGHT_OF_BAR * len(names) + AXIS))
        look = canvas.look_of(ax)
        colours = [look.fill(int(height > 0.0)) for height in heights[:-1]]
        self.ax_, self.figure_ = ax, ax.figure
        self.bars_ = ax.barh(range(len(names)), heights, color=[*colours, look.quiet], height=0.7)
        ax.set_yticks(range(len(names)), [canvas.as_text(name) for name in names])
        ax.invert_yaxis()
        ax.axvline(0.0, color=look.ink, lw=0.8)
        ax.axhline(len(names) - 1.5, color=look.faint, lw=0.8)
        style = {"padding": 3, "fontsize": "small", "color": look.ink}
        ax.bar_label(
            self.bars_, [f"{height:+.2f}".replace("-", "−") for height in heights], **style
        )
        ax.margins(x=0.16)
        ours, theirs = canvas.as_text(found.pos_label), canvas.as_text(found.against)
        ax.set_xlabel(f"log odds of {ours} against {theirs}")
        ax.set_title(f"{ours}: probability {found.probability:.3f}", loc="left", fontsize="medium")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
        return self
