"""What `fit_table` is told, and whether it makes sense."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from popf.forest.metrics import METRIC_NAMES
from popf.formatting import unknown
from popf.probability.parameters import MAPS, METHODS
from popf.table_models.preparation import MISSING

MAP_CHOICES = ("none", *MAPS)


@dataclass(frozen=True)
class FitOptions:
    """What `fit_table` is told.

    Attributes
    ----------
    target : str
        The column with the labels.
    id, drop, categorical : sequence of str
        Columns that are carried through, left out, or categories although they look like numbers.
    one_per : str or None
        A column by which rows belong together, as all months of a consumer do: one random row of each is
        kept. Rows that are nearly alike make left-out probabilities too sure.
    sample_weight : str or None
        The column with weights, which are scaled to a mean of 1: only their ratios matter. A row of weight 0
        is left out before anything else.
    missing : {"refuse", "median", "mean"}
        What to do about missing numbers; a missing text is a category of its own.
    scale : bool
        Whether to standardise numbers.
    positive : str or None
        The class to find, of two; None for the rarer one, and of equally frequent ones the second in sorted
        order, unless a threshold or costs are given: then it must be named.
    threshold : float or None
        From which probability on a row is called positive.
    cost_fp, cost_fn : float or None
        What a false alarm and a miss cost: then the threshold of the least cost is chosen.
    method, linear_map, metric : str
        As for `POPFClassifier`; "none" is no map.
    test_size : float or None
        The share of the rows to keep aside, from each class alike.
    seed : int
    n_jobs : int
    """

    target: str
    id: Sequence[str] = ()
    drop: Sequence[str] = ()
    categorical: Sequence[str] = ()
    sample_weight: str | None = None
    missing: str = "refuse"
    scale: bool = True
    positive: str | None = None
    threshold: float | None = None
    cost_fp: float | None = None
    cost_fn: float | None = None
    method: str = "pooled"
    linear_map: str = "auto"
    metric: str = "euclidean"
    test_size: float | None = None
    seed: int = 0
    n_jobs: int | None = None
    one_per: str | None = None


def check_options(options: FitOptions) -> None:
    """Raise ValueError for options that are unknown, out of range or contradict each other."""
    for name, value, choices in (
        ("missing", options.missing, MISSING),
        ("method", options.method, METHODS),
        ("linear_map", options.linear_map, MAP_CHOICES),
    ):
        if value not in choices:
            raise ValueError(f"`{name}` must be one of {', '.join(choices)}, not {value!r}.")
    if options.metric == "precomputed":
        raise ValueError(
            "`metric='precomputed'` is for distances, and a table holds rows: take another."
        )
    if options.metric not in METRIC_NAMES:
        raise ValueError("`metric`: " + unknown("metric", options.metric, METRIC_NAMES))
    costs = (options.cost_fp, options.cost_fn)
    if (costs[0] is None) != (costs[1] is None):
        raise ValueError("`cost_fp` and `cost_fn` belong together: give both, or a `threshold`.")
    if costs[0] is not None and options.threshold is not None:
        raise ValueError(
            "`threshold` and `cost_fp`/`cost_fn` are two ways to say one thing: give one of them."
        )
    for name, cost in zip(("cost_fp", "cost_fn"), costs, strict=True):
        if cost is not None and not 0.0 < cost < np.inf:
            raise ValueError(f"`{name}` must be a positive number, not {cost:g}.")
    for name in ("threshold", "test_size"):
        value = getattr(options, name)
        if value is not None and not 0.0 < value < 1.0:
            raise ValueError(f"`{name}` must lie between 0 and 1, not at {value:g}.")
