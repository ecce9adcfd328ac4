"""Reliability curves, and scores and costs over the threshold, as computed and as drawn."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score

from display_examples import DRAWN, MODEL, TEST, Y_TEST, P, labels_of, new_axes
from popf.display import ReliabilityDisplay, ThresholdDisplay
from popf.display.curves import prepare_reliability, prepare_thresholds
from popf.metrics import expected_calibration_error, opf_accuracy_score, threshold_curve


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_the_reliability_curve_is_the_mean_and_the_frequency_of_each_bin(strategy):
    curve = prepare_reliability(Y_TEST, P, n_bins=7, strategy=strategy)
    happened = Y_TEST == "stolen"
    assert curve.weights.sum() == len(P)
    gaps = np.abs(curve.frequency - curve.probability) * curve.weights / len(P)
    settings = {"n_bins": 7, "strategy": strategy, "kind": "binary"}
    expected = expected_calibration_error(Y_TEST, P, **settings)
    assert curve.error == expected
    assert gaps.sum() == pytest.approx(expected)
    if strategy == "uniform":
        for k in range(7):
            inside = np.ceil(P * 7) == k + 1
            if inside.any():
                (place,) = np.flatnonzero(np.isclose(curve.probability, P[inside].mean()))
                assert curve.frequency[place] == pytest.approx(happened[inside].mean())


def test_a_weight_counts_as_so_many_samples_and_zero_as_none():
    repeated = prepare_reliability([1, 1, 0, 0], [0.8, 0.8, 0.3, 0.2])
    weighted = prepare_reliability([1, 0, 0, 1], [0.8, 0.3, 0.2, 0.1], sample_weight=[2, 1, 1, 0])
    assert np.array_equal(weighted.frequency, repeated.frequency)
    assert np.array_equal(weighted.shares, repeated.shares)
    # Equal weights say nothing about how many samples there are.
    heavy = prepare_reliability(Y_TEST, P, sample_weight=np.full(len(P), 7.0))
    plain = prepare_reliability(Y_TEST, P)
    assert heavy.lower == pytest.approx(plain.lower)


def test_the_picture_shows_the_curve_the_band_and_the_histogram():
    display = ReliabilityDisplay.from_predictions(Y_TEST, P, name="ours", ax=new_axes())
    curve = prepare_reliability(Y_TEST, P)
    assert np.array_equal(display.line_.get_xdata(), curve.probability)
    assert np.array_equal(display.line_.get_ydata(), curve.frequency)
    corners = display.band_.get_paths()[0].vertices
    for edge in (curve.lower, curve.upper):
        for point in zip(curve.probability, edge, strict=True):
            assert np.isclose(corners, point).all(axis=1).any()
    shares = display.histogram_ax_.patches[0].get_data().values
    assert shares == pytest.approx(np.histogram(P, np.linspace(0, 1, 21))[0] / len(P))
    assert labels_of(display.ax_.get_legend()) == [
        f"ours (ECE {curve.error:.3f})",
        "95 % interval (Wilson)",
        "perfectly calibrated",
    ]
    assert display.ax_.get_ylabel() == "Frequency of stolen"
    assert display.histogram_ax_.get_xlabel() == "Probability of stolen"


def test_several_curves_share_axes_histogram_and_legend_and_differ_in_more_than_colour():
    first = ReliabilityDisplay.from_estimator(MODEL, TEST, Y_TEST, name="one", ax=new_axes())
    second = ReliabilityDisplay.from_predictions(Y_TEST, P**2, name="two", ax=first.ax_)
    assert second.histogram_ax_ is first.histogram_ax_
    assert len(first.figure_.axes) == 2
    one, two = first.line_, second.line_
    assert one.get_color() != two.get_color()
    assert one.get_linestyle() != two.get_linestyle()
    assert one.get_marker() != two.get_marker()
    words = labels_of(first.ax_.get_legend())
    assert [word.split()[0] for word in words] == ["one", "two", "95", "perfectly"]
    highest = max(first.curve.shares.max(), second.curve.shares.max())
    assert first.histogram_ax_.get_ylim()[1] > highest


def test_the_histogram_finds_its_place_in_a_grid_by_hand_and_not_at_all():
    figure = Figure(layout="constrained")
    for ax in (*figure.subplots(1, 2), figure.add_axes((0.1, 0.1, 0.3, 0.3))):
        display = ReliabilityDisplay.from_predictions(Y_TEST, P, ax=ax)
        figure.canvas.draw()
        above, below = ax.get_position(), display.histogram_ax_.get_position()
        assert below.y1 <= above.y0
        assert below.x0 == pytest.approx(above.x0, abs=1e-3)
        assert below.x1 == pytest.approx(above.x1, abs=1e-3)
    bare = ReliabilityDisplay(curve=prepare_reliability(Y_TEST, P)).plot(
        ax=new_axes(), histogram=False, color="black", lw=3
    )
    assert bare.histogram_ax_ is None
    assert (bare.line_.get_color(), bare.line_.get_linewidth()) == ("black", 3)
    assert bare.ax_.get_xlabel() == "Probability"


def test_one_of_many_classes_is_drawn_against_the_others():
    data = load_iris()
    model = LogisticRegression(max_iter=1000).fit(data.data, data.target)
    display = ReliabilityDisplay.from_estimator(
        model, data.data, data.target, pos_label=2, ax=new_axes()
    )
    expected = prepare_reliability(data.target == 2, model.predict_proba(data.data)[:, 2])
    assert np.array_equal(display.curve.frequency, expected.frequency)
    with pytest.raises(ValueError, match="has 3 classes"):
        ReliabilityDisplay.from_estimator(model, data.data, data.target)
    with pytest.raises(ValueError, match="which one is positive is not clear"):
        prepare_reliability(data.target, model.predict_proba(data.data)[:, 2])


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
    assert words == ["NM", "OPF", "± 1 standard deviation, 6 runs"]


def test_one_kind_of_value_names_the_axis_and_values_that_do_not_fit_are_named():
    display = ThresholdDisplay(thresholds=[0.5], values={"accuracy": [0.6]}).plot(ax=new_axes())
    assert display.ax_.get_ylabel() == "Accuracy"
    with pytest.raises(ValueError, match=r"'NM' has the shape \(1,\); its last dim"):
        ThresholdDisplay(thresholds=[0.1, 0.2], values={"NM": [0.5]})
