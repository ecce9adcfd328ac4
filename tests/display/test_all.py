"""Displays draw what Python computes, by scikit-learn's conventions for displays."""

import sys

import matplotlib.pyplot as plt
import pytest
from matplotlib.colors import to_rgb
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

from contrast import contrast
from display_examples import DRAWN, X, Y, assert_fits, new_axes
from popf.display import ReliabilityDisplay, ThresholdDisplay, canvas

pytestmark = pytest.mark.usefixtures("closed_figures")

STYLES = ("default", "dark_background")


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
def test_every_curve_colour_stands_out_from_light_and_dark(style):
    with plt.style.context(style):
        look = canvas.look_of(new_axes())
        for colour in (*look.colours, *look.fills, canvas.STRONG):
            assert contrast(to_rgb(colour), look.background) > 2.1


@pytest.mark.parametrize("display", [ReliabilityDisplay, ThresholdDisplay])
@pytest.mark.parametrize(
    ("estimator", "error", "words"),
    [
        (LogisticRegression(), NotFittedError, "not fitted"),
        (LinearRegression().fit(X, Y), ValueError, "LinearRegression is not a classifier"),
        (LinearSVC().fit(X, Y), ValueError, "LinearSVC has no predict_proba"),
        (LogisticRegression, TypeError, "is a class"),
        ("model", ValueError, "str is not a classifier"),
    ],
)
def test_what_gives_no_probabilities_is_refused_plainly(display, estimator, error, words):
    with pytest.raises(error, match=words):
        display.from_estimator(estimator, X, Y)
    assert plt.get_fignums() == []


@pytest.mark.parametrize("name", DRAWN)
def test_without_matplotlib_one_plain_line_says_what_to_install(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "popf\[plot\]"') as refusal:
        DRAWN[name]()
    assert "\n" not in str(refusal.value)
