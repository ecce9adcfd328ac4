"""Rank rows to inspect by probability or by expected gain."""

from typing import NamedTuple

import numpy as np

from popf.engine.structures import FloatArray, IntArray

#: Number of rows up to which the distribution of hits is exact; beyond it, a normal approximation is used.
N_EXACT = 2000
TAIL = 0.025


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
) -> Ranking:
    """Rank rows by probability or, if the `values` of hits are given, by expected gain.

    Rows without a positive expected gain and rows beyond the budget are left out.
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
    return Ranking(rows, gains, hits, *hits_interval(chosen), random_hits, lift)


def hits_interval(probability: FloatArray) -> tuple[int, int]:
    """Return the 2.5 % and 97.5 % quantiles of the number of hits, a Poisson-binomial variable."""
    n = len(probability)
    if n > N_EXACT:
        mean = float(probability.sum())
        spread = 1.96 * float(np.sqrt((probability * (1.0 - probability)).sum()))
        return max(0, int(np.floor(mean - spread))), min(n, int(np.ceil(mean + spread)))
    mass = np.zeros(n + 1)
    mass[0] = 1.0
    for p in probability.tolist():
        mass[1:] += p * (mass[:-1] - mass[1:])
        mass[0] *= 1.0 - p
    below = np.cumsum(mass)
    return int(np.searchsorted(below, TAIL)), int(np.searchsorted(below, 1.0 - TAIL))
