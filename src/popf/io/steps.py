"""The estimators that a model may be made of: a fixed list, by name.

Forests come from `popf.io.forests`; the steps of scikit-learn before them are kept by their
parameters and fitted attributes. Names in a file find nothing that is not listed here.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from popf.io import forests
from popf.io.codec import KIND, Decoder, Encoder
from popf.io.forests import require


class Step(NamedTuple):
    """An estimator that can be saved.

    Attributes
    ----------
    module : str
        Where its class is.
    attributes : frozenset of str
        What fitting may give it.
    check : callable
        Raises an error if the attributes do not fit together.
    """

    module: str
    attributes: frozenset[str]
    check: Callable[[Any], None]


def encode_estimator(estimator: Any, encoder: Encoder, where: str) -> dict[str, Any]:
    """Encode an estimator, fitted or not.

    Parameters
    ----------
    estimator : object
    encoder : Encoder
    where : str
        What to call it in messages.

    Returns
    -------
    dict
    """
    name = type(estimator).__name__
    if name not in KNOWN or type(estimator) is not _class(name):
        raise TypeError(
            f"{where} is {_shown(estimator)}, which popf.save does not know. It saves OPFClassifier and "
            f"POPFClassifier, alone or in a Pipeline after {', '.join(STEPS)}. Use one of these, or keep "
            "the model by skops or pickle, at your own risk: opening such files can run code."
        )
    parameters = estimator.get_params(deep=False)
    entry: dict[str, Any] = {KIND: "estimator", "class": name}
    within = "step {!r}" if where == TOP else f"{{!r}} of {where}"
    if name == "Pipeline":
        steps = parameters.pop("steps")
        entry["steps"] = [
            [label, encoder.value(step, within.format(label))] for label, step in steps
        ]
    elif name == "ColumnTransformer":
        transformers = parameters.pop("transformers")
        # A function that picks columns is replaced by what it has picked.
        picked = getattr(estimator, "_columns", [at for _, _, at in transformers])
        entry["transformers"] = [
            [
                label,
                encoder.value(one, within.format(label)),
                encoder.value(at, f"columns of {label!r}"),
            ]
            for (label, one, _), at in zip(transformers, picked, strict=True)
        ]
    entry["parameters"] = {
        key: _parameter(value, encoder, key, where) for key, value in parameters.items()
    }
    if name in FORESTS:
        if estimator.__sklearn_is_fitted__():
            state_of = FORESTS[name][0]
            entry["state"] = state_of(estimator, encoder, where)
            if hasattr(estimator, "feature_names_in_"):
                entry["feature_names"] = estimator.feature_names_in_.tolist()
        return entry
    forests.refuse_unknown(estimator, KNOWN[name].attributes | COMMON, where)
    entry["fitted"] = {
        key: encoder.value(value, f"{key} of {where}")
        for key, value in vars(estimator).items()
        if key in KNOWN[name].attributes | COMMON
    }
    return entry


def decode_estimator(entry: dict[str, Any], decoder: Decoder) -> Any:
    """Make an estimator from what `encode_estimator` gave."""
    name = entry["class"]
    require(name in KNOWN, f"an estimator {str(name)[:80]!r}")
    make = _class(name)
    parameters = {key: decoder.value(value) for key, value in entry["parameters"].items()}
    if name == "Pipeline":
        parameters["steps"] = [(label, decoder.value(step)) for label, step in entry["steps"]]
    if name == "ColumnTransformer":
        parameters["transformers"] = [
            (label, decoder.value(one), decoder.value(at))
            for label, one, at in entry["transformers"]
        ]
    for key in parameters:
        require(key in make._get_param_names(), f"{name} has no parameter {key[:80]!r}")
    estimator = make(**parameters)
    if name in FORESTS:
        if "state" in entry:
            FORESTS[name][1](estimator, entry["state"], decoder)
            _set_names(estimator, entry.get("feature_names"))
        return estimator
    if make.__module__.startswith("sklearn."):
        estimator._validate_params()
    else:
        getattr(estimator, "_check_parameters", bool)()
    fitted = {key: decoder.value(value) for key, value in entry["fitted"].items()}
    for key, value in fitted.items():
        require(key in KNOWN[name].attributes | COMMON, f"{name} has no attribute {key[:80]!r}")
        setattr(estimator, key, value)
    if fitted.keys() - {"_sklearn_output_config"} or name == "Pipeline":
        _check_common(estimator)
        KNOWN[name].check(estimator)
    return estimator


def final_estimator(model: Any) -> Any:
    """Give the classifier at the end of a pipeline, or the model itself."""
    steps = getattr(model, "steps", None)
    return model if steps is None else steps[-1][1]


def _class(name: str) -> Any:
    return getattr(import_module(KNOWN[name].module), name)


def _shown(value: Any) -> str:
    return f"a {type(value).__module__.partition('.')[0]} {type(value).__name__}"


def _parameter(value: Any, encoder: Encoder, key: str, where: str) -> Any:
    if isinstance(value, np.random.RandomState | np.random.Generator):
        raise TypeError(
            f"{key} of {where} is a generator of random numbers, whose state is not saved: "
            f"model.set_params({key}=0) before saving, as it has served its purpose."
        )
    if callable(value) and not isinstance(value, type | BaseEstimator):
        raise TypeError(
            f"{key} of {where} is a function, and a model file holds no code. Use one of the names that "
            f"{key} takes, or keep the model by pickle, at your own risk."
        )
    return encoder.value(value, f"{key} of {where}" if isinstance(value, BaseEstimator) else key)


def _set_names(estimator: Any, names: Any) -> None:
    if names is None:
        return
    require(
        isinstance(names, list)
        and len(names) == estimator.n_features_in_
        and all(type(name) is str for name in names),
        "names of its features",
    )
    estimator.feature_names_in_ = np.array(names, dtype=object)


def _check_common(estimator: Any) -> None:
    config = getattr(estimator, "_sklearn_output_config", {})
    require(
        config in ({}, *({"transform": to} for to in ("default", "pandas", "polars"))), "output"
    )
    if "n_features_in_" in vars(estimator):
        require(type(estimator.n_features_in_) is int, "its number of features")
    if "feature_names_in_" in vars(estimator):
        _set_names(estimator, estimator.feature_names_in_.tolist())


def _vectors(*names: str) -> Callable[[Any], None]:
    """Make a check that attributes hold one number a feature, or are None."""

    def check(estimator: Any) -> None:
        for name in names:
            vector = getattr(estimator, name)
            require(
                vector is None
                or (vector.shape == (estimator.n_features_in_,) and vector.dtype.kind == "f"),
                f"{name} of {type(estimator).__name__}",
            )

    return check


def _check_imputer(imputer: Any) -> None:
    require(imputer.statistics_.shape == (imputer.n_features_in_,), "statistics of an imputer")
    require(isinstance(imputer._fit_dtype, np.dtype), "the dtype of an imputer")
    require(
        imputer.indicator_ is None or type(imputer.indicator_).__name__ == "MissingIndicator",
        "its indicator",
    )


def _check_indicator(indicator: Any) -> None:
    features = indicator.features_
    require(features.ndim == 1 and features.dtype.kind == "i", "features of an indicator")
    require(
        ((features >= 0) & (features < indicator._n_features)).all(), "features of an indicator"
    )


def _check_encoder(encoder: Any) -> None:
    """See that numbers of categories stay in range: compiled code relies on it."""
    categories, n = encoder.categories_, encoder.n_features_in_
    require(isinstance(categories, list) and len(categories) == n > 0, "categories")
    for known in categories:
        require(known.ndim == 1 and len(known) > 0, "categories")
        if known.dtype.kind not in "OU":
            finite = known[~np.isnan(known)] if known.dtype.kind == "f" else known
            require((finite[1:] > finite[:-1]).all(), "categories out of order")
            one_missing = len(known) - len(finite) <= 1  # which comes last
            require(one_missing and np.array_equal(known[: len(finite)], finite), "categories")
    n_groups = [len(known) for known in categories]
    if encoder._infrequent_enabled:
        groups = encoder._default_to_infrequent_mappings
        rare = encoder._infrequent_indices
        require(len(groups) == len(rare) == n, "groups of categories")
        missing = getattr(encoder, "_missing_indices", {})
        for i in range(n):
            if groups[i] is None:
                require(rare[i] is None, "groups of categories")
                continue
            n_known = n_groups[i] - (i in missing)
            require(groups[i].shape == (n_known,), "groups of categories")
            require(groups[i].dtype.kind == "i" and groups[i].min() >= 0, "groups of categories")
            n_groups[i] = n_known - len(rare[i]) + 1
            require(groups[i].max() == n_groups[i] - 1, "groups of categories")
    dropped = getattr(encoder, "_drop_idx_after_grouping", None)
    if dropped is not None:
        for at, stop in zip(dropped.tolist(), n_groups, strict=True):
            require(at is None or (type(at) is int and 0 <= at < stop), "dropped categories")
    if type(encoder).__name__ == "OneHotEncoder":
        encoder._n_features_outs = encoder._compute_n_features_outs()


def _check_columns(transformer: Any) -> None:
    for label, one, _ in transformer.transformers_:
        require(type(label) is str, "a transformer without a name")
        known = type(one).__name__ in KNOWN and type(one).__name__ not in FORESTS
        require(one in ("drop", "passthrough") if isinstance(one, str) else known, "a transformer")
    indices = transformer._transformer_to_input_indices
    for at in indices.values():
        require(all(type(i) is int and 0 <= i < transformer.n_features_in_ for i in at), "columns")


def _check_identity(transformer: Any) -> None:
    require(transformer.func is None and transformer.inverse_func is None, "a function")


def _check_pipeline(pipeline: Any) -> None:
    for label, _ in pipeline.steps:
        require(type(label) is str, "a step without a name")


def _check_map(transformer: Any) -> None:
    n = transformer.n_features_in_
    _vectors("mean_", "scale_")(transformer)
    if hasattr(transformer, "effect_sizes_"):
        _vectors("effect_sizes_")(transformer)
    if hasattr(transformer, "_covariance"):
        spectrum = transformer._covariance
        shape = (len(spectrum.variances), n)
        require(spectrum.directions.shape == shape and spectrum.variances.ndim == 1, "directions")
        require((spectrum.variances > 0.0).all() and spectrum.rest > 0.0, "variances")
    if hasattr(transformer, "_directions"):
        require(transformer._directions.shape == (len(transformer.stretches_), n), "directions")


def _step(module: str, attributes: str, check: Callable[[Any], None]) -> Step:
    return Step(module, frozenset(attributes.split()), check)


COMMON = frozenset(("n_features_in_", "feature_names_in_", "_sklearn_output_config"))
TOP = "the model"
_PREPROCESSING, _IMPUTE = "sklearn.preprocessing", "sklearn.impute"
_GROUPS = "categories_ _infrequent_enabled _infrequent_indices _default_to_infrequent_mappings"

#: What may stand before a forest.
STEPS = {
    "StandardScaler": _step(
        _PREPROCESSING, "mean_ var_ scale_ n_samples_seen_", _vectors("mean_", "var_", "scale_")
    ),
    "MinMaxScaler": _step(
        _PREPROCESSING,
        "scale_ min_ data_min_ data_max_ data_range_ n_samples_seen_",
        _vectors("scale_", "min_", "data_min_", "data_max_", "data_range_"),
    ),
    "RobustScaler": _step(_PREPROCESSING, "center_ scale_", _vectors("center_", "scale_")),
    "SimpleImputer": _step(
        _IMPUTE, "statistics_ indicator_ _fit_dtype _fill_dtype", _check_imputer
    ),
    "OneHotEncoder": _step(
        _PREPROCESSING,
        f"{_GROUPS} drop_idx_ _drop_idx_after_grouping _n_features_outs",
        _check_encoder,
    ),
    "OrdinalEncoder": _step(_PREPROCESSING, f"{_GROUPS} _missing_indices", _check_encoder),
    "ColumnTransformer": _step(
        "sklearn.compose",
        "transformers_ output_indices_ sparse_output_ _columns _remainder _n_features "
        "_transformer_to_input_indices _transformers_feature_names_out",
        _check_columns,
    ),
    "Pipeline": _step("sklearn.pipeline", "", _check_pipeline),
    "EffectSizeWeights": _step(
        "popf.probability.linear_maps", "mean_ scale_ effect_sizes_", _check_map
    ),
    "WithinClassWhitening": _step(
        "popf.probability.linear_maps",
        "mean_ scale_ shrinkage_ variances_ directions_ rest_",
        _check_map,
    ),
    "DiscriminantStretch": _step(
        "popf.probability.linear_maps",
        "mean_ scale_ shrinkage_ variances_ directions_ rest_ stretches_ stretched_",
        _check_map,
    ),
}

STEPS["TablePreparation"] = _step(
    "popf.table_models.preparation",
    "fill_numbers_ mean_ scale_ fill_categories_ known_ n_known_ rows_",
    lambda preparation: preparation.__setstate__(vars(preparation)),
)

#: Parts that scikit-learn makes by itself: what `add_indicator` and `"passthrough"` stand for.
PARTS = {
    "MissingIndicator": _step(_IMPUTE, "features_ _n_features _precomputed", _check_indicator),
    "FunctionTransformer": _step(_PREPROCESSING, "", _check_identity),
}

FORESTS: dict[str, tuple[Callable[..., dict[str, Any]], Callable[..., None]]] = {
    "OPFClassifier": (forests.forest_state, forests.restore_forest),
    "POPFClassifier": (forests.probability_state, forests.restore_probability),
}

KNOWN = {
    **STEPS,
    **PARTS,
    "OPFClassifier": _step("popf.forest", "", lambda model: None),
    "POPFClassifier": _step("popf.probability", "", lambda model: None),
}
