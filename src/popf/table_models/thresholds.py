"""The threshold on the probability of the positive class that costs least."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from popf.labels import encode
from popf.metrics.thresholds import best_threshold, count_at_thresholds
from popf.table_models.model import Layout
from popf.table_models.preparation import Data, fit_pipeline

FloatArray = NDArray[np.float64]
FOLDS = 5
_THRESHOLDS = np.arange(1, 100) / 100


def with_least_cost(
    layout: Layout,
    model: Any,
    data: Data,
    prices: tuple[float, float],
    seed: int,
    stage: Callable[[str], None],
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
    stage : callable
        Told in words what is being done.

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
    counts = np.bincount(codes)
    if counts.min() < 2:
        raise ValueError(
            f"costs need two rows of every class, to choose a threshold by cross-validation, and "
            f"{classes[counts.argmin()]!s} has one: give a `threshold`."
        )
    folds = min(FOLDS, int(counts.min()))
    probability = _left_out(model, data, folds, seed, stage)[:, layout.positive]
    happened = codes == layout.positive

    def cost(thresholds: Any) -> FloatArray:
        found = count_at_thresholds(happened, probability, np.asarray(thresholds), weights)
        return found.mean_cost(*prices)

    # What would be best if the probabilities were exact is tried too.
    tried = np.union1d(_THRESHOLDS, [prices[0] / sum(prices)])
    best = best_threshold(tried, -cost(tried))
    names = ("at_threshold", "at_half", "call_none", "call_all")
    costs = dict(zip(names, cost([tried[best], 0.5, np.inf, 0.0]).tolist(), strict=True))
    words = f"least cost over {folds}-fold cross-validated probabilities"
    layout = replace(layout, threshold=float(tried[best]), threshold_from=words)
    return replace(layout, cost_fp=prices[0], cost_fn=prices[1]), costs


def _left_out(
    model: Any, data: Data, folds: int, seed: int, stage: Callable[[str], None]
) -> FloatArray:
    """Return every row the probabilities of a model fitted without it."""
    frame, y, weights = data
    probability = np.empty((len(y), len(np.unique(y))))
    splits = StratifiedKFold(folds, shuffle=True, random_state=seed).split(frame, y)
    for fold, (seen, new) in enumerate(splits, start=1):
        stage(f"choosing a threshold, fold {fold} of {folds}")
        mass = None if weights is None else weights[seen]
        one = fit_pipeline(clone(model), (frame.iloc[seen], y[seen], mass))
        probability[new] = one.predict_proba(frame.iloc[new])
    return probability
