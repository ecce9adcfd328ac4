"""Fitted evidence: what the forest and the additive parts say of a new sample, and how it is pooled."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from popf.forest.state import Fields
from popf.probability.additive import AdditiveEvidence, Basis
from popf.probability.bandwidths import ForestScaling
from popf.probability.pooling import Pool
from popf.probability.preparation import Preparation
from popf.probability.softmax import centered
from popf.probability.splines import N_KNOTS
from popf.probability.squashing import Scaling

if TYPE_CHECKING:
    from popf.engine.backends import Resources
    from popf.forest.optimum_path_forest import OptimumPathForest
    from popf.probability.soft_competition import SoftCompetition

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FOREST = "forest"
PARTS = (FOREST, "linear", "spline")
#: Slopes, biases and weights beyond this are no result of a fit.
LARGEST_SLOPE = 1e12


@dataclass
class Evidence:
    """All that turns a sample into exponents of the classes, besides the forest itself.

    Attributes
    ----------
    preparation : Preparation
        What happens to features before the forest sees them.
    nodes : ndarray of shape (n_nodes,)
        The samples of the forest that compete, each for those that equal it.
    node_weights : ndarray of shape (n_nodes,)
    bandwidths : ndarray of shape (n_classes,)
    forest_scaling : ForestScaling
    scaling : Scaling or None
        Of the features, for the additive parts.
    additive : dict of AdditiveEvidence
    pool : Pool
    trust : float
        How far the pool is trusted, from 0, where the class frequencies are the answer, to 1.
    prior : ndarray of shape (n_classes,)
        Exponents of the class frequencies.
    competition : SoftCompetition or None
        Made from the forest on first use.
    """

    preparation: Preparation
    nodes: IntArray
    node_weights: FloatArray
    bandwidths: FloatArray
    forest_scaling: ForestScaling
    scaling: Scaling | None
    additive: dict[str, AdditiveEvidence]
    pool: Pool
    trust: float
    prior: FloatArray
    competition: "SoftCompetition | None" = None

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

    def to_arrays(self) -> dict[str, Any]:
        """Give everything as plain values; see `popf.forest.state`."""
        scaling = self.forest_scaling
        return {
            "preparation": None
            if self.preparation.scaling is None
            else self.preparation.scaling._asdict(),
            "linear_map": self.preparation.linear_map,
            "nodes": self.nodes,
            "node_weights": self.node_weights,
            "bandwidths": self.bandwidths,
            "floors": scaling.floors,
            "slopes": scaling.slopes,
            "biases": scaling.biases,
            "scaling": None if self.scaling is None else self.scaling._asdict(),
            "additive": {
                name: {**part._asdict(), "basis": part.basis._asdict()}
                for name, part in self.additive.items()
            },
            "pool_weights": self.pool.weights,
            "pool_biases": self.pool.biases,
            "trust": self.trust,
            "prior": self.prior,
        }

    @classmethod
    def from_arrays(
        cls, fields: Fields, n_samples: int, n_features: int, n_classes: int
    ) -> "Evidence":
        """Check plain values of unknown origin, and make the evidence of them."""
        by_class = (n_classes,)
        nodes = fields.integers("nodes", (None,), 0, n_samples - 1)
        additive = {}
        parts = fields.fields("additive")
        for name in PARTS[1:]:
            if name in parts:
                additive[name] = _additive_from(parts.fields(name), n_features, n_classes)
        linear_map = fields.value("linear_map")
        if linear_map is not None and not hasattr(linear_map, "transform"):
            raise fields.refuse("linear_map", "a transformer")
        forest_scaling = ForestScaling(
            np.zeros(n_classes, dtype=np.int64),
            fields.floats("floors", by_class),
            fields.floats("slopes", by_class, 0.0, LARGEST_SLOPE),
            fields.floats("biases", by_class, -LARGEST_SLOPE, LARGEST_SLOPE),
            np.nan,
        )
        return cls(
            Preparation(_scaling_from(fields, "preparation", n_features), linear_map),
            nodes,
            fields.floats("node_weights", nodes.shape, 1e-100, 1e300),
            fields.floats("bandwidths", by_class, 1e-300, 1e300),
            forest_scaling,
            _scaling_from(fields, "scaling", n_features),
            additive,
            Pool(
                fields.floats("pool_weights", (1 + len(additive),), 0.0, LARGEST_SLOPE),
                fields.floats("pool_biases", by_class, -LARGEST_SLOPE, LARGEST_SLOPE),
            ),
            fields.number("trust", 0.0, 1.0),
            fields.floats("prior", by_class, -LARGEST_SLOPE, 0.0),
        )


def _scaling_from(fields: Fields, name: str, n_features: int) -> Scaling | None:
    if fields.value(name) is None:
        return None
    inside, shape = fields.fields(name), (n_features,)
    if not isinstance(inside.value("squashed"), bool | np.bool_):
        raise inside.refuse("squashed", "True or False")
    return Scaling(
        inside.floats("center", shape),
        inside.floats("scale", shape, 1e-310),
        inside.floats("mean", shape),
        inside.floats("factor", shape, 0.0),
        bool(inside.value("squashed")),
    )


def _additive_from(fields: Fields, n_features: int, n_classes: int) -> AdditiveEvidence:
    inside = fields.fields("basis")
    last = n_features - 1
    smooth = inside.integers("smooth", (None,), 0, last)
    knots = inside.floats("knots", (N_KNOTS, len(smooth)))
    if not (np.diff(knots, axis=0) > 0.0).all():
        raise inside.refuse("knots", "increasing numbers")
    low = inside.floats("low", (n_features,))
    high = inside.floats("high", (n_features,))
    if not (low <= high).all():
        raise inside.refuse("high", "not below low")
    basis = Basis(inside.integers("plain", (None,), 0, last), smooth, knots, low, high)
    n_columns = len(basis.features())
    return AdditiveEvidence(
        basis,
        fields.floats("center", (n_columns,)),
        fields.floats("coefficients", (n_classes, n_columns), -LARGEST_SLOPE, LARGEST_SLOPE),
        fields.floats("intercepts", (n_classes,), -LARGEST_SLOPE, LARGEST_SLOPE),
    )
