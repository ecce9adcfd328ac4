"""One run: a dataset, a seed, every contestant."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from popf.metrics import expected_calibration_error

from .contestants import MAKERS, Task, contestants
from .datasets import Dataset

TRAIN_SHARE = 0.25
# Of each metric, whether less is better.
METRICS = {
    "log loss": True,
    "Brier": True,
    "ECE": True,
    "AUC": False,
    "balanced accuracy": False,
}


def measure(dataset: Dataset, seed: int, only: tuple[str, ...] = ()) -> dict[str, Any]:
    """Fit and score everyone on one split.

    Parameters
    ----------
    dataset : Dataset
        What to split.
    seed : int
        Of the draw, the split and every contestant.
    only : tuple of str
        The names of the contestants; empty for all.

    Returns
    -------
    dict
        ``dataset``, ``kind``, ``seed`` and the sizes; by contestant ``scores`` (metrics, seconds of the fit
        and of the prediction, the number of warnings) or ``failed`` (what went wrong); and ``absent``,
        who is not made for such data.
    """
    X, y = dataset.load(seed)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, train_size=TRAIN_SHARE, stratify=y, random_state=seed
    )
    scaler = StandardScaler().fit(X_train)
    X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
    classes = np.unique(y_train)
    if len(classes) < len(np.unique(y)):
        raise ValueError(f"{dataset.name} is too small: seed {seed} leaves a class untrained.")
    task = Task(len(y_train), X.shape[1], len(classes), seed)
    scores: dict[str, dict[str, float]] = {}
    failed: dict[str, str] = {}
    invited = contestants(task)
    for name, estimator in invited.items():
        if only and name not in only:
            continue
        try:
            probability, costs = _answer(estimator, X_train, y_train, X_test)
            scores[name] = {**score(y_test, probability, classes), **costs}
        except Exception as error:  # one contestant that fails must not cost the others their run
            failed[name] = f"{type(error).__name__}: {error}"
    return {
        "dataset": dataset.name,
        "kind": dataset.kind,
        "seed": seed,
        "n_train": len(y_train),
        "n_test": len(y_test),
        "n_features": X.shape[1],
        "n_classes": len(classes),
        "scores": scores,
        "failed": failed,
        "absent": [name for name in MAKERS if name not in invited],
    }


def _answer(
    estimator: Any, X: NDArray[np.float64], y: NDArray[np.int64], new: NDArray[np.float64]
) -> tuple[NDArray[np.float64], dict[str, float]]:
    """Give the probabilities of `new`; warnings are counted here and go no further."""
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")
        start = time.perf_counter()
        estimator.fit(X, y)
        fitted = time.perf_counter()
        probability = estimator.predict_proba(new)
        done = time.perf_counter()
    costs = {"fit": fitted - start, "predict": done - fitted, "warnings": float(len(caught))}
    return probability, costs


def score(
    y: NDArray[np.int64], probability: NDArray[np.float64], classes: NDArray[np.int64]
) -> dict[str, float]:
    """Measure `probability`, one column a class.

    Brier's score is half the squared distance to the true class's corner, which is the usual one for two
    classes; of three and more classes, the AUC is the mean of each against the rest, and the ECE that of
    the most probable class. The log loss is scikit-learn's, which keeps 0 and 1 apart from certain by 2e-16.
    """
    if not np.isfinite(probability).all():
        raise ValueError("a probability is not finite")
    binary = len(classes) == 2
    corners = y[:, None] == classes
    positive = probability[:, 1] if binary else probability
    return {
        "log loss": float(log_loss(y, probability, labels=classes)),
        "Brier": float(0.5 * ((probability - corners) ** 2).sum(axis=1).mean()),
        "ECE": expected_calibration_error(
            y, probability, kind="binary" if binary else "confidence", labels=classes
        ),
        "AUC": float(roc_auc_score(y, positive, multi_class="ovr", labels=classes)),
        "balanced accuracy": float(balanced_accuracy_score(y, classes[probability.argmax(axis=1)])),
    }
