"""Columns by name: frames brought into the order that a model was fitted on."""

import difflib
import warnings
from collections import Counter
from typing import Any

import numpy as np

from popf.formatting import listed

# How many names a message lists.
SHOWN = 10


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
    have = column_names(frame)
    if wanted is None or have is None:
        n_columns = len(have) if have is not None else np.shape(frame)[-1]
        if n_columns != model.n_features_in_:
            whose = "was fitted without names of columns" if wanted is None else "got no names"
            raise ValueError(
                f"the model needs {model.n_features_in_} columns, but there are {n_columns}; as it {whose}, "
                "it cannot tell which are meant."
            )
        return frame
    names = [str(name) for name in wanted]
    count = Counter(have)
    missing = [name for name in names if name not in count]
    if missing:
        raise ValueError(_missing(missing, have))
    twice = [name for name in names if count[name] > 1]
    if twice:
        raise ValueError(
            f"{_quoted(twice)} occurs more than once among the columns: rename or drop the others."
        )
    unknown = [name for name in have if name not in set(names)]
    if unknown and extra != "ignore":
        message = f"the model does not know these columns, and ignores them: {_quoted(unknown)}."
        if extra == "error":
            raise ValueError(message.replace(", and ignores them", ""))
        warnings.warn(message, UserWarning, stacklevel=2)
    if have == names:
        return frame
    return frame.select(names) if hasattr(frame, "column_names") else frame[names]


def column_names(frame: Any) -> list[Any] | None:
    """List the names of the columns, None for an array."""
    names = getattr(frame, "column_names", None)  # pyarrow; its `columns` are the data
    if names is None:
        names = getattr(frame, "columns", None)
    return None if names is None else list(names)


def column_dtypes(frame: Any) -> list[str] | None:
    """List the dtypes of the columns as text, None if there is no frame."""
    if frame is None:
        return None
    schema: Any = getattr(frame, "schema", None)
    if hasattr(schema, "types"):  # pyarrow
        return [str(dtype) for dtype in schema.types]
    dtypes = getattr(frame, "dtypes", None)
    if dtypes is not None:
        return [str(dtype) for dtype in dtypes]
    array = np.asarray(frame)
    return [str(array.dtype)] * (array.shape[1] if array.ndim == 2 else 1)


def _missing(missing: list[str], have: list[Any]) -> str:
    """Say what is missing, and what may be meant by it."""
    many = f"{len(missing)} columns that are" if len(missing) > 1 else "a column that is"
    message = f"the model needs {many} missing: {_quoted(missing)}."
    texts = [str(name) for name in have]
    for name in missing[:SHOWN]:
        near = difflib.get_close_matches(name, texts, n=1)
        if near:
            return f"{message} Is {near[0]!r} meant for {name!r}?"
    return f"{message} There are: {_quoted(texts) or 'none'}."


def _quoted(names: list[Any]) -> str:
    return listed([repr(name) for name in names], SHOWN)
