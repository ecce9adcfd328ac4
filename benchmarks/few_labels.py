"""Accuracy with few labels, compared with scikit-learn's methods: ``python -m benchmarks.few_labels``.

In each of the paper's datasets 5 % of the samples keep their label, a stratified random draw for each of 20
runs. Features are standardised; methods are scored by the mean recall of the classes on the unlabelled samples.
The command prints a table and writes the results to ``benchmarks/results``.
"""

import argparse
import json
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from popf import OPFClassifier, POPFClassifier, SemiSupervisedOPFClassifier
from popf.datasets import load

from .results import FOLDER, now, revision, write

SETS = (
    *("australian", "breast_cancer", "colon_cancer", "diabetes", "fourclass", "heart"),
    *("ionosphere", "liver", "comercial", "industrial"),
)


class POPFAtFrequencies(POPFClassifier):
    """Predicts the class whose probability exceeds its frequency most: the threshold at the frequency."""

    def fit(self, X, y):
        """Fit, and count the labels."""
        super().fit(X, y)
        self.frequencies_ = np.unique(y, return_counts=True)[1] / len(y)
        return self

    def predict(self, X):
        """Return labels."""
        return self.classes_[(self.predict_proba(X) / self.frequencies_).argmax(axis=1)]


METHODS = {
    "POPFClassifier, labelled only": POPFAtFrequencies,
    "OPF, few labels": SemiSupervisedOPFClassifier,
    "OPF, labelled only": OPFClassifier,
    "LabelSpreading, RBF": LabelSpreading,
    "LabelSpreading, 7 neighbours": lambda: LabelSpreading("knn", n_neighbors=7),
    "SelfTraining, logistic": lambda: SelfTrainingClassifier(LogisticRegression()),
    "SVC, labelled only": SVC,
}
LABELLED_ONLY = ("POPFClassifier, labelled only", "OPF, labelled only", "SVC, labelled only")
SHARE, RUNS = 0.05, 20


def accuracies(X, y, seed):
    """Score all methods on one random draw of the labels."""
    n_labels = max(round(SHARE * len(y)), 2 * len(np.unique(y)))
    kept, others = train_test_split(
        np.arange(len(y)), train_size=n_labels, stratify=y, random_state=seed
    )
    few = np.full(len(y), -1)
    few[kept] = y[kept]
    found = {}
    for name, make in METHODS.items():
        rows = kept if name in LABELLED_ONLY else slice(None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", (RuntimeWarning, ConvergenceWarning, UserWarning))
            labels = make().fit(X[rows], few[rows]).predict(X[others])
        found[name] = float(balanced_accuracy_score(y[others], labels))
    return found


def main():
    """Score all methods on all datasets, print the table, and write the results."""
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    records = []
    print(f"| | {' | '.join(METHODS)} |\n|{'---|' * (len(METHODS) + 1)}")
    for name in SETS:
        X, y = load(name, return_X_y=True)
        X, y = StandardScaler().fit_transform(X), np.unique(y, return_inverse=True)[1]
        runs = [accuracies(X, y, seed) for seed in range(RUNS)]
        means = {method: float(np.mean([run[method] for run in runs])) for method in METHODS}
        records.append({"set": name, "n_samples": len(y), "means": means})
        print(f"| {name} | {' | '.join(f'{100 * mean:.1f}' for mean in means.values())} |")
    means = [np.mean([record["means"][method] for record in records]) for method in METHODS]
    print(f"| mean | {' | '.join(f'{100 * mean:.1f}' for mean in means)} |")
    content = {"date": now(), "revision": revision(), "share": SHARE, "records": records}
    write(FOLDER / f"{now()[:10]}-few-labels.json", json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
