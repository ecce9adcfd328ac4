"""Frames in the order of columns that a model was fitted on."""

import warnings
from collections import Counter
from typing import Any

import numpy as np

from popf.formatting import listed, near_words

# How many names a message lists.
SHOWN = 10


def align(model: Any, frame: Any, *, extra: str = "warn") -> Any:
    """Give the columns that a model wants, in its order.

    Parameters
    ----------
    model : estimator
        Fitted. If it was fitted without names of features, only their number is checked.
    frame : pandas or polars DataFrame, pyarrow Table or array
        What is to be predicted; of an array only the number of columns is checked.
    extra : {"warn", "ignore", "error"}, default="warn"
        What to do about columns that the model does not know, which are left out.

    Returns
    -------
    as `frame`
        With the columns of ``model.feature_names_in_``.

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
        many = f"{len(missing)} columns that are" if len(missing) > 1 else "a column that is"
        there = [str(name) for name in have]
        raise ValueError(
            f"the model needs {many} missing: {_quoted(missing)}{near_words(missing[0], there)} "
            f"There are: {_quoted(there) or 'none'}."
        )
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


def _quoted(names: list[Any]) -> str:
    return listed([repr(name) for name in names], SHOWN)
