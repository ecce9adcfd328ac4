"""Which of the paper's printed accuracies cannot come from a working classifier, and why.

Three signs, each computed from the printed values, the sizes of the test sets and our own runs:

``worse``    The mean lies below 50 %, which any constant answer gives, by more than two standard errors, on
             public data where the forest is above it.
``spread``   The deviation over the runs is several times that of tossing a coin for each test sample. A
             mixture of runs with right and with exchanged labels varies so much.
``far``      On the very same data the classifier that the paper describes gets something else, in every form of
             the features, by more than both deviations. Alone it proves less than the others: the paper may
             have used another form of the data, or another measure.
"""

import math
from dataclasses import dataclass

import numpy as np

from popf.experiment import paper
from popf.experiment.results import Results, Summary
from popf.experiment.tables import differs, is_the_papers

STANDARD_ERRORS = 2.0
TIMES_A_COIN = 3.0


@dataclass(frozen=True)
class Doubt:
    """A printed accuracy, what is wrong with it, and ours on the same data.

    Attributes
    ----------
    dataset, method : str
    printed : Printed
    ours : dict of str to Summary
        By form; empty for stand-ins, with which the paper's values cannot be compared.
    coin : float
        The deviation, in points, that tossing a coin for every test sample would have.
    signs : tuple of {"worse", "spread", "far"}
    """

    dataset: str
    method: str
    printed: paper.Printed
    ours: dict[str, Summary]
    coin: float
    signs: tuple[str, ...]

    def reasons(self) -> list[str]:
        """Say in words what is wrong."""
        nearest = min(
            self.ours.values(),
            key=lambda found: abs(100.0 * found.mean - self.printed.mean),
            default=None,
        )
        words = {
            "worse": f"{self.printed.mean:.2f} % is worse than guessing",
            "spread": f"± {self.printed.deviation:.2f} is {self.printed.deviation / self.coin:.0f} times "
            f"the ± {self.coin:.2f} of tossing a coin",
            "far": "" if nearest is None else f"on this data we get {100 * nearest.mean:.2f} %",
        }
        return [words[sign] for sign in self.signs]


def doubts(results: Results) -> list[Doubt]:
    """Find the doubtful values among the paper's accuracies of the data sets and methods of a study.

    Parameters
    ----------
    results : Results

    Returns
    -------
    list of Doubt
        In the order of the tables.
    """
    found = []
    for name, dataset in results.datasets.items():
        if not is_the_papers(results, name):
            continue
        coin = 100.0 * coin_deviation(np.unique(dataset.y, return_counts=True)[1])
        forms = results.protocol.forms(dataset)
        by_form = {form: results.summaries("accuracy", name, form) for form in forms}
        for method in results.methods:
            printed = paper.printed("accuracy", name, method)
            if printed is None:
                continue
            ours = {
                form: summaries[method]
                for form, summaries in by_form.items()
                if method in summaries and not dataset.stand_in
            }
            signs = signs_of(printed, list(ours.values()), coin)
            if dataset.stand_in:
                # Where near samples have opposite labels, the forest itself is worse than guessing, and the
                # paper's data may be such.
                signs = tuple(sign for sign in signs if sign != "worse")
            if signs:
                found.append(Doubt(name, method, printed, ours, coin, signs))
    return found


def signs_of(printed: paper.Printed, ours: list[Summary], coin: float) -> tuple[str, ...]:
    """Give the signs that something is wrong with a printed accuracy.

    Parameters
    ----------
    printed : Printed
        In per cent.
    ours : list of Summary
        On the same data, one for each form of the features.
    coin : float
        The deviation of tossing a coin, in points.

    Examples
    --------
    >>> from popf.experiment.implausible_values import signs_of
    >>> from popf.experiment.paper import Printed
    >>> from popf.experiment.results import Summary
    >>> signs_of(Printed(50.43, 11.89), [Summary(0.99, 0.005, 20)], coin=2.0)
    ('spread', 'far')
    >>> signs_of(Printed(97.03, 0.55), [Summary(0.97, 0.005, 20)], coin=2.0)
    ()
    """
    error = printed.deviation / math.sqrt(paper.RUNS)
    signs = []
    if printed.mean + STANDARD_ERRORS * error < 50.0:
        signs.append("worse")
    if printed.deviation > TIMES_A_COIN * coin:
        signs.append("spread")
    if ours and all(differs(printed, found, 100.0) for found in ours):
        signs.append("far")
    return tuple(signs)


def coin_deviation(counts: "np.typing.NDArray[np.int64]") -> float:
    r"""Deviation of Papa's accuracy when a coin is tossed for every test sample of the paper's 75 %.

    With :math:`n_+` and :math:`n_-` test samples the accuracy is the mean of two independent shares, each with
    variance :math:`1/4n`: :math:`\sigma = \tfrac12 \sqrt{1/4n_+ + 1/4n_-}`.

    Examples
    --------
    >>> import numpy as np
    >>> from popf.experiment.implausible_values import coin_deviation
    >>> round(coin_deviation(np.array([555, 307])), 4)  # fourclass
    0.0205
    """
    tested = (1.0 - paper.TRAIN_SIZE) * np.asarray(counts, dtype=np.float64)
    return float(0.5 * np.sqrt((0.25 / tested).sum()))
