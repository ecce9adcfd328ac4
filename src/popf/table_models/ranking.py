"""Rank rows to inspect by probability or by expected gain."""

from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import expit, logit, ndtr

from popf.engine.structures import FloatArray, IntArray

#: Number of rows up to which the distribution of hits is exact; beyond it, a normal approximation is used.
N_EXACT = 2000
TAIL = 0.025
#: Number of shifts of the log odds over which hits are averaged.
N_SHIFTS = 21


class Ranking(NamedTuple):
    """Rows to inspect, best first, and their expected hits if the probabilities are right."""

    rows: IntArray  # positions
    gains: FloatArray | None  # of all rows: probability times value minus the cost of a visit
    expected_hits: float  # the sum of the probabilities
    expected_hits_lower: int  # ends of the 95 % interval
    expected_hits_upper: int
    random_hits: float  # expected among equally many random rows
    lift: float  # expected_hits / random_hits


def rank_rows(
    probability: FloatArray,
    budget: int | None = None,
    values: FloatArray | None = None,
    visit_cost: float = 0.0,
    spread: float | None = None,
) -> Ranking:
    """Rank rows by probability or, if the `values` of hits are given, by expected gain.

    Rows without a positive expected gain and rows beyond the budget are left out. `spread` is that of
    `hits_interval`.
    """
    gains = None if values is None else probability * values - visit_cost
    score = probability if gains is None else gains
    order = np.lexsort([-probability, -score])  # ties: by probability, then by position
    if gains is not None:
        order = order[gains[order] > 0.0]
    rows = order[:budget]
    chosen = probability[rows]
    hits, random_hits = float(chosen.sum()), len(rows) * float(probability.mean())
    lift = hits / random_hits if len(rows) else float("nan")
    return Ranking(rows, gains, hits, *hits_interval(chosen, spread), random_hits, lift)


def hits_interval(probability: FloatArray, spread: float | None = None) -> tuple[int, int]:
    """Return the 2.5 % and 97.5 % quantiles of the number of hits, a Poisson-binomial variable.

    `spread` is the standard deviation of a shift of all log odds together, see
    `popf.metrics.spread_of_periods`.
    """
    below = _cumulative(probability)
    if spread:
        shifts, weights = hermegauss(N_SHIFTS)
        logits = logit(probability)
        several = [_cumulative(expit(logits + spread * shift)) for shift in shifts]
        below = np.average(several, axis=0, weights=weights)
    return int(np.searchsorted(below, TAIL)), int(np.searchsorted(below, 1.0 - TAIL))


def _cumulative(probability: FloatArray) -> FloatArray:
    """Compute the probability of at most 0, 1, ... hits."""
    n = len(probability)
    if n > N_EXACT:
        deviation = np.sqrt((probability * (1.0 - probability)).sum())
        distances = np.arange(n + 1) + 0.5 - probability.sum()
        found: FloatArray = ndtr(distances / max(deviation, 1e-9))
        return found
    mass = np.zeros(n + 1)
    mass[0] = 1.0
    for p in probability.tolist():
        mass[1:] += p * (mass[:-1] - mass[1:])
        mass[0] *= 1.0 - p
    return np.cumsum(mass)
