"""Measure one run: a dataset, a training size, a seed, and some contestants."""

import time
import warnings

import numpy as np
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from popf.metrics import expected_calibration_error

from .contestants import CONTESTANTS, Task
from .frame_contestants import FRAME_CONTESTANTS
from .frames import columns_of

# For each measure, whether lower is better.
MEASURES = {"log loss": True, "Brier": True, "ECE": True, "AUC": False, "balanced accuracy": False}
SHARE = 0.25  # for training, if no size is given
MOST_OF_FRAME = 500  # rows of a frame for training, if no size is given
# If a size is given, skip datasets with too few test samples, or too few samples of a class for nested folds.
LARGEST = 0.75
FEWEST = 10
MOST_TESTED = 5_000
N_BINS = 10


def measure(dataset, size, seed, names):
    """Fit and score the contestants `names` on one split.

    `size` is the number of training samples, None for a quarter of the dataset, of frames at most 500 rows.
    Returns None if the dataset is too small for it. Scores are by contestant; ``failed`` has errors, ``absent``
    contestants that were skipped.
    """
    frame = dataset.group == "frames"
    X, y = dataset.load(seed, None if size is None else size + MOST_TESTED)
    if size is not None:
        rarest = size * np.bincount(y).min() / len(y)
        if size > LARGEST * len(y) or rarest < FEWEST:
            return None
    n_train = size or int(SHARE * len(y))
    n_test = len(y) - n_train
    if frame and size is None:
        n_train = min(n_train, MOST_OF_FRAME)
    X_train, X_test, y_train, y_test = train_test_split(
        X,
        y,
        train_size=n_train,
        test_size=n_test if size is None and not frame else min(n_test, MOST_TESTED),
        stratify=y,
        random_state=seed,
    )
    if not frame:
        scaler = StandardScaler().fit(X_train)
        X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
    classes = np.unique(y_train)
    columns = columns_of(X) if frame else None
    task = Task(len(y_train), X.shape[1], len(classes), seed, columns)
    run = {
        "dataset": dataset.name,
        "group": dataset.group,
        "size": size,
        "seed": seed,
        "n_train": len(y_train),
        "n_test": len(y_test),
        "n_features": X.shape[1],
        "n_classes": len(classes),
        "scores": {},
        "failed": {},
        "absent": {},
    }
    for name in names:
        try:
            estimator = contestants_for(dataset)[name](task)
            if estimator is None:
                run["absent"][name] = "not made for such data"
                continue
            probability, costs = answer(estimator, X_train, y_train, X_test)
            run["scores"][name] = {**score(y_test, probability, classes), **costs}
        except ImportError as error:
            run["absent"][name] = f"not installed: {error}"
        except Exception as error:  # a failure must not end the run of the others
            run["failed"][name] = f"{type(error).__name__}: {error}"
    return run


def contestants_for(dataset):
    """Return the contestants that can be run on a dataset, by name."""
    return FRAME_CONTESTANTS if dataset.group == "frames" else CONTESTANTS


def answer(estimator, X, y, new):
    """Return the probabilities of `new`, and the times of fit and prediction, on one thread.

    These are times of the processor, so that other work on the machine hardly changes them.
    """
    with warnings.catch_warnings(record=True), threadpool_limits(1):
        warnings.simplefilter("always")
        start = time.process_time()
        estimator.fit(X, y)
        fitted = time.process_time()
        probability = np.asarray(estimator.predict_proba(new))
        return probability, {"fit": fitted - start, "predict": time.process_time() - fitted}


def score(y, probability, classes):
    """Score probabilities, one column per class.

    The Brier score is half the squared distance to the one-hot true class: the usual one for two classes. For
    more classes the AUC is the mean over each class against the rest, the ECE that of the most probable class.
    ``bins`` has, for ten bins of the probability of the positive (or most probable) class, the number of
    samples, the sum of their probabilities, and the number of samples that are of this class.
    """
    if not np.isfinite(probability).all():
        raise ValueError("a probability is not finite")
    binary = len(classes) == 2
    positive = probability[:, 1] if binary else probability
    predicted = classes[probability.argmax(axis=1)]
    p = positive if binary else probability.max(axis=1)
    true = y == classes[1] if binary else y == predicted
    bins = np.minimum((p * N_BINS).astype(int), N_BINS - 1)
    counts = [np.bincount(bins, weights, N_BINS).tolist() for weights in (None, p, true)]
    return {
        "log loss": float(log_loss(y, probability, labels=classes)),
        "Brier": float(0.5 * ((probability - (y[:, None] == classes)) ** 2).sum(axis=1).mean()),
        "ECE": expected_calibration_error(
            y,
            probability,
            n_bins=15,
            kind="binary" if binary else "confidence",
            labels=classes,
        ),
        "AUC": float(roc_auc_score(y, positive, multi_class="ovr", labels=classes)),
        "balanced accuracy": float(balanced_accuracy_score(y, predicted)),
        "bins": [[int(n), round(total, 3), int(h)] for n, total, h in zip(*counts, strict=True)],
    }
