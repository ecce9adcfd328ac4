"""The measures together: what is refused."""

import numpy as np
import pytest

from popf.metrics import (
    average_precision_at,
    expected_calibration_error,
    lift_curve,
    opf_accuracy_score,
    precision_at,
    threshold_curve,
)
from refusals import refused

Y, P = [0, 1, 1], [0.2, 0.7, 0.9]
T3 = np.full((3, 3), 1 / 3)
BAD = {
    # accuracy
    "lengths": (lambda: opf_accuracy_score(Y, [0, 1]), ["3 samples", "y_pred has 2"]),
    "empty": (lambda: opf_accuracy_score([], []), ["y_true is empty", "at least one"]),
    "probability for label": (lambda: opf_accuracy_score(Y, P), ["y_pred", "0.2", ">= 0.5"]),
    "NaN label": (lambda: opf_accuracy_score([0, np.nan], [0, 1]), ["nan at row 1", "drop"]),
    "mixed labels": (lambda: opf_accuracy_score(["a", 1], [0, 1]), ["strings and numbers"]),
    "missing": (lambda: opf_accuracy_score(["a", None], ["a", "b"]), ["None at row 1", "drop"]),
    "strings and numbers": (lambda: opf_accuracy_score(["a"], [1]), ["'a'", "1", "one type"]),
    "lists": (lambda: opf_accuracy_score([[1], [1, 2]], [1, 2]), ["[1]", "integers"]),
    "dates": (lambda: opf_accuracy_score(np.array(["2020"], "M8"), [1]), ["date", "strings"]),
    "many labels a sample": (lambda: opf_accuracy_score(T3 > 0, Y), ["(3, 3)", "1d array"]),
    "negative weight": (
        lambda: opf_accuracy_score(Y, Y, sample_weight=[1, -2, 1]),
        ["-2.0 at row 1", "use 0"],
    ),
    "no weight": (
        lambda: opf_accuracy_score(Y, Y, sample_weight=[0, 0, 0]),
        ["sums to 0.0", "at least one"],
    ),
    "one weight": (lambda: opf_accuracy_score(Y, Y, sample_weight=2.0), ["()", "(3,)"]),
    # calibration error
    "above 1": (
        lambda: expected_calibration_error(Y, [0.2, 1.5, 0.1]),
        ["1.5 at row 1", "predict_proba"],
    ),
    "NaN": (lambda: expected_calibration_error(Y, [0.1, 0.2, np.nan]), ["nan at row 2", "drop"]),
    "row sums": (
        lambda: expected_calibration_error(Y, [[0.5, 0.5], [0.9, 0.9], [1, 0]]),
        ["sums to 1.8", "row 1", "divide"],
    ),
    "one column": (lambda: expected_calibration_error(Y, [[p] for p in P]), ["(3, 1)", "ravel"]),
    "strategy": (
        lambda: expected_calibration_error(Y, P, strategy="kmeans"),
        ["strategy='kmeans'", "'uniform' or 'quantile'"],
    ),
    "kind": (lambda: expected_calibration_error(Y, P, kind="top"), ["kind='top'", "'classwise'"]),
    "no bins": (lambda: expected_calibration_error(Y, P, n_bins=0), ["n_bins is 0", "at least 1"]),
    "more columns than classes": (
        lambda: expected_calibration_error(Y, T3),
        ["2 classes (0, 1)", "3 columns", "labels=classifier.classes_"],
    ),
    "more classes than one column takes": (
        lambda: expected_calibration_error([0, 1, 2], P),
        ["3 classes (0, 1, 2)", "takes 2", "one column for each class"],
    ),
    "labels twice": (lambda: expected_calibration_error(Y, P, labels=[1, 1]), ["[1, 1]", "once"]),
    "strange label": (
        lambda: expected_calibration_error([0, 1, 5], P, labels=[0, 1]),
        ["5", "[0, 1]", "name all"],
    ),
    "binary of three": (
        lambda: expected_calibration_error([0, 1, 2], T3, kind="binary"),
        ["there are 3", 'kind="classwise"'],
    ),
    "positive of three": (
        lambda: expected_calibration_error([0, 1, 2], T3, pos_label=1),
        ["pos_label=1", "leave it None"],
    ),
    "unknown positive": (
        lambda: expected_calibration_error(Y, P, pos_label="yes"),
        ["`pos_label='yes'`", "use one of 0, 1"],
    ),
    # thresholds
    "threshold 0": (lambda: threshold_curve(Y, P, thresholds=[0.0]), ["holds 0.0", "excluded"]),
    "one threshold": (lambda: threshold_curve(Y, P, thresholds=0.5), ["()", "list of numbers"]),
    "word": (lambda: threshold_curve(Y, P, thresholds="some"), ["'some'", "use 'all'"]),
    "three classes": (lambda: threshold_curve([0, 1, 2], P), ["holds 3: 0, 1, 2", "y_true == k"]),
    # rankings
    "k of 0": (lambda: precision_at(Y, P, 0), ["k is 0", "at most 3"]),
    "k beyond": (lambda: average_precision_at(Y, P, 4), ["k is 4", "at most 3"]),
    "many": (lambda: precision_at([0, 1, 2], P, 1), ["3 classes (0, 1, 2)", "pos_label"]),
    "unknown": (lambda: precision_at(Y, P, 1, pos_label="yes"), ["'yes'", "one type"]),
    "columns": (lambda: precision_at(Y, [[0.1, 0.9]] * 3, 1), ["(3, 2)", "[:, 1]"]),
    "scores": (lambda: lift_curve(Y, P[:2]), ["3 samples", "y_score has 2"]),
    "NaN score": (lambda: lift_curve(Y, [0.1, np.nan, 0.2]), ["NaN"]),
    "nothing to find": (lambda: lift_curve([False, False], [0.1, 0.2]), ["no sample is positive"]),
}


@pytest.mark.parametrize(("call", "said"), BAD.values(), ids=BAD)
def test_bad_input_is_named_with_its_remedy(call, said):
    refused(call, *said)


def test_a_score_is_a_function():
    with pytest.raises(TypeError, match="score='f1' is no function"):
        threshold_curve(Y, P, score="f1")
