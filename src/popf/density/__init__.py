"""Densities on a graph of nearest neighbours, and what is grown from their maxima.

``propagation``  kernels on the graph: densities, removal of small maxima, optimum paths, normalised cut
``forest``       grows the forest on the graph; a fitted forest claims new samples
``base``         what the estimators share
``clustering``   OPFClustering
``outliers``     OPFOutlierDetector
``classifier``   KNNOPFClassifier
"""

from popf.density.classifier import KNNOPFClassifier
from popf.density.clustering import OPFClustering
from popf.density.outliers import OPFOutlierDetector

__all__ = ["KNNOPFClassifier", "OPFClustering", "OPFOutlierDetector"]
