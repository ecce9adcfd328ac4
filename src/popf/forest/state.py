"""Convert fitted estimators to plain values and back, for pickle, joblib, skops, `copy` and `popf.save`.

The contract, for every estimator of popf:

- ``__getstate__`` returns a dict: every parameter under its own name and, once fitted, values under public
  names that end in an underscore. Values are C-contiguous arrays of numbers or text, numbers, text, None,
  lists, tuples and dicts of these, or other estimators that follow this contract. Anything that can be
  computed from these values is left out.
- ``__setstate__`` accepts such a dict from an untrusted source. It reads every value through `Fields`, which
  raises ValueError naming the value that is missing or wrong, and recomputes the rest; search structures are
  built on first use.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from popf.engine.structures import FloatArray, Forest, IntArray, SpanningTree, TrainingResult
from popf.forest.optimum_path_forest import OptimumPathForest

# Largest absolute value of a fitted number; it leaves room for sums and products.
LARGEST = 1e300
Shape = tuple[int | None, ...]
# Rows processed at a time, few enough to stay in the cache.
CHUNK_ROWS = 4096


class Fields:
    """Checked access to the values of a state; errors name the wrong value and the `owner` of the state."""

    def __init__(self, state: Any, owner: str) -> None:
        if not isinstance(state, Mapping):
            raise ValueError(f"the state of {owner} must be a dict, not {_shown(state)}.")
        self._state, self._owner = state, owner

    def __contains__(self, name: str) -> bool:
        return name in self._state

    def items(self) -> list[tuple[str, Any]]:
        """List names and values."""
        return list(self._state.items())

    def refuse(self, name: str, wanted: str) -> ValueError:
        """Return the error for a wrong value."""
        got = _shown(self._state[name])
        return ValueError(f"{name} of {self._owner} must be {wanted}, not {got}.")

    def value(self, name: str) -> Any:
        """Return a value unchecked."""
        if name not in self._state:
            raise ValueError(f"{self._owner} lacks {name}.")
        return self._state[name]

    def fields(self, name: str) -> "Fields":
        """Return a nested dict as `Fields`."""
        return Fields(self.value(name), f"{name} of {self._owner}")

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """Return a string that is one of `choices`."""
        value = self.value(name)
        if not (isinstance(value, str) and value in choices):
            raise self.refuse(name, f"one of {', '.join(map(repr, choices))}")
        return value

    def integer(self, name: str, low: int, high: int = 2**62) -> int:
        """Return an integer from `low` to `high`."""
        value: Any = self.value(name)
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not (whole and low <= value <= high):
            raise self.refuse(name, f"an integer from {low} to {high}")
        return int(value)

    def number(self, name: str, low: float = -LARGEST, high: float = LARGEST) -> float:
        """Return a number from `low` to `high`."""
        value: Any = self.value(name)
        real = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not (real and low <= value <= high):
            raise self.refuse(name, f"a number from {low:g} to {high:g}")
        return float(value)

    def integers(self, name: str, shape: Shape, low: int, high: int) -> IntArray:
        """Return an array of integers; None in `shape` stands for any length."""
        array = self._array(name, shape, "iu", "integers")
        if array.size and not (array.min() >= low and array.max() <= high):
            raise self.refuse(name, f"integers from {low} to {high}")
        return array.astype(np.int64, copy=False)

    def floats(
        self, name: str, shape: Shape, low: float = -np.inf, high: float = np.inf
    ) -> FloatArray:
        """Return an array of finite numbers, C-contiguous."""
        array = self._array(name, shape, "f", "numbers")
        if not (np.isfinite(array).all() and (array >= low).all() and (array <= high).all()):
            raise self.refuse(name, f"finite numbers from {low:g} to {high:g}")
        return np.ascontiguousarray(array, dtype=np.float64)

    def texts(self, name: str, shape: Shape) -> NDArray[Any]:
        """Return an array of text."""
        return self._array(name, shape, "U", "text")

    def labels(self, name: str) -> NDArray[Any]:
        """Return the labels of at least two classes."""
        array = self.value(name)
        if not (
            isinstance(array, np.ndarray)
            and array.ndim == 1
            and 2 <= len(array) == len(set(array.tolist()))
        ):
            raise self.refuse(name, "an array of at least two different labels")
        return array

    def _array(self, name: str, shape: Shape, kinds: str, what: str) -> NDArray[Any]:
        array = self.value(name)
        if not (
            isinstance(array, np.ndarray)
            and array.dtype.kind in kinds
            and array.ndim == len(shape)
            and all(wanted in (None, n) for wanted, n in zip(shape, array.shape, strict=True))
        ):
            lengths = ", ".join("any" if n is None else str(n) for n in shape)
            raise self.refuse(name, f"an array of {what} of shape ({lengths})")
        return array


def read_features(fields: Fields) -> dict[str, Any]:
    """Read ``n_features_in_`` and, if present, ``feature_names_in_``."""
    n_features = fields.integer("n_features_in_", 1)
    if "feature_names_in_" not in fields:
        return {"n_features_in_": n_features}
    names = fields.value("feature_names_in_")
    if not (
        isinstance(names, np.ndarray)
        and names.shape == (n_features,)
        and all(isinstance(name, str) for name in names)
    ):
        raise fields.refuse("feature_names_in_", f"an array of {n_features} names")
    return {"n_features_in_": n_features, "feature_names_in_": names.astype(object, copy=False)}


def forest_to_arrays(forest: OptimumPathForest) -> dict[str, Any]:
    """Return samples, classes, predecessors and the tree's edges.

    Costs and roots are recomputed from these, bit for bit, so no state can hold an inconsistent forest.
    """
    tree, metric = forest.spanning_tree, forest.metric
    index = np.int32 if len(forest) <= 2**31 else np.int64
    arrays = {
        "metric": metric.source,
        "metric_params": metric.params,
        "algorithm": forest.algorithm,
        "samples": forest.samples,
        "codes": forest.codes.astype(np.min_scalar_type(len(forest.classes))),
        "predecessors": forest.predecessors.astype(index),
        "lower": tree.lower.astype(index),
        "higher": tree.higher.astype(index),
    }
    if not metric.euclidean:
        arrays["lengths"], arrays["weights"] = forest.lengths, tree.weights
    return arrays


def forest_from_arrays(fields: Fields, classes: NDArray[Any], n_features: int) -> OptimumPathForest:
    """Check the arrays of a forest and rebuild it; its index is built on first use."""
    from popf.engine.points import scale_exponent, scaled_copy
    from popf.forest.metrics import choose_metric

    metric = choose_metric(fields.value("metric"), fields.value("metric_params"))
    algorithms = ("kd_tree", "brute", "prim") if metric.euclidean else ("prim",)
    algorithm = fields.choice("algorithm", algorithms)
    codes = fields.integers("codes", (None,), 0, len(classes) - 1)
    n = len(codes)
    if n < 2 or np.bincount(codes, minlength=len(classes)).min() == 0:
        raise fields.refuse("codes", "at least two samples, and at least one of every class")
    predecessors = fields.integers("predecessors", (n,), -1, n - 1)
    inner = predecessors >= 0
    if not (codes[predecessors] == codes)[inner].all():
        raise fields.refuse("predecessors", "samples of the same class")
    lower = fields.integers("lower", (n - 1,), 0, n - 1)
    higher = fields.integers("higher", (n - 1,), 0, n - 1)
    if not ((lower < higher).all() and _is_connected(lower, higher, n)):
        raise fields.refuse(
            "higher", "the higher ends of a tree's edges, with the others in 'lower'"
        )
    samples, exponent = None, 0
    if metric.precomputed:
        if fields.value("samples") is not None:
            raise fields.refuse("samples", "None, as the metric is precomputed")
    else:
        samples = fields.floats("samples", (n, n_features))
        metric.check(samples)
    if metric.euclidean and samples is not None:
        exponent = scale_exponent(samples)
        points = scaled_copy(samples, exponent)
        before = np.where(inner, predecessors, np.arange(n))
        lengths = _squared_distances(points, np.arange(n), before)
        weights = _squared_distances(points, lower, higher)
    else:
        lengths = np.where(inner, fields.floats("lengths", (n,), 0.0), 0.0)
        weights = fields.floats("weights", (n - 1,), 0.0)
    costs, roots = _costs_and_roots(predecessors, lengths)
    if inner[roots].any():
        raise fields.refuse("predecessors", "paths that start at a prototype")
    trained = TrainingResult(
        SpanningTree(lower, higher, weights), ~inner, Forest(costs, predecessors, lengths, roots)
    )
    return OptimumPathForest(
        metric, codes, trained, algorithm, exponent=exponent, samples=samples, classes=classes
    )


def read_rows(fields: Fields, n_samples: int, n_columns: int | None) -> IntArray:
    """Read which rows of X were used, None for all; with `n_columns`, rows also index columns of distances."""
    rows = np.arange(n_samples)
    if fields.value("sample_indices_") is not None:
        rows = fields.integers("sample_indices_", (n_samples,), 0, 2**62)
    if not (np.diff(rows) > 0).all() or (n_columns is not None and rows[-1] >= n_columns):
        raise fields.refuse("sample_indices_", "the rows that were used, in ascending order")
    return rows


def _squared_distances(points: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
    """Compute the squared distances of pairs, summed feature by feature as in the engine."""
    total = np.zeros(len(first))
    for start in range(0, len(first), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        differences = points[first[rows]] - points[second[rows]]
        for column in differences.T:
            total[rows] += column * column
    return total


def _costs_and_roots(predecessors: IntArray, lengths: FloatArray) -> tuple[FloatArray, IntArray]:
    """Find the largest edge and the root of each path by pointer doubling."""
    n = len(predecessors)
    roots = np.where(predecessors < 0, np.arange(n), predecessors)
    costs = lengths.copy()
    for _ in range(n.bit_length()):
        np.maximum(costs, costs[roots], out=costs)
        roots = roots[roots]
    return costs, roots


def _is_connected(lower: IntArray, higher: IntArray, n: int) -> bool:
    graph = coo_array((np.ones(n - 1, dtype=np.int8), (lower, higher)), shape=(n, n))
    return bool(connected_components(graph, directed=False)[0] == 1)


def _shown(value: Any) -> str:
    """Describe a value briefly for an error message."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    text = repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
    return text if len(text) <= 80 else f"{text[:80]} ..."
