"""Where the samples of a forest lie in a picture, and what is drawn between them."""

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from popf.display.positive_class import last_step
from popf.forest.classifier import OPFClassifier
from popf.forest.optimum_path_forest import Path
from popf.formatting import check_integer
from popf.probability.classifier import POPFClassifier

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MARGIN = 0.07
COST_AXIS = "path cost C"


class ForestLayout(NamedTuple):
    """A forest as it is drawn."""

    coordinates: FloatArray  # of the training samples, (n_samples, 2)
    classes: NDArray[Any]
    codes: IntArray  # the number of the label of every sample
    predecessors: IntArray  # the sample before it on its path, -1 for prototypes
    crossings: IntArray  # the arcs of the spanning tree that join two classes, (n, 2)
    axis_names: tuple[str, str]
    regions: tuple[FloatArray, FloatArray, IntArray] | None = (
        None  # x, y, and who conquers each point
    )
    path: Path | None = None  # by which one sample was conquered
    sample: FloatArray | None = None  # where that sample lies

    def limits(self) -> tuple[FloatArray, FloatArray]:
        """Return the lower left and the upper right corner of the picture."""
        places = self.coordinates
        if self.sample is not None:
            places = np.vstack([places, self.sample])
        low, high = places.min(axis=0), places.max(axis=0)
        width = high - low
        width[width == 0.0] = max(float(width.max()), 1.0)
        return low - MARGIN * width, high + MARGIN * width


def prepare_forest(
    estimator: Any,
    *,
    sample: ArrayLike | None = None,
    regions: bool | None = None,
    resolution: int = 200,
) -> ForestLayout:
    """Compute where a forest is drawn; see `ForestDisplay.from_estimator`."""
    check_integer("resolution", resolution, 2)
    last = last_step(estimator)
    if not isinstance(last, OPFClassifier | POPFClassifier):
        raise TypeError(
            f"{type(last).__name__} has no forest; pass a fitted OPFClassifier or POPFClassifier, "
            "or a Pipeline that ends in one."
        )
    check_is_fitted(last)
    forest = (last.opf_ if isinstance(last, POPFClassifier) else last).forest_
    samples = forest.samples
    if samples is None:
        raise ValueError(
            "with metric='precomputed' the samples have no places to draw; fit a forest to places, as by "
            "sklearn.manifold.MDS, to draw it."
        )
    # A classifier without names of features, which arrays do not have.
    parameters = {"metric": last.metric, "n_jobs": last.n_jobs}
    opf = OPFClassifier.from_forest(forest, parameters, samples.shape[1])
    axis_names, places = _places(samples, _feature_names(estimator, samples))
    path = place = None
    if sample is not None:
        point = as_forest_sees(estimator, one_sample(sample))
        (path,) = opf.explain(point)
        (place,) = places(point, np.array([path.cost]))
    arcs = np.column_stack([forest.spanning_tree.lower, forest.spanning_tree.higher])
    layout = ForestLayout(
        coordinates=places(samples, forest.costs),
        classes=forest.classes,
        codes=forest.codes,
        predecessors=forest.predecessors,
        crossings=arcs[forest.codes[arcs[:, 0]] != forest.codes[arcs[:, 1]]],
        axis_names=axis_names,
        path=path,
        sample=place,
    )
    if samples.shape[1] > 2 or not (regions or (regions is None and not callable(last.metric))):
        return layout
    return layout._replace(regions=_regions(opf, layout, resolution))


def as_forest_sees(estimator: Any, X: Any) -> FloatArray:
    """Return samples as the forest of an estimator sees them: after a pipeline's steps, squashed and mapped."""
    while isinstance(estimator, Pipeline):
        X = estimator[:-1].transform(X) if len(estimator) > 1 else X
        estimator = estimator[-1]
    if hasattr(X, "columns") and hasattr(estimator, "feature_names_in_"):
        X = X[list(estimator.feature_names_in_)]
    with warnings.catch_warnings():  # an array has no names, which is no reason to warn
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        prepare = getattr(estimator, "prepare", np.asarray)
        return np.ascontiguousarray(prepare(X), dtype=np.float64)


def _feature_names(estimator: Any, samples: FloatArray) -> list[str]:
    last, n_features = last_step(estimator), samples.shape[1]
    if getattr(last, "linear_map_", None) is not None:
        return [f"mapped feature {k}" for k in range(n_features)]
    names = getattr(last, "feature_names_in_", None)
    if names is None and hasattr(estimator, "feature_names_in_"):
        with suppress(AttributeError, ValueError):  # a step that cannot say
            names = estimator[:-1].get_feature_names_out()
    if names is None:
        names = [f"feature {k}" for k in range(n_features)]
    given: Any = getattr(last, "samples_", samples)
    squashed = not np.array_equal(samples, given)
    return [f"{name}, squashed" if squashed else str(name) for name in names]


def one_sample(sample: Any) -> Any:
    """Make one sample a table of one row; a row of a DataFrame stays one."""
    shape = np.shape(sample)
    if len(shape) == 1:
        return np.asarray(sample)[np.newaxis]
    if len(shape) != 2 or shape[0] != 1:
        raise ValueError(
            f"sample has the shape {shape}; pass one sample, (n_features,) or (1, n_features)."
        )
    return sample


def _places(
    samples: FloatArray, names: list[str]
) -> tuple[tuple[str, str], Callable[[FloatArray, FloatArray], FloatArray]]:
    """Choose the axes of the picture; return their names, and the way of samples and costs into it."""
    if len(names) == 1:
        return (names[0], COST_AXIS), lambda X, costs: np.column_stack([X[:, 0], costs])
    if len(names) == 2:
        return (names[0], names[1]), lambda X, costs: X
    projection = PCA(2, random_state=0)
    with np.errstate(invalid="ignore"):  # samples that all lie in one place
        projection.fit(samples)
    first, second = np.nan_to_num(projection.explained_variance_ratio_)
    across = f"principal component 1 ({100 * first:.0f} % of the variance)"
    up = f"component 2 ({100 * second:.0f} %)"
    return (across, up), lambda X, costs: projection.transform(X)


def _regions(
    opf: OPFClassifier, layout: ForestLayout, resolution: int
) -> tuple[FloatArray, FloatArray, IntArray]:
    low, high = layout.limits()
    if not opf.forest_.metric.euclidean and layout.coordinates.min() >= 0.0:
        # Some metrics are for positive features only, and some of these not for zeros alone.
        low = np.maximum(low, 1e-9 * (high - low))
    x, y = np.linspace(low, high, resolution).T
    if opf.n_features_in_ == 1:
        y = y[[0, -1]]  # who conquers does not depend on the cost of a path
    places = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    nodes = opf.conquer(np.ascontiguousarray(places[:, : opf.n_features_in_])).nodes
    return x, y, layout.codes[nodes].reshape(len(y), len(x))
