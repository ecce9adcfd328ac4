"""A linear map before the soft competition: chosen, and its probabilities fitted, on held-out samples.

A map has seen the labels of the samples it was fitted on, so that they look better separated than new ones,
even when each is left out of the competition. Everything here is therefore measured in folds: the map and
the forest are made from the other folds, and the samples of the fold are scored as if they were new.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import has_fit_parameter

from popf.forest.optimum_path_forest import OptimumPathForest
from popf.forest.validation import Resources
from popf.probability.calibration import bandwidth_grid, rows_to_leave_out, unit_of_cost
from popf.probability.linear_maps import (
    DiscriminantStretch,
    EffectSizeWeights,
    WithinClassWhitening,
)
from popf.probability.soft_competition import LeftOut, SoftCompetition, fit_all

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MAPS: Mapping[str, Callable[[], Any]] = {
    "weights": EffectSizeWeights,
    "whitening": WithinClassWhitening,
    "discriminant": DiscriminantStretch,
}
NAMES = ("auto", *MAPS)
NONE = "none"
N_FOLDS = 5
# From how many samples, drawn by class, "auto" chooses at most.
N_TO_CHOOSE = 2000


class Problem(NamedTuple):
    """Training samples, and how to grow a forest on them.

    Attributes
    ----------
    samples : ndarray of shape (n_samples, n_features)
    codes : ndarray of shape (n_samples,)
        The class of each.
    weights : ndarray of shape (n_samples,)
        Positive.
    grow : callable
        Grows a forest on samples and codes.
    n_threads, n_bytes : int
        What may be used.
    smoothing : float
        Of the targets; see `popf.solvers.platt_targets`.
    """

    samples: FloatArray
    codes: IntArray
    weights: FloatArray
    grow: Callable[[FloatArray, IntArray], OptimumPathForest]
    n_threads: int
    n_bytes: int
    smoothing: float = 1.0

    def take(self, rows: IntArray) -> "Problem":
        """Keep some of the samples."""
        return self._replace(
            samples=self.samples[rows], codes=self.codes[rows], weights=self.weights[rows]
        )


class Fitted(NamedTuple):
    """A map that was fitted to all samples, and what is known of it.

    Attributes
    ----------
    transformer : object or None
        None for no map.
    held_out : tuple of LeftOut and ndarray, or None
        Scores of samples that neither map nor forest had seen, and their bandwidths.
    losses : dict
        The held-out log loss of every map that was tried, by name.
    """

    transformer: Any
    held_out: tuple[LeftOut, FloatArray] | None
    losses: dict[str, float]


def check_map(choice: Any, method: str, metric: Any) -> None:
    """Raise an error unless `choice` is the name of a map, or a transformer, and can be had."""
    if isinstance(choice, str):
        if choice not in NAMES:
            raise ValueError(
                f"linear_map must be None, one of {NAMES} or a transformer, not {choice!r}."
            )
    elif isinstance(choice, type) or not (hasattr(choice, "fit") and hasattr(choice, "transform")):
        raise TypeError(
            f"linear_map must be None, one of {NAMES} or a transformer, not {choice!r}."
        )
    if method == "paper":
        raise ValueError(
            f"linear_map={choice!r} serves method='soft' only: for method='paper' put the map before "
            "POPFClassifier in a pipeline."
        )
    if metric == "precomputed":
        raise ValueError(
            f"linear_map={choice!r} maps features, but with metric='precomputed' X holds distances: "
            "use linear_map=None, or give features and another metric."
        )


def fit_map(choice: Any, problem: Problem, n_left_out: int | None, random_state: Any) -> Fitted:
    """Choose a map if that is asked for, fit it, and score held-out samples for the probabilities.

    Parameters
    ----------
    choice : str or transformer
        ``"auto"``, the name of a map, or one of the user's own.
    problem : Problem
    n_left_out : int or None
        How many samples are held out at most.
    random_state : int, RandomState or None
        For the folds, and for the samples drawn.

    Returns
    -------
    Fitted
    """
    if choice == "auto":
        candidates = {NONE: None, **{name: make() for name, make in MAPS.items()}}
        rows = rows_to_leave_out(problem.codes, N_TO_CHOOSE, random_state)
        some = problem.take(rows)
        tried = {
            name: held_out(candidate, some, None, random_state)
            for name, candidate in candidates.items()
        }
    else:
        name = choice if isinstance(choice, str) else type(choice).__name__
        candidates, rows = {name: MAPS[choice]() if isinstance(choice, str) else choice}, None
        tried = {name: held_out(candidates[name], problem, n_left_out, random_state)}
    losses = {name: held_out_loss(scores, problem) for name, (scores, _) in tried.items()}
    best = min(losses, key=losses.__getitem__)  # the first of equals: no map where none helps
    if candidates[best] is None:
        return Fitted(None, None, losses)
    found = tried[best]
    if rows is not None and len(rows) < len(problem.codes):
        found = held_out(candidates[best], problem, n_left_out, random_state)
    return Fitted(fitted(candidates[best], problem), found, losses)


def held_out_loss(left_out: LeftOut, problem: Problem) -> float:
    """Give the held-out log loss at the best bandwidth, infinite where nothing could be held out."""
    masses = np.bincount(problem.codes, weights=problem.weights).astype(np.float64)
    return float(fit_all(left_out, masses, problem.smoothing)[1].min())


def fitted(transformer: Any, problem: Problem) -> Any:
    """Fit a copy of the transformer, with weights unless all are 1.

    Raises
    ------
    ValueError
        If there are weights, and it takes none.
    """
    copy = clone(transformer)
    if (problem.weights == 1.0).all():
        return copy.fit(problem.samples, problem.codes)
    if not has_fit_parameter(copy, "sample_weight"):
        raise ValueError(
            f"linear_map {transformer!r} takes no sample_weight: fit without weights, or use a map "
            "that takes them, such as those of popf.probability.linear_maps."
        )
    return copy.fit(problem.samples, problem.codes, sample_weight=problem.weights)


def mapped(transformer: Any, samples: FloatArray) -> FloatArray:
    """Map samples, into an array whatever the transformer returns."""
    if transformer is None:
        return samples
    found: FloatArray = check_array(
        transformer.transform(samples), dtype=np.float64, order="C", input_name="linear_map's X"
    )
    return found


def deal(problem: Problem, random_state: Any) -> IntArray:
    """Deal the samples of each class to folds; one that is alone in its class gets -1.

    Every fold's training samples thus have all classes. Samples are shuffled from an order of their
    values, so that the order of the rows does not matter.
    """
    random = check_random_state(random_state)
    order = np.lexsort((problem.weights, *problem.samples.T, problem.codes))
    order = order[random.permutation(len(order))]
    order = order[np.argsort(problem.codes[order], kind="stable")]
    folds = np.empty(len(order), dtype=np.int64)
    folds[order] = np.arange(len(order)) % N_FOLDS  # on from where the last class ended
    alone = np.bincount(problem.codes)[problem.codes] == 1
    folds[alone] = -1
    return folds


def held_out(
    transformer: Any, problem: Problem, n_rows: int | None, random_state: Any
) -> tuple[LeftOut, FloatArray]:
    """Score samples by maps and forests that have not seen them, for a grid of bandwidths.

    Parameters
    ----------
    transformer : object or None
        Fitted anew in every fold.
    problem : Problem
    n_rows : int or None
        How many samples are scored at most.
    random_state : int, RandomState or None

    Returns
    -------
    scores : LeftOut
    bandwidths : ndarray of shape (n_bandwidths,)
        In units of the mapped samples.
    """
    folds = deal(problem, random_state)
    scored = np.zeros(len(folds), dtype=bool)
    scored[rows_to_leave_out(problem.codes, n_rows, random_state)] = True
    means = problem.n_threads, problem.n_bytes
    rows, costs, contests = [], [], []
    for fold in range(N_FOLDS):
        out = np.flatnonzero((folds == fold) & scored)
        if len(out) == 0:
            continue
        rest = problem.take(np.flatnonzero(folds != fold))
        one = None if transformer is None else fitted(transformer, rest)
        training, new = mapped(one, rest.samples), mapped(one, problem.samples[out])
        forest = problem.grow(training, rest.codes)
        rows.append(out)
        costs.append(forest.conquer(new, Resources(*means)).costs)
        competition = SoftCompetition(forest, training, rest.weights)
        contests.append((competition, training, new))
    if not rows:
        nothing = np.empty((0, int(problem.codes.max()) + 1, 1))
        return LeftOut(nothing, np.empty(0, dtype=np.int64), np.empty(0)), np.ones(1)
    held = np.concatenate(rows)
    unit = unit_of_cost(np.concatenate(costs), problem.weights[held])
    if unit > 0.0:
        taus = bandwidth_grid(unit)
    else:  # all are where a training sample is: the competition knows what to do
        competition, training, _ = contests[0]
        taus = competition.grid(training, np.arange(len(training)), *means)
    scores = [competition.scores_for(new, taus, *means) for competition, _, new in contests]
    left_out = LeftOut(np.concatenate(scores), problem.codes[held], problem.weights[held])
    return left_out, taus.ravel()
