"""The soft method of POPFClassifier against its definition."""

import numpy as np
import pytest
from hypothesis import assume, given
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss, pairwise_distances

import naive_soft
from popf import OPFClassifier
from popf.probability import soft_method
from popf.solvers import Newton, Solution
from popf.solvers.softmax import fit_softmax, softmax_targets
from probability_problems import NEW, NEW3, X3, Y3, X, Y, distances, mapped, soft
from strategies import bounded, moderate_floats, problems, size, small_integers


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


def test_metrics():
    manhattan = soft(metric="manhattan").fit(X, Y)
    forest = naive_soft.grow(pairwise_distances(X, metric="manhattan"), Y)
    D = pairwise_distances(NEW, X, metric="manhattan")
    calibration = naive_soft.calibrate(forest, manhattan.bandwidth_)
    expected = naive_soft.probabilities(
        calibration, naive_soft.scores(forest, D, manhattan.bandwidth_)
    )
    assert_allclose(manhattan.predict_proba(NEW), expected, rtol=0, atol=1e-9)


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
