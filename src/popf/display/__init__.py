"""Pictures of models, by scikit-learn's conventions for displays.

``reliability``   are probabilities frequencies? curve, interval, histogram
``threshold``     accuracy, precision, recall and cost over the threshold
``landscape``     the objective of the paper's fit over A × B, and the paths of solvers
``forest``        the forest in the plane or in a projection, and the path of one sample
``log_odds``      what baseline, forest and features add to the log odds of one sample

Every display is made by ``from_estimator``, ``from_predictions`` or ``from_objective``, which draw at
once what a ``prepare_...`` function computes; ``plot(ax=...)`` draws it again elsewhere. After that
it has ``ax_`` and ``figure_``. Colours follow the background of the axes, light or dark.

matplotlib comes with the extra ``popf[plot]``, and is imported when something is drawn. ``canvas`` holds what
the drawings share, ``estimators`` what is asked of a model, and ``html`` makes pages of one file from
templates, for the reports.
"""

from popf.display.forest import ForestDisplay
from popf.display.landscape import LandscapeDisplay
from popf.display.log_odds import LogOddsDisplay
from popf.display.reliability import ReliabilityDisplay
from popf.display.threshold import ThresholdDisplay

__all__ = [
    "ForestDisplay",
    "LandscapeDisplay",
    "LogOddsDisplay",
    "ReliabilityDisplay",
    "ThresholdDisplay",
]
