"""The probabilistic Optimum-Path Forest classifier and its linear maps.

``classifier``        the estimator, its parameters, and the paper's method
``state``             conversion of a fitted classifier to plain values, and back with checks
``fitting``           the steps of a fit: hold out samples, choose, pool, refit on all samples
``held_out``          splits of the samples, and scores by forests, regressions and trees not fitted to them
``training``          ordered samples, folds, and forests on subsets of the samples
``features``          squashed features and linear maps
``soft_competition``  the forest's scores, their background floor, and bandwidths and slopes of the classes
``softmax``           logits, labels, and the regressions that turn scores into probabilities
``basis``             columns for regressions: features, their splines, and products of two
``regressions``       ridge logistic regressions on these columns
``boosting``          boosted trees
``pooling``           the pool of all parts, the trust in it, and explanations of probabilities
"""

from popf.probability.classifier import POPFClassifier
from popf.probability.features import (
    DiscriminantStretch,
    EffectSizeWeights,
    WithinClassWhitening,
)
from popf.probability.pooling import ProbabilityExplanation

__all__ = [
    "DiscriminantStretch",
    "EffectSizeWeights",
    "POPFClassifier",
    "ProbabilityExplanation",
    "WithinClassWhitening",
]
