"""Platt's objective and its targets, against their definitions."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_platt
from naive_platt import platt_problem
from popf.paper import NelderMead, Newton, PlattObjective, platt_probability, platt_targets
from strategies import bounded


@bounded(100)
@given(
    scores=st.lists(st.floats(-30, 30), min_size=1, max_size=12),
    slope=st.floats(-10, 10),
    bias=st.floats(-10, 10),
    seed=st.integers(0, 99),
)
def test_the_objective_is_its_definition(scores, slope, bias, seed):
    random = np.random.RandomState(seed)
    t, w = random.uniform(0.001, 0.999, len(scores)), random.uniform(0.1, 5.0, len(scores))
    # q is rounded once more than in the definition; a score that moves q by an ulp moves F by as much.
    expected = naive_platt.platt_objective(scores, t, w, (slope, bias))
    ulps = 1e-16 * np.sum(w * (np.abs(np.array(scores) * slope) + abs(bias)))
    for value in (
        PlattObjective(scores, t, w)((slope, bias)),
        PlattObjective(scores, t, w).derivatives((slope, bias))[0],
    ):
        assert value == pytest.approx(expected, rel=1e-14, abs=2 * ulps)


@pytest.mark.parametrize("q", [1e2, 699.0, 701.0, 745.0, 1e3, 1e5, 1e9, 1e300])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("t", [1e-7, 0.25, 1.0 - 1e-7])
def test_the_objective_is_finite_and_right_however_large_q(q, sign, t):
    objective = PlattObjective([1.0], [t])
    expected = q * t if sign > 0 else q * (1.0 - t)
    value, gradient, hessian = objective.derivatives((sign * q, 0.0))
    assert objective((sign * q, 0.0)) == pytest.approx(expected, rel=1e-14)
    assert value == pytest.approx(expected, rel=1e-14)
    np.testing.assert_allclose(gradient, t - (0.0 if sign > 0 else 1.0), rtol=1e-12)
    assert np.isfinite(hessian).all()
    if q <= 1e5:
        exact = naive_platt.platt_objective([1.0], [t], [1.0], (sign * q, 0.0))
        assert value == pytest.approx(exact, rel=1e-14)


def test_q_beyond_the_largest_number_gives_infinity_and_no_warning():
    assert PlattObjective([1e300], [0.5])((1e300, 0.0)) == np.inf


def test_the_sign_printed_in_the_paper_would_turn_the_classifier_round():
    objective = PlattObjective([-1.0, 1.0], platt_targets([-1, 1]))
    right = Newton().minimize(objective).theta
    assert platt_probability([1.0], right) > 0.5
    printed = NelderMead().minimize(lambda thetas: -objective(thetas)).theta
    assert platt_probability([1.0], printed) < 0.5


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weighted", [False, True])
def test_derivatives_are_those_of_finite_differences(seed, weighted):
    objective = platt_problem(seed)
    random = np.random.RandomState(seed)
    if weighted:
        objective = PlattObjective(objective.f, objective.t, random.uniform(size=80))
    theta = random.uniform(-2, 2, 2)
    value, gradient, hessian = objective.derivatives(theta)
    assert value == pytest.approx(objective(theta), rel=1e-13)
    step = 1e-5
    for k in range(2):
        shift = step * np.eye(2)[k]
        above, below = objective.derivatives(theta + shift), objective.derivatives(theta - shift)
        assert gradient[k] == pytest.approx((above[0] - below[0]) / (2 * step), rel=1e-6, abs=1e-6)
        np.testing.assert_allclose(
            hessian[k], (above[1] - below[1]) / (2 * step), rtol=1e-6, atol=1e-6
        )


def test_many_points_at_once_give_what_each_gives_alone():
    for n_samples, n_points in [(3, 7000), (200, 500), (40_000, 9)]:
        objective = platt_problem(0, n_samples)
        thetas = np.random.RandomState(1).uniform(-10, 10, (n_points, 2))
        some = thetas[:: max(1, n_points // 20)]
        expected = [objective(theta) for theta in some]
        values = objective(thetas)
        assert values.shape == (n_points,)
        np.testing.assert_allclose(values[:: max(1, n_points // 20)], expected, rtol=1e-13)
    assert objective(np.empty((0, 2))).shape == (0,)


def test_many_points_and_samples_take_little_memory():
    objective = platt_problem(0, 20_000)
    thetas = np.random.RandomState(0).uniform(-10, 10, (300, 2))
    tracemalloc.start()
    objective(thetas)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000  # all at once would be 48 million bytes for each array


def test_weights_count_like_repeated_samples():
    random = np.random.RandomState(0)
    f, y, w = (
        random.normal(size=30),
        np.where(random.uniform(size=30) < 0.4, 1, -1),
        random.randint(0, 4, 30),
    )
    np.testing.assert_allclose(np.repeat(platt_targets(y, w), w), platt_targets(np.repeat(y, w)))
    np.testing.assert_allclose(platt_targets(y, w), naive_platt.platt_targets(y, w))
    np.testing.assert_allclose(platt_targets(y), naive_platt.platt_targets(y, [1] * 30))
    weighted = PlattObjective(f, platt_targets(y, w), w)
    repeated = PlattObjective(np.repeat(f, w), platt_targets(np.repeat(y, w)))
    assert weighted((-1.0, 0.5)) == pytest.approx(repeated((-1.0, 0.5)))
    np.testing.assert_allclose(weighted.start, repeated.start)


def test_the_objective_starts_at_the_best_bias_for_no_slope():
    objective = platt_problem(3)
    assert objective.start[0] == 0.0
    assert objective.derivatives(objective.start)[1][1] == pytest.approx(0.0, abs=1e-12)
    assert np.isfinite(PlattObjective([1.0, 2.0], [1.0, 1.0]).start).all()
