"""Where the samples of a forest lie in a picture, and what is drawn between them."""

import copy
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from popf.forest.classifier import OPFClassifier
from popf.forest.paths import Path
from popf.formatting import check_integer
from popf.probability.classifier import POPFClassifier

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MARGIN = 0.07
COST_AXIS = "path cost C"


class Regions(NamedTuple):
    """Which class conquers each point of a grid.

    Attributes
    ----------
    x, y : ndarray of shape (n_x,), (n_y,)
        The grid.
    codes : ndarray of shape (n_y, n_x)
        The number of the class that conquers the point, counted in ``classes_``.
    """

    x: FloatArray
    y: FloatArray
    codes: IntArray


class ForestLayout(NamedTuple):
    """A forest as it is drawn.

    Attributes
    ----------
    coordinates : ndarray of shape (n_samples, 2)
        Where the training samples lie.
    classes : ndarray of shape (n_classes,)
        The labels.
    codes : ndarray of shape (n_samples,)
        The number of the label of every sample.
    predecessors : ndarray of shape (n_samples,)
        The sample before it on its path, -1 for prototypes.
    crossings : ndarray of shape (n_crossings, 2)
        The arcs of the spanning tree that join two classes: they make the prototypes.
    axis_names : tuple of two str
        What the axes show.
    regions : Regions or None
        Who conquers what.
    exact : bool
        Whether the regions are those of the forest. In a projection they are not: they show who conquers the
        plane through the mean of the samples, while the samples lie beside that plane.
    path : Path or None
        The path by which one sample was conquered.
    sample : ndarray of shape (2,) or None
        Where that sample lies.
    """

    coordinates: FloatArray
    classes: NDArray[Any]
    codes: IntArray
    predecessors: IntArray
    crossings: IntArray
    axis_names: tuple[str, str]
    regions: Regions | None = None
    exact: bool = True
    path: Path | None = None
    sample: FloatArray | None = None


class _Plane(NamedTuple):
    """How samples get into the picture, and points of the picture back into space."""

    names: tuple[str, str]
    projection: PCA | None

    def places(self, X: FloatArray, costs: FloatArray) -> FloatArray:
        if X.shape[1] == 1:
            return np.column_stack([X[:, 0], costs])
        places: FloatArray = X if self.projection is None else self.projection.transform(X)
        return places

    def samples(self, places: FloatArray, n_features: int) -> FloatArray:
        if self.projection is None:
            return np.ascontiguousarray(places[:, :n_features])
        samples: FloatArray = self.projection.inverse_transform(places)
        return samples


def prepare_forest(
    estimator: Any,
    X: ArrayLike,
    *,
    sample: ArrayLike | None = None,
    regions: bool | None = None,
    resolution: int = 200,
) -> ForestLayout:
    """Compute where a forest is drawn; nothing is drawn.

    Two features are drawn as they are. More are projected on their first two principal components. A single
    one is drawn with the path cost as the other axis.

    Parameters
    ----------
    estimator : OPFClassifier, POPFClassifier or Pipeline
        Fitted. What a pipeline does before its last step is done to X first.
    X : array-like of shape (n_samples, n_features)
        The samples it was fitted to: a forest does not keep them as they were.
    sample : array-like of shape (n_features,) or (1, n_features), default=None
        A sample whose path is traced.
    regions : bool, default=None
        Whether to find who conquers each point of the picture; None for yes where that is exact, with one
        or two features, unless the metric is a Python function, which is slow. True in a projection shows
        the plane through the mean of the samples.
    resolution : int, default=200
        How many points of the picture in each direction are looked at for the regions.

    Returns
    -------
    layout : ForestLayout

    Examples
    --------
    >>> from popf import OPFClassifier
    >>> from popf.display import prepare_forest
    >>> X, y = [[0, 0], [1, 0], [4, 0], [5, 1]], ["a", "a", "b", "b"]
    >>> forest = OPFClassifier().fit(X, y)
    >>> layout = prepare_forest(forest, X, sample=[0, 1])
    >>> layout.crossings, layout.predecessors
    (array([[1, 2]]), array([ 1, -1, -1,  2]))
    >>> layout.path
    Path([1] -1*- 0 -1- sample; label 'a', cost 1)
    """
    check_integer("resolution", resolution, 2)
    opf, samples, points, names = _forest_of(estimator, X, sample)
    n_features = samples.shape[1]
    plane = _plane_of(samples, names)
    coordinates = plane.places(samples, opf.costs_)
    path = place = None
    if points is not None:
        (path,) = opf.explain(points)
        (place,) = plane.places(points, np.array([path.cost]))
    tree = opf.spanning_tree_
    arcs = np.column_stack([tree.lower, tree.higher])
    layout = ForestLayout(
        coordinates=coordinates,
        classes=opf.classes_,
        codes=opf.forest_.codes,
        predecessors=opf.predecessors_,
        crossings=arcs[opf.forest_.codes[arcs[:, 0]] != opf.forest_.codes[arcs[:, 1]]],
        axis_names=plane.names,
        exact=n_features <= 2,
        path=path,
        sample=place,
    )
    if regions is None:
        regions = layout.exact and not callable(opf.metric)
    if not regions:
        return layout
    return layout._replace(regions=_regions(opf, plane, layout, n_features, resolution))


def _forest_of(
    estimator: Any, X: ArrayLike, sample: ArrayLike | None
) -> tuple[OPFClassifier, FloatArray, FloatArray | None, list[str]]:
    """Give the forest, the samples it was grown from, the one to explain, and names of features."""
    if sample is not None:
        sample = _as_row(sample)
    last, names = estimator, None
    if isinstance(estimator, Pipeline):
        check_is_fitted(estimator)
        before, last = estimator[:-1], estimator[-1]
        if len(before):
            if hasattr(estimator, "feature_names_in_"):
                with suppress(AttributeError, ValueError):  # a step that cannot say
                    names = before.get_feature_names_out()
            X = before.transform(X)
            sample = None if sample is None else before.transform(sample)
    if not isinstance(last, OPFClassifier | POPFClassifier):
        raise TypeError(
            f"{type(last).__name__} has no forest; pass a fitted OPFClassifier or POPFClassifier, "
            "or a Pipeline that ends in one."
        )
    check_is_fitted(last)
    if last.metric == "precomputed":
        raise ValueError(
            "with metric='precomputed' the samples have no places to draw; find some, as by "
            "sklearn.manifold.MDS, and draw ForestDisplay(layout=ForestLayout(...))."
        )
    samples = _as_samples(last, X)
    points = None if sample is None else _as_samples(last, sample)
    names = getattr(last, "feature_names_in_", names)
    if isinstance(last, POPFClassifier):
        # The forest knows samples after squashing and mapping.
        samples = last.prepare(samples)
        points = None if points is None else last.prepare(points)
        if getattr(last, "linear_map_", None) is not None:
            names = [f"mapped feature {k}" for k in range(samples.shape[1])]
    opf = copy.copy(last.opf_ if isinstance(last, POPFClassifier) else last)
    # From here on samples are arrays: no names to compare.
    opf.__dict__.pop("feature_names_in_", None)
    kept = opf.sample_indices_
    if len(samples) <= kept.max():
        raise ValueError(
            f"X has {len(samples)} samples, the forest was grown from {kept.max() + 1} or more; "
            "pass the X given to fit."
        )
    samples = samples[kept]
    # A training sample is offered nothing cheaper than its own cost, and that by itself.
    costs = opf.conquer(samples).costs
    wrong = np.flatnonzero(~np.isclose(costs, opf.costs_, rtol=1e-6, atol=0.0))
    if len(wrong):
        row = wrong[0]
        raise ValueError(
            f"X does not hold the samples the forest was grown from: row {kept[row]} costs "
            f"{costs[row]:.4g}, in the forest {opf.costs_[row]:.4g}; pass the X given to fit."
        )
    if names is None:
        names = [f"feature {k}" for k in range(samples.shape[1])]
    return opf, samples, points, [str(name) for name in names]


def _as_row(sample: Any) -> Any:
    """Make one sample a table of one row; a row of a DataFrame stays one."""
    shape = np.shape(sample)
    if len(shape) == 1:
        return np.asarray(sample)[np.newaxis]
    if len(shape) != 2 or shape[0] != 1:
        raise ValueError(
            f"sample has the shape {shape}; pass one sample, (n_features,) or (1, n_features)."
        )
    return sample


def _as_samples(estimator: Any, X: Any) -> FloatArray:
    if not hasattr(X, "columns") and hasattr(estimator, "feature_names_in_"):
        estimator = copy.copy(estimator)  # an array has no names, which is no reason to warn
        del estimator.feature_names_in_
    samples: FloatArray = validate_data(estimator, X, dtype=np.float64, order="C", reset=False)
    return samples


def _plane_of(samples: FloatArray, names: list[str]) -> _Plane:
    if len(names) == 1:
        return _Plane((names[0], COST_AXIS), None)
    if len(names) == 2:
        return _Plane((names[0], names[1]), None)
    projection = PCA(2, random_state=0)
    with np.errstate(invalid="ignore"):  # samples that all lie in one place
        projection.fit(samples)
    first, second = np.nan_to_num(projection.explained_variance_ratio_)
    return _Plane(
        (
            f"principal component 1 ({100 * first:.0f} % of the variance)",
            f"component 2 ({100 * second:.0f} %)",
        ),
        projection,
    )


def limits_of(layout: ForestLayout) -> tuple[FloatArray, FloatArray]:
    """Give the lower left and the upper right corner of the picture."""
    places = layout.coordinates
    if layout.sample is not None:
        places = np.vstack([places, layout.sample])
    low, high = places.min(axis=0), places.max(axis=0)
    width = high - low
    width[width == 0.0] = max(float(width.max()), 1.0)
    return low - MARGIN * width, high + MARGIN * width


def _regions(
    opf: OPFClassifier, plane: _Plane, layout: ForestLayout, n_features: int, resolution: int
) -> Regions:
    low, high = limits_of(layout)
    if not opf.forest_.metric.euclidean and layout.coordinates.min() >= 0.0:
        # Some metrics are for positive features only, and some of these not for zeros alone.
        low = np.maximum(low, 1e-9 * (high - low))
    x, y = np.linspace(low, high, resolution).T
    if n_features == 1:
        y = y[[0, -1]]  # the cost of a path does not matter for who conquers
    places = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    nodes = opf.conquer(plane.samples(places, n_features)).nodes
    return Regions(x, y, opf.forest_.codes[nodes].reshape(len(y), len(x)))
