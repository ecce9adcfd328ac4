"""popf: Optimum-Path Forest classification for scikit-learn.

`OPFClassifier` gives labels, `POPFClassifier` probabilities; `popf.metrics` measures both.
"""

from popf.forest import OPFClassifier
from popf.probability import POPFClassifier

__version__ = "0.1.0"
__all__ = ["OPFClassifier", "POPFClassifier", "__version__"]
