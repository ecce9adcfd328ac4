"""The parameters of `POPFClassifier`: checked before it works, and as options of the fit."""

from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from popf import solvers
from popf.probability.features import LINEAR_MAPS
from popf.probability.pooling import FOREST, PARTS
from popf.solvers import solver_of
from popf.solvers.base import check_box

if TYPE_CHECKING:
    from popf.forest.metrics import Metric

METHODS = ("pooled", "forest", "paper")
MAPS = ("auto", *LINEAR_MAPS)


class Options(NamedTuple):
    """What is asked for; `smoothing` is that of the targets."""

    parts: tuple[str, ...]  # "forest", and with features "linear" and "spline"
    squash: str | bool
    linear_map: Any
    background: bool
    class_bandwidths: bool
    smoothing: float


def check_parameters(model: Any) -> solvers.Solver:
    """Raise an error unless all parameters make sense; return the solver."""
    check_box(model.box)
    if model.method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}, not {model.method!r}.")
    threshold: Any = model.threshold
    if not (isinstance(threshold, Real) and 0.0 < float(threshold) < 1.0):
        raise ValueError(f"threshold must be a number between 0 and 1, not {threshold!r}.")
    smoothing: Any = model.smoothing
    if smoothing is not None and not (
        isinstance(smoothing, Real) and 0.0 < float(smoothing) < np.inf
    ):
        raise ValueError(f"smoothing must be None or a positive number, not {smoothing!r}.")
    if not (model.squash == "auto" or isinstance(model.squash, bool | np.bool_)):
        raise ValueError(f"squash must be 'auto', True or False, not {model.squash!r}.")
    for name in ("background", "class_bandwidths"):
        value = getattr(model, name)
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name} must be True or False, not {value!r}.")
    _check_map(model.linear_map, model.method, model.metric)
    return solver_of(model.solver)


def options_of(model: Any, metric: "Metric") -> "Options":
    """Collect the options that checked parameters ask for."""
    features = isinstance(model.metric, str) and not metric.precomputed
    return Options(
        PARTS if model.method == "pooled" and features else (FOREST,),
        model.squash,
        None if metric.precomputed else model.linear_map,
        model.background,
        model.class_bandwidths,
        0.5 if model.smoothing is None else model.smoothing,
    )


def check_classes(n_classes: int, method: str) -> None:
    """Raise an error unless the method serves so many classes."""
    if n_classes > 2 and method == "paper":
        raise ValueError(
            f"Only binary classification is supported by method='paper', but y has {n_classes} "
            "classes: use method='pooled' or 'forest'."
        )


def _check_map(choice: Any, method: str, metric: Any) -> None:
    """Raise an error unless `choice` is None, the name of a map, or a transformer, and can be had."""
    if choice is None or (isinstance(choice, str) and choice == "auto"):
        return
    named = isinstance(choice, str)
    if named and choice not in MAPS:
        raise ValueError(
            f"linear_map must be None, one of {MAPS} or a transformer, not {choice!r}."
        )
    transformer = hasattr(choice, "fit") and hasattr(choice, "transform")
    if not named and (isinstance(choice, type) or not transformer):
        raise TypeError(f"linear_map must be None, one of {MAPS} or a transformer, not {choice!r}.")
    if method == "paper":
        raise ValueError(
            f"linear_map={choice!r} is for method='pooled' and 'forest': for method='paper' put the map "
            "before POPFClassifier in a pipeline."
        )
    if isinstance(metric, str) and metric == "precomputed":
        raise ValueError(
            f"linear_map={choice!r} maps features, but with metric='precomputed' X holds distances: "
            "use linear_map=None, or give features and another metric."
        )
