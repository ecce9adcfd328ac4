"""The fit: choose and pool on held-out samples, then fit what was chosen to all samples."""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from popf.engine.runtime.threads import map_items, one_blas_thread, run_both
from popf.engine.structures import FloatArray, IntArray
from popf.forest.optimum_path_forest import OptimumPathForest, grow_forest
from popf.forest.validation import TrainingData
from popf.probability.additive import AdditiveModel
from popf.probability.columns import Columns
from popf.probability.components import Fold
from popf.probability.encoding import FittedTable, fit_table
from popf.probability.folds import CanonicalSamples, canonical_samples
from popf.probability.forest_component import (
    Calibration,
    ForestModel,
    Growing,
    Prepare,
    prepare,
)
from popf.probability.held_out import COMPONENTS, Choice, HeldOut, Stage, hold_out
from popf.probability.linear_maps import AS_GIVEN, fit_map
from popf.probability.logits import prior_logits
from popf.probability.pool import FittedPool, Scores, confidence_in, fit_weights
from popf.probability.scaler import FeatureScaler, fit_scaler
from popf.probability.trees import BoostedTrees

#: Standard errors by which the forest's accuracy must exceed that of the most frequent class for a warning.
N_STANDARD_ERRORS = 4.0


class Pooled(NamedTuple):
    """What was chosen on held-out samples, and how it is pooled."""

    choice: Choice
    weights: FloatArray  # of the forest and the components
    biases: FloatArray
    confidence: float
    scores: Scores


def fit(
    data: TrainingData,
    groups: IntArray | None,
    maps: Sequence[str],
    components: Sequence[str],
    algorithm: str,
    columns: Columns | None,
    stage: Stage,
) -> tuple[FittedPool, OptimumPathForest, FittedTable | None]:
    """Fit the pool, its forest, and the encoding of the table's `columns`; both None for distances.

    `maps` are those that the forest may use; `components` are those on features.
    """
    canonical = canonical_samples(
        data.samples, data.codes, data.weights, groups, data.metric.precomputed
    )
    samples, table = data.samples, None
    if columns is not None:
        table = fit_table(columns, canonical)
        samples = table.encode_training(samples)
        if not table.encoding.trivial or samples is not data.samples:
            canonical = canonical._replace(kinds=columns.kinds)
    growing = Growing(data.metric, algorithm, data.resources)

    def grow(prepare: Prepare) -> OptimumPathForest:
        prepared = prepare(samples)
        metric = data.metric.fitted(prepared)
        return grow_forest(prepared, data.codes, metric, data.resources, algorithm, data.classes)

    return *fit_pool(canonical, maps, components, growing, grow, table, stage), table


def fit_pool(
    canonical: CanonicalSamples,
    maps: Sequence[str],
    components: Sequence[str],
    growing: Growing,
    grow: Callable[[Prepare], OptimumPathForest],
    table: FittedTable | None = None,
    stage: Stage = lambda text: None,
) -> tuple[FittedPool, OptimumPathForest]:
    """Choose, pool and fit components on the training set, and `grow` the forest on all samples.

    `grow` is called with the function that prepares samples for the forest, `stage` with a description of what
    comes next. The rows of `canonical` are numbers of the forest's samples, which need not be in memory.
    """
    # Several BLAS threads are many times slower on matrices this small, and on a busy machine.
    with one_blas_thread():
        held_out = hold_out(canonical, maps, components, growing, stage)
        prior = prior_logits(canonical.training.class_weights)
        pooled = pool_held_out(held_out, prior)
        name = maps[pooled.choice.map]
        fold, scaler = scale_all(canonical, bool(components) or name != AS_GIVEN, table)
        matrix = None
        if name != AS_GIVEN:
            matrix = fit_map(name, fold.samples, fold.codes, fold.weights)
        used = dict(zip(pooled.choice.complexities, pooled.weights[1:], strict=True))
        used = {part: weight for part, weight in used.items() if weight > 0.0}

        stage(f"fitting to all samples: {', '.join(['forest', *used])}")

        def fit_component(part: str) -> AdditiveModel | BoostedTrees:
            return COMPONENTS[part].fit(fold, pooled.choice.complexities[part])

        forest, fitted = run_both(
            lambda: grow(partial(prepare, scaler, matrix)),
            lambda: map_items(fit_component, list(used), growing.resources.n_threads),
            growing.resources.n_threads,
        )
    labels = held_out.labels
    if held_out.forests:
        accuracy = held_out.forests[pooled.choice.map].accuracy
        warn_if_useless(pooled.confidence, accuracy, labels.weights, np.exp(labels.prior))
    pool = FittedPool(
        classes=canonical.classes,
        map_name=name,
        scaler=scaler,
        forest=ForestModel(matrix, *canonical.nodes, **pooled.choice.calibration._asdict()),
        components=dict(zip(used, fitted, strict=True)),
        weights=np.array([pooled.weights[0], *used.values()]),
        biases=pooled.biases,
        confidence=pooled.confidence,
        prior=prior,
        scores=pooled.scores,
        map_losses={
            map_name: float((own.losses @ labels.weights).min() / labels.weights.sum())
            for map_name, own in zip(maps, held_out.forests, strict=False)
        },
    )
    return pool, forest


def pool_held_out(held_out: HeldOut, prior: FloatArray) -> Pooled:
    """Choose on all held-out samples, and pool; `prior` are the logits of the frequencies of all classes."""
    labels, n_classes = held_out.labels, len(prior)
    if labels.n_classes < 2:  # too few samples to hold any out
        calibration = Calibration(1.0, 0.0, np.zeros(n_classes), prior)
        choice = Choice(0, calibration, {}, np.empty((0, 0, n_classes)))
        return Pooled(choice, np.ones(1), np.zeros(n_classes), 0.0, Scores({}, {}, {}))
    choice = held_out.choose(np.full(len(labels.codes), True))
    weights, biases = fit_weights(choice.logits, labels)
    # The forest's mean logits say nothing about a single sample, so they are moved to the biases of the pool.
    mean = np.average(choice.logits[0], axis=0, weights=labels.weights)
    slopes, moved = choice.calibration.slopes, choice.calibration.biases - mean

    def for_all_classes(values: FloatArray, expected: FloatArray) -> FloatArray:
        """Add classes without held-out samples; all differ from what is expected by the same amount."""
        found: FloatArray = expected + (values - expected[labels.classes]).mean()
        found[labels.classes] = values
        return found

    nothing = np.zeros(n_classes)
    calibration = choice.calibration._replace(
        slopes=for_all_classes(slopes, nothing), biases=for_all_classes(moved, nothing)
    )
    biases = for_all_classes(biases + weights[0] * mean, weights[0] * prior)
    scores = held_out.scores()
    n_samples = max(float(labels.weights.sum()), len(labels.weights))
    return Pooled(
        choice._replace(calibration=calibration),
        weights,
        biases,
        confidence_in(scores.losses, n_samples),
        scores,
    )


def scale_all(
    canonical: CanonicalSamples, scaled: bool, table: FittedTable | None
) -> tuple[Fold, FeatureScaler | None]:
    """Return all training samples, encoded and scaled if that is needed, and the scaler."""
    training, columns, scaler = canonical.training, canonical.columns, None
    samples, n_samples = training.samples, len(training.codes)
    if table is not None and canonical.kinds is not None:
        samples = table.encoding.apply(samples, training.cross_folds)
        columns = table.encoding.in_order(columns)
    if scaled:
        scaler = fit_scaler(samples, training.weights, columns)
        samples = scaler.apply(samples)
    return Fold(samples, training.codes, training.weights, training.n_classes, n_samples), scaler


def warn_if_useless(
    confidence: float, accuracy: float, weights: FloatArray, frequencies: FloatArray
) -> None:
    """Warn if the forest separates the classes, but the probabilities are mostly the class frequencies."""
    frequent, n_held_out = float(frequencies.max()), weights.sum() ** 2 / (weights @ weights)
    error = np.sqrt(frequent * (1.0 - frequent) / max(n_held_out, 1.0))
    if confidence < 0.5 and accuracy > frequent + N_STANDARD_ERRORS * error:
        warnings.warn(
            f"The forest labels {accuracy:.0%} of held-out samples correctly (always predicting the most "
            f"frequent class: {frequent:.0%}), but no probabilities better than the class frequencies were "
            "found: the labels of OPFClassifier may serve you better here.",
            UserWarning,
            stacklevel=5,
        )
