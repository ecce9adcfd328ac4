"""How good probabilities and labels are, with intervals from the bootstrap."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.metrics import expected_calibration_error, opf_accuracy_score

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
#: Bootstrap samples behind an interval, and how many cells they may take together.
RESAMPLES = 200
_CELLS = 100_000_000
LEAST = 1e-15  # what a probability of 0 counts as in the log loss


def evaluate(
    codes: IntArray,
    probability: FloatArray,
    called: IntArray,
    *,
    positive: int = 1,
    seed: int = 0,
) -> dict[str, Any]:
    """Measure probabilities and labels against the truth.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,)
        True classes, as columns of `probability`.
    probability : ndarray of shape (n_rows, n_classes)
    called : ndarray of shape (n_rows,)
        The labels that were given.
    positive : int, default=1
        The positive class, of two.
    seed : int, default=0
        Of the bootstrap.

    Returns
    -------
    dict
        ``n_rows``; ``measures``, by name a dict of ``value``, ``low`` and ``high`` (95 %; None where there
        is no interval): ``log_loss``, ``brier``, ``ece``, ``auc`` (with many classes the mean of each
        against the rest), ``accuracy``, ``opf_accuracy``, and for two classes ``precision``, ``recall``
        and ``false_alarm_rate``; ``confusion``, a list of rows, the true class first.

    Notes
    -----
    The Brier score is the mean of (1 - P of the true class)², plus, with three classes and more, the squares
    of the others: for two classes scikit-learn's `brier_score_loss`. A measure is None where it is not
    defined, as the area under the curve is when only one class occurs.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.metrics.evaluation import evaluate
    >>> p = np.array([0.1, 0.2, 0.7, 0.9])
    >>> found = evaluate(np.array([0, 0, 1, 1]), np.column_stack([1 - p, p]), np.array([0, 0, 1, 1]))
    >>> found["confusion"], round(found["measures"]["brier"]["value"], 4)
    ([[2, 0], [0, 2]], 0.0375)
    """
    n_rows, n_classes = probability.shape
    measures = _measures(codes, probability, called, positive)
    values = {name: measure(np.ones(n_rows)) for name, measure in measures.items()}
    intervals = _intervals(measures, n_rows, seed)
    confusion = np.zeros((n_classes, n_classes), dtype=np.int64)
    np.add.at(confusion, (codes, called), 1)
    return {
        "n_rows": n_rows,
        "measures": {
            name: {"value": value, "low": intervals[name][0], "high": intervals[name][1]}
            for name, value in values.items()
        },
        "confusion": confusion.tolist(),
    }


Measure = Callable[[FloatArray], float | None]


def _measures(
    codes: IntArray, probability: FloatArray, called: IntArray, positive: int
) -> dict[str, Measure]:
    """Give every measure as a function of the weights of the rows."""
    n_rows, n_classes = probability.shape
    of_truth = probability[np.arange(n_rows), codes]
    losses = -np.log(np.maximum(of_truth, LEAST))
    squares = (probability**2).sum(axis=1) - 2.0 * of_truth + 1.0
    squares = squares / 2.0 if n_classes == 2 else squares
    right = (codes == called).astype(np.float64)
    classes = np.arange(n_classes)

    def mean(of: FloatArray) -> Measure:
        return lambda weights: float(weights @ of / weights.sum())

    def ece(weights: FloatArray) -> float:
        kind: Any = "binary" if n_classes == 2 else "confidence"
        pos: Any = positive if n_classes == 2 else None
        return expected_calibration_error(
            codes, probability, kind=kind, pos_label=pos, labels=classes, sample_weight=weights
        )

    def opf_accuracy(weights: FloatArray) -> float:
        return opf_accuracy_score(codes, called, sample_weight=weights)

    columns = [positive] if n_classes == 2 else list(range(n_classes))
    curves = [_area(codes == column, probability[:, column]) for column in columns]

    def auc(weights: FloatArray) -> float | None:
        areas = [curve(weights) for curve in curves]
        present = [area for area in areas if area is not None]
        return float(np.mean(present)) if present else None

    found: dict[str, Measure] = {
        "log_loss": mean(losses),
        "brier": mean(squares),
        "ece": ece,
        "auc": auc,
        "accuracy": mean(right),
        "opf_accuracy": opf_accuracy,
    }
    if n_classes == 2:
        truth, alarm = codes == positive, called == positive
        found["precision"] = _share(truth & alarm, alarm)
        found["recall"] = _share(truth & alarm, truth)
        found["false_alarm_rate"] = _share(~truth & alarm, ~truth)
    return found


def _share(part: NDArray[np.bool_], whole: NDArray[np.bool_]) -> Measure:
    """Give the weight of a part in the whole, None where the whole has none."""

    def share(weights: FloatArray) -> float | None:
        total = float(weights @ whole)
        return float(weights @ part) / total if total > 0.0 else None

    return share


def _area(truth: NDArray[np.bool_], score: FloatArray) -> Measure:
    """Give the area under the ROC curve: how often a positive row scores higher than a negative one."""
    order = np.argsort(score, kind="stable")
    positive = truth[order]
    ordered = score[order]
    # Rows of equal scores form a group; half of the pairs within it count.
    group = np.concatenate([[0], np.cumsum(ordered[1:] != ordered[:-1])])

    def area(weights: FloatArray) -> float | None:
        mass = weights[order]
        up = np.bincount(group, mass * positive)
        down = np.bincount(group, mass * ~positive)
        total = up.sum() * down.sum()
        if total <= 0.0:
            return None
        below = np.cumsum(down) - down
        return float((up * (below + down / 2.0)).sum() / total)

    return area


def _intervals(
    measures: dict[str, Measure], n_rows: int, seed: int
) -> dict[str, tuple[float | None, float | None]]:
    """Take 95 % intervals over bootstrap samples of the rows, fewer of them where there are many rows."""
    rng = np.random.default_rng(seed)
    n_samples = int(np.clip(_CELLS // max(1, n_rows), 50, RESAMPLES))
    drawn: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(n_samples):
        rows = rng.integers(n_rows, size=n_rows)
        weights = np.bincount(rows, minlength=n_rows).astype(np.float64)
        for name, measure in measures.items():
            value = measure(weights)
            if value is not None:
                drawn[name].append(value)
    found: dict[str, tuple[float | None, float | None]] = {}
    for name, values in drawn.items():
        if len(values) < 0.9 * n_samples:
            found[name] = (None, None)
        else:
            low, high = np.quantile(values, [0.025, 0.975])
            found[name] = (float(low), float(high))
    return found
