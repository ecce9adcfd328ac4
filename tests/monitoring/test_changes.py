"""Drift: what has changed is named, chance is not, and scores are as promised."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from inspections import real_inspections
from popf import ConsumptionFeatures, POPFClassifier, TableEncoder
from popf.datasets import make_energy_theft
from popf.metrics import expected_scores, spread_of_periods
from popf.monitoring import drift
from popf.paper import PlattOPFClassifier


@pytest.fixture(scope="module")
def consumers():
    drawn = make_energy_theft(n_samples=4000, theft_rate=0.1, as_frame=True, random_state=0)
    return drawn.data, np.where(drawn.target == 1, "yes", "no")


@pytest.fixture(scope="module")
def model(consumers):
    X, y = consumers
    return POPFClassifier().fit(X[:1500], y[:1500])


def naive_psi(before, now, edges):
    """The index of numbers without gaps, as in its definition, with half a row more in every bin."""
    total = 0.0
    for low, high in pairwise(edges):
        p, q = (
            (sum(low < x <= high for x in values) + 0.5) / (len(values) + 0.5 * (len(edges) - 1))
            for values in (before, now)
        )
        total += (q - p) * np.log(q / p)
    return total


def test_the_index_is_that_of_the_definition():
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=(300, 2)), rng.normal(0.5, size=(200, 2))
    model = POPFClassifier("forest").fit(old, old[:, 0] > 0)
    for column in drift(model, new).columns:
        j = int(column.name[1:])
        inner = np.quantile(old[:, j], np.arange(1, 10) / 10)
        # The last bin is that of the gaps, which do not occur.
        edges = [-np.inf, *inner, np.inf]
        assert column.psi == pytest.approx(naive_psi(old[:, j], new[:, j], edges), rel=0.01)


def test_rows_like_the_training_rows_have_not_drifted(model, consumers):
    X, y = consumers
    found = drift(model, X[1500:], y[1500:])
    assert found.drifted == []
    assert all(column.psi < column.normal for column in found.columns)
    assert found.novel.lower < 0.05 < found.novel.upper
    assert found.n_labelled == 2500
    assert found.found["positives"] == (y[1500:] == "yes").sum()


def test_what_chance_explains_is_seldom_exceeded(consumers):
    X, y = consumers
    rng = np.random.default_rng(1)
    model = POPFClassifier("forest", linear_map="none").fit(X[:200], y[:200])
    exceeded = 0
    for _ in range(40):
        rows = rng.choice(np.arange(200, 4000), 60, replace=False)
        found = drift(model, X.iloc[rows], seed=int(rng.integers(1000)))
        exceeded += any(column.psi > column.normal for column in found.columns)
    assert exceeded <= 8  # one comparison in twenty, and the training rows are always the same


def test_a_column_that_changes_is_named_and_small_samples_are_not_blamed(model, consumers):
    X, _ = consumers
    new = X[1500:].assign(maximum_demand=X["maximum_demand"] * 1.6)
    found = drift(model, new)
    assert found.drifted[0] == found.columns[0].name == "maximum_demand"
    assert drift(model, new, limit=10).drifted == []
    few = drift(model, X[1500:1512], limit=0.01)
    assert max(column.psi for column in few.columns) > 0.25
    assert few.drifted == []


def test_gaps_and_new_levels_are_counted(model, consumers):
    X, _ = consumers
    new = X[1500:].copy()
    new.loc[new.index[::2], "installed_power"] = np.nan
    new.loc[new.index[::4], "zone"] = "Z99"
    found = {column.name: column for column in drift(model, new).columns}
    assert found["installed_power"].missing == pytest.approx(0.5, abs=0.03)
    assert found["installed_power"].missing_before < 0.1
    assert found["zone"].unseen == pytest.approx(0.25, abs=0.01)
    assert found["installed_power"].drifted
    assert found["zone"].drifted


def test_rows_far_from_all_training_rows_are_novel(consumers):
    X, y = consumers
    model = POPFClassifier("forest", linear_map="weights").fit(X[:1500], y[:1500])
    assert drift(model, X[1500:]).novel.value == pytest.approx(0.05, abs=0.02)
    far = X[1500:].copy()
    numbers = far.columns[:8]
    far[numbers] = far[numbers].sample(frac=1, random_state=0).to_numpy() * np.linspace(0.2, 5, 8)
    found = drift(model, far)
    assert found.novel.value > 0.3
    assert "novelty" in found.drifted


def test_theft_that_features_do_not_show_breaks_the_promise(model, consumers):
    X, y = consumers
    honest = np.where(np.arange(2500) % 2 == 0, "no", y[1500:])
    found = drift(model, X[1500:], honest)
    assert "positives" in found.drifted
    assert "positives" not in drift(model, X[1500:], honest, spread=1.0).drifted
    labelled = np.arange(2500) < 1000
    some = drift(model, X[1500:], y[1500:], labelled=labelled)
    assert some.n_labelled == 1000
    assert some.expected["positives"].value < found.expected["positives"].value
    none = drift(model, X[1500:], y[1500:], labelled=np.zeros(2500, dtype=bool))
    assert none.found is None
    assert none.drifted == []


def test_many_new_rows_do_not_blame_a_model_of_few():
    drawn = make_energy_theft(n_samples=24_000, theft_rate=0.1, as_frame=True, random_state=105)
    X, y = drawn.data, np.where(drawn.target == 1, "yes", "no")
    model = POPFClassifier().fit(X[:4000], y[:4000])
    found = drift(model, X[4000:], y[4000:])
    probability = model.predict_proba(X[4000:])[:, 1]
    shift = spread_of_periods(y[:4000] == "yes")
    exact = expected_scores(probability, spread=shift, confidence=0.99)
    for name in ("hits", "recall", "auc"):
        widths = [score.upper - score.lower for score in (found.expected[name], exact[name])]
        assert widths[0] == pytest.approx(widths[1] * np.sqrt(1 + 20 / 4), rel=1e-6)
    assert found.drifted == []
    assert found.expected["precision"].upper <= 1.0
    assert (
        drift(model, X[4000:], np.where(np.arange(20_000) % 2, y[4000:], "no")).drifted[0]
        == "positives"
    )


def test_rows_of_a_group_count_as_one_where_chance_is_judged(model, consumers):
    X, _ = consumers
    alone = drift(model, X[1500:])
    grouped = drift(model, X[1500:], groups=np.arange(2500) // 5)
    for one, other in zip(alone.columns, grouped.columns, strict=True):
        assert other.normal > 2 * one.normal
    assert grouped.novel.lower < alone.novel.lower
    widths = [found.expected["positives"] for found in (alone, grouped)]
    assert widths[1].upper - widths[1].lower > 1.5 * (widths[0].upper - widths[0].lower)


def test_the_paper_s_method_and_pipelines_have_drift_too(consumers):
    X, y = consumers
    paper = make_pipeline(TableEncoder(), StandardScaler(), PlattOPFClassifier())
    scaled = make_pipeline(StandardScaler(), POPFClassifier("forest"))
    numbers = X[["demand_contracted", "transformer_power"]]
    for model, table in ((paper, X), (scaled, numbers)):
        model.fit(table[:600], y[:600])
        assert [n for n in drift(model, table[600:]).drifted if n not in ("hits",)] == []
        changed = table[600:].assign(demand_contracted=2.5 * table["demand_contracted"])
        assert "demand_contracted" in drift(model, changed).drifted


def test_theft_in_real_inspections_becomes_rarer_than_the_model_says():
    frame = real_inspections()
    old, new = frame[frame["month"] < "2017"][::3], frame[frame["month"] >= "2018"]
    assert old["theft"].mean() == pytest.approx(0.071, abs=0.001)
    assert new["theft"].mean() == pytest.approx(0.049, abs=0.001)
    features = ConsumptionFeatures("consumption_12:consumption_1")
    X, y = old.drop(columns=["theft", "month"]), old["theft"]
    model = make_pipeline(features, POPFClassifier()).fit(X, y)
    later = new.drop(columns=["theft", "month"])
    found = drift(model, later, new["theft"], limit=0.1)
    assert "material" in found.drifted
    assert found.columns[0].psi > 10 * found.columns[0].normal
    assert found.novel.lower > 0.05
    assert found.found["positives"] == 487 < found.expected["positives"].lower
    assert {"positives", "auc"} & {*found.drifted} == {"positives"}
    blind = drift(model, later, limit=0.1)
    assert blind.found is None
    assert blind.expected == found.expected
    # Part of the fall shows in the columns.
    assert 0.055 < blind.expected["positives"].value / len(new) < 0.068
    months = spread_of_periods(y, old["month"].astype(str))
    wide = drift(model, later, spread=months).expected["positives"]
    narrow = found.expected["positives"]
    assert wide.upper - wide.lower > 1.5 * (narrow.upper - narrow.lower)


def test_what_has_no_drift_is_refused(model, consumers):
    X, _ = consumers
    three = POPFClassifier("forest").fit(X[:90], np.arange(90) % 3)
    with pytest.raises(ValueError, match="more than two classes"):
        drift(three, X[90:])
    with pytest.raises(ValueError, match="limit"):
        drift(model, X[1500:], limit=0.0)
    with pytest.raises(ValueError, match="positive"):
        drift(model, X[1500:], positive="maybe")
    distances = np.abs(np.subtract.outer(np.arange(20.0), np.arange(20.0)))
    precomputed = POPFClassifier("forest", metric="precomputed").fit(distances, np.arange(20) > 9)
    with pytest.raises(ValueError, match="distances instead of rows"):
        drift(precomputed, distances)
