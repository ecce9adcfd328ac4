"""``popf demo``: the paper's experiment in small, and one prediction explained."""

from pathlib import Path
from typing import Annotated, Any

import typer

from popf.cli import options
from popf.cli.output import say, show
from popf.files import writable_folder

#: Data that come with popf or are generated: no network is needed.
DATASETS = ("breast_cancer", "heart_scale", "liver", "industrial", "synthetic2")
RUNS = 10


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("popf-demo"),
    json: options.Json = False,
) -> int:
    """Reproduce the paper's experiment in small, on data that come with popf, and explain one prediction."""
    from time import perf_counter

    from popf.experiment import reproduce, table
    from popf.experiment.report import REPORT, study_facts

    writable_folder(out)  # before anything is announced
    if not json:
        names = ", ".join(DATASETS)
        print(f"The paper's experiment in small: {names}, {RUNS} random splits of each.\n")
    start = perf_counter()
    results = reproduce(out, fresh=True, say=say, datasets=DATASETS, runs=RUNS, n_jobs=-1)
    words, seconds = _explanation(), perf_counter() - start
    lines = [
        *(f"{table(results, name)}\n" for name in ("accuracy", "log_loss")),
        *words,
        f"\n{seconds:.0f} s. All tables, figures and an explanation of the paper's values:",
        (out / REPORT).resolve().as_uri(),
    ]
    show({**study_facts(results, out), "explanation": words, "seconds": seconds}, lines, json)
    return 1 if results.failures() else 0


def _explanation() -> list[str]:
    """Grow one forest, and say in words why it gives one sample its label."""
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from popf.datasets import load
    from popf.forest.classifier import OPFClassifier

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
        *_path(forest[-1], forest[:-1].transform(X_test), y_test),
    ]


def _path(opf: Any, samples: Any, labels: list[str]) -> list[str]:
    """Explain the first sample whose path has a few training samples on it."""
    paths = opf.explain(samples)
    number = next((i for i, path in enumerate(paths) if 2 < len(path.nodes) < 6), 0)
    path = paths[number]
    stops = [f"sample {node}" for node in path.nodes] + [f"test sample {number}"]
    longest = path.bottleneck
    others = opf.path_costs_by_class(samples[[number]])[0][opf.classes_ != path.label]
    return [
        f"Why is test sample {number}, which is {labels[number]}, called {path.label}?",
        f"    training {stops[0]}, a {path.label} prototype",
        *(
            f"    -- {arc:.2f} --> {stop}"
            for arc, stop in zip(path.weights, stops[1:], strict=True)
        ),
        f"The longest arc of this path, {stops[longest]} to {stops[longest + 1]}, is its cost: "
        f"{path.cost:.2f}.",
        f"The best path that the other class offers costs {others.min():.2f}.",
    ]
