"""What is chosen and fitted by samples that it has not seen: maps, bandwidths, strengths, weights of the pool.

`choose` compares the forest with each candidate's features and the additive regressions on held-out samples;
`fit_evidence` then fits what was chosen to all samples.
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
from popf.probability.evidence import Evidence
from popf.probability.features import Candidate, candidates_for
from popf.probability.held_out import (
    Labels,
    Split,
    fold_splits,
    held_out_labels,
    hold_out_additive,
    hold_out_forest,
    scaled_samples,
    scores_of_parts,
)
from popf.probability.ordering import take_evenly
from popf.probability.pooling import Pool, fit_pool, trust_in
from popf.probability.softmax import centered, log_loss
from popf.probability.training import GrownForest, TrainingSamples, masses_of

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

#: From how many samples everything is chosen at most.
N_TO_CHOOSE = 5000
#: From so many samples on a single split, with as many samples held out, stands for the folds.
N_FOR_ONE_SPLIT = 10_000
#: Up to this gain in log likelihood the evidence might be chance: everything is chosen anew without each fold.
IN_DOUBT = 50.0
#: By how many standard errors labels must beat the most frequent class to be called good.
CLEARLY = 4.0


class Options(NamedTuple):
    """What is asked for; `smoothing` is that of the targets."""

    parts: tuple[str, ...]  # "forest", and with features "linear" and "spline"
    squash: str | bool
    linear_map: Any
    background: bool
    class_bandwidths: bool
    smoothing: float


class Choice(NamedTuple):
    """What the held-out samples decide."""

    candidate: Candidate  # the features of the forest
    grid: BandwidthGrid
    widest: float  # bandwidth of a class, in the unit of the forest's metric
    scaling: ForestScaling
    strengths: dict[str, float]  # of the additive parts
    pool: Pool
    trust: float  # from 0, where the class frequencies are the answer, to 1
    losses: dict[str, float]  # held out: of each part, of "pool" and "prior"
    accuracies: dict[str, float]  # of the same
    aucs: dict[str, float]
    map_losses: dict[str, float]  # of the forest with each map, one bandwidth for all classes
    accuracy: float  # of the narrowest scores
    n_held_out: float  # how many samples of equal weight would tell as much


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


def choose(
    training: TrainingSamples,
    splits: Sequence[Split],
    candidates: Sequence[Candidate],
    options: Options,
    before: Choice | None = None,
) -> Choice:
    """Compare candidates by samples that they have not seen.

    `before` is what fewer samples decided: the strengths of additive parts, and about where bandwidths are.
    """
    masses = masses_of(training)
    prior = prior_exponents(masses)
    labels = held_out_labels(training, splits, masses)
    codes, weights = labels.codes, labels.weights
    if len(np.unique(codes)) < 2:
        return _nothing_to_choose(training, candidates[0], prior)

    widest = None if before is None else before.widest
    settings = labels, options.smoothing, options.background, widest
    tried = {
        candidate.name: hold_out_forest(training, splits, candidate, *settings)
        for candidate in candidates
    }
    map_losses = {name: found.shared.loss for name, found in tried.items()}
    best = min(map_losses, key=map_losses.__getitem__)  # of equals the first, which is the simplest
    found, additive = tried[best], {}
    if len(options.parts) > 1:
        fitted = [scaled_samples(training, split.fitted, bool(options.squash)) for split in splits]
        scored = [training.features(split.scored) for split in splits]
        for name in options.parts[1:]:
            known = STRENGTHS if before is None else (before.strengths[name],)
            additive[name] = hold_out_additive(fitted, scored, name, known, labels)
    held = _HeldOutParts(labels, found.scores, found.grid.n_chains, additive)
    chosen = _fit_parts(held, options)
    parts = chosen.exponents(held)
    pool = fit_pool(parts, codes, weights, options.smoothing)
    # The mean of the forest's exponents is no evidence on any sample: it belongs to the biases of the pool.
    mean = np.average(parts[0], axis=0, weights=weights)
    scaling = chosen.scaling._replace(biases=chosen.scaling.biases - mean)
    pool = pool._replace(biases=pool.biases + pool.weights[0] * mean)
    losses = dict(
        zip(options.parts, (log_loss(part, codes, weights) for part in parts), strict=True)
    )
    loss = float(np.average(-prior[codes], weights=weights))
    pooled = _pool_without_fold(parts, labels, options)
    losses["pool"] = log_loss(pooled, codes, weights)
    if (loss - losses["pool"]) * max(weights.sum(), len(codes)) < IN_DOUBT:
        pooled = _pool_without_fold(_chosen_without_fold(held, options), labels, options)
        losses["pool"] = log_loss(pooled, codes, weights)
    losses["prior"] = loss
    everyone = np.broadcast_to(prior, pooled.shape)
    by_name = dict(zip(losses, [*parts, pooled, everyone], strict=True))
    accuracies, aucs = scores_of_parts(by_name, codes, weights)
    return Choice(
        candidate=next(candidate for candidate in candidates if candidate.name == best),
        grid=found.grid,
        widest=float(found.grid.ranked(found.unit)[chosen.scaling.steps].max()),
        scaling=scaling,
        strengths=chosen.strengths,
        pool=pool,
        trust=trust_in(pooled, prior, codes, weights, len(candidates)),
        losses=losses,
        accuracies=accuracies,
        aucs=aucs,
        map_losses=map_losses,
        accuracy=float(np.average(found.scores[:, :, -1].argmax(axis=1) == codes, weights=weights)),
        n_held_out=float(weights.sum() * (weights.sum() / (weights @ weights))),
    )


class _HeldOutParts(NamedTuple):
    """Held-out scores at all bandwidths, and exponents of the additive parts at all strengths."""

    labels: Labels
    scores: FloatArray
    n_chains: int
    additive: dict[str, dict[float, FloatArray]]


class _ChosenParts(NamedTuple):
    """Bandwidths, slopes and biases of the forest, and the strengths of the additive parts."""

    scaling: ForestScaling
    strengths: dict[str, float]

    def exponents(self, held: _HeldOutParts) -> FloatArray:
        """Exponents of all parts: (n_parts, n_rows, n_classes)."""
        additive = [held.additive[name][strength] for name, strength in self.strengths.items()]
        return centered(np.stack([self.scaling.exponents_on_grid(held.scores), *additive]))


def _fit_parts(
    held: _HeldOutParts, options: Options, rows: BoolArray | slice = slice(None)
) -> _ChosenParts:
    """Choose bandwidths and strengths by some of the held-out samples."""
    codes, weights = held.labels.codes[rows], held.labels.weights[rows]
    scores = HeldOutScores(held.scores[rows], codes, weights, held.labels.masses, held.n_chains)
    scaling = fit_forest_scaling(
        scores, options.smoothing, options.background, options.class_bandwidths
    )
    strengths = {}
    for name, tried in held.additive.items():
        losses = {strength: log_loss(z[rows], codes, weights) for strength, z in tried.items()}
        strengths[name] = min(losses, key=losses.__getitem__)  # of equals the strongest ridge
    return _ChosenParts(scaling, strengths)


def _chosen_without_fold(held: _HeldOutParts, options: Options) -> FloatArray:
    """Exponents of all parts, of each fold by what the others would choose."""
    folds, found = held.labels.folds, None
    for fold in np.unique(folds):
        here = folds == fold
        exponents = _fit_parts(held, options, ~here).exponents(held)
        found = exponents if found is None else np.where(here[:, None], exponents, found)
    assert found is not None
    return found


def _pool_without_fold(parts: FloatArray, labels: Labels, options: Options) -> FloatArray:
    """Exponents of the pool, of each fold with weights that the others would choose."""
    found: FloatArray = np.empty_like(parts[0])
    for fold in np.unique(labels.folds):
        here = labels.folds == fold
        codes, weights = labels.codes[~here], labels.weights[~here]
        pool = fit_pool(parts[:, ~here], codes, weights, options.smoothing)
        found[here] = pool.exponents(parts[:, here])
    return found


def fit_chosen(
    training: TrainingSamples, choice: Choice, squash: bool
) -> tuple[Evidence, GrownForest]:
    """Fit what was chosen to all samples."""
    grown = training.grow(None, choice.candidate)
    ordered, pool = training.ordered, choice.pool
    scaling, additive = None, {}
    if choice.strengths:
        everyone = np.arange(len(ordered.rows))
        scaled = scaled_samples(training, everyone, squash)
        scaling = scaled.scaling
        for (name, strength), weight in zip(
            choice.strengths.items(), pool.weights[1:], strict=True
        ):
            ridge = RidgeRegressions(*scaled[1:], training.n_classes, name)
            additive[name], intercepts = ridge.fit(strength).without_intercepts()
            pool = pool._replace(biases=pool.biases + weight * centered(intercepts))
    evidence = Evidence(
        preparation=grown.preparation,
        nodes=ordered.rows,
        node_weights=ordered.weights,
        bandwidths=choice.grid.ranked(grown.unit)[choice.scaling.steps],
        forest_scaling=choice.scaling,
        scaling=scaling,
        additive=additive,
        pool=pool,
        trust=choice.trust,
        prior=prior_exponents(masses_of(training)),
        competition=grown.competition,
    )
    return evidence, grown


def _nothing_to_choose(
    training: TrainingSamples, candidate: Candidate, prior: FloatArray
) -> Choice:
    """Answer the prior: too few samples to hold any out."""
    n = training.n_classes
    nothing = np.zeros(n)
    scaling = ForestScaling(np.zeros(n, np.int64), nothing + LOWEST, nothing, prior, np.inf)
    pool = Pool(np.ones(1), nothing)
    return Choice(
        candidate, BandwidthGrid(), np.inf, scaling, {}, pool, 0.0, {}, {}, {}, {}, 0.0, 0.0
    )


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
