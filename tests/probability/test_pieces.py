"""The components of the probabilities, against their definitions."""

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import SplineTransformer, StandardScaler

import naive_probability
from popf.probability import regressions
from popf.probability.basis import add_pairs, make_basis, spline_columns
from popf.probability.features import fit_scaling, weighted_quantile
from popf.probability.fitting import Options, area_under_curve, choose_parts
from popf.probability.held_out import HeldOutForest, HeldOutPart
from popf.probability.pooling import PARTS, fit_pool, trust_in
from popf.probability.regressions import regressions_of_kind
from popf.probability.soft_competition import BandwidthGrid, fit_class_scaling, fit_shared_scalings
from popf.probability.softmax import Designs, Labels, Penalty, fit_softmax, log_losses, log_softmax
from strategies import bounded, whole_weights

RNG = np.random.default_rng(0)


def labelled(y, w):
    return Labels(y, w, np.zeros(len(y), dtype=int), np.bincount(y, weights=w))


# Squashed features -------------------------------------------------------------------------------


@bounded(60)
@given(
    x=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
    weights=whole_weights,
    share=st.sampled_from([0.02, 0.25, 0.5, 0.75]),
)
def test_weighted_quantiles_are_those_of_repeated_samples(x, weights, share):
    x, w = np.array(x), np.maximum(weights[: len(x)], 1)
    found = weighted_quantile(np.column_stack([x, -x]), w.astype(float), share, 0.5)
    assert_allclose(found[0, 0], naive_probability.quantile(x, w, share), rtol=1e-12, atol=1e-9)
    assert_allclose(found[1, 1], naive_probability.quantile(-x, w, 0.5), rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("draw", ["normal", "heavy", "binary", "counts", "mostly zero"])
def test_squashing_is_its_formula(draw):
    rng = np.random.default_rng(1)
    x = {
        "normal": rng.normal(size=41),
        "heavy": np.exp(3.0 * rng.normal(size=41)),
        "binary": (rng.random(41) < 0.1).astype(float),
        "counts": rng.poisson(2.0, 41).astype(float),
        "mostly zero": np.where(rng.random(41) < 0.9, 0.0, rng.normal(size=41)),
    }[draw]
    w, new = rng.integers(1, 4, 41), rng.normal(size=20) * 10.0
    scaling = fit_scaling(x[:, None], w.astype(float))
    found = scaling.apply(new[:, None])[:, 0]
    assert_allclose(found, naive_probability.squash(x, w, new), atol=1e-12)
    standard = fit_scaling(x[:, None], w.astype(float), squashed=False)
    repeated = np.repeat(x, w)
    expected = (new - repeated.mean()) / repeated.std()
    assert_allclose(standard.apply(new[:, None])[:, 0], expected, rtol=1e-9)


@pytest.mark.parametrize("squashed", [True, False])
def test_features_that_do_not_vary_are_0_and_all_is_finite(squashed):
    X = np.column_stack(
        [
            np.full(9, 7.3),
            7.3 * (1.0 + np.spacing(1.0) * (np.arange(9) % 2)),
            np.full(9, 1.7e308),
            np.append(np.zeros(8), 1e20),
            1e308 * np.linspace(-1.0, 1.0, 9),
            np.linspace(0.0, 1e-300, 9),
        ]
    )
    scaling = fit_scaling(X, np.ones(9), squashed)
    for samples in (X, np.full((1, 6), 1e308), np.full((1, 6), -1e308)):
        scaled = scaling.apply(samples)
        assert np.isfinite(scaled).all()
        assert_array_equal(scaled[:, :3], 0.0)
    assert_allclose(scaling.apply(X)[:, 4:].std(axis=0), 1.0)


# Splines and regressions -------------------------------------------------------------------------


def test_splines_are_those_of_scikit_learn():
    X = np.sort(RNG.normal(size=(70, 3)), axis=0)
    knots = np.quantile(X, np.linspace(0, 1, 5), axis=0)
    new = np.vstack([knots, RNG.normal(size=(30, 3)) * 5.0])
    splines = SplineTransformer(knots=knots, extrapolation="linear", include_bias=False).fit(X)
    assert_allclose(spline_columns(new, knots), splines.transform(new), atol=1e-12)
    expected = naive_probability.splines(new[:, 0], knots[:, 0])
    assert_allclose(spline_columns(new[:, :1], knots[:, :1]), expected)


def test_what_gets_a_spline():
    n = 40
    almost = np.append(np.zeros(n - 2), [1e-16, 1.0])
    X = np.column_stack(
        [np.arange(n), np.arange(n) % 2, np.ones(n), np.arange(n) % 3, almost, RNG.normal(size=n)]
    )
    basis = make_basis(X, splines=True)
    assert_array_equal(basis.smooth, [0, 3, 5])
    assert_array_equal(basis.plain, [1, 4])
    assert (np.diff(basis.knots, axis=0) > 0.0).all()
    assert_array_equal(make_basis(X, splines=False).plain, [0, 1, 3, 4, 5])
    far = basis.columns(np.full((1, 6), 1e300))
    assert_array_equal(far, basis.columns(np.full((1, 6), 1e30)))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["linear", "spline", "pairs"])
@pytest.mark.parametrize(("n", "d"), [(50, 2), (9, 12)], ids=["d < n", "d > n"])
def test_regressions_minimise_the_penalised_cross_entropy(n_classes, kind, n, d):
    rng = np.random.default_rng(3)
    X, y, w = rng.normal(size=(n, d)), np.arange(n) % n_classes, rng.integers(1, 4, n).astype(float)
    X[:, 0] += y
    part = regressions_of_kind(kind, X, y, w, n_classes).fit(0.3)
    columns = part.basis.columns(X) - part.center
    assert_allclose(w @ columns, 0.0, atol=1e-9)
    spread = np.sqrt(w @ columns**2 / w.sum())
    shape = part.coefficients.shape

    def objective(slopes, intercepts):  # of standardised columns
        z = columns / spread @ slopes.reshape(shape).T + intercepts
        # For two classes, each logit has half of the slopes of the log odds.
        ridge = (slopes**2).sum() / 2.0 / 0.3 * (2.0 if n_classes == 2 else 1.0)
        return naive_probability.cross_entropy(z, np.eye(n_classes)[y], w) + ridge

    slopes = (part.coefficients * spread).ravel()
    least = objective(slopes, part.intercepts)
    for _ in range(40):
        step = 1e-2 * rng.normal(size=len(slopes)) / np.sqrt(len(slopes))
        assert objective(slopes + step, part.intercepts) > least - 1e-6
        assert objective(slopes, part.intercepts + 1e-2 * rng.normal(size=n_classes)) > least - 1e-6
    named = {**part._asdict(), "basis": part.basis._asdict()}
    assert_allclose(part.exponents(X), naive_probability.additive_exponents(named, X), atol=1e-9)
    shares = part.shares(X).sum(axis=1) + part.intercepts
    assert_allclose(shares, part.exponents(X), atol=1e-9)


@pytest.mark.parametrize(("n_classes", "many"), [(2, 500), (2, 100), (3, 500), (3, 100)])
def test_regressions_are_those_of_scikit_learn(n_classes, many, monkeypatch):
    monkeypatch.setattr(regressions, "MANY_SAMPLES", many)
    monkeypatch.setattr(regressions, "N_WARM_START", 60)
    rng = np.random.default_rng(6)
    X, y, w = rng.normal(size=(200, 3)), np.arange(200) % n_classes, rng.uniform(1.0, 2.0, 200)
    X[:, 0] += 3.0 * y  # nearly separated
    fits = regressions_of_kind("linear", X, y, w / w.mean(), n_classes)
    scaler = StandardScaler().fit(X, sample_weight=w)
    for strength in (0.01, 1.0, 100.0):  # each fit starts from the last one
        model = LogisticRegression(C=strength, tol=1e-10, max_iter=1000)
        model.fit(scaler.transform(X), y, sample_weight=w / w.mean())
        P = naive_probability.softmax(fits.fit(strength).exponents(X))
        expected = model.predict_proba(scaler.transform(X))
        assert_allclose(P, expected, atol=2e-5 if n_classes == 2 else 2e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("kind", "d"), [("linear", 2), ("pairs", 2), ("linear", 80)])
def test_a_regression_near_another_one_ends_where_it_would_by_itself(n_classes, kind, d):
    rng = np.random.default_rng(8)
    X, y, w = rng.normal(size=(60, d)), np.arange(60) % n_classes, rng.uniform(1.0, 2.0, 60)
    X[:, 0] += y
    some = np.arange(60) < 45
    near = regressions_of_kind(kind, X[some], y[some], w[some], n_classes).fit(0.3)
    regression = regressions_of_kind(kind, X, y, w, n_classes, near)
    found = regression.fit(0.3)
    regression.begin_at(found._replace(coefficients=0.0 * found.coefficients))
    assert_allclose(found.exponents(X), regression.fit(0.3).exponents(X), atol=2e-3)
    assert found.basis is near.basis
    regression.begin_at(found)
    assert_allclose(regression.fit(0.3).exponents(X), found.exponents(X), atol=1e-3)


def test_the_curvature_of_all_slopes_together_saves_steps(monkeypatch):
    rng = np.random.default_rng(7)
    y = np.arange(600) % 6
    X = 1.5 * rng.normal(size=(6, 3))[y] + rng.normal(size=(600, 3))
    fits, losses = [], []

    def counted(*args, **kwargs):
        fits[-1].append(minimize(*args, **kwargs))
        return fits[-1][-1]

    minimize = scipy.optimize.minimize
    monkeypatch.setattr(scipy.optimize, "minimize", counted)
    for together in (0, 500):  # without and with the full Hessian
        monkeypatch.setattr(regressions, "MAX_HESSIAN_SIZE", together)
        fits.append([])
        part = regressions_of_kind("spline", X, y, np.ones(600), 6).fit(100.0)
        losses.append(log_losses(part.exponents(X), y).mean())
    alone, together = (sum(found.nit for found in each) for each in fits)
    assert together < 0.3 * alone
    assert losses[1] < losses[0] + 1e-6


def test_regressions_without_features_or_without_a_class():
    y = np.repeat([0, 2], [30, 10])
    part = regressions_of_kind("pairs", np.ones((40, 2)), y, np.ones(40), 3).fit(1.0)
    P = naive_probability.softmax(part.exponents(np.ones((1, 2))))
    assert_allclose(P, [[0.74, 0.01, 0.25]], atol=0.01)
    assert part.shares(np.ones((1, 2))).shape == (1, 2, 3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_pairs_are_those_of_the_highest_scores(n_classes):
    rng = np.random.default_rng(4)
    n = 60
    X, w = rng.normal(size=(n, 4)), rng.integers(1, 4, n)
    X[:, 1] = X[:, 1] > 0.0
    y = np.where((X[:, 0] > 0.0) & (X[:, 1] == 1.0), n_classes - 1, np.arange(n) % n_classes)
    P = rng.dirichlet(np.full(n_classes, 5.0), size=n)
    basis = add_pairs(make_basis(X, splines=True), X, y, w.astype(float), P)
    cuts = {
        f: [0.5] if f == 1 else [naive_probability.quantile(X[:, f], w, i / 6) for i in range(1, 6)]
        for f in range(4)
    }
    every = [
        ((a, b), (s, t))
        for a in range(4)
        for b in range(a + 1, 4)
        for s in cuts[a]
        for t in cuts[b]
    ]
    scores = [
        naive_probability.score_of_product(X[:, a], X[:, b], c, y, w, P) for (a, b), c in every
    ]
    best = np.argsort(scores)[::-1][: len(basis.pairs)]
    assert_array_equal(basis.pairs, [every[i][0] for i in best])
    assert_allclose(basis.cuts, [every[i][1] for i in best])
    means = [
        [
            np.average(naive_probability.step(X[:, f], c), weights=w)
            for f, c in zip(*every[i], strict=True)
        ]
        for i in best
    ]
    assert_allclose(basis.means, means)


# Softmax regressions and the pool ----------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kind", ["shared", "by class", "offset", "ridge"])
def test_softmax_fits_are_minima(n_classes, kind):
    rng = np.random.default_rng(5)
    n = 30
    y, w = np.arange(n) % n_classes, rng.uniform(0.5, 2.0, n)
    T = naive_probability.targets(y, w, n_classes)
    assert_allclose(labelled(y, w).targets(0.5), T)
    shared = rng.normal(size=(3, 2, n, n_classes)) + (np.arange(n_classes) == y[:, None])
    designs = {
        "shared": Designs(shared),
        "ridge": Designs(shared),
        "by class": Designs(shared[:, :1], by_class=True),
        "offset": Designs(shared, offset=rng.normal(size=(n, n_classes))),
    }[kind]
    penalty = None
    if kind == "ridge":
        strength = np.append([3.0, 7.0], np.zeros(n_classes - 1))
        penalty = Penalty(strength, np.append([0.4, -0.2], np.zeros(n_classes - 1)))
    found = fit_softmax(designs, T, w, penalty)
    for j in range(3):

        def objective(theta, j=j):
            slopes = [theta[:n_classes]] if designs.by_class else theta
            z = sum(s * x for s, x in zip(slopes, designs.columns[j], strict=False))
            z = z + np.append(0.0, theta[1 - n_classes :])
            if designs.offset is not None:
                z = z + designs.offset
            ridge = 0.0 if penalty is None else penalty.strength @ (theta - penalty.center) ** 2
            return naive_probability.cross_entropy(z, T, w) + ridge / 2.0

        expected = naive_probability.minimum(objective, np.zeros(designs.n_parameters))
        assert objective(found[j]) <= expected.fun + 1e-9
        assert_allclose(found[j], expected.x, atol=1e-3)
    begun = fit_softmax(designs, T, w, penalty, start=rng.normal(size=designs.n_parameters) * 5.0)
    assert_allclose(begun, found, atol=1e-7)
    z = designs.exponents(found)
    assert_allclose(np.exp(log_softmax(z[0])), naive_probability.softmax(z[0]), atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("useless", [False, True])
def test_the_pool_minimises_its_objective(n_classes, useless):
    rng = np.random.default_rng(7)
    n = 80
    y, w = np.arange(n) % n_classes, rng.integers(1, 3, n).astype(float)
    right = (np.arange(n_classes) == y[:, None]) * 2.0
    parts = np.stack([right + rng.normal(size=right.shape) for _ in range(3)])
    if useless:
        parts[1] *= -1.0  # favours the other classes
    pool = fit_pool(parts, labelled(y, w), 0.5)
    expected, objective = naive_probability.pool(list(parts), y, w)
    found = np.append(pool.weights, pool.biases[1:] - pool.biases[0])
    assert objective(found) <= expected.fun + 1e-6
    assert (pool.weights >= 0.0).all()
    assert (pool.weights[1] == 0.0) == useless
    assert_allclose(pool.weights, expected.x[:3], atol=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_where_every_part_misleads_the_biases_remain(n_classes):
    y, w = np.arange(300) % n_classes, np.where(np.arange(300) % n_classes, 1.0, 2.0)
    parts = np.stack([-4.0 * np.eye(n_classes)[y]] * 2)
    pool = fit_pool(parts, labelled(y, w), 0.5)
    assert_array_equal(pool.weights, 0.0)
    frequencies = np.bincount(y, w) / w.sum()
    assert_allclose(naive_probability.softmax(pool.biases[None])[0], frequencies, atol=0.01)


@pytest.mark.parametrize("strength", [-1.0, 0.0, 0.4, 1.0, 3.0])
@pytest.mark.parametrize("n_parts", [1, 4])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_trust_follows_from_the_gains_of_all_parts(n_classes, n_parts, strength):
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(n_classes), [30, 20, 10][:n_classes])
    w = np.arange(len(y)) % 3 + 1.0
    own = np.arange(n_classes) == y[:, None]
    *parts, pooled = rng.normal(size=(n_parts + 1, len(y), n_classes)) + strength * own
    labels = labelled(y, w)
    exponents = [*parts, pooled, np.tile(labels.prior, (len(y), 1))]
    names = [*PARTS[:n_parts], "pool", "prior"]
    losses = {name: labels.log_loss(z) for name, z in zip(names, exponents, strict=True)}
    found = trust_in(losses, w)
    assert_allclose(found, naive_probability.trust(parts, pooled, labels.prior, y, w))
    assert strength > 0.0 or found < 0.1
    assert strength < 1.0 or found > 0.9
    # Samples of small weight are no less than samples.
    assert_allclose(trust_in(losses, w * 1e-3), trust_in(losses, w / w.mean()))


def test_a_fold_has_no_say_in_what_is_chosen_for_it():
    rng, n = np.random.default_rng(5), 120
    y, here = np.arange(n) % 2, np.arange(n) < 30
    scores = -rng.exponential(size=(2, n, 2, 18)) - 2.0 * (np.arange(2) != y[:, None])[..., None]
    z = rng.normal(size=(2, n, 2))
    found = []
    for codes in (y, np.where(here, 1 - y, y)):
        labels = labelled(y, np.ones(n))._replace(codes=codes)
        forests = []
        for u in scores:
            shared = fit_shared_scalings(u, labels, 0.5, background=True)
            forests.append(HeldOutForest(u, BandwidthGrid(), np.ones(18), shared))
        tried = HeldOutPart([0.1, 1.0], list(z), log_losses(z, codes), [])
        options = Options(PARTS, True, None, True, True, 0.5)
        found.append(choose_parts(forests, {"linear": tried}, labels, ~here, options))
    one, other = found
    assert (one.forest, one.strengths) == (other.forest, other.strengths)
    assert_array_equal(one.scaling.steps, other.scaling.steps)
    assert_allclose(one.exponents, other.exponents, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_area_under_the_curve_is_that_of_scikit_learn(n_classes):
    rng = np.random.default_rng(7)
    y, w = np.arange(60) % n_classes, rng.uniform(0.1, 1.0, 60)
    z = np.round(2.0 * rng.normal(size=(60, n_classes)) + np.eye(n_classes)[y])  # with ties
    logs = log_softmax(z)
    areas = [roc_auc_score(y == k, logs[:, k], sample_weight=w) for k in range(n_classes)]
    assert_allclose(area_under_curve(z, labelled(y, w)), np.mean(areas))


# Bandwidths --------------------------------------------------------------------------------------


def test_the_grid_of_bandwidths():
    grid = BandwidthGrid()
    taus = grid.chains(3.0)
    assert_allclose(taus[:, 1:], taus[:, :-1] / 2.0)
    ranked = grid.ranked(3.0)
    assert_array_equal(np.sort(taus.ravel())[::-1], ranked)
    assert_allclose(ranked[[0, -1]], [24.0, 24.0 / 2**8.5])
    assert_allclose(ranked[1:] / ranked[:-1], 2**-0.5)


def held_out(n_classes, n=120, seed=0, noise=1.0):
    """Make scores on a grid of three bandwidths, the second of which separates the classes best."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    right = (np.arange(n_classes) == y[:, None]).astype(float)
    gains = np.array([0.5, 2.0, 1.0])[:, None, None]
    scores = -5.0 + right * gains + noise * rng.normal(size=(3, *right.shape))
    return np.moveaxis(scores, 0, 2), labelled(y, np.ones(n))


def scaling_of(scores, labels, background=True, by_class=False):
    shared = fit_shared_scalings(scores, labels, 0.5, background)
    return fit_class_scaling(shared, labels, 0.5, BandwidthGrid()) if by_class else shared.best


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("background", [True, False])
def test_scaling_of_a_forest_minimises_the_cross_entropy(n_classes, background):
    scores, labels = held_out(n_classes)
    y, w = labels.codes, labels.weights
    found = scaling_of(scores, labels, background)
    assert_array_equal(found.steps, 1)
    u = scores[:, :, 1]
    floor = -np.inf
    if background:
        floor = naive_probability.quantile(u.max(axis=1), np.ones(len(u), int), 0.02) - 2.0
        assert_allclose(found.floors, floor)
    T = naive_probability.targets(y, w, n_classes)

    def objective(theta):
        z = naive_probability.forest_exponents(u, floor, theta[0], np.append(0.0, theta[1:]))
        return naive_probability.cross_entropy(z, T, w)

    expected = naive_probability.minimum(objective, np.zeros(n_classes))
    assert_allclose(np.append(found.slopes[0], found.biases[1:]), expected.x, atol=1e-4)
    assert_allclose(found.slopes, found.slopes[0])
    z = naive_probability.forest_exponents(u, floor, found.slopes, found.biases)
    assert_allclose(found.exponents(u), z, atol=1e-9)
    assert_allclose(found.loss, naive_probability.log_loss(z, y, w), rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes_get_their_own_bandwidths_only_where_it_pays(n_classes):
    scores, labels = held_out(n_classes)
    y, w = labels.codes, labels.weights
    shared, again = scaling_of(scores, labels), scaling_of(scores, labels, by_class=True)
    assert_array_equal(again.steps, shared.steps)
    # Only the narrowest bandwidth separates the last class.
    scores[:, -1] = -5.0 + np.random.default_rng(1).normal(size=(len(scores), 3))
    scores[:, -1, 2] += 4.0 * (y == n_classes - 1)
    shared, found = scaling_of(scores, labels), scaling_of(scores, labels, by_class=True)
    assert found.steps[-1] == 2
    assert found.steps[0] == 1
    assert (found.slopes >= 0.0).all()
    gain = (shared.loss - found.loss) * w.sum()
    assert gain > 1.0 + np.log(2.0) / 2.0
    z = found.exponents_on_grid(scores)
    assert_allclose(found.loss, naive_probability.log_loss(z, y, w), rtol=1e-9)


def test_nearness_that_speaks_against_a_class_says_nothing():
    scores, labels = held_out(2, noise=0.5)
    inverted = scaling_of(scores[:, ::-1], labels)
    assert_array_equal(inverted.slopes, 0.0)
    assert_allclose(inverted.biases, labels.prior)
    # Samples of class 1 are nearer to class 0.
    scores[:, 0] = -5.0 + 0.5 * (labels.codes == 1)[:, None]
    found = scaling_of(scores, labels, by_class=True)
    assert found.slopes[0] == 0.0
    assert found.slopes[1] > 0.0
