"""What a fit promises is what new samples get: on noise, with signal, with copies, and far away."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.svm import SVC

from popf import POPFClassifier
from strategies import size

N_NEW = 4000


def promised_and_obtained(make, n, seeds=3):
    """Return promised and obtained losses, in excess of what the class frequencies get, for several seeds."""
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X, y = make(rng, n)
        new, truth = make(rng, N_NEW)
        model = POPFClassifier().fit(X, y)
        obtained = log_loss(truth, model.predict_proba(new), labels=model.classes_)
        prior = log_loss(truth, np.tile(np.bincount(y) / n, (N_NEW, 1)))
        # The promise of the pool, with the weight of the class frequencies that the fit chose.
        promised = model.held_out_losses_["pool"] - model.held_out_losses_["prior"]
        found.append((promised, obtained - prior))
    return np.array(found).T


def noise(d, values=None, n_classes=2, dominated=False):
    def make(rng, n):
        X = rng.normal(size=(n, d)) if values is None else rng.integers(0, values, (n, d)) * 1.0
        if dominated:
            X[:, 0] *= 1e5
        return X, rng.permutation(np.arange(n) % n_classes)

    return make


def functions_of_one(rng, n):
    x = rng.normal(size=n)
    return np.column_stack([x, x**2, np.exp(x), x + 1.0]), np.arange(n) % 2


NOISE = {
    "50 × 1": (noise(1), 50),
    "50 × 8": (noise(8), 50),
    "100 × 3": (noise(3), 100),
    "400 × 1": (noise(1), 400),
    "400 × 5": (noise(5), 400),
    "1,000 × 1": (noise(1), 1000),
    "1,000 × 2": (noise(2), 1000),
    "1,000 × 8": (noise(8), 1000),
    "3,000 × 1": (noise(1), 3000),
    "three classes": (noise(3, n_classes=3), 400),
    "one feature dominates": (noise(3, dominated=True), 1000),
    "functions of one feature": (functions_of_one, 600),
    "two values": (noise(6, 2), 1000),
    "five values": (noise(1, 5), 400),
    "ten values": (noise(2, 10), 1000),
    "three values, three classes": (noise(4, 3, 3), 400),
}


@pytest.mark.parametrize(("make", "n"), NOISE.values(), ids=NOISE)
def test_noise_is_answered_by_the_class_frequencies_and_promises_nothing(make, n):
    promised, obtained = promised_and_obtained(make, n)
    assert obtained.max() < 0.006
    assert obtained.mean() < 0.003
    assert promised.min() > -0.02 * max(1.0, (400 / n) ** 0.5)
    assert promised.mean() > -0.01 * max(1.0, (400 / n) ** 0.5)


def test_noise_in_one_column_keeps_its_promise():
    """On 1,000 × 1, folds that were dealt in turn promised 0.663 where new samples got 0.729."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        y = np.arange(1000) % 2
        model = POPFClassifier().fit(rng.normal(size=(1000, 1)), y)
        P = model.predict_proba(rng.normal(size=(N_NEW, 1)))
        obtained = log_loss(np.arange(N_NEW) % 2, P)
        assert obtained < 0.697
        assert abs(obtained - model.held_out_losses_["pool"]) < 0.005


def with_labels(odds_of, d, values=None):
    def make(rng, n):
        X = rng.normal(size=(n, d)) if values is None else rng.integers(0, values, (n, d)) * 1.0
        return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-odds_of(X)))).astype(int)

    return make


SIGNAL = {
    "first of two": with_labels(lambda X: 1.5 * X[:, 0], 2),
    "sum of five": with_labels(lambda X: X.sum(axis=1), 5),
    "product": with_labels(lambda X: 2.0 * X[:, 0] * X[:, 1], 3),
    "rings": with_labels(lambda X: 3.0 * np.sin(2.0 * (X**2).sum(axis=1)), 2),
    "rule": with_labels(lambda X: np.where((X[:, 0] > 0) & (X[:, 1] > 0), 3.0, -2.0), 4),
    "categories": with_labels(lambda X: X[:, 0] - X[:, 1], 3, 4),
    "weak": with_labels(lambda X: 0.3 * X[:, 0], 6),
}


@pytest.mark.parametrize("n", [400, 1200])
def test_promises_are_kept_where_there_is_something_to_learn(n):
    """Folds fit fewer samples than the last fit has, so promises may be too modest, but not too bold."""
    differences = []
    for make in SIGNAL.values():
        promised, obtained = promised_and_obtained(make, n)
        differences += (obtained - promised).tolist()
    assert np.mean(differences) < 0.005
    assert np.mean(differences) > -0.03


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_flipped_labels_do_no_more_harm_than_to_a_calibrated_classifier(share):
    """The boldest twentieth is too bold for both, because it is chosen for its boldness."""
    predicted, right, excess, rival = [], [], [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, new = rng.normal(size=(600, 5)), rng.normal(size=(N_NEW, 5))
        y, truth = ((samples[:, 0] + samples[:, 1] ** 2 > 1.0) * 1 for samples in (X, new))
        y, noisy = (labels ^ (rng.random(len(labels)) < share) for labels in (y, truth))
        P = POPFClassifier().fit(X, y).predict_proba(new)
        top = np.argsort(-P.max(axis=1))[: N_NEW // 20]
        predicted.append(P.max(axis=1)[top].mean())
        right.append((P.argmax(axis=1) == noisy)[top].mean())
        best = np.where(truth == 1, 1.0 - share, share)
        excess.append(log_loss(noisy, P) - log_loss(noisy, best))
        svc = CalibratedClassifierCV(SVC(C=10.0, gamma=0.1), ensemble=False, cv=5).fit(X, y)
        rival.append(log_loss(noisy, svc.predict_proba(new)) - log_loss(noisy, best))
    assert np.mean(predicted) - np.mean(right) < 0.08
    assert np.mean(excess) < min(0.1, np.mean(rival))


def test_copies_whose_classes_differ_are_learned():
    """500 points with four copies each, whose classes follow a probability of the point's own."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, chance = rng.normal(size=(500, 2)), rng.beta(0.5, 0.5, 500)
        points, new = np.repeat(np.arange(500), 4), rng.integers(0, 500, N_NEW)
        y, truth = (rng.random(len(i)) < chance[i] for i in (points, new))
        model = POPFClassifier().fit(X[points], y)
        loss = log_loss(truth, model.predict_proba(X[new]))
        assert loss < 0.53
        assert loss < model.held_out_losses_["pool"] + 0.02


def test_a_copy_of_every_sample_is_no_evidence():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(200, 3)), rng.permutation(np.arange(200) % 2)
    once, twice = (POPFClassifier().fit(np.tile(X, (k, 1)), np.tile(y, k)) for k in (1, 2))
    new, truth = rng.normal(size=(N_NEW, 3)), np.arange(N_NEW) % 2
    for model in (once, twice):
        assert log_loss(truth, model.predict_proba(new)) < 0.705


# Far away ----------------------------------------------------------------------------------------

DISTANCES = (3.0, 10.0, 100.0, 1000.0)


@pytest.mark.parametrize("seed", range(size(8)))
def test_far_outside_the_class_at_the_border_goes_on(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 3))
    model = POPFClassifier().fit(X, X[:, 0] > 0)
    far = [[side * distance, 0.0, 0.0] for distance in DISTANCES for side in (-1.0, 1.0)]
    assert model.predict(far).tolist() == [False, True] * len(DISTANCES)
    P = model.predict_proba(far)[:, 1].reshape(-1, 2)
    assert_allclose(P[1:], P[:1].repeat(3, axis=0), atol=0.1)  # nothing is extrapolated


@pytest.mark.parametrize("d", [2, 5])
def test_far_outside_in_any_direction_few_change_sides(d):
    wrong = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, direction = rng.normal(size=(300, d)), rng.normal(size=d)
        model = POPFClassifier().fit(X, X @ direction + 0.1 * rng.normal(size=300) > 0)
        new = rng.normal(size=(200, d))
        clear = np.abs(new @ direction) > 0.3 * np.linalg.norm(direction)
        for distance in (100.0, 1000.0):
            far = distance * new[clear]
            wrong.append(np.mean(model.predict(far) != (far @ direction > 0)))
    assert np.mean(wrong) < 0.06


def test_all_parts_stay_within_the_range_of_their_training_samples():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 4))
    y = (np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + rng.normal(size=300) > 0).astype(int)
    model = POPFClassifier().fit(X, y)
    box = rng.uniform(X.min(axis=0), X.max(axis=0), size=(20_000, 4))
    inside = np.concatenate([model.decision_function(box), model.decision_function(X)])
    far = model.decision_function(rng.normal(size=(2000, 4)) * 10.0 ** rng.uniform(1, 6, (2000, 1)))
    assert np.abs(far).max() < 1.3 * np.abs(inside).max() + 0.5
