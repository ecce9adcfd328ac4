"""Where a probability comes from: the class frequencies, the forest, and each feature."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ProbabilityExplanation:
    """Log odds as a sum: ``total = prior + forest + features.sum(axis=1)``.

    For two classes all are log odds of ``classes[1]``. For more, every array has a last axis over the classes,
    and the softmax of the total are the probabilities.

    Attributes
    ----------
    prior : float or ndarray of shape (n_classes,)
        What is known before the sample is looked at: the class frequencies, and the mean of all that follows.
    forest : ndarray of shape (n_samples,) or (n_samples, n_classes)
        What the forest adds.
    features : ndarray of shape (n_samples, n_features) or (n_samples, n_features, n_classes)
        What each feature adds, by the additive part.
    total : ndarray of shape (n_samples,) or (n_samples, n_classes)
    classes : ndarray of shape (n_classes,)
    feature_names : list of str
    """

    prior: Any
    forest: FloatArray
    features: FloatArray
    total: FloatArray
    classes: NDArray[Any]
    feature_names: list[str]

    @classmethod
    def from_exponents(
        cls,
        prior: Any,
        features: FloatArray,
        total: FloatArray,
        classes: NDArray[Any],
        names: Any = None,
    ) -> "ProbabilityExplanation":
        """Make the split from exponents of all classes; the forest gets what is left."""
        if len(classes) == 2:
            prior, features, total = (
                values[..., 1] - values[..., 0] for values in (prior, features, total)
            )
            prior = float(prior)
        else:
            prior, total = prior - prior.mean(), total - total.mean(axis=1, keepdims=True)
        forest = total - prior - features.sum(axis=1)
        if names is None:
            names = [f"x{number}" for number in range(features.shape[1])]
        return cls(prior, forest, features, total, classes, [str(name) for name in names])

    def to_pandas(self) -> "pandas.DataFrame":
        """Make a table with one row a sample: prior, forest, one column for each feature, and total.

        For more than two classes, one row for each sample and class.
        """
        import pandas

        columns = ["prior", "forest", *self.feature_names, "total"]
        if len(self.classes) == 2:
            prior = np.full(len(self.total), self.prior)
            values = np.column_stack([prior, self.forest, self.features, self.total])
            return pandas.DataFrame(values, columns=columns)
        n_samples, n_classes = self.total.shape
        prior = np.tile(self.prior, (n_samples, 1))[..., None]
        by_class = np.swapaxes(self.features, 1, 2)
        values = np.concatenate(
            [prior, self.forest[..., None], by_class, self.total[..., None]], axis=2
        )
        index = pandas.MultiIndex.from_product(
            [range(n_samples), self.classes], names=["sample", "class"]
        )
        return pandas.DataFrame(values.reshape(n_samples * n_classes, -1), index, columns)
