"""Measures and costs over the threshold, as computed and as drawn."""

import numpy as np
import pytest
from sklearn.metrics import precision_score, recall_score

from display_examples import DRAWN, Y_TEST, P, labels_of, new_axes
from popf.display import ThresholdDisplay
from popf.display.curves import prepare_thresholds
from popf.metrics import opf_accuracy_score, threshold_curve


def test_values_over_the_threshold_are_those_of_the_metrics():
    found = prepare_thresholds(Y_TEST, P, thresholds=[0.2, 0.5, 0.65], cost_fp=2, cost_fn=7)
    for k, threshold in enumerate(found.thresholds):
        called = np.where(threshold <= P, "stolen", "honest")
        assert found.values["accuracy"][k] == pytest.approx(np.mean(called == Y_TEST))
        assert found.values["balanced accuracy"][k] == pytest.approx(
            opf_accuracy_score(Y_TEST, called)
        )
        for name, score in {"precision": precision_score, "recall": recall_score}.items():
            assert found.values[name][k] == score(Y_TEST, called, pos_label="stolen")
        alarms = np.sum((called == "stolen") & (Y_TEST == "honest"))
        misses = np.sum((called == "honest") & (Y_TEST == "stolen"))
        assert found.cost[k] == pytest.approx((2 * alarms + 7 * misses) / len(P))
    assert found.chosen == found.thresholds[np.argmin(found.cost)]


def test_precision_is_unknown_where_nothing_is_called_positive():
    found = prepare_thresholds([0, 1], [0.2, 0.4], thresholds=[0.3, 0.9])
    assert found.values["precision"][0] == 1.0
    assert np.isnan(found.values["precision"][1])
    ThresholdDisplay.from_predictions([0, 1], [0.2, 0.4], ax=new_axes())


def test_the_picture_shows_the_values_the_cost_and_the_chosen_threshold():
    display = DRAWN["threshold"](new_axes())
    found = prepare_thresholds(Y_TEST, P, cost_fp=1, cost_fn=5)
    for name, values in {**found.values, "cost": found.cost}.items():
        line = display.lines_[name]
        assert np.array_equal(line.get_xdata(), found.thresholds)
        assert np.array_equal(line.get_ydata(), values, equal_nan=True)
        assert line.axes is (display.cost_ax_ if name == "cost" else display.ax_)
    words = labels_of(display.ax_.get_legend())
    names = ["accuracy", "balanced accuracy", "precision", "recall"]
    assert words == [*names, f"Θ = {found.chosen:.3g}"]
    for panel in (display.ax_, display.cost_ax_):
        assert any(np.all(np.array(line.get_xdata()) == found.chosen) for line in panel.lines)


@pytest.mark.parametrize("chosen", [0.5, None])
def test_without_costs_the_best_balanced_accuracy_is_marked_or_what_was_chosen(chosen):
    display = ThresholdDisplay.from_predictions(Y_TEST, P, chosen=chosen, ax=new_axes())
    marked = chosen or threshold_curve(Y_TEST, P).best_threshold
    assert labels_of(display.ax_.get_legend())[-1] == f"Θ = {marked:.3g}"
    assert display.cost_ax_ is None


def test_runs_are_drawn_as_their_mean_within_one_deviation():
    runs = np.random.default_rng(0).uniform(size=(6, 3))
    runs[0, 1] = np.nan
    runs[:, 2] = np.nan
    display = ThresholdDisplay(
        thresholds=[0.7, 0.2, 0.9], values={"NM": runs, "OPF": [0.6, 0.6, 0.6]}
    ).plot(ax=new_axes())
    line = display.lines_["NM"]
    assert np.array_equal(line.get_xdata(), [0.2, 0.7, 0.9])
    mean = [np.nanmean(runs[:, 1]), np.mean(runs[:, 0])]
    assert line.get_ydata()[:2] == pytest.approx(mean)
    assert np.isnan(line.get_ydata()[2])
    corners = display.bands_["NM"].get_paths()[0].vertices
    top = (0.7, np.mean(runs[:, 0]) + np.std(runs[:, 0], ddof=1))
    assert np.isclose(corners, top).all(axis=1).any()
    assert list(display.bands_) == ["NM"]
    words = labels_of(display.ax_.get_legend())
    assert words == ["NM", "OPF", "± 1 deviation, 6 runs"]


def test_one_kind_of_value_names_the_axis_and_values_that_do_not_fit_are_named():
    display = ThresholdDisplay(thresholds=[0.5], values={"accuracy": [0.6]}).plot(ax=new_axes())
    assert display.ax_.get_ylabel() == "Accuracy"
    with pytest.raises(ValueError, match=r"'NM' has the shape \(1,\); for thresholds"):
        ThresholdDisplay(thresholds=[0.1, 0.2], values={"NM": [0.5]})
