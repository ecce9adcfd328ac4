"""The forest, its regions and the path of a sample, as computed and as drawn."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from display_examples import BOX, DRAWN, FOREST, MOON, MOONS, assert_fits, new_axes
from popf import OPFClassifier, PlattOPFClassifier, POPFClassifier
from popf.display import ForestDisplay
from popf.display.forest import prepare_forest


def segments(collection):
    return {tuple(map(tuple, line)) for line in collection.get_segments()}


def test_the_forest_is_drawn_where_its_samples_lie():
    display = DRAWN["forest"](new_axes())
    for k, marks in enumerate(display.samples_):
        assert np.array_equal(marks.get_xydata(), MOONS[k == MOON])
    before = FOREST.predecessors_
    arcs = {(tuple(MOONS[u]), tuple(MOONS[v])) for v, u in enumerate(before) if u >= 0}
    assert segments(display.arcs_) == arcs
    tree = FOREST.spanning_tree_
    crossings = {
        (tuple(MOONS[u]), tuple(MOONS[v]))
        for u, v in zip(tree.lower, tree.higher, strict=True)
        if MOON[u] != MOON[v]
    }
    assert segments(display.crossings_) == crossings
    rings = next(line for line in display.ax_.lines if line.get_label() == "prototype")
    assert np.array_equal(rings.get_xydata(), MOONS[FOREST.prototypes_])
    assert display.ax_.get_aspect() == 1.0


@pytest.mark.parametrize("name", ["markersize", "ms"])
def test_marks_take_options_by_their_long_and_short_names(name):
    display = DRAWN["forest"](new_axes()).plot(ax=new_axes(), **{name: 9.0})
    assert {marks.get_markersize() for marks in display.samples_} == {9.0}


def test_marks_and_lines_are_finer_the_more_samples_there_are():
    X = np.random.default_rng(0).normal(size=(1500, 3))
    display = ForestDisplay.from_estimator(OPFClassifier().fit(X, X[:, 0] > 0.0), ax=new_axes())
    few = DRAWN["forest"](new_axes())
    assert display.samples_[0].get_markersize() < 0.5 * few.samples_[0].get_markersize()
    for name in ("arcs_", "crossings_"):
        fine, full = (getattr(one, name).get_linewidths()[0] for one in (display, few))
        assert fine < 0.25 * full


def test_the_path_of_a_sample_is_drawn_with_its_longest_arc():
    sample = [0.9, 0.9]
    display = ForestDisplay.from_estimator(FOREST, sample=sample, ax=new_axes())
    (path,) = FOREST.explain([sample])
    stops = np.vstack([MOONS[path.nodes], sample])
    assert np.array_equal(display.path_.get_xydata(), stops)
    longest = display.bottleneck_.get_xydata()
    assert np.linalg.norm(longest[1] - longest[0]) == pytest.approx(path.cost)
    assert display.bottleneck_.get_label() == f"longest arc: {path.cost:.3g}"
    assert display.path_.get_label() == f"path ({path.label})"


def test_regions_are_what_the_forest_predicts():
    layout = prepare_forest(FOREST, resolution=25)
    x, y, codes = layout.regions
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    assert np.array_equal(codes.ravel(), FOREST.predict(grid))
    assert x[0] < MOONS[:, 0].min()
    assert x[-1] > MOONS[:, 0].max()
    display = DRAWN["forest"](new_axes())
    assert np.array_equal(display.regions_.get_array().ravel(), display.layout.regions[2].ravel())


def test_one_feature_is_drawn_over_the_path_cost():
    line = np.array([[0.0], [1.0], [2.5], [6.0], [7.0], [7.5]])
    forest = OPFClassifier().fit(line, [0, 0, 0, 1, 1, 1])
    display = ForestDisplay.from_estimator(forest, sample=[2.0], ax=new_axes())
    assert np.array_equal(display.layout.coordinates, np.column_stack([line, forest.costs_]))
    assert display.ax_.get_ylabel() == "path cost C"
    assert display.layout.regions[2][:, 0].tolist() == [0, 0]
    assert display.layout.regions[2][:, -1].tolist() == [1, 1]


def test_pipelines_and_probabilities_are_drawn_by_their_forest():
    model = make_pipeline(StandardScaler(), PlattOPFClassifier(box=BOX))
    model.fit(MOONS, MOON)
    layout = prepare_forest(model, sample=MOONS[3] + 0.01, resolution=10)
    scaled = model[0].transform(MOONS)
    assert np.array_equal(layout.coordinates, scaled)
    (path,) = model[-1].opf_.explain(model[0].transform(MOONS[[3]] + 0.01))
    assert np.array_equal(layout.path.nodes, path.nodes)
    assert layout.sample == pytest.approx(model[0].transform(MOONS[[3]] + 0.01)[0])


@pytest.mark.parametrize("linear_map", ["none", "weights", "discriminant"])
def test_a_model_with_a_map_is_drawn_as_its_forest_sees_the_samples(linear_map):
    model = POPFClassifier("forest", linear_map=linear_map).fit(MOONS, MOON)
    layout = prepare_forest(model, sample=[0.2, 0.3], resolution=10)
    if linear_map == "discriminant":
        assert layout.axis_names == ("mapped feature 0", "mapped feature 1")
    else:  # the axes are features, in an order that does not depend on that of the columns
        moved = model.prepare(np.add(MOONS[:1], [1e-3, 0.0]))[0] != model.prepare(MOONS[:1])[0]
        assert layout.axis_names[np.argmax(moved)] == "feature 0, squashed"
        assert layout.axis_names[np.argmin(moved)] == "feature 1, squashed"
    u, v = layout.predecessors[layout.predecessors >= 0], np.flatnonzero(layout.predecessors >= 0)
    lengths = np.linalg.norm(layout.coordinates[u] - layout.coordinates[v], axis=1)
    assert lengths == pytest.approx(model.opf_.forest_.lengths[v])


def test_columns_name_the_axes_and_warn_of_nothing():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(MOONS, columns=["usage", "tariff"])
    plain = [OPFClassifier(), PlattOPFClassifier(box=BOX)]
    steps = StandardScaler(), FunctionTransformer(np.exp)
    for model in (*plain, *(make_pipeline(step, OPFClassifier()) for step in steps)):
        layout = prepare_forest(model.fit(table, MOON), sample=table.iloc[[2]], resolution=5)
        assert layout.axis_names == ("usage", "tariff")
    for model in plain:
        swapped = prepare_forest(model, sample=table.loc[[2], ["tariff", "usage"]], regions=False)
        unnamed = prepare_forest(model, sample=MOONS[2], regions=False)
        assert np.array_equal(swapped.sample, unnamed.sample)
        assert list(model.feature_names_in_) == ["usage", "tariff"]
    unnamed = make_pipeline(FunctionTransformer(np.asarray), OPFClassifier()).fit(table, MOON)
    assert prepare_forest(unnamed, regions=False).axis_names == ("feature 0", "feature 1")


def test_samples_of_no_weight_are_not_drawn():
    weights = np.arange(len(MOON)) % 7
    layout = prepare_forest(OPFClassifier().fit(MOONS, MOON, weights), regions=False)
    assert np.array_equal(layout.coordinates, MOONS[weights > 0])


def test_other_metrics_have_regions_within_their_domain_and_slow_ones_none():
    positive = MOONS - MOONS.min(axis=0)
    forest = OPFClassifier("chi_square").fit(positive, MOON)
    assert prepare_forest(forest, resolution=10).regions[0].min() > 0.0
    slow = OPFClassifier(lambda a, b: np.abs(a - b).sum()).fit(MOONS[:20], MOON[:20])
    assert prepare_forest(slow).regions is None


@pytest.mark.parametrize(
    ("shape", "aspect"),
    [((1.0, 0.4), "auto"), ((1.0, 1.0), 1.0), ((0.4, 1.0), 1.0), ((1000.0, 1.0), "auto")],
)
@pytest.mark.parametrize("name", ["b", "a class with a rather long name, too long"])
def test_forests_of_all_shapes_fit_their_figure_and_very_unequal_units_fill_the_axes(
    shape, aspect, name
):
    samples = MOONS * shape
    forest = OPFClassifier().fit(samples, np.where(MOON == 1, name, "a"))
    display = ForestDisplay.from_estimator(forest, sample=samples[0] + 0.1, resolution=10)
    assert_fits(display.figure_)
    assert display.ax_.get_aspect() == aspect
