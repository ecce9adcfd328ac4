"""Base class of the density estimators: checks, growing the forest, and claiming new samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from popf.engine.structures import FloatArray, IntArray
from popf.forest.validation import (
    check_precomputed,
    resources_of,
    set_metric_tags,
    to_host,
    validate_new,
)
from popf.formatting import check_integer
from popf.state import Part, StateMixin

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from popf.density.forest import Claims, DensityForest, Grown
    from popf.forest.metrics import Metric


class DensityEstimator(StateMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator whose ``forest_`` is a `DensityForest`."""

    forest_: Annotated[DensityForest, Part("popf.density.forest.DensityForest")]

    @property
    def n_neighbors_(self) -> int:
        """The number of neighbours that was used."""
        check_is_fitted(self)
        return self.forest_.n_neighbors

    @property
    def density_(self) -> FloatArray:
        """The density of every training sample."""
        check_is_fitted(self)
        return self.forest_.paths.density[self.forest_.node_of]

    @property
    def roots_(self) -> IntArray:
        """The root of every training sample, where its path starts."""
        check_is_fitted(self)
        return self.forest_.rows[self.forest_.paths.roots[self.forest_.node_of]]

    def check_parameters(self) -> None:
        """Check the parameters common to all estimators; see `popf.state`."""
        self._chosen_metric()
        if not (isinstance(self.n_neighbors, str) and self.n_neighbors == "auto"):
            check_integer("`n_neighbors`", self.n_neighbors, 1, ", or 'auto'")
        check_integer("`max_neighbors`", self.max_neighbors, 1)
        resources_of(self)

    def _begin(self) -> Metric:
        """Discard an earlier fit, in case this one fails, check the parameters, and return the metric."""
        self.__dict__.pop("forest_", None)
        self.check_parameters()
        return self._chosen_metric()

    def _chosen_metric(self) -> Metric:
        from popf.forest.metrics import choose_metric

        return choose_metric(self.metric, self.metric_params)

    def _cluster(self, X: ArrayLike, metric: Metric, **removal: float) -> Grown:
        """Check unlabelled samples and grow their forest."""
        samples = validate_data(self, to_host(X), dtype=np.float64, order="C", ensure_min_samples=2)
        return self._grow(samples, None, metric, **removal)

    def _grow(
        self, samples: FloatArray, codes: IntArray | None, metric: Metric, **removal: float
    ) -> Grown:
        from popf.density.forest import Removal, grow_forest

        return grow_forest(
            check_precomputed(samples) if metric.precomputed else samples,
            codes,
            metric,
            None if self.n_neighbors == "auto" else int(self.n_neighbors),
            int(self.max_neighbors),
            Removal(**removal),
            resources_of(self),
        )

    def _claim(self, X: ArrayLike) -> Claims:
        """Check new samples and find the nodes that claim them."""
        check_is_fitted(self)
        new = validate_new(self, X, self.forest_.metric, np.arange(len(self.forest_.node_of)))
        return self.forest_.claim(new, resources_of(self))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "forest_")

    def __sklearn_tags__(self) -> Tags:
        return set_metric_tags(super().__sklearn_tags__(), self.metric)
