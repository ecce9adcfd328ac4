"""What is chosen and fitted by samples that it has not seen: maps, bandwidths, strengths, weights of the pool.

`choose` fits the parts (the forest with each candidate's features, the additive regressions) to some samples,
scores others, and compares; `fit_evidence` then fits what was chosen to all samples.
"""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from popf.probability.additive import STRENGTHS, fit_additive
from popf.probability.bandwidths import (
    ForestScaling,
    HeldOutScores,
    bandwidth_grid,
    fit_forest_scaling,
    prior_exponents,
)
from popf.probability.evidence import FOREST, Evidence
from popf.probability.ordering import OrderedSamples, deal_folds, take_evenly
from popf.probability.pooling import Pool, fit_pool, weight_of_evidence
from popf.probability.preparation import Candidate, candidates_for
from popf.probability.softmax import centered, log_loss, log_losses
from popf.probability.squashing import Scaling, fit_scaling
from popf.probability.training import (
    N_FOR_FEATURES,
    GrownForest,
    TrainingSamples,
    masses_of,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

N_FOLDS = 5
#: From how many samples everything is chosen at most; of more, so many are held out for the rest.
N_TO_CHOOSE = 5000
#: By what the grid of bandwidths is moved where the best is at its end, and how often.
SHIFT, MOST_SHIFTS = 16.0, 2
#: By how many standard errors labels must beat the most frequent class to be called good.
CLEARLY = 4.0


class Options(NamedTuple):
    """What is asked for.

    Attributes
    ----------
    parts : tuple of str
        ``"forest"``, and with features ``"linear"`` and ``"spline"``.
    squash : "auto" or bool
        Whether features are squashed; "auto" also tries them standardised only.
    linear_map : None, str or transformer
    background, class_bandwidths : bool
    smoothing : float
        Of the targets.
    """

    parts: tuple[str, ...]
    squash: str | bool
    linear_map: Any
    background: bool
    class_bandwidths: bool
    smoothing: float


class Split(NamedTuple):
    """Places in the order: on which parts are fitted, and which are scored."""

    fitted: IntArray
    scored: IntArray


class Choice(NamedTuple):
    """What the held-out samples decide.

    Attributes
    ----------
    candidate : Candidate
        The features of the forest.
    shift : float
        What the grid of bandwidths is multiplied by.
    scaling : ForestScaling
    strengths : dict
        The strength of each additive part.
    pool : Pool
    trust : float
        How far the pool can be trusted to say more than the prior, from 0 to 1.
    losses : dict
        The held-out log loss of each part, of ``"pool"`` and of the ``"prior"``.
    map_losses : dict
        That of the forest with each map, one bandwidth for all classes.
    accuracy : float
        The share of held-out samples whose narrowest scores are highest for their own class.
    """

    candidate: Candidate
    shift: float
    scaling: ForestScaling
    strengths: dict[str, float]
    pool: Pool
    trust: float
    losses: dict[str, float]
    map_losses: dict[str, float]
    accuracy: float


def fit_evidence(
    training: TrainingSamples, options: Options
) -> tuple[Evidence, GrownForest, Choice]:
    """Choose everything by held-out samples, then fit it to all."""
    with threadpool_limits(training.n_threads):
        choice = _choose_for(training, options)
        return *fit_chosen(training, choice, bool(options.squash)), choice


def _choose_for(training: TrainingSamples, options: Options) -> Choice:
    candidates = candidates_for(options.squash, options.linear_map, training.metric)
    codes = training.ordered.codes
    some = take_evenly(codes, N_TO_CHOOSE)
    small = training.take(some)
    choice = choose(small, fold_splits(small.ordered), candidates, options)
    if len(some) == len(codes) or not choice.losses:
        return choice
    # Maps and strengths stay; bandwidths, slopes and weights depend on how many samples there are.
    split = [Split(np.setdiff1d(np.arange(len(codes)), some), some)]
    later = choose(training, split, [choice.candidate], options, choice.strengths)
    return later._replace(map_losses=choice.map_losses)


def fold_splits(ordered: OrderedSamples) -> list[Split]:
    """Deal samples to folds, each of which is scored by what was fitted to the others."""
    folds = deal_folds(ordered, N_FOLDS)
    splits = [
        Split(np.flatnonzero(folds != fold), np.flatnonzero(folds == fold))
        for fold in range(N_FOLDS)
    ]
    return [split for split in splits if len(split.scored) and len(split.fitted)]


def choose(
    training: TrainingSamples,
    splits: Sequence[Split],
    candidates: Sequence[Candidate],
    options: Options,
    strengths: dict[str, float] | None = None,
) -> Choice:
    """Compare candidates by samples that they have not seen.

    Parameters
    ----------
    training : TrainingSamples
    splits : sequence of Split
    candidates : sequence of Candidate
        What the forest may see.
    options : Options
    strengths : dict, optional
        Of the additive parts, where they are known already.
    """
    masses = masses_of(training)
    prior = prior_exponents(masses)
    scored = np.concatenate([split.scored for split in splits]) if splits else np.empty(0, np.int64)
    codes, weights = training.ordered.codes[scored], training.ordered.weights[scored]
    if len(np.unique(codes)) < 2:
        return _nothing_to_choose(training, candidates[0], options, prior)

    tried = {}
    for candidate in candidates:
        tried[candidate.name] = _hold_out_forest(
            training, splits, candidate, (codes, weights, masses), options
        )
    map_losses = {name: scaling.loss for name, (scaling, _, _) in tried.items()}
    best = min(map_losses, key=map_losses.__getitem__)  # of equals the first, which is the simplest
    scaling, scores, shift = tried[best]
    held = HeldOutScores(scores, codes, weights, masses)
    if options.class_bandwidths:
        scaling = fit_forest_scaling(held, options.smoothing, options.background, by_class=True)
    parts = {FOREST: scaling.exponents_on_grid(scores)}
    found = {}
    for name in options.parts:
        if name != FOREST:
            known = STRENGTHS if strengths is None else (strengths[name],)
            exponents = _hold_out_additive(training, splits, name, known, bool(options.squash))
            losses = [log_loss(each, codes, weights) for each in exponents]
            parts[name] = exponents[int(np.argmin(losses))]
            found[name] = known[int(np.argmin(losses))]
    together = centered(np.stack([parts[name] for name in options.parts]))
    pool = fit_pool(together, codes, weights, options.smoothing)
    pooled = _held_out_pool(together, codes, weights, splits, options)
    losses_of = {name: log_loss(parts[name], codes, weights) for name in options.parts}
    losses_of["pool"] = float(np.average(pooled, weights=weights))
    losses_of["prior"] = float(np.average(-prior[codes], weights=weights))
    return Choice(
        next(candidate for candidate in candidates if candidate.name == best),
        shift,
        scaling,
        found,
        pool,
        weight_of_evidence(losses_of["pool"], codes, weights, masses),
        losses_of,
        map_losses,
        float(np.average(scores[:, :, -1].argmax(axis=1) == codes, weights=weights)),
    )


def fit_chosen(
    training: TrainingSamples, choice: Choice, squash: bool
) -> tuple[Evidence, GrownForest]:
    """Fit what was chosen to all samples."""
    grown = training.grow(None, choice.candidate)
    grid = np.sort(bandwidth_grid(grown.unit * choice.shift).ravel())[::-1]
    ordered = training.ordered
    scaling, additive = None, {}
    if choice.strengths:
        everyone = np.arange(len(ordered.rows))
        scaling, samples, some = _for_additive(training, everyone, squash)
        codes, weights = ordered.codes[some], ordered.weights[some]
        for name, strength in choice.strengths.items():
            (additive[name],) = fit_additive(
                samples, codes, weights, training.n_classes, name, (strength,)
            )
    evidence = Evidence(
        preparation=grown.preparation,
        nodes=ordered.rows,
        node_weights=ordered.weights,
        bandwidths=grid[choice.scaling.steps],
        forest_scaling=choice.scaling,
        scaling=scaling,
        additive=additive,
        pool=choice.pool,
        trust=choice.trust,
        prior=prior_exponents(masses_of(training)),
        competition=grown.competition,
    )
    return evidence, grown


def _hold_out_forest(
    training: TrainingSamples,
    splits: Sequence[Split],
    candidate: Candidate,
    truth: tuple[IntArray, FloatArray, FloatArray],
    options: Options,
) -> tuple[ForestScaling, FloatArray, float]:
    """Score held-out samples by forests that have not seen them, on a grid that holds the best bandwidth."""
    forests = [training.grow(split.fitted, candidate) for split in splits]
    shift = 1.0
    for attempt in range(MOST_SHIFTS + 1):
        scores = np.concatenate(
            [
                _scores_on_grid(grown, split.scored, shift)
                for grown, split in zip(forests, splits, strict=True)
            ]
        )
        held = HeldOutScores(scores, *truth)
        scaling = fit_forest_scaling(held, options.smoothing, options.background, by_class=False)
        step, last = scaling.steps[0], scores.shape[2] - 1
        if attempt == MOST_SHIFTS or 0 < step < last or scaling.slopes[0] == 0.0:
            break
        shift *= SHIFT if step == 0 else 1.0 / SHIFT
    return scaling, scores, shift


def _scores_on_grid(grown: GrownForest, places: IntArray, shift: float) -> FloatArray:
    """Scores at all bandwidths of the grid, the widest first."""
    taus = bandwidth_grid(grown.unit * shift)
    return grown.scores(places, taus)[:, :, np.argsort(-taus.ravel())]


def _hold_out_additive(
    training: TrainingSamples,
    splits: Sequence[Split],
    name: str,
    strengths: tuple[float, ...],
    squashed: bool,
) -> FloatArray:
    """Exponents of held-out samples for each strength: (n_strengths, n_rows, n_classes)."""
    found = []
    for split in splits:
        scaling, samples, some = _for_additive(training, split.fitted, squashed)
        codes, weights = training.ordered.codes[some], training.ordered.weights[some]
        path = fit_additive(samples, codes, weights, training.n_classes, name, strengths)
        new = scaling.apply(training.features(split.scored))
        columns = path[0].centered_columns(new)
        found.append(np.stack([each.exponents_of_columns(columns) for each in path]))
    return np.concatenate(found, axis=1)


def _for_additive(
    training: TrainingSamples, places: IntArray, squashed: bool
) -> tuple[Scaling, FloatArray, IntArray]:
    """Scaled samples for the additive parts, no more than are needed, and their places."""
    some = places[take_evenly(training.ordered.codes[places], N_FOR_FEATURES)]
    samples = training.features(some)
    scaling = fit_scaling(samples, training.ordered.weights[some], squashed)
    return scaling, scaling.apply(samples), some


def _held_out_pool(
    parts: FloatArray,
    codes: IntArray,
    weights: FloatArray,
    splits: Sequence[Split],
    options: Options,
) -> FloatArray:
    """Log losses of the pool, its weights fitted to the other splits, or halves of a single one."""
    sizes = [len(split.scored) for split in splits]
    split_of = np.repeat(np.arange(len(splits)), sizes)
    if len(splits) == 1:
        split_of = np.arange(len(codes)) % 2
    losses = np.empty(len(codes))
    for number in np.unique(split_of):
        here = split_of == number
        pool = fit_pool(parts[:, ~here], codes[~here], weights[~here], options.smoothing)
        losses[here] = log_losses(pool.exponents(parts[:, here]), codes[here])
    return losses


def _nothing_to_choose(
    training: TrainingSamples, candidate: Candidate, options: Options, prior: FloatArray
) -> Choice:
    """Answer the prior: too few samples to hold any out."""
    n = training.n_classes
    scaling = ForestScaling(np.zeros(n, np.int64), np.full(n, -np.inf), np.zeros(n), prior, np.inf)
    return Choice(candidate, 1.0, scaling, {}, Pool(np.ones(1), np.zeros(n)), 0.0, {}, {}, 0.0)


def warn_if_useless(choice: Choice, masses: FloatArray) -> None:
    """Warn where the forest clearly tells the classes apart, but the probabilities are those of the prior."""
    total = float(masses.sum())
    frequent = float(masses.max()) / total
    error = np.sqrt(frequent * (1.0 - frequent) / max(total, 1.0))
    if choice.trust < 0.5 and choice.accuracy > frequent + CLEARLY * error:
        warnings.warn(
            f"The forest labels {choice.accuracy:.0%} of held-out samples correctly, the most frequent class "
            f"{frequent:.0%}, but no probabilities better than the class frequencies were found: the labels of "
            "OPFClassifier may serve you better here.",
            UserWarning,
            stacklevel=4,
        )
