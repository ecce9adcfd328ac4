"""Plots of models, following scikit-learn's conventions for displays.

``curves``        reliability curves; scores and cost by threshold
``landscape``     the objective of the paper's fit over A × B, and the paths of solvers
``forest``        the forest in the plane or in a projection, and the path of one sample
``log_odds``      contributions of baseline, forest and features to the log odds of one sample
``importances``   mean contribution of every column to the log odds
``canvas``        shared by all plots: lazy import of matplotlib (``popf[plot]``), axes, colours, legends
``estimators``    helpers that read fitted models
``html``          self-contained HTML pages from templates, for the reports

``from_estimator``, ``from_predictions`` and ``from_objective`` compute with a ``prepare_...`` function and draw
at once; ``plot(ax=...)`` draws again elsewhere. Colours adapt to the background of the axes, light or dark.
"""

from popf.display.curves import ReliabilityDisplay, ThresholdDisplay
from popf.display.forest import ForestDisplay
from popf.display.importances import ImportancesDisplay
from popf.display.landscape import LandscapeDisplay
from popf.display.log_odds import LogOddsDisplay

__all__ = [
    "ForestDisplay",
    "ImportancesDisplay",
    "LandscapeDisplay",
    "LogOddsDisplay",
    "ReliabilityDisplay",
    "ThresholdDisplay",
]
