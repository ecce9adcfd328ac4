"""Who gives probabilities: popf's methods and their rivals.

Every contestant is made for one training set, because grids depend on its size. Those that are tuned
are tuned on the training set alone, by the log loss of the calibrated probabilities: what is scored later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from popf import POPFClassifier

SOFT, MAPPED, SVM, PRIOR = "popf soft", "popf soft + map", "SVC + Platt", "class prior"
MULTINOMIAL, PAPER = "popf soft, multinomial", "popf paper"
PLATT, PLATT_MAPPED = "popf soft, a = 1", "popf soft + map, a = 1"
N_FOLDS = 3
GAUSSIAN_PROCESS_LIMIT = 250


@dataclass(frozen=True)
class Task:
    """What a contestant may know before it is made.

    Attributes
    ----------
    n_samples, n_features, n_classes : int
        The size of the training set.
    seed : int
        For everything that is drawn.
    """

    n_samples: int
    n_features: int
    n_classes: int
    seed: int


def contestants(task: Task) -> dict[str, Any]:
    """Make everyone who takes part in `task`, unfitted, by name."""
    made = {name: make(task) for name, make in MAKERS.items()}
    return {name: estimator for name, estimator in made.items() if estimator is not None}


def _multinomial(task: Task) -> Any:
    if task.n_classes == 2:  # the same as soft
        return None
    return POPFClassifier(calibration="multinomial", random_state=task.seed, n_jobs=1)


def _paper(task: Task) -> Any:
    if task.n_classes > 2:
        return None
    return POPFClassifier("paper", solver="nelder-mead", random_state=task.seed, n_jobs=1)


def _tuned(estimator: Any, grid: dict[str, list[Any]], seed: int) -> GridSearchCV:
    """Calibrate by Platt's sigmoid on left-out scores, and choose parameters by the log loss."""
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
    calibrated = CalibratedClassifierCV(estimator, cv=folds, ensemble=False)
    named = {f"estimator__{name}": values for name, values in grid.items()}
    return GridSearchCV(calibrated, named, scoring="neg_log_loss", cv=folds)


def _svc(task: Task) -> Any:
    # On standardised data 1 / d is what scikit-learn calls "scale".
    gammas = [factor / task.n_features for factor in (0.1, 0.5, 2.0, 10.0)]
    return _tuned(SVC(), {"C": [0.1, 1.0, 10.0, 100.0], "gamma": gammas}, task.seed)


def _neighbours(task: Task) -> Any:
    # Tuning and calibrating take a fold away each, and k samples must be left.
    most = int(task.n_samples * (1.0 - 1.0 / N_FOLDS) ** 2) - 1
    numbers = [k for k in (1, 3, 5, 9, 15, 25, 41) if k <= most]
    return _tuned(KNeighborsClassifier(), {"n_neighbors": numbers}, task.seed)


def _gaussian_process(task: Task) -> Any:
    if task.n_samples > GAUSSIAN_PROCESS_LIMIT:  # time grows with the cube
        return None
    start = float(np.sqrt(task.n_features))
    kernel = ConstantKernel(1.0) * RBF(start, (1e-2 * start, 1e3 * start))
    return GaussianProcessClassifier(kernel, random_state=task.seed)


# A further method of popf is one more line here; what it is compared with stays the same.
MAKERS: dict[str, Callable[[Task], Any]] = {
    SOFT: lambda task: POPFClassifier(random_state=task.seed, n_jobs=1),
    MAPPED: lambda task: POPFClassifier(linear_map="auto", random_state=task.seed, n_jobs=1),
    # The targets of Platt, beside those of Jeffreys.
    PLATT: lambda task: POPFClassifier(smoothing=1.0, random_state=task.seed, n_jobs=1),
    PLATT_MAPPED: lambda task: POPFClassifier(
        linear_map="auto", smoothing=1.0, random_state=task.seed, n_jobs=1
    ),
    MULTINOMIAL: _multinomial,
    PAPER: _paper,
    SVM: _svc,
    "random forest": lambda task: RandomForestClassifier(300, random_state=task.seed),
    # As it comes: with smaller leaves it can split sets of less than 40 too, and scores worse for it.
    "gradient boosting": lambda task: HistGradientBoostingClassifier(random_state=task.seed),
    "logistic regression": lambda task: LogisticRegression(max_iter=1000),
    "Gaussian process": _gaussian_process,
    "k neighbours + Platt": _neighbours,
    PRIOR: lambda task: DummyClassifier(strategy="prior"),
}
