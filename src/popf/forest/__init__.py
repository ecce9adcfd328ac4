"""The Optimum-Path Forest classifier, and what its methods return.

``classifier``           OPFClassifier
``semi_supervised``      SemiSupervisedOPFClassifier
``pruning``              `prune`: a forest of fewer samples
``spanning_tree``        the minimum spanning tree by itself, and single linkage
``optimum_path_forest``  the forest: how it is grown, conquers new samples, and by which paths
``validation``           checks of parameters, samples, labels and weights; processor or GPU
``metrics``              metrics by name
``state``                fitted estimators as plain values, and back
"""

from popf.engine.structures import SpanningTree
from popf.forest.classifier import OPFClassifier
from popf.forest.optimum_path_forest import Conquest, OptimumPathForest, Path
from popf.forest.pruning import prune
from popf.forest.semi_supervised import SemiSupervisedOPFClassifier
from popf.forest.spanning_tree import minimum_spanning_tree, single_linkage

__all__ = [
    "Conquest",
    "OPFClassifier",
    "OptimumPathForest",
    "Path",
    "SemiSupervisedOPFClassifier",
    "SpanningTree",
    "minimum_spanning_tree",
    "prune",
    "single_linkage",
]
