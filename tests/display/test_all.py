"""Displays draw what Python computes, by scikit-learn's conventions for displays."""

import io
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

from display_examples import DRAWN, FOREST, MODEL, MOONS, PAPER, X, Y, assert_fits, new_axes, pooled
from popf import OPFClassifier, PlattOPFClassifier, POPFClassifier
from popf.display import (
    ForestDisplay,
    LandscapeDisplay,
    LogOddsDisplay,
    ReliabilityDisplay,
    ThresholdDisplay,
    canvas,
)
from popf.display.curves import prepare_reliability, prepare_thresholds
from popf.display.forest import prepare_forest
from refusals import refused

STYLES = ("default", "dark_background")
landscape_of, log_odds_of = LandscapeDisplay.from_estimator, LogOddsDisplay.from_estimator
reliability_of = ReliabilityDisplay.from_estimator


@pytest.mark.parametrize("name", DRAWN)
def test_a_display_draws_on_the_axes_it_is_given_and_again_elsewhere(name):
    ax, other = new_axes(), new_axes()
    display = DRAWN[name](ax)
    assert (display.ax_, display.figure_) == (ax, ax.figure)
    assert display.plot(ax=other) is display
    assert display.ax_ is other
    assert plt.get_fignums() == []


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_of_its_own_takes_the_colours_of_the_style_and_all_fits_in(name, style):
    with plt.style.context(style):
        display = DRAWN[name]()
        figure = display.figure_
        assert figure is display.ax_.figure
        assert plt.fignum_exists(figure.number)
        assert_fits(figure)
        assert display.ax_.xaxis.label.get_color() == plt.rcParams["axes.labelcolor"]
        legends = [*filter(None, [display.ax_.get_legend()]), *figure.legends]
        assert len(legends) == (name != "log odds")  # whose bars are named by the axis
        colours = {text.get_color() for legend in legends for text in legend.get_texts()}
        assert colours <= {plt.rcParams["text.color"]}
        look = canvas.look_of(display.ax_)
        assert look.background == to_rgb(plt.rcParams["axes.facecolor"])


@pytest.mark.parametrize("style", STYLES)
def test_every_curve_colour_stands_out_from_light_and_dark(style, contrast):
    with plt.style.context(style):
        look = canvas.look_of(new_axes())
        for colour in (*look.colours, *look.fills, canvas.STRONG):
            assert contrast(to_rgb(colour), look.background) > 2.1


def three_classes():
    return PlattOPFClassifier(box=((-99, 99), (-99, 99))).fit(MOONS, np.arange(len(MOONS)) % 3)


def nowhere(thetas):
    return thetas[:, 0] * np.nan


REGRESSION, SVM = LinearRegression().fit(X, Y), LinearSVC().fit(X, Y)
NO_SAMPLES = OPFClassifier("precomputed").fit(1 - np.eye(2), [0, 1])
REFUSED = [
    (lambda: prepare_forest(OPFClassifier()), NotFittedError, "not fitted"),
    (lambda: prepare_forest(MODEL), TypeError, "LogisticRegression has no forest"),
    (lambda: prepare_forest(FOREST, sample=MOONS[:2]), ValueError, "sample has the shape (2, 2)"),
    (lambda: prepare_forest(FOREST, sample=[1.0]), ValueError, "1 features"),
    (lambda: prepare_forest(FOREST, resolution=0), ValueError, "resolution is 0"),
    (lambda: prepare_forest(NO_SAMPLES), ValueError, "have no coordinates"),
    (lambda: landscape_of(FOREST), TypeError, "no landscape over A and B"),
    (lambda: landscape_of(PlattOPFClassifier()), NotFittedError, "not fitted"),
    (lambda: landscape_of(pooled()), TypeError, "pass a fitted PlattOPFClassifier"),
    (lambda: landscape_of(three_classes()), ValueError, "there are 3 classes"),
    (lambda: landscape_of(PAPER, solvers=["sgd"]), ValueError, "`solver` must be one of"),
    (lambda: landscape_of(PAPER, resolution=1), ValueError, "resolution is 1"),
    (lambda: LandscapeDisplay.from_objective(np.sum, None), ValueError, "needs bounds"),
    (lambda: LandscapeDisplay.from_objective(nowhere, resolution=2), ValueError, "no finite value"),
    (lambda: log_odds_of(MODEL, MOONS[0]), TypeError, "LogisticRegression has no log odds"),
    (lambda: log_odds_of(PAPER, MOONS[0]), TypeError, "PlattOPFClassifier has no log odds"),
    (
        lambda: log_odds_of(pooled(), MOONS[0], pos_label=7),
        ValueError,
        "is not a class; use one of",
    ),
    (
        lambda: log_odds_of(pooled(), MOONS[0], pos_label=1, against=1),
        ValueError,
        "against=1 is the positive class itself",
    ),
    (lambda: reliability_of(LogisticRegression(), X, Y), NotFittedError, "not fitted"),
    (lambda: reliability_of(REGRESSION, X, Y), ValueError, "not a classifier with predict_proba"),
    (lambda: reliability_of(SVM, X, Y), ValueError, "wrap a classifier in"),
    (lambda: prepare_reliability(Y, np.ones((400, 2)) / 2), ValueError, "pass its column"),
    (lambda: prepare_reliability(Y, Y[:-1]), ValueError, "400 samples and y_prob has 399"),
    (lambda: prepare_reliability(Y, Y * 2), ValueError, "probabilities lie between 0 and 1"),
    (lambda: prepare_reliability(Y, Y, pos_label="lost"), ValueError, "'lost'"),
    (lambda: prepare_reliability(Y, Y, n_bins=0), ValueError, "n_bins is 0"),
    (lambda: prepare_thresholds(Y, Y, cost_fp=1), ValueError, "`cost_fn` belong together"),
    (lambda: prepare_thresholds(Y, Y, cost_fp=1, cost_fn="1"), ValueError, "`cost_fn` is '1'"),
]


@pytest.mark.parametrize(("draw", "kind", "said"), REFUSED, ids=[said for _, _, said in REFUSED])
def test_what_cannot_be_drawn_is_refused_plainly(draw, kind, said):
    refused(draw, said, kind=kind)
    assert plt.get_fignums() == []


@pytest.mark.parametrize("name", DRAWN)
def test_without_matplotlib_one_plain_line_says_what_to_install(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "popf\[plot\]"') as refusal:
        DRAWN[name]()
    assert "\n" not in str(refusal.value)


ODD_WORDS = ["$\\frac{39$", "$x_1$", "a\x1bb", "caf\udce9"]


def test_words_of_the_data_are_drawn_as_they_are_and_are_no_mathematics(recwarn):
    words = np.array(ODD_WORDS)[np.arange(60) % 2]
    frame = pd.DataFrame(MOONS, columns=ODD_WORDS[::2])
    model = POPFClassifier("forest").fit(frame, words)
    figures = [
        ForestDisplay.from_estimator(model, sample=frame.iloc[0]).figure_,
        LogOddsDisplay.from_estimator(model, frame.iloc[0]).figure_,
        ThresholdDisplay(thresholds=[0.1, 0.5], values={odd: [0, 1] for odd in ODD_WORDS})
        .plot()
        .figure_,
        *(
            ReliabilityDisplay.from_estimator(model, frame, words, pos_label=word, name=odd).figure_
            for word in ODD_WORDS[:2]
            for odd in ODD_WORDS
        ),
    ]
    for figure in figures:
        for kind in ("png", "svg"):
            figure.savefig(io.BytesIO(), format=kind)
    assert figures[-1].axes[0].get_ylabel() == r"Frequency of \$x_1\$"
    assert not [str(one.message) for one in recwarn if "glyph" in str(one.message).lower()]
