"""Pictures of models, by scikit-learn's conventions for displays.

``curves``        reliability of probabilities; scores and cost over the threshold
``landscape``     the objective of the paper's fit over A × B, and the paths of solvers
``forest``        the forest in the plane or in a projection, and the path of one sample
``log_odds``      what baseline, forest and features add to the log odds of one sample
``canvas``        what the drawings share: matplotlib (``popf[plot]``) when it is needed, axes, colours, legends
``estimators``    what displays ask of a model
``html``          pages of one file from templates, for the reports

``from_estimator``, ``from_predictions`` and ``from_objective`` draw at once what a ``prepare_...`` function
computes; ``plot(ax=...)`` draws it again elsewhere. Colours follow the background of the axes, light or dark.
"""

from popf.display.curves import ReliabilityDisplay, ThresholdDisplay
from popf.display.forest import ForestDisplay
from popf.display.landscape import LandscapeDisplay
from popf.display.log_odds import LogOddsDisplay

__all__ = [
    "ForestDisplay",
    "LandscapeDisplay",
    "LogOddsDisplay",
    "ReliabilityDisplay",
    "ThresholdDisplay",
]
