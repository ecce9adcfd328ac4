"""popf: Optimum-Path Forest classification for scikit-learn.

`OPFClassifier` predicts labels, `POPFClassifier` predicts probabilities, and `popf.metrics` evaluates both.
`PlattOPFClassifier` is the P-OPF of the paper.
`save` and `load` store models in files that are safe to share.
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
    from popf.paper.classifier import PlattOPFClassifier
    from popf.probability.classifier import POPFClassifier
    from popf.probability.consumption import ConsumptionFeatures
    from popf.probability.table_encoder import TableEncoder

__all__ = [
    "ConsumptionFeatures",
    "KNNOPFClassifier",
    "OPFClassifier",
    "OPFClustering",
    "OPFOutlierDetector",
    "POPFClassifier",
    "PlattOPFClassifier",
    "SemiSupervisedOPFClassifier",
    "TableEncoder",
    "__version__",
    "load",
    "minimum_spanning_tree",
    "prune",
    "save",
    "single_linkage",
]
__version__ = "0.1.0"

# Where each name is imported from on first use, so that `import popf` and `popf --help` stay fast.
_LAZY_IMPORTS = {
    "ConsumptionFeatures": "popf.probability",
    "KNNOPFClassifier": "popf.density",
    "OPFClassifier": "popf.forest",
    "OPFClustering": "popf.density",
    "OPFOutlierDetector": "popf.density",
    "POPFClassifier": "popf.probability",
    "PlattOPFClassifier": "popf.paper",
    "SemiSupervisedOPFClassifier": "popf.forest",
    "TableEncoder": "popf.probability",
    "load": "popf.io",
    "minimum_spanning_tree": "popf.forest",
    "prune": "popf.forest",
    "save": "popf.io",
    "single_linkage": "popf.forest",
}
# Imported on first use too; `popf.dask`, which needs an extra, is imported by its name.
_SUBMODULES = (
    "datasets",
    "display",
    "experiment",
    "forest",
    "io",
    "metrics",
    "mlflow",
    "monitoring",
    "paper",
    "probability",
    "report",
    "table_models",
    "tables",
)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"popf.{name}")
    if name not in _LAZY_IMPORTS:
        raise AttributeError(f"module 'popf' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_LAZY_IMPORTS[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES])
