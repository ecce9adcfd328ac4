"""Features of readings, against their definitions; the transformer in pipelines and files."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import popf
from inspections import generated_inspections
from popf import ConsumptionFeatures, POPFClassifier, TableEncoder
from popf.probability.readings import NAMES, YEARLY, feature_names, relative_features

pd = pytest.importorskip("pandas")
NAN = float("nan")
YEAR = "12_anterior:1_anterior"


@parametrize_with_checks([ConsumptionFeatures()])
@pytest.mark.filterwarnings("ignore:.*array_api.*:UserWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# The definitions


def contrast(after, before):
    after, before = ([x for x in part if not np.isnan(x)] for part in (after, before))
    if not after or not before:
        return NAN
    a, b = np.mean(after), np.mean(before)
    return (a - b) / (abs(a) + abs(b)) if a or b else 0.0


def longest_runs(row):
    """The longest run of readings that are not positive, and the one at the end; gaps do not count."""
    run, longest = 0, 0
    for x in row[~np.isnan(row)]:
        run = run + 1 if x <= 0 else 0
        longest = max(longest, run)
    return longest, run


def naive(row, period):
    """The features of one row, one definition after the other."""
    n, known = len(row), row[~np.isnan(row)]
    size = np.mean(np.abs(known)) if len(known) else NAN
    share = row / (size if size > 0 else 1.0)
    own = share[~np.isnan(share)]
    times = np.flatnonzero(~np.isnan(share))
    steps = [b - a for a, b in pairwise(share) if not np.isnan(a + b)]
    pairs = [(a, b) for a, b in pairwise(share) if not np.isnan(a + b)]
    shifts = []
    for k in range(1, n):
        left, right = np.sum(~np.isnan(share[:k])), np.sum(~np.isnan(share[k:]))
        if left and right:
            weight = 2 * np.sqrt(left * right) / (left + right)
            shifts.append(weight * contrast(share[k:], share[:k]))
    longest, at_end = longest_runs(row)
    quarter, half = max(1, n // 4), max(1, n // 2)
    found = {
        "spread": np.std(own) if len(own) else NAN,
        "trend": n * np.polyfit(times, own, 1)[0] if len(own) > 1 else NAN,
        "lowest": min(own, default=NAN),
        "highest": max(own, default=NAN),
        "drop": min(steps, default=NAN),
        "jump": max(steps, default=NAN),
        "roughness": np.mean(np.abs(steps)) if steps else NAN,
        "last": contrast(share[-1:], share[:-1]),
        "last quarter": contrast(share[-quarter:], share[:-quarter]),
        "last half": contrast(share[-half:], share[:-half]),
        "fall": min(shifts, default=NAN),
        "rise": max(shifts, default=NAN),
        "zeros": np.mean(known <= 0) if len(known) else NAN,
        "zeros in a row": longest / n,
        "zeros at the end": at_end / n,
        "repeated": np.mean([a == b != 0 for a, b in pairs]) if pairs else NAN,
        "missing": np.mean(np.isnan(row)),
    }
    if n >= 2 * period:
        years = [(now, before) for now, before in zip(share[period:], share[:-period], strict=True)]
        for name, k in (("last quarter in a year", quarter), ("last half in a year", half)):
            both = [pair for pair in years[-min(k, period) :] if not np.isnan(sum(pair))]
            found[name] = contrast(*zip(*both, strict=True)) if both else NAN
        both = np.array([pair for pair in years if not np.isnan(sum(pair))])
        alike = len(both) and both.std(axis=0).min() > 1e-9
        found["season"] = np.corrcoef(both.T)[0, 1] if alike else NAN
    return found


@pytest.mark.parametrize(
    ("n_readings", "period"), [(12, 12), (9, 4), (30, 12), (3, 7), (2, 2), (1, 2)]
)
def test_features_are_as_defined(n_readings, period):
    rng = np.random.default_rng(0)
    rows = np.round(rng.gamma(2.0, 50.0, (60, n_readings)))
    rows[rng.random(rows.shape) < 0.15] = NAN
    rows[10:20][rng.random((10, n_readings)) < 0.5] = 0.0
    rows[20:24, : n_readings // 2 + 1] = NAN
    rows[24] = 0.0
    rows[25] = 7.0
    rows[26] = NAN
    rows[27, -1] = -30.0
    wanted = [naive(row, period) for row in rows]
    assert [*wanted[0]] == feature_names(n_readings, period)
    found = relative_features(rows, period)
    assert_allclose(found, [[*each.values()] for each in wanted], rtol=1e-9, atol=1e-9)


def test_years_are_compared_where_there_are_two():
    months = np.arange(36)
    winter = np.tile(3.0 + np.cos(2 * np.pi * months / 12), (2, 1))
    winter[1, 24:] *= 0.5
    regular, thief = relative_features(winter, 12)
    places = dict(zip(feature_names(36, 12), range(99), strict=False))
    assert [*places] == [*NAMES, *YEARLY]
    assert regular[places["season"]] == pytest.approx(1.0)
    assert regular[places["last quarter in a year"]] == pytest.approx(0.0)
    assert thief[places["last quarter in a year"]] == pytest.approx(-1 / 3)
    assert thief[places["season"]] < 0.9


cells = st.one_of(st.just(NAN), st.integers(0, 40).map(float))


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(2, 26)), elements=cells))
def test_the_unit_and_the_rows_beside_do_not_matter(readings):
    found = relative_features(readings, 12)
    assert_array_equal(relative_features(1024.0 * readings, 12), found)
    assert_allclose(relative_features(0.001 * readings, 12), found, rtol=1e-6, atol=1e-6)
    alone = [relative_features(readings[i : i + 1], 12)[0] for i in range(len(readings))]
    assert_array_equal(np.array(alone), found)
    assert_array_equal(relative_features(np.asfortranarray(readings), 12), found)


def test_probabilities_do_not_depend_on_the_unit():
    frame = generated_inspections(400)
    y = frame.pop("target")
    frame = frame.drop(columns=["index", "fecha_inspeccion"])
    months = [name for name in frame if name.endswith("anterior")]
    in_units = frame.assign(**{name: 8.0 * frame[name] for name in months})
    first, second = (
        make_pipeline(ConsumptionFeatures(YEAR), POPFClassifier("forest")).fit(some, y)
        for some in (frame, in_units)
    )
    assert_array_equal(first.predict_proba(frame), second.predict_proba(in_units))


# Tables


def small():
    return pd.DataFrame(
        {
            "tariff": ["a", "b", None, "a"],
            "may": [1.0, 2.0, 3.0, NAN],
            "june": [1.0, 2.0, 4.0, 1.0],
            "july": [1.0, 1.0, 8.0, 1.0],
            "rooms": [1, 2, 3, 4],
        },
        index=[5, 5, 7, 9],
    )


def test_other_columns_are_passed_through():
    frame = small()
    features = ConsumptionFeatures("may:july", peers=["tariff"])
    found = features.fit_transform(frame)
    assert found.columns.tolist() == features.get_feature_names_out().tolist()
    pd.testing.assert_frame_equal(found[["tariff", "rooms"]], frame[["tariff", "rooms"]])
    assert found.columns[-2:].tolist() == [
        *("readings: level against tariff", "readings: last half against tariff")
    ]
    unordered = frame[["july", "rooms", "may", "tariff", "june"]]
    pd.testing.assert_frame_equal(features.transform(unordered), found)
    by_name = ConsumptionFeatures(["may", "june", 3], peers=[0]).fit(frame)
    pd.testing.assert_frame_equal(by_name.transform(frame), found)


def test_output_follows_the_input_and_set_output():
    polars = pytest.importorskip("polars")
    frame = small().reset_index(drop=True)
    features = ConsumptionFeatures("may:july").fit(frame)
    wanted = features.transform(frame)
    found = features.transform(polars.from_pandas(frame))
    assert isinstance(found, polars.DataFrame)
    assert found.columns == wanted.columns.tolist()
    assert_array_equal(found["readings: fall"].to_numpy(), wanted["readings: fall"])
    numbers = frame[["may", "june", "july", "rooms"]]
    array = ConsumptionFeatures([0, 1, 2]).fit_transform(numbers.to_numpy())
    assert_array_equal(array, wanted.drop(columns="tariff"))
    named = ConsumptionFeatures([0, 1, 2]).set_output(transform="pandas")
    assert named.fit_transform(numbers.to_numpy()).columns[:2].tolist() == ["x3", "readings: level"]


def test_peers_are_those_of_the_training_rows():
    rng = np.random.default_rng(0)
    zone = np.repeat(["rich", "poor"], 50)
    frame = pd.DataFrame(
        {"zone": zone, "old": rng.gamma(9.0, 1.0, 100), "new": rng.gamma(9.0, 1.0, 100)}
    )
    frame.loc[zone == "rich", ["old", "new"]] *= 10.0
    features = ConsumptionFeatures(["old", "new"], peers=["zone"]).fit(frame)
    against = "readings: level against zone"
    medians = features.transform(frame).groupby("zone")[against].median()
    assert (medians.abs() < 0.25).all()  # drawn a little towards all rows
    new = pd.DataFrame({"zone": ["rich", "poor", "far", None], "old": 9.0, "new": 9.0})
    found = features.transform(new)
    assert found["readings: level"].nunique() == 1
    rich, poor, far, gap = found[against]
    assert rich < far < poor
    assert far == gap  # both against all rows
    assert_array_equal(features.transform(new.iloc[:1])[against], [rich])


def test_rows_below_each_other_see_their_past_only():
    rng = np.random.default_rng(0)
    wide = rng.gamma(9.0, 1.0, (5, 30))
    rows = [(f"c{i}", t, wide[i, t], i) for i in range(5) for t in range(30) if (i, t) != (2, 7)]
    frame = pd.DataFrame(rows, columns=["consumer", "month", "kwh", "rooms"])
    frame = frame.sample(frac=1.0, random_state=0)
    features = ConsumptionFeatures("kwh", id="consumer", time="month")
    found = features.fit_transform(frame)
    assert found.columns[0] == "rooms"
    assert found.columns.tolist() == features.get_feature_names_out().tolist()
    assert "readings: season" in found
    for i, t in [(0, 29), (1, 23), (3, 5), (4, 0)]:
        past = np.full((1, 24), NAN)
        own = wide[i, max(0, t - 23) : t + 1]
        past[0, 24 - len(own) :] = own
        row = found[((frame["consumer"] == f"c{i}") & (frame["month"] == t)).to_numpy()]
        assert_array_equal(row.iloc[:, 2:], relative_features(past, 12))
    dates = pd.Timestamp("2024-01-01") + pd.to_timedelta(frame["month"], unit="D")
    dated = features.fit_transform(frame.assign(month=dates.dt.strftime("%d.%m.%Y")))
    pd.testing.assert_frame_equal(dated, found)


@pytest.mark.parametrize(
    ("options", "change", "message"),
    [
        ({"readings": "july:may"}, {}, "column 'july' comes after 'may'"),
        ({"readings": "may:august"}, {}, "no column 'may:august'"),
        ({"readings": ["may", "may"]}, {}, "name each column of readings once"),
        ({"readings": []}, {}, "at least one"),
        ({"readings": "tariff:july"}, {}, "column 'tariff' holds a category"),
        ({"readings": "may:july", "peers": ["zone"]}, {}, "`peers`: there is no column 'zone'"),
        ({"readings": "may:july"}, {"june": np.inf}, "infinity"),
        ({"readings": "may", "id": "tariff"}, {}, "`id` and `time` belong together"),
        ({"readings": "may:july", "id": "tariff", "time": "rooms"}, {}, "one column of readings, not 3"),
        ({"readings": "may", "id": "tariff", "time": "rooms"}, {}, "1 rows have a gap"),
        ({"readings": "may", "id": "tariff", "time": "rooms"}, {"tariff": "a", "rooms": 1}, "the same id"),
        ({"readings": "may:july", "period": 1}, {}, "period"),
        ({"readings": "may:july"}, {"readings: level": 1}, "has the name of a feature"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused(options, change, message):
    frame = small().reset_index(drop=True).assign(**change)
    with pytest.raises(ValueError, match=message):
        ConsumptionFeatures(**options).fit(frame)


# Pipelines and files


@pytest.mark.parametrize("encoder", [[], [TableEncoder()]])
def test_a_saved_pipeline_predicts_the_same_from_raw_tables(encoder, tmp_path):
    frame = generated_inspections(300)
    y = frame.pop("target")
    frame = frame.drop(columns="index")
    steps = [
        ConsumptionFeatures(YEAR, peers=["tipo_tarifa", "zona"]),
        *encoder,
        POPFClassifier("forest"),
    ]
    model = make_pipeline(*steps).fit(frame[:200], y[:200])
    wanted = model.predict_proba(frame[200:])
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(frame[200:]), wanted)
    popf.save(model, tmp_path / "m.popf")
    assert_array_equal(popf.load(tmp_path / "m.popf").predict_proba(frame[200:]), wanted)
    from popf.table_models import open_model

    opened = open_model(tmp_path / "m.popf")
    assert opened.layout.numbers == [name for name in frame if name.endswith("anterior")]
    assert_array_equal(opened.score(frame[200:]).probability, wanted)
