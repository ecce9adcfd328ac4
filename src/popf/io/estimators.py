"""The estimators that a model file may hold: a fixed list, by name.

popf's own are kept by their state, as `popf.forest.state` says; the scalers of scikit-learn by their parameters
and public fitted attributes. Names in a file find nothing that is not listed here.
"""

from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from popf.forest.state import Fields, read_features
from popf.io.codec import KIND, Decoder, Encoder
from popf.solvers import SOLVERS

#: What a model may end in.
MODELS = {
    "OPFClassifier": "popf.forest.classifier",
    "POPFClassifier": "popf.probability.classifier",
    "SemiSupervisedOPFClassifier": "popf.forest.semi_supervised",
    "OPFClustering": "popf.density.clustering",
    "OPFOutlierDetector": "popf.density.outliers",
    "KNNOPFClassifier": "popf.density.classifier",
}
OWN = {
    **MODELS,
    "EffectSizeWeights": "popf.probability.linear_maps",
    "WithinClassWhitening": "popf.probability.linear_maps",
    "DiscriminantStretch": "popf.probability.linear_maps",
    "TablePreparation": "popf.table_models.preparation",
}
SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")
MODULES = {**OWN, **dict.fromkeys(SCALERS, "sklearn.preprocessing"), "Pipeline": "sklearn.pipeline"}

# How to run a model is no part of it: a file must not start threads or write to a folder.
NOT_KEPT = ("n_jobs", "working_memory", "device", "memory", "verbose")
# Which metadata a fit asks for does not matter any more; the version of scikit-learn is in the header.
ONLY_IN_MEMORY = ("_metadata_request", "_sklearn_version")
TOP = "the model"

#: What skops has to trust to open popf's estimators, wherever in a pipeline they are.
trusted_types = [f"{module}.{name}" for name, module in OWN.items()] + [
    f"{solver.__module__}.{solver.__name__}" for solver in SOLVERS.values()
]


def encode_estimator(estimator: Any, encoder: Encoder, where: str) -> dict[str, Any]:
    """Encode an estimator; `where` is what to call it in messages."""
    name = type(estimator).__name__
    if name not in MODULES or type(estimator) is not _class(name):
        raise TypeError(_refusal(estimator, where))
    state = dict(estimator.__getstate__())  # which may be its own dict
    parameters = {key: state.pop(key) for key in estimator.get_params(deep=False)}
    entry: dict[str, Any] = {KIND: "estimator", "class": name}
    if name == "Pipeline":
        within = "step {!r}" if where == TOP else f"{{!r}} of {where}"
        entry["steps"] = [
            [label, encoder.value(step, within.format(label))]
            for label, step in parameters.pop("steps")
        ]
    entry["parameters"] = {
        key: encoder.value(value, f"{key} of {where}")
        for key, value in parameters.items()
        if key not in NOT_KEPT
    }
    state = {key: value for key, value in state.items() if key not in ONLY_IN_MEMORY}
    for key in state:
        if not _is_fitted_value(key, type(estimator)):
            raise TypeError(
                f"{where}, a {name}, has an attribute {key!r} that popf.save does not know. Delete it, or "
                "keep the model by skops."
            )
    entry["fitted"] = {
        key: encoder.value(value, f"{key} of {where}") for key, value in state.items()
    }
    return entry


def decode_estimator(entry: dict[str, Any], decoder: Decoder) -> Any:
    """Make an estimator from what `encode_estimator` gave."""
    name = entry["class"]
    if name not in MODULES:
        raise ValueError(f"an estimator {str(name)[:80]!r}")
    make = _class(name)
    parameters = {key: decoder.value(value) for key, value in entry["parameters"].items()}
    known = set(signature(make).parameters) - {"steps", *NOT_KEPT}
    for key in parameters:
        if key not in known:
            raise ValueError(f"{name} takes no parameter {key[:80]!r} from a file")
    if name == "Pipeline":
        steps = [(str(label), decoder.value(step)) for label, step in entry["steps"]]
        return make(steps, **parameters)
    fitted = {key: decoder.value(value) for key, value in entry["fitted"].items()}
    for key in fitted:
        if not _is_fitted_value(key, make):
            raise ValueError(f"{name} has no {key[:80]!r}")
    if name in SCALERS and fitted:
        _check_scaler(Fields(fitted, name), fitted)
    estimator = make(**parameters)
    estimator.__setstate__({**estimator.__getstate__(), **fitted})
    return estimator


def final_estimator(model: Any) -> Any:
    """Give the estimator at the end of a pipeline, or the model itself."""
    steps = getattr(model, "steps", None)
    return model if steps is None else steps[-1][1]


def _class(name: str) -> Any:
    return getattr(import_module(MODULES[name]), name)


def _is_fitted_value(name: str, kind: type) -> bool:
    """Tell whether it is a public name of what is fitted, and hides nothing of the class."""
    return name.endswith("_") and not name.startswith("_") and not hasattr(kind, name)


def _check_scaler(fields: Fields, fitted: dict[str, Any]) -> None:
    """Raise ValueError unless a scaler has one number a feature in every array."""
    features = read_features(fields)
    for name, value in fitted.items():
        if name in features or value is None or isinstance(value, int | float | np.number):
            continue
        if not (
            isinstance(value, np.ndarray)
            and value.shape == (features["n_features_in_"],)
            and value.dtype.kind in "fiu"
        ):
            raise fields.refuse(name, "one number a feature")


def _refusal(value: Any, where: str) -> str:
    """Say why something cannot be saved, and what to do."""
    kind = type(value)
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return (
            f"{where} is a generator of random numbers, whose state is not saved: give a number instead, by "
            "model.set_params, as it has served its purpose."
        )
    if callable(value) and not isinstance(value, type | BaseEstimator):
        return (
            f"{where} is a function, {getattr(value, '__name__', kind.__name__)!r}, and a model file holds no "
            "code: use what has a name instead, or keep the model by pickle, at your own risk."
        )
    return (
        f"{where} is a {kind.__module__.partition('.')[0]} {kind.__name__}, which popf.save does not know. It "
        f"saves the estimators of popf, alone or in a Pipeline after {', '.join(SCALERS)} or popf's "
        "own transformers. Keep other models by skops: skops.io.dump(model, path), and "
        "skops.io.load(path, trusted=popf.io.trusted_types)."
    )
