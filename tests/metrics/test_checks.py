"""The measures together: what is refused."""

import numpy as np
import pytest

from popf.metrics import average_precision_at, lift_curve, precision_at, threshold_curve
from popf.metrics import expected_calibration_error as ece
from popf.metrics import opf_accuracy_score as accuracy
from refusals import refused

Y, P = [0, 1, 1], [0.2, 0.7, 0.9]
T3 = np.full((3, 3), 1 / 3)
BAD = {
    # accuracy
    "lengths": (lambda: accuracy(Y, [0, 1]), "3 samples", "y_pred has 2"),
    "empty": (lambda: accuracy([], []), "y_true is empty", "at least one"),
    "probability for label": (lambda: accuracy(Y, P), "y_pred", "0.2", ">= 0.5"),
    "NaN label": (lambda: accuracy([0, np.nan], [0, 1]), "nan at row 1", "drop"),
    "mixed labels": (lambda: accuracy(["a", 1], [0, 1]), "strings and numbers"),
    "missing": (lambda: accuracy(["a", None], ["a", "b"]), "None at row 1", "drop"),
    "strings and numbers": (lambda: accuracy(["a"], [1]), "'a'", "1", "one type"),
    "lists": (lambda: accuracy([[1], [1, 2]], [1, 2]), "[1]", "integers"),
    "dates": (lambda: accuracy(np.array(["2020"], "M8"), [1]), "date", "strings"),
    "many labels a sample": (lambda: accuracy(T3 > 0, Y), "(3, 3)", "1d array"),
    "negative weight": (
        lambda: accuracy(Y, Y, sample_weight=[1, -2, 1]),
        "Negative",
        "`sample_weight`",
    ),
    "no weight": (lambda: accuracy(Y, Y, sample_weight=[0, 0, 0]), "at least one"),
    "few weights": (lambda: accuracy(Y, Y, sample_weight=[1, 2]), "(2,)", "(3,)"),
    # calibration error
    "above 1": (lambda: ece(Y, [0.2, 1.5, 0.1]), "1.5 at row 1", "predict_proba"),
    "NaN": (lambda: ece(Y, [0.1, 0.2, np.nan]), "nan at row 2", "drop"),
    "row sums": (lambda: ece(Y, [[1, 0], [0.9, 0.9], [1, 0]]), "sums to 1.8", "row 1", "divide"),
    "one column": (lambda: ece(Y, [[p] for p in P]), "(3, 1)", "ravel"),
    "strategy": (lambda: ece(Y, P, strategy="k"), "strategy must be", "uniform, quantile, not 'k'"),
    "kind": (lambda: ece(Y, P, kind="top"), "kind must be", "classwise"),
    "no bins": (lambda: ece(Y, P, n_bins=0), "n_bins is 0", "at least 1"),
    "columns without classes": (
        lambda: ece(Y, T3),
        *("2 classes (0, 1)", "3 columns", "labels=classifier.classes_"),
    ),
    "classes without columns": (
        lambda: ece([0, 1, 2], P),
        *("3 classes (0, 1, 2)", "needs 2", "one column for each class"),
    ),
    "labels twice": (lambda: ece(Y, P, labels=[1, 1]), "[1, 1]", "once"),
    "strange label": (lambda: ece([0, 1, 5], P, labels=[0, 1]), "5", "[0, 1]", "name all"),
    "binary of three": (lambda: ece([0, 1, 2], T3, kind="binary"), "are 3", 'kind="classwise"'),
    "positive of three": (lambda: ece([0, 1, 2], T3, pos_label=1), "pos_label=1", "leave it None"),
    "unknown positive": (lambda: ece(Y, P, pos_label="yes"), "`pos_label='yes'`", "one of 0, 1"),
    # thresholds
    "threshold 0": (lambda: threshold_curve(Y, P, thresholds=[0.0]), "holds 0.0", "excluded"),
    "one threshold": (lambda: threshold_curve(Y, P, thresholds=0.5), "()", "list of numbers"),
    "word": (lambda: threshold_curve(Y, P, thresholds="some"), "'some'", "or 'all'"),
    "three classes": (lambda: threshold_curve([0, 1, 2], P), "holds 3: 0, 1, 2", "y_true == k"),
    # rankings
    "k of 0": (lambda: precision_at(Y, P, 0), "k is 0", "at most 3"),
    "k beyond": (lambda: average_precision_at(Y, P, 4), "k is 4", "at most 3"),
    "many": (lambda: precision_at([0, 1, 2], P, 1), "3 classes (0, 1, 2)", "pos_label"),
    "unknown": (lambda: precision_at(Y, P, 1, pos_label="yes"), "'yes'", "one type"),
    "columns": (lambda: precision_at(Y, [[0.1, 0.9]] * 3, 1), "(3, 2)", "[:, 1]"),
    "scores": (lambda: lift_curve(Y, P[:2]), "3 samples", "y_score has 2"),
    "NaN score": (lambda: lift_curve(Y, [0.1, np.nan, 0.2]), "NaN"),
    "nothing to find": (lambda: lift_curve([False, False], P[:2]), "no sample is positive"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named_with_its_remedy(name):
    refused(*BAD[name])


def test_a_score_is_a_function():
    refused(
        lambda: threshold_curve(Y, P, score="f1"), "score='f1' is not a function", kind=TypeError
    )
