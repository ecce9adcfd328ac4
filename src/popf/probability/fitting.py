"""The steps of a fit: hold out samples, choose and pool on them, and fit the chosen model to all samples.

`choose` compares the forest on each candidate's features, the regressions and the trees on held-out samples;
`fit_evidence` then fits the chosen model to all samples. Regressions and trees are the *parts on features*.
"""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from popf.engine.runtime.threads import map_items, one_blas_thread, run_both
from popf.engine.structures import BoolArray, FloatArray
from popf.forest.metrics import Metric
from popf.probability.boosting import BoostedTrees
from popf.probability.features import Candidate, Scaling, candidates_for
from popf.probability.held_out import (
    HeldOutForest,
    HeldOutPart,
    Split,
    feature_parts,
    fold_splits,
    held_out_labels,
    hold_out_forest,
    hold_out_part,
    learner_of_kind,
    one_split,
)
from popf.probability.pooling import (
    FOREST,
    PARTS,
    Evidence,
    HeldOut,
    Pool,
    fit_pool,
    trust_in,
)
from popf.probability.regressions import ROUGH_TOLERANCE, TOLERANCE, AdditiveEvidence
from popf.probability.soft_competition import (
    FAR_BEHIND,
    MIN_SCORE,
    BandwidthGrid,
    ForestScaling,
    fit_class_scaling,
    fit_shared_scalings,
)
from popf.probability.softmax import Labels, centered, log_softmax, prior_exponents
from popf.probability.training import (
    N_FOR_FEATURES,
    GrownForest,
    TrainingSamples,
    take_evenly,
)

#: Maximum number of samples for the first choice, which includes maps and strengths.
N_TO_CHOOSE = 5000
#: From this number of samples on, a single split replaces the folds; it holds out about `N_TO_CHOOSE` samples.
N_FOR_ONE_SPLIT = 10_000
#: Maximum number of samples for the second choice, of bandwidths, slopes and weights.
N_TO_SPLIT = 100_000
#: Standard errors by which the forest's accuracy must exceed that of the most frequent class for a warning.
N_STANDARD_ERRORS = 4.0


class Options(NamedTuple):
    """Options of a fit; `smoothing` is that of the targets."""

    parts: tuple[str, ...]  # "forest", and with features "linear", "spline", "pairs" and "trees"
    squash: str | bool
    linear_map: Any
    background: bool
    class_bandwidths: bool
    smoothing: float


def options_of(model: Any, metric: Metric) -> Options:
    """Collect the options from the validated parameters of an estimator."""
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
    """Everything that is chosen on held-out samples."""

    candidate: Candidate  # the features of the forest
    grid: BandwidthGrid
    bandwidths: FloatArray  # of the classes, in the unit of the forest's metric
    scaling: ForestScaling
    strengths: dict[str, float]  # by part on features: inverse ridge strength, or number of rounds
    pool: Pool
    trust: float  # from 0, for the class frequencies alone, to 1
    held_out: HeldOut
    accuracy: float  # of the forest at the narrowest bandwidth
    n_held_out: float  # effective number of held-out samples, given their weights
    learned: "Learned | None" = None  # parts on features fitted to a single split


class Learned(NamedTuple):
    """Parts on features, fitted to some of the samples."""

    n_samples: int
    scaling: Scaling
    parts: dict[str, AdditiveEvidence | BoostedTrees]


def fit_evidence(training: TrainingSamples, options: Options) -> tuple[Evidence, GrownForest]:
    """Choose everything on held-out samples, then fit it to all samples."""
    codes = training.ordered.codes
    # Several BLAS threads are many times slower on matrices this small, and on a busy machine.
    with one_blas_thread():
        candidates = candidates_for(options.squash, options.linear_map, training.metric)
        most = training
        if len(codes) > N_TO_SPLIT:
            most = training.take(take_evenly(codes, N_TO_SPLIT))
        available, splits = np.arange(len(most.ordered.rows)), fold_splits(most.ordered)
        if len(codes) >= N_FOR_ONE_SPLIT:
            # Maps and strengths are chosen without the samples that bandwidths and weights are fitted to.
            splits = [one_split(most.ordered, N_TO_CHOOSE)]
            available = splits[0].fitted
        few = most.take(available[take_evenly(most.ordered.codes[available], N_TO_CHOOSE)])
        choice = choose(few, fold_splits(few.ordered), candidates, options)
        if len(codes) > N_TO_CHOOSE and choice.held_out.losses:
            # Maps and strengths are kept; bandwidths, slopes and weights depend on the number of samples.
            later = choose(most, splits, [choice.candidate], options, choice, training.masses)
            choice = later._replace(held_out=later.held_out.after(choice.held_out))
        evidence, grown = fit_chosen(training, choice, bool(options.squash))
    warn_if_useless(choice.trust, choice.accuracy, choice.n_held_out, training.masses)
    return evidence, grown


def choose(
    training: TrainingSamples,
    splits: Sequence[Split],
    candidates: Sequence[Candidate],
    options: Options,
    before: Choice | None = None,
    masses: FloatArray | None = None,
) -> Choice:
    """Choose features, bandwidths, strengths and pool weights on held-out samples.

    `before` is an earlier choice on fewer samples: its strengths are kept, its bandwidths limit the
    search, and regressions without weight in its pool are left out. `masses` are the class weights of the whole
    set, if `training` is a subset.
    """
    labels = held_out_labels(training, splits, training.masses if masses is None else masses)
    weights, prior = labels.weights, labels.prior
    if len(np.unique(labels.codes)) < 2:
        return _choose_prior(candidates[0], prior)

    forests, (on_features, scalings) = run_both(
        lambda: hold_out_forests(training, splits, candidates, labels, options, before),
        lambda: hold_out_parts(training, splits, labels, options, before),
        training.resources.n_threads,
    )
    chosen = choose_parts(forests, on_features, labels, np.full(len(weights), True), options)
    forest, scaling, exponents = forests[chosen.forest], chosen.scaling, chosen.exponents
    pool = fit_pool(exponents, labels, options.smoothing)
    # The forest's mean logits say nothing about a single sample, so they are moved to the biases of the pool.
    mean = np.average(exponents[0], axis=0, weights=weights)
    scaling = scaling._replace(biases=scaling.biases - mean)
    pool = pool._replace(biases=pool.biases + pool.weights[0] * mean)

    by_name = unseen_exponents(forests, on_features, labels, options)
    losses = {name: labels.log_loss(each) for name, each in by_name.items()}
    names = [candidate.name for candidate in candidates]
    learned = None
    if len(splits) == 1 and on_features:
        fits = {name: part.first_fit(chosen.strengths[name]) for name, part in on_features.items()}
        learned = Learned(len(splits[0].fitted), scalings[0], fits)
    return Choice(
        candidate=candidates[chosen.forest],
        grid=forest.grid,
        bandwidths=forest.bandwidths[scaling.steps],
        scaling=scaling,
        strengths=chosen.strengths,
        pool=pool,
        trust=trust_in(losses, weights),
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


def hold_out_forests(
    training: TrainingSamples,
    splits: Sequence[Split],
    candidates: Sequence[Candidate],
    labels: Labels,
    options: Options,
    before: Choice | None,
) -> list[HeldOutForest]:
    """Score held-out samples with forests on the features of each candidate."""
    known = None if before is None else before.bandwidths
    settings = options.smoothing, options.background, known
    n_threads = training.resources.n_threads
    # Several forests are grown in parallel, on one thread each; a single one uses all threads.
    for_forests = training.on_threads(1) if len(candidates) > 1 else training
    return map_items(
        lambda candidate: hold_out_forest(for_forests, splits, candidate, labels, *settings),
        candidates,
        n_threads,
    )


def hold_out_parts(
    training: TrainingSamples,
    splits: Sequence[Split],
    labels: Labels,
    options: Options,
    before: Choice | None,
) -> tuple[dict[str, HeldOutPart], list[Scaling]]:
    """Score held-out samples with the parts on features; also return the scaling of each split."""
    if options.parts == (FOREST,):
        return {}, []
    fitted = [training.scaled(split.fitted, bool(options.squash)) for split in splits]
    scored = [training.features(split.scored) for split in splits]
    kinds = feature_parts(options.parts, scored[0].shape[1], len(labels.masses))
    known: dict[str, float] = {}
    n_samples = len(training.ordered.rows)
    if before is not None:
        kinds, known = useful_parts(kinds, before), before.strengths
    found = map_items(
        lambda kind: hold_out_part(kind, known.get(kind), fitted, scored, labels, n_samples),
        kinds,
        training.resources.n_threads,
    )
    return dict(zip(kinds, found, strict=True)), [each.scaling for each in fitted]


def unseen_exponents(
    forests: Sequence[HeldOutForest],
    on_features: dict[str, HeldOutPart],
    labels: Labels,
    options: Options,
) -> dict[str, FloatArray]:
    """Compute the logits of each fold by choices made on the other folds: of each part, "pool" and "prior"."""
    names = [FOREST, *on_features, "pool"]
    found = np.empty((len(names), len(labels.codes), len(labels.masses)))
    for fold in np.unique(labels.folds):
        here = labels.folds == fold
        parts = choose_parts(forests, on_features, labels, ~here, options).exponents
        pool = fit_pool(parts[:, ~here], labels.take(~here), options.smoothing)
        found[:-1, here], found[-1, here] = parts[:, here], pool.exponents(parts[:, here])
    prior = np.broadcast_to(labels.prior, found.shape[1:])
    return {**dict(zip(names, found, strict=True)), "prior": prior}


def useful_parts(kinds: tuple[str, ...], before: Choice) -> tuple[str, ...]:
    """Leave out regressions without weight in an earlier pool, which more samples would hardly change."""
    weights = dict(zip(before.strengths, before.pool.weights[1:], strict=True))
    return tuple(kind for kind in kinds if kind == "trees" or weights[kind] > 0.0)


class Parts(NamedTuple):
    """Choices made on some of the held-out samples, and the resulting logits of all of them."""

    forest: int  # index of the chosen forest
    scaling: ForestScaling
    strengths: dict[str, float]
    exponents: FloatArray  # (n_parts, n_rows, n_classes)


def choose_parts(
    forests: Sequence[HeldOutForest],
    on_features: dict[str, HeldOutPart],
    labels: Labels,
    rows: BoolArray,
    options: Options,
) -> Parts:
    """Choose map, bandwidths, slopes and strengths on the held-out samples that `rows` selects."""
    weights, here = labels.weights * rows, labels.take(rows)
    smoothing, background = options.smoothing, options.background
    # Refitting slopes to these rows changes losses little, so forests far behind the best are skipped.
    totals = np.array([(forest.shared.losses @ weights).min() for forest in forests])
    contenders = np.flatnonzero(totals <= totals.min() + FAR_BEHIND + len(labels.masses))
    fits = {}
    for number in contenders.tolist():
        scores, fits[number] = forests[number].scores, forests[number].shared
        if not rows.all():
            near = fits[number]._replace(losses=fits[number].losses[:, rows])
            fits[number] = fit_shared_scalings(scores[rows], here, smoothing, background, near)
    chosen = min(fits, key=lambda number: fits[number].best.loss)  # if tied, the simplest map
    forest, scaling = forests[chosen], fits[chosen].best
    if options.class_bandwidths:
        scaling = fit_class_scaling(fits[chosen], here, smoothing, forest.grid)
    exponents, strengths = [scaling.exponents_on_grid(forest.scores)], {}
    for name, tried in on_features.items():
        # If tied, the strongest ridge or the fewest trees, which come first.
        own = int(np.argmin(tried.losses @ weights))
        strengths[name] = tried.strengths[own]
        exponents.append(tried.exponents[own])
    return Parts(chosen, scaling, strengths, centered(np.stack(exponents)))


def fit_chosen(
    training: TrainingSamples, choice: Choice, squash: bool
) -> tuple[Evidence, GrownForest]:
    """Fit the chosen model to all samples."""
    ordered, pool = training.ordered, choice.pool
    weights = dict(zip(choice.strengths, pool.weights[1:], strict=True))
    used = [name for name, weight in weights.items() if weight > 0.0]
    grown, learned = run_both(
        lambda: training.grow(None, choice.candidate),
        lambda: fit_parts(training, used, choice, squash) if used else None,
        training.resources.n_threads,
    )
    bandwidths = choice.bandwidths
    if len(ordered.rows) <= N_TO_SPLIT:
        # Adapt them to the lower costs in this larger forest; those chosen on a subset are kept.
        bandwidths = choice.grid.ranked(grown.unit)[choice.scaling.steps]
    on_features: dict[str, AdditiveEvidence | BoostedTrees] = {}
    if learned is not None:
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
        scaling=learned.scaling if learned else None,
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
    """Fit parts on features to all samples, or to at most `N_FOR_FEATURES`, starting from an earlier fit.

    If the earlier fit had as many samples, it is returned unchanged. A fit to 85 % of the samples is not kept:
    that saved about 1 s on two tables of 34,000 and 40,000 rows, but raised their log loss by 0.7 and 0.6 %.
    """
    everyone, before = np.arange(len(training.ordered.rows)), choice.learned
    if before is not None and before.n_samples >= min(len(everyone), N_FOR_FEATURES):
        return before
    scaling, known = (None, {}) if before is None else (before.scaling, before.parts)
    scaled = training.scaled(everyone, squash, scaling)

    def fit(kind: str) -> AdditiveEvidence | BoostedTrees:
        near = known.get(kind)
        tolerance = TOLERANCE if near is None else ROUGH_TOLERANCE
        sizes = training.n_classes, len(everyone)
        learner = learner_of_kind(kind, scaled, *sizes, near, tolerance)
        return learner.fit(choice.strengths[kind])

    parts = map_items(fit, kinds, training.resources.n_threads)
    return Learned(len(everyone), scaled.scaling, dict(zip(kinds, parts, strict=True)))


def _accuracy(exponents: FloatArray, labels: Labels) -> float:
    right = exponents.argmax(axis=1) == labels.codes
    return float(np.average(right, weights=labels.weights))


def area_under_curve(exponents: FloatArray, labels: Labels) -> float:
    """Compute the area under the ROC curve; for more than two classes, the mean of one-vs-rest areas."""
    logs, codes = log_softmax(exponents), labels.codes
    classes = [1] if logs.shape[1] == 2 else np.unique(codes).tolist()
    weights = labels.weights
    areas = []
    for k in classes:
        # Weight of the rest that ranks below each sample of the class; ties count one half.
        _, ranks = np.unique(logs[:, k], return_inverse=True)
        own = np.bincount(ranks, weights=weights * (codes == k))
        rest = np.bincount(ranks, weights=weights * (codes != k))
        areas.append(own @ (np.cumsum(rest) - rest / 2.0) / (own.sum() * rest.sum()))
    return float(np.mean(areas))


def _choose_prior(candidate: Candidate, prior: FloatArray) -> Choice:
    """Return a choice that predicts the class frequencies, for too few samples to hold any out."""
    nothing = np.zeros(len(prior))
    scaling = ForestScaling(nothing.astype(int), nothing + MIN_SCORE, nothing, prior, 0.0)
    pool = Pool(np.ones(1), nothing)
    held_out = HeldOut({}, {}, {}, {})
    grid, bandwidths = BandwidthGrid(), nothing + np.inf
    return Choice(candidate, grid, bandwidths, scaling, {}, pool, 0.0, held_out, 0.0, 0.0)


def warn_if_useless(trust: float, accuracy: float, n_held_out: float, masses: FloatArray) -> None:
    """Warn if the forest separates the classes, but the probabilities are mostly the class frequencies."""
    frequent = float(masses.max() / masses.sum())
    error = np.sqrt(frequent * (1.0 - frequent) / max(n_held_out, 1.0))
    if trust < 0.5 and accuracy > frequent + N_STANDARD_ERRORS * error:
        warnings.warn(
            f"The forest labels {accuracy:.0%} of held-out samples correctly (always predicting the most "
            f"frequent class: {frequent:.0%}), but no probabilities better than the class frequencies were "
            "found: the labels of OPFClassifier may serve you better here.",
            UserWarning,
            stacklevel=5,
        )
