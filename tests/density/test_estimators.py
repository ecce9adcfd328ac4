"""What all estimators on densities share: the same answer for any order, checks, and their state."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris

import popf
from naive_density import distances
from popf import KNNOPFClassifier, OPFClustering, OPFOutlierDetector
from popf.table_models import explain_row, open_model
from refusals import refused
from saved_models import again, assert_same_model
from strategies import furthest_feature, grid

X = load_iris().data[::3]
ESTIMATORS = [OPFClustering, OPFOutlierDetector, KNNOPFClassifier]


@pytest.mark.parametrize(
    "metric", ["euclidean", "manhattan", "canberra", "precomputed", furthest_feature]
)
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("data", ["iris", "grid"])
def test_the_order_of_rows_and_the_number_of_threads_change_nothing(estimator, metric, data):
    rows, y, new = grid(5, 75, 3, 6, n_classes=3)
    if data == "iris":
        rows, y = load_iris(return_X_y=True)
        rows, y, new = rows[::2], y[::2], rows[:20] + 0.25
    shuffled = np.random.default_rng(0).permutation(len(rows))
    training, asked = [rows, rows[shuffled]], [new, new]
    if metric == "precomputed":
        asked = [distances(new, X) for X in training]
        training = [distances(X, X) for X in training]
    settings = {"n_neighbors": "auto", "max_neighbors": 12, "metric": metric}
    one = estimator(**settings).fit(training[0], y)
    two = estimator(**settings, n_jobs=3, working_memory=0.01).fit(training[1], y[shuffled])
    for name in ("density_", "labels_", "scores_"):
        if hasattr(one, name):
            assert_array_equal(getattr(one, name)[shuffled], getattr(two, name))
    for name in ("cuts_", "accuracies_", "offset_"):
        assert_array_equal(getattr(one, name, None), getattr(two, name, None))
    for name in ("predict", "score_samples"):
        if hasattr(one, name):
            assert_array_equal(getattr(one, name)(asked[0]), getattr(two, name)(asked[1]))


@pytest.mark.parametrize(
    ("estimator", "settings", "said"),
    [
        (OPFClustering, {"n_neighbors": 0}, "`n_neighbors` is 0; it must be an integer"),
        (KNNOPFClassifier, {"n_neighbors": "few"}, "an integer of at least 1, or 'auto'"),
        (OPFClustering, {"max_neighbors": 2.5}, "`max_neighbors` is 2.5"),
        (OPFClustering, {"min_height": 0.0}, "`min_height` is 0.0; it must be"),
        (OPFClustering, {"min_area": -1}, "`min_area`"),
        (OPFClustering, {"min_volume": np.inf}, "`min_volume`"),
        (OPFClustering, {"metric": "euclid"}, "unknown metric 'euclid'"),
        (OPFClustering, {"metric": "precomputed"}, "square matrix"),
        (KNNOPFClassifier, {"metric": "precomputed"}, "square matrix"),
        *[
            (OPFOutlierDetector, {"contamination": value}, "`contamination`")
            for value in (0.0, 0.6, "auto", True, np.nan)
        ],
    ],
)
def test_bad_parameters_are_refused_by_name(estimator, settings, said):
    model = estimator(5).fit(X, np.arange(50) % 2)
    refused(lambda: model.set_params(**settings).fit(X, np.arange(50) % 2), said)
    assert not hasattr(model, "forest_")  # nothing is left of the earlier fit


def test_bad_samples_are_refused():
    refused(lambda: KNNOPFClassifier().fit(X, np.zeros(50)), "one class only")
    refused(lambda: OPFClustering().fit([[1.0]]), "minimum of 2 is required")
    refused(lambda: OPFClustering().fit([[1e308], [-1e308]]), "samples 1 and 0 is inf", "scale")
    model = OPFClustering(5).fit(X)
    refused(lambda: model.fit([[1.0], [np.nan]]), "NaN")
    assert not hasattr(model, "forest_")
    model = OPFClustering(metric="precomputed").fit(distances(X[:9], X[:9]))
    refused(lambda: model.predict(X[:2]), "a column for every training sample")


WRONG = {
    "nodes without samples": ("node_of", lambda a: a * 0, "at least one sample"),
    "roots that are none": (
        "paths",
        lambda paths: {**paths, "roots": np.roll(paths["roots"], 1)},
        "roots",
    ),
    "a class of its own": ("node_codes", lambda a: np.arange(len(a)), "classes of the roots"),
    "no samples": ("points", lambda _: None, "only if the metric is precomputed"),
}


@pytest.mark.parametrize(("name", "change", "said"), WRONG.values(), ids=WRONG)
def test_values_that_contradict_each_other_are_refused(name, change, said):
    state = OPFClustering(5).fit(X).__getstate__()
    state["forest_"][name] = change(state["forest_"][name])
    refused(lambda: OPFClustering().__setstate__(state), "of OPFClustering must be", said)


def test_what_does_not_fit_the_forest_is_refused():
    detector, model = OPFOutlierDetector(5).fit(X), KNNOPFClassifier(5).fit(X, np.arange(50) % 3)
    for fitted, name, value in (
        (detector, "scores_", detector.scores_[1:]),
        (model, "classes_", np.array([0, 1])),
    ):
        state = {**fitted.__getstate__(), name: value}
        other = type(fitted).__new__(type(fitted))
        refused(lambda other=other, state=state: other.__setstate__(state), f"{name} of")


def test_models_of_huge_values_are_saved_and_loaded(model_path):
    model = OPFClustering(5).fit(X * 1e300)
    assert_same_model(model, again(model, model_path), X * 1e300)


def test_precomputed_distances_survive_without_the_matrix(model_path):
    D = distances(X, X)
    model = OPFClustering(5, metric="precomputed").fit(D)
    assert_same_model(model, again(model, model_path), D * 1.01)
    assert model_path.stat().st_size < D.nbytes


def test_a_state_with_other_samples_than_precomputed_distances_is_refused():
    model = OPFClustering(5, metric="precomputed").fit(distances(X, X))
    state = model.__getstate__()
    state["n_features_in_"] += 1
    refused(lambda: OPFClustering().__setstate__(state), "node_of", f"{len(X) + 1} samples")


def test_a_file_tells_what_it_holds_and_commands_refuse_it(model_path):
    popf.save(OPFClustering(5).fit(X), model_path)
    known = popf.io.describe(model_path)
    assert known["estimator"] == "OPFClustering"
    assert (known["n_samples"], known["classes"], known["class_counts"]) == (50, [], [])
    refused(lambda: open_model(model_path), "holds OPFClustering", "popf.load")


def test_a_classifier_in_a_file_serves_tables_but_explains_nothing(model_path):
    frame, y = load_iris(return_X_y=True, as_frame=True)
    model = KNNOPFClassifier(3).fit(frame, y)
    popf.save(model, model_path, X=frame)
    assert popf.io.describe(model_path)["class_counts"] == [50, 50, 50]
    table_model = open_model(model_path)
    np.testing.assert_array_equal(table_model.score(frame).codes, model.predict(frame))
    refused(lambda: explain_row(table_model, frame[:1]), "KNNOPFClassifier has no paths")


def test_samples_that_change_after_the_fit_change_nothing():
    mine = X.copy()
    model = OPFClustering(5, metric="manhattan").fit(mine)
    expected = model.score_samples(X)
    mine[:] = 0.0
    np.testing.assert_array_equal(model.score_samples(X), expected)
