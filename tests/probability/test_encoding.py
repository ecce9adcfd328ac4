"""The encoding of tables, against its definition; TableEncoder."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from popf import OPFClassifier, TableEncoder
from popf.probability.columns import CATEGORY, NUMBER
from popf.probability.encoding import MAX_COLUMNS, PRIOR_WEIGHT, fit_encoding
from popf.probability.folds import N_FOLDS

NAN = float("nan")


@parametrize_with_checks([TableEncoder()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def encoded(frame, y=None, **options):
    """Return the encoded training rows as a frame."""
    encoder = TableEncoder(**options).set_output(transform="pandas")
    return encoder.fit_transform(frame, y)


def test_numbers_stay_and_gaps_become_medians():
    frame = pd.DataFrame({"few": [1.0, None, 3.0, 8.0, 9.0], "many": [None, None, None, 2.0, 4.0]})
    found = encoded(frame)
    assert found.columns.tolist() == ["few", "many", "many is missing"]
    assert found["few"].tolist() == [1.0, 5.5, 3.0, 8.0, 9.0]
    assert found["many"].tolist() == [3.0, 3.0, 3.0, 2.0, 4.0]
    assert found["many is missing"].tolist() == [1, 1, 1, 0, 0]


def test_medians_of_weighted_rows():
    frame = pd.DataFrame({"x": [1.0, 2.0, 9.0, None]})
    encoder = TableEncoder().fit(frame, sample_weight=[5, 1, 1, 3])
    assert encoder.transform(frame)[3].tolist() == [
        1.0,
        1.0,
    ]  # the gap has weight 3, so it has a flag
    assert TableEncoder().fit(frame, sample_weight=[5, 1, 1, 1]).transform(frame).shape == (4, 1)


def test_a_column_for_every_level_and_one_for_two():
    frame = pd.DataFrame(
        {
            "two": [*"ababababab"],
            "three": [*"aaabbbcccc"],
            "rare": [*"aaaabbbb", "x", "y"],
            "gaps": [*"aaabbb", None, None, None, None],
        }
    )
    found = encoded(frame)
    assert found.columns.tolist() == [
        "two = a",
        *("three = a", "three = b", "three = c"),
        *("rare = a", "rare = b"),  # x and y together are too few
        *("gaps = a", "gaps = b", "gaps = missing"),
    ]
    assert found["two = a"].tolist() == [1, 0] * 5
    assert found["gaps = missing"].tolist() == [0] * 6 + [1] * 4
    # What has no column gets the means.
    assert found[["rare = a", "rare = b"]].iloc[-1].tolist() == [0.4, 0.4]
    frame.loc[0, "rare"] = "z"
    assert encoded(frame)["rare = rare levels"].tolist() == [1, *[0] * 7, 1, 1]


def test_levels_not_seen_get_the_means():
    frame = pd.DataFrame({"two": [*"aaab"] * 3, "three": [*"aabc"] * 3})
    encoder = TableEncoder().fit(frame)
    new = pd.DataFrame({"two": ["z", None], "three": [None, "z"]})
    assert_allclose(encoder.transform(new), [[0.75, 0.5, 0.25, 0.25]] * 2)


def test_gaps_in_columns_that_had_none():
    encoder = TableEncoder().fit([[1.0, 5.0], [3.0, 7.0]])
    assert encoder.transform([[NAN, 0.0]]).tolist() == [[2.0, 0.0]]


def test_dates_have_a_time_and_the_cycles_that_vary():
    days = pd.date_range("2020-01-01", periods=40)
    found = encoded(pd.DataFrame({"day": days, "same": [days[0]] * 40}))
    cycles = [f"day, {name} {wave}" for name in ("year", "week") for wave in ("sine", "cosine")]
    assert found.columns.tolist() == ["day", "same", *cycles]
    assert_allclose(np.diff(found["day"]), 86_400.0)
    assert_allclose(found["day, week sine"][:7].sum(), 0.0, atol=1e-12)
    assert_allclose(found["day, week sine"][7:].to_numpy(), found["day, week sine"][:-7], atol=1e-9)
    hours = encoded(pd.DataFrame({"at": pd.date_range("2020-01-01", periods=24, freq="h")}))
    assert [name for name in hours if "day" in name] == ["at, day sine", "at, day cosine"]


def naive_ratios(levels, codes, weights, folds, n_classes):
    """Log ratios of a level's smoothed class frequencies, from the rows of the other folds."""
    found = np.empty((len(levels), n_classes))
    for row, level in enumerate(levels):
        other = folds != folds[row]
        here = other & (levels == level)
        for k in range(n_classes):
            mine = codes == k
            prior = (weights[other & mine].sum() + 1) / (weights[other].sum() + n_classes)
            top = weights[here & mine].sum() + PRIOR_WEIGHT * prior
            found[row, k] = np.log(top / (weights[here].sum() + PRIOR_WEIGHT) / prior)
    return found[:, 1:] - found[:, :1] if n_classes == 2 else found


@pytest.mark.parametrize("n_classes", [2, 3])
def test_log_ratios_are_cross_fitted(n_classes):
    rng = np.random.default_rng(n_classes)
    n, n_levels = 300, MAX_COLUMNS + 10
    levels, codes = rng.integers(n_levels, size=n), rng.integers(n_classes, size=n)
    weights, folds = rng.uniform(0.5, 2.0, n), rng.integers(N_FOLDS, size=n)
    matrix = levels[:, None].astype(float)
    encoding = fit_encoding(np.array([CATEGORY]), matrix, codes, weights, folds, n_classes)
    n_ratios = 1 if n_classes == 2 else n_classes
    found = encoding.apply(matrix, folds)[:, -n_ratios:]
    expected = naive_ratios(levels, codes, weights, folds, n_classes)
    assert_allclose(found, expected, atol=1e-12)
    # New rows see all training rows, and rows outside the folds as well.
    fresh = encoding.apply(matrix)[:, -n_ratios:]
    every = naive_ratios(levels, codes, weights, np.arange(n) + N_FOLDS, n_classes)
    assert np.abs(fresh - found).max() > 0.1
    assert_allclose(encoding.apply(matrix, np.full(n, -1))[:, -n_ratios:], fresh)
    assert np.corrcoef(fresh.ravel(), every.ravel())[0, 1] > 0.9
    unseen = encoding.apply(np.full((1, 1), -1.0))[:, -n_ratios:]
    assert_allclose(unseen, 0.0, atol=1e-12)


def test_of_many_levels_the_frequent_ones_have_columns():
    levels = np.repeat(np.arange(40.0), [200, 40, *[4] * 38])
    arguments = levels[:, None], np.arange(392) % 2, np.ones(392), np.arange(392) % 8, 2
    encoding = fit_encoding(np.array([CATEGORY]), *arguments)
    (own,) = encoding.categories.values()
    assert own.slots.tolist() == [0, 1, *[2] * 38, -1, -1]  # the others share one
    assert_allclose(own.shares, [200 / 392, 40 / 392, 152 / 392])


def test_order_of_the_rows_and_columns():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": np.where(rng.random(200) < 0.1, NAN, rng.normal(size=200)),
            "c": rng.integers(40, size=200).astype(str),
        }
    )
    frame["c"] = "level " + frame["c"]
    y = rng.integers(2, size=200)
    found = encoded(frame, y)
    shuffled = rng.permutation(200)
    again = encoded(frame[["c", "x"]].iloc[shuffled], y[shuffled])
    assert_allclose(again[found.columns].loc[found.index], found, atol=1e-12)


def test_the_ratio_of_random_levels_says_nothing():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": [f"row {i // 2}" for i in range(400)]})
    y = rng.integers(2, size=400)
    ratio = encoded(frame, y)["id, log ratio"]
    assert abs(np.corrcoef(ratio, y)[0, 1]) < 0.12
    fresh = TableEncoder().fit(frame, y).transform(frame)[:, -1]
    assert np.corrcoef(fresh, y)[0, 1] > 0.5  # what cross-fitting avoids


FRAME = pd.DataFrame(
    {
        "x": [1.0, None, 3.0, 4.0] * 3,
        "c": ["a", "b", None, "c"] * 3,
        "two": ["no", "yes"] * 6,
        "day": pd.date_range("2020-01-01", periods=12),
    }
)


def test_owners_names_and_values():
    encoder = TableEncoder().fit(FRAME)
    names = encoder.get_feature_names_out().tolist()
    columns = FRAME.columns.to_numpy()[encoder.owners_].tolist()
    assert all(name.startswith(column) for name, column in zip(names, columns, strict=True))
    values = encoder.inverse_transform(encoder.transform(FRAME))
    assert (
        values[:, :3].tolist()
        == FRAME[["x", "c", "two"]]
        .astype(object)
        .where(FRAME[["x", "c", "two"]].notna(), None)
        .to_numpy()
        .tolist()
    )
    assert values[:2, 3].tolist() == ["2020-01-01", "2020-01-02"]


def test_pickle_clone_and_pipelines():
    y = FRAME["two"] == "yes"
    encoder = pickle.loads(pickle.dumps(TableEncoder().fit(FRAME, y)))
    assert_array_equal(encoder.transform(FRAME), TableEncoder().fit(FRAME, y).transform(FRAME))
    assert clone(encoder).get_params() == {"categorical_features": "from_dtype"}
    model = make_pipeline(TableEncoder(), OPFClassifier()).fit(FRAME, y)
    assert model.score(FRAME, y) == 1.0
    assert model.predict(pl.from_pandas(FRAME)).tolist() == model.predict(FRAME).tolist()


def test_continuous_targets_are_ignored():
    frame = pd.DataFrame({"c": [f"level {i}" for i in range(60)]})
    assert encoded(frame, np.linspace(0, 1, 60)).shape[1] == encoded(frame).shape[1]


def test_kinds_of_columns_that_are_not_encoded():
    encoding = fit_encoding(
        np.array([NUMBER, NUMBER]), np.ones((4, 2)), np.zeros(4, int), np.ones(4), np.arange(4), 2
    )
    X = np.array([[1.0, 2.0]])
    assert encoding.apply(X) is X
