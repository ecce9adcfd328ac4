"""The log odds of one sample as a sum: baseline, forest, and each feature."""

import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OneToOneFeatureMixin

from popf.display import canvas
from popf.display.estimators import fitted_step, one_sample, steps_of
from popf.formatting import counted
from popf.metrics.checks import class_index
from popf.probability import ProbabilityExplanation
from popf.probability.classifier import POPFClassifier

WIDTH, HEIGHT_OF_BAR, AXIS = 6.4, 0.34, 1.0


class LogOdds(NamedTuple):
    """The log odds of one sample for one class against another, and what they are the sum of."""

    pos_label: Any
    against: Any
    prior: float  # the baseline: what holds for every sample, the class frequencies above all
    forest: float  # what the forest adds
    features: dict[str, float]  # what each feature adds, the largest first, without zeros
    total: float
    probability: float  # of `pos_label`, among all classes

    def terms(
        self, n_features: int, values: Mapping[str, Any] | None = None
    ) -> list[tuple[str, float]]:
        """Return all terms and their sum, with the values of features, those after the first few as one."""
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
    return f"{name} = {value:.5g}" if isinstance(value, float) else f"{name} = {value}"


def split_log_odds(estimator: Any, X: Any) -> ProbabilityExplanation:
    """Call `explain_proba` after the steps of a pipeline, and sum the shares by the columns of X."""
    last = fitted_step(estimator, (POPFClassifier,), "log odds to split")
    steps = steps_of(estimator)[:-1]
    columns = getattr(X, "columns", None)
    owners = None if columns is None else [str(name) for name in columns]
    for step in steps:
        X = step.transform(X)
        owners = _owners(step, owners)
    with warnings.catch_warnings():  # an array has no names, which is no reason to warn
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
    """Take one sample and two classes out of a split."""
    classes = split.classes.tolist()
    parts: Any = (split.prior, split.forest[row], split.total[row], split.features[row])
    if len(classes) == 2:  # as exponents of both classes
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
        raise ValueError(f"against={against!r} is the class itself; name another one.")
    shares = (features[:, code] - features[:, rival]).tolist()
    named = [pair for pair in zip(split.feature_names, shares, strict=True) if pair[1] != 0.0]
    exponents = np.exp(total - total.max())
    return LogOdds(
        classes[code],
        classes[rival],
        float(prior[code] - prior[rival]),
        float(forest[code] - forest[rival]),
        dict(sorted(named, key=lambda pair: -abs(pair[1]))),
        float(total[code] - total[rival]),
        float(exponents[code] / exponents.sum()),
    )


def _owners(step: Any, owners: list[str] | None) -> list[str] | None:
    """Name the columns that a step gives by those it was given; None if they have no names."""
    if hasattr(step, "owners"):  # several for one, as for a category
        return [str(name) for name in step.owners()]
    if isinstance(step, OneToOneFeatureMixin):
        return owners
    with suppress(AttributeError, ValueError):  # a step that cannot say
        return [str(name) for name in step.get_feature_names_out()]
    return None


class LogOddsDisplay:
    """Bars for what baseline, forest and features add to the log odds of one sample.

    Parameters
    ----------
    log_odds : named tuple
        ``prior`` (the baseline), ``forest``, ``features`` and their sum ``total``, for the class ``pos_label``
        against ``against``; ``probability`` of the former.
    values : dict, default=None
        Values of features, written beside their names.

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
        """Draw the log odds of one sample.

        Parameters
        ----------
        estimator : POPFClassifier or Pipeline
            Fitted, with ``method="pooled"`` or ``"forest"``. What a pipeline makes of one column, such as an
            encoded category, is summed where its steps tell which column that is.
        sample : array-like of shape (n_features,) or (1, n_features)
        pos_label, against : int, float, bool or str, default=None
            The class whose log odds these are, None for the second of two, and with more the most probable;
            and the class it is compared with, None for the most probable of the others.
        n_features : int, default=10
            How many features have a bar of their own.
        ax : matplotlib Axes, default=None
            Where to draw; None for a new figure.
        """
        canvas.need_matplotlib()
        split = split_log_odds(estimator, one_sample(sample))
        found = log_odds_of(split, 0, pos_label, against)
        values = sample.iloc[0].to_dict() if hasattr(sample, "iloc") else {}
        named = {str(name): value for name, value in values.items()}
        return cls(log_odds=found, values=named).plot(n_features=n_features, ax=ax)

    def plot(self, *, n_features: int = 10, ax: Any = None) -> Self:
        """Draw it.

        Parameters
        ----------
        n_features, ax
            As for `from_estimator`.
        """
        found = self.log_odds
        names, heights = zip(*found.terms(n_features, self.values), strict=True)
        ax = canvas.axes_for(ax, (WIDTH, HEIGHT_OF_BAR * len(names) + AXIS))
        look = canvas.look_of(ax)
        ours, theirs = look.fill(1), look.fill(0)
        colours = [ours if height > 0.0 else theirs for height in heights[:-1]]
        self.ax_, self.figure_ = ax, ax.figure
        self.bars_ = ax.barh(range(len(names)), heights, color=[*colours, look.quiet], height=0.7)
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.axvline(0.0, color=look.ink, lw=0.8)
        ax.axhline(len(names) - 1.5, color=look.faint, lw=0.8)
        style = {"padding": 3, "fontsize": "small", "color": look.ink}
        ax.bar_label(
            self.bars_, [f"{height:+.2f}".replace("-", "−") for height in heights], **style
        )
        ax.margins(x=0.16)
        ax.set_xlabel(f"log odds of {found.pos_label} against {found.against}")
        ax.set_title(
            f"{found.pos_label}: probability {found.probability:.3f}", loc="left", fontsize="medium"
        )
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
        return self
