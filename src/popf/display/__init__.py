"""Pictures of models, by scikit-learn's conventions for displays.

``reliability``   are probabilities frequencies? curve, interval, histogram
``threshold``     accuracy, precision, recall and cost over the threshold
``landscape``     the objective of the paper's fit over A × B, and the paths of solvers
``forest``        the forest in the plane or in a projection, and the path of one sample
``log_odds``      what baseline, forest and features add to the log odds of one sample

Every display is made by ``from_estimator``, ``from_predictions`` or ``from_objective``, which draw at
once, or from what its ``prepare_...`` function computes; ``plot(ax=...)`` draws it again elsewhere. After that
it has ``ax_`` and ``figure_``. Colours follow the background of the axes, light or dark.

matplotlib comes with the extra ``popf[plot]``, and is imported when something is drawn; what
``prepare_...`` computes does not need it. ``canvas`` holds what the displays share, ``positive_class`` the
choice of the class whose probability is drawn, ``layout`` and ``objectives`` what is computed for the forest
and the landscape. ``html`` makes pages of one file from templates, for the reports.
"""

from popf.display.forest import ForestDisplay, ForestLayout, prepare_forest
from popf.display.landscape import Landscape, LandscapeDisplay, prepare_landscape
from popf.display.log_odds import LogOdds, LogOddsDisplay, prepare_log_odds
from popf.display.reliability import ReliabilityCurve, ReliabilityDisplay, prepare_reliability
from popf.display.threshold import ThresholdDisplay, ThresholdValues, prepare_thresholds

__all__ = [
    "ForestDisplay",
    "ForestLayout",
    "Landscape",
    "LandscapeDisplay",
    "LogOdds",
    "LogOddsDisplay",
    "ReliabilityCurve",
    "ReliabilityDisplay",
    "ThresholdDisplay",
    "ThresholdValues",
    "prepare_forest",
    "prepare_landscape",
    "prepare_log_odds",
    "prepare_reliability",
    "prepare_thresholds",
]
