"""Models in files that are safe to share: save, load, describe."""

import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from popf.files import replacing
from popf.io import container
from popf.io.codec import Decoder, Encoder
from popf.io.columns import column_dtypes
from popf.io.container import ModelFileError
from popf.io.estimators import (
    MODELS,
    TOP,
    decode_estimator,
    encode_estimator,
    final_estimator,
)

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    X: Any = None,
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Save a fitted model to a file that can be opened without running any code.

    The file appears in one step, when it is whole: if saving fails, what was there before stays.

    Parameters
    ----------
    model : estimator of popf, or Pipeline
        Fitted. A pipeline ends in such an estimator; before it may stand scalers of scikit-learn and popf's own
        transformers.
    path : str or path-like
        Where to; ``model.popf``, say.
    X : frame or array, default=None
        The training samples, or some rows of them: the dtypes of its columns are noted in the file.
    facts : mapping, default=None
        What else to note, such as where the data came from: text, numbers, lists and dicts of these.

    Raises
    ------
    TypeError
        If something in the model cannot be saved so: a metric that is a function, another kind of step. For
        these there is skops, with `popf.io.trusted_types`.

    See Also
    --------
    load : Opens the file.
    popf.io.describe : Says what is in it.

    Examples
    --------
    >>> import os, tempfile
    >>> import popf
    >>> model = popf.OPFClassifier().fit([[0.0], [1.0], [4.0]], ["a", "a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.popf")
    ...     popf.save(model, path)
    ...     popf.load(path).predict([[3.0]])
    array(['b'], dtype='<U1')
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the name of a file, not {path!r}.")
    final = final_estimator(model)
    encoder = Encoder(encode_estimator)
    if type(final).__name__ not in MODELS:
        encode_estimator(final, encoder, TOP)  # names what it is, and the remedy
        raise TypeError(f"{TOP} must end in an estimator of popf, not in {final!r}.")
    check_is_fitted(final)
    header = {
        "popf_version": version("popf"),
        "saved": datetime.now(UTC).isoformat(timespec="seconds"),
        **facts_of(model, final, X),
        "libraries": {"python": platform.python_version(), **versions()},
        "facts": _plain_facts(facts),
        "model": encoder.value(model, TOP),
    }
    with replacing(path) as file:
        container.write(file, header, encoder.arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """Open a model that `save` has written.

    The model answers exactly as it did when it was saved. No code in the file is run, whoever wrote it: see
    :doc:`/models`. `n_jobs`, `working_memory` and `device` are not kept: set them after loading.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    The model, or the Pipeline.

    Raises
    ------
    popf.io.ModelFileError
        If the file is not a popf model, is damaged, or was written by a newer popf.

    See Also
    --------
    popf.io.align : Brings the columns of a frame into the order that the model wants.
    """
    header, arrays = container.read(path)
    try:
        decoder = Decoder(arrays, decode_estimator)
        model = decoder.value(header["model"])
        decoder.finish()
        final = final_estimator(model)
        if type(final).__name__ not in MODELS:
            raise ValueError("it does not end in a forest")
        check_is_fitted(final)
    except Exception as error:
        # The checksum was right, so this was written so: by another popf, or by someone with a purpose.
        raise ModelFileError(
            f"{path} is whole, but holds no model that this popf ({version('popf')}) can make: "
            f"{container.brief(error)}."
        ) from error
    return model


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Describe what is in a model file, without loading the model.

    Only the header is read, and its checksum compared.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    dict
        Plain values, fit for JSON: ``estimator``, ``steps``, ``parameters``, ``features`` (name and dtype of
        each, None where unknown), ``n_samples``, ``n_features``, ``classes``, ``class_counts``, ``saved``,
        ``popf_version``, ``libraries``, ``facts``, ``format_version``, ``file_bytes``, ``sha256``.

    Examples
    --------
    >>> import os, tempfile
    >>> import popf, popf.io
    >>> model = popf.OPFClassifier().fit([[0.0], [1.0], [4.0]], ["a", "a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.popf")
    ...     popf.save(model, path, facts={"source": "a doctest"})
    ...     known = popf.io.describe(path)
    >>> known["estimator"], known["classes"], known["class_counts"], known["facts"]
    ('OPFClassifier', ['a', 'b'], [2, 1], {'source': 'a doctest'})
    """
    header, _ = container.read(path, only_header=True)
    header.pop("model", None)
    return header


def facts_of(model: Any, final: Any, X: Any) -> dict[str, Any]:
    """Tell what people want to know of a fitted model, in plain values; `final` is its last step.

    The dtypes of the columns are those of `X`, a frame or array, if it is given.
    """
    opf = getattr(final, "opf_", final)
    codes = opf.forest_.codes
    classes = opf.classes_.tolist() if hasattr(opf, "classes_") else []  # none of clusters
    names = getattr(model, "feature_names_in_", None)
    n_features = int(getattr(model, "n_features_in_", final.n_features_in_))
    dtypes = column_dtypes(X)
    if dtypes is not None and len(dtypes) != n_features:
        raise ValueError(
            f"X has {len(dtypes)} columns, but the model was fitted on {n_features}: give the samples it "
            "was fitted on, or some rows of them."
        )
    return {
        "estimator": type(final).__name__,
        "steps": [
            [label, step if isinstance(step, str) else type(step).__name__]
            for label, step in getattr(model, "steps", [])
        ],
        "parameters": {name: shown(value) for name, value in final.get_params(deep=False).items()},
        "n_samples": len(codes),
        "n_features": n_features,
        "n_prototypes": len(np.unique(opf.roots_)),
        "features": [
            {
                "name": None if names is None else str(names[i]),
                "dtype": None if dtypes is None else dtypes[i],
            }
            for i in range(n_features)
        ],
        "classes": [shown(label) for label in classes],
        "class_counts": np.bincount(codes).tolist() if classes else [],
    }


def shown(value: Any) -> Any:
    """Give what JSON can hold as it is, anything else as Python would write it."""
    plain = value is None or isinstance(value, str | bool | int)
    if plain or (isinstance(value, float) and np.isfinite(value)):
        return value
    return repr(value)


def _plain_facts(facts: Mapping[str, Any] | None) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(facts or {}), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"facts must be text, finite numbers, lists and dicts of these: {error}."
        ) from None
    return plain


def versions() -> dict[str, str]:
    """Give the versions of the libraries that a model depends on."""
    return {name: version(name) for name in LIBRARIES}
