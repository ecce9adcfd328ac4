"""The report shows what scikit-learn and popf compute, and paths in the user's units."""

from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import brier_score_loss, log_loss, pairwise_distances
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder, StandardScaler

from popf import PlattOPFClassifier, POPFClassifier, report
from popf.display.curves import prepare_thresholds
from popf.display.log_odds import log_odds_of, split_log_odds
from popf.metrics import evaluate
from popf.monitoring import drift
from popf.report import numbers
from popf.report.numbers import figure, percent, verdict
from popf.report.page import compute


def test_scores_are_those_of_evaluate_at_the_threshold_the_page_opens_with(theft_case):
    model, X, y = theft_case
    found = compute(*theft_case, positive="theft", threshold=0.3, seed=7).view.quality
    assert found.scores == evaluate(y, model.predict_proba(X), threshold=0.3, seed=7).scores
    constant = np.full(len(y), found.prior)
    assert found.prior_log_loss == pytest.approx(log_loss(y == "theft", constant))
    assert found.prior_brier == pytest.approx(brier_score_loss(y == "theft", constant))


def judged(happened, chance):
    return verdict(numbers.quality(happened, chance))


def test_verdict_judges_calibration():
    rng = np.random.default_rng(2)
    chance = rng.beta(1.0, 3.0, 4000)
    happened = rng.random(4000) < chance
    assert "well calibrated" in judged(happened, chance)[0]
    assert "mostly too high" in judged(happened, chance**0.5)[0]
    assert "mostly too low" in judged(happened, chance**2)[0]
    few = rng.random(60)
    assert "60 samples are too few" in judged(rng.random(60) < few, few)[0]


def test_verdict_compares_with_the_base_rate_and_says_when_a_class_is_rare():
    rng = np.random.default_rng(0)
    happened = rng.random(2000) < 0.3
    prior = np.clip(0.3 + 0.01 * rng.standard_normal(2000), 0, 1)
    assert "not clearly better than" in judged(happened, prior)[1]
    assert "do not use them" in judged(happened, np.clip(rng.random(2000), 0.01, 0.99))[1]
    exact = np.where(happened, 0.95, 0.05)
    assert "much better than" in judged(happened, exact)[1]
    rare = np.flatnonzero(~happened | (np.cumsum(happened) <= 7))
    assert "Only 7 of the samples are positive" in judged(happened[rare], exact[rare])[-1]


@pytest.mark.parametrize(("cost_fp", "cost_fn"), [(3.0, 40.0), (1.0, 1.0), (20.0, 1.0)])
def test_the_page_opens_at_the_threshold_of_lowest_cost(theft_case, cost_fp, cost_fn):
    model, X, y = theft_case
    report_found = compute(*theft_case, cost_fp=cost_fp, cost_fn=cost_fn).view
    found = report_found.decisions
    chance, thresholds = model.predict_proba(X)[:, 1], found.counts.thresholds
    ratio = cost_fn / cost_fp
    values = prepare_thresholds(y, chance, thresholds=thresholds, cost_fp=1, cost_fn=ratio)
    assert found.ratio == pytest.approx(ratio)
    assert thresholds[found.recommended] == values.chosen
    assert report_found.start == found.recommended
    np.testing.assert_allclose(found.mean_cost, values.cost, rtol=1e-12)


def test_gains_count_what_is_found_among_the_first(theft_case):
    model, X, y = theft_case
    found = compute(*theft_case).view.gains
    chance = model.predict_proba(X)[:, 1]
    ranked = (y == "theft")[np.argsort(-chance, kind="stable")]
    assert len(set(chance.tolist())) > 490  # so that ties hardly matter
    assert [one.n for one in found.first] == [10, 20, 50, 100, 200, 500]
    for one in found.first:
        assert one.found == pytest.approx(ranked[: one.n].sum(), abs=0.5)
        assert one.precision.value == pytest.approx(one.found / one.n)
        assert one.precision.lower <= one.precision.value <= one.precision.upper
        assert one.lift == pytest.approx(one.precision.value / (y == "theft").mean())
    assert found.gains[[0, -1]].tolist() == [0.0, 1.0]
    tenth = ranked[:50].sum() / ranked.sum()
    assert found.gains[found.fractions.searchsorted(0.1)] == pytest.approx(tenth, abs=0.01)


def test_log_odds_of_the_listed_samples_add_up_to_their_probabilities(theft_case):
    model, X, _ = theft_case
    split = split_log_odds(model, X)
    for row in compute(*theft_case, top=20).view.rows:
        log_odds = log_odds_of(split, row.number - 1, "theft")
        assert 1 / (1 + np.exp(-log_odds.total)) == pytest.approx(row.probability, abs=1e-9)
        values = {name: figure(value) for name, value in X.iloc[row.number - 1].items()}
        expected = [(name, round(share, 4)) for name, share in log_odds.terms(12, values)]
        assert row.why["terms"] == expected
        assert (row.why["rival"], len(expected)) == ("regular", 3 + 8)


def test_the_papers_method_has_paths_and_no_log_odds(theft_case):
    _, X, y = theft_case
    model = PlattOPFClassifier(box=((-60.0, 20.0), (-10.0, 10.0))).fit(X[:200], y[:200])
    found = compute(model, X[200:], y[200:], top=20)
    assert all(row.why["nodes"] and not row.why["terms"] for row in found.view.rows)
    assert found.html()


def test_the_slider_starts_at_the_models_threshold_or_as_told(theft_case):
    model, X, y = deepcopy(theft_case)

    def start(**options):
        found = compute(model, X, y, **options).view
        return found.decisions.counts.thresholds[found.start]

    assert start() == 0.5
    assert start(threshold=0.12345) == 0.12345
    model.set_params(popfclassifier__threshold=0.3)
    assert start() == 0.3
    assert start(positive="regular") == 0.7


def test_the_highest_probabilities_come_first_with_rows_and_ids(theft_case):
    model, X, y = theft_case
    names = [f"C{row}" for row in range(len(y))]
    found = compute(*theft_case, ids={"consumer": names}, top=17).view.rows
    chance = model.predict_proba(X)[:, 1]
    rows = np.lexsort([np.arange(len(y)), -chance])[:17]
    assert [row.number for row in found] == (rows + 1).tolist()
    assert [row.ids for row in found] == [[f"C{row}"] for row in rows]
    assert [row.truth for row in found] == y[rows].tolist()
    assert [row.probability for row in found] == chance[rows].tolist()


def test_paths_are_those_of_the_forest_in_the_users_units(consumers, theft_case):
    model, X, _ = theft_case
    training = consumers[0][:400]
    found = compute(*theft_case, top=30).view
    forest, rows = model[-1].opf_, X.iloc[[listed.number - 1 for listed in found.rows]]
    prepared = model[-1].prepare(model[:-1].transform(rows))
    paths, offers = forest.explain(prepared), forest.path_costs_by_class(prepared)
    for number, listed in enumerate(found.rows):
        row, path, view = rows.iloc[[number]], paths[number], listed.why
        assert f"a prototype of “{path.label}”" in view["summary"]
        assert f"{path.cost:.4g}, is the cost" in view["summary"]
        n_steps = len(path.weights)
        assert view["summary"].startswith("One step" if n_steps == 1 else f"{n_steps} steps")
        assert view["nodes"][0] == (f"training row {path.nodes[0] + 1}", path.label, "prototype")
        assert view["nodes"][-1][2] == "sample"
        assert [length for length, _, longest, _ in view["steps"] if longest] == [
            f"{path.cost:.4g}"
        ]
        assert len(view["nodes"]) + sum(step[3] for step in view["steps"]) == len(path.nodes) + 1
        for name, prototype, *_, own in view["features"]:
            assert own == figure(row[name].iloc[0])
            assert prototype == figure(training[name].iloc[path.nodes[0]])
        assert f"costs {offers[number].max():.4g}" in view["summary"]


def test_categories_and_many_features_are_shown_as_they_were():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(300, 15)), columns=[f"f{k}" for k in range(15)])
    y = (X["f0"] + 0.5 * rng.normal(size=300) > 0).astype(int)
    X["region"] = rng.choice(["north", "south"], 300)
    steps = ColumnTransformer(
        [("words", OneHotEncoder(sparse_output=False), ["region"])], remainder=StandardScaler()
    )
    # A pipeline within a pipeline is one pipeline.
    model = make_pipeline(steps, make_pipeline("passthrough", POPFClassifier("forest")))
    model.fit(X[:150], y[:150])
    found = compute(model, X[150:].reset_index(drop=True), y[150:])
    assert not found.note
    assert {(len(row.why["features"]), row.why["hidden"]) for row in found.view.rows} == {(12, 4)}
    cells = {
        line[-1] for row in found.view.rows for line in row.why["features"] if line[0] == "region"
    }
    assert cells
    assert cells <= {"north", "south"}


def test_paths_pass_through_gaps():
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.normal(size=(200, 15)), columns=[f"f{k}" for k in range(15)])
    y = (X["f0"] > 0).astype(int)
    X = X.mask(rng.random(X.shape) < 0.1)
    model = POPFClassifier("forest").fit(X[:100], y[:100])
    found = compute(model, X[100:].reset_index(drop=True), y[100:])
    assert {len(row.why["features"]) for row in found.view.rows} == {12}
    cells = {cell for row in found.view.rows for line in row.why["features"] for cell in line[1:]}
    assert figure(None) in cells


def test_paths_through_a_linear_map_are_shown_in_the_users_units(consumers):
    X, y = consumers
    model = POPFClassifier("forest", linear_map="whitening").fit(X[:300], y[:300])
    found = compute(model, X[300:].reset_index(drop=True), y[300:])
    for row in found.view.rows[:10]:
        training = int(row.why["nodes"][0][0].split()[-1]) - 1
        for name, prototype, *_ in row.why["features"]:
            value = float(prototype.replace(",", ""))
            assert value == pytest.approx(X[name].iloc[training], rel=1e-3)


def test_forests_on_distances_have_paths_without_features():
    X, y = load_breast_cancer(return_X_y=True)
    distances = pairwise_distances(X[200:], X[:200])
    model = POPFClassifier(metric="precomputed").fit(pairwise_distances(X[:200]), y[:200])
    found = compute(model, distances, y[200:])
    assert not any(row.why["features"] for row in found.view.rows)
    assert "changed since training" not in found.html()


def test_what_has_changed_since_training_is_shown(theft_case):
    model, X, y = theft_case
    changed = X.assign(demand_contracted=2 * X["demand_contracted"])
    found = compute(model, changed, y, ids={"consumer": np.arange(len(y)) // 2})
    expected = drift(model, changed, y, groups=np.arange(len(y)) // 2)
    assert found.drift.columns == expected.columns
    assert (found.drift.novel, found.drift.expected) == (expected.novel, expected.expected)
    assert found.drift.columns[0].name == "demand_contracted"
    page = found.html()
    assert "What has changed since training?" in page
    assert f"<td>{numbers.fixed(found.drift.columns[0].psi, 3)}</td>" in page
    assert "demand_contracted <b>changed</b>" in page
    facts = {"facts": {"table": {"spread": 2.0}}}
    wide = compute(model, X, y, positive="regular", about=facts).drift.expected["positives"]
    narrow = compute(model, X, y).drift.expected["positives"]
    assert wide.upper - wide.lower > 3 * (narrow.upper - narrow.lower)
    assert wide.value == pytest.approx(len(y) - narrow.value)


def test_steps_that_cannot_be_undone_are_noted(theft_case):
    _, X, y = theft_case
    model = make_pipeline(StandardScaler(), Normalizer(), POPFClassifier("forest"))
    model.fit(X[:200], y[:200])
    found = compute(model, X[200:], y[200:])
    assert "cannot be inverted" in found.note
    assert {line[1] for line in found.view.rows[0].why["features"]} == {"–"}


def flowers():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = POPFClassifier("forest").fit(X[::2], names[::2])
    return model, X[1:121:2], names[1:121:2]


def test_three_classes_are_shown_together_and_each_against_the_others():
    model, test, labels = flowers()
    found = compute(model, test, labels, seed=3)
    assert found.view.event == "virginica"  # the rarest of these rows
    table = model.predict_proba(test)
    together = evaluate(labels, table, seed=3)
    assert found.overall.evaluation.scores == together.scores
    np.testing.assert_array_equal(found.overall.evaluation.confusion, together.confusion)
    shares = np.tile(np.unique(labels, return_counts=True)[1] / len(labels), (len(labels), 1))
    assert found.overall.prior_log_loss == pytest.approx(log_loss(labels, shares))
    assert found.overall.prior_brier == pytest.approx(
        evaluate(labels, shares).scores["brier"].value
    )
    assert [view.event for view in found.views] == model.classes_.tolist()
    for k, view in enumerate(found.views):
        happened = labels == view.event
        assert view.quality.scores == evaluate(happened, table[:, k], seed=3).scores
        alone = compute(model, test, labels, positive=view.event, seed=3)
        assert alone.view.script_data() == found.views[k].script_data()
    page = report.build(model, test, labels, positive="versicolor")
    assert "all others" in page
    assert "Confusion matrix of all classes" in page
    for share in (*together.recall_by_class, *together.precision_by_class):
        assert f"<td>{percent(share)}</td>" in page


def test_of_very_many_classes_the_most_frequent_can_be_chosen(monkeypatch):
    monkeypatch.setattr("popf.report.page.MAX_VIEWS", 1)
    found = compute(*flowers(), positive="virginica")
    assert [view.event for view in found.views] == ["setosa", "virginica"]
    assert found.view.event == "virginica"
    assert "least frequent, are left out" in found.html()
