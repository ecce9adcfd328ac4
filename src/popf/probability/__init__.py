"""The probabilistic Optimum-Path Forest classifier, a pool of components.

``classifier``        the estimator and its parameters
``columns``           the columns of a table as a matrix
``encoding``          gaps, categories and dates as numbers
``table_encoder``     the same as a transformer
``consumption``       features of meter readings, as a transformer
``readings``          the features themselves
``fitting``           the fit, step by step
``folds``             canonical order of samples, columns and classes, and folds
``scaler``            scaling of the features
``components``        what a component is
``additive``          ridge regressions on features, and on splines and pairs of features
``trees``             boosted trees
``forest_component``  the forest, its scores, their bandwidth and calibration
``linear_maps``       linear maps of the features for the forest
``held_out``          held-out logits of all components, and choices on them
``pool``              weights of the components, and the confidence in them
``logits``            log losses, labels of held-out samples, softmax regressions
``explain``           explanations of probabilities
"""

from popf.probability.classifier import POPFClassifier
from popf.probability.consumption import ConsumptionFeatures
from popf.probability.explain import ProbabilityExplanation
from popf.probability.table_encoder import TableEncoder

__all__ = ["ConsumptionFeatures", "POPFClassifier", "ProbabilityExplanation", "TableEncoder"]
