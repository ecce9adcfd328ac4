"""The same labels and costs as opfython, and one forest on the paper's public data."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from popf import OPFClassifier
from popf.forest.metrics import METRIC_NAMES, choose_metric
from strategies import assert_paths_are_valid, assert_same_conquest, assert_same_forest, gaussian

MOVING = (Path(__file__).parents[2] / "docs" / "moving.md").read_text(encoding="utf-8")
DATASETS = (
    *("australian", "australian_scale", "breast-cancer", "breast-cancer_scale", "colon-cancer"),
    *("diabetes", "diabetes_scale", "fourclass", "fourclass_scale", "heart", "heart_scale"),
    *("ionosphere", "ionosphere_scale", "liver-disorders", "liver-disorders_scale"),
)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("theirs", "ours"), [("log_squared_euclidean", "log_euclidean"), ("euclidean", "euclidean")]
)
@pytest.mark.parametrize("d", [2, 9])
def test_labels_and_costs_are_those_of_opfython(opfython, theirs, ours, n_classes, d):
    from opfython.models import SupervisedOPF

    X, y, _ = gaussian(n_classes + d, 150, d, n_classes)
    new = np.random.default_rng(d).normal(size=(60, d))
    opf = SupervisedOPF(distance=theirs)
    opf.fit(X, y)
    their_costs = np.array([node.cost for node in opf.subgraph.nodes])
    their_prototypes = [i for i, node in enumerate(opf.subgraph.nodes) if node.status == 1]
    their_labels = opf.predict(new)
    assert 2 < len(their_prototypes) < len(X)  # there is something to compare
    for algorithm in ("kd_tree", "brute", "prim"):
        forest = OPFClassifier(metric=ours, algorithm=algorithm).fit(X, y)
        np.testing.assert_array_equal(forest.prototypes_, their_prototypes)
        np.testing.assert_allclose(forest.costs_, their_costs, rtol=1e-9)
        np.testing.assert_array_equal(forest.predict(new), their_labels)


#: Names that mean something else there, by the table in docs/moving.md.
THEIRS = {
    "chi_squared": lambda x, y: np.sum((x - y) ** 2 / (x + y)) / 2,
    "jaccard": lambda x, y: np.sum((x - y) ** 2) / (x @ x + y @ y - x @ y),
    "dice": lambda x, y: np.sum((x - y) ** 2) / (x @ x + y @ y),
    "gaussian": lambda x, y: np.exp(-np.linalg.norm(x - y)),
    "hamming": lambda x, y: np.sum(x != y),
    "log_euclidean": lambda x, y: 1e5 * np.log(1 + np.linalg.norm(x - y)),
}


def test_metrics_of_the_same_name_are_the_same_but_for_those_in_the_table(opfython):
    from opfython.math.distance import DISTANCES

    x, y = np.array([[1.0, 2.0, 3.0, 4.0], [2.0, 2.0, 1.0, 6.0]])
    for name in {*DISTANCES} & {*METRIC_NAMES}:
        metric = choose_metric(name)
        ours = metric.transform(metric.blocks(x[None], y[None])(0, 1))[0, 0]
        if name in THEIRS:
            assert DISTANCES[name](x, y) == pytest.approx(THEIRS[name](x, y)) != ours
            assert f"| `{name}` | " in MOVING
        else:
            assert DISTANCES[name](x, y) == pytest.approx(ours)


@pytest.mark.parametrize("name", DATASETS)
def test_one_forest_on_the_public_data(public_data, name):
    if not (public_data / name).exists():
        pytest.skip(f"{name} is not among the data in POPF_DATA")
    X, y = load_svmlight_file(str(public_data / name))
    X = X.toarray()
    training = np.random.default_rng(0).random(len(y)) < 0.75
    reference = OPFClassifier(algorithm="prim").fit(X[training], y[training])
    assert_paths_are_valid(reference, y[training])  # roots_ give the labels back, among others
    for algorithm in ("kd_tree", "brute"):
        for n_jobs, working_memory in ((1, None), (2, 0.05)):
            forest = OPFClassifier(
                algorithm=algorithm, n_jobs=n_jobs, working_memory=working_memory
            ).fit(X[training], y[training])
            assert_same_forest(forest, reference)
            assert_same_conquest(forest, reference, X)
