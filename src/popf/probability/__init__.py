"""The probabilistic Optimum-Path Forest classifier, and the linear maps that may come before it."""

from popf.probability.classifier import POPFClassifier
from popf.probability.explanation import ProbabilityExplanation
from popf.probability.linear_maps import (
    DiscriminantStretch,
    EffectSizeWeights,
    WithinClassWhitening,
)

__all__ = [
    "DiscriminantStretch",
    "EffectSizeWeights",
    "POPFClassifier",
    "ProbabilityExplanation",
    "WithinClassWhitening",
]
