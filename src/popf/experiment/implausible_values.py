"""Which of the paper's printed accuracies cannot come from a working classifier, and why.

Three signs, each computed from the printed values, the sizes of the test sets and our own runs:

``worse``    The mean lies below 50 %, which any constant answer gives, by more than two standard errors, on
             public data where the forest is above it.
``spread``   The deviation over the runs is several times that of tossing a coin for each test sample. A
             mixture of runs with correct and with exchanged labels varies that much.
``far``      On the very same data the classifier that the paper describes gets something else, in every form of
             the features, by more than both deviations. Alone it proves less than the others: the paper may
             have used another form of the data, or another measure.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from popf.experiment import paper
from popf.experiment.results import Results, Summary
from popf.experiment.tables import differs, is_papers

STANDARD_ERRORS = 2.0
TIMES_A_COIN = 3.0


class ImplausibleValue(NamedTuple):
    """A printed accuracy, what is wrong with it, and ours on the same data."""

    dataset: str
    method: str
    printed: paper.Printed
    ours: dict[str, Summary]  # by form; empty for stand-ins, which cannot be compared
    coin: float  # standard deviation, in points, of tossing a coin for every test sample
    signs: tuple[str, ...]  # of "worse", "spread", "far"

    def reasons(self) -> list[str]:
        """Describe each sign in words."""
        mean, deviation, _ = self.printed
        words = {
            "worse": f"{mean:.2f} % is worse than guessing",
            "spread": f"± {deviation:.2f} is {deviation / self.coin:.0f} times the ± {self.coin:.2f} of "
            "tossing a coin",
        }
        if self.ours:
            nearest = min((100 * s.mean for s in self.ours.values()), key=lambda m: abs(m - mean))
            words["far"] = f"on this data we get {nearest:.2f} %"
        return [words[sign] for sign in self.signs]


def implausible_values(results: Results) -> list[ImplausibleValue]:
    """Find the implausible ones among the paper's accuracies of a study's data sets and methods."""
    found = []
    for name, dataset in results.datasets.items():
        if not is_papers(results, name):
            continue
        coin = 100.0 * coin_deviation(np.unique(dataset.y, return_counts=True)[1])
        forms = () if dataset.stand_in else results.protocol.forms(dataset)
        by_form = {form: results.summaries("accuracy", name, form) for form in forms}
        for method in results.methods:
            printed = paper.printed("accuracy", name, method)
            if printed is None:
                continue
            ours = {form: row[method] for form, row in by_form.items() if method in row}
            signs = signs_of(printed, list(ours.values()), coin)
            if dataset.stand_in:
                # Where near samples have opposite labels, the forest itself is worse than guessing, and the
                # paper's data may be like that.
                signs = tuple(sign for sign in signs if sign != "worse")
            if signs:
                found.append(ImplausibleValue(name, method, printed, ours, coin, signs))
    return found


def signs_of(printed: paper.Printed, ours: list[Summary], coin: float) -> tuple[str, ...]:
    """Find what is wrong with a printed accuracy, given ours in each form and the deviation of a coin."""
    error = printed.deviation / math.sqrt(paper.RUNS)
    found = {
        "worse": printed.mean + STANDARD_ERRORS * error < 50.0,
        "spread": printed.deviation > TIMES_A_COIN * coin,
        "far": bool(ours) and all(differs(printed, summary, 100.0) for summary in ours),
    }
    return tuple(sign for sign, present in found.items() if present)


def coin_deviation(counts: ArrayLike) -> float:
    r"""Deviation of Papa's accuracy when a coin is tossed for every test sample of the paper's 75 %.

    With :math:`n_+` and :math:`n_-` test samples the accuracy is the mean of two independent shares, each with
    variance :math:`1/4n`: :math:`\sigma = \tfrac12 \sqrt{1/4n_+ + 1/4n_-}`.
    """
    tested = (1.0 - paper.TRAIN_SIZE) * np.asarray(counts, dtype=np.float64)
    return float(0.5 * np.sqrt((0.25 / tested).sum()))
