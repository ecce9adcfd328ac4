"""Slow and obvious versions of POPFClassifier's probabilities and linear maps, from their definitions.

Weights are repetitions, loops run over single samples, matrices are formed explicitly, and fits use SciPy's
general minimisers. Nothing here imports popf.
"""

import numpy as np
from scipy.interpolate import BSpline
from scipy.linalg import sqrtm
from scipy.optimize import minimize

from naive import soft_score


def scores(costs, codes, w, D, tau):
    """Compute u_k of every sample; D holds the distances to all nodes."""
    n_classes = codes.max() + 1
    u = np.empty((len(D), n_classes))
    for t, distances in enumerate(D):
        offers = np.maximum(costs, distances)
        for k in range(n_classes):
            u[t, k] = -soft_score(offers[codes == k], w[codes == k], tau)
    return u


def forest_logits(u, floor, slopes, biases):
    """Compute a_k * log(e^u_k + e^floor) + b_k."""
    return slopes * np.logaddexp(u, floor) + biases


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def targets(y, w, n_classes, a=0.25):
    """Compute targets: (N_k + a)/(N_k + 2a) for a sample's class k; the other classes share the rest."""
    counts = np.array([w[y == k].sum() for k in range(n_classes)])
    T = np.empty((len(y), n_classes))
    for i, k in enumerate(y):
        T[i] = a / (counts[k] + 2.0 * a) / (n_classes - 1)
        T[i, k] = (counts[k] + a) / (counts[k] + 2.0 * a)
    return T


def cross_entropy(z, T, w):
    return -(w[:, None] * T * np.log(softmax(z))).sum()


def log_loss(z, y, w):
    return -(w * np.log(softmax(z)[np.arange(len(y)), y])).sum() / w.sum()


def minimum(objective, start, bounds=None):
    """Minimise as accurately as finite differences allow."""
    method = "BFGS" if bounds is None else "L-BFGS-B"
    found = minimize(objective, start, method=method, bounds=bounds, tol=1e-10)
    return minimize(objective, found.x, method=method, bounds=bounds, tol=1e-12)


def pool(parts, y, w, ridge=40.0, temperature=8.0):
    """Fit non-negative weights, and biases, by the penalised cross entropy of pooled logits."""
    n_parts, n_classes = len(parts), parts[0].shape[1]
    T = targets(y, w, n_classes)
    losses = np.array([log_loss(part, y, w) for part in parts])
    shares = np.exp(-(losses - losses.min()) * w.sum() / temperature)
    shares /= shares.sum()

    def objective(theta):
        z = sum(weight * part for weight, part in zip(theta, parts, strict=False))
        z = z + np.append(0.0, theta[n_parts:])
        return cross_entropy(z, T, w) + ridge / 2.0 * ((theta[:n_parts] - shares) ** 2).sum()

    bounds = [(0.0, None)] * n_parts + [(None, None)] * (n_classes - 1)
    start = np.append(shares, np.zeros(n_classes - 1))
    return minimum(objective, start, bounds), objective


def confidence(parts, pooled, prior, y, w):
    """Compute the confidence in a pool: a logistic function of the mean gain of parts and pool."""
    before = w.sum() * log_loss(np.tile(prior, (len(y), 1)), y, w)
    gains = [before - w.sum() * log_loss(z, y, w) for z in [*parts, pooled]]
    return 1.0 / (1.0 + np.exp((2.75 + 1.0 / len(parts) - np.mean(gains)) / 2.0))


def quantile(x, w, share):
    """Compute a quantile of repeated samples; between two samples, it is their mean."""
    x = np.sort(np.repeat(x, w))
    place = share * len(x)
    lower, upper = int(np.ceil(place)) - 1, int(np.floor(place))
    return (x[max(lower, 0)] + x[min(upper, len(x) - 1)]) / 2.0


def moved_inside(X, w, new):
    """Scale features, and move new samples into the range of the samples X; return both."""
    scaled, moved = np.empty(X.shape), np.empty(new.shape)
    for f, x in enumerate(X.T):
        median = quantile(x, w, 0.5)
        iqr = quantile(x, w, 0.75) - quantile(x, w, 0.25)
        scale = iqr / 1.349 if iqr > 0.0 else np.repeat(x, w).std()
        scaled[:, f], moved[:, f] = (x - median) / scale, (new[:, f] - median) / scale
    low, high = scaled.min(axis=0), scaled.max(axis=0)
    for sample in moved:
        border = np.where(sample < 0.0, low, high)
        ratios = [max(x / b, 1.0) if b != 0.0 else 1.0 for x, b in zip(sample, border, strict=True)]
        for f, ratio in enumerate(ratios):
            inside = min(max(sample[f], low[f]), high[f])
            sample[f] = inside * (1.0 / ratio + (ratio - 1.0) / max(ratios))
    return scaled, moved


def squash(X, w, new):
    """Compute asinh((x - median) / (IQR / 1.349)) of new samples moved inside, standardised by X."""
    scaled, moved = moved_inside(X, w, new)
    z = np.repeat(np.arcsinh(scaled), w, axis=0)
    return (np.arcsinh(moved) - z.mean(axis=0)) / z.std(axis=0)


def splines(x, knots):
    """Evaluate six cubic B-splines of one feature, constant beyond the knots."""
    before, after = knots[1] - knots[0], knots[-1] - knots[-2]
    every = [
        *(knots[0] - before * np.arange(3, 0, -1)),
        *knots,
        *(knots[-1] + after * np.arange(1, 4)),
    ]
    inside = np.clip(x, knots[0], knots[-1])
    return np.column_stack([BSpline(np.array(every), np.eye(7)[j], 3)(inside) for j in range(6)])


def step(x, cut):
    """Compute a smooth step from 0 to 1."""
    return 1.0 / (1.0 + np.exp(-4.0 * (x - cut)))


def score_of_product(x, y, cuts, labels, w, P):
    """Compute the score test of the product of two centred steps, for regressions with probabilities P."""
    first = step(x, cuts[0]) - np.average(step(x, cuts[0]), weights=w)
    second = step(y, cuts[1]) - np.average(step(y, cuts[1]), weights=w)
    product, total = first * second, 0.0
    for k in range(P.shape[1]) if P.shape[1] > 2 else [1]:
        score = (w * ((labels == k) - P[:, k]) * product).sum()
        total += score**2 / (w * P[:, k] * (1.0 - P[:, k]) * product**2).sum()
    return total


def hashed(number):
    """Compute SplitMix64's mixing function of a 64-bit integer."""
    mixed = number * 0x9E3779B97F4A7C15 % 2**64
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
    return mixed ^ mixed >> 31


def bin_edges(x, n_bins):
    """Return midpoints between values of different bins: of equal size, or one for every value."""
    distinct = np.unique(x)
    if len(distinct) <= n_bins:
        return (distinct[1:] + distinct[:-1]) / 2.0
    bins = [int(n_bins * ((x < value).mean() + (x == value).mean() / 2.0)) for value in distinct]
    pairs = zip(distinct, distinct[1:], bins, bins[1:], strict=False)
    return np.array([(low + high) / 2.0 for low, high, one, other in pairs if one != other])


def best_split(X, r, h, features, edges):
    """Return the feature and edge with the largest gain of Newton steps with a ridge; None without a gain."""
    best, found = 1e-9, None
    for feature in features:
        for edge in edges[feature]:
            left = X[:, feature] <= edge
            if min(h[left].sum(), h[~left].sum()) < 0.2:
                continue
            gain = sum(r[side].sum() ** 2 / (h[side].sum() + 1.0) for side in (left, ~left))
            gain -= r.sum() ** 2 / (h.sum() + 1.0)
            if gain > best * (1.0 + 1e-9):
                best, found = gain, (feature, edge)
    return found


def tree_steps(X, r, h, features, edges, new, depth):
    """Grow a tree of Newton steps on X, and return its values for new samples."""
    split = best_split(X, r, h, features, edges) if depth else None
    if split is None:
        return np.full(len(new), r.sum() / (h.sum() + 1.0))
    steps = np.empty(len(new))
    for right in (False, True):
        here, there = ((values[:, split[0]] > split[1]) == right for values in (X, new))
        steps[there] = tree_steps(X[here], r[here], h[here], features, edges, new[there], depth - 1)
    return steps


def boosted(X, y, w, n_classes, n_samples, n_rounds, new):
    """Compute logits of boosted trees; in a round, a hash selects half of the features, at most 100."""
    depth = max(int(np.log2(n_samples / 400)), 4)
    n_bins = min(max(n_samples // 80, 64), 255)
    X, y = repeat(X, y, w)
    n_features = X.shape[1]
    edges = [bin_edges(x, n_bins) for x in X.T]
    classes, rate = ([1], 0.1) if n_classes == 2 else (range(n_classes), 0.2)
    start = np.log([(y == k).sum() + 0.5 for k in range(n_classes)])
    z, found = (np.tile(start - start.mean(), (len(samples), 1)) for samples in (X, new))
    for number in range(n_rounds):
        P = softmax(z)
        first = number * n_features
        ranked = sorted(range(n_features), key=lambda f, first=first: hashed(first + f))
        features = sorted(ranked[: min((n_features + 1) // 2, 100)])
        for k in classes:
            r, h = (y == k) - P[:, k], P[:, k] * (1.0 - P[:, k])
            for samples, logits in ((X, z), (new, found)):
                steps = rate * tree_steps(X, r, h, features, edges, samples, depth)
                if n_classes == 2:
                    logits += np.outer(steps, [-0.5, 0.5])
                else:
                    logits[:, k] += steps * (n_classes - 1) / n_classes
    return found


def trees_logits(part, scaled):
    """Compute logits of fitted trees, sample by sample."""
    n_classes = len(part.intercepts)
    found = np.tile(part.intercepts, (len(scaled), 1))
    trees = zip(part.features, part.cuts, part.values, strict=True)
    for number, (features, cuts, values) in enumerate(trees):
        for i, sample in enumerate(scaled):
            node = 0
            while node < len(features):
                right = features[node] >= 0 and sample[features[node]] > cuts[node]
                node = 2 * node + 1 + right
            if n_classes == 2:
                found[i] += values[node] * np.array([-0.5, 0.5])
            else:
                found[i, number % n_classes] += values[node]
    return found


def additive_logits(part, scaled):
    """Compute logits of a regression, feature by feature."""
    basis = part.basis
    blocks = [scaled[:, [feature]] for feature in basis.plain]
    blocks += [
        splines(scaled[:, feature], knots)
        for feature, knots in zip(basis.smooth, basis.knots.T, strict=True)
    ]
    for pair, cuts, means in zip(basis.pairs, basis.cuts, basis.means, strict=True):
        first, second = (
            step(scaled[:, f], c) - m for f, c, m in zip(pair, cuts, means, strict=True)
        )
        blocks.append((first * second)[:, None])
    columns = np.hstack([np.empty((len(scaled), 0)), *blocks])
    return (columns - part.center) @ part.coefficients.T + part.intercepts


def probabilities(pool, u, scaled):
    """Pool the forest's scores u with the components on scaled samples, and mix with the prior."""
    forest = pool.forest
    parts = [forest_logits(u, forest.floor, forest.slopes, forest.biases)]
    for part in pool.components.values():
        parts.append((trees_logits if hasattr(part, "cuts") else additive_logits)(part, scaled))
    z = sum(weight * part for weight, part in zip(pool.weights, parts, strict=True)) + pool.biases
    z = pool.confidence * z + (1.0 - pool.confidence) * pool.prior
    return softmax(z)[:, np.argsort(pool.classes)]


# Linear maps --------------------------------------------------------------------------------------


def repeat(X, y, w=None):
    """Repeat each sample by its weight."""
    if w is None:
        return np.asarray(X, dtype=float), np.asarray(y)
    return np.repeat(np.asarray(X, dtype=float), w, axis=0), np.repeat(y, w)


def effect_sizes(X, y):
    """Compute the correlation ratio of every feature."""
    found = []
    for x in X.T:
        total = sum((value - x.mean()) ** 2 for value in x)
        between = sum((x[y == label].mean() - x.mean()) ** 2 for label in y)
        found.append(np.sqrt(between / total) if np.ptp(x) > 0.0 else 0.0)
    return np.array(found)


def within(Z, y):
    """Subtract the mean of its class from each sample."""
    return np.array([z - Z[y == label].mean(axis=0) for z, label in zip(Z, y, strict=True)])


def ledoit_wolf(R):
    """Estimate the covariance of centred rows as in section 3.2 of the paper."""
    n, d = R.shape
    S = sum(np.outer(r, r) for r in R) / n
    m = np.trace(S) / d
    distance = ((S - m * np.eye(d)) ** 2).sum()
    chance = sum(((np.outer(r, r) - S) ** 2).sum() for r in R) / n**2
    delta = min(chance, distance) / distance if distance > 0.0 else 0.0
    return delta * m * np.eye(d) + (1.0 - delta) * S


def weights(Z, y, new):
    """Multiply features by their effect sizes."""
    return new * effect_sizes(Z, y)


def whitening(Z, y, new):
    """Multiply by the inverse square root of the covariance within the classes; constant features stay 0."""
    varies = np.ptp(Z, axis=0) > 0.0
    covariance = ledoit_wolf(within(Z[:, varies], y))
    found = np.zeros_like(new)
    found[:, varies] = new[:, varies] @ np.linalg.inv(sqrtm(covariance).real)
    return found


def discriminant(Z, y, new):
    """Multiply whitened samples by the square root of I + B."""
    Z, mapped = (whitening(Z, y, samples) for samples in (Z, new))
    B = sum(
        (y == label).mean() * np.outer(Z[y == label].mean(axis=0), Z[y == label].mean(axis=0))
        for label in np.unique(y)
    )
    return mapped @ sqrtm(np.eye(len(B)) + B).real


def principal(Z, new, n_directions):
    """Project on the directions of the largest variances."""
    _, _, directions = np.linalg.svd(Z - Z.mean(axis=0))
    return new @ directions[:n_directions].T


LINEAR_MAPS = {
    "none": lambda Z, y, new: new,
    "weights": weights,
    "whitening": whitening,
    "discriminant": discriminant,
}
