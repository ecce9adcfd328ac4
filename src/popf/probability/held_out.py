"""Held-out logits of all components, and choices on them.

One function holds out: each component is fitted to the samples of a split and scores the others. Choices are
honest where they are scored: the logits of each fold come with choices and weights from the other folds.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from popf.engine.runtime.threads import map_items, run_both
from popf.engine.structures import BoolArray, FloatArray, IntArray
from popf.probability.additive import Regressions
from popf.probability.components import Component, Fold, Split
from popf.probability.encoding import fit_encoding
from popf.probability.folds import CanonicalSamples
from popf.probability.forest_component import (
    Calibration,
    Growing,
    HeldOutForest,
    hold_out_forest,
)
from popf.probability.linear_maps import AS_GIVEN
from popf.probability.logits import Labels, log_losses, prior_logits
from popf.probability.pool import FOREST, POOL, PRIOR, Scores, fit_weights
from popf.probability.scaler import fit_scaler
from popf.probability.trees import Trees

#: Splines are also tried without products, which are chosen from very many and cost 8 % on sums of sines.
COMPONENTS: dict[str, Regressions | Trees] = {
    "linear": Regressions("features"),
    "additive": Regressions("splines", "products"),
    "trees": Trees(),
}
#: Ratio to the lowest log loss above which no higher complexity is tried; to try all takes a third longer. With
#: 1, the loss of trees rose by up to 40 % where it depends on pairs, which their first rounds miss. After the
#: first complexities it is 1, which costs nothing.
STOPPING_RATIO, N_PATIENT = 1.02, 4


#: Called with a description of each stage of a fit.
Stage = Callable[[str], None]


class HeldOutComponent(NamedTuple):
    """Logits of held-out samples by one component, for several complexities."""

    complexities: list[Any]
    logits: list[FloatArray]
    losses: FloatArray  # (n_complexities, n_rows)


class Choice(NamedTuple):
    """What is chosen on held-out samples."""

    map: int  # number of the forest's map
    calibration: Calibration  # of the forest's scores
    complexities: dict[str, Any]
    logits: FloatArray  # of held-out samples: (n_components, n_rows, n_classes)


class HeldOut(NamedTuple):
    """Held-out logits of all components, from which one can choose."""

    forests: Sequence[HeldOutForest]  # one for each map
    components: Mapping[str, HeldOutComponent]
    labels: Labels

    def choose(self, rows: BoolArray) -> Choice:
        """Choose map, bandwidth and complexities on the held-out samples that `rows` selects."""
        weights = self.labels.weights * rows
        totals = [forest.losses @ weights for forest in self.forests]
        best = int(np.argmin([own.min() for own in totals]))
        calibration, logits = self.forests[best].calibrate(
            int(np.argmin(totals[best])), self.labels, rows
        )
        found, complexities = [logits], {}
        for name, component in self.components.items():
            own = int(np.argmin(component.losses @ weights))
            complexities[name] = component.complexities[own]
            found.append(component.logits[own])
        return Choice(best, calibration, complexities, np.stack(found))

    def unseen_logits(self) -> dict[str, FloatArray]:
        """Compute the logits of each fold by choices and weights from the other folds."""
        labels, names = self.labels, [FOREST, *self.components, POOL]
        found = np.empty((len(names), len(labels.codes), labels.n_classes))
        for fold in np.unique(labels.folds):
            here = labels.folds == fold
            logits = self.choose(~here).logits
            weights, biases = fit_weights(logits[:, ~here], labels.take(~here))
            found[:-1, here] = logits[:, here]
            found[-1, here] = np.tensordot(weights, logits[:, here], axes=1) + biases
        prior = np.broadcast_to(labels.prior, found.shape[1:])
        return {**dict(zip(names, found, strict=True)), PRIOR: prior}

    def scores(self) -> Scores:
        """Score each component by name, the pool, and the class frequencies."""
        labels, logits = self.labels, self.unseen_logits()
        return Scores(
            {name: labels.log_loss(own) for name, own in logits.items()},
            {name: labels.accuracy(own) for name, own in logits.items()},
            {name: labels.area_under_curve(own) for name, own in logits.items()},
        )


def hold_out(
    canonical: CanonicalSamples,
    maps: Sequence[str],
    components: Sequence[str],
    growing: Growing,
    stage: Stage,
) -> HeldOut:
    """Score held-out samples by forests with several maps, and by components on features."""
    training, resources = canonical.training, growing.resources
    positions = training.splits()
    scored = np.concatenate([np.empty(0, np.int64), *(held_out for _, held_out in positions)])
    classes, codes = np.unique(training.codes[scored], return_inverse=True)
    labels = Labels(
        codes,
        training.weights[scored],
        training.inner_folds[scored],
        prior_logits(training.class_weights)[classes],
        classes,
    )
    if labels.n_classes < 2:
        return HeldOut([], {}, labels)
    splits = [make_split(canonical, *each, maps, components) for each in positions]
    if len(maps) > 1:
        growing = growing._replace(resources=resources._replace(n_threads=1))

    def forest(name: str) -> HeldOutForest:
        stage(f"scoring held-out samples: forest, map {name!r}")
        return hold_out_forest(splits, name, labels, growing)

    def component(name: str) -> HeldOutComponent:
        stage(f"scoring held-out samples: {name}")
        return hold_out_component(COMPONENTS[name], splits, labels, resources.n_threads)

    forests, found = run_both(
        lambda: map_items(forest, maps, resources.n_threads),
        lambda: map_items(component, components, resources.n_threads),
        resources.n_threads,
    )
    return HeldOut(forests, dict(zip(components, found, strict=True)), labels)


def make_split(
    canonical: CanonicalSamples,
    fitted: IntArray,
    held_out: IntArray,
    maps: Sequence[str],
    components: Sequence[str],
) -> Split:
    """Encode and scale the samples of a split, if that is needed, by those that components are fitted to."""
    training, columns = canonical.training, canonical.columns
    samples, queries = training.queries(fitted, fitted), training.queries(held_out, fitted)
    codes, weights, n_classes = training.codes[fitted], training.weights[fitted], training.n_classes
    given = None
    if canonical.kinds is not None:
        folds = training.cross_folds[fitted]
        encoding = fit_encoding(canonical.kinds, samples, codes, weights, folds, n_classes)
        samples, queries = encoding.apply(samples, folds), encoding.apply(queries)
        columns = encoding.in_order(columns)
    if maps[0] == AS_GIVEN:
        given = samples, queries
    if components or maps[0] != AS_GIVEN:
        scaler = fit_scaler(samples, weights, columns)
        samples, queries = scaler.apply(samples), scaler.apply(queries)
    return Split(Fold(samples, codes, weights, n_classes, len(training.codes)), queries, given)


def hold_out_component(
    component: Component, splits: Sequence[Split], labels: Labels, n_threads: int = 1
) -> HeldOutComponent:
    """Score held-out samples along every path of complexities, until the loss clearly rises."""

    def follow(path: Sequence[Any]) -> list[tuple[Any, FloatArray]]:
        found: list[tuple[Any, FloatArray]] = []
        means: list[float] = []
        scored = [component.score_path(split.fold, split.queries, path) for split in splits]
        for complexity, *own in zip(path, *scored, strict=False):
            found.append((complexity, np.concatenate(own)[:, labels.classes]))
            means.append(labels.log_loss(found[-1][1]))
            if means[-1] > (STOPPING_RATIO if len(means) <= N_PATIENT else 1.0) * min(means):
                break
        return found

    every = [each for found in map_items(follow, component.paths, n_threads) for each in found]
    complexities, logits = map(list, zip(*every, strict=True))
    return HeldOutComponent(complexities, logits, log_losses(np.stack(logits), labels.codes))
