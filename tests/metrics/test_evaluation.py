"""All figures together: they are scikit-learn's and popf's, and their intervals hold."""

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    brier_score_loss,
    confusion_matrix,
    log_loss,
    precision_score,
    recall_score,
    roc_auc_score,
)

from popf.metrics import evaluate, expected_calibration_error, opf_accuracy_score
from popf.metrics.evaluation import chance_calibration_error


def forecasts(n, rng, sharpness=1.0):
    """Draw exact probabilities of two classes, and what happens; sharpened, they are overconfident."""
    chance = rng.beta(0.6, 2.0, n)
    odds = (chance / (1.0 - chance)) ** sharpness
    return (rng.random(n) < chance).astype(int), odds / (1.0 + odds)


@pytest.mark.parametrize("threshold", [0.2, 0.5])
def test_two_classes_are_measured_as_by_scikit_learn_and_popf(threshold):
    codes, p = forecasts(300, np.random.default_rng(0))
    p = p.round(2)  # with ties, and probabilities of 0
    y = np.array(["no", "yes"])[codes]
    called = np.where(p >= threshold, "yes", "no")
    expected = {
        "log_loss": log_loss(codes, p),
        "brier": brier_score_loss(codes, p),
        "ece": expected_calibration_error(codes, p, kind="binary"),
        "auc": roc_auc_score(codes, p),
        "accuracy": accuracy_score(y, called),
        "balanced_accuracy": balanced_accuracy_score(y, called),
        "opf_accuracy": opf_accuracy_score(y, called),
        "precision": precision_score(y, called, pos_label="yes"),
        "recall": recall_score(y, called, pos_label="yes"),
        "false_alarm_rate": np.mean(called[y == "no"] == "yes"),
    }
    found = evaluate(y, p, threshold=threshold)
    assert found.scores.keys() == expected.keys()
    for name, value in expected.items():
        score = found.scores[name]
        assert score.value == pytest.approx(value, abs=1e-12), name
        assert score.lower <= score.value <= score.upper, name
    np.testing.assert_array_equal(found.confusion, confusion_matrix(y, called))
    other = evaluate(y, np.column_stack([p, 1 - p]), labels=["yes", "no"], pos_label="yes", seed=1)
    assert other.scores["auc"].value == found.scores["auc"].value
    assert other.scores["auc"].lower != found.scores["auc"].lower


def test_three_classes_are_measured_as_by_scikit_learn_and_popf():
    rng = np.random.default_rng(0)
    p = rng.integers(1, 6, size=(60, 3)).astype(float)  # ties count half in the area
    p /= p.sum(axis=1, keepdims=True)
    y, called = rng.integers(3, size=60), p.argmax(axis=1)
    found = evaluate(y, p, intervals=False)
    expected = {
        "log_loss": log_loss(y, p),
        "brier": np.mean(((np.eye(3)[y] - p) ** 2).sum(axis=1)),
        "ece": expected_calibration_error(y, p),
        "auc": roc_auc_score(y, p, multi_class="ovr"),
        "accuracy": accuracy_score(y, called),
        "balanced_accuracy": balanced_accuracy_score(y, called),
        "opf_accuracy": opf_accuracy_score(y, called),
    }
    assert {name: score.value for name, score in found.scores.items()} == pytest.approx(expected)
    assert all(np.isnan(score.lower) for score in found.scores.values())
    by_class = {"average": None, "labels": range(3)}
    assert found.precision_by_class == pytest.approx(precision_score(y, called, **by_class))
    assert found.recall_by_class == pytest.approx(recall_score(y, called, **by_class))


def test_scores_of_a_single_class_are_undefined_where_they_need_both():
    found = evaluate([0, 0, 0], [0.1, 0.2, 0.7], labels=[0, 1]).scores
    for name in ("auc", "recall"):
        assert np.isnan(found[name]).all()
    assert found["precision"].value == 0.0
    assert found["accuracy"].value == pytest.approx(2 / 3)
    # Resamples without the one positive sample have no area: too many for an interval.
    rare = evaluate([0, 0, 0, 1], [0.1, 0.2, 0.7, 0.8]).scores["auc"]
    assert rare.value == 1.0
    assert np.isnan(rare.lower)


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(5)
    codes, p = forecasts(200_000, rng, sharpness=2.0)
    truth = {name: s.value for name, s in evaluate(codes, p, intervals=False).scores.items()}
    inside = dict.fromkeys(("brier", "log_loss", "auc", "ece", "accuracy"), 0)
    for seed in range(30):
        found = evaluate(*forecasts(400, rng, sharpness=2.0), seed=seed).scores
        for name in inside:
            inside[name] += found[name].lower <= truth[name] <= found[name].upper
    assert all(25 <= n <= 30 for n in inside.values()), inside


def test_intervals_draw_whole_groups():
    # Twelve months of a consumer tell no more than one: intervals must not be narrower by it.
    y, p = forecasts(300, np.random.default_rng(3))
    once, months = evaluate(y, p).scores, (np.tile(y, 12), np.tile(p, 12))
    who = np.tile([f"C{i}" for i in range(300)], 12)
    for name, score in evaluate(*months, groups=who).scores.items():
        other = once[name]
        assert score.value == pytest.approx(other.value), name
        assert score.upper - score.lower == pytest.approx(other.upper - other.lower, rel=0.2), name
    apart = evaluate(*months).scores["log_loss"]
    width = once["log_loss"].upper - once["log_loss"].lower
    assert apart.upper - apart.lower == pytest.approx(width / 12**0.5, rel=0.2)
    alone = evaluate(y, p, groups=np.zeros(300, int)).scores["log_loss"]
    assert alone.value == once["log_loss"].value
    assert np.isnan(alone.lower)
    with pytest.raises(
        ValueError, match=r"groups has the shape \(299,\), but there are 300 samples"
    ):
        evaluate(y, p, groups=who[:299])
    with pytest.raises(ValueError, match=r"groups\[299\] is missing"):
        evaluate(y, p, groups=[*range(299), None])


def test_the_interval_of_the_calibration_error_holds_it_and_reaches_down_to_calibration():
    rng = np.random.default_rng(1)
    found = [evaluate(*forecasts(300, rng), seed=seed).scores["ece"] for seed in range(10)]
    assert all(0 <= score.lower <= score.value < score.upper for score in found)
    lower, value = np.mean([score.lower for score in found]), np.mean([s.value for s in found])
    assert lower < 0.4 * value


def test_chance_explains_the_error_of_exact_probabilities_and_not_of_bad_ones():
    rng = np.random.default_rng(2)
    for sharpness, explained in ((1.0, True), (3.0, False)):
        y, p = forecasts(4000, rng, sharpness)
        error = evaluate(y, p, intervals=False).scores["ece"].value
        assert (error < 1.3 * chance_calibration_error(p)) == explained
        assert (error > 2.0 * chance_calibration_error(p)) == (not explained)
    together = chance_calibration_error(np.tile(p, 9), groups=np.tile(np.arange(4000), 9))
    assert together == pytest.approx(chance_calibration_error(p), rel=0.1)


def test_periods_are_evaluated_by_themselves_too():
    y, p = forecasts(200, np.random.default_rng(0))
    month, consumer = np.arange(200) % 3 + 1, np.arange(200) // 4
    found = evaluate(y, p, periods=month, groups=consumer, threshold=0.3)
    assert found.scores == evaluate(y, p, groups=consumer, threshold=0.3).scores
    assert found.promised == pytest.approx([(1.0 - p).sum(), p.sum()])
    assert list(found.by_period) == [1, 2, 3]
    for name, one in found.by_period.items():
        some = month == name
        alone = evaluate(y[some], p[some], groups=consumer[some], threshold=0.3)
        assert one.scores == alone.scores
        assert one.confusion.tolist() == alone.confusion.tolist()
    assert sum(one.promised for one in found.by_period.values()) == pytest.approx(found.promised)
    # A period may be without one of the classes.
    alone = evaluate(["a", "a", "b"], [0.1, 0.2, 0.3], periods=["x", "x", "y"], pos_label="b")
    assert np.isnan(alone.by_period["x"].scores["auc"].value)
    assert alone.by_period["x"].confusion.tolist() == [[2, 0], [0, 0]]
    with pytest.raises(ValueError, match=r"periods has the shape \(2,\), but there are 200"):
        evaluate(y, p, periods=[1, 2])
    with pytest.raises(ValueError, match=r"periods\[1\] is missing: give every sample a period"):
        evaluate([0, 1], [0.1, 0.2], periods=[1.0, np.nan])
