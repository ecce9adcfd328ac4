"""The preparation of a table: as scikit-learn's steps do it, by weights, and back."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import popf
import popf.io
from popf.table_models.model import TablePreparation

pd = pytest.importorskip("pandas", reason="tables need popf[cli]")

NUMBERS, CATEGORIES = ["size", "age", "constant"], ["colour", "zone"]


def rows(n=60, seed=0, gaps=True):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "colour": rng.choice(["red", "green", "blue"], n).astype(object),
            "size": rng.normal(50.0, 10.0, n).round(),
            "zone": rng.choice(["1", "2"], n).astype(object),
            "age": rng.exponential(size=n),
            "constant": 0.1,
        }
    )
    if gaps:
        for name in ("colour", "size", "age"):
            frame.loc[rng.random(n) < 0.2, name] = np.nan
    return frame


def prepared(frame, weights=None, **options):
    return TablePreparation(NUMBERS, CATEGORIES, **options).fit(frame, sample_weight=weights)


@pytest.mark.parametrize("missing", ["median", "mean"])
def test_it_does_what_scikit_learns_steps_do(missing):
    numbers = make_pipeline(SimpleImputer(strategy=missing), StandardScaler())
    words = make_pipeline(
        SimpleImputer(strategy="constant", fill_value=""),
        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    )
    theirs = ColumnTransformer([("n", numbers, NUMBERS), ("c", words, CATEGORIES)]).fit(rows())
    new = rows(seed=1)
    new.loc[3, "colour"] = "violet"
    ours = prepared(rows(), missing=missing)
    assert_allclose(ours.transform(new), theirs.transform(new), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("missing", ["median", "mean"])
@pytest.mark.parametrize("scale", [True, False])
def test_a_weight_is_a_number_of_rows(missing, scale):
    weights = np.random.default_rng(2).integers(1, 5, 60)
    weighted = prepared(rows(), weights.astype(float), missing=missing, scale=scale)
    repeated = prepared(
        rows().iloc[np.repeat(np.arange(60), weights)], missing=missing, scale=scale
    )
    for name in ("fill_numbers_", "mean_", "scale_"):
        assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-12)


@pytest.mark.parametrize("total", [1e-9, 1.0, 1e17])
def test_the_unit_of_the_weights_does_not_matter(total):
    frame = rows(gaps=False)
    weights = np.random.default_rng(0).random(60)
    weights *= total / weights.sum()
    spread = np.sqrt(np.cov(frame["age"], aweights=weights, ddof=0))
    assert_allclose(prepared(frame, weights).scale_[1:], [spread, 1.0], rtol=1e-9)


@pytest.mark.parametrize(("last", "value"), [(0.3, 3.0), (0.5, 2.0)])
def test_the_weighted_median_lies_between_two_values_that_share_the_weight(last, value):
    frame = pd.DataFrame({"size": [4.0, 8.0, 4.0, 2.0, np.nan]})
    weights = np.array([0.1, 0.1, 0.1, last, 9.0])
    preparation = TablePreparation(["size"], missing="median").fit(frame, sample_weight=weights)
    assert preparation.fill_numbers_ == pytest.approx([value])


def test_prepared_rows_are_shown_in_the_units_of_the_table():
    frame = rows(gaps=False)
    preparation = prepared(frame)
    assert preparation.owners() == [*NUMBERS, *["colour"] * 3, *["zone"] * 2]
    new = rows(seed=1, gaps=False)
    new.loc[3, "colour"] = "violet"
    back = preparation.inverse_transform(preparation.transform(new))
    for at, name in enumerate(frame.columns):
        if name in NUMBERS:
            assert_allclose(back[:, at].astype(float), new[name], rtol=1e-12)
        else:
            assert back[:, at].tolist() == [v if v != "violet" else None for v in new[name]]
    assert preparation.count_unknown(new) == {"colour": 1}


def test_columns_are_found_by_name_and_gaps_are_left_if_they_are_to_be_refused():
    preparation, new = prepared(rows(gaps=False)), rows(seed=1)
    shuffled = new[new.columns[::-1]].assign(more=1)
    assert_array_equal(preparation.transform(shuffled), preparation.transform(new))
    assert_array_equal(np.isnan(preparation.transform(new)[:, 0]), new["size"].isna())


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("numbers", ["size"], "numbers of TablePreparation must be those of the features"),
        ("missing", "guess", "missing of TablePreparation must be one of 'refuse'"),
        ("mean_", np.zeros(2), r"mean_ .*shape \(3\)"),
        ("scale_", np.array([1.0, 0.0, 1.0]), "scale_"),
        ("scale_", np.array([1.0, np.nan, 1.0]), "scale_"),
        ("n_known_", np.array([5, 0]), "n_known_"),
        ("n_known_", np.array([3, 4]), r"known_ .*shape \(7\)"),
        ("known_", np.array(["a", "b", "b", "c", "d", "e"]), "known_ .*different"),
        ("rows_", np.zeros((2, 2), dtype=np.int64), "rows_"),
    ],
)
def test_a_state_that_makes_no_sense_is_refused(name, value, words):
    state = prepared(rows()).__getstate__()
    TablePreparation().__setstate__(state)
    with pytest.raises(ValueError, match=words):
        TablePreparation().__setstate__({**state, name: value})


def test_a_model_of_a_table_is_kept_by_popf_skops_and_pickle(tmp_path):
    skops = pytest.importorskip("skops.io")
    frame, y = rows(), np.arange(60) % 2
    model = Pipeline(
        [
            ("columns", TablePreparation(NUMBERS, CATEGORIES, missing="median")),
            ("popf", popf.POPFClassifier("forest")),
        ]
    ).fit(frame, y)
    popf.save(model, tmp_path / "m.popf", X=frame)
    skops.dump(model, tmp_path / "m.skops")
    kept = [
        pickle.loads(pickle.dumps(model)),
        popf.load(tmp_path / "m.popf"),
        skops.load(tmp_path / "m.skops", trusted=popf.io.trusted_types),
    ]
    assert clone(model["columns"]).get_params() == model["columns"].get_params()
    for copy in kept:
        assert_array_equal(copy.predict_proba(rows(seed=1)), model.predict_proba(rows(seed=1)))
        assert_array_equal(copy["columns"].rows_, np.arange(60))
