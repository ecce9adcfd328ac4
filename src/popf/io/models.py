"""Save, load and describe models, and bring frames into the order that a model was fitted on."""

import difflib
import json
import os
import platform
import warnings
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from popf.files import replacing
from popf.formatting import listed
from popf.io import container
from popf.io.container import ModelFileError
from popf.io.encoding import MODELS, TOP, Decoder, Encoder

LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")
# How many names a message lists.
SHOWN = 10


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

    Examples
    --------
    >>> import os, tempfile
    >>> import popf, popf.io
    >>> model = popf.OPFClassifier().fit([[0.0], [1.0], [4.0]], ["a", "a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.popf")
    ...     popf.save(model, path, facts={"source": "a doctest"})
    ...     same, known = popf.load(path), popf.io.describe(path)
    >>> same.predict([[3.0]])
    array(['b'], dtype='<U1')
    >>> known["estimator"], known["classes"], known["class_counts"], known["facts"]
    ('OPFClassifier', ['a', 'b'], [2, 1], {'source': 'a doctest'})
    >>> try:
    ...     popf.load(os.__file__)
    ... except popf.io.ModelFileError as error:
    ...     print(os.path.basename(str(error)))
    os.py is not a popf model: it does not begin as one.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the name of a file, not {path!r}.")
    final = _final_estimator(model)
    encoder = Encoder()
    if type(final).__name__ not in MODELS:
        encoder.value(final, TOP)  # names what it is, and the remedy
        raise TypeError(f"{TOP} must end in an estimator of popf, not in {final!r}.")
    check_is_fitted(final)
    try:
        noted = json.loads(json.dumps(dict(facts or {}), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"facts must be text, finite numbers, lists and dicts of these: {error}."
        ) from None
    header = {
        "popf_version": version("popf"),
        "saved": datetime.now(UTC).isoformat(timespec="seconds"),
        **facts_of(model, final, X),
        "libraries": {"python": platform.python_version(), **versions()},
        "facts": noted,
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
    """
    header, arrays = container.read(path)
    try:
        decoder = Decoder(arrays)
        model = decoder.value(header["model"])
        decoder.finish()
        final = _final_estimator(model)
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
    """
    header, _ = container.read(path, only_header=True)
    header.pop("model", None)
    return header


def facts_of(model: Any, final: Any, X: Any) -> dict[str, Any]:
    """Describe a fitted model in plain values; `final` is its last step, `X` has the dtypes of its columns."""
    opf = getattr(final, "opf_", final)
    codes = opf.forest_.codes
    classes = opf.classes_.tolist() if hasattr(opf, "classes_") else []  # none of clusters
    names = getattr(model, "feature_names_in_", None)
    n_features = int(getattr(model, "n_features_in_", final.n_features_in_))
    dtypes = [None] * n_features if X is None else _column_dtypes(X)
    if len(dtypes) != n_features:
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
            {"name": None if names is None else str(names[i]), "dtype": dtype}
            for i, dtype in enumerate(dtypes)
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


def versions() -> dict[str, str]:
    """Give the versions of the libraries that a model depends on."""
    return {name: version(name) for name in LIBRARIES}


def _final_estimator(model: Any) -> Any:
    """Give the estimator at the end of a pipeline, or the model itself."""
    steps = getattr(model, "steps", None)
    return model if steps is None else steps[-1][1]


def align(model: Any, frame: Any, *, extra: str = "warn") -> Any:
    """Give the columns that a model wants, in its order.

    Parameters
    ----------
    model : estimator
        Fitted. If it was fitted without names of features, only their number is checked.
    frame : pandas or polars DataFrame, pyarrow Table or array
        What is to be predicted. An array has no names, so that only the number of columns is checked.
    extra : {"warn", "ignore", "error"}, default="warn"
        What to do about columns that the model does not know. They are left out in any case.

    Returns
    -------
    as `frame`
        With the columns of ``model.feature_names_in_``.

    Raises
    ------
    ValueError
        If columns are missing, or occur twice.

    Examples
    --------
    >>> import pandas
    >>> from popf import OPFClassifier
    >>> from popf.io import align
    >>> training = pandas.DataFrame({"demand": [0.0, 1.0, 4.0], "peak": [1.0, 1.0, 9.0]})
    >>> model = OPFClassifier().fit(training, ["no", "no", "yes"])
    >>> new = pandas.DataFrame({"id": [17], "peak": [8.0], "demand": [3.0]})
    >>> align(model, new, extra="ignore")
       demand  peak
    0     3.0   8.0
    >>> align(model, new[["peak"]])
    Traceback (most recent call last):
        ...
    ValueError: the model needs a column that is missing: 'demand'. There are: 'peak'.
    """
    if extra not in ("warn", "ignore", "error"):
        raise ValueError(f"`extra` must be 'warn', 'ignore' or 'error', not {extra!r}.")
    wanted = getattr(model, "feature_names_in_", None)
    columns = getattr(frame, "column_names", None)  # pyarrow; its `columns` are the data
    columns = getattr(frame, "columns", None) if columns is None else columns
    if wanted is None or columns is None:
        n_columns = len(columns) if columns is not None else np.shape(frame)[-1]
        if n_columns != model.n_features_in_:
            whose = "was fitted without names of columns" if wanted is None else "got no names"
            raise ValueError(
                f"the model needs {model.n_features_in_} columns, but there are {n_columns}; as it {whose}, "
                "it cannot tell which are meant."
            )
        return frame
    names, have = [str(name) for name in wanted], list(columns)
    count = Counter(have)
    missing = [name for name in names if name not in count]
    if missing:
        raise ValueError(_missing(missing, [str(name) for name in have]))
    twice = [name for name in names if count[name] > 1]
    if twice:
        raise ValueError(
            f"{_quoted(twice)} occurs more than once among the columns: rename or drop the others."
        )
    unknown = [name for name in have if name not in set(names)]
    if unknown and extra == "error":
        raise ValueError(f"the model does not know these columns: {_quoted(unknown)}.")
    if unknown and extra == "warn":
        message = f"the model does not know these columns, and ignores them: {_quoted(unknown)}."
        warnings.warn(message, UserWarning, stacklevel=2)
    if have == names:
        return frame
    return frame.select(names) if hasattr(frame, "column_names") else frame[names]


def _column_dtypes(frame: Any) -> list[Any]:
    """List the dtypes of the columns as text."""
    schema: Any = getattr(frame, "schema", None)
    if hasattr(schema, "types"):  # pyarrow
        return [str(dtype) for dtype in schema.types]
    dtypes = getattr(frame, "dtypes", None)
    if dtypes is not None:
        return [str(dtype) for dtype in dtypes]
    array = np.asarray(frame)
    return [str(array.dtype)] * (array.shape[1] if array.ndim == 2 else 1)


def _missing(missing: list[str], have: list[str]) -> str:
    """Say what is missing, and what may be meant by it."""
    many = f"{len(missing)} columns that are" if len(missing) > 1 else "a column that is"
    message = f"the model needs {many} missing: {_quoted(missing)}."
    for name in missing[:SHOWN]:
        near = difflib.get_close_matches(name, have, n=1)
        if near:
            return f"{message} Is {near[0]!r} meant for {name!r}?"
    return f"{message} There are: {_quoted(have) or 'none'}."


def _quoted(names: list[Any]) -> str:
    return listed([repr(name) for name in names], SHOWN)
