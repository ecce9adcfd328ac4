"""Saved pipelines, and columns found by name."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import config_context
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from popf import OPFClassifier, POPFClassifier
from popf.io import align
from popf.probability.linear_maps import (
    DiscriminantStretch,
    EffectSizeWeights,
    WithinClassWhitening,
)
from saved_models import (
    CANCER_X,
    CANCER_Y,
    IRIS_X,
    IRIS_Y,
    again,
    assert_same_model,
    assert_same_value,
)

STEPS = [
    StandardScaler(with_mean=False),
    MinMaxScaler(feature_range=(-1, 1), clip=True),
    MaxAbsScaler(),
    RobustScaler(quantile_range=(10.0, 90.0)),
    EffectSizeWeights(),
    WithinClassWhitening(shrinkage=0.1),
    DiscriminantStretch(strength=2.0),
    make_pipeline(StandardScaler(), "passthrough", EffectSizeWeights()),
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
@pytest.mark.parametrize("names", [None, ["a", "b", "c", "d", "e"]])
def test_steps_before_a_forest_survive(step, names, model_path):
    X = CANCER_X if names is None else pd.DataFrame(CANCER_X, columns=names)
    model = Pipeline([("step", step), ("nothing", None), ("forest", OPFClassifier())])
    model.fit(X[::2], CANCER_Y[::2])
    loaded = again(model, model_path)
    assert_same_value(model[:-1].transform(X), loaded[:-1].transform(X))
    assert_same_model(model[-1], loaded[-1], model[:-1].transform(X))
    assert hasattr(loaded, "feature_names_in_") == (names is not None)
    loaded.fit(X[::2], CANCER_Y[::2])  # a loaded pipeline can learn anew
    assert_same_value(model.predict(X), loaded.predict(X))


def test_how_to_run_is_not_kept(model_path, tmp_path):
    steps = [("scale", StandardScaler()), ("forest", OPFClassifier(n_jobs=2, working_memory=7))]
    model = Pipeline(steps, memory=str(tmp_path / "cache"), verbose=True).fit(IRIS_X, IRIS_Y)
    loaded = again(model, model_path)
    assert loaded.memory is None
    assert loaded[-1].get_params() == OPFClassifier().get_params()


def test_a_pipeline_that_routed_weights_is_saved(model_path):
    weights = np.linspace(0.5, 1.5, len(IRIS_Y))
    with config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        model = POPFClassifier("forest").set_fit_request(sample_weight=True)
        pipeline = make_pipeline(scaler, model).fit(IRIS_X, IRIS_Y, sample_weight=weights)
    loaded = again(pipeline, model_path)
    np.testing.assert_array_equal(loaded.predict_proba(IRIS_X), pipeline.predict_proba(IRIS_X))


# Columns by name


COLUMNS = {"b": [1.0, 2.0, 8.0, 9.0], "a": [0.0, 1.0, 7.0, 9.0]}
FRAMES = {
    "pandas": (pd.DataFrame, lambda frame: list(frame.columns)),
    "polars": (pl.DataFrame, lambda frame: frame.columns),
    "pyarrow": (pa.table, lambda frame: frame.column_names),
}


@pytest.mark.parametrize("library", FRAMES)
def test_columns_are_found_by_name(library):
    make, names = FRAMES[library]
    frame = make(COLUMNS)
    model = OPFClassifier().fit(pd.DataFrame(COLUMNS)[["a", "b"]], [0, 0, 1, 1])
    aligned = align(model, frame)
    assert names(aligned) == ["a", "b"]
    if library != "pyarrow":  # which scikit-learn does not take
        assert model.predict(aligned).tolist() == [0, 0, 1, 1]
    assert align(model, aligned) is aligned


def test_extra_missing_and_repeated_columns():
    training = pd.DataFrame({"demand": [0.0, 9.0], "peak": [1.0, 2.0]})
    model = make_pipeline(StandardScaler(), OPFClassifier()).fit(training, [0, 1])
    new = training.assign(id=[1, 2])[["id", "peak", "demand"]]
    with pytest.warns(UserWarning, match="ignores them: 'id'"):
        assert list(align(model, new).columns) == ["demand", "peak"]
    assert model.predict(align(model, new, extra="ignore")).tolist() == [0, 1]
    with pytest.raises(ValueError, match="does not know these columns: 'id'"):
        align(model, new, extra="error")
    with pytest.raises(ValueError, match="`extra` must be"):
        align(model, new, extra="maybe")
    with pytest.raises(
        ValueError, match=r"2 columns that are missing: 'demand', 'peak'.*'Demand' meant"
    ):
        align(model, pd.DataFrame({"Demand": [1]}))
    twice = pd.concat([training, training[["peak"]]], axis=1)
    with pytest.raises(ValueError, match="'peak' occurs more than once"):
        align(model, twice)


def test_models_without_names_only_count():
    model = OPFClassifier().fit(IRIS_X, IRIS_Y)
    frame = pd.DataFrame(IRIS_X)
    assert align(model, frame) is frame
    with pytest.raises(ValueError, match="needs 4 columns, but there are 3"):
        align(model, frame.iloc[:, :3])
    named = OPFClassifier().fit(frame.rename(columns=str), IRIS_Y)
    assert align(named, IRIS_X) is IRIS_X
    with pytest.raises(ValueError, match="got no names"):
        align(named, IRIS_X[:, :2])
