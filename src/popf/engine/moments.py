r"""Sums over distant chunks of nodes from their moments, with a bounded error.

With the mean m of a chunk's nodes, r = m - q the way from a query to it, :math:`\rho = |r|`, and
:math:`\delta_v` the way from m to a node, :math:`e^{-|r + \delta_v| / \tau}` is expanded to third order in
:math:`\delta_v`. So the sum over the chunk is :math:`e^{-\rho / \tau}` times a weight that depends on moments
of the nodes and on the direction of r.

The fourth derivative along a line, at a distance d, is at most :math:`K(\tau / d)\, e^{-d / \tau} / \tau^4`,
with :math:`K(k) = 1 + 1.5 k + 3 k^2 + 3 k^3`. In the remainder of the expansion, d is at least the distance to
the chunk's box in K, and :math:`\rho - s |\delta_v|` in the exponent, with the weight :math:`4 (1 - s)^3` for s
from 0 to 1. The mean of :math:`e^{s z}` with this weight is at most :math:`e^{z / 3.5}` for z up to 4. So with
R, the largest :math:`|\delta_v|`, the error is at most :math:`K(\tau / d)\, e^{(R / 3.5 - \rho) / \tau}` times
:math:`\sum_v w_v |\delta_v|^4 / (24 \tau^4)`. A chunk for which that says nothing may be left out instead: then
the error is at most all its weight, at its lowest cost.
"""

from itertools import combinations_with_replacement
from math import factorial, prod
from typing import NamedTuple

import numpy as np

from popf.engine.runtime.jit import helper
from popf.engine.structures import FloatArray, IntArray

# With more features, there are so many third moments that nothing is gained: no chunk is expanded.
MAX_FEATURES = 4
# Rows of `work`: distances to the means, weights by expansion, costs that give a lower bound on the sum, errors
# as minus their binary logarithms, and intermediate ones. The ways to the means follow, one for each feature.
DISTANCES, WEIGHTS, TYPICAL, ERRORS, WAYS = 0, 1, 2, 3, 9
# Largest R in bandwidths, and its divisor in the bound.
WIDEST, DIVISOR = 4.0, 3.5
# A double's bits as an integer, over 2**52, are 1023 plus its binary logarithm, or up to 0.0861 less.
BITS, LOG_OFFSET = 2.0**-52, 0.0861 - 1023.0


class Moments(NamedTuple):
    """Moments of the nodes of every chunk around their mean, for all chunks in the last axis."""

    masses: FloatArray  # the sum of the weights
    means: FloatArray  # (n_features, n_chunks)
    squares: FloatArray  # of every pair of features i >= j, with its coefficient in a form
    cubes: FloatArray  # of every triple i >= j >= k, likewise
    variances: FloatArray  # the sum of w |δ|²
    pulls: FloatArray  # (n_features, n_chunks): the sum of w |δ|² δ
    fourths: FloatArray  # the sum of w |δ|⁴, infinite if there are too many features
    radii: FloatArray  # the largest |δ|
    highest: FloatArray  # the highest cost

    @classmethod
    def build(
        cls, points: FloatArray, weights: FloatArray, costs: FloatArray, starts: IntArray
    ) -> "Moments":
        """Compute the moments of points that are sorted by chunk; those of weight 0 do not count."""

        def total(values: FloatArray) -> FloatArray:
            sums: FloatArray = np.add.reduceat(weights * values, starts, axis=-1)
            return sums

        masses = total(np.ones(len(weights)))
        means = total(points.T) / masses
        apart = points.T - np.repeat(means, np.diff(np.append(starts, len(weights))), axis=1)
        lengths = np.einsum("ij,ij->j", apart, apart)
        n_features, n_chunks = means.shape
        expanded = n_features <= MAX_FEATURES

        def products(order: int) -> FloatArray:
            """Sum the products of so many features, in the order of `expand`."""
            found = []
            tuples = combinations_with_replacement(range(n_features), order)
            for which in sorted(each[::-1] for each in tuples):
                repeats = [factorial(which.count(feature)) for feature in set(which)]
                found.append(
                    factorial(order) / prod(repeats) * total(apart[list(which)].prod(axis=0))
                )
            return np.array(found)

        return cls(
            masses,
            means,
            products(2) if expanded else np.empty((0, n_chunks)),
            products(3) if expanded else np.empty((0, n_chunks)),
            total(lengths),
            total(lengths * apart),
            total(lengths**2) if expanded else np.full(n_chunks, np.inf),
            np.maximum.reduceat(np.where(weights > 0.0, np.sqrt(lengths), 0.0), starts),
            np.maximum.reduceat(np.where(weights > 0.0, costs, -np.inf), starts),
        )


@helper
def expand(moments, first, last, queries, q, bounds, low, tau, work):
    """Expand the sums of chunks for one query, into the rows of `work`; `bounds` are lower bounds on costs.

    Errors are relative to exp(-low / tau).
    """
    # Many short loops over few arrays each, which the compiler turns into vector instructions.
    n, n_features, by_tau = last - first, queries.shape[1], 1.0 / tau
    distances, weights, typical, exponents = work[0], work[1], work[2], work[3]
    errors, inverses, squares, cubes, pulls = work[4], work[5], work[6], work[7], work[8]
    masses, variances = moments.masses[first:last], moments.variances[first:last]
    fourths, highest = moments.fourths[first:last], moments.highest[first:last]
    radii = moments.radii[first:last]
    for c in range(n):
        distances[c] = pulls[c] = squares[c] = cubes[c] = 0.0
    for f in range(n_features):
        x, mean, way = queries[q, f], moments.means[f, first:last], work[WAYS + f]
        pull = moments.pulls[f, first:last]
        for c in range(n):
            way[c] = mean[c] - x
            distances[c] += way[c] * way[c]
            pulls[c] += pull[c] * way[c]
    pair, triple = 0, 0
    for i in range(n_features if len(moments.cubes) > 0 else 0):
        for j in range(i + 1):
            one, other, square = work[WAYS + i], work[WAYS + j], moments.squares[pair, first:last]
            pair += 1
            for c in range(n):
                squares[c] += square[c] * one[c] * other[c]
            for k in range(j + 1):
                third, cube = work[WAYS + k], moments.cubes[triple, first:last]
                triple += 1
                for c in range(n):
                    cubes[c] += cube[c] * one[c] * other[c] * third[c]
    for c in range(n):
        # By Jensen's inequality, the mean of exp(-x) is at least exp(-mean of x).
        floor = 0.0 if highest[c] < bounds[c] else highest[c]
        typical[c] = np.sqrt(distances[c] + np.divide(variances[c], masses[c]) + floor * floor)
    for c in range(n):
        distances[c] = np.sqrt(distances[c])
        inverses[c] = np.divide(1.0, distances[c])
    for c in range(n):
        square = squares[c] * inverses[c] * inverses[c]
        apart = tau * inverses[c] * (variances[c] - square)
        weights[c] = masses[c] + 0.5 * by_tau * by_tau * (square - apart)
    for c in range(n):
        k, cube = tau * inverses[c], cubes[c] * inverses[c] * inverses[c] * inverses[c]
        apart = 3.0 * k * (1.0 + k) * (pulls[c] * inverses[c] - cube)
        weights[c] += by_tau * by_tau * by_tau / 6.0 * (apart - cube)
    for c in range(n):
        k = np.divide(tau, bounds[c])
        error = by_tau * by_tau * by_tau * by_tau / 24.0 * fourths[c]
        errors[c] = error * (1.0 + k * (1.5 + 3.0 * k * (1.0 + k)))
    for c in range(n):
        usable = (errors[c] < masses[c]) & (highest[c] < bounds[c]) & (radii[c] < WIDEST * tau)
        errors[c] = errors[c] if usable else masses[c]
        weights[c] = weights[c] if usable else 0.0
        exponents[c] = distances[c] - radii[c] / DIVISOR if usable else bounds[c]
    bits, rate = errors.view(np.int64), by_tau / np.log(2.0)
    for c in range(n):
        exponents[c] = (exponents[c] - low) * rate - (bits[c] * BITS + LOG_OFFSET)
