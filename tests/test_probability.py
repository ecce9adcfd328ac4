"""POPFClassifier: both methods against the definitions, and as users meet them."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit, softmax
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_blobs, make_moons
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss, pairwise_distances
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import naive
import naive_maps
import naive_soft
from popf import OPFClassifier, POPFClassifier, map_choice, soft_method
from popf.linear_maps import DiscriminantStretch
from popf.solvers import PSO, Newton, PlattObjective, Solution, platt_targets
from popf.solvers.softmax import fit_softmax, softmax_targets
from strategies import bounded, moderate_floats, problems, size, small_integers

X, Y = make_moons(size(120), noise=0.3, random_state=1)
NEW = np.random.default_rng(2).uniform(-1.5, 2.5, size=(40, 2))
X3, Y3 = make_blobs(90, centers=3, cluster_std=3.0, random_state=0)
NEW3 = np.random.default_rng(3).uniform(-8, 10, size=(40, 2))
WINE, CULTIVAR = load_wine(return_X_y=True)
SWARMS = ["pso", "bat", "firefly"]


def soft(**parameters):
    return POPFClassifier(**parameters)


def paper(**parameters):
    return POPFClassifier(method="paper", **parameters)


def distances(A, B):
    return np.sqrt(naive.squared_distances(A, B))


def scale_of(X):
    """Bring the costs near 1, where the paper's box does not bind."""
    return 1.0 / OPFClassifier().fit(X, Y).costs_.max()


WIDE = X * 4.0 * scale_of(X)  # the paper's features, wide enough that A lies inside its box
WIDE_NEW = NEW * 4.0 * scale_of(X)


def refused(call, *said, kind=ValueError):
    """Check that `call` raises `kind`, and that the message says all of `said`."""
    with pytest.raises(kind) as refusal:
        call()
    missing = [words for words in said if words not in str(refusal.value)]
    assert not missing, str(refusal.value)


# The definition ----------------------------------------------------------------------------------


def assert_equals_naive(model, forest, D_queries, queries, tolerance):
    """Losses on the whole grid, the choice among them, and probabilities at it."""
    taus = model.bandwidths_
    calibrations = [naive_soft.calibrate(forest, tau) for tau in taus]
    losses = np.array(
        [
            naive_soft.left_out_loss(forest, c, tau)
            for c, tau in zip(calibrations, taus, strict=True)
        ]
    )
    # A slope of almost nothing may be found on either side of the guard.
    clear = np.array([c.slope == 0.0 or abs(c.slope) > 1e-7 for c in calibrations])
    assert_allclose(model.left_out_losses_[clear], losses[clear], rtol=0, atol=tolerance)
    chosen = taus.tolist().index(model.bandwidth_)
    assert model.left_out_losses_[chosen] == model.left_out_losses_.min()
    if not clear[chosen]:
        return
    m = naive_soft.scores(forest, D_queries, model.bandwidth_)
    weight = naive_weight(forest, losses[chosen])
    if calibrations[chosen].prior is None:
        assert_allclose(model.prior_weight_, 1.0 - weight, rtol=0, atol=max(1e-6, 10 * tolerance))
    prior = naive_soft.smoothed_prior(forest.y, forest.w, forest.n_classes)
    mixed = naive_soft.probabilities(calibrations[chosen], m) ** weight * prior ** (1.0 - weight)
    expected = mixed / mixed.sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba(queries), expected, rtol=0, atol=tolerance)
    if forest.n_classes == 2:
        decision = -(model.A_ * (m[:, 0] - m[:, 1]) + model.B_)
    else:
        decision = -model.slope_ * m + model.biases_
    assert_allclose(model.decision_function(queries), decision, rtol=1e-9, atol=1e-9)


def naive_weight(forest, loss):
    """Odds of the scores against the prior alone: likelihood ratio over the number of samples."""
    rows = naive_soft.scored(forest)
    y, w = forest.y[rows], forest.w[rows]
    prior = naive_soft.smoothed_prior(forest.y, forest.w, forest.n_classes)
    gain = -(w * np.log(prior[y])).sum() - w.sum() * loss
    sizes = [w[y == k].sum() for k in np.unique(y)]
    number = max(len(sizes) * len(sizes) / sum(1.0 / size for size in sizes), 1.0)
    odds = np.exp(gain) / number
    return odds / (1.0 + odds)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("algorithm", ["kd_tree", "brute", "prim"])
@pytest.mark.parametrize("weighted", [False, True])
def test_soft_is_the_naive_version(n_classes, algorithm, weighted):
    samples, y, queries = (X[::2], Y[::2], NEW) if n_classes == 2 else (X3[::2], Y3[::2], NEW3)
    w = np.random.default_rng(0).integers(1, 4, len(y)) if weighted else None
    forest = naive_soft.grow(distances(samples, samples), y, w)
    model = soft(algorithm=algorithm).fit(samples, y, sample_weight=w)
    assert_equals_naive(model, forest, distances(queries, samples), queries, 1e-9)


def test_the_grid_is_geometric_around_the_median_winning_cost():
    weights = np.random.default_rng(0).integers(1, 4, 41)
    grids = []
    for n, w in [(40, None), (41, None), (41, weights)]:  # medians of even and odd numbers
        forest = naive_soft.grow(distances(X[:n], X[:n]), Y[:n], w)
        model = soft().fit(X[:n], Y[:n], sample_weight=w)
        grids.append(np.sort(model.bandwidths_) / naive_soft.unit(forest))
    h = grids[0]
    assert_allclose(np.diff(np.log(h)), np.log(h[1] / h[0]), rtol=1e-6)
    assert 0.01 < h[0] < 0.05
    assert 4.0 < h[-1] < 16.0
    assert_allclose(grids[1:], [h, h], rtol=1e-9)


@given(problems(small_integers, max_size=14, max_features=2))
@bounded(15)
def test_soft_is_the_naive_version_with_ties(problem):
    samples, y, queries = problem
    assume((np.bincount(y) > 1).sum() >= 2)  # or no row has scores, and there are no losses
    forest = naive_soft.grow(distances(samples, samples), y)
    model = soft().fit(samples, y)
    assert_equals_naive(model, forest, distances(queries, samples), queries, 1e-7)


@given(problems(moderate_floats, max_size=16))
@bounded(20)
def test_probabilities_lie_inside_and_sum_to_one(problem):
    samples, y, queries = problem
    model = soft().fit(samples, y)
    P = model.predict_proba(queries)
    assert np.isfinite(P).all()
    assert (P >= 0.0).all()
    assert (P <= 1.0).all()
    assert_allclose(P.sum(axis=1), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("samples", "y"), [(X, Y), (X3, Y3)], ids=["two", "three"])
def test_the_smallest_score_at_a_small_bandwidth_is_the_class_of_the_forest(samples, y):
    queries = NEW if samples is X else NEW3
    labels = OPFClassifier().fit(samples, y).predict(queries)
    forest = naive_soft.grow(distances(samples, samples), y)
    m = naive_soft.scores(forest, distances(queries, samples), 1e-7 * naive_soft.unit(forest))
    assert_array_equal(m.argmin(axis=1), labels)
    model = soft().fit(samples, y)
    assert_array_equal(model.opf_.predict(queries), labels)
    assert_array_equal(model.opf_.costs_, OPFClassifier().fit(samples, y).costs_)
    model.bandwidth_ *= 1e-7
    decision = model.decision_function(queries)
    chosen = decision > 0.0 if decision.ndim == 1 else decision.argmax(axis=1)
    assert_array_equal(chosen, labels)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_left_out_scores_do_not_see_class_counts(n_classes):
    # Labels that have nothing to do with the features: with a sum instead of a mean, leaving a sample
    # out would tell its class.
    rng = np.random.default_rng(5)
    samples, y = rng.normal(size=(200, 3)), rng.permutation(np.arange(200) % n_classes)
    P = soft().fit(samples, y).predict_proba(rng.normal(size=(100, 3)))
    assert log_loss(np.arange(100) % n_classes, P) < np.log(n_classes) + 0.15
    assert soft().fit(samples, y).left_out_losses_.min() > np.log(n_classes) - 0.15


# What must not matter ----------------------------------------------------------------------------

DUPLICATES = np.repeat([[0.0, 0.0], [1.0, 0.0]], 40, axis=0)
DUPLICATE_LABELS = np.repeat([0, 1, 0, 1], [30, 10, 5, 35])
SCALED = {"moons": (X, Y, NEW), "blobs": (X3, Y3, NEW3)}
SCALED["duplicates"] = (DUPLICATES, DUPLICATE_LABELS, np.array([[0.0, 0.0], [1.0, 0.0]]))


@pytest.mark.parametrize("factor", [1e-150, 1e-3, 1e6, 1e150])
@pytest.mark.parametrize(("samples", "y", "queries"), SCALED.values(), ids=SCALED)
def test_the_scale_of_the_features(samples, y, queries, factor):
    one = soft().fit(samples, y)
    other = soft().fit(samples * factor, y)
    assert_allclose(
        other.predict_proba(queries * factor), one.predict_proba(queries), rtol=0, atol=1e-9
    )
    assert_allclose(other.bandwidth_, one.bandwidth_ * factor, rtol=1e-9)


@pytest.mark.parametrize("calibration", ["softmax", "multinomial"])
@pytest.mark.parametrize(("samples", "y", "queries"), [(X, Y, NEW), (X3, Y3, NEW3)])
def test_rows_rotation_and_names_of_the_labels(samples, y, queries, calibration):
    def soft():
        return POPFClassifier(calibration=calibration)

    P = soft().fit(samples, y).predict_proba(queries)
    shuffled = np.random.default_rng(0).permutation(len(y))
    again = soft().fit(samples[shuffled], y[shuffled]).predict_proba(queries)
    assert_allclose(again, P, rtol=0, atol=1e-9)
    turn = np.array([[np.cos(0.7), -np.sin(0.7)], [np.sin(0.7), np.cos(0.7)]])
    turned = soft().fit(samples @ turn, y).predict_proba(queries @ turn)
    assert_allclose(turned, P, rtol=0, atol=1e-9)
    named = soft().fit(samples, np.array(["ant", "bee", "cat"])[y])
    assert_array_equal(named.classes_, ["ant", "bee", "cat"][: y.max() + 1])
    assert_array_equal(named.predict_proba(queries), P)
    assert set(named.predict(queries)) <= {"ant", "bee", "cat"}
    reversed_ = soft().fit(samples, y.max() - y).predict_proba(queries)
    assert_allclose(reversed_[:, ::-1], P, rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", ["soft", "paper"])
def test_threads_and_memory(method):
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(size(700), 12)) * 3.0
    y = (samples[:, 0] + rng.normal(size=len(samples)) > 0).astype(int)
    queries = rng.normal(size=(150, 12)) * 3.0
    for algorithm in ["kd_tree", "brute", "prim"]:
        one = POPFClassifier(method, algorithm=algorithm).fit(samples, y)
        P = one.predict_proba(queries)
        for parameters in [{"n_jobs": 2}, {"working_memory": 0.05}]:
            other = POPFClassifier(method, algorithm=algorithm, **parameters).fit(samples, y)
            assert_array_equal(other.predict_proba(queries), P)
            assert (other.A_, other.B_) == (one.A_, one.B_)


@pytest.mark.parametrize("method", ["soft", "paper"])
def test_few_queries_or_many_get_the_same_answer(method):
    model = POPFClassifier(method).fit(WIDE, Y)
    P = model.predict_proba(WIDE_NEW)
    one_by_one = np.concatenate([model.predict_proba(row[np.newaxis]) for row in WIDE_NEW])
    assert_allclose(one_by_one, P, rtol=0, atol=1e-12)


# Weights -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["soft", "paper"])
def test_integer_weights_are_repetition(method):
    w = np.random.default_rng(1).integers(0, 4, len(Y))
    weighted = POPFClassifier(method).fit(WIDE, Y, sample_weight=w)
    repeated = POPFClassifier(method).fit(np.repeat(WIDE, w, axis=0), np.repeat(Y, w))
    assert_allclose(
        weighted.predict_proba(WIDE_NEW), repeated.predict_proba(WIDE_NEW), rtol=0, atol=1e-9
    )
    if method == "soft":
        assert_allclose(weighted.bandwidth_, repeated.bandwidth_, rtol=1e-12)


def test_integer_weights_are_repetition_for_three_classes():
    w = np.random.default_rng(1).integers(0, 4, len(Y3))
    weighted = soft().fit(X3, Y3, sample_weight=w).predict_proba(NEW3)
    repeated = soft().fit(np.repeat(X3, w, axis=0), np.repeat(Y3, w)).predict_proba(NEW3)
    assert_allclose(weighted, repeated, rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", ["soft", "paper"])
def test_zero_weights_are_absence(method):
    w = (np.arange(len(Y)) % 3 > 0).astype(float)
    weighted = POPFClassifier(method).fit(WIDE, Y, sample_weight=w)
    absent = POPFClassifier(method).fit(WIDE[w > 0], Y[w > 0])
    assert_array_equal(weighted.predict_proba(WIDE_NEW), absent.predict_proba(WIDE_NEW))
    unit = POPFClassifier(method).fit(WIDE, Y, sample_weight=np.ones(len(Y)))
    assert_allclose(
        unit.predict_proba(WIDE_NEW),
        POPFClassifier(method).fit(WIDE, Y).predict_proba(WIDE_NEW),
        rtol=0,
        atol=1e-12,
    )


def test_zero_weights_are_absence_from_a_matrix():
    w = (np.arange(len(Y)) % 3 > 0).astype(float)
    D, D_new = distances(X, X), distances(NEW, X)
    kept = w > 0
    weighted = soft(metric="precomputed").fit(D, Y, sample_weight=w)
    absent = soft(metric="precomputed").fit(D[np.ix_(kept, kept)], Y[kept])
    assert_array_equal(weighted.predict_proba(D_new), absent.predict_proba(D_new[:, kept]))


def test_weights_that_almost_vanish():
    w = np.where(np.arange(len(Y)) % 2 == 0, 1.0, 1e-20)
    P = soft().fit(X, Y, sample_weight=w).predict_proba(NEW)
    rest = soft().fit(X, Y, sample_weight=np.full(len(Y), 1e-20)).predict_proba(NEW)
    pair = (
        soft().fit(X[:4], [0, 0, 1, 1], sample_weight=[1.0, 1e-20, 1.0, 1e-20]).predict_proba(NEW)
    )
    for answer in (P, rest, pair):
        assert np.isfinite(answer).all()
        assert_allclose(answer.sum(axis=1), 1.0)


def test_fractional_weights():
    w = np.random.default_rng(1).uniform(0.1, 2.0, len(Y))
    P = soft().fit(X, Y, sample_weight=w).predict_proba(NEW)
    assert ((P > 0.0) & (P < 1.0)).all()
    assert log_loss(Y, soft().fit(X, Y, sample_weight=w).predict_proba(X)) < 0.5


# Nasty data --------------------------------------------------------------------------------------


def test_every_point_with_both_labels():
    samples = np.concatenate([X, X])
    y = np.repeat([0, 1], len(X))
    assert_allclose(soft().fit(samples, y).predict_proba(NEW), 0.5, rtol=0, atol=1e-12)


def test_constant_features_give_the_smoothed_prior():
    model = soft().fit(np.ones((20, 3)), np.repeat([0, 1], [14, 6]))
    expected = np.tile([15 / 22, 7 / 22], (2, 1))
    assert_allclose(model.predict_proba([[1, 1, 1], [5, 5, 5]]), expected, rtol=1e-12)


def test_constant_features_and_three_classes():
    P = (
        soft()
        .fit(np.ones((20, 3)), np.repeat([0, 1, 2], [12, 6, 2]))
        .predict_proba(np.ones((1, 3)))
    )
    assert (np.diff(P[0]) < 0.0).all()
    assert_allclose(P[0], [0.6, 0.3, 0.1], atol=0.08)


def test_a_class_with_one_sample():
    samples = np.concatenate([X[Y == 0], [[5.0, 5.0]]])
    y = np.repeat([0, 1], [len(samples) - 1, 1])
    P = soft().fit(samples, y).predict_proba(np.concatenate([NEW, samples]))
    assert ((P > 0.0) & (P < 1.0)).all()
    assert P[:-1, 1].mean() < 0.3
    assert P[-1, 1] > P[:-1, 1].mean() - 1e-12


def test_one_sample_of_each_class():
    P = soft().fit([[0.0], [1.0]], [0, 1]).predict_proba([[0.0], [0.4], [1.0]])
    assert ((P > 0.0) & (P < 1.0)).all()
    assert_allclose(P, 0.5)
    P = soft().fit([[0.0], [1.0], [3.0]], [0, 1, 2]).predict_proba([[0.0], [1.0], [3.0]])
    assert_allclose(P, 1 / 3)


def test_heavy_duplicates():
    model = soft().fit(DUPLICATES, DUPLICATE_LABELS)
    P = model.predict_proba([[0.0, 0.0], [1.0, 0.0]])[:, 1]
    assert ((P > 0.0) & (P < 1.0)).all()
    assert_allclose(P, [0.25, 0.875], atol=0.06)


def test_separate_classes_and_an_outlier():
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(60, 2)) + np.repeat([0.0, 20.0], 30)[:, np.newaxis]
    y = np.repeat([0, 1], 30)
    P = soft().fit(samples, y).predict_proba(samples)
    assert ((P > 0.0) & (P < 1.0)).all()
    assert P[np.arange(60), y].min() > 0.9
    samples[0] = 1e8
    model = soft().fit(samples, y)
    assert model.predict_proba(samples)[np.arange(60), y][1:].min() > 0.9
    assert np.isfinite(model.predict_log_proba(samples)).all()


# The paper's method ------------------------------------------------------------------------------


def test_the_paper_to_the_letter():
    model = paper().fit(WIDE, Y)
    D = distances(WIDE, WIDE)
    costs, _ = naive.competition(D, naive.prototypes(D, Y))
    f = np.where(Y == 1, costs, -costs)
    objective = PlattObjective(f, platt_targets(Y))
    expected = Newton().minimize(objective)
    assert expected.at_bound == (None, None)
    assert_allclose([model.A_, model.B_], expected.theta, rtol=1e-8, atol=1e-8)
    nodes, path_costs = naive.conquer(costs, distances(WIDE_NEW, WIDE), Y)
    signed = np.where(Y[nodes] == 1, path_costs, -path_costs)
    expected = expit(-(model.A_ * signed + model.B_))
    assert_allclose(model.predict_proba(WIDE_NEW)[:, 1], expected, rtol=0, atol=1e-12)


def test_the_paper_at_cost_zero():
    model = paper().fit(WIDE, Y)
    P = model.predict_proba(WIDE[model.opf_.prototypes_])[:, 1]
    assert_allclose(P, 1.0 / (1.0 + np.exp(model.B_)), rtol=1e-12)
    assert model.A_ < 0.0
    assert model.classes_.tolist() == [0, 1]


@pytest.mark.parametrize("solver", ["nelder-mead", "pso"])
def test_solvers_agree_where_the_box_does_not_bind(solver):
    newton = paper().fit(WIDE, Y)
    other = paper(solver=solver, random_state=0).fit(WIDE, Y)
    assert other.solution_.value <= newton.solution_.value + 1e-3
    assert_allclose([other.A_, other.B_], [newton.A_, newton.B_], atol=2e-2)
    P, expected = other.predict_proba(WIDE_NEW), newton.predict_proba(WIDE_NEW)
    assert_allclose(P, expected, rtol=0, atol=1e-2)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("method", ["soft", "paper"])
@pytest.mark.parametrize("solver", [*SWARMS, "nelder-mead", PSO(inertia=0.6), Newton()])
def test_every_solver_fits(method, solver):
    model = POPFClassifier(method, solver=solver, random_state=0).fit(WIDE, Y)
    again = POPFClassifier(method, solver=solver, random_state=0).fit(WIDE, Y)
    assert_array_equal(model.predict_proba(WIDE_NEW), again.predict_proba(WIDE_NEW))
    newton = POPFClassifier(method).fit(WIDE, Y)
    slack = 3e-2 if solver in ("bat", "firefly") else 1e-3
    if method == "paper":  # the others may choose another bandwidth
        assert model.solution_.value <= newton.solution_.value * (1.0 + slack)
    assert_allclose(model.predict_proba(WIDE_NEW), newton.predict_proba(WIDE_NEW), atol=0.1)
    assert isinstance(model.solution_, Solution)
    assert (np.diff(model.solution_.history) <= 0.0).all()
    assert model.solution_.n_evaluations > 0
    assert model.A_ < 0.0


@pytest.mark.parametrize("solver", ["newton", "nelder-mead", "pso"])
def test_a_box_that_binds_is_reported(solver):
    with pytest.warns(UserWarning, match="box") as caught:
        model = paper(solver=solver, random_state=0).fit(WIDE * 1e-3, Y)
    said = " ".join(str(warning.message) for warning in caught)
    assert "scale" in said
    assert "soft" in said
    assert_allclose(model.A_, -10.0, atol=1e-4)
    wide = ((-1e5, 1e5), (-1e5, 1e5))
    free = paper(box=wide).fit(WIDE * 1e-3, Y)
    assert_allclose(free.A_, 1e3 * paper().fit(WIDE, Y).A_, rtol=1e-6)


def test_a_solver_that_stops_early_warns_and_keeps_its_best_point():
    with pytest.warns(ConvergenceWarning):
        model = paper(solver=Newton(max_iterations=1)).fit(WIDE, Y)
    assert np.isfinite([model.A_, model.B_]).all()
    assert model.solution_.value == model.solution_.history[-1]


# Answers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["soft", "paper"])
def test_answers_fit_together(method):
    model = POPFClassifier(method).fit(WIDE, Y)
    P = model.predict_proba(WIDE_NEW)
    assert P.shape == (len(WIDE_NEW), 2)
    assert_allclose(P.sum(axis=1), 1.0, rtol=0, atol=1e-15)
    assert_allclose(model.predict_log_proba(WIDE_NEW), np.log(P), rtol=1e-9, atol=1e-12)
    assert_allclose(model.decision_function(WIDE_NEW), logit(P[:, 1]), rtol=1e-6, atol=1e-9)
    assert model.n_features_in_ == 2
    assert isinstance(model.A_, float)
    assert isinstance(model.B_, float)


@pytest.mark.parametrize("calibration", ["softmax", "multinomial"])
def test_answers_fit_together_for_three_classes(calibration):
    model = soft(calibration=calibration).fit(X3, Y3)
    P = model.predict_proba(NEW3)
    assert_allclose(P.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert_allclose(softmax(model.decision_function(NEW3), axis=1), P, rtol=0, atol=1e-12)
    assert_allclose(model.predict_log_proba(NEW3), np.log(P), rtol=1e-9, atol=1e-12)
    assert_array_equal(model.predict(NEW3), model.classes_[P.argmax(axis=1)])
    assert log_loss(Y3, model.predict_proba(X3)) < 0.9 * np.log(3)
    if calibration == "softmax":
        assert model.slope_ > 0.0
        assert model.biases_.shape == (3,)


def test_a_class_of_one_sample_has_its_probability_in_either_calibration():
    rows, y = np.vstack([X3, [[9.0, 9.0]]]), np.append(Y3, 3)
    model = soft(calibration="multinomial").fit(rows, y)
    P = model.predict_proba(rows)
    # No sample of the last class can be left out: there is nothing to fit a regression to.
    assert P.shape == (len(rows), 4)
    assert_array_equal(P, soft(calibration="softmax").fit(rows, y).predict_proba(rows))
    assert model.predict(rows)[-1] == 3
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(rows), P)
    # With two there is.
    rows, y = np.vstack([rows, [[9.0, 8.5]]]), np.append(y, 3)
    two = soft(calibration="multinomial").fit(rows, y).predict_proba(rows)
    assert two.shape == (len(rows), 4)
    assert not np.array_equal(two, soft(calibration="softmax").fit(rows, y).predict_proba(rows))


@pytest.mark.parametrize("method", ["soft", "paper"])
@pytest.mark.parametrize("threshold", [0.01, 0.2, 0.5, 0.7, 0.99])
def test_predict_thresholds_the_probability(method, threshold):
    y = np.array(["no", "yes"])[Y]
    model = POPFClassifier(method, threshold=threshold).fit(WIDE, y)
    P = model.predict_proba(WIDE_NEW)[:, 1]
    above = np.greater_equal(P, threshold).astype(int)
    assert_array_equal(model.predict(WIDE_NEW), model.classes_[above])


def test_extreme_queries_stay_finite():
    model = soft().fit(X, Y)
    P = model.predict_proba([[1e100, 0.0], [-1e100, 1e100]])
    assert np.isfinite(P).all()
    assert_allclose(P.sum(axis=1), 1.0)
    assert not np.isnan(model.decision_function([[1e100, 0.0]])).any()


# The left-out sample -----------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_sample_of_the_rows_to_calibrate_on(n_classes):
    n = size(2000)
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(n, 2))
    y = np.digitize(samples[:, 0] + 0.7 * rng.normal(size=n), [0.0, 0.8][: n_classes - 1])
    queries = rng.normal(size=(200, 2))
    full = soft(n_left_out=n).fit(samples, y).predict_proba(queries)
    assert_array_equal(soft(random_state=7).fit(samples, y).predict_proba(queries), full)
    drawn = [
        soft(n_left_out=n // 3, random_state=seed).fit(samples, y).predict_proba(queries)
        for seed in (0, 0, 1)
    ]
    assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != drawn[2]).any()
    for P in drawn:
        assert np.abs(P - full).mean() < (0.03 if n == 2000 else 0.2)


def test_the_sample_of_rows_keeps_rare_classes():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [400, 8])
    samples = rng.normal(size=(408, 2)) + 4.0 * y[:, np.newaxis]
    for seed in range(5):
        model = soft(n_left_out=50, random_state=seed).fit(samples, y)
        P = model.predict_proba([[0.0, 0.0], [4.0, 4.0]])[:, 1]
        assert P[0] < 0.1
        assert P[1] > 0.4


# scikit-learn's tools ----------------------------------------------------------------------------


def test_metrics():
    manhattan = soft(metric="manhattan").fit(X, Y)
    forest = naive_soft.grow(pairwise_distances(X, metric="manhattan"), Y)
    D = pairwise_distances(NEW, X, metric="manhattan")
    calibration = naive_soft.calibrate(forest, manhattan.bandwidth_)
    expected = naive_soft.probabilities(
        calibration, naive_soft.scores(forest, D, manhattan.bandwidth_)
    )
    assert_allclose(manhattan.predict_proba(NEW), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", ["soft", "paper"])
def test_precomputed_distances(method):
    direct = POPFClassifier(method).fit(WIDE, Y)
    given_ = POPFClassifier(method, metric="precomputed").fit(distances(WIDE, WIDE), Y)
    P = given_.predict_proba(distances(WIDE_NEW, WIDE))
    assert_allclose(P, direct.predict_proba(WIDE_NEW), rtol=0, atol=1e-9)
    model = POPFClassifier(method, metric="precomputed")
    folds = cross_val_score(model, distances(WIDE, WIDE), Y, cv=3, scoring="neg_log_loss")
    direct = cross_val_score(POPFClassifier(method), WIDE, Y, cv=3, scoring="neg_log_loss")
    assert_allclose(folds, direct, rtol=1e-6)


@pytest.mark.parametrize("method", ["soft", "paper"])
def test_pickle_and_clone(method):
    model = POPFClassifier(method, threshold=0.4, solver=Newton()).fit(WIDE, Y)
    for other in [pickle.loads(pickle.dumps(model)), clone(model).fit(WIDE, Y)]:
        assert_array_equal(other.predict_proba(WIDE_NEW), model.predict_proba(WIDE_NEW))
        assert other.get_params() == model.get_params()
    assert not hasattr(clone(model), "opf_")


def test_searches():
    search = GridSearchCV(
        POPFClassifier(), {"method": ["soft", "paper"]}, scoring="neg_log_loss", cv=3
    ).fit(WIDE, Y)
    assert search.best_params_ == {"method": "soft"}
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    y = (Y == 1) & (np.arange(len(Y)) % 3 == 0)
    tuned = TunedThresholdClassifierCV(soft(), scoring="balanced_accuracy", cv=3).fit(X, y)
    assert 0.0 < tuned.best_threshold_ < 0.5


def test_soft_learns_iris():
    samples, y = load_iris(return_X_y=True)
    assert cross_val_score(soft(), samples, y, scoring="neg_log_loss").mean() > -0.25
    assert cross_val_score(soft(), samples, y).mean() > 0.93


def test_a_second_fit_forgets_the_first():
    model = soft().fit(X3, Y3).fit(X, Y)
    assert_array_equal(model.predict_proba(NEW), soft().fit(X, Y).predict_proba(NEW))
    assert not hasattr(model, "slope_")
    assert not hasattr(model, "biases_")
    model.fit(X3, Y3)
    assert not hasattr(model, "A_")
    model = soft().fit(WIDE, Y).set_params(method="paper").fit(WIDE, Y)
    assert not hasattr(model, "bandwidth_")
    assert not hasattr(model, "left_out_losses_")


def test_not_fitted():
    with pytest.raises(NotFittedError):
        soft().predict_proba(NEW)


# A linear map ------------------------------------------------------------------------------------

MAPS = ["weights", "whitening", "discriminant"]
CORRELATED = WINE[:, [0, 5, 6, 9]] * [1.0, 10.0, 0.1, 100.0]  # units that have nothing in common


def mapped(linear_map="auto", **parameters):
    return POPFClassifier(linear_map=linear_map, random_state=0, **parameters)


@pytest.mark.parametrize("linear_map", MAPS)
def test_a_map_is_fitted_on_all_samples_and_its_probabilities_on_held_out_ones(linear_map):
    model = mapped(linear_map).fit(CORRELATED[::2], CULTIVAR[::2])
    new = naive_maps.MAPS[linear_map](CORRELATED[::2], CULTIVAR[::2], CORRELATED[1::2])
    assert_allclose(model.linear_map_.transform(CORRELATED[1::2]), new, rtol=1e-6, atol=1e-6)
    training = model.linear_map_.transform(CORRELATED[::2])
    forest = naive_soft.grow(distances(training, training), CULTIVAR[::2])
    m = naive_soft.scores(forest, distances(new, training), model.bandwidth_)
    expected = softmax(-model.slope_ * m + model.biases_, axis=1)
    assert_allclose(model.predict_proba(CORRELATED[1::2]), expected, rtol=0, atol=2e-6)
    assert model.linear_map_losses_ == {linear_map: model.left_out_losses_.min()}
    assert_array_equal(
        model.opf_.predict(new), OPFClassifier().fit(training, CULTIVAR[::2]).predict(new)
    )


@pytest.mark.parametrize("linear_map", [None, *MAPS])
@pytest.mark.parametrize("weighted", [False, True])
def test_held_out_scores_are_the_naive_ones(linear_map, weighted):
    samples, y = CORRELATED[::3], CULTIVAR[::3]
    w = np.random.default_rng(0).integers(1, 4, len(y)) if weighted else np.ones(len(y), dtype=int)
    problem = map_choice.Problem(samples, y, w.astype(float), OPFClassifier, True, 1, 2**20)
    transformer = None if linear_map is None else map_choice.MAPS[linear_map]()
    found, taus = map_choice.held_out(transformer, problem, None, 0)
    folds = map_choice.deal(problem, 0)
    assert set(folds) == set(range(5))
    row = 0
    for fold in range(5):
        rest, out = folds != fold, folds == fold
        training, new = samples[rest], samples[out]
        if linear_map is not None:
            training, new = (
                naive_maps.MAPS[linear_map](samples[rest], y[rest], part, w[rest])
                for part in (training, new)
            )
        forest = naive_soft.grow(distances(training, training), y[rest], w[rest])
        for j in (0, 7, 14):
            expected = naive_soft.scores(forest, distances(new, training), taus[j])
            assert_allclose(
                found.scores[row : row + len(new), :, j], expected, rtol=1e-6, atol=1e-6
            )
        assert_array_equal(found.codes[row : row + len(new)], y[out])
        assert_array_equal(found.weights[row : row + len(new)], w[out])
        row += len(new)
    assert row == len(y)


def test_auto_takes_the_map_of_the_least_held_out_loss():
    model = mapped().fit(CORRELATED, CULTIVAR)
    assert list(model.linear_map_losses_) == ["none", *MAPS]
    best = min(model.linear_map_losses_, key=model.linear_map_losses_.get)
    assert best != "none"  # with such units no map is no choice
    assert type(model.linear_map_) is map_choice.MAPS[best]
    same = mapped(best).fit(CORRELATED, CULTIVAR)
    assert_array_equal(model.predict_proba(CORRELATED), same.predict_proba(CORRELATED))
    assert_allclose(same.linear_map_losses_[best], model.linear_map_losses_[best], rtol=1e-12)


def test_auto_leaves_round_classes_alone():
    model = mapped().fit(X, Y)
    losses = model.linear_map_losses_
    assert min(losses, key=losses.get) == "none"
    assert model.linear_map_ is None
    assert_array_equal(model.predict_proba(NEW), soft().fit(X, Y).predict_proba(NEW))


def test_a_map_pays_where_most_features_tell_nothing():
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(500, 30))
    y = (samples[:, 0] + samples[:, 1] + 0.5 * rng.normal(size=500) > 0).astype(int)
    train, new = slice(0, 150), slice(150, 500)
    plain, auto = (
        log_loss(y[new], model.fit(samples[train], y[train]).predict_proba(samples[new]))
        for model in (soft(), mapped())
    )
    assert auto < plain - 0.1


def test_many_samples_are_judged_by_a_part_of_them(monkeypatch):
    seen = []
    real = map_choice.held_out

    def watched(transformer, problem, *more):
        seen.append((type(transformer).__name__, len(problem.codes)))
        return real(transformer, problem, *more)

    monkeypatch.setattr(map_choice, "held_out", watched)
    monkeypatch.setattr(map_choice, "N_TO_CHOOSE", 90)
    model = mapped(n_left_out=60).fit(CORRELATED, CULTIVAR)
    assert [n for _, n in seen[:4]] == [90] * 4
    assert seen[4:] == [(type(model.linear_map_).__name__, len(CULTIVAR))]
    P = model.predict_proba(CORRELATED)
    assert_array_equal(mapped(n_left_out=60).fit(CORRELATED, CULTIVAR).predict_proba(CORRELATED), P)
    assert log_loss(CULTIVAR, P) < 0.3


@pytest.mark.parametrize("linear_map", ["auto", *MAPS])
def test_what_must_not_matter_to_a_map(linear_map):
    samples, y = CORRELATED, CULTIVAR
    P = mapped(linear_map).fit(samples, y).predict_proba(samples)
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = mapped(linear_map).fit(samples[order], y[order])
    assert_allclose(shuffled.predict_proba(samples), P, rtol=0, atol=3e-6)
    named = mapped(linear_map).fit(samples, np.array(["ant", "bee", "cat"])[y])
    assert_array_equal(named.predict_proba(samples), P)
    for factor in (1e-150, 1e150):
        scaled = mapped(linear_map).fit(samples * factor, y)
        assert_allclose(scaled.predict_proba(samples * factor), P, rtol=0, atol=3e-6)
    zero = np.concatenate([np.ones(len(y)), np.zeros(3)])
    more, labels = np.concatenate([samples, samples[:3] + 1.0]), np.concatenate([y, [2, 2, 2]])
    absent = mapped(linear_map).fit(more, labels, sample_weight=zero)
    assert_array_equal(absent.predict_proba(samples), P)
    assert len(absent.opf_.sample_indices_) == len(y)


@pytest.mark.parametrize("linear_map", ["auto", *MAPS])
def test_tiny_classes_and_duplicates_under_a_map(linear_map):
    alone = np.where(np.arange(len(Y)) == 7, 2, Y)
    pair = np.where(np.isin(np.arange(len(Y)), [7, 30]), 2, Y)
    for samples, y in (
        (X, alone),
        (X, pair),
        (X[:2], [0, 1]),
        (X[:3], [0, 1, 2]),
        (X[:5], [0, 0, 1, 1, 1]),
        (np.ones((8, 2)), [0, 1] * 4),
        (DUPLICATES, DUPLICATE_LABELS),
    ):
        P = mapped(linear_map).fit(samples, y).predict_proba(samples)
        assert ((P > 0.0) & (P < 1.0)).all()
        assert_allclose(P.sum(axis=1), 1.0)
    assert_allclose(P[[0, -1], 1], [0.25, 0.875], atol=0.08)


@pytest.mark.parametrize("linear_map", ["auto", *MAPS])
def test_weights_under_a_map(linear_map):
    w = np.random.default_rng(0).uniform(0.5, 3.0, len(Y3))
    P = mapped(linear_map).fit(X3, Y3, sample_weight=w).predict_proba(X3)
    assert log_loss(Y3, P) < 0.9 * np.log(3)
    plain = mapped(linear_map).fit(X3, Y3)
    assert (plain.predict_proba(X3) != P).any()
    ones = mapped(linear_map).fit(X3, Y3, sample_weight=np.ones(len(Y3)))
    assert_array_equal(ones.predict_proba(X3), plain.predict_proba(X3))


def test_a_transformer_of_the_users_own():
    model = mapped(PCA(2, random_state=0)).fit(CORRELATED, CULTIVAR)
    assert model.linear_map_.n_components_ == 2
    assert model.opf_.n_features_in_ == 2
    assert model.n_features_in_ == 4
    assert list(model.linear_map_losses_) == ["PCA"]
    assert not hasattr(model.linear_map, "components_")  # the parameter itself is left alone
    pipeline = make_pipeline(StandardScaler(), DiscriminantStretch())
    named = mapped("discriminant").fit(CORRELATED, CULTIVAR)
    same = mapped(pipeline).fit(CORRELATED, CULTIVAR)
    P = named.predict_proba(CORRELATED)
    assert_allclose(same.predict_proba(CORRELATED), P, rtol=0, atol=3e-6)
    assert clone(mapped(DiscriminantStretch(strength=3.0))).linear_map.strength == 3.0
    search = GridSearchCV(
        mapped(DiscriminantStretch()), {"linear_map__strength": [0.0, 4.0]}, scoring="neg_log_loss"
    )
    assert np.isfinite(search.fit(CORRELATED, CULTIVAR).best_score_)
    w = np.linspace(1.0, 2.0, len(CULTIVAR))
    refused(
        lambda: mapped(PCA()).fit(CORRELATED, CULTIVAR, sample_weight=w), "PCA()", "sample_weight"
    )


@pytest.mark.parametrize("linear_map", ["auto", "weights"])
def test_pickles_names_and_paths_with_a_map(linear_map):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(CORRELATED, columns=["alcohol", "phenols", "flavanoids", "colour"])
    model = mapped(linear_map).fit(frame, CULTIVAR)
    assert_array_equal(model.feature_names_in_, frame.columns)
    P = model.predict_proba(frame)
    for other in [pickle.loads(pickle.dumps(model)), clone(model).fit(frame, CULTIVAR)]:
        assert_array_equal(other.predict_proba(frame), P)
    with config_context(transform_output="pandas"):
        again = mapped(linear_map).fit(frame, CULTIVAR)
        assert_array_equal(again.predict_proba(frame), P)
    (path,) = model.opf_.explain(model.linear_map_.transform(CORRELATED[:1]))
    assert path.label == CULTIVAR[0]
    model.set_params(linear_map=None).fit(frame, CULTIVAR)
    assert model.linear_map_ is None
    assert not hasattr(model, "linear_map_losses_")


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"linear_map": "rotation"}, ["linear_map", "'rotation'", "'whitening'"]),
        ({"linear_map": 3}, ["linear_map", "3"]),
        ({"linear_map": PCA}, ["linear_map", "PCA"]),
        ({"linear_map": "auto", "metric": "precomputed"}, ["linear_map", "precomputed"]),
        ({"linear_map": "auto", "method": "paper"}, ["linear_map", "paper", "pipeline"]),
    ],
)
def test_maps_that_cannot_be_had(parameters, said):
    kind = (ValueError, TypeError)
    refused(lambda: POPFClassifier(**parameters).fit(WIDE, Y), *said, kind=kind)
    refused(lambda: mapped().fit(X, ["ham"] * len(X)), "one class", "'ham'")


def test_a_map_that_gives_nonsense_is_named():
    nonsense = FunctionTransformer(lambda samples: samples * np.nan)
    refused(lambda: mapped(nonsense).fit(X, Y), "linear_map", "NaN")


# How far the prior is better ---------------------------------------------------------------------


def believed(monkeypatch, model, *data):
    """The same model without any draw to the prior."""
    with monkeypatch.context() as patched:
        patched.setattr(soft_method, "weight_of_evidence", lambda *_: 1.0)
        return clone(model).fit(*data)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("linear_map", [None, "auto"])
def test_labels_at_random_are_hardly_worse_than_the_prior(n_classes, linear_map, monkeypatch):
    losses, weights = [], []
    truth = np.arange(300) % n_classes
    for seed in range(8):
        rng = np.random.default_rng(seed)
        samples, y = rng.normal(size=(100, 4)), np.arange(100) % n_classes
        new = rng.normal(size=(300, 4))
        model = mapped(linear_map).fit(samples, y)
        other = believed(monkeypatch, model, samples, y)
        losses.append([log_loss(truth, one.predict_proba(new)) for one in (model, other)])
        weights.append(model.prior_weight_)
    drawn, undrawn = np.mean(losses, axis=0) - np.log(n_classes)
    assert drawn < 0.006
    assert drawn < undrawn / 2.0
    assert np.median(weights) > 0.9


def test_weak_evidence_draws_to_the_prior_and_keeps_the_order(monkeypatch):
    rng = np.random.default_rng(1)
    samples = rng.normal(size=(60, 2))
    y = (samples[:, 0] + 3.0 * rng.normal(size=60) > 0).astype(int)
    model = soft().fit(samples, y)
    raw = believed(monkeypatch, model, samples, y)
    assert 0.05 < model.prior_weight_ < 1.0
    prior = np.log((y.sum() + 1) / (61 - y.sum()))
    drawn, undrawn = model.decision_function(NEW) - prior, raw.decision_function(NEW) - prior
    assert_allclose(drawn, (1.0 - model.prior_weight_) * undrawn, rtol=1e-5, atol=1e-5)


def test_strong_evidence_leaves_platts_answer_alone():
    assert soft().fit(X, Y).prior_weight_ < 1e-6
    assert soft().fit(X3, Y3).prior_weight_ < 1e-2


def test_evidence_counts_repetition_but_not_units_of_the_weights():
    w = np.random.default_rng(0).integers(1, 4, 40)
    one = soft().fit(X[:40], Y[:40], sample_weight=w).prior_weight_
    many = soft().fit(np.repeat(X[:40], w, axis=0), np.repeat(Y[:40], w)).prior_weight_
    assert_allclose(one, many, rtol=1e-3)
    shares = soft().fit(X, Y, sample_weight=np.full(len(Y), 1.0 / len(Y)))
    assert shares.prior_weight_ < 0.01


# The solver of three classes and more ------------------------------------------------------------


def test_the_history_of_the_solver_for_three_classes():
    model = soft().fit(X3, Y3)
    solution = model.solution_
    assert isinstance(solution, Solution)
    assert solution.converged
    assert solution.message
    assert solution.n_iterations == len(solution.history) - 1 > 1
    assert solution.n_evaluations > solution.n_iterations
    assert (np.diff(solution.history) <= 0.0).all()
    assert solution.value == solution.history[-1]
    assert solution.path.shape == (len(solution.history), 4)
    assert_allclose(solution.theta[1:], model.biases_, atol=1e-3)  # but for the prior's part
    assert_allclose(solution.path[:, 1:].sum(axis=1), 0.0, atol=1e-12)


def test_a_solver_of_three_classes_that_stops_early_warns():
    with pytest.warns(ConvergenceWarning, match="still moving after 1 iterations"):
        model = soft(solver=Newton(max_iterations=1)).fit(X3, Y3)
    assert not model.solution_.converged
    assert model.solution_.n_iterations == 1
    assert np.isfinite(model.predict_proba(NEW3)).all()


def test_fit_softmax_stops_where_the_gradient_vanishes():
    rng = np.random.default_rng(0)
    scores, codes = rng.normal(size=(50, 3)), np.arange(50) % 3
    targets = softmax_targets(codes, np.bincount(codes).astype(float))
    solution = fit_softmax(scores, targets, np.ones(50))
    P = softmax(solution.theta[0] * scores + solution.theta[1:], axis=1)
    assert_allclose(((P - targets) * scores).sum(), 0.0, atol=1e-6)
    assert_allclose((P - targets).sum(axis=0), 0.0, atol=1e-6)
    assert_allclose(solution.value, -(targets * np.log(P)).sum(), rtol=1e-12)
    assert_allclose(solution.history[0], 50 * np.log(3), rtol=1e-12)


# What users get wrong ----------------------------------------------------------------------------

WRONG = {
    "threshold 0": ({"threshold": 0.0}, ["threshold", "0.0"]),
    "threshold 1": ({"threshold": 1.0}, ["threshold", "1.0"]),
    "threshold 1.5": ({"threshold": 1.5}, ["threshold", "1.5"]),
    "threshold nan": ({"threshold": np.nan}, ["threshold", "nan"]),
    "threshold word": ({"threshold": "half"}, ["threshold", "'half'"]),
    "box empty": ({"method": "paper", "box": ((1, 1), (-3, 3))}, ["box", "1.0", "empty"]),
    "box inverted": ({"method": "paper", "box": ((-3, 3), (4, -4))}, ["box", "4.0", "-4.0"]),
    "box shape": ({"method": "paper", "box": (-3, 3)}, ["box", "(2,)"]),
    "box soft": ({"box": ((1, 1), (-3, 3))}, ["box", "1.0", "empty"]),
    "solver": ({"solver": "sgd"}, ["solver", "'sgd'", "'newton'"]),
    "solver number": ({"solver": 3}, ["solver", "3"]),
    "solver class": ({"solver": PSO}, ["solver", "PSO"]),
    "method": ({"method": "hard"}, ["method", "'hard'", "'soft'", "'paper'"]),
    "calibration": ({"calibration": "isotonic"}, ["calibration", "'isotonic'", "'softmax'"]),
    "n_left_out": ({"n_left_out": 0}, ["n_left_out", "0"]),
    "n_left_out word": ({"n_left_out": "all"}, ["n_left_out", "'all'"]),
    "metric": ({"metric": "crow"}, ["metric", "'crow'"]),
    "algorithm": ({"algorithm": "magic"}, ["algorithm", "'magic'"]),
}


@pytest.mark.parametrize(("parameters", "said"), WRONG.values(), ids=WRONG)
def test_wrong_parameters(parameters, said):
    kind = (ValueError, TypeError)
    refused(lambda: POPFClassifier(**parameters).fit(WIDE, Y), *said, kind=kind)


@pytest.mark.parametrize("method", ["soft", "paper"])
def test_wrong_data(method):
    model = POPFClassifier(method)
    refused(lambda: model.fit(X, ["ham"] * len(X)), "one class", "'ham'")
    w = np.ones(len(Y))
    w[3] = -2.0
    refused(lambda: model.fit(X, Y, sample_weight=w), "sample_weight[3]", "-2.0")
    refused(lambda: model.fit(X, Y, sample_weight=np.zeros(len(Y))), "zero")
    refused(lambda: model.fit(X, Y, sample_weight=(Y == 0).astype(float)), "one class", "0")
    fitted = model.fit(WIDE, Y)
    refused(lambda: fitted.predict_proba(WIDE[:, :1]), "1 features", "2 features")


def test_more_than_two_classes():
    refused(lambda: paper().fit(X3, Y3), "3", "soft")
    for solver in ["nelder-mead", *SWARMS]:
        refused(lambda solver=solver: soft(solver=solver).fit(X3, Y3), "3", repr(solver), "newton")


def test_nothing_warns_on_plain_data():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        soft().fit(X, Y).predict_proba(NEW)
        soft().fit(X3, Y3).predict_proba(NEW3)


# scikit-learn's own checks -----------------------------------------------------------------------


def expected_failures(estimator):
    """Checks expected to fail, each with its reason."""
    if estimator.metric == "precomputed":
        return {"check_decision_proba_consistency": "gives features, not distances"}
    if estimator.n_left_out == 20:
        return {
            "check_sample_weight_equivalence_on_dense_data": "other rows are drawn to be left out"
        }
    if estimator.linear_map is not None:
        return {
            "check_sample_weight_equivalence_on_dense_data": "a sample is in one fold, its copies in several"
        }
    return {}


@parametrize_with_checks(
    [
        POPFClassifier(),
        POPFClassifier(n_left_out=20, random_state=0),
        POPFClassifier(calibration="multinomial"),
        POPFClassifier(metric="manhattan", n_jobs=2),
        POPFClassifier(metric="precomputed"),
        POPFClassifier(linear_map="auto", random_state=0),
        POPFClassifier(linear_map="discriminant"),
        POPFClassifier("paper"),
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore:.*array_api.*:UserWarning")
@pytest.mark.filterwarnings("ignore:.*box.*:UserWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
