"""Densities on a graph of nearest neighbours, and what is grown from their maxima.

``graph``        samples in an order of their own, and their nearest neighbours
``propagation``  kernels: densities, optimum paths, normalised cut
``maxima``       removal of maxima by area and volume
``forest``       these in a row; what is kept claims new samples
``base``         what the estimators share; ``validation`` their checks
``labelled``     the same with classes, and the number of neighbours by samples left out
``clustering``   OPFClustering
``outliers``     OPFOutlierDetector
``classifier``   KNNOPFClassifier
"""

from popf.density.classifier import KNNOPFClassifier
from popf.density.clustering import OPFClustering
from popf.density.outliers import OPFOutlierDetector

__all__ = ["KNNOPFClassifier", "OPFClustering", "OPFOutlierDetector"]
