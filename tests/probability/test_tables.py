"""POPFClassifier on tables with text, categories, gaps and dates."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from popf import POPFClassifier


def table(n, seed=0):
    """A table whose labels depend on a number, a category, a gap and the month of a date."""
    rng = np.random.default_rng(seed)
    size = rng.lognormal(size=n)
    zone = rng.choice(["north", "east", "south", "west"], size=n, p=[0.5, 0.3, 0.15, 0.05])
    days = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(730, size=n), unit="D")
    gap = rng.random(n) < 0.2
    summer = np.isin(days.month, [6, 7, 8])
    score = np.log(size) + 1.5 * (zone == "east") + 1.5 * gap + 1.5 * summer - 1.2
    y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * score)), "yes", "no")
    frame = pd.DataFrame(
        {
            "size": size,
            "zone": pd.Series(zone, dtype=object).where(rng.random(n) > 0.05, None),
            "reading": pd.Series(rng.normal(size=n)).where(~gap),
            "day": days,
            "street": [f"street {i}" for i in rng.integers(60, size=n)],
            "inside": rng.random(n) < 0.5,
        }
    )
    return frame, y


FRAME, Y = table(400)
NEW, NEW_Y = table(2000, seed=1)


@pytest.fixture(scope="module")
def model():
    return POPFClassifier().fit(FRAME, Y)


def test_a_frame_as_it_is(model):
    loss = log_loss(NEW_Y, model.predict_proba(NEW))
    assert abs(loss - model.held_out_losses_["pool"]) < 0.08
    numbers = ["size", "reading"]
    by_hand = make_pipeline(
        make_column_transformer(
            (SimpleImputer(strategy="median", add_indicator=True), numbers),
            (OneHotEncoder(handle_unknown="ignore", min_frequency=3), ["zone", "street"]),
            ("passthrough", ["inside"]),
            sparse_threshold=0,
        ),
        POPFClassifier(),
    ).fit(FRAME, Y)
    assert loss < log_loss(NEW_Y, by_hand.predict_proba(NEW)) - 0.01  # which has no months


@pytest.mark.parametrize("method", ["pooled", "forest"])
def test_order_of_rows_and_columns(method):
    expected = POPFClassifier(method).fit(FRAME, Y).predict_proba(NEW[:50])
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(len(Y)), rng.permutation(FRAME.columns)
    again = POPFClassifier(method).fit(FRAME[columns].iloc[rows], Y[rows])
    assert_allclose(again.predict_proba(NEW[:50]), expected, atol=1e-9)


def test_polars_gives_the_same(model):
    text = FRAME.assign(zone=FRAME["zone"].astype("string"))
    frames = pl.from_pandas(text), pl.from_pandas(NEW.assign(zone=NEW["zone"].astype("string")))
    again = POPFClassifier().fit(frames[0], Y)
    assert_array_equal(again.predict_proba(frames[1]), model.predict_proba(NEW))


def test_equal_numbers_of_any_dtype(model):
    other = FRAME.assign(
        zone=FRAME["zone"].astype("category"),
        reading=FRAME["reading"].astype("Float64"),
        inside=FRAME["inside"].astype(int),
        day=FRAME["day"].dt.strftime("%Y-%m-%d"),
    )
    again = POPFClassifier().fit(other, Y)
    assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))


def test_state(model):
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))
    assert again.table_.columns.values(again.samples_[:2])[0, 0] == FRAME["size"][0]


def test_what_training_did_not_have(model):
    new = NEW[:3].assign(zone="nowhere", size=None, street=None, day=pd.NaT)
    assert np.isfinite(model.predict_proba(new)).all()

    # A level that was not seen says no more than those that were.
    def share(rows):
        return model.explain_proba(rows).to_pandas()["zone"]

    shares = share(new)
    known = [share(new.assign(zone=zone)) for zone in FRAME["zone"].unique()]
    assert (np.min(known, axis=0) - 0.1 <= shares).all()
    assert (shares <= np.max(known, axis=0)).all()


def test_contributions_by_column(model):
    split = model.explain_proba(NEW[:200])
    assert split.feature_names == FRAME.columns.tolist()
    total = split.prior + split.forest + split.features.sum(axis=1)
    assert_allclose(total, model.decision_function(NEW[:200]), atol=1e-9)
    strength = dict(zip(split.feature_names, np.abs(split.features).mean(axis=0), strict=True))
    assert min(strength["size"], strength["zone"]) > strength["inside"]


def test_columns_are_matched_by_name(model):
    P = model.predict_proba(NEW[:20])
    assert_array_equal(model.predict_proba(NEW[NEW.columns[::-1]][:20]), P)
    with pytest.warns(UserWarning, match="does not use are ignored: 'more'"):
        assert_array_equal(model.predict_proba(NEW[:20].assign(more=1)), P)
    with pytest.raises(ValueError, match="a column that is missing: 'zone'"):
        model.predict_proba(NEW.drop(columns="zone"))


def test_weights_count_as_copies():
    weights = np.random.default_rng(0).integers(1, 3, len(Y))
    rows = np.repeat(np.arange(len(Y)), weights)
    weighted = POPFClassifier().fit(FRAME, Y, sample_weight=weights)
    copied = POPFClassifier().fit(FRAME.iloc[rows], Y[rows])
    assert_allclose(weighted.predict_proba(NEW), copied.predict_proba(NEW), atol=1e-6)


def test_arrays_with_gaps():
    X = FRAME[["size", "reading"]].to_numpy()
    from_array = POPFClassifier().fit(X, Y).predict_proba(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_frame = POPFClassifier().fit(FRAME[["size", "reading"]], Y)
    assert_array_equal(from_frame.predict_proba(FRAME[["size", "reading"]]), from_array)
    assert np.isfinite(POPFClassifier().fit(np.nan_to_num(X), Y).predict_proba(X)).all()


def test_categories_by_index():
    rng = np.random.default_rng(0)
    codes = rng.integers(6, size=(500, 1)).astype(float)
    y = np.isin(codes[:, 0], [1, 4]) ^ (rng.random(500) < 0.1)
    chosen = POPFClassifier("forest", categorical_features=[0]).fit(codes, y)
    assert chosen.table_.encoding.names(chosen.table_.columns) == [f"x0 = {k}" for k in range(6)]
    assert_array_equal(chosen.predict(codes.astype(int)), chosen.predict(codes))


@pytest.mark.parametrize("per_level", [1, 2, 4])
@pytest.mark.parametrize("n", [300, 1500])
def test_random_levels_do_not_help(n, per_level):
    rng = np.random.default_rng(n + per_level)
    names = [f"id {i // per_level}" for i in range(2 * n)]
    frame = pd.DataFrame({"id": rng.permutation(names), "x": rng.normal(size=2 * n)})
    y = rng.random(2 * n) < 0.4
    model = POPFClassifier().fit(frame[:n], y[:n])
    frequencies = log_loss(y[n:], np.full(n, y[:n].mean()))
    assert log_loss(y[n:], model.predict_proba(frame[n:])[:, 1]) < frequencies + 0.01
    assert model.held_out_losses_["pool"] > model.held_out_losses_["prior"] - 0.01


def test_many_levels_that_matter():
    rng = np.random.default_rng(0)
    effect = rng.normal(size=200) * 1.5
    level = rng.integers(200, size=4000)
    y = rng.random(4000) < 1.0 / (1.0 + np.exp(-effect[level]))
    frame = pd.DataFrame({"code": [f"c{k}" for k in level]})
    model = POPFClassifier().fit(frame[:2000], y[:2000])
    loss = log_loss(y[2000:], model.predict_proba(frame[2000:])[:, 1])
    truth = log_loss(y[2000:], 1.0 / (1.0 + np.exp(-effect[level[2000:]])))
    assert loss < truth + 0.05
    assert abs(model.held_out_losses_["pool"] - loss) < 0.03


def test_groups_share_their_folds():
    """A level for each group must not tell the labels of other rows of the group."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(60), 10)
    y = rng.random(60)[groups] < 0.5
    frame = pd.DataFrame({"group": [f"g{k}" for k in groups], "x": rng.normal(size=600)})
    model = POPFClassifier().fit(frame, y, groups=groups)
    assert model.held_out_losses_["pool"] > model.held_out_losses_["prior"] - 0.02


@pytest.mark.parametrize("metric", ["manhattan", "seuclidean"])
def test_other_metrics(metric):
    model = POPFClassifier(metric=metric).fit(FRAME, Y)
    assert log_loss(NEW_Y, model.predict_proba(NEW)) < 0.6
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(NEW[:50]), model.predict_proba(NEW[:50]))


def test_scikit_learn_splits_frames():
    scores = cross_val_score(POPFClassifier("forest"), FRAME, Y, cv=3, error_score="raise")
    assert scores.mean() > 0.6


def test_one_line_with_skrub():
    skrub = pytest.importorskip("skrub", reason="skrub is not installed")
    model = skrub.tabular_pipeline(POPFClassifier()).fit(FRAME, Y)
    assert log_loss(NEW_Y, model.predict_proba(NEW)) < 0.6


@pytest.mark.parametrize(
    ("column", "cells", "message"),
    [
        ("size", [str(i) for i in range(len(Y))], "numbers stored as text"),
        ("size", [[1]] * len(Y), "holds a list in row 0"),
        ("size", [1, "a"] * (len(Y) // 2), "mixes kinds"),
        ("size", [np.inf] * len(Y), "infinity"),
    ],
)
def test_bad_columns(column, cells, message):
    frame = FRAME.assign(**{column: pd.Series(cells, dtype=object)})
    with pytest.raises((ValueError, TypeError), match=message):
        POPFClassifier().fit(frame, Y)


def test_columns_without_any_cell(model):
    frame = FRAME.assign(empty=None, none=np.nan)
    again = POPFClassifier().fit(frame, Y)
    split = again.explain_proba(NEW[:5].assign(empty=None, none=1.0))
    assert_array_equal(split.features[:, -2:], 0.0)


def test_distances_have_no_gaps():
    D = np.array([[0.0, np.nan], [np.nan, 0.0]])
    with pytest.raises(ValueError, match="NaN"):
        POPFClassifier(metric="precomputed").fit(D, [0, 1])
