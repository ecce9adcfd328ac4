"""popf: Optimum-Path Forest classification for scikit-learn."""

from popf.forest import OPFClassifier

__version__ = "0.1.0"
__all__ = ["OPFClassifier", "__version__"]
