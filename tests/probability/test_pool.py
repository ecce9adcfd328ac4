"""Calibration of the forest, weights of the pool, confidence and choices, against their definitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import roc_auc_score

import naive_probability
from popf.forest.probabilities import log_softmax
from popf.probability.forest_component import (
    SLOPE_RIDGE,
    HeldOutForest,
    add_background,
    bandwidths,
    calibrate,
    losses_with_one_slope,
)
from popf.probability.held_out import HeldOut, HeldOutComponent
from popf.probability.logits import Labels, fit_softmax, log_losses, prior_logits
from popf.probability.pool import confidence_in, fit_weights


def labelled(y, w):
    folds, prior = np.arange(len(y)) % 4, prior_logits(np.bincount(y, weights=w))
    return Labels(y, w.astype(float), folds, prior, np.arange(len(prior)))


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("by_class", [False, True])
def test_softmax_fits_are_minima(n_classes, by_class):
    rng = np.random.default_rng(5)
    n, n_slopes, ridge = 30, n_classes if by_class else 2, 1.7
    y, w = np.arange(n) % n_classes, rng.uniform(0.5, 2.0, n)
    T = naive_probability.targets(y, w, n_classes)
    assert_allclose(labelled(y, w).targets(), T)
    columns = rng.normal(size=(1 if by_class else 2, n, n_classes))
    columns += np.arange(n_classes) == y[:, None]
    center = None if by_class else rng.normal(size=n_slopes)
    start = np.zeros(n_slopes), np.zeros(n_classes)

    def objective(theta):
        slopes = [theta[:n_slopes]] if by_class else theta
        z = sum(s * x for s, x in zip(slopes, columns, strict=False))
        z = z + np.append(0.0, theta[n_slopes:])
        apart = theta[:n_slopes] - (theta[:n_slopes].mean() if by_class else center)
        return naive_probability.cross_entropy(z, T, w) + ridge * (apart @ apart) / 2.0

    bounds = [(0.0, None)] * n_slopes + [(None, None)] * (n_classes - 1)
    expected = naive_probability.minimum(objective, np.zeros(n_slopes + n_classes - 1), bounds)
    slopes, biases = fit_softmax(columns, labelled(y, w), start, ridge, center)
    theta = np.append(slopes, biases[1:] - biases[0])
    assert objective(theta) <= expected.fun + 1e-7
    assert_allclose(theta, expected.x, atol=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("useless", [False, True])
def test_the_weights_minimise_their_objective(n_classes, useless):
    rng = np.random.default_rng(7)
    n = 80
    y, w = np.arange(n) % n_classes, rng.integers(1, 3, n).astype(float)
    right = (np.arange(n_classes) == y[:, None]) * 2.0
    parts = np.stack([right + rng.normal(size=right.shape) for _ in range(3)])
    if useless:
        parts[1] *= -1.0  # favours the other classes
    weights, biases = fit_weights(parts, labelled(y, w))
    expected, objective = naive_probability.pool(list(parts), y, w)
    assert objective(np.append(weights, (biases - biases[0])[1:])) <= expected.fun + 1e-6
    assert (weights >= 0.0).all()
    assert (weights[1] == 0.0) == useless
    assert_allclose(weights, expected.x[:3], atol=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_where_every_component_misleads_the_biases_remain(n_classes):
    y, w = np.arange(300) % n_classes, np.where(np.arange(300) % n_classes, 1.0, 2.0)
    parts = np.stack([-4.0 * np.eye(n_classes)[y]] * 2)
    weights, biases = fit_weights(parts, labelled(y, w))
    assert_array_equal(weights, 0.0)
    frequencies = np.bincount(y, w) / w.sum()
    assert_allclose(naive_probability.softmax(biases[None])[0], frequencies, atol=0.01)


@pytest.mark.parametrize("strength", [-1.0, 0.0, 0.4, 1.0, 3.0])
@pytest.mark.parametrize("n_parts", [1, 4])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_confidence_follows_from_the_gains_of_all_components(n_classes, n_parts, strength):
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(n_classes), [30, 20, 10][:n_classes])
    w = np.arange(len(y)) % 3 + 1.0
    own = np.arange(n_classes) == y[:, None]
    *parts, pooled = rng.normal(size=(n_parts + 1, len(y), n_classes)) + strength * own
    labels = labelled(y, w)
    every = [*parts, pooled, np.tile(labels.prior, (len(y), 1))]
    names = [*["forest", "linear", "additive", "trees"][:n_parts], "pool", "prior"]
    losses = {name: labels.log_loss(z) for name, z in zip(names, every, strict=True)}
    found = confidence_in(losses, w.sum())
    assert_allclose(found, naive_probability.confidence(parts, pooled, labels.prior, y, w))
    assert strength > 0.0 or found < 0.1
    assert strength < 1.0 or found > 0.9


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_area_under_the_curve_is_that_of_scikit_learn(n_classes):
    rng = np.random.default_rng(7)
    y, w = np.arange(60) % n_classes, rng.uniform(0.1, 1.0, 60)
    z = np.round(2.0 * rng.normal(size=(60, n_classes)) + np.eye(n_classes)[y])  # with ties
    logs = log_softmax(z)
    assert_allclose(np.exp(logs), naive_probability.softmax(z), atol=1e-12)
    areas = [roc_auc_score(y == k, logs[:, k], sample_weight=w) for k in range(n_classes)]
    assert_allclose(labelled(y, w).area_under_curve(z), np.mean(areas))


# The forest --------------------------------------------------------------------------------------


def test_each_bandwidth_is_half_of_the_one_before():
    taus = bandwidths(3.0)
    assert_allclose(taus[1:], taus[:-1] / 2.0)
    assert_allclose(taus[[0, -1]], [24.0, 24.0 / 256.0])


def scores_of(n_classes, n=120, seed=0):
    """Make scores at three bandwidths, the second of which separates the classes best."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    right = (np.arange(n_classes) == y[:, None]).astype(float)
    gains = np.array([0.5, 2.0, 1.0])[:, None, None]
    return -5.0 + right * gains + rng.normal(size=(3, *right.shape)), labelled(y, np.ones(n))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_calibration_minimises_the_penalised_cross_entropy(n_classes):
    scores, labels = scores_of(n_classes)
    T = naive_probability.targets(labels.codes, labels.weights, n_classes)
    for u in scores:
        slopes, biases = calibrate(u, labels)
        unit = np.sqrt(((u - u.mean(axis=0)) ** 2).mean())

        def objective(theta, u=u, unit=unit):
            z = naive_probability.forest_logits(
                u, -np.inf, theta[:n_classes], np.append(0.0, theta[n_classes:])
            )
            apart = unit * (theta[:n_classes] - theta[:n_classes].mean())
            return (
                naive_probability.cross_entropy(z, T, labels.weights)
                + SLOPE_RIDGE * (apart @ apart) / 2
            )

        bounds = [(0.0, None)] * n_classes + [(None, None)] * (n_classes - 1)
        expected = naive_probability.minimum(objective, np.zeros(2 * n_classes - 1), bounds)
        found = np.append(slopes, (biases - biases[0])[1:])
        assert objective(found) <= expected.fun + 1e-7


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_that_favour_the_wrong_class_are_not_used(n_classes):
    scores, labels = scores_of(n_classes)
    slopes, biases = calibrate(-scores[1], labels)
    assert_array_equal(slopes, 0.0)
    assert_allclose(log_softmax(biases), np.log(1.0 / n_classes), atol=1e-3)
    prior = log_losses(np.tile(labels.prior, (len(labels.codes), 1)), labels.codes)
    assert_allclose(losses_with_one_slope(-scores[1:2], labels)[0], prior, atol=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_bandwidths_are_ranked_with_one_slope_for_all_classes(n_classes):
    scores, labels = scores_of(n_classes)
    T = naive_probability.targets(labels.codes, labels.weights, n_classes)
    for u in scores:

        def logits(theta, u=u):
            return theta[0] * u + np.append(0.0, theta[1:])

        def objective(theta, logits=logits):
            return naive_probability.cross_entropy(logits(theta), T, labels.weights)

        best = logits(
            naive_probability.minimum(objective, np.append(1.0, np.zeros(n_classes - 1))).x
        )
        expected = naive_probability.log_loss(best, labels.codes, labels.weights)
        assert_allclose(losses_with_one_slope(u[None], labels).mean(), expected, rtol=1e-5)


def test_background_is_added_to_the_exponentials():
    scores = np.array([[-1e100, -3.0], [0.0, 5.0]])
    assert_allclose(add_background(scores, -2.0), np.logaddexp(scores, -2.0))


# Choices -----------------------------------------------------------------------------------------


def test_a_fold_has_no_say_in_what_is_chosen_for_it():
    rng, n = np.random.default_rng(5), 120
    y, here = np.arange(n) % 2, np.arange(n) % 4 == 1
    scores = -rng.exponential(size=(2, 9, n, 2)) - 2.0 * (np.arange(2) != y[:, None])
    z, found = rng.normal(size=(2, n, 2)), []
    for codes in (y, np.where(here, 1 - y, y)):
        labels = labelled(y, np.ones(n))._replace(codes=codes)
        forests = []
        for u in scores:
            losses = log_losses(u, codes)
            forests.append(HeldOutForest(u, np.zeros(9), losses, bandwidths(1.0), 0.9))
        tried = HeldOutComponent([0.1, 1.0], list(z), log_losses(z, codes))
        held_out = HeldOut(forests, {"linear": tried}, labels)
        found.append((held_out.choose(~here), held_out.unseen_logits()))
    (one, logits), (other, others) = found
    assert (one.map, one.complexities, one.calibration.bandwidth) == (
        other.map,
        other.complexities,
        other.calibration.bandwidth,
    )
    assert_allclose(one.logits, other.logits, rtol=0, atol=1e-9)
    for name in ("forest", "linear", "pool"):
        assert_allclose(logits[name][here], others[name][here], rtol=0, atol=1e-9)
