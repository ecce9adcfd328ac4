"""Run a study: every method on every split of every data set, each finished run kept at once."""

import os
import platform
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from typing import Any

from joblib import Parallel, delayed

from popf.experiment.journal import Journal
from popf.experiment.methods import Methods, choose_methods, definition, is_paper_method, measure
from popf.experiment.protocol import (
    RUNS,
    TRAIN_SIZE,
    Dataset,
    Protocol,
    Say,
    Wanted,
    choose_datasets,
)
from popf.experiment.results import Results

#: Called after every unit of work: how many are done, of how many, and which was the last.
Progress = Callable[[int, int, str], None]


def run(
    datasets: Wanted = None,
    methods: Methods | Iterable[str] | str | None = None,
    *,
    runs: int = RUNS,
    train_size: float = TRAIN_SIZE,
    seed: int = 0,
    scale: bool | None = None,
    n_jobs: int | None = None,
    journal: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Results:
    """Run the paper's protocol, on its data and methods or on others.

    Each data set is split at random, by class, `runs` times; every method is trained on one part and tested
    on the other. All methods see the same splits.

    Parameters
    ----------
    datasets : dict of str to (X, y), or list of names, default=None
        None for the paper's 14, or those of them that `popf.datasets.load` finds.
    methods : dict of str to classifier, or list of names, default=None
        Any scikit-learn classifiers; None for all of `popf.experiment.methods`. One without
        ``predict_proba`` gets no log loss, Brier score and calibration error.
    runs : int, default=20
        Number of splits of each data set.
    train_size : float, default=0.25
        Share used for training.
    seed : int, default=0
        Seed for splits and methods. The results depend on nothing else, apart from the times.
    scale : bool or None, default=None
        True to standardise the features, False to leave them as they are, None for both where their
        standard deviations differ by more than a factor of 3, and unscaled elsewhere.
    n_jobs : int, default=None
        Number of runs at a time, as for joblib. Inside ``joblib.parallel_config`` None takes what that says;
        so the runs go to a cluster with ``parallel_config("dask")``.
    journal : path-like, default=None
        A file in which every finished run is kept at once. If it exists, what it holds is not run
        again; one with other settings is refused.
    progress : callable, default=None
        Called as ``progress(n_done, n_total, text)`` after every run.
    say : callable, default=None
        Called with a sentence about what was resumed, repaired or left out.

    Returns
    -------
    Results

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from popf import OPFClassifier
    >>> from popf.experiment import run
    >>> results = run(
    ...     {"iris": load_iris(return_X_y=True)},
    ...     {"OPF": OPFClassifier(), "3-NN": KNeighborsClassifier(3)},
    ...     runs=5,
    ... )
    >>> results.values("accuracy", "iris", "OPF").shape
    (5,)
    """
    say = say or (lambda sentence: None)
    protocol = Protocol(runs, train_size, seed, scale)
    chosen = choose_methods(methods)
    data = choose_datasets(datasets, say)
    for dataset in data.values():
        protocol.check(dataset)
    kept = Journal(journal, settings(protocol, data, chosen), say)
    _work(protocol, data, chosen, kept, n_jobs, progress, say)
    return Results(protocol, data, chosen, kept.records.values(), kept.settings)


def settings(protocol: Protocol, data: Mapping[str, Dataset], methods: Methods) -> dict[str, Any]:
    """All that decides the results, for the journal to compare.

    Neither the number of runs nor the choice of forms is in it: more of both extend a study.
    """
    return {
        "seed": int(protocol.seed),
        "train_size": float(protocol.train_size),
        "versions": {
            "python": ".".join(platform.python_version_tuple()[:2]),
            **{name: version(name) for name in ("popf", "numpy", "scipy", "scikit-learn")},
        },
        "datasets": {name: dataset.facts() for name, dataset in data.items()},
        "methods": {name: definition(method) for name, method in methods.items()},
    }


def _work(
    protocol: Protocol,
    data: dict[str, Dataset],
    methods: Methods,
    journal: Journal,
    n_jobs: int | None,
    progress: Progress | None,
    say: Say,
) -> None:
    """Run what the journal lacks."""
    binary = [name for name, method in methods.items() if is_paper_method(method)]
    for name, dataset in data.items():
        if binary and dataset.n_classes > 2:
            say(
                f"{name} has {dataset.n_classes} classes; left out there, because they are for two: "
                f"{', '.join(sorted(binary))}."
            )
    tasks = [
        (name, form, run)
        for run in range(protocol.runs)
        for name, dataset in data.items()
        for form in protocol.forms(dataset)
    ]
    todo: dict[tuple[str, str, int], Methods] = {}
    for task in tasks:
        missing = {
            name: method
            for name, method in methods.items()
            if (data[task[0]].n_classes == 2 or name not in binary)
            and not journal.has((*task, name))
        }
        if missing:
            todo[task] = missing
    if journal.path is not None and len(todo) < len(tasks):
        say(f"{len(tasks) - len(todo)} of {len(tasks)} runs are in {journal.path} already.")
    calls = (
        delayed(measure)(protocol, data[name], form, run, missing)
        for (name, form, run), missing in todo.items()
    )
    try:
        parallel = Parallel(n_jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs")
        for n_done, records in enumerate(parallel(calls), 1):
            journal.add(records)
            if progress is not None:
                last = records[0]
                text = f"{last['dataset']} ({last['form']}), run {last['run']}"
                progress(n_done, len(todo), text)
    except KeyboardInterrupt:
        if journal.path is not None:
            say(f"Finished runs are kept in {journal.path}; the same command continues from there.")
        raise
