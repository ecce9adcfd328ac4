"""Scores of samples by forests, regressions and trees that were not fitted to them.

Samples are split into folds, or many samples once; each part is fitted to the samples of a split that are not
scored. Regressions and trees are the *parts on features*.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from popf.engine.structures import FloatArray, IntArray
from popf.probability.basis import N_PRODUCTS, N_SPLINES
from popf.probability.boosting import BoostedTrees, Boosting
from popf.probability.features import Candidate
from popf.probability.regressions import (
    ROUGH_TOLERANCE,
    AdditiveEvidence,
    RidgeRegressions,
    regressions_of_kind,
)
from popf.probability.soft_competition import BandwidthGrid, SharedScalings, fit_shared_scalings
from popf.probability.softmax import Labels, log_losses
from popf.probability.training import (
    N_FOLDS,
    GrownForest,
    OrderedSamples,
    ScaledSamples,
    TrainingSamples,
    deal_folds,
    take_evenly,
)

#: Factor by which the grid of bandwidths is shifted if the best one is at its end, and how often.
SHIFT, MAX_SHIFTS = 16.0, 1
#: Ratio to the lowest log loss above which no weaker ridge and no more trees are tried.
STOPPING_RATIO = 1.02
#: Pairs of features are tried only if their regression has at most this number of coefficients.
MAX_COEFFICIENTS_WITH_PAIRS = 500


class Split(NamedTuple):
    """Positions in the order of the samples: those that parts are fitted to, and those that are scored."""

    fitted: IntArray
    scored: IntArray


def fold_splits(ordered: OrderedSamples) -> list[Split]:
    """Divide samples into folds; each is scored by parts that are fitted to all other samples."""
    folds = deal_folds(ordered)
    splits = [
        Split(np.flatnonzero(folds != fold), np.flatnonzero(folds == fold))
        for fold in range(N_FOLDS)
    ]
    return [split for split in splits if len(split.scored) and len(split.fitted)]


def one_split(ordered: OrderedSamples, n_scored: int) -> Split:
    """Hold out about `n_scored` samples: whole groups, and at most half of the groups of any class."""
    numbers, which = np.unique(ordered.groups, return_inverse=True)
    # A group with several classes counts for the rarest of them, which is written last.
    rarest_last = np.argsort(-np.bincount(ordered.codes)[ordered.codes], kind="stable")
    codes = np.empty(len(numbers), np.int64)
    codes[which[rarest_last]] = ordered.codes[rarest_last]
    n_groups = -(-n_scored * len(numbers) // len(which))
    scored = np.isin(which, take_evenly(codes, n_groups, largest_part=0.5))
    return Split(np.flatnonzero(~scored), np.flatnonzero(scored))


def held_out_labels(
    training: TrainingSamples, splits: Sequence[Split], masses: FloatArray
) -> Labels:
    """Collect the labels of all scored samples; those of a single split are divided into folds, too."""
    scored = np.concatenate([np.empty(0, np.int64), *(split.scored for split in splits)])
    codes, weights = training.ordered.codes[scored], training.ordered.weights[scored]
    if len(splits) != 1:
        folds = np.repeat(np.arange(len(splits)), [len(split.scored) for split in splits])
        return Labels(codes, weights, folds, masses)
    # Larger fractions of rare classes are held out, so classes are reweighted to their shares of all samples.
    own = np.bincount(codes, weights=weights, minlength=len(masses))
    balanced = weights * np.divide(masses, own, where=own > 0.0, out=np.ones_like(own))[codes]
    folds = np.unique(training.ordered.groups[scored], return_inverse=True)[1] % N_FOLDS
    return Labels(codes, balanced * (weights.sum() / balanced.sum()), folds, masses)


class HeldOutForest(NamedTuple):
    """Scores of held-out samples at all bandwidths of a grid, and fits with one bandwidth for all classes."""

    scores: FloatArray
    grid: BandwidthGrid
    bandwidths: FloatArray  # those of the grid, in the unit of the forest's metric
    shared: SharedScalings


def hold_out_forest(
    training: TrainingSamples,
    splits: Sequence[Split],
    candidate: Candidate,
    labels: Labels,
    smoothing: float,
    background: bool,
    known: FloatArray | None,
) -> HeldOutForest:
    """Score held-out samples by forests that were not fitted to them, on a grid around the best bandwidth.

    The grid is shifted if the best bandwidth is at its end. If bandwidths are `known` from fewer samples, a
    smaller grid around them saves time.
    """
    forests = [training.grow(split.fitted, candidate) for split in splits]
    unit = float(np.mean([grown.unit for grown in forests]))
    grid = BandwidthGrid() if known is None else BandwidthGrid.for_more_samples(known, unit)
    for attempt in range(MAX_SHIFTS + 1):
        found = [
            _scores_on_grid(grown, split.scored, grid)
            for grown, split in zip(forests, splits, strict=True)
        ]
        scores = np.concatenate(found)
        shared = fit_shared_scalings(scores, labels, smoothing, background)
        step, last = shared.best.steps[0], scores.shape[2] - 1
        if attempt == MAX_SHIFTS or 0 < step < last or shared.best.slopes[0] == 0.0:
            break
        grid = grid._replace(widest=grid.widest * (SHIFT if step == 0 else 1.0 / SHIFT))
    return HeldOutForest(scores, grid, grid.ranked(unit), shared)


def _scores_on_grid(grown: GrownForest, places: IntArray, grid: BandwidthGrid) -> FloatArray:
    """Compute scores at all bandwidths of the grid, the widest first."""
    scores = grown.scores(places, grid.chains(grown.unit))
    by_chain = scores.reshape(*scores.shape[:2], grid.n_chains, -1)
    return np.swapaxes(by_chain, 2, 3).reshape(scores.shape)


class HeldOutPart(NamedTuple):
    """Logits of held-out samples by one of the parts on features, for several strengths."""

    strengths: list[float]
    exponents: list[FloatArray]
    losses: FloatArray  # (n_strengths, n_rows)
    fits: list[list[AdditiveEvidence | BoostedTrees]]  # by strength and split

    def first_fit(self, strength: float) -> AdditiveEvidence | BoostedTrees:
        """Return the fit with this strength in the first split."""
        return self.fits[self.strengths.index(strength)][0]


def hold_out_part(
    kind: str,
    known: float | None,
    fitted: Sequence[ScaledSamples],
    scored: Sequence[FloatArray],
    labels: Labels,
    n_samples: int,
) -> HeldOutPart:
    """Fit and score a part, from the strongest ridge or the fewest trees on, until the loss clearly rises.

    If a strength is `known` from fewer samples, only those near it are tried. `n_samples` is the number of
    samples, held out or not.
    """
    sizes = len(labels.masses), n_samples
    learners = [learner_of_kind(kind, each, *sizes, None, ROUGH_TOLERANCE) for each in fitted]
    columns = [
        learner.centered_columns(each.scaling.apply(new))
        for learner, each, new in zip(learners, fitted, scored, strict=True)
    ]
    first = learners[0]
    strengths = first.strengths if known is None else first.strengths_near(known)
    exponents: list[FloatArray] = []
    means: list[float] = []
    fits: list[list[AdditiveEvidence | BoostedTrees]] = []
    for strength in strengths:
        fits.append([learner.fit(strength) for learner in learners])
        found = [fit.exponents_of_columns(new) for fit, new in zip(fits[-1], columns, strict=True)]
        exponents.append(np.concatenate(found))
        means.append(labels.log_loss(exponents[-1]))
        if means[-1] > STOPPING_RATIO * min(means):
            break
    losses = log_losses(np.stack(exponents), labels.codes)
    return HeldOutPart(list(strengths[: len(exponents)]), exponents, losses, fits)


def learner_of_kind(
    kind: str,
    scaled: ScaledSamples,
    n_classes: int,
    n_samples: int,
    near: Any,
    tolerance: float,
) -> Boosting | RidgeRegressions:
    """Create the learner for a part on features: boosted "trees", or one of the kinds of regressions.

    `n_samples` is the number of samples, of which `scaled` may be a part.
    """
    if kind == "trees":
        return Boosting(*scaled[1:], n_classes, n_samples)
    return regressions_of_kind(kind, *scaled[1:], n_classes, near, tolerance)


def feature_parts(parts: tuple[str, ...], n_features: int, n_classes: int) -> tuple[str, ...]:
    """List the parts on features; "pairs" needs two features, and not too many coefficients."""
    n_slopes = (n_features * N_SPLINES + N_PRODUCTS) * (1 if n_classes == 2 else n_classes)
    without = () if n_features > 1 and n_slopes <= MAX_COEFFICIENTS_WITH_PAIRS else ("pairs",)
    return tuple(name for name in parts[1:] if name not in without)
