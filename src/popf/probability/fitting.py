"""The order of a fit: hold samples out, choose by them, pool, and fit what was chosen to all samples.

`choose` compares the forest with each candidate's features, the regressions and the trees on samples that they
have not seen; `fit_evidence` then fits what was chosen to all samples.
"""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from popf.engine.runtime.threads import map_items, one_blas_thread
from popf.engine.structures import BoolArray, FloatArray, IntArray
from popf.forest.metrics import Metric
from popf.probability.basis import N_PRODUCTS, N_SPLINES
from popf.probability.boosting import BoostedTrees, Boosting
from popf.probability.features import Candidate, Scaling, candidates_for
from popf.probability.pooling import (
    FOREST,
    PARTS,
    Evidence,
    HeldOut,
    Pool,
    fit_pool,
    trust_in,
)
from popf.probability.regressions import (
    LEAST_GAIN,
    ROUGHLY,
    AdditiveEvidence,
    RidgeRegressions,
    regressions_of_kind,
)
from popf.probability.soft_competition import (
    FAR_BEHIND,
    LOWEST,
    BandwidthGrid,
    ForestScaling,
    SharedScalings,
    fit_class_scaling,
    fit_shared_scalings,
)
from popf.probability.softmax import Labels, centered, log_losses, log_softmax, prior_exponents
from popf.probability.training import (
    N_FOLDS,
    N_FOR_FEATURES,
    GrownForest,
    OrderedSamples,
    ScaledSamples,
    TrainingSamples,
    deal_folds,
    take_evenly,
)

#: From how many samples everything is chosen at most.
N_TO_CHOOSE = 5000
#: From so many samples on a single split, with as many samples held out, stands for the folds.
N_FOR_ONE_SPLIT = 10_000
#: From how many samples bandwidths, slopes and weights are chosen once more at most.
N_TO_SPLIT = 100_000
#: By what the grid of bandwidths is moved where the best is at its end, and how often.
SHIFT, MOST_SHIFTS = 16.0, 1
#: A ratio of log losses at which no weaker ridge, and no more trees, are tried.
CLEARLY_WORSE = 1.02
#: Pairs of features are tried only if a regression has no more slopes.
MOST_WITH_PAIRS = 500
#: By how many standard errors labels must beat the most frequent class to be called good.
CLEARLY = 4.0


class Options(NamedTuple):
    """What is asked for; `smoothing` is that of the targets."""

    parts: tuple[str, ...]  # "forest", and with features "linear", "spline", "pairs" and "trees"
    squash: str | bool
    linear_map: Any
    background: bool
    class_bandwidths: bool
    smoothing: float


def options_of(model: Any, metric: Metric) -> Options:
    """Collect the options that checked parameters ask for."""
    features = isinstance(model.metric, str) and not metric.precomputed
    return Options(
        PARTS if model.method == "pooled" and features else (FOREST,),
        model.squash,
        None if metric.precomputed else model.linear_map,
        model.background,
        model.class_bandwidths,
        0.5 if model.smoothing is None else model.smoothing,
    )


class Choice(NamedTuple):
    """What the held-out samples decide."""

    candidate: Candidate  # the features of the forest
    grid: BandwidthGrid
    bandwidths: FloatArray  # of the classes, in the unit of the forest's metric
    scaling: ForestScaling
    strengths: dict[str, float]  # of the parts on features
    pool: Pool
    trust: float  # from 0, where the class frequencies are the answer, to 1
    held_out: HeldOut
    accuracy: float  # of the narrowest scores
    n_held_out: float  # how many samples of equal weight would tell as much
    learned: "Learned | None" = None  # by the parts on features, where there is a single split


class Learned(NamedTuple):
    """What the parts on features learned from some of the samples."""

    n_samples: int
    scaling: Scaling
    parts: dict[str, AdditiveEvidence | BoostedTrees]


def fit_evidence(training: TrainingSamples, options: Options) -> tuple[Evidence, GrownForest]:
    """Choose everything by held-out samples, then fit it to all."""
    codes = training.ordered.codes
    # More threads take many times as long on matrices so small, and on a busy machine.
    with one_blas_thread():
        candidates = candidates_for(options.squash, options.linear_map, training.metric)
        enough = training
        if len(codes) > N_TO_SPLIT:
            enough = training.take(take_evenly(codes, N_TO_SPLIT))
        choosers, splits = np.arange(len(enough.ordered.rows)), fold_splits(enough.ordered)
        if len(codes) >= N_FOR_ONE_SPLIT:
            # Samples that judge bandwidths and weights have no say in maps and strengths.
            splits = [one_split(enough.ordered)]
            choosers = splits[0].fitted
        small = enough.take(choosers[take_evenly(enough.ordered.codes[choosers], N_TO_CHOOSE)])
        choice = choose(small, fold_splits(small.ordered), candidates, options)
        if len(codes) > N_TO_CHOOSE and choice.held_out.losses:
            # Maps and regressions stay; bandwidths, slopes and weights depend on how many samples there are.
            later = choose(enough, splits, [choice.candidate], options, choice, training.masses)
            choice = later._replace(held_out=later.held_out.after(choice.held_out))
        evidence, grown = fit_chosen(training, choice, bool(options.squash))
    warn_if_useless(choice.trust, choice.accuracy, choice.n_held_out, training.masses)
    return evidence, grown


def choose(
    training: TrainingSamples,
    splits: "Sequence[Split]",
    candidates: Sequence[Candidate],
    options: Options,
    before: Choice | None = None,
    masses: FloatArray | None = None,
) -> Choice:
    """Choose features, bandwidths, strengths and weights by samples that the parts have not seen.

    `before` is what fewer samples decided: the strengths, about where bandwidths are, and which regressions
    are of no use. `masses` are the weights of the classes, where these samples are some of many.
    """
    labels = held_out_labels(training, splits, training.masses if masses is None else masses)
    codes, weights, prior = labels.codes, labels.weights, labels.prior
    if len(np.unique(codes)) < 2:
        return _nothing_to_choose(candidates[0], prior)

    # Hold out: all forests and regressions score samples that they were not fitted to.
    widest = None if before is None else float(before.bandwidths.max())
    n_threads = training.resources.n_threads
    # Several forests grow side by side, on one thread each; a single one has them all.
    alone = training.on_threads(1) if len(candidates) > 1 else training
    forests = map_items(
        lambda candidate: hold_out_forest(alone, splits, candidate, labels, options, widest),
        candidates,
        n_threads,
    )
    on_features, learned = {}, None
    if len(options.parts) > 1:
        fitted = [training.scaled(split.fitted, bool(options.squash)) for split in splits]
        scored = [training.features(split.scored) for split in splits]
        kinds = feature_parts(options.parts, scored[0].shape[1], len(prior))
        if before is not None:
            kinds = useful_parts(kinds, before)
        known = {} if before is None else before.strengths
        found = map_items(
            lambda kind: hold_out_part(kind, known.get(kind), fitted, scored, labels),
            kinds,
            n_threads,
        )
        on_features = dict(zip(kinds, found, strict=True))
        if len(splits) == 1:
            parts = {kind: part.fits[0] for kind, part in on_features.items()}
            learned = Learned(len(splits[0].fitted), fitted[0].scaling, parts)
    chosen = choose_parts(forests, on_features, labels, np.full(len(codes), True), options)
    forest, scaling, exponents = forests[chosen.forest], chosen.scaling, chosen.exponents
    pool = fit_pool(exponents, labels, options.smoothing)
    # The mean of the forest's exponents is no evidence on any sample: it belongs to the biases of the pool.
    mean = np.average(exponents[0], axis=0, weights=weights)
    scaling = scaling._replace(biases=scaling.biases - mean)
    pool = pool._replace(biases=pool.biases + pool.weights[0] * mean)

    # What the others would choose says of each fold how good parts and pool are, and how far to trust them.
    unseen, pooled = np.empty_like(exponents), np.empty_like(exponents[0])
    for fold in np.unique(labels.folds):
        here = labels.folds == fold
        without = choose_parts(forests, on_features, labels, ~here, options).exponents
        unseen[:, here] = without[:, here]
        of_others = fit_pool(without[:, ~here], labels.take(~here), options.smoothing)
        pooled[here] = of_others.exponents(without[:, here])
    by_name = dict(zip([FOREST, *on_features, "pool"], [*unseen, pooled], strict=True))
    by_name["prior"] = np.broadcast_to(prior, pooled.shape)
    losses = {name: labels.log_loss(each) for name, each in by_name.items()}
    names = [candidate.name for candidate in candidates]
    return Choice(
        candidate=candidates[chosen.forest],
        grid=forest.grid,
        bandwidths=forest.bandwidths[scaling.steps],
        scaling=scaling,
        strengths=chosen.strengths,
        pool=pool,
        trust=trust_in(
            losses, max(float(weights.sum()), len(weights))
        ),  # a mean weight of 1 at least
        held_out=HeldOut(
            losses=losses,
            accuracies={name: _accuracy(each, labels) for name, each in by_name.items()},
            aucs={name: area_under_curve(each, labels) for name, each in by_name.items()},
            map_losses=dict(zip(names, [found.shared.best.loss for found in forests], strict=True)),
        ),
        accuracy=_accuracy(forest.scores[:, :, -1], labels),
        n_held_out=float(weights.sum() * (weights.sum() / (weights @ weights))),
        learned=learned,
    )


def feature_parts(parts: tuple[str, ...], n_features: int, n_classes: int) -> tuple[str, ...]:
    """Leave the forest out, and pairs where there are none or where they would cost too much."""
    n_slopes = (n_features * N_SPLINES + N_PRODUCTS) * (1 if n_classes == 2 else n_classes)
    without = () if n_features > 1 and n_slopes <= MOST_WITH_PAIRS else ("pairs",)
    return tuple(name for name in parts[1:] if name not in without)


def useful_parts(kinds: tuple[str, ...], before: Choice) -> tuple[str, ...]:
    """Leave out regressions that add nothing to the others: more samples would not change that much."""
    weights = dict(zip(before.strengths, before.pool.weights[1:], strict=True))
    return tuple(kind for kind in kinds if kind == "trees" or weights[kind] > 0.0)


class Parts(NamedTuple):
    """What some of the held-out samples choose, and what all are told by it."""

    forest: int  # which of the forests
    scaling: ForestScaling
    strengths: dict[str, float]
    exponents: FloatArray  # (n_parts, n_rows, n_classes)


def choose_parts(
    forests: "Sequence[HeldOutForest]",
    on_features: "dict[str, HeldOutPart]",
    labels: Labels,
    rows: BoolArray,
    options: Options,
) -> Parts:
    """Choose map, bandwidths, slopes and strengths by some of the held-out samples."""
    weights, here = labels.weights * rows, labels.take(rows)
    smoothing, background = options.smoothing, options.background
    # Slopes that fit these samples alone gain little; a forest that is far behind stays so.
    totals = np.array([(forest.shared.losses @ weights).min() for forest in forests])
    hopeful = np.flatnonzero(totals <= totals.min() + FAR_BEHIND + len(labels.masses))
    fits = {}
    for number in hopeful.tolist():
        scores, fits[number] = forests[number].scores, forests[number].shared
        if not rows.all():
            near = fits[number]._replace(losses=fits[number].losses[:, rows])
            fits[number] = fit_shared_scalings(scores[rows], here, smoothing, background, near)
    chosen = min(fits, key=lambda number: fits[number].best.loss)  # of equals the simplest
    forest, scaling = forests[chosen], fits[chosen].best
    if options.class_bandwidths:
        scaling = fit_class_scaling(fits[chosen], here, smoothing, forest.grid)
    exponents, strengths = [scaling.exponents_on_grid(forest.scores)], {}
    for name, tried in on_features.items():
        # Of equals the strongest ridge, or the fewest trees.
        own = int(np.argmin(tried.losses @ weights))
        strengths[name] = tried.strengths[own]
        exponents.append(tried.exponents[own])
    return Parts(chosen, scaling, strengths, centered(np.stack(exponents)))


def learner_of_kind(
    kind: str,
    scaled: ScaledSamples,
    n_classes: int,
    near: Any = None,
    least_gain: float = LEAST_GAIN,
) -> Boosting | RidgeRegressions:
    """Prepare what learns from features: boosted "trees", or one of the kinds of regressions."""
    if kind == "trees":
        return Boosting(*scaled[1:], n_classes)
    return regressions_of_kind(kind, *scaled[1:], n_classes, near, least_gain)


def fit_chosen(
    training: TrainingSamples, choice: Choice, squash: bool
) -> tuple[Evidence, GrownForest]:
    """Fit what was chosen to all samples."""
    grown = training.grow(None, choice.candidate)
    ordered, pool = training.ordered, choice.pool
    bandwidths = choice.bandwidths
    if len(ordered.rows) <= N_TO_SPLIT:
        # They get narrower as neighbours get closer; where fewer samples chose, that is left out.
        bandwidths = choice.grid.ranked(grown.unit)[choice.scaling.steps]
    weights = dict(zip(choice.strengths, pool.weights[1:], strict=True))
    used = [name for name, weight in weights.items() if weight > 0.0]
    on_features: dict[str, AdditiveEvidence | BoostedTrees] = {}
    scaling = None
    if used:
        learned = fit_parts(training, used, choice, squash)
        scaling = learned.scaling
        for name in used:
            on_features[name], intercepts = learned.parts[name].without_intercepts()
            pool = pool._replace(biases=pool.biases + weights[name] * centered(intercepts))
    own_weights = np.array([pool.weights[0], *(weights[name] for name in used)])
    evidence = Evidence(
        preparation=grown.preparation,
        nodes=ordered.rows,
        node_weights=ordered.weights,
        bandwidths=bandwidths,
        forest_scaling=choice.scaling,
        scaling=scaling,
        on_features=on_features,
        pool=pool._replace(weights=own_weights),
        trust=choice.trust,
        prior=prior_exponents(training.masses),
        held_out=choice.held_out,
        competition=grown.competition,
    )
    return evidence, grown


def fit_parts(
    training: TrainingSamples, kinds: Sequence[str], choice: Choice, squash: bool
) -> Learned:
    """Fit parts on features to all samples, or to enough, beginning with what some samples taught them."""
    everyone, before = np.arange(len(training.ordered.rows)), choice.learned
    if before is not None and before.n_samples >= min(len(everyone), N_FOR_FEATURES):
        return before
    scaling, known = (None, {}) if before is None else (before.scaling, before.parts)
    scaled = training.scaled(everyone, squash, scaling)

    def fit(kind: str) -> AdditiveEvidence | BoostedTrees:
        learner = learner_of_kind(kind, scaled, training.n_classes, known.get(kind))
        return learner.fit(choice.strengths[kind])

    parts = map_items(fit, kinds, training.resources.n_threads)
    return Learned(len(everyone), scaled.scaling, dict(zip(kinds, parts, strict=True)))


class Split(NamedTuple):
    """Places in the order: on which parts are fitted, and which are scored."""

    fitted: IntArray
    scored: IntArray


def fold_splits(ordered: OrderedSamples) -> list[Split]:
    """Deal samples to folds, each of which is scored by what was fitted to the others."""
    folds = deal_folds(ordered)
    splits = [
        Split(np.flatnonzero(folds != fold), np.flatnonzero(folds == fold))
        for fold in range(N_FOLDS)
    ]
    return [split for split in splits if len(split.scored) and len(split.fitted)]


def one_split(ordered: OrderedSamples) -> Split:
    """Hold some of many samples out: whole groups, no more than half of those of any class."""
    numbers, which = np.unique(ordered.groups, return_inverse=True)
    # A group of several classes is one of the rarest, which is written last.
    rarest_last = np.argsort(-np.bincount(ordered.codes)[ordered.codes], kind="stable")
    codes = np.empty(len(numbers), np.int64)
    codes[which[rarest_last]] = ordered.codes[rarest_last]
    n_groups = -(-N_TO_CHOOSE * len(numbers) // len(which))
    scored = np.isin(which, take_evenly(codes, n_groups, largest_part=0.5))
    return Split(np.flatnonzero(~scored), np.flatnonzero(scored))


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
    folds = np.unique(training.ordered.groups[scored], return_inverse=True)[1] % 2
    return Labels(codes, balanced * (weights.sum() / balanced.sum()), folds, masses)


class HeldOutForest(NamedTuple):
    """Scores of held-out samples at all bandwidths of a grid, and what one bandwidth for all classes gives."""

    scores: FloatArray
    grid: BandwidthGrid
    bandwidths: FloatArray  # those of the grid, in the unit of the forest's metric
    shared: SharedScalings


def hold_out_forest(
    training: TrainingSamples,
    splits: Sequence[Split],
    candidate: Candidate,
    labels: Labels,
    options: Options,
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
        found = [
            _scores_on_grid(grown, split.scored, grid)
            for grown, split in zip(forests, splits, strict=True)
        ]
        scores = np.concatenate(found)
        shared = fit_shared_scalings(scores, labels, options.smoothing, options.background)
        step, last = shared.best.steps[0], scores.shape[2] - 1
        if attempt == MOST_SHIFTS or 0 < step < last or shared.best.slopes[0] == 0.0:
            break
        grid = grid._replace(widest=grid.widest * (SHIFT if step == 0 else 1.0 / SHIFT))
    return HeldOutForest(scores, grid, grid.ranked(unit), shared)


def _scores_on_grid(grown: GrownForest, places: IntArray, grid: BandwidthGrid) -> FloatArray:
    """Scores at all bandwidths of the grid, the widest first."""
    scores = grown.scores(places, grid.chains(grown.unit))
    by_chain = scores.reshape(*scores.shape[:2], grid.n_chains, -1)
    return np.swapaxes(by_chain, 2, 3).reshape(scores.shape)


class HeldOutPart(NamedTuple):
    """Exponents of held-out samples by one of the parts on features, for several strengths."""

    strengths: list[float]
    exponents: list[FloatArray]
    losses: FloatArray  # (n_strengths, n_rows)
    fits: list[AdditiveEvidence | BoostedTrees]  # of the last strength, by split


def hold_out_part(
    kind: str,
    known: float | None,
    fitted: Sequence[ScaledSamples],
    scored: Sequence[FloatArray],
    labels: Labels,
) -> HeldOutPart:
    """Fit from the strongest ridge, or the fewest trees, on until the loss clearly rises; or once, if known."""
    learners = [
        learner_of_kind(kind, each, len(labels.masses), least_gain=ROUGHLY) for each in fitted
    ]
    columns = [
        learner.centered_columns(each.scaling.apply(new))
        for learner, each, new in zip(learners, fitted, scored, strict=True)
    ]
    strengths = learners[0].strengths if known is None else (known,)
    exponents: list[FloatArray] = []
    means: list[float] = []
    for strength in strengths:
        fits = [learner.fit(strength) for learner in learners]
        found = [fit.exponents_of_columns(new) for fit, new in zip(fits, columns, strict=True)]
        exponents.append(np.concatenate(found))
        means.append(labels.log_loss(exponents[-1]))
        if means[-1] > CLEARLY_WORSE * min(means):
            break
    losses = log_losses(np.stack(exponents), labels.codes)
    return HeldOutPart(list(strengths[: len(exponents)]), exponents, losses, fits)


def _accuracy(exponents: FloatArray, labels: Labels) -> float:
    right = exponents.argmax(axis=1) == labels.codes
    return float(np.average(right, weights=labels.weights))


def area_under_curve(exponents: FloatArray, labels: Labels) -> float:
    """Area under the ROC curve, for more than two classes the mean over classes against the rest."""
    logs, codes = log_softmax(exponents), labels.codes
    classes = [1] if logs.shape[1] == 2 else np.unique(codes).tolist()
    weights = labels.weights
    areas = []
    for k in classes:
        # How much of the rest is below a sample of the class; of equals one half.
        _, ranks = np.unique(logs[:, k], return_inverse=True)
        own = np.bincount(ranks, weights=weights * (codes == k))
        rest = np.bincount(ranks, weights=weights * (codes != k))
        areas.append(own @ (np.cumsum(rest) - rest / 2.0) / (own.sum() * rest.sum()))
    return float(np.mean(areas))


def _nothing_to_choose(candidate: Candidate, prior: FloatArray) -> Choice:
    """Answer the prior: too few samples to hold any out."""
    nothing = np.zeros(len(prior))
    scaling = ForestScaling(nothing.astype(int), nothing + LOWEST, nothing, prior, 0.0)
    pool = Pool(np.ones(1), nothing)
    held_out = HeldOut({}, {}, {}, {})
    grid, bandwidths = BandwidthGrid(), nothing + np.inf
    return Choice(candidate, grid, bandwidths, scaling, {}, pool, 0.0, held_out, 0.0, 0.0)


def warn_if_useless(trust: float, accuracy: float, n_held_out: float, masses: FloatArray) -> None:
    """Warn where the forest clearly tells the classes apart, but the probabilities are those of the prior."""
    frequent = float(masses.max() / masses.sum())
    error = np.sqrt(frequent * (1.0 - frequent) / max(n_held_out, 1.0))
    if trust < 0.5 and accuracy > frequent + CLEARLY * error:
        warnings.warn(
            f"The forest labels {accuracy:.0%} of held-out samples correctly, the most frequent class "
            f"{frequent:.0%}, but no probabilities better than the class frequencies were found: the labels of "
            "OPFClassifier may serve you better here.",
            UserWarning,
            stacklevel=5,
        )
