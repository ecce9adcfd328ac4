"""The report says what scikit-learn and popf compute, and shows paths in the user's units."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import (
    balanced_accuracy_score,
    brier_score_loss,
    confusion_matrix,
    log_loss,
    pairwise_distances,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from popf import POPFClassifier, report
from popf.display import prepare_thresholds
from popf.metrics import evaluate
from popf.report import numbers
from popf.report.contents import path_summary, verdict
from popf.report.formatting import figure
from report_cases import contents, energy


def test_scores_are_those_of_evaluate_at_the_threshold_the_page_opens_with(theft_case):
    model, X, y = theft_case
    found = contents(*theft_case, positive="theft", threshold=0.3, seed=7).quality
    table = model.predict_proba(X)
    expected = evaluate(y, table, threshold=0.3, seed=7)
    assert found.scores == expected.scores
    constant = np.full(len(y), found.prior)
    assert found.prior_log_loss == pytest.approx(log_loss(y == "theft", constant))
    assert found.prior_brier == pytest.approx(brier_score_loss(y == "theft", constant))


def test_verdict_says_whether_probabilities_are_too_high_or_too_low():
    rng = np.random.default_rng(2)
    chance = rng.beta(1.0, 3.0, 4000)
    happened = rng.random(4000) < chance
    assert "at their word" in verdict(numbers.quality(happened, chance))[0]
    assert "too high" in verdict(numbers.quality(happened, chance**0.5))[0]
    assert "off on average, mostly too low" in verdict(numbers.quality(happened, chance**2))[0]


def test_verdict_says_where_samples_are_few():
    rng = np.random.default_rng(0)
    chance = rng.random(60)
    words = " ".join(verdict(numbers.quality(rng.random(60) < chance, chance)))
    assert "60 samples show little" in words
    chance = rng.beta(0.05, 2.0, 300)
    happened = rng.random(300) < chance
    assert (
        f"Only {happened.sum()} of the samples are so"
        in verdict(numbers.quality(happened, chance))[-1]
    )


def test_verdict_tells_the_useless_and_the_harmful():
    rng = np.random.default_rng(0)
    happened = rng.random(2000) < 0.3
    prior = np.clip(0.3 + 0.01 * rng.standard_normal(2000), 0, 1)
    assert "no surer than" in verdict(numbers.quality(happened, prior))[1]
    worse = np.clip(rng.random(2000), 0.01, 0.99)
    assert "do not use them" in verdict(numbers.quality(happened, worse))[1]


@pytest.mark.parametrize("theta", [0.05, 0.25, 0.5, 0.8, 0.999])
def test_counts_at_a_threshold_are_the_confusion_matrix(theft_case, theta):
    model, X, y = theft_case
    found = contents(*theft_case).decisions
    counts, at = found.counts, found.nearest(theta)
    assert counts.thresholds[at] == theta
    called = np.where(model.predict_proba(X)[:, 1] >= theta, "theft", "regular")
    (passes, alarms), (misses, hits) = confusion_matrix(y, called).tolist()
    assert (counts.hits[at], counts.alarms[at]) == (hits, alarms)
    assert (counts.n_positive - hits, counts.n_negative - alarms) == (misses, passes)
    balanced = counts.scores()["balanced_accuracy"][at]
    assert balanced == pytest.approx(balanced_accuracy_score(y, called))


def test_recommended_thresholds_are_those_of_popf(theft_case):
    model, X, y = theft_case
    found = contents(*theft_case).decisions
    chance = model.predict_proba(X)[:, 1]
    for number, (alarm, miss) in list(enumerate(found.costs))[::3]:
        values = prepare_thresholds(
            y, chance, thresholds=found.counts.thresholds, cost_fp=1, cost_fn=miss / alarm
        )
        assert found.counts.thresholds[found.recommended[number]] == values.chosen
        np.testing.assert_allclose(found.mean_cost(number), values.costs["cost"], rtol=1e-12)


def test_costs_of_ones_own_are_on_the_slider(theft_case):
    found = contents(*theft_case, cost_fp=3.0, cost_fn=40.0)
    alarm, miss = found.decisions.costs[found.pair]
    assert miss / alarm == pytest.approx(40 / 3)
    assert found.start == found.decisions.recommended[found.pair]
    ratios = [miss / alarm for alarm, miss in found.decisions.costs]
    assert ratios == sorted(ratios)
    usual = contents(*theft_case, cost_fp=2.0, cost_fn=40.0)
    assert len(usual.decisions.costs) == len(numbers.COSTS)


def test_the_slider_starts_at_the_models_threshold_or_as_told(theft_case):
    model, X, y = theft_case

    def start(**options):
        found = contents(model, X, y, **options)
        return found.decisions.counts.thresholds[found.start]

    assert start() == 0.5
    assert start(threshold=0.12345) == 0.12345
    model.set_params(popfclassifier__threshold=0.3)
    try:
        assert start() == 0.3
        assert start(positive="regular") == 0.7
    finally:
        model.set_params(popfclassifier__threshold=0.5)


def test_the_highest_probabilities_come_first_with_rows_and_ids(theft_case):
    model, X, y = theft_case
    names = [f"C{row}" for row in range(len(y))]
    found = contents(*theft_case, ids={"consumer": names}, top=17)
    chance = model.predict_proba(X)[:, 1]
    rows = np.lexsort([np.arange(len(y)), -chance])[:17]
    assert [person.row for person in found.people] == (rows + 1).tolist()
    assert [person.ids for person in found.people] == [[f"C{row}"] for row in rows]
    assert [person.truth for person in found.people] == y[rows].tolist()
    assert [person.probability for person in found.people] == chance[rows].tolist()


def test_paths_are_those_of_the_forest_in_the_users_units(theft_case):
    model, X, _ = theft_case
    training = energy()[0][:400]
    found = contents(*theft_case, top=30)
    forest = model[-1].opf_
    for person in found.people:
        row = X.iloc[[person.row - 1]]
        (path,) = forest.explain(model[:-1].transform(row))
        view = person.path
        assert (view.label, view.cost, view.n_steps) == (path.label, path.cost, len(path.weights))
        assert view.nodes[0].name == f"training row {path.nodes[0] + 1}"
        assert view.nodes[0].kind == "prototype"
        assert view.nodes[-1].kind == "sample"
        assert [step.length for step in view.steps if step.longest] == [f"{path.cost:.4g}"]
        n_hidden = sum(step.left_out for step in view.steps)
        assert len(view.nodes) + n_hidden == len(path.nodes) + 1
        for name, prototype, *_, own in view.features:
            assert own == figure(row[name].iloc[0])
            assert prototype == figure(training[name].iloc[path.nodes[0]])
        assert f"costs {forest.path_costs_by_class(model[:-1].transform(row)).max():.4g}" in (
            path_summary(found, person)
        )


def test_categories_and_many_features_are_shown_as_they_were():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(300, 15)), columns=[f"f{k}" for k in range(15)])
    y = (X["f0"] + 0.5 * rng.normal(size=300) > 0).astype(int)
    X["region"] = rng.choice(["north", "south"], 300)
    steps = ColumnTransformer(
        [("words", OneHotEncoder(sparse_output=False), ["region"])], remainder=StandardScaler()
    )
    model = make_pipeline(steps, POPFClassifier()).fit(X[:150], y[:150])
    found = contents(model, X[150:].reset_index(drop=True), y[150:])
    assert not found.note
    for person in found.people:
        assert len(person.path.features) == 12
        assert person.path.n_hidden == 4
    cells = {row[-1] for p in found.people for row in p.path.features if row[0] == "region"}
    assert cells <= {"north", "south"}
    assert cells


def test_paths_through_a_linear_map_are_shown_in_the_users_units():
    X, y = energy()
    model = POPFClassifier(linear_map="whitening").fit(X[:300], y[:300])
    found = contents(model, X[300:].reset_index(drop=True), y[300:])
    for person in found.people[:10]:
        training = int(person.path.nodes[0].name.split()[-1]) - 1
        for name, prototype, *_ in person.path.features:
            value = float(prototype.replace(",", ""))
            assert value == pytest.approx(X[name].iloc[training], rel=1e-3)


def test_forests_on_distances_have_paths_without_features():
    X, y = load_breast_cancer(return_X_y=True)
    distances = pairwise_distances(X[200:], X[:200])
    model = POPFClassifier(metric="precomputed").fit(pairwise_distances(X[:200]), y[:200])
    found = contents(model, distances, y[200:])
    assert all(not person.path.features for person in found.people)
    assert report.build(model, distances, y[200:])


def test_what_cannot_be_undone_is_said(theft_case):
    from sklearn.preprocessing import Normalizer

    _, X, y = theft_case
    model = make_pipeline(StandardScaler(), Normalizer(), POPFClassifier()).fit(X[:200], y[:200])
    found = contents(model, X[200:], y[200:])
    assert "cannot be undone" in found.note
    assert {row[1] for row in found.people[0].path.features} == {"–"}


def test_three_classes_are_looked_at_one_against_the_others():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = POPFClassifier().fit(X[::2], names[::2])
    test, labels = X[1:121:2], names[1:121:2]
    found = contents(model, test, labels)
    assert found.event == "virginica"  # the rarest of these rows
    table = model.predict_proba(test)
    assert found.overall.scores["log_loss"].value == pytest.approx(log_loss(labels, table))
    np.testing.assert_array_equal(
        found.overall.confusion, confusion_matrix(labels, model.classes_[table.argmax(1)])
    )
    brier = brier_score_loss(labels == "virginica", table[:, 2])
    assert found.quality.scores["brier"].value == pytest.approx(brier)
    page = report.build(model, test, labels, positive="versicolor")
    assert "all others" in page
    assert "Which classes are taken for which" in page
