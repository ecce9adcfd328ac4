"""Match the columns of new data with those that a model was fitted to."""

import warnings
from collections import Counter
from typing import Any

import numpy as np

from popf.formatting import check_choice, listed, near_words

#: Maximum number of columns in a message.
SHOWN = 8


def align(model: Any, frame: Any, *, extra: str = "warn") -> Any:
    """Select the columns of a frame that a model uses, in its order.

    Parameters
    ----------
    model : estimator
        A fitted model. If it was fitted without feature names, only their number is checked.
    frame : pandas or polars DataFrame, pyarrow Table or array
        The samples to predict; of an array only the number of columns is checked.
    extra : {"warn", "ignore", "error"}, default="warn"
        What to do about columns that the model does not use, which are left out.

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
    ValueError: the model needs a column that is missing: 'demand'. The columns are: 'peak'.
    """
    check_choice("`extra`", extra, ("warn", "ignore", "error"))
    wanted = getattr(model, "feature_names_in_", None)
    columns = getattr(frame, "column_names", None)  # pyarrow; its `columns` are the data
    columns = getattr(frame, "columns", None) if columns is None else columns
    if wanted is None or columns is None:
        n_columns = len(columns) if columns is not None else np.shape(frame)[-1]
        if n_columns != model.n_features_in_:
            fitted = "the model was fitted without column names"
            reason = fitted if wanted is None else "the data have no column names"
            raise ValueError(
                f"the model needs {model.n_features_in_} columns, but there are {n_columns}; columns cannot be "
                f"matched by name, as {reason}."
            )
        return frame
    names, have = [str(name) for name in wanted], list(columns)
    count, used = Counter(have), set(names)
    missing = [name for name in names if name not in count]
    if missing:
        many = f"{len(missing)} columns that are" if len(missing) > 1 else "a column that is"
        near = near_words(missing[0], [str(name) for name in have if name not in used])
        raise ValueError(
            f"the model needs {many} missing: {_quoted(missing)}{near} The columns are: "
            f"{_quoted(have) or 'none'}."
        )
    twice = [name for name in names if count[name] > 1]
    if twice:
        raise ValueError(
            f"{_quoted(twice)} occurs more than once among the columns: rename or drop the duplicates."
        )
    unknown = [name for name in have if name not in used]
    if unknown and extra == "error":
        raise ValueError(f"the model does not use these columns: {_quoted(unknown)}.")
    if unknown and extra == "warn":
        message = f"columns that the model does not use are ignored: {_quoted(unknown)}."
        warnings.warn(message, UserWarning, stacklevel=2)
    if have == names:
        return frame
    return frame.select(names) if hasattr(frame, "column_names") else frame[names]


def _quoted(names: list[Any]) -> str:
    return listed([repr(name) for name in names], SHOWN)
