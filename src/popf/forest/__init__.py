"""The Optimum-Path Forest classifiers, and the minimum spanning tree that they are built on.

``classifier``           OPFClassifier
``semi_supervised``      SemiSupervisedOPFClassifier
``pruning``              `prune`: remove training samples that a validation set does not need
``spanning_tree``        the minimum spanning tree, and single-linkage clustering
``optimum_path_forest``  the forest: growing it, conquering new samples, tracing their paths
``probabilities``        base class of the classifiers in `popf.probability` and `popf.paper`; logits
``validation``           validation of parameters, samples, labels and weights; choice of CPU or GPU
``alignment``            `align`: match the columns of new data with those of a model
``metrics``              distance metrics by name
``state``                conversion of fitted estimators to plain values and back
"""

from popf.engine.structures import Conquest, SpanningTree
from popf.forest.classifier import OPFClassifier
from popf.forest.optimum_path_forest import OptimumPathForest, Path
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
