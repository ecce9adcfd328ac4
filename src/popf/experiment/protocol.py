"""The protocol: datasets, raw and scaled forms of their features, random splits, methods, and a single run."""

import hashlib
import json
import re
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import check_X_y
from threadpoolctl import threadpool_limits

from popf.datasets import list_datasets, load
from popf.datasets.registry import RECORDS, record_of
from popf.engine.structures import FloatArray
from popf.forest.classifier import OPFClassifier
from popf.formatting import check_integer, check_share, unknown
from popf.metrics import evaluate, opf_accuracy_score, threshold_curve
from popf.paper import PSO, Bat, Firefly, NelderMead, Newton, PlattOPFClassifier
from popf.probability.classifier import POPFClassifier

#: The paper's number of runs, and its share of training samples.
RUNS, TRAIN_SIZE = 20, 0.25
FORMS = ("raw", "scaled")
#: Features whose standard deviations differ by more than this factor have unequal weight in a distance.
UNEQUAL = 3.0
#: Solver names that also select a method.
ALIASES = {"bat": "P-OPF-BA", "firefly": "P-OPF-FFA", "nelder-mead": "P-OPF-NM"}
NO_DATASET = "there is no dataset to run; name at least one."
#: The methods in words, for the report.
IN_WORDS = {
    "OPF": "the forest, labels only",
    "P-OPF-BA": "the paper's method, bat algorithm",
    "P-OPF-FFA": "the paper's method, firefly algorithm",
    "P-OPF-PSO": "the paper's method, particle swarm",
    "P-OPF-NM": "the paper's method, Nelder and Mead's simplex",
    "P-OPF-Newton": "the paper's method, Newton's method (its future work)",
    "P-OPF-pooled": "popf's own P-OPF, the default of POPFClassifier",
    "SVM": "baseline of the journal version: SVC with Platt scaling",
    "logistic": "baseline of the journal version: logistic regression",
}
#: A run is timed a second time if it takes this many times as long as the fastest so far.
SLOW = 1.5
#: Seconds of the fastest run in this process, by data, form and method.
_fastest: dict[tuple[Any, ...], float] = {}
Say = Callable[[str], None]
#: The measurements of one run.
Record = dict[str, Any]
Methods = Mapping[str, BaseEstimator]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples and labels with a name."""

    name: str
    X: FloatArray
    y: NDArray[Any]
    stand_in: bool = False  # generated in place of one of the paper's datasets that is not public
    source: str = "given by the user"

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(np.unique(self.y))

    def facts(self) -> dict[str, Any]:
        """Return sizes and a fingerprint of all values, which identify the data in the journal."""
        classes, codes, counts = np.unique(self.y, return_inverse=True, return_counts=True)
        names = [str(label) for label in classes]
        digest = hashlib.sha256(np.ascontiguousarray(self.X).tobytes())
        digest.update(codes.astype("<i8").tobytes())
        digest.update(json.dumps(names).encode())
        return {
            "n_samples": len(self.y),
            "n_features": self.X.shape[1],
            "classes": dict(zip(names, counts.tolist(), strict=True)),
            "stand_in": self.stand_in,
            "fingerprint": digest.hexdigest()[:16],
        }


Wanted = Mapping[str, tuple[Any, Any] | Dataset] | Iterable[str] | str | None


def choose_datasets(wanted: Wanted, say: Say) -> dict[str, Dataset]:
    """Resolve the user's choice into datasets by name; None for the paper's 14.

    Those that cannot be found, as without a network, are left out, and `say` is called with a sentence about
    them; it is an error if none is left.
    """
    if isinstance(wanted, Mapping):
        pairs = {str(name): pair for name, pair in wanted.items()}
        chosen = {
            name: pair if isinstance(pair, Dataset) else own_dataset(name, pair)
            for name, pair in pairs.items()
        }
        if not chosen:
            raise ValueError(NO_DATASET)
        return chosen
    if wanted is None:
        names = [name for name, record in RECORDS.items() if record.in_paper]
    else:
        words = [wanted] if isinstance(wanted, str) else wanted
        names = list(dict.fromkeys(record_of(word).name for word in words))  # before loading any
    return _available(names, say)


def _available(names: list[str], say: Say) -> dict[str, Dataset]:
    """Load the datasets that can be found; say which are missing, and what works without them."""
    chosen, missing = {}, {}
    for name in names:
        try:
            chosen[name] = _load(name)
        except FileNotFoundError as error:
            missing[name] = error
    if missing:
        first = next(iter(missing.values()))
        told = f"Without data, and left out: {', '.join(missing)}.\n{first}"
        if not chosen:
            here = [record.name for record in list_datasets() if record.here != "needs download"]
            raise FileNotFoundError(f"{told}\nAvailable here: {', '.join(here)}.") from first
        say(told)
    if not chosen:
        raise ValueError(NO_DATASET)
    return chosen


def own_dataset(name: str, pair: Any) -> Dataset:
    """Validate samples and labels, and make a named dataset of them."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"datasets[{name!r}] must be a pair (X, y), not {type(pair).__name__}.")
    try:
        X, y = check_X_y(*pair, dtype=np.float64, order="C", ensure_all_finite="allow-nan")
    except (ValueError, TypeError) as error:
        raise ValueError(f"dataset {name!r}: {error}") from error
    incomplete = np.flatnonzero(np.isnan(X).any(axis=1))
    if len(incomplete):
        raise ValueError(
            f"dataset {name!r} has missing values (NaN) in {len(incomplete)} of {len(X)} rows, the first "
            f"in row {incomplete[0] + 1}: fill them in, or leave those rows out."
        )
    dataset = Dataset(name, X, y)
    if dataset.n_classes < 2:
        raise ValueError(f"dataset {name!r} has {dataset.n_classes} class; give at least two.")
    return dataset


def _load(name: str) -> Dataset:
    found = load(name)
    # Reports may be shared, so they show the file name but not the user's folders.
    file = Path(found.source)
    source = f"file {file.name}" if file.is_file() else found.source
    return Dataset(found.name, found.data, found.target, found.stand_in, source)


@dataclass(frozen=True)
class Protocol:
    """Settings common to all datasets and methods of a study; see `popf.experiment.run`."""

    runs: int = RUNS
    train_size: float = TRAIN_SIZE
    seed: int = 0
    scale: bool | None = None

    def __post_init__(self) -> None:
        check_integer("`runs`", self.runs, 1)
        check_integer("`seed`", self.seed, 0)
        check_share("`train_size`", self.train_size)
        if not (self.scale is None or isinstance(self.scale, bool)):
            raise ValueError(f"`scale` is {self.scale!r}; use True, False or None for both.")

    def forms(self, dataset: Dataset) -> tuple[str, ...]:
        """Return the forms of the features in which a dataset is run, "raw" first."""
        if self.scale is not None:
            return ("scaled",) if self.scale else ("raw",)
        spreads = dataset.X.std(axis=0)
        spreads = spreads[spreads > 0.0]
        matters = len(spreads) > 1 and spreads.max() > UNEQUAL * spreads.min()
        return FORMS if matters else FORMS[:1]

    def random_state(self, run: int) -> int:
        """Return the seed of a run, for its split and for randomised methods."""
        return int(np.random.SeedSequence([self.seed, run]).generate_state(1)[0])

    def split(self, dataset: Dataset, run: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Draw the training and test rows of a run, stratified by class; the same for both forms."""
        train, test = train_test_split(
            np.arange(len(dataset.y)),
            train_size=float(self.train_size),
            stratify=dataset.y,
            random_state=self.random_state(run),
        )
        return train, test

    def samples(self, dataset: Dataset, form: str, run: int) -> tuple[NDArray[Any], ...]:
        """Return X and y of the training samples of a run, then X and y of the test samples."""
        train, test = self.split(dataset, run)
        X_train, X_test = dataset.X[train], dataset.X[test]
        if form == "scaled":
            scaler = StandardScaler().fit(X_train)
            X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
        return X_train, dataset.y[train], X_test, dataset.y[test]

    def check(self, dataset: Dataset) -> None:
        """Raise ValueError, before any work, if a split would leave a class without samples."""
        classes, counts = np.unique(dataset.y, return_counts=True)
        try:
            parts = [part for run in range(self.runs) for part in self.split(dataset, run)]
        except ValueError:  # scikit-learn cannot stratify
            parts = [np.empty(0, dtype=np.intp)]
        if any(len(np.unique(dataset.y[part])) < len(classes) for part in parts):
            rarest = counts.argmin()
            raise ValueError(
                f"{dataset.name}: {counts.sum()} samples of {len(classes)} classes, only "
                f"{counts[rarest]} of class {classes[rarest]!s}, cannot be split with "
                f"`train_size={self.train_size:g}`: every class needs training and test samples "
                "in every run. Use another `train_size`, or merge or drop rare classes."
            )


def methods() -> dict[str, BaseEstimator]:
    """Return all methods of the reproduction, unfitted, by name.

    They are OPF, the paper's P-OPF with its four solvers and their parameters, the same with Newton's method
    (the paper's future work), popf's own P-OPF, and the two baselines of the paper's journal version: a
    probabilistic support vector machine (RBF kernel, Platt scaling in three folds as by Platt) and logistic
    regression, otherwise with the defaults of scikit-learn.

    Returns
    -------
    dict of str to classifier
        Add other classifiers to compare with.

    Examples
    --------
    >>> from popf.experiment import methods
    >>> list(methods())
    ['OPF', 'P-OPF-BA', 'P-OPF-FFA', 'P-OPF-PSO', 'P-OPF-NM', 'P-OPF-Newton', 'P-OPF-pooled', 'SVM', 'logistic']
    """
    solvers = {"BA": Bat(), "FFA": Firefly(), "PSO": PSO(), "NM": NelderMead(), "Newton": Newton()}
    return {
        "OPF": OPFClassifier(),
        **{f"P-OPF-{name}": PlattOPFClassifier(solver) for name, solver in solvers.items()},
        "P-OPF-pooled": POPFClassifier(),
        "SVM": CalibratedClassifierCV(SVC(), cv=3, ensemble=False),
        "logistic": LogisticRegression(max_iter=1000),
    }


def choose_methods(wanted: Methods | Iterable[str] | None) -> dict[str, BaseEstimator]:
    """Resolve the user's choice into classifiers by name; None for all of `methods`."""
    known = methods()
    if wanted is None:
        return known
    chosen = {}
    if isinstance(wanted, Mapping):
        for name, estimator in wanted.items():
            whole = all(hasattr(estimator, word) for word in ("fit", "predict", "get_params"))
            if isinstance(estimator, type) or not whole:
                raise TypeError(
                    f"methods[{name!r}] is {estimator!r}, not a scikit-learn classifier: pass an object with "
                    "fit, predict and get_params, such as OPFClassifier()."
                )
            chosen[str(name)] = estimator
    else:
        short = {name.removeprefix("P-OPF-").lower(): name for name in known} | ALIASES
        for name in [wanted] if isinstance(wanted, str) else wanted:
            word = str(name).lower().removeprefix("p-opf-")
            if word not in short:
                raise ValueError(unknown("method", str(name), short))
            chosen[short[word]] = known[short[word]]
    if not chosen:
        raise ValueError(f"there is no method to run; name some of {', '.join(known)}.")
    return chosen


def definition(value: Any) -> str:
    """Describe a classifier with all its parameters as text, so that settings can be compared."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        parameters = sorted(value.get_params(deep=False).items())
        shown = ", ".join(f"{name}={definition(part)}" for name, part in parameters)
        return f"{type(value).__name__}({shown})"
    if isinstance(value, list | tuple):
        return f"[{', '.join(definition(part) for part in value)}]"
    # Memory addresses differ between processes.
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def measure(
    protocol: Protocol, dataset: Dataset, form: str, run: int, methods: Methods
) -> list[Record]:
    """Fit and score all methods on a split; records hold scores and seconds, or the error as ``failed``."""
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
        except Exception as error:  # a failing method must not stop the others
            record["failed"] = f"{type(error).__name__}: {error}"
        records.append(record)
    return records


def seeded(model: BaseEstimator, random_state: int) -> BaseEstimator:
    """Set every ``random_state`` parameter that is None."""
    unseeded = [
        name
        for name, value in model.get_params().items()
        if name.rpartition("__")[2] == "random_state" and value is None
    ]
    return model.set_params(**dict.fromkeys(unseeded, random_state))


def _timed(model: BaseEstimator, split: tuple[Any, ...], kind: tuple[Any, ...]) -> Record:
    """Score a method, with times that exclude what happens only once in a process.

    Numba compiles or loads kernels at first use, which may happen on any split. So the first run of a
    method on a dataset, and each that is slow compared with the fastest, is done twice, and the faster counts.
    """
    record = _scores(clone(model), split)
    if _seconds(record) > SLOW * _fastest.get(kind, 0.0):
        record = min(record, _scores(clone(model), split), key=_seconds)
    _fastest[kind] = min(_seconds(record), _fastest.get(kind, np.inf))
    return record


def _seconds(record: Record) -> float:
    return float(record["train_seconds"] + record["test_seconds"])


def _scores(model: BaseEstimator, split: tuple[Any, ...]) -> Record:
    """Fit, predict and score one method; probability scores are None if it predicts no probabilities."""
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
    record |= dict.fromkeys(("log_loss", "brier", "ece"))
    if probability is not None:
        classes = np.unique(y_train)
        found = evaluate(y_test, probability, labels=classes, intervals=False).scores
        record |= {name: found[name].value for name in ("log_loss", "brier", "ece")}
        if len(classes) == 2:
            curve = threshold_curve(y_test, probability, pos_label=classes[1])
            record["over_thresholds"] = [round(score, 6) for score in curve.scores.tolist()]
    record |= {"train_seconds": fitted - start, "test_seconds": done - fitted}
    record["warnings"] = len(caught)
    if isinstance(model, PlattOPFClassifier) and not isinstance(model.solution_, list):
        record |= {"A": model.A_, "B": model.B_, "held": any(model.solution_.at_bound)}
    return record
