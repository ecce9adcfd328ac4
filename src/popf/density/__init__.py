"""Densities on a graph of nearest neighbours, and what is grown from their maxima.

``graph``        samples in an order of their own, and their nearest neighbours
``propagation``  kernels: densities, removal of small maxima, optimum paths, normalised cut
``forest``       these in a row, with or without classes; what is kept claims new samples
``base``         what the estimators share
``clustering``   OPFClustering
``outliers``     OPFOutlierDetector
``classifier``   KNNOPFClassifier
"""

from popf.density.classifier import KNNOPFClassifier
from popf.density.clustering import OPFClustering
from popf.density.outliers import OPFOutlierDetector

__all__ = ["KNNOPFClassifier", "OPFClustering", "OPFOutlierDetector"]
