"""What the estimators on densities share: claims of new samples, and their state."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from popf.forest.state import Fields, read_features
from popf.forest.validation import resources_of, set_metric_tags, validate_new

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from popf.density.forest import Claims, DensityForest

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class DensityEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose ``forest_`` is a `DensityForest`."""

    forest_: "DensityForest"

    @property
    def n_neighbors_(self) -> int:
        """The number of neighbours that was used."""
        check_is_fitted(self)
        return self.forest_.n_neighbors

    @property
    def density_(self) -> FloatArray:
        """The density of every training sample."""
        check_is_fitted(self)
        return self.forest_.scaled(self.forest_.paths.raw)[self.forest_.node_of]

    @property
    def roots_(self) -> IntArray:
        """The sample at which the path of every training sample begins."""
        check_is_fitted(self)
        return self.forest_.rows[self.forest_.paths.roots[self.forest_.node_of]]

    def _claim(self, X: ArrayLike) -> "Claims":
        """Check new samples, and find who claims them."""
        check_is_fitted(self)
        new = validate_new(self, X, self.forest_.metric, np.arange(len(self.forest_.node_of)))
        return self.forest_.claim(new, resources_of(self))

    def _read_fitted(self, fields: Fields, forest: "DensityForest") -> dict[str, Any]:
        """Read what was fitted beside the forest."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "forest_" in state:
            state["forest_"] = self.forest_.to_arrays()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "forest_" in state:
            from popf.density.forest import DensityForest

            fields = Fields(state, type(self).__name__)
            forest = DensityForest.from_arrays(
                fields.fields("forest_"), read_features(fields)["n_features_in_"]
            )
            state = {**state, **read_features(fields), **self._read_fitted(fields, forest)}
            state["forest_"] = forest
        super().__setstate__(state)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "forest_")

    def __sklearn_tags__(self) -> "Tags":
        return set_metric_tags(super().__sklearn_tags__(), self.metric)
