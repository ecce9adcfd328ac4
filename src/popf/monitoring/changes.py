"""How new rows differ from the training rows of a model, and what to expect of their probabilities."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from popf.display.estimators import as_forest_sees, fitted_step, steps_of
from popf.engine.structures import FloatArray, IntArray
from popf.formatting import check_share
from popf.metrics import Score, expected_scores, spread_of_periods
from popf.metrics.checks import as_labels, class_index, group_numbers
from popf.metrics.expectations import EXPECTED, label_scores
from popf.metrics.intervals import CONFIDENCE, wilson
from popf.paper.classifier import PlattOPFClassifier
from popf.probability.classifier import POPFClassifier
from popf.probability.columns import CATEGORY, UNSEEN, names_of_features, read_new

#: Bins of numbers, and the share of training rows from which a level has a bin of its own.
N_BINS, FREQUENT = 10, 0.01
#: Samples drawn to find the index that chance explains, and the usual limit of a large one.
N_DRAWS, LARGE = 1000, 0.25
#: Quantile of the costs of held-out training rows beyond which a row counts as novel.
NOVEL = 0.95
#: Confidence of the intervals of expected scores: several are compared with what was found.
SURE = 0.99
DECILES = np.arange(1, 10) / 10


class ColumnDrift(NamedTuple):
    """How a column differs from the training rows."""

    name: str
    psi: float  # population stability index
    normal: float  # largest index that chance explains, in 19 of 20 comparisons of all columns
    missing_before: float  # shares of missing cells, in training and now
    missing: float
    unseen: (
        float  # share of rows with a level never seen, or a number outside the range of training
    )
    drifted: bool  # whether the index is large, and larger than normal


class Drift(NamedTuple):
    """The result of `drift`."""

    columns: list[ColumnDrift]  # the largest index first
    n_rows: int
    n_training: int
    novel: Score  # share of rows farther from the training rows than 95 % of these from each other
    usual_novel: float  # the share to expect: 5 %
    deciles: FloatArray  # of the probabilities of the positive class
    training_share: float  # share of the positive class in training
    expected: dict[str, Score]  # what the probabilities promise, see `popf.metrics.expected_scores`
    found: dict[str, float] | None  # the same from labels, where these are known
    n_labelled: int

    @property
    def drifted(self) -> list[str]:
        """What has changed: names of columns, ``"novelty"``, and scores that are not as promised."""
        broken = [name for name in EXPECTED if self.found and not self.kept(name)]
        novel = ["novelty"] if self.novel.lower > 2 * self.usual_novel else []
        return [column.name for column in self.columns if column.drifted] + novel + broken

    def kept(self, name: str) -> bool:
        """Whether a score is not below its promised interval; the number of positives not above it, either."""
        found, promised = np.nan if self.found is None else self.found[name], self.expected[name]
        return not (found < promised.lower or (name == "positives" and found > promised.upper))


def drift(
    model: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    labelled: ArrayLike | None = None,
    positive: Any = None,
    threshold: float | None = None,
    groups: ArrayLike | None = None,
    spread: float | None = None,
    limit: float = LARGE,
    probability: FloatArray | None = None,
    seed: int = 0,
) -> Drift:
    r"""Compare new rows with the training rows in a model, and tell what to expect of its probabilities.

    Every column is compared by the population stability index

    .. math:: \sum_b (q_b - p_b) \log (q_b / p_b)

    over bins b with a share :math:`p_b` of the training rows and :math:`q_b` of the new. Bins are tenths
    of the training rows for numbers, levels for categories, and gaps. An index above 0.25 is commonly called
    large.

    Parameters
    ----------
    model : POPFClassifier, PlattOPFClassifier or Pipeline
        Fitted, with two classes. It contains its training rows.
    X : frame or array of shape (n_samples, n_features)
        New rows.
    y : array-like of shape (n_samples,), default=None
        Their labels, if known, to compare what was promised with what was found.
    labelled : array-like of bool of shape (n_samples,), default=None
        Which rows have a label; None for all. Expectations are then for these rows.
    positive : label, default=None
        The positive class; None for the second.
    threshold : float, default=None
        Probability from which a row is predicted positive; None for the model's.
    groups : array-like of shape (n_samples,), default=None
        The group of each row, such as its consumer, if rows of a group depend on each other. Training rows are
        taken to form groups of the same mean size.
    spread : float, default=None
        How much the log odds of the positive class may have shifted since training, see
        `popf.metrics.spread_of_periods`; None for sampling error alone.
    limit : float, default=0.25
        A column has drifted if its index is at least `limit`, and larger than chance explains.
    probability : array-like of shape (n_samples,), default=None
        Probabilities of the positive class, if already known.
    seed : int, default=0

    Returns
    -------
    Drift
        ``columns``, ``novel``, ``deciles``, ``expected``, ``found``, ``drifted``.

    Notes
    -----
    Labels are not needed, but what changes in the labels alone cannot be seen without them. Intervals of the
    expected scores allow for chance in the new rows and in as many rows as the model was fitted to.

    A row is novel if its path cost exceeds that of 95 % of the training rows, each left out in turn. Features
    that tell the classes apart count most; numbers beyond the training rows count as their largest or smallest.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from popf import POPFClassifier
    >>> from popf.monitoring import drift
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = POPFClassifier("forest").fit(X[::2], y[::2])
    >>> drift(model, X[1::2]).drifted
    []
    >>> changed = drift(model, X[1::2].assign(**{"mean radius": X["mean radius"] * 1.3}))
    >>> changed.drifted[0], changed.columns[0].psi > 0.25
    ('mean radius', True)
    """
    final = fitted_step(model, (POPFClassifier, PlattOPFClassifier), "probabilities of a forest")
    if final.samples_ is None or len(final.classes_) != 2:
        what = "distances instead of rows" if final.samples_ is None else "more than two classes"
        raise ValueError(f"drift needs a model of rows with two classes, and this one has {what}.")
    if not limit > 0.0:
        raise ValueError(f"`limit` must be above 0, not {limit!r}.")
    code = 1 if positive is None else class_index(positive, final.classes_, "positive")
    if threshold is None:
        threshold = final.threshold if code == 1 else 1.0 - final.threshold
    check_share("`threshold`", threshold)
    if probability is None:
        probability = model.predict_proba(X)[:, code]
    n, forest = len(probability), final.opf_.forest_
    numbers = np.arange(n) if groups is None else group_numbers(groups, n)[1]
    mean_size = n / (numbers.max() + 1)
    n_positive = int((forest.codes == code).sum())
    sizes = max(1, round(len(forest) / mean_size)), int(numbers.max()) + 1
    costs = final.opf_.conquer(as_forest_sees(model, X)).costs
    held_out = forest.costs_left_out()
    novel = float((costs > np.quantile(held_out, NOVEL)).mean())
    kept = np.ones(n, dtype=bool) if labelled is None else np.asarray(labelled, dtype=bool)
    found = None
    if y is not None and kept.any():
        happened = as_labels(np.asarray(y)[kept], "y") == final.classes_[code]
        called, ranks = probability[kept] >= threshold, rankdata(probability[kept])
        found = dict(zip(EXPECTED, label_scores(happened, called, ranks), strict=True))
    else:
        kept[:] = True
    expected = expected_scores(
        probability[kept],
        threshold=threshold,
        groups=np.unique(numbers[kept], return_inverse=True)[1],
        spread=spread_of_periods(forest.codes == code) * np.sqrt(mean_size)
        if spread is None
        else spread,
        confidence=SURE,
        seed=seed,
    )
    highest = int((probability[kept] >= threshold).sum())
    return Drift(
        columns=_columns(model, X, sizes, limit, np.random.default_rng(seed)),
        n_rows=n,
        n_training=len(forest),
        novel=Score(novel, *map(float, wilson(novel, sizes[1]))),
        usual_novel=1.0 - NOVEL,
        deciles=np.quantile(probability, DECILES),
        training_share=n_positive / len(forest),
        expected=_with_training_error(expected, highest, int(kept.sum()) / len(forest)),
        found=found,
        n_labelled=0 if found is None else int(kept.sum()),
    )


def _with_training_error(
    expected: dict[str, Score], n_called: int, ratio: float
) -> dict[str, Score]:
    """Widen intervals by the error of what was learnt from the training rows; `ratio` is of new rows to these.

    As if the same score had been measured on both, and the two were compared. The number of positives has this
    error in the shift of all log odds.
    """
    factor, found = float(np.sqrt(1.0 + ratio)), dict(expected)
    for name in EXPECTED[1:]:
        value, lower, upper = expected[name]
        highest = float(n_called) if name == "hits" else 1.0
        ends = value + factor * (lower - value), value + factor * (upper - value)
        found[name] = Score(value, *map(float, np.clip(ends, 0.0, highest)))
    return found


def _columns(
    model: Any, X: Any, sizes: tuple[int, int], limit: float, rng: np.random.Generator
) -> list[ColumnDrift]:
    """Compare every column that the classifier is given; `sizes` are the numbers of independent rows."""
    *steps, final = steps_of(model)
    for step in steps:
        X = step.transform(X)
    table = getattr(final, "table_", None)
    before: FloatArray = final.samples_
    now = np.asarray(X, float) if table is None else read_new(final, X, table.columns)
    categories = np.zeros(before.shape[1], dtype=bool)
    if table is not None:
        categories = table.columns.kinds == CATEGORY
    level = 1.0 - (1.0 - CONFIDENCE) / before.shape[1]
    found = []
    names = names_of_features(final)
    if steps and not hasattr(final, "feature_names_in_"):
        with suppress(AttributeError):  # of a step without names
            names = model[:-1].get_feature_names_out().tolist()
    for j, name in enumerate(names):
        old, new = before[:, j], now[:, j]
        gaps = np.isnan(old), np.isnan(new)
        if categories[j]:
            bins, unseen = _levels(old, new), new == UNSEEN
        else:
            bins = _tenths(old, new)
            present = old[~gaps[0]]
            low, high = (present.min(), present.max()) if len(present) else (np.inf, -np.inf)
            unseen = (new < low) | (new > high)
        n_bins = max(each.max(initial=0) for each in bins) + 1
        counts = np.array([np.bincount(each, minlength=n_bins) for each in bins])
        # Scaled to the number of independent rows.
        shares = counts / counts.sum(axis=1, keepdims=True)
        index = float(_psi(*(shares * np.array(sizes)[:, None])))
        pooled = counts.sum(axis=0) / counts.sum()
        by_chance = _psi(*(rng.multinomial(size, pooled, N_DRAWS) for size in sizes))
        normal = float(np.quantile(by_chance, level))
        drifted = index >= limit and index > normal
        missing = float(gaps[0].mean()), float(gaps[1].mean())
        found.append(ColumnDrift(name, index, normal, *missing, float(unseen.mean()), drifted))
    return sorted(found, key=lambda column: -column.psi)


def _tenths(old: FloatArray, new: FloatArray) -> list[IntArray]:
    """Return the bins of numbers: tenths of the training rows, and the last one for gaps."""
    present = old[~np.isnan(old)]
    ends = (
        np.unique(np.quantile(present, np.arange(1, N_BINS) / N_BINS)) if len(present) else present
    )
    return [np.where(np.isnan(x), len(ends) + 1, np.searchsorted(ends, x)) for x in (old, new)]


def _levels(old: FloatArray, new: FloatArray) -> list[IntArray]:
    """Return the bins of codes: rare levels together, levels never seen, gaps, and the frequent levels."""
    levels, n_each = np.unique(old[~np.isnan(old)], return_counts=True)
    frequent = levels[n_each >= FREQUENT * len(old)]
    return [
        np.select(
            [np.isnan(x), x == UNSEEN, np.isin(x, frequent)],
            [2, 1, 3 + np.searchsorted(frequent, np.nan_to_num(x))],
            0,
        )
        for x in (old, new)
    ]


def _psi(before: Any, now: Any) -> Any:
    """Compute the index from counts along the last axis; half a row is added to every bin."""
    p, q = ((n + 0.5) / (n + 0.5).sum(axis=-1, keepdims=True) for n in (before, now))
    return ((q - p) * np.log(q / p)).sum(axis=-1)
