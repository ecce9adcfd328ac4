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

from popf.probability.additive import STRENGTHS, RidgeRegressions
from popf.probability.bandwidths import (
    LOWEST,
    BandwidthGrid,
    ForestScaling,
    HeldOutScores,
    fit_forest_scaling,
    prior_exponents,
)
from popf.probability.evidence import FOREST, Evidence
from popf.probability.ordering import N_FOLDS, OrderedSamples, deal_folds, take_evenly
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

#: From how many samples everything is chosen at most.
N_TO_CHOOSE = 5000
#: From so many samples on a single split, with as many samples held out, stands for the folds.
N_FOR_ONE_SPLIT = 10_000
#: A ratio of log losses at which no weaker ridge is tried.
CLEARLY_WORSE = 1.02
#: By what the grid of bandwidths is moved where the best is at its end, and how often.
SHIFT, MOST_SHIFTS = 16.0, 1
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
    grid : BandwidthGrid
    widest : float
        The widest bandwidth of a class, in the unit of the forest's metric.
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
    n_held_out : float
        How many samples of equal weight would tell as much as those held out.
    """

    candidate: Candidate
    grid: BandwidthGrid
    widest: float
    scaling: ForestScaling
    strengths: dict[str, float]
    pool: Pool
    trust: float
    losses: dict[str, float]
    map_losses: dict[str, float]
    accuracy: float
    n_held_out: float


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
    splits = fold_splits(training.ordered)
    if len(codes) >= N_FOR_ONE_SPLIT:
        scored = take_evenly(codes, N_TO_CHOOSE, largest_part=0.5)
        splits = [Split(np.setdiff1d(np.arange(len(codes)), scored), scored)]
    later = choose(training, splits, [choice.candidate], options, choice)
    return later._replace(map_losses=choice.map_losses)


def fold_splits(ordered: OrderedSamples) -> list[Split]:
    """Deal samples to folds, each of which is scored by what was fitted to the others."""
    folds = deal_folds(ordered)
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
    before: Choice | None = None,
) -> Choice:
    """Compare candidates by samples that they have not seen.

    Parameters
    ----------
    training : TrainingSamples
    splits : sequence of Split
    candidates : sequence of Candidate
        What the forest may see.
    options : Options
    before : Choice, optional
        What fewer samples decided: the strengths of additive parts, and about where bandwidths are.
    """
    masses = masses_of(training)
    prior = prior_exponents(masses)
    truth = _held_out_labels(training, splits, masses)
    if len(np.unique(truth.codes)) < 2:
        return _nothing_to_choose(training, candidates[0], prior)

    widest = None if before is None else before.widest
    tried = {
        candidate.name: _hold_out_forest(training, splits, candidate, truth, options, widest)
        for candidate in candidates
    }
    map_losses = {name: found.scaling.loss for name, found in tried.items()}
    best = min(map_losses, key=map_losses.__getitem__)  # of equals the first, which is the simplest
    found = tried[best]
    scaling = found.scaling
    if options.class_bandwidths:
        held = HeldOutScores(found.scores, *truth, found.grid.n_chains)
        scaling = fit_forest_scaling(held, options.smoothing, options.background, by_class=True)
    parts, strengths = {FOREST: scaling.exponents_on_grid(found.scores)}, {}
    if len(options.parts) > 1:
        fitted = [_scaled(training, split.fitted, bool(options.squash)) for split in splits]
        scored = [training.features(split.scored) for split in splits]
        for name in options.parts[1:]:
            known = STRENGTHS if before is None else (before.strengths[name],)
            parts[name], strengths[name] = _hold_out_additive(fitted, scored, name, known, truth)
    codes, weights = truth.codes, truth.weights
    together = centered(np.stack([parts[name] for name in options.parts]))
    pool = fit_pool(together, codes, weights, options.smoothing)
    pooled = _held_out_pool(together, codes, weights, splits, options)
    losses_of = {name: log_loss(parts[name], codes, weights) for name in options.parts}
    losses_of["pool"] = float(np.average(pooled, weights=weights))
    losses_of["prior"] = float(np.average(-prior[codes], weights=weights))
    return Choice(
        candidate=next(candidate for candidate in candidates if candidate.name == best),
        grid=found.grid,
        widest=float(found.grid.ranked(found.unit)[scaling.steps].max()),
        scaling=scaling,
        strengths=strengths,
        pool=pool,
        trust=weight_of_evidence(losses_of["pool"], codes, weights, masses),
        losses=losses_of,
        map_losses=map_losses,
        accuracy=float(np.average(found.scores[:, :, -1].argmax(axis=1) == codes, weights=weights)),
        n_held_out=float(weights.sum() * (weights.sum() / (weights @ weights))),
    )


def fit_chosen(
    training: TrainingSamples, choice: Choice, squash: bool
) -> tuple[Evidence, GrownForest]:
    """Fit what was chosen to all samples."""
    grown = training.grow(None, choice.candidate)
    ordered = training.ordered
    scaling, additive = None, {}
    if choice.strengths:
        everyone = np.arange(len(ordered.rows))
        scaled = _scaled(training, everyone, squash)
        scaling = scaled.scaling
        for name, strength in choice.strengths.items():
            ridge = RidgeRegressions(*scaled[1:], training.n_classes, name)
            additive[name] = ridge.fit(strength)
    evidence = Evidence(
        preparation=grown.preparation,
        nodes=ordered.rows,
        node_weights=ordered.weights,
        bandwidths=choice.grid.ranked(grown.unit)[choice.scaling.steps],
        forest_scaling=choice.scaling,
        scaling=scaling,
        additive=additive,
        pool=choice.pool,
        trust=choice.trust,
        prior=prior_exponents(masses_of(training)),
        competition=grown.competition,
    )
    return evidence, grown


class _Truth(NamedTuple):
    """Labels and weights of held-out samples, and the weight of each class among all samples."""

    codes: IntArray
    weights: FloatArray
    masses: FloatArray


def _held_out_labels(
    training: TrainingSamples, splits: Sequence[Split], masses: FloatArray
) -> _Truth:
    scored = np.concatenate([split.scored for split in splits]) if splits else np.empty(0, np.int64)
    codes, weights = training.ordered.codes[scored], training.ordered.weights[scored]
    if len(splits) == 1:
        # Of rare classes more were held out: all classes shall weigh what they do among all samples.
        own = np.bincount(codes, weights=weights, minlength=len(masses))
        balanced = weights * np.divide(masses, own, where=own > 0.0, out=np.ones_like(own))[codes]
        weights = balanced * (weights.sum() / balanced.sum())
    return _Truth(codes, weights, masses)


class _HeldOutForest(NamedTuple):
    """Scores of held-out samples, at all bandwidths of a grid, and what was made of them."""

    scaling: ForestScaling
    scores: FloatArray
    grid: BandwidthGrid
    unit: float


def _hold_out_forest(
    training: TrainingSamples,
    splits: Sequence[Split],
    candidate: Candidate,
    truth: _Truth,
    options: Options,
    widest: float | None,
) -> _HeldOutForest:
    """Score held-out samples by forests that have not seen them, on a grid that holds the best bandwidth.

    With more samples bandwidths get narrower: where `widest` is known from fewer, a single chain begins at
    twice of it, because sums over so many samples cost most of the time.
    """
    forests = [training.grow(split.fitted, candidate) for split in splits]
    unit = float(np.mean([grown.unit for grown in forests]))
    grid = BandwidthGrid() if widest is None else BandwidthGrid(2.0 * widest / unit, 1)
    for attempt in range(MOST_SHIFTS + 1):
        scores = np.concatenate(
            [
                _scores_on_grid(grown, split.scored, grid)
                for grown, split in zip(forests, splits, strict=True)
            ]
        )
        held = HeldOutScores(scores, *truth)
        scaling = fit_forest_scaling(held, options.smoothing, options.background, by_class=False)
        step, last = scaling.steps[0], scores.shape[2] - 1
        if attempt == MOST_SHIFTS or 0 < step < last or scaling.slopes[0] == 0.0:
            break
        grid = grid._replace(widest=grid.widest * (SHIFT if step == 0 else 1.0 / SHIFT))
    return _HeldOutForest(scaling, scores, grid, unit)


def _scores_on_grid(grown: GrownForest, places: IntArray, grid: BandwidthGrid) -> FloatArray:
    """Scores at all bandwidths of the grid, the widest first."""
    scores = grown.scores(places, grid.chains(grown.unit))
    by_chain = scores.reshape(*scores.shape[:2], grid.n_chains, -1)
    return np.swapaxes(by_chain, 2, 3).reshape(scores.shape)


class _ScaledSamples(NamedTuple):
    """Samples for the additive parts, no more than are needed."""

    scaling: Scaling
    samples: FloatArray
    codes: IntArray
    weights: FloatArray


def _scaled(training: TrainingSamples, places: IntArray, squashed: bool) -> _ScaledSamples:
    codes, weights = training.ordered.codes, training.ordered.weights
    some = places[take_evenly(codes[places], N_FOR_FEATURES)]
    samples = training.features(some)
    scaling = fit_scaling(samples, weights[some], squashed)
    return _ScaledSamples(scaling, scaling.apply(samples), codes[some], weights[some])


def _hold_out_additive(
    fitted: Sequence[_ScaledSamples],
    scored: Sequence[FloatArray],
    name: str,
    strengths: tuple[float, ...],
    truth: _Truth,
) -> tuple[FloatArray, float]:
    """Exponents of held-out samples at the strength with the least log loss, and that strength.

    Strengths come from the strongest ridge to the weakest. The search ends where the loss clearly rises.
    """
    ridges = [RidgeRegressions(*each[1:], len(truth.masses), name) for each in fitted]
    columns = [
        ridge.columns(each.scaling.apply(new))
        for ridge, each, new in zip(ridges, fitted, scored, strict=True)
    ]
    least, best = np.inf, None
    for strength in strengths:
        exponents = np.concatenate(
            [
                ridge.fit(strength).exponents_of_columns(new)
                for ridge, new in zip(ridges, columns, strict=True)
            ]
        )
        loss = log_loss(exponents, truth.codes, truth.weights)
        if loss > CLEARLY_WORSE * least:
            break
        if best is None or loss < least:
            least, best = loss, (exponents, strength)
    assert best is not None
    return best


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
    training: TrainingSamples, candidate: Candidate, prior: FloatArray
) -> Choice:
    """Answer the prior: too few samples to hold any out."""
    n = training.n_classes
    nothing = np.zeros(n)
    scaling = ForestScaling(np.zeros(n, np.int64), nothing + LOWEST, nothing, prior, np.inf)
    pool = Pool(np.ones(1), nothing)
    return Choice(candidate, BandwidthGrid(), np.inf, scaling, {}, pool, 0.0, {}, {}, 0.0, 0.0)


def warn_if_useless(choice: Choice, masses: FloatArray) -> None:
    """Warn where the forest clearly tells the classes apart, but the probabilities are those of the prior."""
    frequent = float(masses.max() / masses.sum())
    error = np.sqrt(frequent * (1.0 - frequent) / max(choice.n_held_out, 1.0))
    if choice.trust < 0.5 and choice.accuracy > frequent + CLEARLY * error:
        warnings.warn(
            f"The forest labels {choice.accuracy:.0%} of held-out samples correctly, the most frequent class "
            f"{frequent:.0%}, but no probabilities better than the class frequencies were found: the labels of "
            "OPFClassifier may serve you better here.",
            UserWarning,
            stacklevel=4,
        )
