"""The pool: a weighted sum of the logits of all components, and the confidence in it."""

from collections.abc import Mapping
from typing import Annotated, NamedTuple

import numpy as np
from scipy.special import expit

from popf.engine.structures import FloatArray, IntArray, Resources
from popf.forest.optimum_path_forest import OptimumPathForest
from popf.probability.additive import AdditiveModel
from popf.probability.forest_component import ForestModel, SoftCompetition, prepare
from popf.probability.logits import Coefficient, Labels, fit_softmax
from popf.probability.scaler import FeatureScaler
from popf.probability.trees import BoostedTrees
from popf.state import Float, Integer, Sizes, StateError

FOREST, POOL, PRIOR = "forest", "pool", "prior"
#: Ridge that shrinks the weights towards shares proportional to exp(-n loss / TEMPERATURE). A ridge of 10 costs
#: 0.4 %, 160 nothing; temperatures of 2 and 32 cost 0.9 and 0.8 %.
RIDGE, TEMPERATURE = 40.0, 8.0
#: Gain in log likelihood at which the confidence is 1/2, so that noise gets the class frequencies: with many
#: components (1 saves 0.1 % on tables, 6 costs 0.3 %), and what one alone needs more. Without that, the forest
#: alone is trusted on noise by chance.
GAIN_WITH_MANY, EXTRA_GAIN_WITH_ONE = 2.75, 1.0
#: Values per block of rows for which logits are computed, and minimum number of rows: enough for many threads.
BLOCK_VALUES, MIN_ROWS = 1 << 18, 512
#: Minimum number of rows for a device, whose threads would have too little to do with fewer.
DEVICE_ROWS = 1 << 13

_Loss = Annotated[float, Float(low=0.0)]


def fit_weights(logits: FloatArray, labels: Labels) -> tuple[FloatArray, FloatArray]:
    """Fit the weights of components and biases of classes: logits are (n_components, n_rows, n_classes).

    Weights are not negative. A ridge shrinks them towards shares proportional to :math:`e^{-n L_j / 8}`, where
    :math:`L_j` is the log loss of component j and n the weight of all samples.
    """
    losses = np.array([labels.log_loss(own) for own in logits])
    shares = np.exp(-(losses - losses.min()) * labels.weights.sum() / TEMPERATURE)
    shares /= shares.sum()
    start = shares, np.zeros(labels.n_classes)
    return fit_softmax(logits, labels, start, RIDGE, shares)


def confidence_in(losses: Mapping[str, float], n_samples: float) -> float:
    r"""Compute the confidence in the pool, from 0 (use the class frequencies) to 1 (use the pool).

    The gain of a component is its log likelihood of all held-out samples, minus that of the class frequencies.
    With the mean gain G of the m components and the pool, it is :math:`1 / (1 + e^{(g - G) / 2})`, where
    :math:`g = 2.75 + 1 / m`: the posterior probability that there is something to learn, with the log
    likelihood halved, because components that learn from the same samples also agree by chance.
    """
    gains = [n_samples * (losses[PRIOR] - loss) for name, loss in losses.items() if name != PRIOR]
    even = GAIN_WITH_MANY + EXTRA_GAIN_WITH_ONE / (len(gains) - 1)
    return float(expit((np.mean(gains) - even) / 2.0))


class Scores(NamedTuple):
    """Scores on held-out samples: of each component by name, of the "pool" and of the "prior"."""

    losses: dict[str, _Loss]
    accuracies: dict[str, Annotated[float, Float(low=0.0, high=1.0)]]
    aucs: dict[str, Annotated[float, Float(low=0.0, high=1.0 + 1e-9)]]

    def check_state(self, sizes: Sizes) -> None:
        """Check the names; see `popf.state`."""
        for name in ("accuracies", "aucs"):
            if list(getattr(self, name)) != list(self.losses):
                raise StateError("a dict with the names of the losses", name)


class FittedPool(NamedTuple):
    """Everything besides the forest itself that turns a sample into logits of the classes."""

    #: Canonical class k is the given class classes[k].
    classes: Annotated[IntArray, Integer("n_classes", of="n_classes")]
    map_name: str
    #: None if only a forest on features as given is used.
    scaler: FeatureScaler | None
    forest: ForestModel
    components: dict[str, AdditiveModel | BoostedTrees]
    #: Of the forest and the components.
    weights: Annotated[FloatArray, Coefficient("n_pooled", low=0.0)]
    biases: Annotated[FloatArray, Coefficient("n_classes")]
    #: From 0, for the class frequencies alone, to 1.
    confidence: Annotated[float, Float(low=0.0, high=1.0)]
    #: Logits of the class frequencies.
    prior: Annotated[FloatArray, Float("n_classes", low=-1e3, high=0.0)]
    scores: Scores
    #: Held-out log loss of the forest with each map, at its best bandwidth.
    map_losses: dict[str, _Loss]

    def check_state(self, sizes: Sizes) -> None:
        """Check the classes, the components and the scaling that they need; see `popf.state`."""
        if (np.sort(self.classes) != np.arange(len(self.classes))).any():
            raise StateError("a permutation", "classes")
        if not set(self.components) <= set(self.scores.losses) - {FOREST, POOL, PRIOR}:
            raise StateError("components with scores", "components")
        if len(self.weights) != 1 + len(self.components):
            raise StateError("the weights of the forest and of every component", "weights")
        if self.scaler is None and (self.components or self.forest.matrix is not None):
            raise StateError("the scaling of the features", "scaler")

    @property
    def uses_forest(self) -> bool:
        """Whether the forest contributes to the probabilities."""
        return bool(self.forest.slopes.any() and self.weights[0] > 0.0)

    @property
    def weights_by_name(self) -> dict[str, float]:
        """The weight of each component in the pool, 0 for those that were tried but not used."""
        own = dict(zip((FOREST, *self.components), self.weights.tolist(), strict=True))
        tried = [name for name in self.scores.losses if name not in (POOL, PRIOR)] or own
        return {name: own.get(name, 0.0) for name in tried}

    @property
    def prior_weight(self) -> float:
        """The weight of the class frequencies in the logits."""
        return 1.0 - self.confidence

    @property
    def pairs(self) -> IntArray:
        """Pairs of features whose products are in the pool: (n_pairs, 2)."""
        additive = self.components.get("additive")
        if self.scaler is None or not isinstance(additive, AdditiveModel):
            return np.empty((0, 2), np.int64)
        return np.unique(np.sort(self.scaler.columns[additive.basis.pairs]), axis=0)

    def competition(self, forest: OptimumPathForest) -> SoftCompetition | None:
        """Create the soft competition of the forest's nodes, if the forest is used."""
        return self.forest.competition(forest) if self.uses_forest else None

    def prepare(self, new: FloatArray) -> FloatArray:
        """Scale and map samples for the forest."""
        return prepare(self.scaler, self.forest.matrix, new)

    def logits(
        self, new: FloatArray, competition: SoftCompetition | None, resources: Resources
    ) -> FloatArray:
        """Compute the logits of the given classes; `competition` may be None if the forest is not used.

        Rows are computed in blocks, which bounds the memory and changes no bit of the result.
        """
        found = np.empty((len(new), len(self.classes)))
        taus = np.array([self.forest.bandwidth])
        least = DEVICE_ROWS if competition is not None and competition.on_device else MIN_ROWS
        n_rows = max(least, BLOCK_VALUES // new.shape[1])
        for start in range(0, len(new), n_rows):
            rows, scores = new[start : start + n_rows], None
            if competition is not None and self.uses_forest:
                scores = competition.scores(self.prepare(rows), taus, resources)[:, :, 0]
            found[start : start + n_rows] = self.combine(rows, scores)
        return found

    def combine(self, new: FloatArray, scores: FloatArray | None) -> FloatArray:
        """Pool the scores of the forest with the components."""
        pooled = self.weights[0] * self.forest.logits(scores, len(new)) + self.biases
        if self.scaler is not None and self.components:
            scaled = self.scaler.apply(new)
            for weight, component in zip(self.weights[1:], self.components.values(), strict=True):
                pooled += weight * component.logits(scaled)
        pooled = self.confidence * pooled + (1.0 - self.confidence) * self.prior
        found: FloatArray = pooled[:, np.argsort(self.classes)]
        return found
