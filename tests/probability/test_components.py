"""The components on features, against their definitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import naive_probability
from popf.probability import additive, trees
from popf.probability.additive import Regressions, RidgeRegression, add_pairs, make_basis
from popf.probability.components import Fold
from popf.probability.held_out import COMPONENTS
from popf.probability.trees import Trees

RNG = np.random.default_rng(0)


def fold(X, y, w=None, n_classes=None, n_samples=None):
    w = np.ones(len(y)) if w is None else w.astype(float)
    return Fold(X, y, w, n_classes or int(y.max()) + 1, n_samples or len(y))


def noisy(n, n_features, n_classes, seed=0):
    """Make classes by thresholds in two features, with a quarter of the labels replaced by random ones."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    X[:, -1] = np.round(X[:, -1])  # few values
    y = (X[:, 0] > 0.3).astype(int) + ((X[:, 1] > 0.0) & (X[:, 0] < 0.3)) * (n_classes - 1)
    return X, np.where(rng.random(n) < 0.25, rng.integers(0, n_classes, n), y % n_classes), rng


# What all components promise ---------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", COMPONENTS)
def test_logits_are_sums_over_features_of_mean_0(name, n_classes):
    X, y, rng = noisy(300, 6, n_classes)
    w, component = rng.random(300) + 0.5, COMPONENTS[name]
    fitted = component.fit(fold(X, y, w), component.paths[-1][3])
    contributions = fitted.contributions(X)
    assert contributions.shape == (300, 6, n_classes)
    assert_allclose(contributions.sum(axis=1) + fitted.intercepts, fitted.logits(X), atol=1e-9)
    assert_allclose(np.average(contributions, axis=0, weights=w), 0.0, atol=1e-9)
    assert np.abs(contributions[:, 0]).mean() > 2.0 * np.abs(contributions[:, 3]).mean()
    frequencies = naive_probability.softmax(fitted.intercepts[None])[0]
    assert_allclose(frequencies, np.bincount(y, w) / w.sum(), atol=0.1)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", COMPONENTS)
def test_a_path_scores_what_single_fits_give(name, n_classes):
    X, y, rng = noisy(200, 4, n_classes)
    component, new, here = COMPONENTS[name], rng.normal(size=(30, 4)), fold(X, y)
    for path in component.paths:
        scored = list(component.score_path(here, new, path))
        assert len(scored) == len(path)
        for complexity, logits in list(zip(path, scored, strict=True))[:5:2]:
            alone = component.fit(here, complexity).logits(new)
            exact = name == "trees"
            assert_allclose(logits, alone, rtol=0.0 if exact else 0.07, atol=1e-9 if exact else 0.1)


@pytest.mark.parametrize("name", COMPONENTS)
def test_without_features_or_without_a_class(name):
    y = np.repeat([0, 2], [30, 10])
    component = COMPONENTS[name]
    here = fold(np.ones((40, 2)), y, n_classes=3)
    fitted = component.fit(here, component.paths[0][3])
    P = naive_probability.softmax(fitted.logits(np.ones((1, 2))))
    assert_allclose(P, [[0.74, 0.01, 0.25]], atol=0.015)
    assert fitted.contributions(np.ones((1, 2))).shape == (1, 2, 3)


# Regressions -------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["features", "splines", "products"])
@pytest.mark.parametrize(("n", "d"), [(50, 2), (9, 12)], ids=["d < n", "d > n"])
def test_regressions_minimise_the_penalised_cross_entropy(n_classes, kind, n, d, monkeypatch):
    monkeypatch.setattr(additive, "TOLERANCE", 1e-7)
    rng = np.random.default_rng(3)
    X, y, w = rng.normal(size=(n, d)), np.arange(n) % n_classes, rng.integers(1, 4, n).astype(float)
    X[:, 0] += y
    part = Regressions(kind).fit(fold(X, y, w), (kind, 0.3))
    assert len(part.basis.pairs) == additive.N_PRODUCTS * (kind == "products")
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
    assert_allclose(part.logits(X), naive_probability.additive_logits(part, X), atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_regressions_are_those_of_scikit_learn(n_classes):
    rng = np.random.default_rng(6)
    X, y, w = rng.normal(size=(200, 3)), np.arange(200) % n_classes, rng.uniform(1.0, 2.0, 200)
    X[:, 0] += 3.0 * y  # nearly separated
    regression = RidgeRegression(make_basis(X, splines=False), fold(X, y, w))
    scaler = StandardScaler().fit(X, sample_weight=w)
    for strength in (0.01, 1.0, 100.0):  # each fit starts from the last one
        model = LogisticRegression(C=strength, tol=1e-10, max_iter=1000)
        model.fit(scaler.transform(X), y, sample_weight=w)
        P = naive_probability.softmax(regression.fit(strength).logits(X))
        assert_allclose(P, model.predict_proba(scaler.transform(X)), atol=0.01)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_pairs_are_those_of_the_highest_scores(n_classes):
    rng = np.random.default_rng(4)
    n = 60
    X, w = rng.normal(size=(n, 4)), rng.integers(1, 4, n)
    X[:, 1] = X[:, 1] > 0.0
    y = np.where((X[:, 0] > 0.0) & (X[:, 1] == 1.0), n_classes - 1, np.arange(n) % n_classes)
    here, plain = fold(X, y, w), make_basis(X, splines=True)
    before = RidgeRegression(plain, here).fit(additive.STRENGTH_BEFORE_PAIRS)
    P = naive_probability.softmax(before.logits(X))
    basis = add_pairs(plain, here)
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


def test_products_are_left_out_where_they_would_be_too_many():
    X, y, rng = noisy(300, 40, 4)
    component, new = COMPONENTS["additive"], rng.normal(size=(3, 40))
    assert len(list(component.score_path(fold(X, y), new, component.paths[0]))) == 6
    assert list(component.score_path(fold(X, y), new, component.paths[1])) == []
    alone = fold(X[:, :1], y % 2)
    assert list(component.score_path(alone, new[:, :1], component.paths[1])) == []


# Trees -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("n_samples", "n_features", "n_rounds", "n_inner"),
    [(120, 1, 12, 15), (120, 5, 12, 15), (120, 50, 4, 15), (13_000, 4, 4, 31), (26_000, 45, 2, 63)],
)
def test_trees_are_those_of_the_definition(n_samples, n_features, n_rounds, n_inner, n_classes):
    # Of many samples these are a part, as in a fold.
    X, y, rng = noisy(min(n_samples, 400), max(n_features, 2), n_classes)
    X, w, new = X[:, :n_features], rng.integers(1, 4, len(X)), rng.normal(size=(40, n_features))
    fitted = Trees().fit(fold(X, y, w, n_classes, n_samples), n_rounds)
    n_rounds = n_rounds if n_classes == 2 else n_rounds // 2
    assert fitted.features.shape == (n_rounds * (1 if n_classes == 2 else n_classes), n_inner)
    expected = naive_probability.boosted(X, y, w, n_classes, n_samples, n_rounds, new)
    found = fitted.logits(new)
    assert_allclose(
        found - found.mean(1, keepdims=True), expected - expected.mean(1, keepdims=True), atol=1e-9
    )
    assert_allclose(found, naive_probability.trees_logits(fitted, new), atol=1e-12)
    assert np.ptp(found[:, 1]) > 0.1


def test_with_many_classes_few_rounds_are_tried(monkeypatch):
    X, y, rng = noisy(200, 6, 3)
    new, path = rng.normal(size=(3, 6)), Trees().paths[0]
    for limit, n_scored in ((1, 1), (3 * 10, 3), (3 * 20, 4), (10**6, len(path))):
        monkeypatch.setattr(trees, "MAX_TREES", limit)
        assert len(list(Trees().score_path(fold(X, y), new, path))) == n_scored


def test_weights_are_repetition_and_monotone_changes_are_none():
    X, y, rng = noisy(150, 4, 3)
    w = rng.integers(1, 5, 150)
    one = Trees().fit(fold(X, y, w, n_samples=150), 60)
    repeated = fold(np.repeat(X, w, axis=0), np.repeat(y, w), n_samples=150)
    other = Trees().fit(repeated, 60)
    assert_array_equal(one.features, other.features)
    assert_allclose(one.logits(X), other.logits(X), atol=1e-10)
    curved = Trees().fit(fold(X**3, y, w, n_samples=150), 60)
    assert_allclose(one.logits(X), curved.logits(X**3), atol=1e-12)


def test_trees_learn_rules_once_the_classes_are_nearly_separated():
    rng = np.random.default_rng(9)
    X = rng.integers(0, 2, size=(600, 8)).astype(float)
    y = ((X[:, 0] == 1) & (X[:, 1] == 1) | (X[:, 2] == 1) & (X[:, 3] == 0)).astype(int)
    fitted = Trees().fit(fold(X, y), 320)
    assert np.abs(np.diff(fitted.logits(X))).min() > np.log(99.0)


def test_neighbouring_floats_are_told_apart():
    x = np.array([1.0, np.nextafter(1.0, 2.0)])[np.arange(60) % 2]
    fitted = Trees().fit(fold(x[:, None], np.arange(60) % 2), 10)
    assert (np.diff(fitted.logits(x[:, None]))[:, 0] > 0.0).tolist() == [False, True] * 30
