"""Displays draw what Python computes, by scikit-learn's conventions for displays."""

import subprocess
import sys

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import precision_score, recall_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

from popf import OPFClassifier, POPFClassifier
from popf.display import (
    ForestDisplay,
    LandscapeDisplay,
    ReliabilityDisplay,
    ThresholdDisplay,
    canvas,
    prepare_forest,
    prepare_landscape,
    prepare_reliability,
    prepare_thresholds,
)
from popf.metrics import expected_calibration_error, opf_accuracy_score, threshold_curve
from popf.solvers import PSO, NelderMead, PlattObjective, platt_targets

X, Y = make_classification(400, n_features=5, weights=[0.7], flip_y=0.1, random_state=0)
NAMES = np.array(["honest", "stolen"])[Y]
MODEL = LogisticRegression().fit(X[::2], NAMES[::2])
TEST, Y_TEST = X[1::2], NAMES[1::2]
P = MODEL.predict_proba(TEST)[:, 1]
MOONS, MOON = make_moons(60, noise=0.2, random_state=0)
FOREST = OPFClassifier().fit(MOONS, MOON)
# A box that does not bind: a fit that it binds warns.
BOX = ((-60.0, 20.0), (-10.0, 10.0))
PAPER = POPFClassifier("paper", box=BOX).fit(MOONS, MOON)

# From each display a call that draws it, given ax.
DRAWN = {
    "reliability": lambda ax=None: ReliabilityDisplay.from_estimator(MODEL, TEST, Y_TEST, ax=ax),
    "threshold": lambda ax=None: ThresholdDisplay.from_estimator(
        MODEL, TEST, Y_TEST, cost_fp=1, cost_fn=5, ax=ax
    ),
    "landscape": lambda ax=None: LandscapeDisplay.from_estimator(PAPER, resolution=21, ax=ax),
    "forest": lambda ax=None: ForestDisplay.from_estimator(
        FOREST, MOONS, sample=[0.5, 0.4], resolution=30, ax=ax
    ),
}
STYLES = ("default", "dark_background")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def new_axes():
    return Figure().subplots()


def labels_of(legend):
    return [text.get_text() for text in legend.get_texts()]


def assert_fits(figure):
    """Nothing is cut off at the edge of the figure, when it is drawn for the first time."""
    figure.canvas.draw()
    seen = figure.get_tightbbox(figure.canvas.get_renderer())
    width, height = figure.get_size_inches()
    assert min(seen.x0, seen.y0, width - seen.x1, height - seen.y1) > -0.02


# Conventions


@pytest.mark.parametrize("name", DRAWN)
def test_a_display_makes_its_own_figure_and_keeps_it(name):
    display = DRAWN[name]()
    assert display.figure_ is display.ax_.figure
    assert plt.fignum_exists(display.figure_.number)


@pytest.mark.parametrize("name", DRAWN)
def test_a_display_draws_on_the_axes_it_is_given_and_leaves_pyplot_alone(name):
    ax = new_axes()
    display = DRAWN[name](ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert plt.get_fignums() == []


@pytest.mark.parametrize("name", DRAWN)
def test_plot_draws_again_elsewhere_and_returns_the_display(name):
    display = DRAWN[name](new_axes())
    ax = new_axes()
    assert display.plot(ax=ax) is display
    assert display.ax_ is ax


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", DRAWN)
def test_text_and_legend_take_the_colours_of_the_style_and_all_fits_the_figure(name, style):
    with plt.style.context(style):
        display = DRAWN[name]()
        figure = display.figure_
        assert_fits(figure)
        assert display.ax_.xaxis.label.get_color() == plt.rcParams["axes.labelcolor"]
        look = canvas.look_of(display.ax_)
        assert look.background == to_rgb(plt.rcParams["axes.facecolor"])


@pytest.mark.parametrize("name", DRAWN)
def test_a_legend_can_be_left_out(name):
    ax = new_axes()
    display = DRAWN[name](new_axes())
    display.plot(ax=ax, legend=False)
    assert ax.get_legend() is None


@pytest.mark.parametrize("name", DRAWN)
def test_every_curve_colour_stands_out_from_light_and_dark(name):
    for style in STYLES:
        with plt.style.context(style):
            ax = new_axes()
            look = canvas.look_of(ax)
            for colour in (*look.colours, *look.fills, canvas.STRONG):
                assert contrast(to_rgb(colour), look.background) > 2.1


def contrast(one, other):
    """The ratio of contrast by the accessibility guidelines."""

    def luminance(colour):
        c = np.array(colour)
        linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("from_", ["ReliabilityDisplay", "ThresholdDisplay"])
@pytest.mark.parametrize(
    ("estimator", "error", "words"),
    [
        (LogisticRegression(), NotFittedError, "not fitted"),
        (LinearRegression().fit(X, Y), ValueError, "LinearRegression is no classifier"),
        (LinearSVC().fit(X, Y), ValueError, "LinearSVC has no predict_proba"),
        (LogisticRegression, TypeError, "is a class"),
        ("model", ValueError, "str is no classifier"),
    ],
)
def test_what_gives_no_probabilities_is_refused_plainly(from_, estimator, error, words):
    display = {"ReliabilityDisplay": ReliabilityDisplay, "ThresholdDisplay": ThresholdDisplay}[
        from_
    ]
    with pytest.raises(error, match=words):
        display.from_estimator(estimator, X, Y)
    assert plt.get_fignums() == []


@pytest.mark.parametrize("name", DRAWN)
def test_without_matplotlib_one_plain_line_says_what_to_install(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "popf\[plot\]"') as refusal:
        DRAWN[name]()
    assert "\n" not in str(refusal.value)


def test_importing_and_preparing_need_no_matplotlib():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from popf.display import prepare_reliability\n"
        "print(prepare_reliability([0, 1], [0.2, 0.9]).frequency)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "[0. 1.]\n", done.stderr


# Reliability


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_the_reliability_curve_is_the_mean_and_the_frequency_of_each_bin(strategy):
    curve = prepare_reliability(Y_TEST, P, n_bins=7, strategy=strategy)
    happened = Y_TEST == "stolen"
    assert curve.weights.sum() == len(P)
    gaps = np.abs(curve.frequency - curve.probability) * curve.weights / len(P)
    expected = expected_calibration_error(
        Y_TEST, P, n_bins=7, strategy=strategy, kind="binary", pos_label="stolen"
    )
    assert curve.error == expected
    assert gaps.sum() == pytest.approx(expected)
    if strategy == "uniform":
        for k in range(7):
            inside = np.ceil(P * 7) == k + 1
            if inside.any():
                (place,) = np.flatnonzero(np.isclose(curve.probability, P[inside].mean()))
                assert curve.frequency[place] == pytest.approx(happened[inside].mean())


def test_the_interval_is_wilsons():
    # Newcombe's example: 81 of 263, 95 %.
    curve = prepare_reliability([1] * 81 + [0] * 182, [0.3] * 263)
    assert curve.lower == pytest.approx([0.2553], abs=5e-5)
    assert curve.upper == pytest.approx([0.3662], abs=5e-5)
    none = prepare_reliability([0] * 20, [0.1] * 20)
    assert none.lower == [0.0]
    assert none.upper == pytest.approx([0.1611], abs=5e-5)


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
        "calibrated",
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
    assert [word.split()[0] for word in words] == ["one", "two", "95", "calibrated"]
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
    with pytest.raises(ValueError, match="knows 3 classes"):
        ReliabilityDisplay.from_estimator(model, data.data, data.target)
    with pytest.raises(ValueError, match="which one is positive is not clear"):
        prepare_reliability(data.target, model.predict_proba(data.data)[:, 2])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"pos_label": "lost"}, "'lost' is not a class; y_true holds 'honest', 'stolen'"),
        ({"n_bins": 0}, "n_bins=0"),
        ({"strategy": "equal"}, "strategy='equal' is unknown"),
        ({"confidence": 95}, "confidence=95 must lie between 0 and 1"),
        ({"y_prob": P[:-1]}, "y_true has 200 samples and y_prob has 199"),
        ({"y_prob": P * 2}, "probabilities lie between 0 and 1"),
        ({"y_prob": MODEL.predict_proba(TEST)}, "pass its column"),
    ],
)
def test_wrong_values_for_a_reliability_curve_are_named(wrong, words):
    with pytest.raises(ValueError, match=words):
        prepare_reliability(**{"y_true": Y_TEST, "y_prob": P, **wrong})


# Thresholds


def test_values_over_the_threshold_are_those_of_the_metrics():
    found = prepare_thresholds(Y_TEST, P, thresholds=[0.2, 0.5, 0.65], cost_fp=2, cost_fn=7)
    for k, threshold in enumerate(found.thresholds):
        called = np.where(threshold <= P, "stolen", "honest")
        assert found.values["accuracy"][k] == pytest.approx(opf_accuracy_score(Y_TEST, called))
        for name, score in {"precision": precision_score, "recall": recall_score}.items():
            assert found.values[name][k] == score(Y_TEST, called, pos_label="stolen")
        alarms = np.sum((called == "stolen") & (Y_TEST == "honest"))
        misses = np.sum((called == "honest") & (Y_TEST == "stolen"))
        assert found.costs["cost"][k] == pytest.approx((2 * alarms + 7 * misses) / len(P))
    assert found.chosen == found.thresholds[np.argmin(found.costs["cost"])]


def test_without_costs_the_best_accuracy_is_chosen():
    found = prepare_thresholds(Y_TEST, P)
    assert found.costs == {}
    assert found.chosen == threshold_curve(Y_TEST, P).best_threshold


def test_precision_is_unknown_where_nothing_is_called_positive():
    found = prepare_thresholds([0, 1], [0.2, 0.4], thresholds=[0.3, 0.9])
    assert found.values["precision"][0] == 1.0
    assert np.isnan(found.values["precision"][1])
    ThresholdDisplay.from_predictions([0, 1], [0.2, 0.4], ax=new_axes())


def test_the_picture_shows_the_values_the_cost_and_the_chosen_threshold():
    display = DRAWN["threshold"](new_axes())
    found = prepare_thresholds(Y_TEST, P, cost_fp=1, cost_fn=5)
    for name, values in {**found.values, **found.costs}.items():
        line = display.lines_[name]
        assert np.array_equal(line.get_xdata(), found.thresholds)
        assert np.array_equal(line.get_ydata(), values, equal_nan=True)
        assert line.axes is (display.cost_ax_ if name == "cost" else display.ax_)
    words = labels_of(display.ax_.get_legend())
    assert words == ["accuracy", "precision", "recall", f"Θ = {found.chosen:.3g}"]
    for panel in (display.ax_, display.cost_ax_):
        assert any(np.all(np.array(line.get_xdata()) == found.chosen) for line in panel.lines)


def test_another_threshold_can_be_marked():
    display = ThresholdDisplay.from_predictions(Y_TEST, P, chosen=0.5, ax=new_axes())
    assert labels_of(display.ax_.get_legend())[-1] == "Θ = 0.5"
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


def test_one_kind_of_value_names_the_axis():
    display = ThresholdDisplay(thresholds=[0.5], values={"accuracy": [0.6]}).plot(ax=new_axes())
    assert display.ax_.get_ylabel() == "Accuracy"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"values": {"NM": [0.5]}}, r"'NM' has the shape \(1,\); for 2 thresholds"),
        ({"values": {}}, "values is empty"),
        ({"thresholds": [[0.1, 0.2]]}, "thresholds has the shape"),
        ({"costs": {"c": np.ones((2, 3))}}, r"'c' has the shape \(2, 3\)"),
    ],
)
def test_wrong_values_for_a_threshold_display_are_named(wrong, words):
    right = {"thresholds": [0.1, 0.2], "values": {"NM": [0.5, 0.6]}}
    with pytest.raises(ValueError, match=words):
        ThresholdDisplay(**{**right, **wrong})


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        ({"cost_fp": 1}, "cost_fn is missing; give both"),
        ({"cost_fp": -1, "cost_fn": 2}, "cost_fp=-1 must be a finite number"),
        ({"cost_fp": 1, "cost_fn": np.nan}, "cost_fn=nan must be"),
        ({"cost_fp": "1", "cost_fn": 2}, "cost_fp='1' must be"),
    ],
)
def test_wrong_costs_are_named(costs, words):
    with pytest.raises(ValueError, match=words):
        prepare_thresholds(Y_TEST, P, **costs)


# Landscape


def test_the_landscape_holds_the_objective_at_every_point_of_the_grid():
    objective = PlattObjective([-1.0, 0.5, 2.0], platt_targets([-1, 1, 1]))
    A, B, values = prepare_landscape(objective, ((-3, 1), (0, 2)), resolution=5)
    assert (A[0], A[-1], B[0], B[-1]) == (-3, 1, 0, 2)
    for i, b in enumerate(B):
        for j, a in enumerate(A):
            assert values[i, j] == pytest.approx(objective([a, b]))


def test_the_landscape_of_a_model_is_the_one_it_was_fitted_in():
    display = LandscapeDisplay.from_estimator(
        PAPER, solvers=["pso", NelderMead()], random_state=3, resolution=9, ax=new_axes()
    )
    assert list(display.paths_) == ["newton (fitted)", "pso", "NelderMead()"]
    assert np.array_equal(display.paths["newton (fitted)"], PAPER.solution_.path)
    signed = np.where(MOON == 1, FOREST.costs_, -FOREST.costs_)
    objective = PlattObjective(signed, platt_targets(MOON))
    again = PSO().minimize(objective, PAPER.box, 3)
    assert np.array_equal(display.paths["pso"], again.path)
    assert display.finals["pso"] == again.value
    drawn = display.paths_["pso"].get_xydata()
    assert np.array_equal(drawn[-1], again.theta)
    assert (np.diff(drawn, axis=0) != 0).any(axis=1).all()
    words = labels_of(display.ax_.get_legend())
    assert words[1] == f"pso: F = {again.value:.4g}"
    assert display.values[0, 0] == pytest.approx(objective([-60.0, -10.0]))


def test_weights_are_asked_for_when_the_model_has_seen_them():
    weights = np.linspace(0.0, 2.0, len(MOON))
    model = clone(PAPER).fit(MOONS, MOON, weights)
    with pytest.raises(ValueError, match="other sample weights"):
        LandscapeDisplay.from_estimator(model)
    display = LandscapeDisplay.from_estimator(
        model, sample_weight=weights, resolution=5, ax=new_axes()
    )
    assert list(display.finals.values()) == [model.solution_.value]


def test_paths_that_take_little_room_are_drawn_again_larger():
    def bowl(thetas):
        return ((thetas - [3.0, 1.0]) ** 2).sum(axis=1) - 5.0

    near = {"near": NelderMead().minimize(bowl, start=[2.0, 1.0])}
    small = LandscapeDisplay.from_objective(bowl, solutions=near, resolution=11, ax=new_axes())
    left, right = small.zoom_ax_.get_xlim()
    assert -10 < left < 2 < 3 < right < 10
    assert small.zoom_ax_.get_ylim()[0] < 1 < small.zoom_ax_.get_ylim()[1]
    assert small.plot(ax=new_axes(), zoom=False).zoom_ax_ is None
    far = {"far": NelderMead().minimize(bowl, start=[-10.0, -10.0])}
    large = LandscapeDisplay.from_objective(bowl, solutions=far, resolution=11, ax=new_axes())
    assert large.zoom_ax_ is None


def test_flat_and_partly_undefined_functions_are_drawn():
    flat = LandscapeDisplay(A=[0, 1], B=[0, 1, 2], values=np.ones((3, 2))).plot(ax=new_axes())
    assert flat.ax_.get_legend() is None
    with np.errstate(invalid="ignore", divide="ignore"):
        holes = LandscapeDisplay.from_objective(
            lambda thetas: np.log(thetas[:, 0]), resolution=11, ax=new_axes()
        )
    holes.figure_.canvas.draw()
    assert np.isinf(holes.values[:, 0]).all()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: LandscapeDisplay.from_estimator(FOREST), TypeError, "no landscape over A and B"),
        (
            lambda: LandscapeDisplay.from_estimator(POPFClassifier("paper")),
            NotFittedError,
            "not fitted",
        ),
        (
            lambda: LandscapeDisplay.from_estimator(PAPER, solvers=["sgd"]),
            ValueError,
            "solver must be one of",
        ),
        (lambda: prepare_landscape(np.sum, None), ValueError, "needs bounds"),
        (lambda: prepare_landscape(np.sum, resolution=1), ValueError, "resolution is 1"),
        (
            lambda: LandscapeDisplay(A=[0, 1], B=[0, 1, 2], values=np.ones((2, 3))),
            ValueError,
            "a row for each B",
        ),
        (
            lambda: LandscapeDisplay(A=[0], B=[0], values=[[1]], paths={"NM": [0, 1]}),
            ValueError,
            "the path 'NM'",
        ),
        (lambda: LandscapeDisplay(A=[0], B=[0], values=[[np.nan]]), ValueError, "no finite"),
    ],
)
def test_what_has_no_landscape_is_refused_plainly(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_the_soft_method_has_no_landscape():
    model = POPFClassifier().fit(MOONS, MOON)
    with pytest.raises(ValueError, match="soft method"):
        LandscapeDisplay.from_estimator(model)


# Forest


def segments(collection):
    return {tuple(map(tuple, line)) for line in collection.get_segments()}


def test_the_forest_is_drawn_where_its_samples_lie():
    display = DRAWN["forest"](new_axes())
    for k, marks in enumerate(display.samples_):
        assert np.array_equal(marks.get_xydata(), MOONS[k == MOON])
    before = FOREST.predecessors_
    arcs = {(tuple(MOONS[u]), tuple(MOONS[v])) for v, u in enumerate(before) if u >= 0}
    assert segments(display.arcs_) == arcs
    tree = FOREST.spanning_tree_
    crossings = {
        (tuple(MOONS[u]), tuple(MOONS[v]))
        for u, v in zip(tree.lower, tree.higher, strict=True)
        if MOON[u] != MOON[v]
    }
    assert segments(display.crossings_) == crossings
    rings = next(line for line in display.ax_.lines if line.get_label() == "prototype")
    assert np.array_equal(rings.get_xydata(), MOONS[FOREST.prototypes_])
    assert display.ax_.get_aspect() == 1.0


def test_the_path_of_a_sample_is_drawn_with_its_longest_arc():
    sample = [0.9, 0.9]
    display = ForestDisplay.from_estimator(FOREST, MOONS, sample=sample, ax=new_axes())
    (path,) = FOREST.explain([sample])
    stops = np.vstack([MOONS[path.nodes], sample])
    assert np.array_equal(display.path_.get_xydata(), stops)
    longest = display.bottleneck_.get_xydata()
    assert np.linalg.norm(longest[1] - longest[0]) == pytest.approx(path.cost)
    assert display.bottleneck_.get_label() == f"longest arc: {path.cost:.3g}"
    assert display.path_.get_label() == f"path to {path.label}"


def test_regions_are_what_the_forest_predicts():
    layout = prepare_forest(FOREST, MOONS, resolution=25)
    x, y, codes = layout.regions
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    assert np.array_equal(codes.ravel(), FOREST.predict(grid))
    assert x[0] < MOONS[:, 0].min()
    assert x[-1] > MOONS[:, 0].max()
    display = DRAWN["forest"](new_axes())
    assert np.array_equal(
        display.regions_.get_array().ravel(), display.layout.regions.codes.ravel()
    )


def test_more_features_are_projected_and_the_picture_says_so():
    data = load_iris()
    forest = OPFClassifier().fit(data.data, data.target_names[data.target])
    display = ForestDisplay.from_estimator(forest, data.data, ax=new_axes())
    assert display.regions_ is None
    assert display.ax_.get_title() == ""
    assert display.ax_.get_xlabel() == "principal component 1 (92 % of the variance)"
    assert display.ax_.get_ylabel() == "component 2 (5 %)"
    marked = ForestDisplay.from_estimator(
        forest, data.data, regions=True, resolution=20, ax=new_axes()
    )
    assert "plane through the mean" in marked.ax_.get_title()
    x, y, codes = marked.layout.regions
    centred = data.data - data.data.mean(axis=0)
    places = marked.layout.coordinates
    axes = np.linalg.lstsq(places, centred, rcond=None)[0]  # the first two right singular vectors
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2) @ axes + data.data.mean(axis=0)
    assert np.array_equal(forest.classes_[codes.ravel()], forest.predict(grid))


def test_one_feature_is_drawn_over_the_path_cost():
    line = np.array([[0.0], [1.0], [2.5], [6.0], [7.0], [7.5]])
    forest = OPFClassifier().fit(line, [0, 0, 0, 1, 1, 1])
    display = ForestDisplay.from_estimator(forest, line, sample=[2.0], ax=new_axes())
    assert np.array_equal(display.layout.coordinates, np.column_stack([line, forest.costs_]))
    assert display.ax_.get_ylabel() == "path cost C"
    assert display.layout.regions.codes[:, 0].tolist() == [0, 0]
    assert display.layout.regions.codes[:, -1].tolist() == [1, 1]


def test_pipelines_and_probabilities_are_drawn_by_their_forest():
    model = make_pipeline(StandardScaler(), POPFClassifier("paper", box=BOX))
    model.fit(MOONS, MOON)
    layout = prepare_forest(model, MOONS, sample=MOONS[3] + 0.01, resolution=10)
    scaled = model[0].transform(MOONS)
    assert np.array_equal(layout.coordinates, scaled)
    (path,) = model[-1].opf_.explain(model[0].transform(MOONS[[3]] + 0.01))
    assert np.array_equal(layout.path.nodes, path.nodes)
    assert layout.sample == pytest.approx(model[0].transform(MOONS[[3]] + 0.01)[0])


def test_a_model_with_a_map_is_drawn_as_its_forest_sees_the_samples():
    model = POPFClassifier(linear_map="weights", random_state=0).fit(MOONS, MOON)
    layout = prepare_forest(model, MOONS, sample=[0.2, 0.3], resolution=10)
    assert layout.axis_names == ("mapped feature 0", "mapped feature 1")
    u, v = layout.predecessors[layout.predecessors >= 0], np.flatnonzero(layout.predecessors >= 0)
    lengths = np.linalg.norm(layout.coordinates[u] - layout.coordinates[v], axis=1)
    assert lengths == pytest.approx(model.opf_.forest_.lengths[v])


def test_columns_name_the_axes_and_warn_of_nothing():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(MOONS, columns=["usage", "tariff"])
    for model in (OPFClassifier(), POPFClassifier("paper", box=BOX)):
        model.fit(table, MOON)
        for sample in (table.iloc[[2]], [0.1, 0.2]):
            layout = prepare_forest(model, table, sample=sample, resolution=5)
            assert layout.axis_names == ("usage", "tariff")
        assert prepare_forest(model, MOONS).axis_names == ("usage", "tariff")
        assert list(model.feature_names_in_) == ["usage", "tariff"]
    model = make_pipeline(StandardScaler(), OPFClassifier()).fit(table, MOON)
    layout = prepare_forest(model, table, sample=table.iloc[[2]], regions=False)
    assert layout.axis_names == ("usage", "tariff")
    unnamed = make_pipeline(FunctionTransformer(np.exp), OPFClassifier()).fit(table, MOON)
    assert prepare_forest(unnamed, table, regions=False).axis_names == ("usage", "tariff")
    unnamed = make_pipeline(FunctionTransformer(np.asarray), OPFClassifier()).fit(table, MOON)
    assert prepare_forest(unnamed, table, regions=False).axis_names == ("feature 0", "feature 1")


def test_samples_of_no_weight_are_not_drawn():
    weights = np.ones(len(MOON))
    weights[[0, 7]] = 0
    forest = OPFClassifier().fit(MOONS, MOON, weights)
    layout = prepare_forest(forest, MOONS, regions=False)
    assert np.array_equal(layout.coordinates, MOONS[weights > 0])


def test_other_metrics_have_regions_within_their_domain_and_slow_ones_none():
    positive = MOONS - MOONS.min(axis=0)
    forest = OPFClassifier("chi_square").fit(positive, MOON)
    assert prepare_forest(forest, positive, resolution=10).regions.x.min() > 0.0
    slow = OPFClassifier(lambda a, b: np.abs(a - b).sum()).fit(MOONS[:20], MOON[:20])
    assert prepare_forest(slow, MOONS[:20]).regions is None


@pytest.mark.parametrize("shape", [(1.0, 0.4), (1.0, 1.0), (0.4, 1.0), (9.0, 1.0)])
@pytest.mark.parametrize("name", ["b", "a class with a rather long name, too long"])
def test_forests_of_all_shapes_fit_their_figure(shape, name):
    samples = MOONS * shape
    labels = np.where(MOON == 1, name, "a")
    display = ForestDisplay.from_estimator(
        OPFClassifier().fit(samples, labels), samples, sample=samples[0] + 0.1, resolution=10
    )
    assert_fits(display.figure_)


def test_units_that_differ_much_fill_the_axes():
    stretched = MOONS * [1000.0, 1.0]
    forest = OPFClassifier().fit(stretched, MOON)
    display = ForestDisplay.from_estimator(forest, stretched, resolution=10, ax=new_axes())
    assert display.ax_.get_aspect() == "auto"


@pytest.mark.parametrize(
    ("model", "samples", "options", "error", "words"),
    [
        (OPFClassifier(), MOONS, {}, NotFittedError, "not fitted"),
        (MODEL, X, {}, TypeError, "LogisticRegression has no forest"),
        (FOREST, MOONS[:-1], {}, ValueError, "X has 59 samples"),
        (FOREST, MOONS[::-1], {}, ValueError, "pass the X given to fit"),
        (FOREST, X[:60], {}, ValueError, "5 features"),
        (FOREST, MOONS, {"sample": MOONS[:2]}, ValueError, r"sample has the shape \(2, 2\)"),
        (FOREST, MOONS, {"sample": [1.0]}, ValueError, "1 features"),
        (FOREST, MOONS, {"resolution": 0}, ValueError, "resolution is 0"),
    ],
)
def test_what_has_no_forest_to_draw_is_refused_plainly(model, samples, options, error, words):
    with pytest.raises(error, match=words):
        prepare_forest(model, samples, **options)


def test_distances_alone_have_no_places():
    distances = np.abs(np.subtract.outer(MOONS[:, 0], MOONS[:, 0]))
    forest = OPFClassifier("precomputed").fit(distances, MOON)
    with pytest.raises(ValueError, match="have no places to draw"):
        prepare_forest(forest, distances)
