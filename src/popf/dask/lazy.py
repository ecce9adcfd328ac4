"""Lazy predictions: partitions stay what they are, and each meets the parts of the model."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.dask.model import Part
from popf.dask.sources import check_chunk
from popf.dask.untyped import da, dask, delayed
from popf.engine.structures import FloatArray
from popf.forest.devices import to_host

# Rows in a chunk of an array that is in memory.
CHUNK_ROWS = 65_536


class Query(NamedTuple):
    """What is asked of a model, in three steps."""

    offer: Callable[[Part, FloatArray], FloatArray]  # of one part of the model, for samples
    combine: Callable[..., FloatArray]  # the offers of all parts
    finish: Callable[
        [FloatArray, FloatArray], NDArray[Any]
    ]  # from offers and samples to predictions
    columns: NDArray[Any] | None  # what the columns of predictions stand for
    dtype: Any


def run_query(query: Query, parts: list[Any], X: Any, client: Any) -> Any:
    """Predict for samples, in partitions as X is, by the delayed parts of a model.

    For X in memory predictions are computed at once, and are of the same kind.
    """
    if hasattr(X, "to_dask_array"):
        return _run_on_frame(query, parts, X)
    if isinstance(X, da.Array):
        return _run_on_array(query, parts, X)
    if hasattr(X, "iloc"):
        import pandas as pd

        pieces = [X.iloc[i : i + CHUNK_ROWS] for i in range(0, max(len(X), 1), CHUNK_ROWS)]
        lazy = [_run_on_partition(query, parts, delayed(piece)) for piece in pieces]
        return pd.concat(dask.compute(*lazy, scheduler=client))
    whole = da.from_array(check_chunk(np.asarray(to_host(X))), chunks=(CHUNK_ROWS, -1))
    return _run_on_array(query, parts, whole).compute(scheduler=client)


def _run_on_array(query: Query, parts: list[Any], X: Any) -> Any:
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    width = () if query.columns is None else (len(query.columns),)
    meta = np.empty((0,) * (1 + len(width)), dtype=query.dtype)
    predictions = [
        da.from_delayed(_run_on_partition(query, parts, rows), (size, *width), meta=meta)
        for rows, size in zip(X.to_delayed().ravel(), X.chunks[0], strict=True)
    ]
    return da.concatenate(predictions, allow_unknown_chunksizes=True)


def _run_on_frame(query: Query, parts: list[Any], X: Any) -> Any:
    # The prediction for no rows has the names and types.
    meta = _predict(query, import_module("dask.dataframe.utils").make_meta(X))
    predictions = [_run_on_partition(query, parts, rows) for rows in X.to_delayed()]
    from_delayed = import_module("dask.dataframe").from_delayed
    return from_delayed(predictions, meta=meta, divisions=X.divisions, verify_meta=False)


def _run_on_partition(query: Query, parts: list[Any], X: Any) -> Any:
    offers = [delayed(_offer_of_part)(query, part, X) for part in parts]
    return delayed(_predict)(query, X, *offers)


def _offer_of_part(query: Query, part: Part, X: Any) -> FloatArray | None:
    """Compute what one part of the model offers; None for no rows."""
    checked = check_chunk(X)
    part.metric.check(checked)
    return query.offer(part, checked) if len(checked) else None


def _predict(query: Query, X: Any, *offers: FloatArray | None) -> Any:
    """Combine the offers into the prediction for a partition, of the same kind as that."""
    if len(X) == 0:
        shape = (0,) if query.columns is None else (0, len(query.columns))
        values: NDArray[Any] = np.empty(shape, dtype=query.dtype)
    else:
        values = query.finish(query.combine(*offers), check_chunk(X))
    if not hasattr(X, "index"):
        return values
    import pandas as pd

    if query.columns is None:
        return pd.Series(values, index=X.index, dtype=query.dtype)
    return pd.DataFrame(values, index=X.index, columns=query.columns)
