"""The classifiers that are compared, and one run of them on one split of one data set."""

import re
import time
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from threadpoolctl import threadpool_limits

from popf.experiment.protocol import Dataset, Protocol, Record
from popf.forest.classifier import OPFClassifier
from popf.formatting import unknown
from popf.metrics import evaluate, opf_accuracy_score, threshold_curve
from popf.probability.classifier import POPFClassifier
from popf.solvers import PSO, Bat, Firefly, NelderMead, Newton

Methods = Mapping[str, BaseEstimator]
#: Other names of solvers, besides the ends of the methods' names.
ALIASES = {"bat": "P-OPF-BA", "firefly": "P-OPF-FFA", "nelder-mead": "P-OPF-NM"}
#: A run that takes this many times the fastest one so far is timed a second time.
SLOW = 1.5
#: Seconds of the fastest run in this process, by data, form and method.
_fastest: dict[tuple[Any, ...], float] = {}


def methods() -> dict[str, BaseEstimator]:
    """Make all methods of the reproduction, unfitted, by name.

    OPF, the paper's P-OPF with its four solvers and their parameters, the same with Newton's method (the
    paper's future work), and our default.

    Returns
    -------
    dict of str to classifier

    Examples
    --------
    >>> from popf.experiment import methods
    >>> list(methods())
    ['OPF', 'P-OPF-BA', 'P-OPF-FFA', 'P-OPF-PSO', 'P-OPF-NM', 'P-OPF-Newton', 'P-OPF-pooled']

    Add others to compare with:

    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> mine = methods() | {"1-NN": KNeighborsClassifier(1)}
    """
    solvers = {"BA": Bat(), "FFA": Firefly(), "PSO": PSO(), "NM": NelderMead(), "Newton": Newton()}
    paper = {
        f"P-OPF-{name}": POPFClassifier("paper", solver=solver) for name, solver in solvers.items()
    }
    return {"OPF": OPFClassifier(), **paper, "P-OPF-pooled": POPFClassifier()}


def choose_methods(wanted: Methods | Iterable[str] | None) -> dict[str, BaseEstimator]:
    """Turn what a user asks for (None for all of `methods`) into classifiers by name."""
    known = methods()
    if wanted is None:
        return known
    chosen = {}
    if isinstance(wanted, Mapping):
        for name, estimator in wanted.items():
            needed = ("fit", "predict", "get_params")
            missing = [word for word in needed if not callable(getattr(estimator, word, None))]
            is_class = isinstance(estimator, type)
            if is_class or missing:
                hint = "make one with ()" if is_class else f"it has no {missing[0]}()"
                raise TypeError(
                    f"methods[{name!r}] is {estimator!r}, not a scikit-learn classifier: {hint}."
                )
            chosen[str(name)] = estimator
    else:
        short = {name.removeprefix("P-OPF-").lower(): name for name in known} | ALIASES
        names = {name.lower(): name for name in known} | short
        for name in [wanted] if isinstance(wanted, str) else wanted:
            if str(name).lower() not in names:
                raise ValueError(unknown("method", str(name), [*known, *short]))
            full = names[name.lower()]
            chosen[full] = known[full]
    if not chosen:
        raise ValueError(f"there is no method to run; name some of {', '.join(known)}.")
    return chosen


def definition(estimator: BaseEstimator) -> str:
    """Write a classifier with all its parameters, so that two runs of a study can be compared."""
    parameters = ", ".join(
        f"{name}={_shown(value)}"
        for name, value in sorted(estimator.get_params(deep=False).items())
    )
    return f"{type(estimator).__name__}({parameters})"


def _shown(value: Any) -> str:
    if hasattr(value, "get_params") and not isinstance(value, type):
        return definition(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_shown(part) for part in value)}]"
    # Addresses differ from process to process, and say nothing.
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def is_paper_method(estimator: BaseEstimator) -> bool:
    """Whether a classifier is the paper's P-OPF, which is for two classes only."""
    return isinstance(estimator, POPFClassifier) and estimator.method == "paper"


def measure(
    protocol: Protocol, dataset: Dataset, form: str, run: int, methods: Methods
) -> list[Record]:
    """Fit copies of all methods on the training part of a split, and score them on the test part.

    Each gets a record of its scores and seconds, or ``failed`` and why.
    """
    split = protocol.samples(dataset, form, run)
    random_state = protocol.random_state(run)
    records = []
    for name, method in methods.items():
        record: Record = {"dataset": dataset.name, "form": form, "run": run, "method": name}
        record["random_state"] = random_state
        kind = (dataset.name, dataset.X.shape, form, name, definition(method))
        try:
            with threadpool_limits(1):  # times are for one thread
                record |= _timed(seeded(clone(method), random_state), split, kind)
        except Exception as error:  # one method that fails must not cost the others their run
            record["failed"] = f"{type(error).__name__}: {error}"
        records.append(record)
    return records


def seeded(model: BaseEstimator, random_state: int) -> BaseEstimator:
    """Set every ``random_state`` that the user has left at None."""
    unseeded = [
        name
        for name, value in model.get_params().items()
        if name.rpartition("__")[2] == "random_state" and value is None
    ]
    return model.set_params(**dict.fromkeys(unseeded, random_state))


def _timed(model: BaseEstimator, split: tuple[Any, ...], kind: tuple[Any, ...]) -> Record:
    """Score a method, leaving out of the times what happens only once in a process.

    Numba compiles or loads kernels at first use, and any split may be the first to use one. So the
    first run of a kind, and each that is slow beside the fastest, is done twice, and the faster counts.
    """
    record = _scores(clone(model), split)
    if _seconds(record) > SLOW * _fastest.get(kind, 0.0):
        record = min(record, _scores(clone(model), split), key=_seconds)
    _fastest[kind] = min(_seconds(record), _fastest.get(kind, np.inf))
    return record


def _seconds(record: Record) -> float:
    return float(record["train_seconds"] + record["test_seconds"])


def _scores(model: BaseEstimator, split: tuple[Any, ...]) -> Record:
    """Fit, predict and score one method; scores of probabilities are None where it gives none."""
    X_train, y_train, X_test, y_test = split
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        model.fit(X_train, y_train)
        fitted = time.perf_counter()
        predicted = model.predict(X_test)
        done = time.perf_counter()
        probability = model.predict_proba(X_test) if hasattr(model, "predict_proba") else None
    record: Record = {"accuracy": float(opf_accuracy_score(y_test, predicted))}
    names = ("log_loss", "brier", "ece")
    if probability is None:
        record |= dict.fromkeys(names)
    else:
        classes = np.unique(y_train)
        found = evaluate(y_test, probability, labels=classes, intervals=False).scores
        record |= {name: found[name].value for name in names}
        if len(classes) == 2:
            curve = threshold_curve(y_test, probability, pos_label=classes[1])
            record["over_thresholds"] = [round(score, 6) for score in curve.scores.tolist()]
    record |= {"train_seconds": fitted - start, "test_seconds": done - fitted}
    record["warnings"] = len(caught)
    if is_paper_method(model):
        record |= {"A": model.A_, "B": model.B_, "held": any(model.solution_.at_bound)}
    return record
