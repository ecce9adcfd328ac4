"""Fitted evidence: what the forest and the additive parts say of a new sample, and how it is pooled."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from popf.probability.additive import AdditiveEvidence
from popf.probability.bandwidths import ForestScaling
from popf.probability.features import Preparation, Scaling
from popf.probability.pooling import Pool
from popf.probability.softmax import centered

if TYPE_CHECKING:
    from popf.engine.backends import Resources
    from popf.forest.optimum_path_forest import OptimumPathForest
    from popf.probability.soft_competition import SoftCompetition

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FOREST = "forest"
PARTS = (FOREST, "linear", "spline")


@dataclass
class Evidence:
    """All that turns a sample into exponents of the classes, besides the forest itself."""

    preparation: Preparation  # what happens to features before the forest sees them
    nodes: IntArray  # samples of the forest that compete, each for those that equal it
    node_weights: FloatArray
    bandwidths: FloatArray  # of the classes
    forest_scaling: ForestScaling
    scaling: Scaling | None  # of the features, for the additive parts
    additive: dict[str, AdditiveEvidence]
    pool: Pool
    trust: float  # from 0, where the class frequencies are the answer, to 1
    prior: FloatArray  # exponents of the class frequencies
    competition: "SoftCompetition | None" = None  # made from the forest on first use

    def exponents(
        self, new: FloatArray, forest: "OptimumPathForest", resources: "Resources"
    ) -> FloatArray:
        """Exponents of the classes, whose softmax are the probabilities."""
        if not self.asks_forest:
            return self.combine(new, None)
        competition, prepared = self._competition_of(forest), self.preparation.apply(new)
        return self.combine(new, competition.scores(prepared, self.distinct_bandwidths, resources))

    @property
    def asks_forest(self) -> bool:
        """Whether the forest has a say at all."""
        return bool(self.forest_scaling.slopes.any() and self.pool.weights[0] > 0.0)

    @property
    def distinct_bandwidths(self) -> FloatArray:
        """The bandwidths at which scores are needed: (n_distinct, 1)."""
        return np.unique(self.bandwidths)[:, None]

    def combine(self, new: FloatArray, scores: FloatArray | None) -> FloatArray:
        """Pool scores of the forest, at the distinct bandwidths, with what the features say."""
        scaling = self.forest_scaling
        parts = [np.tile(scaling.biases, (len(new), 1))]
        if scores is not None:
            which = np.searchsorted(np.unique(self.bandwidths), self.bandwidths)
            parts = [scaling.exponents(scores[:, np.arange(len(which)), which])]
        if self.scaling is not None:
            scaled = self.scaling.apply(new)
            parts += [part.exponents(scaled) for part in self.additive.values()]
        pooled = self.pool.exponents(centered(np.stack(parts)))
        exponents: FloatArray = self.trust * pooled + (1.0 - self.trust) * self.prior
        return exponents

    @property
    def base(self) -> FloatArray:
        """Exponents of a sample for which the forest and all features are as on average."""
        return self.trust * self.pool.biases + (1.0 - self.trust) * self.prior

    def feature_shares(self, new: FloatArray) -> FloatArray:
        """Split what the additive parts say by features: (n_samples, n_features, n_classes)."""
        shares = np.zeros((*new.shape, len(self.prior)))
        if self.scaling is not None:
            scaled = self.scaling.apply(new)
            weights = self.pool.weights[1:]
            for weight, part in zip(weights, self.additive.values(), strict=True):
                shares += weight * part.shares(scaled)
        return centered(self.trust * shares)

    def _competition_of(self, forest: "OptimumPathForest") -> "SoftCompetition":
        if self.competition is None:
            from popf.probability.soft_competition import competition_of

            samples = forest.samples
            nodes = np.empty((len(self.nodes), 0)) if samples is None else samples[self.nodes]
            self.competition = competition_of(forest, nodes, self.node_weights, self.nodes)
        return self.competition


class EvidenceAttributes:
    """Fitted attributes of an estimator that follow from its evidence; the paper's method has none."""

    _evidence: Evidence | None

    def _fitted_evidence(self) -> Evidence:
        evidence: Evidence | None = self.__dict__.get("_evidence")
        if evidence is None:
            raise AttributeError("this is there after a fit by method='pooled' or 'forest'.")
        return evidence

    @property
    def pool_weights_(self) -> dict[str, float]:
        """The weight of each part in the pool."""
        evidence = self._fitted_evidence()
        return dict(zip((FOREST, *evidence.additive), evidence.pool.weights.tolist(), strict=True))

    @property
    def bandwidths_(self) -> FloatArray:
        """The bandwidth of each class."""
        return self._fitted_evidence().bandwidths

    @property
    def slopes_(self) -> FloatArray:
        """Slopes of the forest."""
        return self._fitted_evidence().forest_scaling.slopes

    @property
    def biases_(self) -> FloatArray:
        """Biases of the forest."""
        return self._fitted_evidence().forest_scaling.biases

    @property
    def prior_weight_(self) -> float:
        """How far probabilities are drawn to the prior."""
        return 1.0 - self._fitted_evidence().trust

    @property
    def linear_map_(self) -> Any:
        """The fitted map, None for none."""
        return self._fitted_evidence().preparation.linear_map
