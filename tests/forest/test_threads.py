"""OPFClassifier in threads and processes: they change nothing, and leave all as it was."""

from contextlib import ExitStack
from multiprocessing.pool import ThreadPool

import joblib
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import cross_val_score
from threadpoolctl import threadpool_info, threadpool_limits

from estimator_problems import ALGORITHMS, BLOB, BLOBS
from popf import OPFClassifier
from popf.engine.runtime.threads import one_blas_thread
from strategies import assert_same_forest


def test_forests_may_be_grown_and_one_forest_asked_in_several_threads_at_a_time():
    one = OPFClassifier().fit(BLOBS, BLOB)
    expected = OPFClassifier().fit(BLOBS, BLOB).decision_function(BLOBS + 0.1)

    def grow(algorithm):
        forest = OPFClassifier(algorithm=algorithm, n_jobs=2, working_memory=0.01)
        forest.fit(BLOBS, BLOB)
        return forest, forest.decision_function(BLOBS + 0.1), one.decision_function(BLOBS + 0.1)

    with ThreadPool(6) as pool:
        for forest, *decisions in pool.map(grow, ALGORITHMS * 4):
            assert_same_forest(forest, one)
            assert_array_equal(decisions, [expected, expected])


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_cross_validation_in_parallel(backend):
    model = OPFClassifier(algorithm="brute", n_jobs=2)
    with joblib.parallel_config(backend=backend):
        scores = cross_val_score(model, BLOBS, BLOB, cv=4, n_jobs=2)
    assert_array_equal(scores, cross_val_score(model, BLOBS, BLOB, cv=4))


def test_fits_that_overlap_leave_blas_its_threads():
    def n_threads():
        return {about["num_threads"] for about in threadpool_info() if about["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        with ExitStack() as first, ExitStack() as second:
            first.enter_context(one_blas_thread())
            second.enter_context(one_blas_thread())
            assert n_threads() == {1}
            first.close()
            assert n_threads() == {1}  # the second is not done
            second.close()
        assert n_threads() == {2}
