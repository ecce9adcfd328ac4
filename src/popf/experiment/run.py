"""Run a study: every method on every split of every data set, each finished run kept at once."""

import os
import platform
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from importlib.metadata import version
from typing import Any

from joblib import Parallel, delayed
from sklearn.base import BaseEstimator

from popf.experiment import paper
from popf.experiment.data import Dataset, Pair, choose_datasets
from popf.experiment.journal import Journal
from popf.experiment.locks import presence
from popf.experiment.measure import measure
from popf.experiment.methods import choose_methods, definition, needs_two_classes
from popf.experiment.progress import progress_bar
from popf.experiment.protocol import Protocol, Task, tasks
from popf.experiment.results import Results

Say = Callable[[str], None]
Wanted = Mapping[str, Pair | Dataset] | Iterable[str] | str | None


def run(
    datasets: Wanted = None,
    methods: Mapping[str, BaseEstimator] | Iterable[str] | str | None = None,
    *,
    runs: int = paper.RUNS,
    train_size: float = paper.TRAIN_SIZE,
    seed: int = 0,
    scale: bool | None = None,
    n_jobs: int | None = None,
    journal: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
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
        How many splits of each data set.
    train_size : float, default=0.25
        The share that is trained on.
    seed : int, default=0
        Of splits and methods. What comes out depends on nothing else, but for the times.
    scale : bool or None, default=None
        True to standardise the features, False to leave them as they are, None for both where their
        spreads differ by more than a factor of 3, and as they are elsewhere.
    n_jobs : int, default=None
        How many runs at a time, as for joblib. Inside ``joblib.parallel_config`` None takes what that says;
        so the runs go to a cluster with ``parallel_config("dask")``.
    journal : path-like, default=None
        A file in which every finished run is kept at once. If it is there, what it holds is not run
        again; one of other settings is refused. Several processes may work on one journal.
    progress : bool, default=None
        Show a bar; None for: if there is a terminal.
    say : callable, default=None
        Gets sentences about what was resumed, repaired or left out.

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
    with Journal(journal, settings(protocol, data, chosen), say) as kept:
        _work(_Study(protocol, data, chosen), kept, n_jobs, progress, say)
        return Results(protocol, data, chosen, kept.records.values(), kept.settings)


class _Study:
    """What is to be run."""

    def __init__(
        self,
        protocol: Protocol,
        data: Mapping[str, Dataset],
        methods: Mapping[str, BaseEstimator],
    ) -> None:
        self.protocol, self.data, self.methods = protocol, dict(data), dict(methods)
        self.tasks = list(tasks(protocol, self.data))

    def methods_for(self, dataset: str) -> dict[str, BaseEstimator]:
        """Those that are made for the number of classes."""
        many = self.data[dataset].n_classes > 2
        return {
            name: method
            for name, method in self.methods.items()
            if not (many and needs_two_classes(method))
        }

    def missing(self, task: Task, journal: Journal) -> dict[str, BaseEstimator]:
        """Those of which the journal has no result yet."""
        return {
            name: method
            for name, method in self.methods_for(task.dataset).items()
            if not journal.has((task.dataset, task.form, task.run, name))
        }


def settings(
    protocol: Protocol, data: Mapping[str, Dataset], methods: Mapping[str, BaseEstimator]
) -> dict[str, Any]:
    """All that decides what comes out, for the journal to compare.

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
    study: _Study, journal: Journal, n_jobs: int | None, progress: bool | None, say: Say
) -> None:
    """Do what the journal lacks."""
    for name, dataset in study.data.items():
        left_out = [method for method in study.methods if method not in study.methods_for(name)]
        if left_out:
            say(
                f"{name} has {dataset.n_classes} classes; made for two, and left out there: "
                f"{', '.join(left_out)}."
            )
    todo = [task for task in study.tasks if study.missing(task, journal)]
    n_done = len(study.tasks) - len(todo)
    if n_done:
        say(f"{n_done} of {len(study.tasks)} runs are in {journal.path} already.")
    if not todo:
        return
    with ExitStack() as stack:
        if journal.path is not None:
            lock = journal.path.with_name(journal.path.name + ".lock")
            if not stack.enter_context(presence(lock)):
                # Another process works through the list from its start: by taking what is left in any
                # order, two hardly ever do the same run.
                say(f"Another process works on {journal.path}; sharing the runs.")
                random.Random(os.getpid()).shuffle(todo)
        bar = stack.enter_context(progress_bar(len(todo), progress))
        try:
            for task, records in _parallel(n_jobs)(_calls(study, todo, journal)):
                journal.add(records)
                bar.advance(f"{task.dataset} ({task.form}), run {task.run}")
        except KeyboardInterrupt:
            if journal.path is not None:
                say(
                    f"What is finished is kept in {journal.path}; the same command goes on from there."
                )
            raise
    journal.refresh()


def _parallel(n_jobs: int | None) -> Parallel:
    """Make what spreads the runs, and gives each back as soon as it can."""
    try:
        return Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs")
    except ValueError:  # joblib before 1.4 keeps the order: a run waits for those before it
        return Parallel(n_jobs=n_jobs, return_as="generator", pre_dispatch="2*n_jobs")


def _calls(study: _Study, todo: list[Task], journal: Journal) -> Iterator[Any]:
    """Give joblib one call after another, without those that someone else has done meanwhile."""
    for task in todo:
        journal.refresh()
        yield delayed(_call)(
            task, study.data[task.dataset], study.protocol, study.missing(task, journal)
        )


def _call(
    task: Task, dataset: Dataset, protocol: Protocol, methods: dict[str, BaseEstimator]
) -> tuple[Task, list[dict[str, Any]]]:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # times are of one thread
        return task, measure(task, dataset, protocol, methods) if methods else []
