"""What ``popf demo`` shows: the paper's experiment in small, and one prediction explained."""

import json
import os
from pathlib import Path
from time import perf_counter

from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from popf import OPFClassifier
from popf.cli.messages import say

#: Data that come with popf or are generated: no network is needed.
DATASETS = ("breast_cancer", "heart_scale", "liver", "industrial", "synthetic2")
RUNS = 10


def demo(out: str | os.PathLike[str] = "popf-demo", as_json: bool = False) -> int:
    """Run the paper's protocol on a few data sets, print what came out, and explain one prediction.

    Parameters
    ----------
    out : path-like, default="popf-demo"
        The folder for tables, figures and the report.
    as_json : bool, default=False
        Print one JSON object, and nothing else.

    Returns
    -------
    int
        The exit status.
    """
    from popf.experiment import table
    from popf.experiment.report import REPORT, reproduce, study_facts
    from popf.files import writable_folder

    writable_folder(out)  # before anything is promised
    names = ", ".join(DATASETS)
    if not as_json:
        print(f"The paper's experiment in small: {names}, {RUNS} random splits of each.\n")
    start = perf_counter()
    results = reproduce(out, fresh=True, say=say, datasets=DATASETS, runs=RUNS, n_jobs=-1)
    words, seconds = explanation(), perf_counter() - start
    if as_json:
        facts = {**study_facts(results, Path(out)), "explanation": words, "seconds": seconds}
        print(json.dumps(facts, allow_nan=False, indent=2))
    else:
        print(
            "\n".join([*(f"{table(results, name)}\n" for name in ("accuracy", "log_loss")), *words])
        )
        said = "All tables, figures and an explanation of the paper's values:"
        print(f"\n{seconds:.0f} s. {said}\n{Path(out, REPORT).resolve().as_uri()}")
    return 1 if results.failures() else 0


def explanation() -> list[str]:
    """Grow one forest, and say in words why it calls one sample what it does."""
    from popf.datasets import load

    data = load("breast_cancer", download=False)
    names = dict(zip(sorted(set(data.target.tolist())), data.target_names, strict=True))
    y = [names[label] for label in data.target.tolist()]
    X_train, X_test, y_train, y_test = train_test_split(
        data.data, y, train_size=0.25, stratify=y, random_state=0
    )
    forest = make_pipeline(StandardScaler(), OPFClassifier()).fit(X_train, y_train)
    errors = sum(forest.predict(X_train) != y_train)
    return [
        f"One forest on breast_cancer grows from {len(forest[-1].prototypes_)} prototypes, the samples where",
        f"classes meet, and misclassifies {errors} of its {len(y_train)} own samples.",
        *describe_path(forest, X_test, y_test),
    ]


def describe_path(forest: Pipeline, X_test: object, y_test: list[str]) -> list[str]:
    """Explain in words the first test sample whose path has a few training samples on it."""
    opf, samples = forest[-1], forest[:-1].transform(X_test)
    paths = opf.explain(samples)
    number = next((i for i, path in enumerate(paths) if 2 < len(path.nodes) < 6), 0)
    path = paths[number]
    stops = [f"sample {node}" for node in path.nodes] + [f"test sample {number}"]
    widest = path.bottleneck
    ways = zip(path.weights, stops[1:], strict=True)
    others = opf.path_costs_by_class(samples[[number]])[0][opf.classes_ != path.label]
    return [
        f"Why is test sample {number}, which is {y_test[number]}, called {path.label}?",
        f"    training {stops[0]}, a {path.label} prototype",
        *(f"    -- {weight:.2f} --> {stop}" for weight, stop in ways),
        f"The longest arc of this path, {stops[widest]} to {stops[widest + 1]}, is its cost: "
        f"{path.cost:.2f}.",
        f"The best path that the other class offers costs {others.min():.2f}.",
    ]
