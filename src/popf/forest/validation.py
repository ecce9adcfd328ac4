"""Validation of parameters, samples, labels and weights for all estimators, and the choice of the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, _num_samples, validate_data

from popf.engine.gpu import cuda_backend
from popf.engine.structures import (
    LOW_DIMENSION,
    Backend,
    FloatArray,
    IntArray,
    Resources,
)
from popf.metrics.checks import are_missing, group_numbers

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from popf.forest.metrics import Metric

ArrayT = TypeVar("ArrayT", bound=NDArray[Any])  # NumPy, or a CuPy or PyTorch array on a GPU

ALGORITHMS = ("auto", "kd_tree", "brute", "prim")
# Allowed range of positive sample weights, in which sums and squares stay finite.
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-100, 1e100
# Allowed difference between entries [i, j] and [j, i] of a distance matrix, relative to the larger.
SYMMETRY_TOLERANCE = 1e-10
# Entries of a distance matrix checked at a time, to limit memory.
CHECKED_AT_A_TIME = 2**20
#: Functions that return the backend of each device except the CPU, or raise RuntimeError if it is unavailable.
BACKENDS: dict[str, Callable[[], Backend]] = {"cuda": cuda_backend}


@dataclass(frozen=True)
class LabelledSamples:
    """Training samples with positive weight, and their labels."""

    samples: FloatArray
    codes: IntArray  # the index of each sample's class in `classes`
    classes: NDArray[Any]
    weights: FloatArray
    rows: IntArray  # their rows in X


@dataclass(frozen=True)
class TrainingData(LabelledSamples):
    """Labelled samples, or their distances if the metric is precomputed, with metric, device and resources."""

    metric: Metric
    device: str
    resources: Resources


def validate_training(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    gaps: bool = False,
    given: Any = None,
) -> TrainingData:
    """Check the parameters of `OPFClassifier` and the data passed to `fit`.

    X may have `gaps`. If it was converted from `given`, that decides on the device.
    """
    metric, device, resources = validate_parameters(estimator, X if given is None else given)
    data = validate_samples(estimator, X, y, sample_weight, metric.precomputed, gaps)
    check_enough_classes(data.classes)
    if metric.precomputed:
        data = replace(data, samples=check_precomputed(data.samples))
    if processor_is_faster(device, estimator.algorithm, data.samples.shape[1]):
        device, resources = "cpu", resources._replace(backend=None)
    return TrainingData(**vars(data), metric=metric, device=device, resources=resources)


def validate_parameters(estimator: Any, X: Any) -> tuple[Metric, str, Resources]:
    """Check the parameters of `OPFClassifier`; return the metric, the device and the resources."""
    metric = checked_metric(estimator)
    device = choose_device(estimator.device, X, metric, estimator.algorithm)
    return metric, device, resources_of(estimator)._replace(backend=backend_for(device))


def checked_metric(estimator: Any) -> Metric:
    """Return the metric of an estimator, after checking that its algorithm supports it."""
    from popf.forest.metrics import choose_metric

    metric = choose_metric(estimator.metric, estimator.metric_params)
    check_algorithm(estimator.algorithm, metric)
    return metric


def validate_samples(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    precomputed: bool = False,
    gaps: bool = False,
) -> LabelledSamples:
    """Check samples, labels and weights; drop samples of weight 0, with their columns if `precomputed`."""
    X, y = to_host(X), to_host(y)
    if y is not None:
        check_no_label_missing(np.asarray(y))
    samples, labels = validate_data(
        estimator,
        X,
        y,
        dtype=np.float64,
        order="C",
        ensure_min_samples=2,
        ensure_all_finite="allow-nan" if gaps else True,
    )
    check_labels(labels, getattr(y, "name", None))
    if precomputed:
        check_square(samples)
    weights = _check_sample_weight(to_host(sample_weight), samples, dtype=np.float64)
    weights = np.ascontiguousarray(weights)
    check_weights(weights)
    rows = np.flatnonzero(weights)
    check_any_weight(len(rows))
    if len(rows) < len(samples):
        samples = samples[np.ix_(rows, rows)] if precomputed else samples[rows]
        labels, weights = labels[rows], weights[rows]
    classes, codes = np.unique(labels, return_inverse=True)
    return LabelledSamples(samples, codes, classes, weights, rows)


def validate_groups(groups: Any, X: Any, rows: IntArray) -> IntArray | None:
    """Check the groups of samples; return the group numbers of the given rows, or None without groups."""
    if groups is None:
        return None
    found, numbers = group_numbers(to_host(groups), _num_samples(X))
    present, numbers = np.unique(numbers[rows], return_inverse=True)
    if len(present) < 2:
        raise ValueError(
            f"groups has only one value, {found[present[0]]!s}: no group can be held out. Give at least two "
            "groups, or none."
        )
    return numbers


def validate_new(estimator: Any, X: ArrayLike, metric: Metric, rows: IntArray) -> FloatArray:
    """Check new samples; of precomputed distances, keep only the columns `rows` of the training samples."""
    new: FloatArray
    try:
        new = validate_data(estimator, to_host(X), dtype=np.float64, order="C", reset=False)
    except ValueError as error:
        if metric.precomputed and "is expecting" in str(error):
            hint = "With metric='precomputed' X must have a column for every training sample."
            raise ValueError(f"{error} {hint}") from None
        raise
    if metric.precomputed and new.shape[1] != len(rows):
        new = np.ascontiguousarray(new[:, rows])
    return new


def check_square(D: FloatArray) -> None:
    """Raise ValueError unless a matrix of distances between samples is square."""
    if D.shape[0] != D.shape[1]:
        raise ValueError(
            "metric 'precomputed' needs a square matrix of the distances between all training "
            f"samples, but X has shape {D.shape}. To compute one: "
            "sklearn.metrics.pairwise_distances(X)."
        )


def check_precomputed(D: FloatArray) -> FloatArray:
    """Check a finite distance matrix; if it is symmetric up to rounding only, mirror its upper triangle."""
    check_square(D)
    symmetric = True
    step = max(1, CHECKED_AT_A_TIME // len(D))
    for start in range(0, len(D), step):
        rows = D[start : start + step].copy()
        columns = D[:, start : start + step].T.copy()
        own = np.arange(len(rows))
        rows[own, start + own] = columns[own, start + own] = 0.0
        for i, j in np.argwhere(rows < 0.0):
            raise ValueError(
                f"Negative values in data: X[{start + i}, {j}] of the precomputed matrix is "
                f"{rows[i, j]}, but distances must be finite and not negative. Check how they were "
                "computed."
            )
        symmetric = symmetric and np.array_equal(rows, columns)
        near = np.abs(rows - columns) <= SYMMETRY_TOLERANCE * np.maximum(rows, columns)
        for i, j in np.argwhere(~near):
            raise ValueError(
                f"metric 'precomputed' needs a symmetric matrix, but X[{start + i}, {j}] is "
                f"{rows[i, j]} and X[{j}, {start + i}] is {columns[i, j]}. If the difference does "
                "not matter, pass (X + X.T) / 2."
            )
    if symmetric:
        return D
    upper = D.copy()
    for i in range(len(D)):
        upper[i, :i] = upper[:i, i]
    return upper


def check_algorithm(algorithm: str, metric: Metric) -> None:
    """Raise ValueError unless `algorithm` is known and supports the metric."""
    if algorithm not in ALGORITHMS:
        names = ", ".join(map(repr, ALGORITHMS))
        raise ValueError(f"`algorithm` must be one of {names}, not {algorithm!r}.")
    if algorithm in ("kd_tree", "brute") and not metric.euclidean:
        raise ValueError(
            f"algorithm {algorithm!r} supports only Euclidean distances, not metric "
            f"{metric.name!r}: use `algorithm='auto'`."
        )


def resources_of(estimator: Any) -> Resources:
    """Return the resources that an estimator's `n_jobs` and `working_memory` allow."""
    return Resources(n_threads_of(estimator.n_jobs), n_bytes_of(estimator.working_memory))


def n_threads_of(n_jobs: Any) -> int:
    """Return the number of threads for `n_jobs`, as in joblib."""
    if not (n_jobs is None or (isinstance(n_jobs, Integral) and n_jobs != 0)):
        raise ValueError(
            f"`n_jobs` must be a number of threads, None for 1 or -1 for all cores, not {n_jobs!r}."
        )
    return int(effective_n_jobs(n_jobs))


def n_bytes_of(working_memory: Any) -> int:
    """Convert a limit in MiB to bytes; None is the limit of `sklearn.get_config`."""
    if working_memory is None:
        working_memory = get_config()["working_memory"]
    if not (isinstance(working_memory, Real) and 0.0 < float(working_memory) < np.inf):
        raise ValueError(
            f"`working_memory` must be a positive number of MiB, not {working_memory!r}."
        )
    return int(float(working_memory) * 2**20)


def set_metric_tags(tags: Tags, metric: Any) -> Tags:
    """Set the tags `pairwise` and `positive_only` according to the metric."""
    from popf.engine.distances import KERNELS
    from popf.forest.metrics import ALIASES

    kernel = KERNELS.get(ALIASES.get(metric, metric)) if isinstance(metric, str) else None
    pairwise = tags.input_tags.pairwise = metric == "precomputed"
    tags.input_tags.positive_only = pairwise or (kernel is not None and kernel.non_negative)
    return tags


def check_weights(weights: FloatArray, start: int = 0) -> None:
    """Raise ValueError unless weights are 0 or within the limits; `start` is the row of the first weight."""
    usual = (weights == 0.0) | ((weights >= SMALLEST_WEIGHT) & (weights <= LARGEST_WEIGHT))
    for row in np.flatnonzero(~usual):
        raise ValueError(
            f"sample_weight[{start + row}] is {weights[row]}, but weights must be 0 or between "
            f"{SMALLEST_WEIGHT} and {LARGEST_WEIGHT}. A weight of 1 counts as one sample; a weight of 0 leaves "
            "the sample out."
        )


def check_any_weight(total: int) -> None:
    """Raise ValueError if no sample has a positive weight."""
    if total == 0:
        raise ValueError(
            "sample_weight is zero everywhere, which leaves no samples: give some of them a "
            "positive weight."
        )


def check_no_label_missing(y: NDArray[Any], start: int = 0) -> None:
    """Raise ValueError if a label is missing; `start` is the row of the first label."""
    for row in np.flatnonzero(are_missing(y)):
        raise ValueError(
            f"y[{start + row}] is missing: every sample needs a label. Drop the samples without one, or use "
            "SemiSupervisedOPFClassifier."
        )


def check_labels(y: NDArray[Any], name: Any = None) -> None:
    """Raise an error unless `y`, the column `name` of a frame, holds class labels of one type."""
    if y.dtype.kind == "S":  # of which scikit-learn before 1.7 only warns
        raise TypeError("y holds bytes. Convert the labels to text, for instance by y.astype(str).")
    try:
        check_classification_targets(y)
    except ValueError as error:
        if type_of_target(y) != "continuous":
            raise
        raise ValueError(
            f"Unknown label type: continuous. {'y' if name is None else repr(name)} holds numbers such as "
            f"{y[y != np.floor(y)][0]}, not classes: divide them into bins, for instance by pandas.qcut(y, 4)."
        ) from error
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in y})
        if len(kinds) == 1:
            raise
        raise TypeError(
            f"y mixes labels of several types ({', '.join(kinds)}), which cannot be sorted: give all "
            "labels one type, for instance by y.astype(str)."
        ) from error


def check_enough_classes(classes: NDArray[Any]) -> None:
    """Raise ValueError unless there are at least two classes."""
    if len(classes) < 2:
        (label,) = classes.tolist()
        raise ValueError(
            f"the training samples have one class only, {label!r}: prototypes are found where classes meet, so "
            "a forest needs samples of at least two classes."
        )


def is_on_gpu(array: Any) -> bool:
    """Return whether an array is a CuPy or PyTorch array on a GPU."""
    if _is_tensor(array):  # has that interface on any device
        return str(getattr(array, "device", "")).startswith("cuda")
    return hasattr(type(array), "__cuda_array_interface__")


def _is_tensor(array: Any) -> bool:
    return type(array).__module__.partition(".")[0] == "torch"


def to_host(array: Any) -> Any:
    """Copy an array from a GPU, or of a library that NumPy does not know; return anything else as it is."""
    if hasattr(array, "get") and is_on_gpu(array):
        return array.get()
    if _is_tensor(array):
        where = str(getattr(array, "device", None))
        if where != "cpu" and not is_on_gpu(array):
            raise ValueError(
                f"a tensor is on device {where!r}, but popf supports only the CPU and CUDA: pass tensor.cpu()."
            )
        return array.detach().cpu().numpy()
    if hasattr(array, "__array_namespace__") and not isinstance(array, np.ndarray):
        return np.from_dlpack(array)
    return array


def to_device_of(array: Any, values: ArrayT) -> ArrayT:
    """Convert numbers to the library and the device of `array`; text stays in NumPy."""
    if isinstance(array, np.ndarray) or values.dtype.kind not in "biuf":
        return values
    moved: ArrayT = values
    if hasattr(array, "get") and is_on_gpu(array):
        import cupy

        with cupy.cuda.Device(array.device):
            moved = cupy.asarray(values)
    elif _is_tensor(array):
        import torch

        moved = torch.as_tensor(values, device=array.device)
    elif hasattr(array, "__array_namespace__"):
        moved = array.__array_namespace__().asarray(values)
    return moved


def choose_device(device: str | None, X: Any, metric: Metric, algorithm: str) -> str:
    """Check `device` against the other parameters; None selects the device that holds X."""
    if device is None:
        supported = metric.euclidean and algorithm in ("auto", "brute")
        return "cuda" if is_on_gpu(X) and supported else "cpu"
    if device not in ("cpu", *BACKENDS):
        raise ValueError(f"`device` must be None, 'cpu' or 'cuda', not {device!r}.")
    if device != "cpu" and not metric.euclidean:
        raise ValueError(
            f"`device={device!r}` supports only Euclidean metrics, not metric {metric.name!r}: use "
            "`device=None`."
        )
    if device != "cpu" and algorithm not in ("auto", "brute"):
        raise ValueError(
            f"`device={device!r}` uses matrix products, not `algorithm={algorithm!r}`: use "
            "`algorithm='auto'`, or `device=None`."
        )
    return device


def backend_for(device: str) -> Backend | None:
    """Return the backend of a device, None for the CPU."""
    return None if device == "cpu" else BACKENDS[device]()


def processor_is_faster(device: str, algorithm: str, n_features: int) -> bool:
    """Return whether the space tree on the CPU is faster than the GPU, as it is with few features."""
    return device == "cuda" and algorithm == "auto" and n_features <= LOW_DIMENSION
