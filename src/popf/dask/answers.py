"""Lazy predictions: partitions stay what they are, and each meets the parts of the model."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.dask.model import Part
from popf.dask.sources import check_chunk
from popf.dask.untyped import da, dask, delayed
from popf.forest.devices import to_host

FloatArray = NDArray[np.float64]

# Rows in a chunk of an array that is in memory.
CHUNK_ROWS = 65_536


class Question(NamedTuple):
    """What is asked of a model, in three steps.

    Attributes
    ----------
    offer : callable
        ``offer(part, X)`` gives what one part of the model says.
    combine : callable
        ``combine(*offers)`` gives what all say.
    finish : callable
        ``finish(offers)`` gives the answer.
    columns : ndarray or None
        What the columns of the answer stand for, None if it has no columns.
    dtype : dtype
    """

    offer: Callable[[Part, FloatArray], FloatArray]
    combine: Callable[..., FloatArray]
    finish: Callable[[FloatArray], NDArray[Any]]
    columns: NDArray[Any] | None
    dtype: Any


def offer_of_part(question: Question, part: Part, X: Any) -> FloatArray | None:
    """Ask one part of the model; None for no rows."""
    checked = check_chunk(X)
    part.shell.metric.check(checked)
    return question.offer(part, checked) if len(checked) else None


def answer(question: Question, X: Any, *offers: FloatArray | None) -> Any:
    """Combine what the parts say into the answer for a partition, of the same kind as that."""
    if len(X) == 0:
        shape = (0,) if question.columns is None else (0, len(question.columns))
        values: NDArray[Any] = np.empty(shape, dtype=question.dtype)
    else:
        values = question.finish(question.combine(*offers))
    return _like(values, X, question)


def _like(values: NDArray[Any], X: Any, question: Question) -> Any:
    if not hasattr(X, "index"):
        return values
    import pandas as pd

    if question.columns is None:
        return pd.Series(values, index=X.index, dtype=question.dtype)
    return pd.DataFrame(values, index=X.index, columns=question.columns)


def ask(question: Question, parts: list[Any], X: Any, client: Any) -> Any:
    """Ask a model about samples.

    Parameters
    ----------
    question : Question
    parts : list
        Delayed parts of the model.
    X : Dask array or dataframe, or array or dataframe in memory
    client : distributed.Client or None
        Where to ask at once about samples that are in memory.

    Returns
    -------
    Dask array, dataframe or series; of the kind of X if that is in memory
        In partitions as X is.
    """
    if hasattr(X, "to_dask_array"):
        return _ask_frame(question, parts, X)
    if isinstance(X, da.Array):
        return _ask_array(question, parts, X)
    if hasattr(X, "iloc"):
        import pandas as pd

        pieces = [X.iloc[i : i + CHUNK_ROWS] for i in range(0, max(len(X), 1), CHUNK_ROWS)]
        lazy = [_ask_one(question, parts, delayed(piece)) for piece in pieces]
        return pd.concat(dask.compute(*lazy, scheduler=client))
    whole = da.from_array(check_chunk(np.asarray(to_host(X))), chunks=(CHUNK_ROWS, -1))
    return _ask_array(question, parts, whole).compute(scheduler=client)


def _ask_one(question: Question, parts: list[Any], X: Any) -> Any:
    offers = [delayed(offer_of_part)(question, part, X) for part in parts]
    return delayed(answer)(question, X, *offers)


def _ask_array(question: Question, parts: list[Any], X: Any) -> Any:
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    width = () if question.columns is None else (len(question.columns),)
    meta = np.empty((0,) * (1 + len(width)), dtype=question.dtype)
    answers = [
        da.from_delayed(_ask_one(question, parts, rows), (size, *width), meta=meta)
        for rows, size in zip(X.to_delayed().ravel(), X.chunks[0], strict=True)
    ]
    return da.concatenate(answers, allow_unknown_chunksizes=True)


def _ask_frame(question: Question, parts: list[Any], X: Any) -> Any:
    # The answer for no rows tells names and types.
    meta = answer(question, X._meta)
    answers = [_ask_one(question, parts, rows) for rows in X.to_delayed()]
    from_delayed = import_module("dask.dataframe").from_delayed
    return from_delayed(answers, meta=meta, divisions=X.divisions, verify_meta=False)
