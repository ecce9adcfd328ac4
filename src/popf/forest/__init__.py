"""The Optimum-Path Forest classifier, and what its methods return.

``classifier``           OPFClassifier
``semi_supervised``      SemiSupervisedOPFClassifier
``pruning``              `prune`: a forest of fewer samples
``validation``           checks of parameters, samples, distances, labels and weights
``metrics``              metrics by name
``devices``              processor or GPU
``growing``              from arrays to a spanning tree or a forest
``optimum_path_forest``  the forest, which conquers new samples
``paths``                who conquered a sample, and by which path
``spanning_tree``        the minimum spanning tree by itself, and single linkage
"""

from popf.engine.structures import SpanningTree
from popf.forest.classifier import OPFClassifier
from popf.forest.optimum_path_forest import OptimumPathForest
from popf.forest.paths import Conquest, Path
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
