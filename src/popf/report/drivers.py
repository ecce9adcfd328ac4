"""What drives a model: the contribution of every column, and how the probability depends on the largest."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from popf.display.estimators import last_step
from popf.display.log_odds import split_log_odds
from popf.engine.structures import FloatArray, ceil_div
from popf.metrics.checks import is_missing
from popf.report.numbers import figure, plain
from popf.table_models.cautions import cautions_of

#: Number of columns to list, and of those whose dependence is shown.
MAX_BARS, MAX_CURVES = 12, 4
#: Number of samples for the contributions, and for the mean probability at every value.
N_CONTRIBUTIONS, N_AVERAGED = 2_000, 100
#: Maximum number of levels, and the quantiles at which numbers with more values are shown.
MAX_LEVELS, QUANTILES = 8, np.linspace(0.05, 0.95, 9)


@dataclass(frozen=True)
class Dependence:
    """The mean probability if a column has a value in all samples, and everything else stays."""

    name: str
    values: list[str]
    places: FloatArray | None  # from 0 to 1, of numbers and dates; None for levels
    probability: FloatArray


@dataclass(frozen=True)
class Drivers:
    """What drives a model."""

    bars: list[tuple[str, float, float]]  # name, mean absolute contribution, share of the largest
    forest: tuple[float, float]  # the same of the forest
    hidden: int  # number of columns that are not listed
    curves: list[Dependence]
    cautions: list[str]


def drivers_of(model: Any, X: Any, code: int, cautions: Any = None) -> Drivers | None:
    """Find what drives a model on samples; None for the paper's method.

    `code` is the number of the class whose probability is shown. `cautions` are sentences on columns that
    deserve a second look, None to look at the training samples.
    """
    final = last_step(model)
    if not hasattr(final, "explain_proba") or final.table_ is None:
        return None
    some = _safe_indexing(X, np.arange(0, len(X), ceil_div(len(X), N_CONTRIBUTIONS)))
    split = split_log_odds(model, some)
    if not hasattr(X, "columns") and hasattr(model, "feature_names_in_"):
        split.feature_names[:] = [str(name) for name in model.feature_names_in_]
    sizes = split.importances()
    forest = sizes.pop("forest")
    largest = max([forest, *sizes.values()]) or 1.0
    bars = [(plain(name), size, size / largest) for name, size in sizes.items() if size > 0.0]
    curves = []
    if hasattr(X, "columns"):
        X = _as_pandas(X)  # in which columns can be replaced
        few = X.iloc[:: ceil_div(len(X), N_AVERAGED)]
        names = {str(name): name for name in X.columns}
        shown = [names[name] for name, size in sizes.items() if size > 0.0 and name in names]
        curves = [dependence(model, X, few, name, code) for name in shown[:MAX_CURVES]]
    if cautions is None and final is model:
        labels = final.opf_.forest_.codes
        cautions = cautions_of(final.table_.columns, final.samples_, labels).sentences()
    sentences = [sentence.partition(" If not: ")[0] for sentence in cautions or []]
    return Drivers(
        bars[:MAX_BARS],
        (forest, forest / largest),
        max(0, len(bars) - MAX_BARS),
        curves,
        [plain(sentence) for sentence in sentences],
    )


def _as_pandas(X: Any) -> Any:
    """Return a frame, such as one of Polars, as one of pandas."""
    if hasattr(X, "iloc"):
        return X
    from pandas import DataFrame

    return DataFrame(X.to_dict(as_series=False))


def dependence(model: Any, X: Any, few: Any, name: Any, code: int) -> Dependence:
    """Compute the mean probability of a class over some samples, by the value of a column."""
    column = X[name]
    places = None
    if column.dtype.kind in "iufM" and column.nunique() > MAX_LEVELS:
        values = column.quantile(QUANTILES, interpolation="nearest").drop_duplicates()
        places = ((values - values.iloc[0]) / (values.iloc[-1] - values.iloc[0])).to_numpy(float)
    else:
        values = column.value_counts(dropna=False).index[:MAX_LEVELS]
    found, replaced = [], few.copy()
    for value in values:
        cells = [None if is_missing(value) else value] * len(few)
        replaced[name] = type(column)(cells, index=few.index, dtype=column.dtype)
        found.append(model.predict_proba(replaced)[:, code].mean())
    shown = [plain("missing" if is_missing(value) else figure(value)) for value in values]
    return Dependence(plain(name), shown, places, np.array(found))
