"""Models to save, and how a loaded one is compared with what was saved."""

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import popf
from popf import POPFClassifier
from popf.forest import OptimumPathForest

CANCER_X, CANCER_Y = load_breast_cancer(return_X_y=True)
CANCER_X = CANCER_X[:, :5]
IRIS_X, IRIS_Y = load_iris(return_X_y=True)


def again(model, path):
    popf.save(model, path)
    return popf.load(path)


def attributes(model):
    """Public fitted attributes, as a user sees them."""
    names = [name for name in dir(type(model)) if name.endswith("_") and name[0] != "_"]
    names += [name for name in vars(model) if name.endswith("_") and name[0] != "_"]
    return {name: getattr(model, name) for name in sorted(set(names))}


def assert_same_value(one, other):
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.flags.c_contiguous == other.flags.c_contiguous
        if one.dtype.kind in "OU":
            assert one.tolist() == other.tolist()
        else:
            assert one.tobytes() == other.tobytes()
    elif hasattr(one, "_asdict"):
        assert_same_value(one._asdict(), other._asdict())
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_same_value(one[key], other[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same_value(a, b)
    elif hasattr(one, "get_params"):
        assert repr(one) == repr(other)
        assert_same_value(attributes(one), attributes(other))
    elif isinstance(one, OptimumPathForest):
        names = ("labels", "costs", "predecessors", "lengths", "roots", "prototypes", "samples")
        for name in (*names, "codes", "classes", "algorithm", "spanning_tree"):
            assert_same_value(getattr(one, name), getattr(other, name))
    elif type(one).__module__.startswith("popf"):
        assert_same_value(vars(one), vars(other))
    else:
        assert one == other


def assert_same_model(one, other, X):
    """Everything a user can ask of a model gives the same, to the bit."""
    assert type(one) is type(other)
    assert repr(one) == repr(other)
    assert_same_value(attributes(one), attributes(other))
    methods = ["predict", "decision_function", "predict_proba", "predict_log_proba"]
    methods += ["conquer", "path_costs_by_class"]
    for method in methods:
        if hasattr(one, method):
            assert_same_value(getattr(one, method)(X), getattr(other, method)(X))
    if getattr(one, "linear_map_", None) is None:
        same_X = X if hasattr(one, "explain") else np.asarray(X)  # the inner forest knows no names
        paths, twins = (getattr(model, "opf_", model).explain(same_X) for model in (one, other))
        assert_same_value([vars(path) for path in paths], [vars(path) for path in twins])


def consumers(n=60):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "demand": rng.gamma(2.0, 50.0, n),
            "peak": rng.normal(10.0, 2.0, n),
            "tariff": np.array(["low", "high", "night"], dtype=object)[rng.integers(0, 3, n)],
            "phases": rng.integers(1, 4, n),
            "street": np.array(["a", "b"], dtype=object)[rng.integers(0, 2, n)],
        }
    )
    frame.loc[3, "demand"] = np.nan
    frame.loc[5, "tariff"] = np.nan
    stolen = np.array(["no", "yes"])[(frame["peak"] > 10).astype(int)]
    return frame, stolen


def columns_by_kind():
    impute = make_pipeline(SimpleImputer(), StandardScaler())
    fill = SimpleImputer(strategy="most_frequent")
    onehot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = ColumnTransformer(
        [
            ("numbers", impute, ["demand", "peak"]),
            ("text", make_pipeline(fill, onehot), ["tariff", "street"]),
        ],
        remainder="passthrough",
    )
    return make_pipeline(columns, POPFClassifier())
