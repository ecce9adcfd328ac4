"""The Optimum-Path Forest classifier, and what its methods return."""

from popf.forest.classifier import OPFClassifier
from popf.forest.paths import Conquest, OptimumPathForest, Path, SpanningTree

__all__ = ["Conquest", "OPFClassifier", "OptimumPathForest", "Path", "SpanningTree"]
