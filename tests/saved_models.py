"""Models to save, and how a loaded one is compared with what was saved."""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris

import popf
from popf.density.forest import DensityForest
from popf.forest import OptimumPathForest
from popf.io.models import NOT_KEPT
from popf.state import to_plain

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
    names = set(names) - {
        "competition_"
    }  # made from forest and pool, and tested by the predictions
    return {name: getattr(model, name) for name in sorted(names) if hasattr(model, name)}


def kept(model):
    """Parameters but those that say how to run, as text: functions and arrays have no other order."""
    parameters = model.get_params(deep=False)
    return {key: repr(value) for key, value in parameters.items() if key not in NOT_KEPT}


def assert_same_value(one, other):
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.flags.c_contiguous == other.flags.c_contiguous
        content = np.ndarray.tolist if one.dtype.kind in "OU" else np.ndarray.tobytes
        assert content(one) == content(other)
    elif hasattr(one, "_asdict"):
        assert_same_value(one._asdict(), other._asdict())
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_same_value(one[key], other[key])
    elif isinstance(one, list | tuple):
        for a, b in zip(one, other, strict=True):
            assert_same_value(a, b)
    elif hasattr(one, "get_params"):
        assert kept(one) == kept(other)
        assert_same_value(attributes(one), attributes(other))
    elif isinstance(one, OptimumPathForest):
        names = ("labels", "costs", "predecessors", "lengths", "roots", "prototypes", "samples")
        for name in (*names, "codes", "classes", "algorithm", "spanning_tree"):
            assert_same_value(getattr(one, name), getattr(other, name))
    elif isinstance(one, DensityForest):
        assert_same_value(to_plain(one), to_plain(other))
    elif type(one).__module__.startswith("popf"):
        assert_same_value(vars(one), vars(other))
    else:
        assert one == other


def assert_same_model(one, other, X):
    """Everything a user can ask of a model gives the same, to the bit."""
    assert type(one) is type(other)
    assert kept(one) == kept(other)
    assert_same_value(attributes(one), attributes(other))
    methods = ["predict", "decision_function", "predict_proba", "predict_log_proba"]
    methods += ["conquer", "path_costs_by_class", "score_samples"]
    for method in methods:
        if hasattr(one, method):
            assert_same_value(getattr(one, method)(X), getattr(other, method)(X))
    if hasattr(one, "explain"):
        paths, twins = (model.explain(X) for model in (one, other))
        assert_same_value([vars(path) for path in paths], [vars(path) for path in twins])
