"""The state of what stands on densities: every wrong value is refused by name."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import pairwise_distances

import popf
from popf import KNNOPFClassifier, OPFClustering, OPFOutlierDetector
from popf.table_models import explain_row, open_model
from refusals import refused
from saved_models import again, assert_same_model

X = load_iris().data[::3]


def changed(array, where, value):
    copy = np.array(array)
    copy[where] = value
    return copy


WRONG = {
    "samples of another size": ("samples", lambda a: a[:-1], "numbers of shape"),
    "samples that are none": ("samples", lambda a: changed(a, (3, 1), np.nan), "finite"),
    "nodes out of range": ("node_of", lambda a: a + 1, "whole numbers from 0"),
    "nodes without samples": ("node_of", lambda a: a * 0, "of every node at least one"),
    "roots that are none": ("roots", lambda a: np.roll(np.arange(len(a)), 1), "roots themselves"),
    "roots out of range": ("roots", lambda a: a - 99, "whole numbers from 0"),
    "densities beyond 1": ("densities", lambda a: a + 1.0, "from 0.01 to 1"),
    "values beyond the range": ("values", lambda a: a * 1e3, "from -1000 to 1000"),
    "too many neighbours": ("n_neighbors", lambda _: 50, "from 1 to 49"),
    "a negative length": ("longest", lambda _: -1.0, "a number from 0"),
}


@pytest.mark.parametrize(("name", "change", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_value_is_refused_by_name(name, change, said):
    state = OPFClustering(5).fit(X).__getstate__()
    state["forest_"] = {**state["forest_"], name: change(state["forest_"][name])}
    model = OPFClustering.__new__(OPFClustering)
    refused(lambda: model.__setstate__(state), f"{name} of forest_ of OPFClustering must be", said)


def test_what_does_not_fit_the_forest_is_refused():
    detector, model = OPFOutlierDetector(5).fit(X), KNNOPFClassifier(5).fit(X, np.arange(50) % 3)
    for fitted, name, value in (
        (detector, "scores_", detector.scores_[1:]),
        (model, "classes_", np.array([0, 1])),
    ):
        state = {**fitted.__getstate__(), name: value}
        other = type(fitted).__new__(type(fitted))
        refused(lambda other=other, state=state: other.__setstate__(state), f"{name} of")


def test_a_fit_that_fails_leaves_nothing_half_fitted():
    model = OPFClustering(5).fit(X)
    refused(lambda: model.fit([[np.nan], [1.0]]), "NaN")
    assert not hasattr(model, "forest_")


def test_precomputed_distances_survive_without_the_matrix(model_path):
    D = pairwise_distances(X)
    model = OPFClustering(5, metric="precomputed").fit(D)
    assert_same_model(model, again(model, model_path), D * 1.01)
    assert model_path.stat().st_size < D.nbytes


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
    refused(lambda: explain_row(table_model, frame[:1]), "KNNOPFClassifier gives no paths")


def test_samples_that_change_after_the_fit_change_nothing():
    mine = X.copy()
    model = OPFClustering(5, metric="manhattan").fit(mine)
    expected = model.score_samples(X)
    mine[:] = 0.0
    np.testing.assert_array_equal(model.score_samples(X), expected)
