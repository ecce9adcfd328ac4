"""Estimators based on densities on a graph of nearest neighbours.

``propagation``  kernels on the graph: densities, removal of small maxima, optimum paths, normalised cut
``forest``       the forest: growing it on the graph, and claiming new samples
``base``         base class of the estimators
``clustering``   OPFClustering
``outliers``     OPFOutlierDetector
``classifier``   KNNOPFClassifier
"""

from popf.density.classifier import KNNOPFClassifier
from popf.density.clustering import OPFClustering
from popf.density.outliers import OPFOutlierDetector

__all__ = ["KNNOPFClassifier", "OPFClustering", "OPFOutlierDetector"]
