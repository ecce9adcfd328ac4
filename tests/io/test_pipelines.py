"""Saved pipelines of tables, and columns found by name."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import config_context
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

import popf
from popf import OPFClassifier, POPFClassifier
from popf.io import align
from saved_models import (
    CANCER_X,
    CANCER_Y,
    IRIS_X,
    IRIS_Y,
    again,
    assert_same_model,
    assert_same_value,
    columns_by_kind,
    consumers,
)


def ordinal_sparse_and_indicator():
    columns = ColumnTransformer(
        [
            ("ordinal", OrdinalEncoder(encoded_missing_value=-1), ["tariff"]),
            ("onehot", OneHotEncoder(drop="if_binary", dtype=np.float32), ["street", "phases"]),
            ("impute", SimpleImputer(add_indicator=True), ["demand", "peak"]),
        ],
        sparse_threshold=0.0,
    )
    return make_pipeline(columns, MinMaxScaler(feature_range=(-1, 1)), OPFClassifier())


def selected_grouped_and_dropped():
    fill = SimpleImputer(strategy="constant", fill_value=7)
    rare = OneHotEncoder(
        min_frequency=12, handle_unknown="infrequent_if_exist", sparse_output=False, drop="first"
    )
    columns = ColumnTransformer(
        [
            ("all", make_pipeline(fill, "passthrough"), make_column_selector("(demand|peak)")),
            ("rare", rare, [2]),
            ("none", "passthrough", slice(3, 4)),
            ("gone", "drop", ["street"]),
        ],
        verbose_feature_names_out=False,
        transformer_weights={"all": 2.0},
    ).set_output(transform="pandas")
    paper = POPFClassifier("paper", solver="nelder-mead", box=((-99, 99), (-99, 99)))
    steps = [("prepare", columns), ("robust", RobustScaler(quantile_range=(10.0, 90.0)))]
    return Pipeline([*steps, ("nothing", None), ("model", paper)])


PIPELINES = [columns_by_kind, ordinal_sparse_and_indicator, selected_grouped_and_dropped]


@pytest.mark.parametrize("make", PIPELINES)
def test_pipelines_survive(make, model_path):
    frame, stolen = consumers()
    model = make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(frame, stolen)
    loaded = again(model, model_path)
    new = consumers(200)[0]
    new["tariff"] = new["tariff"].where(new["tariff"].notna(), "low")
    assert_same_value(model[:-1].transform(new).__array__(), loaded[:-1].transform(new).__array__())
    assert_same_model(model[-1], loaded[-1], model[:-1].transform(new))
    assert_same_value(model.predict(new), loaded.predict(new))
    assert loaded.feature_names_in_.tolist() == frame.columns.tolist()
    assert (model[0].get_feature_names_out() == loaded[0].get_feature_names_out()).all()
    loaded.fit(frame, stolen)  # a loaded pipeline can learn anew
    assert_same_value(model.predict(new), loaded.predict(new))


@pytest.mark.parametrize("scaler", [StandardScaler(with_mean=False), MinMaxScaler(clip=True)])
def test_scalers_of_plain_arrays_survive(scaler, model_path):
    model = make_pipeline(scaler, "passthrough", OPFClassifier()).fit(CANCER_X[::2], CANCER_Y[::2])
    loaded = again(model, model_path)
    assert_same_value(model.decision_function(CANCER_X), loaded.decision_function(CANCER_X))
    assert not hasattr(loaded, "feature_names_in_")


# Columns by name


COLUMNS = {"b": [1.0, 2.0, 8.0, 9.0], "a": [0.0, 1.0, 7.0, 9.0]}
FRAMES = {
    "pandas": (pd.DataFrame, lambda frame: list(frame.columns)),
    "polars": (pl.DataFrame, lambda frame: frame.columns),
    "pyarrow": (pa.table, lambda frame: frame.column_names),
}


@pytest.mark.parametrize("library", FRAMES)
def test_columns_are_found_by_name(library, model_path):
    make, names = FRAMES[library]
    frame = make(COLUMNS)
    training = pd.DataFrame({"a": [0.0, 1.0, 7.0, 9.0], "b": [1.0, 2.0, 8.0, 9.0]})
    model = again(OPFClassifier().fit(training, [0, 0, 1, 1]), model_path)
    aligned = align(model, frame)
    assert names(aligned) == ["a", "b"]
    if library != "pyarrow":  # which scikit-learn does not take
        assert model.predict(aligned).tolist() == [0, 0, 1, 1]
    assert align(model, aligned) is aligned


def test_extra_missing_and_repeated_columns(model_path):
    training = pd.DataFrame({"demand": [0.0, 9.0], "peak": [1.0, 2.0]})
    model = again(
        make_pipeline(StandardScaler(), OPFClassifier()).fit(training, [0, 1]), model_path
    )
    new = training.assign(id=[1, 2])[["id", "peak", "demand"]]
    with pytest.warns(UserWarning, match="ignores them: 'id'"):
        assert list(align(model, new).columns) == ["demand", "peak"]
    assert model.predict(align(model, new, extra="ignore")).tolist() == [0, 1]
    with pytest.raises(ValueError, match="does not know these columns: 'id'"):
        align(model, new, extra="error")
    with pytest.raises(ValueError, match="extra must be"):
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


def test_a_pipeline_that_routed_weights_is_saved(tmp_path):
    weights = np.linspace(0.5, 1.5, len(IRIS_Y))
    with config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        model = POPFClassifier(random_state=0).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(scaler, model).fit(IRIS_X, IRIS_Y, sample_weight=weights)
    popf.save(pipeline, tmp_path / "model.popf")
    loaded = popf.load(tmp_path / "model.popf")
    np.testing.assert_array_equal(loaded.predict_proba(IRIS_X), pipeline.predict_proba(IRIS_X))
