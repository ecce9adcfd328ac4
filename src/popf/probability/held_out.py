"""Scores and exponents of samples, by parts that have not seen them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.metrics.evaluation import roc_area
from popf.probability.additive import RidgeRegressions
from popf.probability.bandwidths import (
    BandwidthGrid,
    ForestScaling,
    HeldOutScores,
    fit_forest_scaling,
)
from popf.probability.features import Candidate, Scaling, fit_scaling
from popf.probability.ordering import N_FOLDS, OrderedSamples, deal_folds, take_evenly
from popf.probability.softmax import log_loss, log_softmax
from popf.probability.training import N_FOR_FEATURES, GrownForest, TrainingSamples

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: A ratio of log losses at which no weaker ridge is tried.
CLEARLY_WORSE = 1.02
#: By what the grid of bandwidths is moved where the best is at its end, and how often.
SHIFT, MOST_SHIFTS = 16.0, 1


class Split(NamedTuple):
    """Places in the order: on which parts are fitted, and which are scored."""

    fitted: IntArray
    scored: IntArray


class Labels(NamedTuple):
    """Labels and weights of held-out samples, their folds, and the weight of each class among all samples."""

    codes: IntArray
    weights: FloatArray
    folds: IntArray
    masses: FloatArray

    def take(self, rows: NDArray[np.bool_]) -> "Labels":
        """Keep some of the samples."""
        return Labels(self.codes[rows], self.weights[rows], self.folds[rows], self.masses)


def fold_splits(ordered: OrderedSamples) -> list[Split]:
    """Deal samples to folds, each of which is scored by what was fitted to the others."""
    folds = deal_folds(ordered)
    splits = [
        Split(np.flatnonzero(folds != fold), np.flatnonzero(folds == fold))
        for fold in range(N_FOLDS)
    ]
    return [split for split in splits if len(split.scored) and len(split.fitted)]


def held_out_labels(
    training: TrainingSamples, splits: Sequence[Split], masses: FloatArray
) -> Labels:
    """Collect the labels of all samples that are scored; those of a single split make two folds."""
    scored = np.concatenate([np.empty(0, np.int64), *(split.scored for split in splits)])
    codes, weights = training.ordered.codes[scored], training.ordered.weights[scored]
    if len(splits) != 1:
        folds = np.repeat(np.arange(len(splits)), [len(split.scored) for split in splits])
        return Labels(codes, weights, folds, masses)
    # Of rare classes more were held out: all classes shall weigh what they do among all samples.
    own = np.bincount(codes, weights=weights, minlength=len(masses))
    balanced = weights * np.divide(masses, own, where=own > 0.0, out=np.ones_like(own))[codes]
    return Labels(
        codes, balanced * (weights.sum() / balanced.sum()), np.arange(len(codes)) % 2, masses
    )


def scores_of_parts(
    parts: Mapping[str, FloatArray], codes: IntArray, weights: FloatArray
) -> tuple[dict[str, float], dict[str, float]]:
    """Accuracy and area under the ROC curve (the mean over classes against the rest) of exponents by name."""
    accuracies, areas = {}, {}
    for name, exponents in parts.items():
        accuracies[name] = float(np.average(exponents.argmax(axis=1) == codes, weights=weights))
        logs = log_softmax(exponents)
        classes = [1] if logs.shape[1] == 2 else np.unique(codes).tolist()
        found = [roc_area(codes == k, logs[:, k])(weights) for k in classes]
        areas[name] = float(np.mean(found))
    return accuracies, areas


class HeldOutForest(NamedTuple):
    """Scores of held-out samples at all bandwidths of a grid, and what one bandwidth for all classes gives."""

    scores: FloatArray
    grid: BandwidthGrid
    unit: float
    shared: ForestScaling


def hold_out_forest(
    training: TrainingSamples,
    splits: Sequence[Split],
    candidate: Candidate,
    labels: Labels,
    smoothing: float,
    background: bool,
    widest: float | None,
) -> HeldOutForest:
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
        held = HeldOutScores(scores, labels.codes, labels.weights, labels.masses, grid.n_chains)
        shared = fit_forest_scaling(held, smoothing, background, by_class=False)
        step, last = shared.steps[0], scores.shape[2] - 1
        if attempt == MOST_SHIFTS or 0 < step < last or shared.slopes[0] == 0.0:
            break
        grid = grid._replace(widest=grid.widest * (SHIFT if step == 0 else 1.0 / SHIFT))
    return HeldOutForest(scores, grid, unit, shared)


def _scores_on_grid(grown: GrownForest, places: IntArray, grid: BandwidthGrid) -> FloatArray:
    """Scores at all bandwidths of the grid, the widest first."""
    scores = grown.scores(places, grid.chains(grown.unit))
    by_chain = scores.reshape(*scores.shape[:2], grid.n_chains, -1)
    return np.swapaxes(by_chain, 2, 3).reshape(scores.shape)


class ScaledSamples(NamedTuple):
    """Samples for the additive parts, no more than are needed."""

    scaling: Scaling
    samples: FloatArray
    codes: IntArray
    weights: FloatArray


def scaled_samples(training: TrainingSamples, places: IntArray, squashed: bool) -> ScaledSamples:
    """Scale the samples at some places, for the additive parts."""
    codes, weights = training.ordered.codes, training.ordered.weights
    some = places[take_evenly(codes[places], N_FOR_FEATURES)]
    samples = training.features(some)
    scaling = fit_scaling(samples, weights[some], squashed)
    return ScaledSamples(scaling, scaling.apply(samples), codes[some], weights[some])


def hold_out_additive(
    fitted: Sequence[ScaledSamples],
    scored: Sequence[FloatArray],
    kind: str,
    strengths: Sequence[float],
    labels: Labels,
) -> dict[float, FloatArray]:
    """Exponents of held-out samples by strength, from the strongest ridge on, until the loss clearly rises."""
    ridges = [RidgeRegressions(*each[1:], len(labels.masses), kind) for each in fitted]
    columns = [
        ridge.columns(each.scaling.apply(new))
        for ridge, each, new in zip(ridges, fitted, scored, strict=True)
    ]
    found: dict[float, FloatArray] = {}
    least = np.inf
    for strength in strengths:
        exponents = [
            ridge.fit(strength).exponents_of_columns(new)
            for ridge, new in zip(ridges, columns, strict=True)
        ]
        found[strength] = np.concatenate(exponents)
        loss = log_loss(found[strength], labels.codes, labels.weights)
        if loss > CLEARLY_WORSE * least:
            break
        least = min(least, loss)
    return found
