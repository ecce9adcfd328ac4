"""Expected scores: their means and intervals hold for labels drawn from the probabilities."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.metrics import precision_score, recall_score, roc_auc_score

from popf.metrics import expected_scores, spread_of_periods


def scores_of(y, p):
    called = p >= 0.5
    return {
        "positives": y.sum(),
        "hits": (y & called).sum(),
        "precision": precision_score(y, called, zero_division=np.nan),
        "recall": recall_score(y, called),
        "auc": roc_auc_score(y, p),
    }


@pytest.mark.parametrize("spread", [0.0, 0.4])
def test_intervals_contain_the_scores_of_labels_as_promised(spread):
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 2.0, 400).round(2).clip(0.01, 0.99)  # with ties
    expected = expected_scores(p, spread=spread)
    found = [
        scores_of(rng.random(400) < expit(logit(p) + spread * rng.normal()), p) for _ in range(300)
    ]
    for name, score in expected.items():
        values = np.array([one[name] for one in found])
        assert 0.9 < np.mean((values >= score.lower) & (values <= score.upper)) <= 1.0
        if not spread:
            assert score.value == pytest.approx(values.mean(), rel=0.05)
    narrow = expected_scores(p, spread=spread, confidence=0.5)
    assert narrow["auc"].lower > expected["auc"].lower


def test_labels_of_a_group_are_drawn_together():
    p = np.full(1000, 0.2)
    alone, grouped = (
        expected_scores(p, groups=groups)["positives"] for groups in (None, np.arange(1000) // 50)
    )
    assert grouped.upper - grouped.lower > 5 * (alone.upper - alone.lower)


def test_scores_without_meaning_are_undefined():
    none = expected_scores([0.1, 0.2, 0.0])
    assert np.isnan(none["precision"].value)
    assert np.isnan(none["precision"].lower)
    assert none["hits"] == (0.0, 0.0, 0.0)
    certain = expected_scores([0.0, 1.0])
    assert certain["auc"].value == 1.0
    with pytest.raises(ValueError, match="one-dimensional"):
        expected_scores([[0.5, 0.5]])


def test_the_spread_is_that_between_periods():
    rng = np.random.default_rng(0)
    for truth in (0.0, 0.5):
        rates = expit(-2.0 + truth * rng.standard_normal(40))
        periods = np.repeat(np.arange(40), 2000)
        found = spread_of_periods(rng.random(80_000) < rates[periods], periods)
        assert found == pytest.approx(truth, abs=0.12)
    happened = np.arange(1000) % 10 == 0
    assert spread_of_periods(happened) == pytest.approx(np.sqrt(1 / 100 + 1 / 900), rel=0.02)
    assert np.isfinite(spread_of_periods([True, False, False], [1, 1, 2]))
