"""popf: Optimum-Path Forest classification for scikit-learn.

`OPFClassifier` gives labels, `POPFClassifier` probabilities; `popf.metrics` measures both. `save` and `load`
keep models in files that are safe to share.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from popf.density.classifier import KNNOPFClassifier
    from popf.density.clustering import OPFClustering
    from popf.density.outliers import OPFOutlierDetector
    from popf.forest.classifier import OPFClassifier
    from popf.forest.pruning import prune
    from popf.forest.semi_supervised import SemiSupervisedOPFClassifier
    from popf.forest.spanning_tree import minimum_spanning_tree, single_linkage
    from popf.io import load, save
    from popf.probability.classifier import POPFClassifier

__all__ = [
    "KNNOPFClassifier",
    "OPFClassifier",
    "OPFClustering",
    "OPFOutlierDetector",
    "POPFClassifier",
    "SemiSupervisedOPFClassifier",
    "__version__",
    "load",
    "minimum_spanning_tree",
    "prune",
    "save",
    "single_linkage",
]
__version__ = "0.1.0"

# What is imported when it is first asked for: the command line's help needs none of it.
_HOMES = {
    "KNNOPFClassifier": "popf.density",
    "OPFClassifier": "popf.forest",
    "OPFClustering": "popf.density",
    "OPFOutlierDetector": "popf.density",
    "POPFClassifier": "popf.probability",
    "SemiSupervisedOPFClassifier": "popf.forest",
    "load": "popf.io",
    "minimum_spanning_tree": "popf.forest",
    "prune": "popf.forest",
    "save": "popf.io",
    "single_linkage": "popf.forest",
}


def __getattr__(name: str) -> Any:
    if name == "io":
        return import_module("popf.io")
    if name not in _HOMES:
        raise AttributeError(f"module 'popf' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
