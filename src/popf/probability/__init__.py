"""The probabilistic Optimum-Path Forest classifier, and the linear maps that may come before it.

``classifier``        the estimator, its parameters, and the paper's own method
``state``             a fitted classifier as plain values, checked where it comes from a file
``fitting``           the order of a fit: hold out, choose, pool, fit what was chosen to all samples
``training``          samples in an order of their own, folds, and forests on some of them
``features``          1. squashed features, and the linear maps that may come after
``soft_competition``  the forest's scores, 2. a background under them, 3. bandwidths and slopes of the classes
``softmax``           exponents, labels, and the regressions by which scores become probabilities
``basis``             columns made of features: as they are, splines, and products of two
``regressions``       4. ridge regressions on such columns
``boosting``          and boosted trees
``pooling``           5. all evidence pooled, how far it is trusted, and how a probability splits
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
