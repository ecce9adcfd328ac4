"""What the paper prints: facts to put beside our own numbers, never targets.

Table 3 (accuracy, with its bold type) and table 4 (time) of `REFERENCE`. Some accuracies cannot come from a
working classifier; `signs_of` finds three signs of that, which the report explains.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from popf.datasets.registry import RECORDS
from popf.experiment.protocol import RUNS, TRAIN_SIZE
from popf.experiment.results import Results, Summary

REFERENCE = (
    "S. E. N. Fernandes, D. R. Pereira, C. C. O. Ramos, A. N. Souza, J. P. Papa, "
    '"A Probabilistic Optimum-Path Forest Classifier for Binary Classification Problems", '
    "arXiv:1609.00878"
)
#: Methods in the order of the paper's tables.
METHODS = ("OPF", "P-OPF-BA", "P-OPF-FFA", "P-OPF-PSO", "P-OPF-NM")
#: Data sets of figure 1, and of figures 2 and 3, two in each.
LANDSCAPES = ("industrial", "diabetes")
THRESHOLDS = ("breast_cancer", "comercial", "industrial", "ionosphere")


# One line a data set, methods in the order above; an asterisk stands for bold type.
_ACCURACY = """
australian        46.96  6.55   52.50  6.84*  53.31  6.45*  52.43  6.87*  53.31  6.45*
comercial         87.66  3.04*  78.00 25.44   43.34 34.45   87.66  3.04*  87.66  3.04*
industrial        97.03  0.55*  97.03  0.55*  36.69 36.91   97.02  0.54*  97.02  0.54*
breast_cancer     95.83  0.80*  86.73 20.32   75.81 36.32   95.83  0.80*  95.83  0.80*
colon_cancer      61.70  5.49*  50.00 14.58   52.77 14.28   50.00 14.58   61.06  6.75*
diabetes          61.39 11.10*  55.47 13.05   51.63 14.39   43.18 12.53   43.18 12.53
fourclass         50.43 11.89*  47.67 11.76   49.18 11.98   50.05 12.02*  50.05 12.02*
heart             65.32  4.98*  50.44  7.58   48.13  7.08   54.48  5.92   54.48  5.92
ionosphere        85.64  3.25*  55.57 13.68   43.33 10.32   81.29  3.17   83.30  3.11
ionosphere_scale  85.04  3.12*  60.98 12.39   53.26 14.59   79.62  8.95   80.61  8.90
liver             61.00  2.36*  54.02  9.62   45.02 10.52   60.50  2.31   60.50  2.31*
synthetic0        48.72  3.67   50.77  3.66   50.29  3.74   51.57  3.37*  51.57  3.37*
synthetic2        51.99  5.55*  49.84  6.27   46.77  5.27   49.92  6.27   49.92  6.27
synthetic3        42.78  5.79   50.86  9.81   44.83  8.36   58.34  4.47*  55.23  8.18
"""
# The paper's time table calls its second line "industrial" too; its place says that it is comercial.
_SECONDS = """
australian        0.00 0.00  0.17 0.02  0.20 0.01  0.10 0.01  0.02 0.00
comercial         0.06 0.00  1.00 0.15  0.98 0.14  0.97 0.09  0.30 0.00
industrial        0.05 0.00  0.96 0.12  0.91 0.11  0.88 0.11  0.26 0.06
breast_cancer     0.01 0.00  0.23 0.05  0.30 0.06  0.32 0.01  0.12 0.01
colon_cancer      0.00 0.00  0.10 0.01  0.10 0.01  0.10 0.01  0.01 0.00
diabetes          0.01 0.00  0.25 0.03  0.32 0.05  0.27 0.01  0.04 0.00
fourclass         0.01 0.00  0.27 0.03  0.28 0.03  0.28 0.03  0.05 0.00
heart             0.00 0.00  0.17 0.03  0.18 0.02  0.18 0.01  0.02 0.00
ionosphere        0.00 0.00  0.21 0.04  0.21 0.04  0.20 0.02  0.03 0.00
ionosphere_scale  0.00 0.00  0.18 0.02  0.19 0.03  0.20 0.02  0.01 0.00
liver             0.00 0.00  0.17 0.01  0.18 0.01  0.16 0.01  0.01 0.00
synthetic0        0.00 0.00  0.19 0.01  0.19 0.01  0.20 0.01  0.02 0.00
synthetic2        0.02 0.00  0.31 0.02  0.30 0.02  0.29 0.03  0.10 0.03
synthetic3        0.00 0.00  0.12 0.01  0.13 0.01  0.11 0.01  0.01 0.00
"""


def _read(text: str, per_cent: bool = False) -> dict[str, dict[str, Summary]]:
    table: dict[str, dict[str, Summary]] = {}
    for line in text.split("\n")[1:-1]:
        name, *numbers = line.split()
        table[name] = {}
        for method, mean, deviation in zip(METHODS, numbers[::2], numbers[1::2], strict=True):
            bold, number = deviation.endswith("*"), float(deviation.rstrip("*"))
            table[name][method] = Summary(float(mean), number, RUNS, bold, per_cent=per_cent)
    return table


#: Accuracy in per cent, ``ACCURACY[dataset][method]``.
ACCURACY = _read(_ACCURACY, per_cent=True)
#: Time in seconds, ``SECONDS[dataset][method]``; the paper does not say of what.
SECONDS = _read(_SECONDS)
STANDARD_ERRORS = 2.0
TIMES_A_COIN = 3.0


def printed_values(results: Results, measure: str, dataset: str) -> dict[str, Summary]:
    """Return the printed values of a data set by method; a user's own set of the same name has none."""
    record, shape = RECORDS.get(dataset), results.datasets[dataset].X.shape
    if record is None:
        return {}
    # breast_cancer is in use with the number of the patient, too.
    with_id = record.n_features + (dataset == "breast_cancer")
    if shape[0] != record.n_samples or shape[1] not in (record.n_features, with_id):
        return {}
    values = {"accuracy": ACCURACY, "seconds": SECONDS}.get(measure, {}).get(dataset, {})
    return {method: values[method] for method in results.methods if method in values}


def differs(value: Summary, ours: Summary) -> bool:
    """Whether two means are further apart than their deviations together."""
    return abs(value.mean - ours.mean) > (value.deviation or 0.0) + (ours.deviation or 0.0)


class ImplausibleValue(NamedTuple):
    """A printed accuracy, ours on the same data, and what is wrong with it."""

    dataset: str
    method: str
    printed: Summary
    ours: dict[str, Summary]  # by form; empty for stand-ins, which cannot be compared
    signs: dict[str, str]  # "worse", "spread", "far", each described in words


def implausible_values(results: Results) -> list[ImplausibleValue]:
    """Find the implausible ones among the paper's accuracies of a study's data sets and methods."""
    found = []
    for name, dataset in results.datasets.items():
        coin = 100.0 * coin_deviation(np.unique(dataset.y, return_counts=True)[1])
        forms = () if dataset.stand_in else results.protocol.forms(dataset)
        by_form = {form: results.summaries("accuracy", name, form) for form in forms}
        for method, value in printed_values(results, "accuracy", name).items():
            ours = {form: row[method] for form, row in by_form.items() if method in row}
            signs = signs_of(value, list(ours.values()), coin)
            if dataset.stand_in:
                # Where near samples have opposite labels, the forest itself is worse than guessing, and the
                # paper's data may be like that.
                signs.pop("worse", None)
            if signs:
                found.append(ImplausibleValue(name, method, value, ours, signs))
    return found


def signs_of(value: Summary, ours: list[Summary], coin: float) -> dict[str, str]:
    """Find what is wrong with a printed accuracy, given ours in each form and the deviation of a coin."""
    mean, deviation = value.mean, value.deviation or 0.0
    found = {}
    if mean + STANDARD_ERRORS * deviation / math.sqrt(RUNS) < 50.0:
        found["worse"] = f"{mean:.2f} % is worse than guessing"
    if deviation > TIMES_A_COIN * coin:
        times = f"{deviation / coin:.0f} times the ± {coin:.2f}"
        found["spread"] = f"± {deviation:.2f} is {times} of tossing a coin"
    if ours and all(differs(value, summary) for summary in ours):
        nearest = min((summary.mean for summary in ours), key=lambda own: abs(own - mean))
        found["far"] = f"on this data we get {nearest:.2f} %"
    return found


def coin_deviation(counts: ArrayLike) -> float:
    r"""Deviation of Papa's accuracy when a coin is tossed for every test sample of the paper's 75 %.

    With :math:`n_+` and :math:`n_-` test samples the accuracy is the mean of two independent shares, each with
    variance :math:`1/4n`: :math:`\sigma = \tfrac12 \sqrt{1/4n_+ + 1/4n_-}`.
    """
    tested = (1.0 - TRAIN_SIZE) * np.asarray(counts, dtype=np.float64)
    return float(0.5 * np.sqrt((0.25 / tested).sum()))
