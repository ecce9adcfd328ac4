"""Explanations of probabilities: log odds as a sum over the forest and the features."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from popf.engine.structures import FloatArray, IntArray
from popf.forest.probabilities import log_odds
from popf.probability.logits import centered

if TYPE_CHECKING:
    import pandas

    from popf.probability.pool import FittedPool


@dataclass(frozen=True, eq=False)
class ProbabilityExplanation:
    """Log odds as a sum: ``total = prior + forest + features.sum(axis=1)``.

    For two classes all are log odds of ``classes[1]``. For more, every array has a last axis over the classes,
    and the softmax of the total gives the probabilities.

    Attributes
    ----------
    prior : float or ndarray of shape (n_classes,)
        The constant: the class frequencies, and the means of all contributions.
    forest : ndarray of shape (n_samples,) or (n_samples, n_classes)
        The contribution of the forest.
    features : ndarray of shape (n_samples, n_features) or (n_samples, n_features, n_classes)
        The contribution of each feature, through regressions and trees.
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

    def by_column(self, owners: IntArray, names: list[str]) -> "ProbabilityExplanation":
        """Sum the contributions of features by the columns that they come from, which have the `names`."""
        shape = self.features.shape
        found = np.zeros((shape[0], len(names), *shape[2:]))
        for position, owner in enumerate(owners.tolist()):
            found[:, owner] += self.features[:, position]
        return replace(self, features=found, feature_names=names)

    def importances(self) -> dict[str, float]:
        """Return the mean absolute contribution of every feature, and of the ``"forest"``, largest first.

        The forest's is that of all features together. With more than two classes, means are also over these.
        """
        terms = np.concatenate([self.forest[:, None], self.features], axis=1)
        means = np.abs(terms).mean(axis=(0, *range(2, terms.ndim)))
        found = dict(zip(["forest", *self.feature_names], means.tolist(), strict=True))
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a table with one row per sample: prior, forest, one column for each feature, and total.

        For more than two classes, there is one row for each sample and class.
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


def explain(
    pool: "FittedPool", new: FloatArray, total: FloatArray, classes: NDArray[Any]
) -> ProbabilityExplanation:
    """Split the logits `total`; the forest's part is what the constant and the features leave."""
    prior, features = pool.biases.copy(), np.zeros((*new.shape, len(classes)))
    if pool.scaler is not None:
        scaled = pool.scaler.apply(new)
        for weight, component in zip(pool.weights[1:], pool.components.values(), strict=True):
            prior += weight * component.intercepts
            features[:, pool.scaler.columns] += weight * component.contributions(scaled)
    prior = pool.confidence * prior + (1.0 - pool.confidence) * pool.prior
    given = np.argsort(pool.classes)
    prior, features = prior[given], pool.confidence * features[..., given]
    prior, features, total = (log_odds(centered(values)) for values in (prior, features, total))
    forest = total - prior - features.sum(axis=1)
    names = [f"x{number}" for number in range(features.shape[1])]
    constant = float(prior) if len(classes) == 2 else prior
    return ProbabilityExplanation(constant, forest, features, total, classes, names)
