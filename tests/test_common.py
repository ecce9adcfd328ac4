"""scikit-learn's own checks of an estimator, all of them."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from popf import (
    KNNOPFClassifier,
    OPFClassifier,
    OPFClustering,
    OPFOutlierDetector,
    SemiSupervisedOPFClassifier,
)


def expected_failures(estimator: Any) -> dict[str, str]:
    """Checks expected to fail, each with its reason."""
    if isinstance(estimator, SemiSupervisedOPFClassifier):
        reason = "takes -1 for a class, except of three estimators that it knows by name"
        return {"check_classifiers_classes": reason}
    if isinstance(estimator, OPFClustering) and estimator.metric == "precomputed":
        checks = ("check_clustering", "check_clustering(readonly_memmap=True)")
        return dict.fromkeys(checks, "gives samples to an estimator that takes distances")
    return {}


@parametrize_with_checks(
    [
        *(OPFClassifier(algorithm=name) for name in ("auto", "kd_tree", "brute", "prim")),
        OPFClassifier(metric="manhattan", n_jobs=2),
        OPFClassifier(metric="squared_chord"),
        OPFClassifier(metric="precomputed"),
        SemiSupervisedOPFClassifier(),
        SemiSupervisedOPFClassifier(metric="precomputed"),
        OPFClustering(),
        OPFClustering(5, metric="manhattan", n_jobs=2),
        OPFClustering(metric="precomputed"),
        KNNOPFClassifier(),
        KNNOPFClassifier(3, metric="precomputed"),
        OPFOutlierDetector(),
        OPFOutlierDetector("auto", metric="manhattan", n_jobs=2),
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore:.*array_api.*:UserWarning")
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)
