"""Save, load and describe models, and align frames with the columns that a model was fitted on.

Values that JSON supports are written as they are. All others become an object with a key ``"!"`` that names one
of a fixed list of kinds; arrays go to the container. Estimators are stored by their parameters and fitted
attributes, as `popf.state` describes them. Only the classes listed here can be created from a file.
"""

import json
import math
import os
import platform
import re
import sys
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from inspect import signature
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from popf.files import replacing
from popf.io import container
from popf.io.container import Arrays, ModelFileError, can_hold
from popf.paper import SOLVERS
from popf.state import Float, OrNone, Spec, StateMixin, read_fields, specs_of

# Number of names listed in a message.
SHOWN = 10
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")
#: Estimators that a model may end in, and their modules.
MODELS = {
    "OPFClassifier": "popf.forest.classifier",
    "POPFClassifier": "popf.probability.classifier",
    "SemiSupervisedOPFClassifier": "popf.forest.semi_supervised",
    "OPFClustering": "popf.density.clustering",
    "OPFOutlierDetector": "popf.density.outliers",
    "KNNOPFClassifier": "popf.density.classifier",
    "PlattOPFClassifier": "popf.paper.classifier",
}
OWN = {
    **MODELS,
    "ConsumptionFeatures": "popf.probability.consumption",
    "TableEncoder": "popf.probability.table_encoder",
    **{solver.__name__: solver.__module__ for solver in SOLVERS.values()},
}
SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")
MODULES = {**OWN, **dict.fromkeys(SCALERS, "sklearn.preprocessing"), "Pipeline": "sklearn.pipeline"}
_PER_FEATURE = (
    *("mean_", "var_", "center_", "min_", "max_abs_"),
    *("data_min_", "data_max_", "data_range_"),
)
#: Fitted attributes of these scalers.
SCALED: dict[str, Spec] = {
    **specs_of(StateMixin),
    **dict.fromkeys(_PER_FEATURE, OrNone(Float("n_features"))),
    "scale_": OrNone(Float("n_features", low=5e-324)),
    "n_samples_seen_": Float(low=0.0),
}

# Runtime settings are not part of a model: a file must not start threads or write to a folder.
NOT_KEPT = ("n_jobs", "working_memory", "device", "memory", "verbose")
# Metadata requests do not matter after fitting; the version of scikit-learn is in the header.
ONLY_IN_MEMORY = ("_metadata_request", "_sklearn_version")
TOP = "the model"
KIND = "!"
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}

#: The types that skops must trust to load popf's estimators, after any transformers of scikit-learn.
trusted_types = [*(f"{module}.{name}" for name, module in OWN.items()), "numpy.dtype"]


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    X: Any = None,
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Save a fitted model to a file that can be opened without running any code.

    The file is written atomically: if writing fails, an existing file is unchanged.

    Parameters
    ----------
    model : estimator of popf, or Pipeline
        A fitted estimator, or a pipeline of scikit-learn's scalers that ends in one.
    path : str or path-like
    X : frame or array, default=None
        Some training samples; the dtypes of their columns are stored in the file.
    facts : mapping, default=None
        Further facts to store, such as the source of the data: text, numbers, lists and dicts of these.

    Raises
    ------
    TypeError
        If something in the model cannot be saved, such as a function. skops may save it, see `trusted_types`.

    Examples
    --------
    >>> import os, tempfile
    >>> import popf, popf.io
    >>> model = popf.OPFClassifier().fit([[0.0], [1.0], [4.0]], ["a", "a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.popf")
    ...     popf.save(model, path, facts={"source": "a doctest"})
    ...     same, known = popf.load(path), popf.io.describe(path)
    >>> same.predict([[3.0]])
    array(['b'], dtype='<U1')
    >>> known["estimator"], known["classes"], known["class_counts"], known["facts"]
    ('OPFClassifier', ['a', 'b'], [2, 1], {'source': 'a doctest'})
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the name of a file, not {path!r}.")
    final = _final_estimator(model)
    encoder = Encoder()
    if type(final).__name__ not in MODELS:
        encoder.value(final, TOP)  # raises an error with a remedy for unknown types
        raise TypeError(f"{TOP} must end in a popf estimator, not in {final!r}.")
    check_is_fitted(final)
    try:
        noted = json.loads(json.dumps(dict(facts or {}), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"facts must be text, finite numbers, lists and dicts of these: {error}."
        ) from None
    header = {
        "popf_version": version("popf"),
        "saved": datetime.now(UTC).isoformat(timespec="seconds"),
        **facts_of(model, final, X),
        "libraries": {"python": platform.python_version(), **versions()},
        "facts": noted,
        "model": encoder.value(model, TOP),
    }
    with replacing(path) as file:
        container.write(file, header, encoder.arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model that was saved with `save`.

    The model predicts exactly as it did when it was saved. No code in the file is run, whoever wrote it: see
    :doc:`/models`. `n_jobs`, `working_memory` and `device` are not stored: set them after loading.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    The model, or the Pipeline.

    Raises
    ------
    popf.io.ModelFileError
        If the file is not a popf model, is damaged, or was written in the format of another version of popf.
    """
    header, arrays = container.read(path)
    try:
        decoder = Decoder(arrays)
        model = decoder.value(header["model"])
        if decoder.arrays:
            raise ValueError(f"array {next(iter(decoder.arrays))!r} is not used")
        final = _final_estimator(model)
        if type(final).__name__ not in MODELS:
            raise ValueError("it does not end in a popf estimator")
        check_is_fitted(final)
        _check_steps(model)
    except Exception as error:
        # The checksum is right, so the file was written by another version of popf, or with bad intent.
        raise ModelFileError(
            f"{path} is not damaged, but this popf ({version('popf')}) cannot load its model: "
            f"{container.brief(error)}."
        ) from error
    return model


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Describe a model file from its header, without loading the model.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    dict
        JSON-serialisable values: ``estimator``, ``steps``, ``parameters``, ``features`` (name and dtype of
        each, None where unknown), ``n_samples``, ``n_features``, ``classes``, ``class_counts``, ``saved``,
        ``popf_version``, ``libraries``, ``facts``, ``format_version``, ``file_bytes``, ``sha256``.
    """
    header, _ = container.read(path, only_header=True)
    header.pop("model", None)
    return header


def facts_of(model: Any, final: Any, X: Any) -> dict[str, Any]:
    """Describe a fitted model in plain values; `final` is its last step, `X` provides the column dtypes."""
    opf = getattr(final, "opf_", final)
    codes = opf.forest_.codes
    classes = opf.classes_.tolist() if hasattr(opf, "classes_") else []  # clusters have none
    names = getattr(model, "feature_names_in_", None)
    n_features = int(getattr(model, "n_features_in_", final.n_features_in_))
    dtypes = [None] * n_features if X is None else _column_dtypes(X)
    if len(dtypes) != n_features:
        raise ValueError(
            f"X has {len(dtypes)} columns, but the model was fitted on {n_features}: give training "
            "samples, all or some of them."
        )
    return {
        "estimator": type(final).__name__,
        "steps": [
            [label, step if isinstance(step, str) else type(step).__name__]
            for label, step in getattr(model, "steps", [])
        ],
        "parameters": {name: shown(value) for name, value in final.get_params(deep=False).items()},
        "n_samples": len(codes),
        "n_features": n_features,
        "n_prototypes": len(np.unique(opf.roots_)),
        "features": [
            {"name": None if names is None else str(names[i]), "dtype": dtype}
            for i, dtype in enumerate(dtypes)
        ],
        "classes": [shown(label) for label in classes],
        "class_counts": np.bincount(codes).tolist() if classes else [],
    }


def shown(value: Any) -> Any:
    """Return values that JSON supports as Python's, and the ``repr`` of all others."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if _is_plain(value) else repr(value)


def versions() -> dict[str, str]:
    """Return the versions of the libraries that a model depends on."""
    return {name: version(name) for name in LIBRARIES}


def _final_estimator(model: Any) -> Any:
    """Return the last step of a pipeline, or the model itself."""
    steps = getattr(model, "steps", None)
    return model if steps is None else steps[-1][1]


def _column_dtypes(frame: Any) -> list[Any]:
    """Return the dtypes of the columns as text."""
    schema: Any = getattr(frame, "schema", None)
    if hasattr(schema, "types"):  # pyarrow
        return [str(dtype) for dtype in schema.types]
    dtypes = getattr(frame, "dtypes", None)
    if dtypes is not None:
        return [str(dtype) for dtype in dtypes]
    array = np.asarray(frame)
    return [str(array.dtype)] * (array.shape[1] if array.ndim == 2 else 1)


class Encoder:
    """Encodes values and estimators as JSON, and collects their arrays."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}

    def value(self, value: Any, where: str) -> Any:
        """Encode a value; `where` names it in error messages and in the name of its array."""
        if isinstance(value, np.generic):
            value = value.item()
        if _is_plain(value):
            return value
        if type(value) is float:
            return {KIND: "float", "value": repr(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if type(value) in (list, tuple):
            items = [self.value(item, f"{where}[{i}]") for i, item in enumerate(value)]
            return items if type(value) is list else {KIND: "tuple", "items": items}
        if isinstance(value, dict) and all(type(key) is str and key != KIND for key in value):
            return {key: self.value(item, f"{key} of {where}") for key, item in value.items()}
        return self._object(value, where)

    def _array(self, array: NDArray[Any], where: str) -> dict[str, Any]:
        if array.dtype.kind == "O" and array.ndim == 1:
            items = [entry.item() if isinstance(entry, np.generic) else entry for entry in array]
            for entry in items:
                if not _is_plain(entry):
                    raise TypeError(
                        f"{where} holds {entry!r}, a {type(entry).__name__}; only text, finite numbers, "
                        "booleans and None can be saved. Convert such labels to text first."
                    )
            return {KIND: "objects", "items": items}
        kind = "array"
        if array.dtype.kind == "U" and array.ndim == 1:  # as code points, one row for each text
            kind, width = "text", max(1, array.dtype.itemsize // 4)
            array = array.astype(f"=U{width}").view(np.uint32).reshape(-1, width)
        if not can_hold(array.dtype) or array.ndim > 2:
            raise TypeError(
                f"{where} is an array of {array.dtype} in {array.ndim} dimensions, which popf.save "
                "does not support. Use numbers, booleans or text."
            )
        letters = re.sub(r"[^A-Za-z0-9]+", "_", where)
        name = f"{len(self.arrays):03d}_{letters[:100]}"
        self.arrays[name] = array
        return {KIND: kind, "name": name}

    def _object(self, value: Any, where: str) -> dict[str, Any]:
        """Encode an estimator or a solver by its parameters and fitted attributes."""
        name = type(value).__name__
        if name not in MODULES or type(value) is not _class(name):
            raise TypeError(_refusal(value, where))
        state = {
            key: each for key, each in value.__getstate__().items() if key not in ONLY_IN_MEMORY
        }
        parameters = {key: state.pop(key) for key in signature(type(value)).parameters}
        entry: dict[str, Any] = {KIND: "object", "class": name}
        if name == "Pipeline":
            within = "step {!r}" if where == TOP else f"{{!r}} of {where}"
            entry["steps"] = [
                [label, self.value(step, within.format(label))]
                for label, step in parameters.pop("steps")
            ]
        for key in state:
            if key not in _fitted_attributes(name):
                raise TypeError(
                    f"{where}, a {name}, has an attribute {key!r} that popf.save does not support. Delete "
                    "it, or save the model with skops."
                )
        entry["parameters"] = {
            key: self.value(each, f"{key} of {where}")
            for key, each in parameters.items()
            if key not in NOT_KEPT
        }
        entry["fitted"] = {
            key: self.value(each, f"{key} of {where}") for key, each in state.items()
        }
        return entry


def _is_plain(entry: Any) -> bool:
    """Return whether JSON supports a value: None, text, a boolean or a finite number."""
    finite = type(entry) is float and math.isfinite(entry)
    return finite or entry is None or type(entry) in (bool, int, str)


def _refusal(value: Any, where: str) -> str:
    """Explain why something cannot be saved, and what to do."""
    kind = type(value)
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return (
            f"{where} is a random number generator, whose state is not saved: replace it by an integer with "
            "model.set_params; the fitted model does not need it any more."
        )
    if callable(value) and not isinstance(value, type | BaseEstimator):
        return (
            f"{where} is a function, {getattr(value, '__name__', kind.__name__)!r}, and a model file holds no "
            "code: use a named option instead, or save the model with pickle, at your own risk."
        )
    return (
        f"{where} is a {kind.__module__.partition('.')[0]} {kind.__name__}, which popf.save does not support. "
        f"It saves popf's estimators, alone or in a Pipeline after {', '.join(SCALERS)}, or TableEncoder, "
        "which fills gaps and encodes text. Save other models with skops: skops.io.dump(model, path), and "
        "skops.io.load(path, trusted=popf.io.trusted_types)."
    )


class Decoder:
    """Decodes JSON and the arrays of the container, each used once, to values and estimators."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays

    def value(self, entry: Any) -> Any:
        """Decode a value."""
        if isinstance(entry, list):
            return [self.value(item) for item in entry]
        if not isinstance(entry, dict):
            return entry
        match entry.get(KIND):
            case None:
                return {key: self.value(item) for key, item in entry.items()}
            case "object":
                return self._object(entry)
            case "array" | "text" as kind:
                # Removed, so that two values cannot share an array, which one of them might change.
                array = self.arrays.pop(entry["name"])
                return _as_text(array) if kind == "text" else array
            case "objects":
                if not all(map(_is_plain, entry["items"])):
                    raise ValueError("an array of objects holds values other than text and numbers")
                objects = np.empty(len(entry["items"]), dtype=object)
                objects[:] = entry["items"]
                return objects
            case "tuple":
                return tuple(self.value(item) for item in entry["items"])
            case "float":
                return _FLOATS[entry["value"]]
            case kind:
                raise ValueError(f"it holds a value of unknown kind {str(kind)[:80]!r}")

    def _object(self, entry: dict[str, Any]) -> Any:
        name = entry["class"]
        if name not in MODULES:
            raise ValueError(f"it holds an unknown class {str(name)[:80]!r}")
        make = _class(name)
        parameters = {key: self.value(each) for key, each in entry["parameters"].items()}
        for key in parameters:
            if key not in signature(make).parameters or key in ("steps", *NOT_KEPT):
                raise ValueError(f"a file cannot set the parameter {key[:80]!r} of {name}")
        if name == "Pipeline":
            steps = [(str(label), self.value(step)) for label, step in entry["steps"]]
            return make(steps, **parameters)
        fitted, specs = {}, _fitted_attributes(name)
        for key, each in entry["fitted"].items():
            if key not in specs:
                raise ValueError(f"{name} has no attribute {key[:80]!r}")
            fitted[key] = self.value(each)
        made = make(**parameters)
        if name in SCALERS:
            read_fields({key: specs[key] for key in fitted}, fitted, name, {})
        if fitted:
            made.__setstate__({**made.__getstate__(), **fitted})
        if isinstance(made, StateMixin):
            made.check_parameters()
        return made


def _as_text(codes: NDArray[Any]) -> NDArray[Any]:
    """Convert rows of code points to text."""
    if codes.dtype != np.uint32 or codes.ndim != 2 or (codes > sys.maxunicode).any():
        raise ValueError("an array holds invalid text")
    return codes.view(f"=U{codes.shape[1]}")[:, 0]


def _class(name: str) -> Any:
    return getattr(import_module(MODULES[name]), name)


def _fitted_attributes(name: str) -> dict[str, Spec]:
    """Return the fitted attributes that a file may set, with their specifications."""
    if name in SCALERS:
        return SCALED
    return specs_of(_class(name)) if issubclass(_class(name), StateMixin) else {}


def _check_steps(model: Any) -> None:
    """Transform a row of gaps by each step of a pipeline, to find steps that do not fit each other."""
    steps = [step for _, step in getattr(model, "steps", []) if step not in (None, "passthrough")]
    for step, following in pairwise(steps):
        check_is_fitted(step)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the row has no names
            row = step.transform(np.full((1, step.n_features_in_), None))
        if row.shape[1] != following.n_features_in_:
            raise ValueError(f"a step makes {row.shape[1]} features, which the next does not take")
