"""What is stored of metrics, forests, and forests in other estimators; see `popf.state`.

A forest is stored as samples, classes, predecessors and the edges of the spanning tree. Costs and roots are
recomputed from these, bit for bit, so no state can hold an inconsistent forest. Search
structures are built on first use.
"""

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from popf.engine.structures import FloatArray, Forest, IntArray, SpanningTree
from popf.forest.optimum_path_forest import OptimumPathForest
from popf.state import Choice, Float, Integer, Sizes, Spec, StateError

if TYPE_CHECKING:
    from popf.forest.metrics import Metric

# Rows processed at a time, few enough to stay in the cache.
CHUNK_ROWS = 4096


class MetricSpec(Spec):
    """A metric, with the parameters that were estimated from the samples."""

    def write(self, value: "Metric") -> dict[str, Any]:
        """Return the name or function of the metric, and its parameters."""
        return {"source": value.source, "params": value.params}

    def read(self, value: Any, owner: str, sizes: Sizes) -> "Metric":
        """Look the metric up; the parameters of named metrics must be finite."""
        from popf.forest.metrics import choose_metric

        try:
            source, params = value["source"], value["params"]
            if isinstance(source, str):
                for each in params.values():
                    if not np.isfinite(np.asarray(each, dtype=np.float64)).all():
                        raise ValueError("parameters must be finite")
            return choose_metric(source, params)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StateError(f"a metric with its parameters ({error})") from error


class SampleIndices(Spec):
    """The rows of X that are training samples, in ascending order; stored as None if they are all."""

    def write(self, value: IntArray) -> IntArray | None:
        """Return None for all rows."""
        return None if np.array_equal(value, np.arange(len(value))) else value

    def read(self, value: Any, owner: str, sizes: Sizes) -> IntArray:
        """Check the order."""
        if value is None:
            return np.arange(sizes["n_samples"])
        rows: IntArray = Integer("n_samples").read(value, owner, sizes)
        if not (np.diff(rows) > 0).all():
            raise StateError("the rows that were used, in ascending order")
        return rows


class ForestState(NamedTuple):
    """The stored part of an `OptimumPathForest`."""

    metric: Annotated["Metric", MetricSpec()]
    algorithm: Annotated[str, Choice("kd_tree", "brute", "prim")]
    codes: Annotated[IntArray, Integer("n_samples", of="n_classes")]
    samples: Annotated[FloatArray, Float("n_samples", "n_features")] | None  # None: precomputed
    predecessors: Annotated[IntArray, Integer("n_samples", low=-1, of="n_samples")]
    lower: Annotated[IntArray, Integer("n_samples - 1", of="n_samples")]
    higher: Annotated[IntArray, Integer("n_samples - 1", of="n_samples")]
    # None if the metric is Euclidean: then they follow from the samples.
    lengths: Annotated[FloatArray, Float("n_samples", low=0.0)] | None
    weights: Annotated[FloatArray, Float("n_samples - 1", low=0.0)] | None

    @classmethod
    def of(cls, forest: OptimumPathForest) -> Self:
        """Return what is stored of a forest."""
        tree, euclidean = forest.spanning_tree, forest.metric.euclidean
        index = np.int32 if len(forest) <= 2**31 else np.int64
        return cls(
            metric=forest.metric,
            algorithm=forest.algorithm,
            codes=forest.codes.astype(np.min_scalar_type(len(forest.classes))),
            samples=forest.samples,
            predecessors=forest.predecessors.astype(index),
            lower=tree.lower.astype(index),
            higher=tree.higher.astype(index),
            lengths=None if euclidean else forest.lengths,
            weights=None if euclidean else tree.weights,
        )

    def check_state(self, sizes: Sizes) -> None:
        """Check the classes, the paths, the tree, and what the metric needs."""
        if np.bincount(self.codes, minlength=sizes["n_classes"]).min() == 0:
            raise StateError("at least one sample of every class", "codes")
        inner = self.predecessors >= 0
        if not (self.codes[self.predecessors] == self.codes)[inner].all():
            raise StateError("samples of the same class", "predecessors")
        if not _is_tree(self.lower, self.higher, len(self.codes)):
            raise StateError(
                "the higher ends of a tree's edges, with the others in 'lower'", "higher"
            )
        metric = self.metric
        if not metric.euclidean and self.algorithm != "prim":
            raise StateError("'prim', as the metric is not Euclidean", "algorithm")
        for name, absent in (
            ("samples", metric.precomputed),
            ("lengths", metric.euclidean),
            ("weights", metric.euclidean),
        ):
            if (getattr(self, name) is None) != absent:
                raise StateError(f"{'None' if absent else 'an array'} with this metric", name)
        if self.samples is not None:
            metric.check(self.samples)

    def restore(self, sizes: Sizes) -> OptimumPathForest:
        """Compute costs and roots, and return the forest; its classes are numbers."""
        from popf.engine.points import scale_exponent, scaled_copy
        from popf.engine.structures import TrainingResult

        n, exponent = len(self.codes), 0
        first = self.predecessors < 0
        before = np.where(first, np.arange(n), self.predecessors)
        lengths: Any = self.lengths
        weights: Any = self.weights
        samples: Any = self.samples
        if self.metric.euclidean:
            exponent = scale_exponent(samples)
            points = scaled_copy(samples, exponent)
            lengths = _squared_distances(points, np.arange(n), before)
            weights = _squared_distances(points, self.lower, self.higher)
        lengths = np.where(first, 0.0, lengths)
        costs, roots = _costs_and_roots(before, lengths)
        if not first[roots].all():
            raise StateError("paths that start at a prototype", "predecessors")
        trained = TrainingResult(
            SpanningTree(self.lower, self.higher, weights),
            first,
            Forest(costs, self.predecessors, lengths, roots),
        )
        return OptimumPathForest(
            self.metric, self.codes, trained, self.algorithm, exponent=exponent, samples=samples
        )


class _WithoutSamples(ForestState):
    """A forest that is checked and restored when its samples are known."""

    def check_state(self, sizes: Sizes) -> None:
        """Check nothing yet."""

    def restore(self, sizes: Sizes) -> Any:
        """Return what was stored."""
        return self


class InnerForest(NamedTuple):
    """The stored part of an `OPFClassifier` in an estimator, from whose samples the forest's follow."""

    forest: _WithoutSamples
    sample_indices: Annotated[IntArray, SampleIndices()]

    @classmethod
    def of(cls, opf: Any) -> Self:
        """Return what is stored of the `OPFClassifier`."""
        return cls(_WithoutSamples.of(opf.forest_)._replace(samples=None), opf.sample_indices_)

    def with_samples(self, samples: FloatArray | None, sizes: Sizes) -> OptimumPathForest:
        """Check and restore the forest."""
        if samples is not None:
            samples = Float("n_samples", "n_prepared").read(samples, "", sizes)
        whole = ForestState(*self.forest._replace(samples=samples))
        whole.check_state(sizes)
        return whole.restore(sizes)


def _is_tree(lower: IntArray, higher: IntArray, n: int) -> bool:
    """Return whether n - 1 edges connect all samples."""
    ends = (
        lower.astype(np.int32),
        higher.astype(np.int32),
    )  # before 1.12, SciPy takes no others here
    graph = coo_array((np.ones(n - 1, dtype=np.int8), ends), shape=(n, n))
    components = connected_components(graph, directed=False)[0]
    return bool((lower < higher).all() and components == 1)


def _squared_distances(points: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
    """Compute the squared distances of pairs, summed feature by feature as in the engine."""
    total = np.zeros(len(first))
    for start in range(0, len(first), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        differences = points[first[rows]] - points[second[rows]]
        for column in differences.T:
            total[rows] += column * column
    return total


def _costs_and_roots(before: IntArray, lengths: FloatArray) -> tuple[FloatArray, IntArray]:
    """Find the largest edge and the root of each path by pointer doubling."""
    roots, costs = before, lengths.copy()
    for _ in range(len(before).bit_length()):
        np.maximum(costs, costs[roots], out=costs)
        roots = roots[roots]
    return costs, roots
