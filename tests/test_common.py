"""scikit-learn's own checks of an estimator, all of them."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from popf import OPFClassifier

#: Checks expected to fail, each with its reason. None is.
EXPECTED_FAILURES: dict[str, str] = {}


@parametrize_with_checks(
    [
        OPFClassifier(),
        OPFClassifier(algorithm="kd_tree"),
        OPFClassifier(algorithm="brute"),
        OPFClassifier(algorithm="prim"),
        OPFClassifier(metric="manhattan", n_jobs=2),
        OPFClassifier(metric="precomputed"),
    ],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
@pytest.mark.filterwarnings("ignore:.*array_api.*:UserWarning")
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)
