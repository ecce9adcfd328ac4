"""What all estimators of popf take: checks of their parameters, and what they mean."""

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.utils.validation import _check_sample_weight

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from popf.forest.metrics import Metric
    from popf.solvers import Solver

ALGORITHMS = ("auto", "kd_tree", "brute", "prim")
SOLVERS = ("newton", "nelder-mead", "pso", "bat", "firefly")


def check_algorithm(algorithm: str, metric: "Metric") -> None:
    """Raise ValueError unless `algorithm` is one, and serves the metric."""
    if algorithm not in ALGORITHMS:
        names = ", ".join(map(repr, ALGORITHMS))
        raise ValueError(f"algorithm must be one of {names}, not {algorithm!r}.")
    if algorithm in ("kd_tree", "brute") and not metric.euclidean:
        raise ValueError(
            f"algorithm {algorithm!r} serves Euclidean distances only, not metric "
            f"{metric.name!r}: use algorithm='auto' or 'prim'."
        )


def n_threads_of(n_jobs: Any) -> int:
    """Say how many threads `n_jobs` means, as joblib does.

    Examples
    --------
    >>> from popf.forest.parameters import n_threads_of
    >>> n_threads_of(None), n_threads_of(3)
    (1, 3)
    """
    if not (n_jobs is None or (isinstance(n_jobs, Integral) and n_jobs != 0)):
        raise ValueError(
            f"n_jobs must be a number of threads, None for 1 or -1 for all cores, not {n_jobs!r}."
        )
    n_threads: int = effective_n_jobs(n_jobs)
    return n_threads


def n_bytes_of(working_memory: Any) -> int:
    """Say how many bytes a limit in MiB means, None for scikit-learn's own.

    Examples
    --------
    >>> from popf.forest.parameters import n_bytes_of
    >>> n_bytes_of(1.5)
    1572864
    """
    if working_memory is None:
        working_memory = get_config()["working_memory"]
    if not (isinstance(working_memory, Real) and 0.0 < float(working_memory) < np.inf):
        raise ValueError(
            f"working_memory must be a positive number of MiB, not {working_memory!r}."
        )
    return int(float(working_memory) * 2**20)


def solver_of(solver: Any) -> "Solver":
    """Say which solver a name means; an object of `popf.solvers` means itself.

    Examples
    --------
    >>> from popf.forest.parameters import solver_of
    >>> solver_of("pso")
    PSO()
    """
    from popf import solvers

    if isinstance(solver, str):
        makers = (solvers.Newton, solvers.NelderMead, solvers.PSO, solvers.Bat, solvers.Firefly)
        named = dict(zip(SOLVERS, makers, strict=True))
        if solver not in named:
            raise ValueError(f"solver must be one of {SOLVERS} or a solver, not {solver!r}.")
        made: Solver = named[solver]()
        return made
    if not isinstance(solver, solvers.Solver):
        raise TypeError(
            f"solver must be one of {SOLVERS} or an object of popf.solvers, not {solver!r}."
        )
    return solver


def kept_samples(X: NDArray[np.float64], sample_weight: ArrayLike | None) -> NDArray[np.int64]:
    """Find the samples of positive weight; the others count as absent."""
    if sample_weight is None:
        return np.arange(len(X))
    weight = _check_sample_weight(sample_weight, X)
    for row in np.flatnonzero(weight < 0.0):
        raise ValueError(
            f"sample_weight[{row}] is {weight[row]}, but weights must not be negative. Leave a "
            "sample out by a weight of 0."
        )
    kept = np.flatnonzero(weight > 0.0)
    if len(kept) == 0:
        raise ValueError(
            "sample_weight is zero everywhere, which leaves no samples: give some of them a "
            "positive weight."
        )
    return kept


def set_precomputed_tags(tags: "Tags", metric: Any) -> "Tags":
    """Tell scikit-learn what X is: with distances computed beforehand, a matrix of them."""
    tags.input_tags.pairwise = tags.input_tags.positive_only = metric == "precomputed"
    return tags
