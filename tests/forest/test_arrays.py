"""Arrays of other libraries: the same numbers as from NumPy's, in the library they came in."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal

from popf import OPFClassifier, OPFClustering, PlattOPFClassifier, POPFClassifier
from strategies import blobs

MODELS = [OPFClassifier, POPFClassifier, PlattOPFClassifier, OPFClustering]


def scikit_learn(dispatch):
    """scikit-learn with its own support of such arrays, or without."""
    try:
        sklearn.set_config(array_api_dispatch=dispatch)
    except (ImportError, RuntimeError) as error:
        pytest.skip(str(error))
    sklearn.set_config(array_api_dispatch=False)
    return sklearn.config_context(array_api_dispatch=dispatch)


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
@pytest.mark.parametrize("dispatch", [False, True])
@pytest.mark.parametrize("kind", MODELS)
def test_arrays_come_back_in_their_library(kind, dispatch, library):
    module = pytest.importorskip(library)
    X, y = blobs(60)
    there, labels = module.asarray(X), module.asarray(y)
    plain = kind().fit(X, y)
    with scikit_learn(dispatch):
        model = kind().fit(there, labels)
        for method in ("predict", "predict_proba", "decision_function"):
            if hasattr(model, method):
                found = getattr(model, method)(there)
                assert type(found) is type(there)
                assert_array_equal(np.from_dlpack(found), getattr(plain, method)(X))


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
def test_labels_of_text_stay_in_numpy(library):
    module = pytest.importorskip(library)
    X, y = blobs(60)
    words = np.array(["no", "yes"])[(y > y.min()).astype(int)]
    found = POPFClassifier("forest").fit(module.asarray(X), words).predict(module.asarray(X))
    assert type(found) is np.ndarray
    assert set(found) == {"no", "yes"}
