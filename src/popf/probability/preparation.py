"""Features as the forest sees them: scaled in one of two ways or not at all, and mapped or not."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_array
from sklearn.utils.validation import has_fit_parameter

from popf.forest.metrics import Metric
from popf.probability.linear_maps import (
    DiscriminantStretch,
    EffectSizeWeights,
    WithinClassWhitening,
)
from popf.probability.squashing import Scaling, fit_scaling

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: So many copies of samples a map without weights is fitted to, at most.
MOST_COPIES = 10_000_000

MAPS: dict[str, Callable[[], Any]] = {
    "weights": EffectSizeWeights,
    "whitening": WithinClassWhitening,
    "discriminant": DiscriminantStretch,
}


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


def candidates_for(squash: str | bool, linear_map: Any, metric: Metric) -> list[Candidate]:
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
            found += [Candidate(name, squashed, make()) for name, make in MAPS.items()]
        return found
    if isinstance(choice, str):
        return [Candidate(choice, squashed, MAPS[choice]())]
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
