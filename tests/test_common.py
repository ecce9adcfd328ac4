"""scikit-learn's own checks of an estimator, all of them."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from popf import OPFClassifier, SemiSupervisedOPFClassifier

#: Checks expected to fail, each with its reason.
EXPECTED_FAILURES = {
    SemiSupervisedOPFClassifier: {
        "check_classifiers_classes": "takes -1 for a class, except of three estimators that it knows by name",
    }
}


@parametrize_with_checks(
    [
        OPFClassifier(),
        OPFClassifier(algorithm="kd_tree"),
        OPFClassifier(algorithm="brute"),
        OPFClassifier(algorithm="prim"),
        OPFClassifier(metric="manhattan", n_jobs=2),
        OPFClassifier(metric="squared_chord"),
        OPFClassifier(metric="precomputed"),
        SemiSupervisedOPFClassifier(),
    ],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(type(estimator), {}),
)
@pytest.mark.filterwarnings("ignore:.*array_api.*:UserWarning")
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)
