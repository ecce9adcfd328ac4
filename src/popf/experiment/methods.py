"""The classifiers that are compared: the paper's with its parameters, ours, and the user's own."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from sklearn.base import BaseEstimator

from popf import OPFClassifier, POPFClassifier
from popf.formatting import unknown

#: Other words for the methods, in lower case.
ALIASES = {
    "opf": "OPF",
    "ba": "P-OPF-BA", "bat": "P-OPF-BA",
    "ffa": "P-OPF-FFA", "firefly": "P-OPF-FFA",
    "pso": "P-OPF-PSO",
    "nm": "P-OPF-NM", "nelder-mead": "P-OPF-NM",
    "newton": "P-OPF-Newton",
    "soft": "P-OPF-soft",
}  # fmt: skip


def methods() -> dict[str, BaseEstimator]:
    """Make all methods of the reproduction, unfitted, by name.

    OPF, the paper's P-OPF with its four solvers and their parameters, the same with Newton's method (its
    future work), and our soft competition.

    Returns
    -------
    dict of str to classifier

    Examples
    --------
    >>> from popf.experiment import methods
    >>> list(methods())
    ['OPF', 'P-OPF-BA', 'P-OPF-FFA', 'P-OPF-PSO', 'P-OPF-NM', 'P-OPF-Newton', 'P-OPF-soft']

    A study of one's own puts others beside them:

    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> mine = methods() | {"1-NN": KNeighborsClassifier(1)}
    """
    from popf.solvers import PSO, Bat, Firefly, NelderMead, Newton

    solvers = {
        "BA": Bat(),
        "FFA": Firefly(),
        "PSO": PSO(),
        "NM": NelderMead(),
        "Newton": Newton(),
    }
    paper = {
        f"P-OPF-{name}": POPFClassifier("paper", solver=solver) for name, solver in solvers.items()
    }
    return {"OPF": OPFClassifier(), **paper, "P-OPF-soft": POPFClassifier("soft")}


def choose_methods(
    wanted: Mapping[str, BaseEstimator] | Iterable[str] | None,
) -> dict[str, BaseEstimator]:
    """Turn what a user asks for into classifiers by name.

    Parameters
    ----------
    wanted : dict of str to classifier, or list of names, or None
        None for all of `methods`. Names are taken in any case, with or without "P-OPF-".

    Returns
    -------
    dict of str to classifier
    """
    if wanted is None:
        return methods()
    if isinstance(wanted, str):
        wanted = [wanted]
    known = methods()
    chosen = {}
    if isinstance(wanted, Mapping):
        for name, estimator in wanted.items():
            _check_classifier(name, estimator)
            chosen[str(name)] = estimator
    else:
        names = {name.lower(): name for name in known} | ALIASES
        for name in wanted:
            if str(name).lower() not in names:
                raise ValueError(unknown("method", str(name), list(known) + list(ALIASES)))
            chosen[names[name.lower()]] = known[names[name.lower()]]
    if not chosen:
        raise ValueError(f"no method is left to run; name some of {', '.join(known)}.")
    return chosen


def _check_classifier(name: object, estimator: object) -> None:
    missing = [
        word
        for word in ("fit", "predict", "get_params")
        if not callable(getattr(estimator, word, 0))
    ]
    if isinstance(estimator, type) or missing:
        hint = "make one with ()" if isinstance(estimator, type) else f"it has no {missing[0]}()"
        raise TypeError(
            f"methods[{name!r}] is {estimator!r}, not a scikit-learn classifier: {hint}."
        )


def definition(estimator: BaseEstimator) -> str:
    """Write down all that a classifier is, so that two runs of a study can be compared.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from popf.experiment.methods import definition
    >>> definition(DummyClassifier())
    "DummyClassifier(constant=None, random_state=None, strategy='prior')"
    """
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


def needs_two_classes(estimator: BaseEstimator) -> bool:
    """Whether a classifier is made for two classes only, as the paper's P-OPF is."""
    return isinstance(estimator, POPFClassifier) and estimator.method == "paper"
