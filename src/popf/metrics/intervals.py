"""Confidence intervals: of scores by the bootstrap, and of shares by Wilson's formula."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import ndtri

from popf.metrics.checks import FloatArray, IntArray

CONFIDENCE = 0.95
#: Number of bootstrap samples; fewer for more than 20,000 rows, where intervals are narrow anyway.
RESAMPLES, FEWEST_RESAMPLES, MOST_DRAWS = 500, 100, 10_000_000
#: Share of bootstrap samples in which a score must be defined to get an interval.
DEFINED = 0.9


def n_resamples(n_samples: int) -> int:
    """Return the number of bootstrap samples for `n_samples` rows."""
    return int(np.clip(MOST_DRAWS // n_samples, FEWEST_RESAMPLES, RESAMPLES))


def bootstrap_weights(groups: IntArray, seed: int) -> Iterator[FloatArray]:
    """Yield how often every row is drawn, for each bootstrap sample; `groups` are numbers from 0."""
    rng, n_groups = np.random.default_rng(seed), int(groups.max()) + 1
    for _ in range(n_resamples(len(groups))):
        drawn = rng.integers(n_groups, size=n_groups)
        yield np.bincount(drawn, minlength=n_groups).astype(np.float64)[groups]


def percentile_interval(drawn: FloatArray) -> tuple[float, float]:
    """Compute the percentile bootstrap interval; NaN if the score was often undefined."""
    defined = drawn[np.isfinite(drawn)]
    if len(defined) < DEFINED * len(drawn):
        return np.nan, np.nan
    lower, upper = np.quantile(defined, [(1.0 - CONFIDENCE) / 2.0, (1.0 + CONFIDENCE) / 2.0])
    return float(lower), float(upper)


def upward_biased_interval(value: float, drawn: FloatArray) -> tuple[float, float]:
    """Compute the interval of a non-negative score that noise can only increase, such as the calibration error.

    Resampling adds further noise, so percentiles are too high. The lower end is that of the basic bootstrap;
    the upper end is the percentile minus the bias. In simulations this covered the true error in 90 to 98 % of
    the cases, plain percentiles in 18 to 93 %.
    """
    _, highest = percentile_interval(drawn)
    return max(2.0 * value - highest, 0.0), max(value + highest - float(drawn.mean()), value)


def wilson(share: Any, n: Any) -> tuple[Any, Any]:
    r"""Compute Wilson's 95 % interval of a share h of n samples, for numbers or arrays.

    .. math:: \frac{h + \frac{z^2}{2n} \pm z \sqrt{\frac{h (1 - h)}{n} + \frac{z^2}{4 n^2}}}
              {1 + \frac{z^2}{n}}
    """
    z = float(ndtri(0.5 + CONFIDENCE / 2.0))
    middle = share + z**2 / (2.0 * n)
    half = z * np.sqrt(share * (1.0 - share) / n + (z / (2.0 * n)) ** 2)
    scale = 1.0 + z**2 / n
    # Rounding must not exclude the share itself.
    lower = np.clip((middle - half) / scale, 0.0, share)
    return lower, np.clip((middle + half) / scale, share, 1.0)
