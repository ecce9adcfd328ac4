"""PlattOPFClassifier, against the equations of the paper, and as an estimator."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import naive
import naive_platt
from popf import OPFClassifier, PlattOPFClassifier
from popf.paper import (
    PSO,
    Newton,
    PlattObjective,
    Solution,
    platt_probability,
    platt_targets,
)
from probability_problems import NEW3, WIDE, WIDE_NEW, X3, Y3, Y, distances
from refusals import refused

# A box that does not bind, for the three classes.
WIDER = {"box": ((-60, 60), (-60, 60))}


@pytest.fixture(scope="module")
def three():
    return PlattOPFClassifier(**WIDER).fit(X3, np.array(["ant", "bee", "cat"])[Y3])


def naive_scores(X, y, new):
    """Signed costs y·C of training samples, then of new ones, for each class in turn as +1."""
    D = distances(X, X)
    costs, _ = naive.competition(D, naive.prototypes(D, y))
    nodes, path_costs = naive.conquer(costs, distances(new, X), y)
    classes = np.unique(y)
    return (
        np.column_stack([np.where(y == k, costs, -costs) for k in classes]),
        np.column_stack([np.where(y[nodes] == k, path_costs, -path_costs) for k in classes]),
    )


# Equations ---------------------------------------------------------------------------------------


def test_the_paper_to_the_letter():
    model = PlattOPFClassifier().fit(WIDE, Y)
    new = np.vstack([WIDE_NEW, WIDE])  # prototypes are conquered at cost 0
    f, signed = (both[:, 1] for both in naive_scores(WIDE, Y, new))
    objective = PlattObjective(f, platt_targets(Y))
    expected = Newton().minimize(objective)
    assert expected.at_bound == (None, None)
    assert_allclose([model.A_, model.B_], expected.theta, rtol=1e-8, atol=1e-8)
    expected = expit(-(model.A_ * signed + model.B_))  # equation 8
    assert_allclose(model.predict_proba(new)[:, 1], expected, rtol=0, atol=1e-12)
    assert_array_equal(model.predict(new), expected >= 0.5)


def test_equation_6_is_minimal_at_the_solution():
    model = PlattOPFClassifier().fit(WIDE, Y)
    f = naive_scores(WIDE, Y, WIDE)[0][:, 1]
    t = naive_platt.platt_targets(np.where(Y == 1, 1, -1), np.ones(len(Y)))  # equation 7

    def objective(theta):
        return naive_platt.platt_objective(f, t, np.ones(len(f)), theta)

    theta = np.array([model.A_, model.B_])
    assert objective(theta) == pytest.approx(model.solution_.value, rel=1e-12)
    for step in ([1e-3, 0.0], [-1e-3, 0.0], [0.0, 1e-3], [0.0, -1e-3]):
        assert objective(theta + step) > objective(theta)


def test_probabilities_are_the_papers_formula():
    model = PlattOPFClassifier().fit(WIDE, Y)
    nodes, costs, _ = model.opf_.conquer(WIDE_NEW)
    signed = np.where(Y[nodes] == 1, costs, -costs)
    P = platt_probability(signed, (model.A_, model.B_))
    assert_array_equal(model.predict_proba(WIDE_NEW)[:, 1], P)
    assert_allclose(model.decision_function(WIDE_NEW), -(model.A_ * signed + model.B_))


def test_more_classes_are_each_set_against_the_rest(three):
    f, signed = naive_scores(X3, Y3, NEW3)
    p = np.empty_like(signed)
    for k in range(3):
        found = Newton().minimize(PlattObjective(f[:, k], platt_targets(k == Y3)), box=None)
        assert_allclose([three.A_[k], three.B_[k]], found.theta, rtol=1e-8, atol=1e-8)
        p[:, k] = expit(-(found.theta[0] * signed[:, k] + found.theta[1]))
    expected = p / p.sum(axis=1, keepdims=True)
    assert_allclose(three.predict_proba(NEW3), expected, rtol=0, atol=1e-9)
    assert_array_equal(three.predict(NEW3), three.classes_[expected.argmax(axis=1)])
    assert [type(each) for each in three.solution_] == [Solution] * 3


def test_probabilities_that_all_round_to_0_are_normalised_all_the_same():
    with pytest.warns(UserWarning, match="class .*: .*box"):
        model = PlattOPFClassifier(box=((-1.0, 1.0), (800.0, 900.0))).fit(X3, Y3)
    nodes, costs, _ = model.opf_.conquer(NEW3)
    signed = np.where(Y3[nodes, None] == np.arange(3), costs[:, None], -costs[:, None])
    assert (platt_probability(signed, (model.A_, model.B_)) == 0.0).all()
    logs = -np.logaddexp(0.0, model.A_ * signed + model.B_)
    P = np.exp(logs - logs.max(axis=1, keepdims=True))
    assert_allclose(model.predict_proba(NEW3), P / P.sum(axis=1, keepdims=True), rtol=1e-9)


# Solvers and their warnings ----------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "solver", ["pso", "bat", "firefly", "nelder-mead", PSO(inertia=0.6), Newton()]
)
def test_every_solver_fits(solver):
    model = PlattOPFClassifier(solver, random_state=0).fit(WIDE, Y)
    again = PlattOPFClassifier(solver, random_state=0).fit(WIDE, Y)
    assert_array_equal(model.predict_proba(WIDE_NEW), again.predict_proba(WIDE_NEW))
    newton = PlattOPFClassifier().fit(WIDE, Y)
    rough = solver in ("bat", "firefly")
    assert model.solution_.value <= newton.solution_.value * (1.03 if rough else 1.001)
    P, expected = model.predict_proba(WIDE_NEW), newton.predict_proba(WIDE_NEW)
    assert_allclose(P, expected, rtol=0, atol=0.1 if rough else 1e-2)
    assert isinstance(model.solution_, Solution)
    assert (np.diff(model.solution_.history) <= 0.0).all()
    assert model.solution_.n_evaluations > 0
    assert model.A_ < 0.0


@pytest.mark.parametrize("solver", ["newton", "nelder-mead", "pso"])
def test_a_box_that_binds_is_reported(solver):
    with pytest.warns(UserWarning, match="box") as caught:
        model = PlattOPFClassifier(solver, random_state=0).fit(WIDE * 1e-3, Y)
    said = " ".join(str(warning.message) for warning in caught)
    assert "scale" in said
    assert "POPFClassifier" in said
    assert caught[0].filename == __file__
    assert_allclose(model.A_, -10.0, atol=1e-4)
    wide = ((-1e5, 1e5), (-1e5, 1e5))
    free = PlattOPFClassifier(box=wide).fit(WIDE * 1e-3, Y)
    assert_allclose(free.A_, 1e3 * PlattOPFClassifier().fit(WIDE, Y).A_, rtol=1e-6)


def test_a_solver_that_stops_early_warns_and_keeps_its_best_point():
    with pytest.warns(ConvergenceWarning):
        model = PlattOPFClassifier(Newton(max_iterations=1)).fit(WIDE, Y)
    assert np.isfinite([model.A_, model.B_]).all()
    assert model.solution_.value == model.solution_.history[-1]


# Predictions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_answers_fit_together(n_classes, three):
    model, X, y, new = three, X3, three.classes_[Y3], NEW3
    if n_classes == 2:
        model, X, y, new = PlattOPFClassifier().fit(WIDE, Y), WIDE, Y, WIDE_NEW
    P = model.predict_proba(new)
    assert_allclose(P.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert_allclose(model.predict_log_proba(new), np.log(P), rtol=1e-9, atol=1e-12)
    assert_array_equal(model.predict(new), model.classes_[P.argmax(axis=1)])
    if n_classes == 2:
        assert_allclose(expit(model.decision_function(new)), P[:, 1], rtol=0, atol=1e-12)
    else:
        p = expit(model.decision_function(new))
        assert_allclose(p / p.sum(axis=1, keepdims=True), P, rtol=0, atol=1e-12)
    assert log_loss(y, model.predict_proba(X)) < 0.9 * np.log(n_classes)


def test_log_probabilities_near_0_and_1_are_exact():
    model = PlattOPFClassifier(box=None).fit([[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1])
    far = [[-300.0], [400.0]]
    logs, log_odds = model.predict_log_proba(far), model.decision_function(far)
    assert np.abs(log_odds).min() > 100.0
    for row, odds in zip(logs, log_odds, strict=True):
        surely = int(odds > 0.0)
        assert row[1 - surely] == pytest.approx(-abs(odds), rel=1e-12)
        assert row[surely] == pytest.approx(-np.exp(-abs(odds)), rel=1e-12)


def test_predict_thresholds_the_probability():
    model = PlattOPFClassifier(threshold=0.01).fit(WIDE, np.array(["no", "yes"])[Y])
    P = model.predict_proba(WIDE_NEW)[:, 1]
    for threshold in (0.01, 0.5, 0.99):
        above = np.greater_equal(P, threshold).astype(int)
        predicted = model.set_params(threshold=threshold).predict(WIDE_NEW)
        assert_array_equal(predicted, model.classes_[above])


def test_a_second_fit_forgets_the_first(three):
    model = clone(three).fit(X3, Y3).fit(WIDE, Y)
    assert isinstance(model.A_, float)
    expected = PlattOPFClassifier(**WIDER).fit(WIDE, Y)
    assert_array_equal(model.predict_proba(WIDE_NEW), expected.predict_proba(WIDE_NEW))
    refused(lambda: model.fit(WIDE, np.zeros(len(Y))), "one class")
    assert not hasattr(model, "samples_")


def test_weights_count_like_repeated_samples_in_the_fit_of_a_and_b():
    weights = np.arange(len(Y)) % 3
    model = PlattOPFClassifier(**WIDER).fit(WIDE, Y, sample_weight=weights)
    kept = np.flatnonzero(weights)
    assert_array_equal(model.samples_, WIDE[kept])
    f = naive_scores(WIDE[kept], Y[kept], WIDE[:1])[0][:, 1]
    counts = weights[kept]
    objective = PlattObjective(np.repeat(f, counts), platt_targets(np.repeat(Y[kept], counts)))
    expected = Newton().minimize(objective, **WIDER)
    assert_allclose([model.A_, model.B_], expected.theta, rtol=1e-7)


def test_paths_lead_to_the_node_that_conquers():
    model = PlattOPFClassifier().fit(WIDE, Y)
    expected = OPFClassifier().fit(WIDE, Y).explain(WIDE_NEW)
    assert [path.cost for path in model.explain(WIDE_NEW)] == [path.cost for path in expected]


def test_precomputed_distances():
    model = PlattOPFClassifier(metric="precomputed").fit(distances(WIDE, WIDE), Y)
    expected = PlattOPFClassifier().fit(WIDE, Y).predict_proba(WIDE_NEW)
    P = model.predict_proba(distances(WIDE_NEW, WIDE))
    assert_allclose(P, expected, rtol=0, atol=1e-9)
    assert model.samples_ is None


# scikit-learn's tools, state, invalid parameters -------------------------------------------------


def test_searches_and_calibration():
    grid = {"solver": ["newton", "nelder-mead"], "smoothing": [1.0, 20.0]}
    search = GridSearchCV(PlattOPFClassifier(), grid, scoring="neg_log_loss", cv=3).fit(WIDE, Y)
    assert search.best_params_["smoothing"] == 20.0  # less confident
    calibrated = CalibratedClassifierCV(PlattOPFClassifier(**WIDER), cv=3).fit(X3, Y3)
    assert calibrated.predict_proba(NEW3).shape == (len(NEW3), 3)


BAD_STATE = {
    "no forest": (lambda state: state.update(opf_=None), "opf_"),
    "unfitted": (lambda state: state.update(opf_=OPFClassifier()), "opf_"),
    "width": (lambda state: state.update(n_features_in_=3), "samples_"),
    "fits": (lambda state: state["solution_"].append({}), "solution_ .* list of 1"),
    "history": (lambda state: state["solution_"][0].update(history=np.empty(0)), "path"),
    "path": (lambda state: state["solution_"][0].update(path=np.ones((1, 2))), "path"),
    "infinite": (lambda state: state["solution_"][0]["path"].fill(np.inf), "path .* finite"),
    "evaluations": (lambda state: state["solution_"][0].update(n_evaluations=-1), "n_evaluations"),
    "at_bound": (lambda state: state["solution_"][0].update(at_bound=("low", None)), "at_bound"),
    "missing": (lambda state: state["solution_"][0].pop("path"), "lacks path"),
}


@pytest.mark.parametrize(("spoil", "words"), BAD_STATE.values(), ids=BAD_STATE)
def test_a_state_with_wrong_values_is_refused(spoil, words):
    state = pickle.loads(pickle.dumps(PlattOPFClassifier().fit(WIDE, Y))).__getstate__()
    PlattOPFClassifier().__setstate__(state)
    spoil(state)
    with pytest.raises(ValueError, match=words):
        PlattOPFClassifier().__setstate__(state)


WRONG = {
    "threshold 0": ({"threshold": 0.0}, ["threshold", "0.0"]),
    "threshold nan": ({"threshold": np.nan}, ["threshold", "nan"]),
    "threshold word": ({"threshold": "half"}, ["threshold", "'half'"]),
    "box empty": ({"box": ((1, 1), (-3, 3))}, ["box", "1.0", "lower"]),
    "box shape": ({"box": (-3, 3)}, ["box", "(2,)"]),
    "solver": ({"solver": "sgd"}, ["solver", "'sgd'", "'newton'"]),
    "solver number": ({"solver": 3}, ["solver", "3"]),
    "solver class": ({"solver": PSO}, ["solver", "PSO"]),
    "smoothing": ({"smoothing": -1.0}, ["smoothing", "-1.0"]),
    "metric": ({"metric": "crow"}, ["metric", "'crow'"]),
    "algorithm": ({"algorithm": "magic"}, ["algorithm", "'magic'"]),
}


@pytest.mark.parametrize(("parameters", "said"), WRONG.values(), ids=WRONG)
def test_wrong_parameters(parameters, said):
    model = PlattOPFClassifier(**parameters)
    refused(lambda: model.fit(WIDE, Y), *said, kind=(ValueError, TypeError))


def expected_failures(estimator):
    """Checks expected to fail, each with its reason."""
    if estimator.metric == "precomputed":
        return {"check_decision_proba_consistency": "passes features, not distances"}
    return {}


@parametrize_with_checks(
    [
        PlattOPFClassifier(),
        PlattOPFClassifier("nelder-mead", metric="manhattan", n_jobs=2),
        PlattOPFClassifier(metric="precomputed"),
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore:.*array_api.*:UserWarning")
@pytest.mark.filterwarnings("ignore:.*box.*:UserWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
