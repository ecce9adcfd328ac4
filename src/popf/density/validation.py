"""Checks that the estimators on densities share."""

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

from popf.forest.validation import check_precomputed, resources_of, to_host

if TYPE_CHECKING:
    from popf.engine.backends import Resources
    from popf.forest.metrics import Metric

FloatArray = NDArray[np.float64]


class UnlabelledSamples(NamedTuple):
    """Checked samples, or the distances among them if the metric is precomputed."""

    samples: FloatArray
    metric: "Metric"
    resources: "Resources"


def validate_unlabelled(estimator: Any, X: ArrayLike) -> UnlabelledSamples:
    """Check parameters that all have, then the samples; sets ``n_features_in_``."""
    from popf.forest.metrics import choose_metric

    check_neighbors(estimator)
    metric = choose_metric(estimator.metric, estimator.metric_params)
    resources = resources_of(estimator)
    samples: FloatArray = validate_data(
        estimator, to_host(X), dtype=np.float64, order="C", ensure_min_samples=2
    )
    if metric.precomputed:
        samples = check_precomputed(samples)
    return UnlabelledSamples(samples, metric, resources)


def check_neighbors(estimator: Any) -> None:
    """Raise ValueError unless `n_neighbors` is "auto" or a number, and `max_neighbors` is a number."""
    for name in ("n_neighbors", "max_neighbors"):
        value = getattr(estimator, name)
        if isinstance(value, str) and value == "auto" and name == "n_neighbors":
            continue
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            wanted = "'auto' or a whole number" if name == "n_neighbors" else "a whole number"
            raise ValueError(f"`{name}` must be {wanted} from 1 on, not {value!r}.")


def given_neighbors(estimator: Any) -> int | None:
    """Give `n_neighbors`, None if it is to be chosen."""
    return None if estimator.n_neighbors == "auto" else int(estimator.n_neighbors)


def check_at_least(name: str, value: Any, low: float, strictly: bool = False) -> float:
    """Raise ValueError unless a parameter is a finite number from `low` on."""
    real = isinstance(value, Real) and not isinstance(value, bool)
    if not (real and low <= float(value) < np.inf and not (strictly and float(value) == low)):
        wanted = f"a number greater than {low:g}" if strictly else f"a number from {low:g} on"
        raise ValueError(f"`{name}` must be {wanted}, not {value!r}.")
    return float(value)
