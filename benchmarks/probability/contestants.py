"""The classifiers: popf's methods and their rivals.

A contestant is a function of a `Task`, because parameter grids depend on the size of the training set. It
returns an unfitted estimator, or None if it is not suited to such data, and raises ImportError if its library
is missing. Tuned contestants are tuned on the training set alone, by cross-validated log loss.
"""

from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from popf import PlattOPFClassifier, POPFClassifier
from popf.probability.held_out import feature_parts
from popf.probability.pooling import fit_pool
from popf.probability.soft_competition import SoftCompetition

OURS, SVM, PRIOR = "popf", "SVC + Platt", "class prior"
N_FOLDS = 3
# Multiples of 1 / d, which on standardised features is scikit-learn's gamma="scale".
WIDTHS = (0.1, 0.5, 2.0, 10.0)


@dataclass(frozen=True)
class Task:
    """What a contestant may depend on: the size of the training set, and the seed."""

    n_samples: int
    n_features: int
    n_classes: int
    seed: int


def folds(task):
    return StratifiedKFold(N_FOLDS, shuffle=True, random_state=task.seed)


def tuned(task, estimator, grid):
    """Choose parameters by cross-validated log loss."""
    return GridSearchCV(estimator, grid, scoring="neg_log_loss", cv=folds(task))


def platt(task, estimator, grid):
    """Calibrate by Platt scaling of cross-validated scores, and choose parameters by the log loss."""
    calibrated = CalibratedClassifierCV(estimator, cv=folds(task), ensemble=False)
    return tuned(task, calibrated, {f"estimator__{name}": some for name, some in grid.items()})


def popf(task, *arguments, **settings):
    return POPFClassifier(*arguments, n_jobs=1, **settings)


class LessPOPF:
    """P-OPF with one function of its fit replaced, to measure what a part contributes."""

    def __init__(self, model, function, replacement):
        self.model, self.function, self.replacement = model, function, replacement

    def fit(self, X, y):
        with patch(f"popf.probability.{self.function}", self.replacement):
            self.model.fit(X, y)

    def predict_proba(self, X):
        return self.model.predict_proba(X)


def without_pairs(task):
    return less_part(task, "pairs")


def without_trees(task):
    return less_part(task, "trees")


def less_part(task, left_out):
    def parts_but_one(*arguments):
        return tuple(name for name in feature_parts(*arguments) if name != left_out)

    return LessPOPF(popf(task), "fitting.feature_parts", parts_but_one)


def without_forest(task):
    def fit_to_regressions(parts, *rest):
        pool = fit_pool(parts[1:], *rest)
        return pool._replace(weights=np.append(0.0, pool.weights))

    return LessPOPF(popf(task), "fitting.fit_pool", fit_to_regressions)


def without_costs(task):
    def at_no_cost(samples, codes, costs, *rest):
        return SoftCompetition(samples, codes, np.zeros_like(costs), *rest)

    model = popf(task, "forest")
    return LessPOPF(model, "soft_competition.SoftCompetition", at_no_cost)


def paper(task):
    if task.n_classes > 2:  # the paper's method is for two
        return None
    return PlattOPFClassifier("nelder-mead", n_jobs=1)


def svc(task):
    gammas = [width / task.n_features for width in WIDTHS]
    return platt(task, SVC(), {"C": [0.1, 1.0, 10.0, 100.0], "gamma": gammas})


def neighbours(task):
    # Tuning and calibration each hold out a fold, and at least k samples must be left.
    most = int(task.n_samples * (1.0 - 1.0 / N_FOLDS) ** 2) - 1
    numbers = [k for k in (1, 3, 5, 9, 15, 25, 41) if k <= most]
    return platt(task, KNeighborsClassifier(), {"n_neighbors": numbers})


def gaussian_process(task):
    if task.n_samples > 250:  # time is cubic in the number of samples
        return None
    return gaussian_process_with(task, 1)


def gaussian_process_by_feature(task):
    if task.n_samples > 250 or task.n_features > 60:  # the gradient is n × n × d
        return None
    return gaussian_process_with(task, task.n_features)


def gaussian_process_with(task, n_scales):
    start = float(np.sqrt(task.n_features))
    kernel = ConstantKernel(1.0) * RBF(np.full(n_scales, start), (1e-2 * start, 1e3 * start))
    return GaussianProcessClassifier(kernel, n_restarts_optimizer=2, random_state=task.seed)


def kernel_logistic(task):
    # With as many components as samples the Nyström approximation is exact.
    kernel = Nystroem(n_components=min(500, task.n_samples), random_state=task.seed)
    model = make_pipeline(kernel, LogisticRegression(max_iter=1000))
    gammas = [width / task.n_features for width in (0.02, *WIDTHS)]
    grid = {"nystroem__gamma": gammas, "logisticregression__C": [0.1, 1.0, 10.0, 100.0]}
    return tuned(task, model, grid)


def boosting_tuned(task):
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(n_jobs=1, random_state=task.seed, verbose=-1, subsample_freq=1)
    grid = {
        "n_estimators": [50, 200],
        "learning_rate": [0.02, 0.1],
        "num_leaves": [4, 15],
        "min_child_samples": [5, 20],
        "subsample": [0.8],
    }
    return tuned(task, model, grid)


class EarlyStopping:
    """LightGBM with the size of trees and the number of rounds that are best on a fifth of the samples."""

    def __init__(self, task):
        self.task = task

    def fit(self, X, y):
        from lightgbm import LGBMClassifier, early_stopping

        settings = {"n_jobs": 1, "random_state": self.task.seed, "verbose": -1, "subsample": 0.8}
        settings |= {"subsample_freq": 1, "colsample_bytree": 0.8, "learning_rate": 0.05}
        X_fit, X_new, y_fit, y_new = train_test_split(
            X, y, test_size=0.2, stratify=y, random_state=self.task.seed
        )
        found = []
        for n_leaves in (7, 15, 63):
            model = LGBMClassifier(n_estimators=2000, num_leaves=n_leaves, **settings)
            model.fit(X_fit, y_fit, eval_X=X_new, eval_y=y_new,
                      callbacks=[early_stopping(50, verbose=False)])  # fmt: skip
            loss = log_loss(y_new, model.predict_proba(X_new))
            found.append((loss, n_leaves, model.best_iteration_))
        _, n_leaves, n_rounds = min(found)
        self.model = LGBMClassifier(n_estimators=n_rounds, num_leaves=n_leaves, **settings)
        self.model.fit(X, y)

    def predict_proba(self, X):
        return self.model.predict_proba(X)


def catboost(task):
    from catboost import CatBoostClassifier

    quiet = {"verbose": False, "allow_writing_files": False}
    return CatBoostClassifier(thread_count=1, random_seed=task.seed, **quiet)


CONTESTANTS = {
    OURS: popf,
    "popf, forest alone": lambda task: popf(task, "forest"),
    "popf paper": paper,
    SVM: svc,
    "kernel logistic, tuned": kernel_logistic,
    "Gaussian process": gaussian_process,
    "Gaussian process by feature": gaussian_process_by_feature,
    "CatBoost": catboost,
    "LightGBM, tuned": boosting_tuned,
    "gradient boosting": lambda task: HistGradientBoostingClassifier(random_state=task.seed),
    "random forest": lambda task: RandomForestClassifier(300, random_state=task.seed),
    "logistic regression": lambda task: LogisticRegression(max_iter=1000),
    "k neighbours + Platt": neighbours,
    PRIOR: lambda task: DummyClassifier(strategy="prior"),
}
# Contestants that run only if they are named.
LESS = {
    "LightGBM, early stopping": EarlyStopping,
    "popf without pairs": without_pairs,
    "popf without trees": without_trees,
    "popf without the forest": without_forest,
    "popf, forest alone, no costs": without_costs,
}
