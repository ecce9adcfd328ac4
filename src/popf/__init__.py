"""popf: Optimum-Path Forest classification for scikit-learn.

`OPFClassifier` gives labels, `POPFClassifier` probabilities; `popf.metrics` measures both. `save` and `load`
keep models in files that are safe to share.
"""

from typing import TYPE_CHECKING, Any

from popf.forest import OPFClassifier
from popf.probability import POPFClassifier

if TYPE_CHECKING:
    from popf.io import load, save

__version__ = "0.1.0"
__all__ = ["OPFClassifier", "POPFClassifier", "__version__", "load", "save"]


def __getattr__(name: str) -> Any:
    # What is seldom needed is imported when it is asked for.
    if name in ("load", "save", "io"):
        from importlib import import_module

        module = import_module("popf.io")
        return module if name == "io" else getattr(module, name)
    raise AttributeError(f"module 'popf' has no attribute {name!r}")
