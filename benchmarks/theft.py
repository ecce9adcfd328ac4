"""Energy theft in real inspections, over time: ``python -m benchmarks.theft ARCHIVE``.

The data are those of `popf.datasets.load_inspections`. Everyone learns from the inspections before a
month and is scored on later ones: the split that the authors of the data publish (train before August
2017, test 2018), the rest of 2017 with the same training rows, and every quarter of 2017 and 2018 after
all that came before it. The month itself is no feature. Features and settings were chosen on the rows
before 2018; ``--final`` also scores those of 2018.

Rivals are tuned on the training rows. LightGBM runs with several seeds; popf has none.
"""

import argparse
import sys

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from popf import ConsumptionFeatures, PlattOPFClassifier, TableEncoder
from popf.datasets import load_inspections
from popf.metrics import average_precision_at, expected_scores, spread_of_periods

from .probability.contestants import BOOSTING, OURS, PRIOR, Task, catboost, folds
from .probability.frame_contestants import FRAME_CONTESTANTS, as_text, native
from .probability.frames import columns_of
from .probability.journal import Journal
from .probability.measure import answer
from .results import FOLDER
from .tables import Table

GROUP = "theft"
#: An inspection costs 1 and a theft found brings GAIN, so rows with a probability of 1 / GAIN are inspected.
GAIN = 12.0
LISTS, MAP_AT = (200, 500), (100, 200)
#: Of LightGBM on the two long splits.
N_SEEDS = 5
PUBLISHED, REST = "2018", "rest of 2017"
QUARTERS = [f"{year}-Q{quarter}" for year in (2017, 2018) for quarter in range(1, 5)]
SPLITS = [REST, *QUARTERS, PUBLISHED]
READINGS = "consumption_12:consumption_1"
FEATURES = " + features"
CATBOOST, PAPER = "CatBoost, tuned", "popf paper"
PLAIN = (OURS, BOOSTING, CATBOOST, "logistic regression", PAPER)
CONTESTANTS = [*PLAIN, *(name + FEATURES for name in PLAIN), PRIOR]


class TunedCatBoost(ClassifierMixin, BaseEstimator):
    """CatBoost with native categories, and the depth and rounds that are best for a held-out fifth."""

    depths = (4, 6, 8)

    def __init__(self, task):
        self.task = task

    def fit(self, X, y):
        self.encoder_ = native(self.task, FunctionTransformer(as_text))
        X = self.encoder_.fit_transform(X)
        model = catboost(self.task).set_params(
            cat_features=list(range(len(self.task.columns.texts))), learning_rate=0.05
        )
        kept, held_out = next(folds(self.task, 5).split(X, y))
        tried = []
        for depth in self.depths:
            own = model.copy().set_params(depth=depth, early_stopping_rounds=50)
            own.fit(X[kept], y[kept], eval_set=(X[held_out], y[held_out]))
            loss = own.get_best_score()["validation"]["Logloss"]
            tried.append((loss, depth, own.get_best_iteration() + 1))
        _, depth, n_rounds = min(tried)
        self.model_ = model.copy().set_params(depth=depth, iterations=n_rounds).fit(X, y)
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(self.encoder_.transform(X))


def split(frame, name):
    """Return the training and test rows of a split, in any order: that of the file is by theft."""
    frame = frame.sample(frac=1.0, random_state=0)
    month = frame["month"]
    if name in (PUBLISHED, REST):
        tested = month >= "2018" if name == PUBLISHED else (month >= "2017-08") & (month < "2018")
        return frame[month < "2017-08"], frame[tested]
    tested = month.dt.to_period("Q").astype(str) == name.replace("-", "")
    return frame[month < month[tested].min()], frame[tested]


def n_seeds(name, contestant):
    """Return the number of runs of a contestant on a split."""
    several = contestant.removesuffix(FEATURES) == BOOSTING and name in (PUBLISHED, REST)
    return N_SEEDS if several else 1


def model(contestant, X, seed):
    """Make a contestant for training rows."""
    base = contestant.removesuffix(FEATURES)
    steps, seen = [], X
    if base != contestant:
        steps = [ConsumptionFeatures(READINGS)]
        seen = steps[0].fit_transform(X.head(100))
    if base == PAPER:
        platt = PlattOPFClassifier(n_jobs=1)
        return make_pipeline(*steps, TableEncoder(), StandardScaler(), platt)
    task = Task(len(X), seen.shape[1], 2, seed, columns_of(seen))
    make = TunedCatBoost if base == CATBOOST else FRAME_CONTESTANTS[base]
    return make_pipeline(*steps, make(task))


def measure(frame, name, contestant, seed):
    """Fit a contestant to the training rows of a split, and score it on the others."""
    train, test = split(frame, name)
    X, new = (rows.drop(columns=["theft", "month"]) for rows in (train, test))
    y, happened = (rows["theft"].to_numpy() for rows in (train, test))
    probability, times = answer(model(contestant, X, seed), X, y, new)
    spread = spread_of_periods(y, train["month"].dt.to_period("Q").astype(str))
    scores = score(happened, probability[:, 1], spread) | times
    sizes = {"n_train": len(train), "n_test": len(test), "n_positive": int(happened.sum())}
    split_key = {"dataset": name, "group": GROUP, "size": None, "seed": seed}
    return split_key | sizes | {"scores": {contestant: scores}, "failed": {}, "absent": {}}


def score(happened, probability, spread):
    """Score the probabilities of theft."""
    order = np.argsort(-probability, kind="stable")
    hits = np.cumsum(happened[order])
    inspected = int((probability >= 1.0 / GAIN).sum())
    found = int(hits[inspected - 1]) if inspected else 0
    expected = expected_scores(probability, spread=spread)["positives"]
    scores = {
        "log loss": float(log_loss(happened, probability, labels=[0, 1])),
        "AUC": float(roc_auc_score(happened, probability)),
        "inspected": inspected,
        "net gain": GAIN * found - inspected,
        "expected": list(expected),
    }
    for k in LISTS:
        shown = min(k, len(happened))
        listed = probability[order[:shown]]
        # Of the shift of all log odds, the list has the same share as the whole.
        scores[f"hits in {k}"] = int(hits[shown - 1])
        scores[f"promised in {k}"] = float(listed.sum())
        scores[f"expected in {k}"] = list(expected_scores(listed, spread=spread)["positives"])
    for k in MAP_AT:
        shown = min(k, len(happened))
        scores[f"MAP@{k}"] = float(average_precision_at(happened, probability, shown))
    return scores


def tables(runs):
    """Build a table of scores for each of the two long splits, and one of the quarters."""
    by_split = {}
    for run in runs:
        own = by_split.setdefault(run["dataset"], {"sizes": run, "scores": {}})
        for name, scores in run["scores"].items():
            own["scores"].setdefault(name, []).append(scores)
    made = [scores_table(name, by_split[name]) for name in (PUBLISHED, REST) if name in by_split]
    quarters = [name for name in QUARTERS if name in by_split]
    if quarters:
        made += [quarters_table({name: by_split[name] for name in quarters})]
        made += [promises_table({name: by_split[name] for name in quarters})]
    return made


def scores_table(name, measured):
    """Show every contestant on one split; the mean over seeds, and half their range where there are several."""
    sizes, rows = measured["sizes"], []
    n_test, n_positive = sizes["n_test"], sizes["n_positive"]
    for contestant, some in sorted(
        measured["scores"].items(), key=lambda item: mean_of(item[1], "log loss")
    ):
        share = n_positive / n_test
        rows.append(
            (
                contestant,
                ranged(some, "log loss", 4),
                ranged(some, "AUC", 3),
                *(ranged(some, f"hits in {k}", 0) for k in LISTS),
                *(f"{mean_of(some, f'hits in {k}') / k / share:.1f}" for k in LISTS),
                *(f"{mean_of(some, f'MAP@{k}'):.2f}" for k in MAP_AT),
                f"{mean_of(some, 'net gain'):.0f}",
                f"{np.mean([s['expected'][0] for s in some]):.0f}",
                f"{mean_of(some, 'fit'):.1f}",
            )
        )
    header = (
        "",
        "log loss",
        "AUC",
        *(f"hits in {k}" for k in LISTS),
        *(f"lift in {k}" for k in LISTS),
        *(f"MAP@{k}" for k in MAP_AT),
        "net gain",
        f"expected, of {n_positive}",
        "fit, s",
    )
    title = (
        f"{name}: {sizes['n_train']:,} training rows, {n_test:,} test rows, {n_positive} with theft"
    )
    return Table(title, header, rows)


def quarters_table(by_quarter):
    """Show the log loss of every contestant in every quarter, and the AUC of all quarters in the mean."""
    names = list(dict.fromkeys(name for own in by_quarter.values() for name in own["scores"]))
    rows = []
    for contestant in names:
        measured = [own["scores"].get(contestant) for own in by_quarter.values()]
        if None in measured:
            continue
        losses = [mean_of(some, "log loss") for some in measured]
        areas = [mean_of(some, "AUC") for some in measured]
        hits = sum(mean_of(some, f"hits in {LISTS[0]}") for some in measured)
        cells = [f"{loss:.4f}" for loss in (np.mean(losses), *losses)]
        rows.append((contestant, *cells, f"{np.mean(areas):.3f}", f"{hits:.0f}"))
    rows.sort(key=lambda row: row[1])
    header = ("", "mean", *by_quarter, "AUC", f"hits in {LISTS[0]}, all")
    return Table("Log loss by quarter, trained on all before it", header, rows)


def promises_table(by_quarter):
    """Show what popf with features expected of every quarter without labels, and what was found."""
    rows = []
    for name, own in by_quarter.items():
        for scores in own["scores"].get(OURS + FEATURES, [])[:1]:
            found = own["sizes"]["n_positive"], *(scores[f"hits in {k}"] for k in LISTS)
            expected = scores["expected"], *(scores[f"expected in {k}"] for k in LISTS)
            cells = [f"{value:.0f} ({low:.0f} to {high:.0f}): {n}"
                     for (value, low, high), n in zip(expected, found, strict=True)]  # fmt: skip
            rows.append((name, f"{own['sizes']['n_test']:,}", *cells))
    header = ("", "rows", "all", *(f"first {k}" for k in LISTS))
    return Table("Thefts expected without labels (95 % interval): found", header, rows)


def mean_of(some, measure):
    return float(np.mean([scores[measure] for scores in some]))


def ranged(some, measure, digits):
    """Format the mean over seeds, and half of the range where there is one."""
    values = [scores[measure] for scores in some]
    mean = f"{np.mean(values):.{digits}f}"
    if len(values) == 1:
        return mean
    return f"{mean} ± {(max(values) - min(values)) / 2.0:.{digits}f}"


def main(arguments=None):
    """Run what is not yet in the file, and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.theft", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "path", nargs="?", help="file or archive of the inspections; see load_inspections"
    )
    parser.add_argument(
        "--contestants", nargs="+", choices=CONTESTANTS, default=CONTESTANTS, metavar="NAME"
    )
    parser.add_argument("--splits", nargs="+", choices=SPLITS, metavar="SPLIT")
    parser.add_argument("--final", action="store_true", help="also score the inspections of 2018")
    parser.add_argument("--n-jobs", type=int, default=1, metavar="N", help="runs at a time")
    parser.add_argument("--out", type=type(FOLDER), default=FOLDER / "theft.jsonl", metavar="FILE")
    options = parser.parse_args(arguments)
    frame = load_inspections(options.path)
    journal = Journal(options.out)
    splits = [s for s in options.splits or SPLITS if options.final or not s.startswith("2018")]
    todo = [
        (frame, name, contestant, seed)
        for name in splits
        for contestant in options.contestants
        for seed in range(n_seeds(name, contestant))
        if journal.missing(name, None, seed, [contestant])
    ]
    for run in Parallel(options.n_jobs, return_as="generator")(
        delayed(measure)(*one) for one in todo
    ):
        journal.add(run)
        print(run["dataset"], *run["scores"], f"seed {run['seed']}", file=sys.stderr)
    for table in tables(list(journal.runs.values())):
        print("\n" + table.as_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
