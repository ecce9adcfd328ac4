"""The pool of all parts: its fit, the trust in it, and explanations of probabilities."""

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from popf.engine.structures import FloatArray, IntArray
from popf.probability.softmax import (
    Designs,
    Labels,
    Penalty,
    centered,
    fit_softmax,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas

    from popf.engine.structures import Resources
    from popf.forest.optimum_path_forest import OptimumPathForest
    from popf.probability.boosting import BoostedTrees
    from popf.probability.features import Preparation, Scaling
    from popf.probability.regressions import AdditiveEvidence
    from popf.probability.soft_competition import ForestScaling, SoftCompetition

FOREST = "forest"
PARTS = (FOREST, "linear", "spline", "pairs", "trees")

#: Ridge that shrinks the weights towards shares proportional to exp(-n loss / TEMPERATURE).
RIDGE = 40.0
TEMPERATURE = 8.0
#: Gain in log likelihood at which the trust is 1/2: with many parts, and what is added with a single one.
GAIN_WITH_MANY_PARTS, EXTRA_GAIN_WITH_ONE = 2.75, 1.0
#: Lower bound of a gain, because a part that fails says little about the others.
MIN_GAIN = -5.0


class Pool(NamedTuple):
    """Non-negative weights of the parts, and biases of the classes."""

    weights: FloatArray
    biases: FloatArray

    def exponents(self, parts: FloatArray) -> FloatArray:
        """Pool the logits of the parts: (n_rows, n_classes) from (n_parts, n_rows, n_classes)."""
        return np.tensordot(self.weights, parts, axes=1) + self.biases


def fit_pool(parts: FloatArray, labels: Labels, smoothing: float) -> Pool:
    """Fit weights and biases to held-out logits of several parts: (n_parts, n_rows, n_classes).

    A ridge shrinks the weights towards shares proportional to :math:`e^{-n L_j / 8}`, where :math:`L_j` is the
    log loss of part j and n the weight of all samples.
    """
    n_parts, _, n_classes = parts.shape
    targets, weights = labels.targets(smoothing), labels.weights
    losses = np.array([labels.log_loss(part) for part in parts])
    shares = np.exp(-(losses - losses.min()) * weights.sum() / TEMPERATURE)
    shares /= shares.sum()
    free = np.arange(n_parts)
    while True:
        n_free = len(free)
        strength = np.append(np.full(n_free, RIDGE), np.zeros(n_classes - 1))
        center = np.append(shares[free], np.zeros(n_classes - 1))
        theta = fit_softmax(
            Designs(parts[None, free]), targets, weights, Penalty(strength, center)
        )[0]
        if (theta[:n_free] >= 0.0).all():
            break
        free = free[theta[:n_free] >= 0.0]  # negative weights become 0
    found = np.zeros(n_parts)
    found[free] = theta[:n_free]
    return Pool(found, np.append(0.0, theta[n_free:]))


def trust_in(losses: "Mapping[str, float]", weights: FloatArray) -> float:
    r"""Compute the trust in the pool, from 0 (use the class frequencies) to 1 (use the pool).

    `losses` are mean log losses on held-out samples with some `weights`: of each part, of the "pool" and of the
    "prior". The gain of a part is its log likelihood of all samples, minus that of the prior. With the mean
    gain G of the m parts and the pool, where no gain counts less than -5, the trust is

    .. math:: 1 / (1 + e^{(g - G) / 2}), \quad g = 2.75 + 1 / m.

    This is the posterior probability that the evidence is real, with the log likelihood halved, because parts
    that learn from the same samples also agree by chance. The fewer the parts, the larger the gain must be.
    """
    n_samples = max(float(weights.sum()), len(weights))  # as if the mean weight were at least 1
    gains = [
        n_samples * (losses["prior"] - loss) for name, loss in losses.items() if name != "prior"
    ]
    even = GAIN_WITH_MANY_PARTS + EXTRA_GAIN_WITH_ONE / (len(gains) - 1)
    return float(expit((np.maximum(gains, MIN_GAIN).mean() - even) / 2.0))


class HeldOut(NamedTuple):
    """Scores on held-out samples: of each part by name, of the "pool" and of the "prior"."""

    losses: dict[str, float]
    accuracies: dict[str, float]
    aucs: dict[str, float]
    map_losses: dict[str, float]  # of the forest with each map, and one bandwidth for all classes

    def after(self, before: "HeldOut") -> "HeldOut":
        """Add earlier scores from fewer samples: those of the maps, and of parts left out since."""
        losses, accuracies, aucs, _ = (
            {**old, **new} for old, new in zip(before, self, strict=True)
        )
        return HeldOut(losses, accuracies, aucs, before.map_losses)


@dataclass
class Evidence:
    """Everything besides the forest itself that turns a sample into logits of the classes."""

    preparation: "Preparation"  # scaling and map of the features for the forest
    nodes: IntArray  # samples of the forest that compete, each on behalf of all samples equal to it
    node_weights: FloatArray
    bandwidths: FloatArray  # of the classes
    forest_scaling: "ForestScaling"
    scaling: "Scaling | None"  # of the features, for regressions and trees
    on_features: "dict[str, AdditiveEvidence | BoostedTrees]"
    pool: Pool
    trust: float  # from 0, for the class frequencies alone, to 1
    prior: FloatArray  # logits of the class frequencies
    held_out: HeldOut
    competition: "SoftCompetition | None" = None  # created from the forest on first use

    def exponents(
        self, new: FloatArray, forest: "OptimumPathForest", resources: "Resources"
    ) -> FloatArray:
        """Compute the logits of the classes, whose softmax gives the probabilities."""
        if not self.asks_forest:
            return self.combine(new, None)
        if self.competition is None:
            from popf.probability.soft_competition import competition_of

            self.competition = competition_of(forest, self.nodes, self.node_weights)
        prepared = self.preparation.apply(new)
        scores = self.competition.scores(prepared, self.distinct_bandwidths, resources)
        return self.combine(new, scores)

    @property
    def weights_by_name(self) -> dict[str, float]:
        """The weight of each part in the pool, 0 for parts that were tried but not used."""
        own = dict(zip((FOREST, *self.on_features), self.pool.weights.tolist(), strict=True))
        tried = [name for name in PARTS if name in self.held_out.losses] or own
        return {name: own.get(name, 0.0) for name in tried}

    @property
    def pairs(self) -> IntArray:
        """Pairs of features whose products are in the pool: (n_pairs, 2)."""
        found: Any = self.on_features.get("pairs")
        return np.unique(found.basis.pairs, axis=0) if found else np.empty((0, 2), np.int64)

    @property
    def prior_weight(self) -> float:
        """The weight of the class frequencies in the logits."""
        return 1.0 - self.trust

    @property
    def asks_forest(self) -> bool:
        """Whether the forest contributes to the probabilities."""
        return bool(self.forest_scaling.slopes.any() and self.pool.weights[0] > 0.0)

    @property
    def distinct_bandwidths(self) -> FloatArray:
        """The bandwidths at which scores are needed: (n_distinct, 1)."""
        return np.unique(self.bandwidths)[:, None]

    def combine(self, new: FloatArray, scores: FloatArray | None) -> FloatArray:
        """Pool the forest's scores at the distinct bandwidths with regressions and trees.

        `scores` are None if the forest does not contribute.
        """
        scaling = self.forest_scaling
        parts = [np.tile(scaling.biases, (len(new), 1))]
        if scores is not None:
            which = np.searchsorted(np.unique(self.bandwidths), self.bandwidths)
            parts = [scaling.exponents(scores[:, np.arange(len(which)), which])]
        if self.scaling is not None:
            scaled = self.scaling.apply(new)
            parts += [part.exponents(scaled) for part in self.on_features.values()]
        pooled = self.pool.exponents(centered(np.stack(parts)))
        return self.trust * pooled + (1.0 - self.trust) * self.prior

    def explain(
        self, new: FloatArray, total: FloatArray, classes: NDArray[Any], names: Any = None
    ) -> "ProbabilityExplanation":
        """Split logits; the forest's contribution is the total minus the constant and the features."""
        prior: Any = self.trust * self.pool.biases + (1.0 - self.trust) * self.prior
        features = np.zeros((*new.shape, len(classes)))
        if self.scaling is not None:
            scaled = self.scaling.apply(new)
            for weight, part in zip(self.pool.weights[1:], self.on_features.values(), strict=True):
                features += weight * part.shares(scaled)
        features = centered(self.trust * features)
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
        names = [str(name) for name in names]
        return ProbabilityExplanation(prior, forest, features, total, classes, names)


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


def _from_evidence(path: str, doc: str) -> Any:
    """Create a property for a fitted attribute that is stored in the evidence, at the dotted `path`."""

    def get(self: "EvidenceAttributes") -> Any:
        evidence = self.__dict__.get("_evidence")
        if evidence is None:
            raise AttributeError("only available after fit with method='pooled' or 'forest'.")
        return attrgetter(path)(evidence)

    return property(get, doc=doc)


class EvidenceAttributes:
    """Fitted attributes that are read from an estimator's evidence; the paper's method has none."""

    _evidence: Evidence | None

    pool_weights_ = _from_evidence("weights_by_name", "The weight of each part in the pool.")
    interactions_ = _from_evidence("pairs", "Pairs of features whose products are in the pool.")
    bandwidths_ = _from_evidence("bandwidths", "The bandwidth of each class.")
    slopes_ = _from_evidence("forest_scaling.slopes", "Slopes of the forest.")
    biases_ = _from_evidence("forest_scaling.biases", "Biases of the forest.")
    prior_weight_ = _from_evidence("prior_weight", "The weight of the class frequencies.")
    linear_map_ = _from_evidence("preparation.linear_map", "The fitted map, None for none.")
    linear_map_losses_ = _from_evidence("held_out.map_losses", "The loss of the forest by map.")
    held_out_losses_ = _from_evidence("held_out.losses", "The held-out log loss of each part.")
    held_out_accuracies_ = _from_evidence("held_out.accuracies", "The accuracy of each part.")
    held_out_aucs_ = _from_evidence("held_out.aucs", "The area under the ROC curve of each part.")
