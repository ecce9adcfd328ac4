"""Forests and their probabilities: the least from which the rest is rebuilt exactly.

Of a forest are kept its samples, their classes, the predecessors and the edges of the spanning tree.
Costs, roots and the search structures follow from these, to the bit, by a pass over the samples; so a file
does not depend on how this version of popf lays them out, and cannot hold a forest that contradicts itself.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from popf.engine.structures import FloatArray, IntArray
from popf.forest.classifier import OPFClassifier
from popf.forest.validation import check_algorithm, n_bytes_of, n_threads_of
from popf.io.codec import Decoder, Encoder
from popf.probability.classifier import POPFClassifier

# How many rows are looked at together: their differences stay in the cache.
CHUNK_ROWS = 4096
MAX_JOBS = 4096
_NUMBERS = ("A_", "B_", "slope_", "bandwidth_")
_FOREST_STATE = frozenset(
    (
        *("n_features_in_", "feature_names_in_", "classes_", "sample_indices_"),
        *("device_", "forest_"),
    )
)
_PROBABILITY_STATE = frozenset(
    (
        *("n_features_in_", "feature_names_in_", "classes_", "opf_", "device_"),
        *("_fitted_method", "_competition", "_scaling"),
    )
)


def require(condition: Any, what: str) -> None:
    """Raise ValueError unless the condition holds."""
    if not condition:
        raise ValueError(what)


def forest_state(opf: OPFClassifier, encoder: Encoder, where: str) -> dict[str, Any]:
    """Gather what makes a fitted `OPFClassifier`, encoded."""
    refuse_unknown(opf, _FOREST_STATE, where)
    forest = opf.forest_
    metric: Any = forest.metric
    if callable(metric.source):
        raise TypeError(
            f"{where} was fitted with a function as its metric, {metric.name!r}, and a model file holds no "
            "code: use a metric that has a name, or metric='precomputed'."
        )
    n, tree = len(forest), forest.spanning_tree
    whole = np.array_equal(opf.sample_indices_, np.arange(n))
    kept: dict[str, Any] = {
        "samples": forest.samples,
        "codes": forest.codes.astype(np.min_scalar_type(len(opf.classes_))),
        "predecessors": _small(opf.predecessors_, n),
        "lower": _small(tree.lower, n),
        "higher": _small(tree.higher, n),
        "sample_indices": None if whole else opf.sample_indices_,
        "metric_params": metric.params,
    }
    if not metric.euclidean:
        kept["lengths"], kept["weights"] = forest.lengths, tree.weights
    return {
        "n_features": opf.n_features_in_,
        "algorithm": opf.algorithm_,
        "metric": metric.name,
        "classes": encoder.array(opf.classes_, f"classes_ of {where}"),
        **{name: encoder.value(value, name) for name, value in kept.items()},
    }


def restore_forest(opf: OPFClassifier, state: dict[str, Any], decoder: Decoder) -> None:
    """Make a new `OPFClassifier` a fitted one.

    Parameters
    ----------
    opf : OPFClassifier
        With its parameters.
    state : dict
        What `forest_state` gave.
    decoder : Decoder
    """
    from popf.engine.points import scale_exponent, scaled_copy
    from popf.engine.structures import Forest, SpanningTree
    from popf.engine.training import Trained
    from popf.forest.metrics import choose_metric
    from popf.forest.optimum_path_forest import OptimumPathForest

    kept = {name: decoder.value(value) for name, value in state.items()}
    require(isinstance(kept["metric"], str), "its metric has no name")
    metric = choose_metric(kept["metric"], kept["metric_params"])
    check_algorithm(opf.algorithm, choose_metric(opf.metric, opf.metric_params))
    check_means(opf)
    algorithm = kept["algorithm"]
    require(algorithm in ("kd_tree", "brute", "prim"), f"algorithm {algorithm!r}")
    require(metric.euclidean or algorithm == "prim", f"algorithm {algorithm!r}")
    codes = kept["codes"].astype(np.int64)
    n, n_features, classes = len(codes), kept["n_features"], kept["classes"]
    require(type(n_features) is int and n >= 2 and codes.ndim == 1, "its number of samples")
    require(classes.ndim == 1 and 2 <= len(classes) == len(np.unique(classes)), "its classes")
    require(_in_range(codes, len(classes)), "classes of its samples")
    require(np.bincount(codes, minlength=len(classes)).min() > 0, "a class without samples")
    predecessors = _indices(kept["predecessors"], n, -1)
    ends = _indices(kept["lower"], n - 1), _indices(kept["higher"], n - 1)
    _check_tree(*ends, n)
    require(predecessors.max() < n and predecessors.min() == -1, "its predecessors")
    require((codes[predecessors] == codes)[predecessors >= 0].all(), "paths between classes")
    samples, exponent = kept["samples"], 0
    if metric.precomputed:
        require(samples is None, "samples of a forest on distances")
    else:
        require(_is_finite(samples, (n, n_features)), "its samples")
        metric.check(samples)
    opf.n_features_in_ = n_features
    opf.sample_indices_ = _kept_rows(kept["sample_indices"], n, n_features, metric.precomputed)
    opf.classes_ = classes
    opf.device_ = "cpu"  # a GPU does not travel
    if metric.euclidean:
        exponent = scale_exponent(samples)
        points = scaled_copy(samples, exponent)
        tails = np.where(predecessors < 0, np.arange(n), predecessors)
        lengths = squared_distances(points, np.arange(n), tails)
        weights = squared_distances(points, *ends)
    else:
        lengths, weights = kept["lengths"], kept["weights"]
        for numbers, size in ((lengths, n), (weights, n - 1)):
            require(_is_float(numbers, (size,)) and (numbers >= 0.0).all(), "its lengths")
        lengths = np.where(predecessors < 0, 0.0, lengths)
    costs, roots = costs_and_roots(predecessors, lengths)
    forest = Forest(costs, predecessors, lengths, roots)
    trained = Trained(SpanningTree(*ends, weights), predecessors < 0, forest)
    opf.forest_ = OptimumPathForest(
        *(metric, codes, trained, algorithm), exponent=exponent, samples=samples, classes=classes
    )


def probability_state(model: POPFClassifier, encoder: Encoder, where: str) -> dict[str, Any]:
    """Gather what makes a fitted `POPFClassifier`, encoded."""
    left_out = {*model.get_params(deep=False), "feature_names_in_"}
    state = {name: value for name, value in model.__getstate__().items() if name not in left_out}
    state.pop("_sklearn_version", None)
    return {"state": encoder.value(state, where)}


def restore_probability(model: POPFClassifier, state: dict[str, Any], decoder: Decoder) -> None:
    """Make a new `POPFClassifier` a fitted one, as `restore_forest` does."""
    check_means(model)
    values = decoder.value(state["state"])
    require(isinstance(values, dict), "its state")
    try:
        model.__setstate__({**model.get_params(deep=False), **values})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        require(False, str(error))


def squared_distances(points: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
    """Squared distances of pairs of points, summed feature after feature as the engine does."""
    total = np.zeros(len(first))
    for start in range(0, len(first), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        differences = points[first[rows]] - points[second[rows]]
        for column in differences.T:
            total[rows] += column * column
    return total


def costs_and_roots(predecessors: IntArray, lengths: FloatArray) -> tuple[FloatArray, IntArray]:
    """Find where each path begins, and its largest edge, by paths of doubling length.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.io.forests import costs_and_roots
    >>> costs_and_roots(np.array([-1, 0, 1]), np.array([0.0, 5.0, 2.0]))
    (array([0., 5., 5.]), array([0, 0, 0]))
    """
    n = len(predecessors)
    roots = np.where(predecessors < 0, np.arange(n), predecessors)
    costs = lengths.copy()
    for _ in range(n.bit_length()):
        np.maximum(costs, costs[roots], out=costs)
        roots = roots[roots]
    require((predecessors[roots] < 0).all(), "paths that have no beginning")
    return costs, roots


# Which metadata a fit asks for does not matter to a model that is fitted.
ONLY_FOR_FITTING = frozenset(("_metadata_request",))


def check_means(model: OPFClassifier | POPFClassifier) -> None:
    """Raise ValueError if a file asks for an absurd number of threads, or amount of memory."""
    n_threads_of(model.n_jobs)
    n_bytes_of(model.working_memory)
    require(abs(model.n_jobs or 1) <= MAX_JOBS, f"n_jobs is {model.n_jobs}")


def refuse_unknown(model: Any, known: frozenset[str] | set[str], where: str) -> None:
    """Raise TypeError if the model holds something that would be lost."""
    parameters = set(model.get_params(deep=False))
    for name in sorted(set(vars(model)) - parameters - known - ONLY_FOR_FITTING):
        raise TypeError(
            f"{where}, a {type(model).__name__}, has an attribute {name!r} that popf.save does not know. "
            "Delete it if it is yours, or keep the model by pickle or skops, at your own risk."
        )


def _kept_rows(rows: Any, n: int, n_features: int, precomputed: bool) -> IntArray:
    kept = np.arange(n) if rows is None else _indices(rows, n)
    require((np.diff(kept) > 0).all(), "rows that were kept")
    if precomputed:  # columns of new samples are picked by them
        require(kept[-1] < n_features and (rows is not None or n == n_features), "rows kept")
    return kept


def _check_tree(lower: IntArray, higher: IntArray, n: int) -> None:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    require((lower < higher).all() and (higher < n).all(), "edges of its tree")
    graph = coo_array((np.ones(n - 1, dtype=np.int8), (lower, higher)), shape=(n, n))
    require(connected_components(graph, directed=False)[0] == 1, "a tree in pieces")


def _small(indices: IntArray, n: int) -> NDArray[Any]:
    return indices.astype(np.int32) if n <= 2**31 else indices


def _indices(numbers: NDArray[Any], size: int, lowest: int = 0) -> IntArray:
    require(numbers.dtype.kind == "i" and numbers.shape == (size,), "numbers of samples")
    require((numbers >= lowest).all(), "numbers of samples")
    return numbers.astype(np.int64)


def _in_range(numbers: IntArray, stop: int) -> bool:
    return bool(numbers.min() >= 0 and numbers.max() < stop)


def _is_float(array: Any, shape: tuple[int, ...]) -> bool:
    return isinstance(array, np.ndarray) and array.dtype == np.float64 and array.shape == shape


def _is_finite(array: Any, shape: tuple[int, ...]) -> bool:
    return _is_float(array, shape) and bool(np.isfinite(array).all())
