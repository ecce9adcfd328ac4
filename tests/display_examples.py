"""Models to draw, each display drawn, and what is asked of a drawing."""

from functools import cache

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import make_classification, make_moons
from sklearn.linear_model import LogisticRegression

from popf import OPFClassifier, PlattOPFClassifier, POPFClassifier
from popf.display import (
    ForestDisplay,
    LandscapeDisplay,
    LogOddsDisplay,
    ReliabilityDisplay,
    ThresholdDisplay,
)

matplotlib.use("Agg")  # no windows, wherever the tests run

X, Y = make_classification(400, n_features=5, weights=[0.7], flip_y=0.1, random_state=0)
NAMES = np.array(["honest", "stolen"])[Y]
MODEL = LogisticRegression().fit(X[::2], NAMES[::2])
TEST, Y_TEST = X[1::2], NAMES[1::2]
P = MODEL.predict_proba(TEST)[:, 1]
MOONS, MOON = make_moons(60, noise=0.2, random_state=0)
FOREST = OPFClassifier().fit(MOONS, MOON)
# A box that does not bind: a fit that it binds warns.
BOX = ((-60.0, 20.0), (-10.0, 10.0))
PAPER = PlattOPFClassifier(box=BOX).fit(MOONS, MOON)


@cache
def pooled():
    return POPFClassifier().fit(MOONS, MOON)


# From each display a call that draws it, given ax.
DRAWN = {
    "reliability": lambda ax=None: ReliabilityDisplay.from_estimator(MODEL, TEST, Y_TEST, ax=ax),
    "threshold": lambda ax=None: ThresholdDisplay.from_estimator(
        MODEL, TEST, Y_TEST, cost_fp=1, cost_fn=5, ax=ax
    ),
    "landscape": lambda ax=None: LandscapeDisplay.from_estimator(PAPER, resolution=21, ax=ax),
    "forest": lambda ax=None: ForestDisplay.from_estimator(
        FOREST, sample=[0.5, 0.4], resolution=30, ax=ax
    ),
    "log odds": lambda ax=None: LogOddsDisplay.from_estimator(pooled(), [0.5, 0.4], ax=ax),
}


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
