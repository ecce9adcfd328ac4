"""What ``python -m popf demo`` shows: a forest beside its peers, and one prediction explained."""

from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from popf import OPFClassifier
from popf.inspection import Path

Labels = NDArray[np.str_]
Features = NDArray[np.float64]


class Split(NamedTuple):
    """Training and test samples."""

    X_train: Features
    X_test: Features
    y_train: Labels
    y_test: Labels


def demo() -> str:
    """Train on scikit-learn's breast-cancer data, and say in a few lines what came of it."""
    split = breast_cancer()
    forest = make_pipeline(StandardScaler(), OPFClassifier())
    start = perf_counter()
    forest.fit(split.X_train, split.y_train).predict(split.X_test)
    first = perf_counter() - start
    rivals = {
        "optimum-path forest": forest,
        "1-nearest neighbour": make_pipeline(StandardScaler(), KNeighborsClassifier(1)),
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
    }
    n_train, n_features = split.X_train.shape
    lines = [
        "Breast-cancer data of scikit-learn: is a tumour benign or malignant?",
        f"{n_train} samples to learn from, {len(split.X_test)} to test on, "
        f"{n_features} features, standardised.",
        "",
        f"{'':20}  accuracy  balanced accuracy       fit   predict",
        *(score(name, model, split) for name, model in rivals.items()),
        "",
        f"(The forest's first fit and predict took {first:.1f} s: Numba compiles, then caches.)",
        "",
        *describe_forest(forest, split),
        "",
        *describe_path(forest, split),
    ]
    return "\n".join(lines)


def breast_cancer() -> Split:
    """Split the data 75/25, each class alike, labels as words."""
    data = load_breast_cancer()
    labels = data.target_names[data.target].astype(str)
    return Split(*train_test_split(data.data, labels, stratify=labels, random_state=0))


def score(name: str, model: Pipeline, split: Split) -> str:
    """Fit a fresh copy of `model`, and put its scores and times in a line of the table."""
    model = clone(model)
    start = perf_counter()
    model.fit(split.X_train, split.y_train)
    fitted = perf_counter()
    predicted = model.predict(split.X_test)
    end = perf_counter()
    accuracy = accuracy_score(split.y_test, predicted)
    balanced = balanced_accuracy_score(split.y_test, predicted)
    return (
        f"{name:20}  {accuracy:8.3f}  {balanced:17.3f}  "
        f"{1e3 * (fitted - start):5.1f} ms  {1e3 * (end - fitted):5.1f} ms"
    )


def describe_forest(forest: Pipeline, split: Split) -> list[str]:
    """Say how many prototypes the forest grows from, and that it makes no training errors."""
    opf = forest[-1]
    labels, counts = np.unique(split.y_train[opf.prototypes_], return_counts=True)
    shares = " and ".join(f"{count} {label}" for label, count in zip(labels, counts, strict=True))
    errors = int(np.sum(forest.predict(split.X_train) != split.y_train))
    return [
        f"The forest grows from {len(opf.prototypes_)} prototypes ({shares}), the samples",
        f"where classes meet; it misclassifies {errors} of its {len(split.y_train)} own samples.",
    ]


def describe_path(forest: Pipeline, split: Split) -> list[str]:
    """Explain in words the first test sample whose path has a few training samples on it."""
    opf, samples = forest[-1], forest[:-1].transform(split.X_test)
    paths: list[Path] = opf.explain(samples)
    number = next((i for i, path in enumerate(paths) if 2 < len(path.nodes) < 6), 0)
    path = paths[number]
    stops = [f"sample {node}" for node in path.nodes] + [f"test sample {number}"]
    widest = path.bottleneck
    ways = zip(path.weights, stops[1:], strict=True)
    others = opf.path_costs_by_class(samples[[number]])[0][opf.classes_ != path.label]
    return [
        f"Why is test sample {number}, which is {split.y_test[number]}, called {path.label}?",
        f"    training {stops[0]}, a {path.label} prototype",
        *(f"    -- {weight:.2f} --> {stop}" for weight, stop in ways),
        f"The longest arc of this path, {stops[widest]} to {stops[widest + 1]}, is its cost: "
        f"{path.cost:.2f}.",
        f"The best path that the other class offers costs {others.min():.2f}.",
    ]
