"""The threshold of the least cost, by probabilities of rows that a model has not seen."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from popf.labels import encode
from popf.metrics import threshold_curve
from popf.table_models.model import Layout
from popf.table_models.preparing import fit_weighted

FloatArray = NDArray[np.float64]
Data = tuple[Any, Any, FloatArray | None]
FOLDS = 5
_THRESHOLDS = np.arange(1, 100) / 100


def with_least_cost(
    layout: Layout, model: Any, data: Data, prices: tuple[float, float], seed: int
) -> tuple[Layout, dict[str, float]]:
    """Choose the threshold of the least cost, by cross-validation.

    Parameters
    ----------
    layout : Layout
    model : Pipeline
        Not fitted.
    data : tuple
        Features, labels, and weights (all positive) or None.
    prices : tuple of float
        What a false alarm and a miss cost.
    seed : int

    Returns
    -------
    layout : Layout
        With the threshold.
    costs : dict
        Cost a row at the threshold (``at_threshold``), at 0.5 (``at_half``), and of calling none and all
        positive (``call_none``, ``call_all``).
    """
    _, y, weights = data
    classes, codes = encode(y)
    smallest = int(np.bincount(codes).min())
    if smallest < 2:
        raise ValueError(
            f"costs need two rows of every class, to choose a threshold by cross-validation, and "
            f"{classes[np.bincount(codes).argmin()]!s} has one: give a `threshold`."
        )
    folds = min(FOLDS, smallest)
    probability = _left_out(model, data, folds, seed)[:, layout.positive]
    is_positive = codes == layout.positive
    mass = np.ones(len(y)) if weights is None else weights
    fp, fn = prices
    cost = partial(_cost_a_row, weights=mass, fp=fp, fn=fn)
    # What would be best if the probabilities were exact is tried too.
    tried = np.union1d(_THRESHOLDS, [fp / (fp + fn)])
    curve = threshold_curve(
        is_positive, probability, score=lambda true, called: -cost(true, called), thresholds=tried
    )
    costs = {
        "at_threshold": -curve.best_score,
        "at_half": cost(is_positive, probability >= 0.5),
        "call_none": cost(is_positive, np.zeros(len(y), dtype=bool)),
        "call_all": cost(is_positive, np.ones(len(y), dtype=bool)),
    }
    words = f"least cost over {folds}-fold cross-validated probabilities"
    return replace(layout, threshold=curve.best_threshold, threshold_from=words), costs


def _left_out(model: Any, data: Data, folds: int, seed: int) -> FloatArray:
    """Give every row the probabilities of a model fitted without it."""
    frame, y, weights = data
    probability = np.empty((len(y), len(encode(y)[0])))
    for seen, new in StratifiedKFold(folds, shuffle=True, random_state=seed).split(frame, y):
        mass = None if weights is None else weights[seen]
        one = fit_weighted(clone(model), frame.iloc[seen], y[seen], mass)
        probability[new] = one.predict_proba(frame.iloc[new])
    return probability


def _cost_a_row(true: Any, called: Any, weights: FloatArray, fp: float, fn: float) -> float:
    true, called = np.asarray(true, dtype=bool), np.asarray(called, dtype=bool)
    total = fp * weights[~true & called].sum() + fn * weights[true & ~called].sum()
    return float(total / weights.sum())
