"""The classifiers: popf's methods and their rivals.

A contestant is a function of a `Task`, because parameter grids depend on the size of the training set. It
returns an unfitted estimator, or None if it is not suited to such data, and raises ImportError if its library
is missing. Tuned contestants are tuned on the training set alone, by cross-validated log loss.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from popf import PlattOPFClassifier, POPFClassifier

from .frames import Columns

OURS, SVM, PRIOR = "popf", "SVC + Platt", "class prior"
#: LightGBM tuned by folds: the rival whose fit times ours are compared with.
BOOSTING = "LightGBM, folds"
#: The rivals that are tuned: the best of them on a dataset is what the regret is measured against.
TUNED = (SVM, "kernel logistic, tuned", "LightGBM, tuned", BOOSTING)
N_FOLDS = 3
# Multiples of 1 / d, which on standardised features is scikit-learn's gamma="scale".
WIDTHS = (0.1, 0.5, 2.0, 10.0)


@dataclass(frozen=True)
class Task:
    """What a contestant may depend on: the size of the training set, the seed, and a frame's columns."""

    n_samples: int
    n_features: int
    n_classes: int
    seed: int
    columns: Columns | None = None


def folds(task, n_folds=N_FOLDS):
    return StratifiedKFold(n_folds, shuffle=True, random_state=task.seed)


def tuned(task, estimator, grid):
    """Choose parameters by cross-validated log loss."""
    return GridSearchCV(estimator, grid, scoring="neg_log_loss", cv=folds(task))


def platt(task, estimator, grid):
    """Calibrate by Platt scaling of cross-validated scores, and choose parameters by the log loss."""
    calibrated = CalibratedClassifierCV(estimator, cv=folds(task), ensemble=False)
    return tuned(task, calibrated, {f"estimator__{name}": some for name, some in grid.items()})


def popf(task, **settings):
    return POPFClassifier(n_jobs=1, **settings)


def paper(task):
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


class BoostingByFolds(ClassifierMixin, BaseEstimator):
    """LightGBM with the size of trees and the number of rounds that are best by five folds.

    Every fold stops early. The size of trees with the lowest mean log loss is fitted to all samples, with the
    mean of the numbers of rounds of its folds.
    """

    sizes = ({"num_leaves": 7}, {"num_leaves": 15}, {"num_leaves": 63})

    def __init__(self, task):
        self.task = task
        self.settings = {
            "random_state": task.seed,
            "learning_rate": 0.05,
            "n_jobs": 1,
            "verbose": -1,
        }
        self.settings |= {"subsample": 0.8, "subsample_freq": 1, "colsample_bytree": 0.8}

    def make(self, **settings):
        """Make a model with some settings besides those that are not tuned."""
        from lightgbm import LGBMClassifier

        return LGBMClassifier(**settings, **self.settings)

    def fit(self, X, y):
        splits = list(folds(self.task, 5).split(X, y))
        tried = []
        for i, size in enumerate(self.sizes):
            stopped = [self.stop_early(size, X, y, *split) for split in splits]
            n_rounds, loss = np.mean(stopped, axis=0)
            tried.append((loss, i, max(1, round(n_rounds))))
        _, i, n_rounds = min(tried)
        self.model_ = self.make(n_estimators=n_rounds, **self.sizes[i]).fit(X, y)
        return self

    def stop_early(self, size, X, y, kept, held_out):
        """Return the best number of rounds, and its log loss on the samples held out."""
        from lightgbm import early_stopping

        model = self.make(n_estimators=2000, **size)
        model.fit(X[kept], y[kept], eval_X=X[held_out], eval_y=y[held_out],
                  callbacks=[early_stopping(50, verbose=False)])  # fmt: skip
        (loss,) = model.best_score_["valid_0"].values()
        return model.best_iteration_, loss

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


def catboost(task):
    from catboost import CatBoostClassifier

    quiet = {"verbose": False, "allow_writing_files": False}
    return CatBoostClassifier(thread_count=1, random_seed=task.seed, **quiet)


CONTESTANTS = {
    OURS: popf,
    "popf, forest alone": lambda task: popf(task, method="forest"),
    "popf paper": paper,
    SVM: svc,
    "kernel logistic, tuned": kernel_logistic,
    "Gaussian process": gaussian_process,
    "Gaussian process by feature": gaussian_process_by_feature,
    "CatBoost": catboost,
    "LightGBM, tuned": boosting_tuned,
    BOOSTING: BoostingByFolds,
    "gradient boosting": lambda task: HistGradientBoostingClassifier(random_state=task.seed),
    "random forest": lambda task: RandomForestClassifier(300, random_state=task.seed),
    "logistic regression": lambda task: LogisticRegression(max_iter=1000),
    "k neighbours + Platt": neighbours,
    PRIOR: lambda task: DummyClassifier(strategy="prior"),
}
