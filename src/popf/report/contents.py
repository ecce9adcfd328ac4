"""What a report says, before it becomes a page."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.metrics import Evaluation
from popf.report.formatting import count, fixed, percent
from popf.report.numbers import Decisions, Quality

#: With a calibration error by chance above this, and with fewer samples of a class, little can be said.
TOO_COARSE, FEW = 0.05, 20


class Node(NamedTuple):
    """A sample on a path.

    Attributes
    ----------
    name : str
        Which training row it is, or that it is the sample itself.
    label : str
        Its class; empty for the sample itself.
    kind : {"prototype", "between", "sample"}
    """

    name: str
    label: str
    kind: str


class Step(NamedTuple):
    """An edge of a path, or several that are not shown.

    Attributes
    ----------
    length : str
    share : float
        Of the longest, from 0 to 1.
    longest : bool
    left_out : int
        How many samples lie between, unseen.
    """

    length: str
    share: float
    longest: bool
    left_out: int = 0


class PathView(NamedTuple):
    """A path as it is shown.

    Attributes
    ----------
    label : str
        The class whose prototype it starts from.
    cost : float
    n_steps : int
    rivals : list of pairs of str
        The other classes, and what their cheapest paths cost.
    nodes : list of Node
        From the prototype to the sample.
    steps : list of Step
        One fewer.
    features : list of list of str
        A row for each feature: its name, and its value at each node.
    n_hidden : int
        How many features are not shown.
    """

    label: str
    cost: float
    n_steps: int
    rivals: list[tuple[str, str]]
    nodes: list[Node]
    steps: list[Step]
    features: list[list[str]]
    n_hidden: int


class Person(NamedTuple):
    """A sample of a high probability.

    Attributes
    ----------
    row : int
        In the data, from 1.
    ids : list of str
    probability : float
    truth : str
        Its class.
    path : PathView
    """

    row: int
    ids: list[str]
    probability: float
    truth: str
    path: PathView


class Contents(NamedTuple):
    """All that a report says.

    Attributes
    ----------
    title, source, event, other : str
        The title; which model and which samples, if known; the positive class; the other one, or "all others".
    classes : list of str
        All that the model knows.
    quality : Quality
    decisions : Decisions
    start, pair : int
        Which threshold and which costs are chosen first.
    overall : Evaluation or None
        For more than two classes.
    id_names : list of str
    people : list of Person
        The highest probabilities first.
    facts : list of pairs
        Headings, each with pairs of terms and texts.
    note : str
        What to know about the paths; empty for nothing.
    """

    title: str
    source: str
    event: str
    other: str
    classes: list[str]
    quality: Quality
    decisions: Decisions
    start: int
    pair: int
    overall: Evaluation | None
    id_names: list[str]
    people: list[Person]
    facts: list[tuple[str, list[tuple[str, str]]]]
    note: str


def verdict(found: Quality) -> list[str]:
    """Say in words how good probabilities are.

    Parameters
    ----------
    found : Quality

    Returns
    -------
    list of str
        Sentences.
    """
    loss = found.scores["log_loss"]
    error, chance = found.scores["ece"].value, found.chance_error
    if error <= chance and chance > TOO_COARSE:
        first = (
            f"No fault of the probabilities can be seen, but {count(found.n_samples)} samples show little: "
            f"they are {percent(error)} off on average, and even perfect ones would be up to "
            f"{percent(chance)} off."
        )
    elif error <= chance:
        first = (
            f"The probabilities can be taken at their word: they are {percent(error)} off on average, "
            f"and even perfect ones would be up to {percent(chance)} off on {count(found.n_samples)} samples."
        )
    else:
        gap = _net(found.curve.frequency - found.curve.probability, found.curve.weights)
        way = "too low" if gap > 0 else "too high"
        often = f", mostly {way}" if abs(gap) > error / 2 else ""
        first = (
            f"The probabilities are {percent(error)} off on average{often}; chance alone explains up to "
            f"{percent(chance)} on {count(found.n_samples)} samples."
        )
    if loss.upper < found.prior_log_loss:
        gain = 1.0 - found.scores["brier"].value / found.prior_brier
        second = (
            f"They know much more than the base rate of {percent(found.prior)}"
            if gain > 0.5
            else f"They know more than the base rate of {percent(found.prior)}"
        )
        second += (
            f": the squared error is {percent(gain, 0)} lower than that of always answering it."
        )
    elif loss.lower > found.prior_log_loss:
        second = (
            f"They are worse than always answering the base rate of {percent(found.prior)} (log loss "
            f"{fixed(loss.value, 3)} against {fixed(found.prior_log_loss, 3)}): do not use them."
        )
    else:
        second = (
            "On this data they are no surer than always answering the base rate of "
            f"{percent(found.prior)}."
        )
    rare = round(min(found.prior, 1.0 - found.prior) * found.n_samples)
    if rare < FEW:
        kind = "are so" if found.prior <= 0.5 else "are not so"
        return [first, second, f"Only {rare} of the samples {kind}: all numbers here are rough."]
    return [first, second]


def _net(gaps: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    return float((gaps * weights).sum() / weights.sum())


def sentence(contents: Contents) -> str:
    """Say what the threshold chosen first brings; the page's script says the same of others."""
    found, at = contents.decisions, contents.start
    hits, alarms = int(found.counts.hits[at]), int(found.counts.alarms[at])
    n_positive = int(found.counts.n_positive)
    return (
        f"{count(hits + alarms)} of {count(found.n_samples)} samples are called “{contents.event}”: "
        f"{count(hits)} rightly, {count(alarms)} as false alarms. {count(n_positive - hits)} of "
        f"{count(n_positive)} are missed."
    )


def as_data(contents: Contents) -> dict[str, Any]:
    """Gather what the page's script needs, as plain values."""
    found = contents.decisions
    return {
        "event": contents.event,
        "thresholds": found.counts.thresholds.tolist(),
        "hits": found.counts.hits.astype(int).tolist(),
        "alarms": found.counts.alarms.astype(int).tolist(),
        "positive": int(found.counts.n_positive),
        "negative": int(found.counts.n_negative),
        "ratios": [miss / alarm for alarm, miss in found.costs],
        "recommended": found.recommended,
        "start": contents.start,
        "pair": contents.pair,
        "paths": [_path_data(contents, person) for person in contents.people],
    }


def _path_data(contents: Contents, person: Person) -> dict[str, Any]:
    path = person.path
    return {
        "summary": path_summary(contents, person),
        "nodes": [list(node) for node in path.nodes],
        "steps": [[s.length, round(s.share, 3), s.longest, s.left_out] for s in path.steps],
        "features": path.features,
        "hidden": path.n_hidden,
    }


def person_name(contents: Contents, person: Person) -> str:
    """Give the words by which a sample is known: its first id, or its row.

    Parameters
    ----------
    contents : Contents
    person : Person
    """
    return person.ids[0] if contents.id_names and person.ids[0] else f"row {person.row}"


def path_summary(contents: Contents, person: Person) -> str:
    """Say in words what a path means."""
    path = person.path
    if path.n_steps == 1:
        way = f"One step leads to it from a prototype of “{path.label}”; its length"
    else:
        way = (
            f"{path.n_steps} steps lead to it, from a prototype of “{path.label}” by training samples of the "
            "same class; the longest"
        )
    rivals = "; ".join(
        f"the cheapest path of “{label}” costs {cost}" for label, cost in path.rivals
    )
    return (
        f"Probability of “{contents.event}”: {percent(person.probability)}. {way}, "
        f"{path.steps[_longest(path)].length}, is the cost of the path. "
        f"{rivals[:1].upper()}{rivals[1:]}{'.' if rivals else ''}"
    ).rstrip()


def _longest(path: PathView) -> int:
    return next(number for number, step in enumerate(path.steps) if step.longest)
