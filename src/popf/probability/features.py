"""Features as the forest sees them: squashed or standardised, whatever their units, and mapped or not."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_array
from sklearn.utils.validation import has_fit_parameter

from popf.engine.structures import FloatArray, IntArray
from popf.probability.linear_maps import (
    ROUNDING,
    DiscriminantStretch,
    EffectSizeWeights,
    WithinClassWhitening,
)

if TYPE_CHECKING:
    from popf.forest.metrics import Metric

#: The interquartile range of a normal distribution, in standard deviations.
NORMAL_IQR = 1.349
#: Ratios beyond this are cut, so that everything stays finite.
FAR = 1e150
#: So many copies of samples a map without weights is fitted to, at most.
MOST_COPIES = 10_000_000

LINEAR_MAPS: dict[str, Callable[[], Any]] = {
    "weights": EffectSizeWeights,
    "whitening": WithinClassWhitening,
    "discriminant": DiscriminantStretch,
}


class Scaling(NamedTuple):
    r"""A function of each feature, :math:`f (g((x - c) / s) - m)`, with g = asinh or nothing."""

    center: FloatArray  # c: the median, or the mean
    scale: FloatArray  # s: the interquartile range, or the standard deviation
    mean: FloatArray  # m and f bring the result to mean 0 and variance 1
    factor: FloatArray  # f is 0 for a constant feature
    squashed: bool  # whether g is asinh

    def apply(self, samples: FloatArray) -> FloatArray:
        """Scale samples: (n_samples, n_features)."""
        with np.errstate(over="ignore"):
            ratio = np.clip((samples - self.center) / self.scale, -FAR, FAR)
        if self.squashed:
            ratio = np.arcsinh(ratio)
        return (ratio - self.mean) * self.factor


def fit_scaling(samples: FloatArray, weights: FloatArray, squashed: bool = True) -> Scaling:
    """Fit the scaling of every feature, samples counted by their weights."""
    share = weights / weights.sum()
    # By a power of two, which is exact, every feature comes below 1: no square over- or underflows.
    _, exponents = np.frexp(np.abs(samples).max(axis=0))
    small = np.ldexp(samples, -exponents)
    center = share @ small
    scale = np.sqrt(share @ (small - center) ** 2)
    varies = scale > ROUNDING
    if squashed:
        low, center, high = weighted_quantile(small, weights, 0.25, 0.5, 0.75)
        spread = (high - low) / NORMAL_IQR
        scale = np.where(spread > 0.0, spread, scale)
    scale = np.ldexp(np.where(varies, scale, 0.5), exponents)
    nothing = np.zeros(samples.shape[1])
    plain = Scaling(
        np.ldexp(center, exponents),
        np.maximum(scale, np.finfo(np.float64).tiny),
        nothing,
        nothing + 1.0,
        squashed,
    )
    found = plain.apply(samples)
    mean = share @ found
    deviation = np.sqrt(share @ (found - mean) ** 2)
    varies &= deviation > ROUNDING * (1.0 + np.abs(mean))
    factor = np.where(varies, 1.0 / np.where(varies, deviation, 1.0), 0.0)
    return plain._replace(mean=mean, factor=factor)


def weighted_quantile(values: FloatArray, weights: FloatArray, *shares: float) -> FloatArray:
    """Take quantiles of each column, samples repeated by their weights; between two samples, their mean.

    One share gives (n_columns,), several give (n_shares, n_columns).
    """
    last, columns = len(values) - 1, np.arange(values.shape[1])
    if (weights == weights[0]).all():  # sorting is much quicker than finding the order
        ranked = np.sort(values, axis=0)
        mass = np.cumsum(weights)[:, None]
    else:
        order = np.argsort(values, axis=0, kind="stable")
        ranked, mass = np.take_along_axis(values, order, axis=0), np.cumsum(weights[order], axis=0)
    found = []
    for share in shares:
        wanted, tolerance = share * mass[-1], 1e-12 * mass[-1]
        lower = np.minimum((mass < wanted - tolerance).sum(axis=0), last)
        upper = np.minimum((mass <= wanted + tolerance).sum(axis=0), last)
        found.append(ranked[lower, columns] / 2.0 + ranked[upper, columns] / 2.0)
    return found[0] if len(found) == 1 else np.array(found)


class Candidate(NamedTuple):
    """Features for the forest: scaled in one of two ways, or not at all, and mapped or not."""

    name: str
    squashed: bool | None
    linear_map: Any = None


class Preparation(NamedTuple):
    """What happens to features before the forest sees them."""

    scaling: Scaling | None = None
    linear_map: Any = None

    @property
    def changes(self) -> bool:
        """Whether anything happens at all."""
        return self.scaling is not None or self.linear_map is not None

    def apply(self, samples: FloatArray) -> FloatArray:
        """Prepare samples."""
        if self.scaling is not None:
            samples = self.scaling.apply(samples)
        if self.linear_map is not None:
            samples = self.linear_map.transform(samples)
            samples = check_array(samples, dtype=np.float64, input_name="linear_map's X")
        return np.ascontiguousarray(samples)


def candidates_for(squash: str | bool, linear_map: Any, metric: "Metric") -> list[Candidate]:
    """List the features to try for the forest."""
    squashed: bool | None = None
    if metric.euclidean:
        squashed = True if squash else None
    choice = linear_map
    if choice == "auto" and not metric.euclidean:
        choice = None
    if choice is None or choice == "auto":
        found = [Candidate("none", squashed)]
        if squash == "auto" and metric.euclidean:
            found.append(Candidate("unsquashed", False))
        if choice == "auto":
            found += [Candidate(name, squashed, make()) for name, make in LINEAR_MAPS.items()]
        return found
    if isinstance(choice, str):
        return [Candidate(choice, squashed, LINEAR_MAPS[choice]())]
    return [Candidate(type(choice).__name__, squashed, choice)]


def fit_preparation(
    candidate: Candidate, samples: FloatArray, codes: IntArray, weights: FloatArray
) -> Preparation:
    """Fit the features of a candidate to some samples."""
    scaling = None
    if candidate.squashed is not None:
        scaling = fit_scaling(samples, weights, candidate.squashed)
        samples = scaling.apply(samples)
    if candidate.linear_map is None:
        return Preparation(scaling)
    linear_map = clone(candidate.linear_map)
    if has_fit_parameter(linear_map, "sample_weight"):
        return Preparation(scaling, linear_map.fit(samples, codes, sample_weight=weights))
    if weights.sum() > MOST_COPIES or (weights % 1.0 != 0.0).any():
        raise ValueError(
            f"linear_map {linear_map!r} takes no sample_weight, but sample_weight is not a small whole number "
            "everywhere: use a map that takes weights, such as those of popf.probability."
        )
    copies = np.repeat(np.arange(len(samples)), weights.astype(np.int64))
    return Preparation(scaling, linear_map.fit(samples[copies], codes[copies]))
