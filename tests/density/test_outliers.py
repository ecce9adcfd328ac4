"""Outliers by density, relative to the cluster that claims them, beside the definition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import roc_auc_score

import naive_density
from naive_density import distances, in_order
from popf import OPFOutlierDetector

RNG = np.random.default_rng(0)
DENSE, SPARSE = RNG.normal(0.0, 0.3, (150, 2)), RNG.normal(8.0, 1.5, (80, 2))
ANGLE = np.arange(12) * np.pi / 6.0
FAR = 4.0 + 14.0 * np.column_stack([np.cos(ANGLE), np.sin(ANGLE)])
X = np.concatenate([DENSE, SPARSE, FAR])


def naive_scores(X, new, k):
    """Scores of training samples, each as if it were new to the others, and of new samples."""
    D, D_new = distances(X, X), distances(new, X)
    V, roots = naive_density.paths(D, k)
    raw, longest = naive_density.densities(D, k)
    rho = naive_density.scaled(raw, raw)
    label = naive_density.labels(rho, roots)

    def score(density, near):
        shown = float(naive_density.scaled(density, raw))
        claimed = label[max(near, key=lambda j: (min(V[j], shown), -near.index(j)))]
        members = raw[label == claimed]
        return density / np.median(members if len(members) > k else raw)

    training = [score(raw[i], near) for i, near in enumerate(naive_density.nearest(D, k))]
    of_new = []
    for row in D_new:
        near = sorted(range(len(row)), key=lambda j: (row[j], j))[:k]
        of_new.append(score(naive_density.raw_density(row[near], longest), near))
    return np.array(training), np.array(of_new)


@pytest.mark.parametrize("k", [3, 10])
def test_scores_are_those_of_the_definition(k):
    samples = in_order(X[::3])
    new = RNG.uniform(-5.0, 12.0, (30, 2))
    training, of_new = naive_scores(samples, new, k)
    detector = OPFOutlierDetector(k).fit(samples)
    assert_allclose(detector.scores_, training, rtol=1e-9)
    assert_allclose(detector.score_samples(new), of_new, rtol=1e-9)
    # A sample in the place of a training sample has its score.
    assert_array_equal(detector.score_samples(samples), detector.scores_)


def test_a_sparse_cluster_is_not_made_of_outliers():
    detector = OPFOutlierDetector(contamination=0.05).fit(X)
    outlying = np.arange(len(X)) >= len(X) - len(FAR)
    assert roc_auc_score(outlying, -detector.score_samples(X)) > 0.98
    assert (detector.predict(SPARSE) == -1).mean() < 0.15
    assert_array_equal(detector.predict([[4.0, 4.0], [0.0, 0.0], [8.0, 8.0]]), [-1, 1, 1])


def test_contamination_is_the_share_of_outliers_in_training_and_beyond():
    rng = np.random.default_rng(1)
    training, new = rng.normal(size=(800, 2)), rng.normal(size=(4000, 2))
    detector = OPFOutlierDetector(contamination=0.1).fit(training)
    assert (detector.fit_predict(training) == -1).mean() == pytest.approx(0.1)
    assert (detector.predict(new) == -1).mean() == pytest.approx(0.1, abs=0.025)
    assert_array_equal(detector.decision_function(new) < 0.0, detector.predict(new) == -1)
